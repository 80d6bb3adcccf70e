"""Where whole messages of a repaired request stood in the request as it was given."""

from __future__ import annotations

from typing import Any

import pytest

from trimtab.formats.repair.provenance import Provenance
from trimtab.jsontext import paths
from trimtab.jsontext.paths import Delete

MESSAGES: list[dict[str, Any]] = [
    {"role": "user", "content": [{"text": "Go."}]},
    {"role": "assistant", "content": []},
    {"role": "assistant", "content": [{"text": "One."}, {"text": ""}]},
    {"role": "assistant", "content": []},
    {"role": "user", "content": [{"text": "And?"}, {"text": "Now."}]},
]
REMOVED = (("messages", 1), ("messages", 2, "content", 1), ("messages", 3))
"""Repair leaves: Go.; One.; And?, Now."""


def _provenance() -> Provenance:
    tree = {"messages": MESSAGES}
    ops = [Delete(path) for path in REMOVED]
    return Provenance([tree, paths.apply(tree, ops)], [ops], ("messages",))


@pytest.mark.parametrize(
    ("items", "given"),
    [
        ([("messages", 0)], [0, 1]),
        ([("messages", 1)], [2, 3]),
        ([("messages", 2)], [4]),
        ([("messages", 0), ("messages", 2)], [0, 1, 4]),
        ([("messages", 2, "content", 1)], [(4, "content", 1)]),
        ([("messages", 2, "content", 0), ("messages", 2)], [4]),
        ([("messages", 9)], []),
    ],
    ids=str,
)
def test_a_message_stands_for_what_repair_removed_behind_it(items: Any, given: Any) -> None:
    found = _provenance().messages(items)
    assert found == [("messages", *((at,) if isinstance(at, int) else at)) for at in given]


class _Unwalked(dict[Any, Any]):
    def __iter__(self) -> Any:
        raise AssertionError("walks over every message of the request")

    items = keys = values = __iter__  # type: ignore[assignment]


def test_what_one_fold_took_is_found_without_a_walk_over_all_messages() -> None:
    # 8,000 messages with 1,331 folds: the walk of each took 3 of 9.8 seconds, 4 times as long as
    # for 4,000.
    provenance = _provenance()
    found = provenance.messages([("messages", 1)])
    for name in ("_origins", "_lost"):
        vars(provenance)[name] = _Unwalked(vars(provenance)[name])
    assert provenance.messages([("messages", 1)]) == found
