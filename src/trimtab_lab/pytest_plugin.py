"""``pytest --conform=TARGET``: the properties of the conformance suite as test items.

One item for each format and property; the cases of a format run once.  Every pytest run with
trimtab installed loads this plugin, so the suite itself is imported only with ``--conform``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from trimtab_lab.testing.conformance import Scoreboard

SHOWN = 5
"""How many failing cases a failed item names."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options, in a group of their own."""
    group = parser.getgroup("trimtab", "conformance of whatever makes conversations fit")
    group.addoption("--conform", metavar="TARGET", help="what to test: see trimtab conform --help")
    group.addoption("--conform-format", action="append", metavar="FORMAT", default=None)
    group.addoption("--conform-window", type=int, default=8_000, metavar="TOKENS")
    group.addoption("--conform-cases", type=int, default=60, metavar="N")
    group.addoption("--conform-slack", type=float, default=0.0, metavar="SHARE")
    group.addoption("--conform-factory", action="store_true", help="the callable makes the target")


def pytest_collection_modifyitems(
    session: pytest.Session, config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Adds an item for each format and property."""
    name = config.getoption("--conform")
    if not name:
        return
    from trimtab.errors import TrimtabError
    from trimtab_lab.testing.conformance import PROPERTIES

    try:
        suite = _Suite(config, name)
    except TrimtabError as error:
        raise pytest.UsageError(str(error)) from None
    config.add_cleanup(suite.close)
    items += [
        ConformItem.from_parent(
            session, name=f"conform[{format}-{one.name}]", suite=suite, format=format,
            property=one.name,
        )
        for format in suite.formats
        for one in PROPERTIES
    ]  # fmt: skip


class _Suite:
    """The target, and the scoreboard of each format, computed on first use."""

    def __init__(self, config: pytest.Config, name: str) -> None:
        from trimtab_lab.testing.conformance import Options, TargetOptions, open_target

        window = config.getoption("--conform-window")
        factory = config.getoption("--conform-factory")
        self._target = open_target(name, TargetOptions(window, factory))
        self.formats = tuple(config.getoption("--conform-format") or self._target.formats)
        self._options = Options(
            window, config.getoption("--conform-cases"), config.getoption("--conform-slack")
        )
        self._boards: dict[str, Scoreboard] = {}

    def scoreboard(self, format: str) -> Scoreboard:
        from dataclasses import replace

        from trimtab_lab.testing.conformance import run

        if format not in self._boards:
            options = replace(self._options, formats=(format,))
            self._boards[format] = run(self._target, options)
        return self._boards[format]

    def close(self) -> None:
        """Ends what was started."""
        self._target.close()


class PropertyFailed(Exception):
    """The cases in which a property does not hold."""


class ConformItem(pytest.Item):
    """One property in one format."""

    def __init__(self, *, suite: _Suite, format: str, property: str, **more: Any) -> None:
        super().__init__(**more)
        self._suite, self._format, self._property = suite, format, property

    def runtest(self) -> None:
        """Raise PropertyFailed with the first cases; skip a property that no case judged."""
        row = self._suite.scoreboard(self._format).row(self._property)
        if not row.judged:
            pytest.skip("no case asked for it, or the target offers none")
        if row.failures:
            told = [
                f"seed {one.seed} ({one.case}), turn {one.turn}: {one.reason}"
                for one in row.failures[:SHOWN]
            ]
            raise PropertyFailed(
                "\n".join(_failure_lines(row.about, len(row.failures), row.judged, told))
            )

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """The failing cases, without a traceback."""
        if isinstance(excinfo.value, PropertyFailed):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[str, int | None, str]:
        """The item's location: it has no file."""
        return "trimtab", None, self.name


def _failure_lines(about: str, failed: int, judged: int, cases: Iterable[str]) -> Iterable[str]:
    yield f"{failed} of {judged} cases fail: {about}"
    yield from cases
