"""What a conversion has to know of a format beside the parts of its messages.

A format's folder has one ``ConversionTable``, the ``TABLE`` of its ``conversion.py``.  What no
table gives are methods of its own reader and writer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

from trimtab.formats.engine.parts import PartTable, Rows
from trimtab.formats.neutral.ids import NameRules
from trimtab.jsontext.paths import Path


class TargetRules(NamedTuple):
    """What a target requires of the order of turns, and which parts it takes."""

    joins_users: bool = False
    """Neighbouring user messages have to be one."""
    late_system: bool = False
    """A system message may stand within the conversation."""
    begins_with_user: bool = False
    ends_with_user: bool = False
    refuses_blanks: bool = False
    """A text of nothing but white space is refused (an empty one is never written)."""
    takes_marks: bool = False
    takes_custom: bool = False
    """Free-form tools, whose argument is a text."""
    declares_tools: bool = False
    """Tools have to be declared where calls or results stand in the conversation."""
    declares_always: bool = False
    """Even for a bare list of messages, which becomes a body by it."""
    unique_ids: bool = False
    """No two calls of the whole request may have one id (elsewhere: of one turn)."""
    takes_open_reasoning: bool = False
    """Readable reasoning is carried over as text."""
    max_temperature: float | None = None
    default_output: int = 0
    """The output limit that a request without one is given; 0: it may have none."""


@dataclass(frozen=True)
class ConversionTable:
    """One format: its settings, its head, its tool choices and its rules."""

    parts: PartTable
    settings: Mapping[Path, Mapping[str, str]]
    """Path of an object → its keys, each with our name for the setting.  Of two keys for one
    setting the first is written."""
    choices: Mapping[str, tuple[Any, ...]]
    """Mode → its shapes (``choice_shapes.py``); the first is written, the others are only read."""
    name_rules: NameRules = field(default_factory=NameRules)
    rules: TargetRules = field(default_factory=TargetRules)
    head: Path = ()
    """Where the system prompt is; (): it is the first messages."""
    only_read: frozenset[str] = frozenset()
    """Keys of settings that are never written."""
    mixes_results: bool = False
    """Whether results and the user's words are parts of one message."""
    plain_text: bool = False
    """Whether a text alone is written as a string."""
    more_tools: tuple[Path, ...] = ()
    """Where clients of old declare tools; only read."""
    more_choices: tuple[Path, ...] = ()
    """Where they have the tool choice."""
    quiet: frozenset[str] = frozenset()
    """Keys that say nothing to another provider, or that the format's reader looks at."""
    usual: Mapping[str, Any] = field(default_factory=dict)
    """Key → the value that every other format takes for granted."""

    @property
    def content(self) -> Rows:
        """The parts of a message's content, of a result and of the system prompt."""
        return cast(Rows, self.parts.parts[self.parts.content])

    @property
    def says_errors(self) -> bool:
        """Whether a failed result says so in its text, as there is no flag."""
        return "error" not in self.parts.result[1].written

    @property
    def written(self) -> dict[str, Path]:
        """Setting → where it is written."""
        return {
            name: (*section, key)
            for section, names in self.settings.items()
            for key, name in reversed(list(names.items()))
            if key not in self.only_read
        }
