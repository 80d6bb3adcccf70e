"""What an edit was about, in a few words: ``3 steps: read module_16–18.py; bash pytest -q``.

Calls are named as people do: by what they did, and to which file or with which command.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from trimtab.amounts import many
from trimtab.errors import InvalidRequest
from trimtab.journal.archive import Archived, ArchivedStep, steps_in
from trimtab.jsontext.parsing import parse
from trimtab.planning.record import Entry
from trimtab.transcript.call_arguments import strings_in

CHARS, OBJECT_CHARS, MAX_OBJECTS = 140, 48, 4
_VERBS = {"read": "read", "edit": "edited", "write": "wrote"}
_NUMBERED = re.compile(r"(.*?)(\d{1,9})(\D*)")


def of_call(archived: Archived) -> str:
    """Of the result of one call; "" for anything else."""
    entries = ArchivedStep(archived, "").entries
    calls = [*_calls(entries)]
    if calls and calls[0][0] == archived.tool:  # neither file nor verb: the arguments' own words
        try:
            words = " ".join(text for _, text in strings_in(parse(archived.call)))
        except InvalidRequest:
            words = archived.call
        calls = [("", _short(" ".join(words.split())))]
    return _joined(calls)


def of_steps(handle: str, original: str) -> str:
    """Of a fold's original, the oldest step first; "" where it has no steps."""
    steps = steps_in(Archived(handle), original)[::-1]
    if not steps[0].number:
        return ""
    words = _joined(call for step in steps for call in _calls(step.entries))
    return many(len(steps), "step") + (f": {words}" if words else "")


def _calls(entries: Iterable[Entry]) -> Iterator[tuple[str, str]]:
    """What was done, and to what, of each call."""
    for entry in entries:
        tool, _, rest = entry.head.partition(" ")[2].partition(" ")
        verb = "edited" if entry.edits else _VERBS.get(entry.call.arguments.action, "")
        if verb and entry.files:
            for file in entry.files:
                yield verb, file.rpartition("/")[2]
        else:
            yield tool, _short(rest.partition(" → ")[0])


def _short(words: str) -> str:
    return words if len(words) <= OBJECT_CHARS else f"{words[: OBJECT_CHARS - 1]}…"


def _joined(calls: Iterable[tuple[str, str]]) -> str:
    """``read a.py, b_1–3.py; bash ls``: each verb once, those of files first, and each object
    once."""
    objects = dict[str, dict[str, None]]()
    for verb, what in calls:
        objects.setdefault(verb, {})[what] = None
    rows = []
    for verb in sorted(objects, key=lambda verb: verb not in _VERBS.values()):
        names = [*_ranges([*objects[verb]])]
        more = [f"and {len(names) - MAX_OBJECTS} more"] if len(names) > MAX_OBJECTS else []
        rows.append(f"{verb} {', '.join(names[:MAX_OBJECTS] + more)}".strip())
    text = "; ".join(rows)
    return text if len(text) <= CHARS else f"{text[: CHARS - 1]}…"


def _ranges(names: Sequence[str]) -> Iterator[str]:
    """``m_1.py, m_2.py, m_3.py`` → ``m_1–3.py``."""
    at = 0
    while at < len(names):
        last = at
        while last + 1 < len(names) and _follows(names[last], names[last + 1]):
            last += 1
        first = _NUMBERED.fullmatch(names[at])
        end = _NUMBERED.fullmatch(names[last])
        if last > at and first and end:
            yield f"{first[1]}{first[2]}–{end[2]}{end[3]}"
        else:
            yield names[at]
        at = last + 1


def _follows(name: str, other: str) -> bool:
    """Whether two names differ by their number alone, and the second has the next one."""
    one, two = _NUMBERED.fullmatch(name), _NUMBERED.fullmatch(other)
    if one is None or two is None or (one[1], one[3]) != (two[1], two[3]):
        return False
    return int(two[2]) == int(one[2]) + 1
