"""A model that says what was recorded, and before it, now and then, calls our own tools.

Which calls depends on the number of the turn and on what the request names, so that equal requests
get equal answers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from digests import answers
from digests.answers import Call
from digests.corpus import Talk, number
from digests.upstream import HANDLE, Reply, refusing, reply

ROUNDS: Sequence[Sequence[tuple[str, ...]]] = (
    (),
    (("list",),),
    (("search",), ("handle",)),
    (("note", "within"),),
    (("file",), ("lines",)),
    (("beside", "steps"),),
    (("said", "part"),),
    (("prune",), ("names",)),
    (("note", "bare"),),
    (("part",),) * 7,
)
"""By the number of the turn: what is called in each answer before the recorded one; "beside" is the
recorded one with calls, "said" has a text."""
_PATH = re.compile(r'path\\*": ?\\*"([^"\\]{1,80})')
_LISTED = re.compile(rb'(?:\\n|")([\w.#-]+)  [\d,]+ tokens')


class Words:
    """What can be asked for in a conversation."""

    def __init__(self, talk: Talk, salt: str) -> None:
        text = json.dumps(list(talk.messages), ensure_ascii=False)
        self._salt, self._paths = salt, _PATH.findall(text) or ["README.md"]
        self._words = sorted(set(re.findall(r"\w{5,24}", text))) or ["nothing"]

    def word(self, about: object) -> str:
        """A word of it, by chance."""
        return self._words[number(f"{self._salt} {about}", len(self._words))]

    def path(self, about: object) -> str:
        """A file that a call of it names."""
        return self._paths[number(f"{self._salt} {about}", len(self._paths))]


class Scripted:
    """The model of one conversation: as an ``Answer``, it answers the turn that ``at`` named."""

    def __init__(self, talk: Talk, salt: str, *, calls: bool, refuses: bool = False) -> None:
        """``calls``: whether it calls our tools; ``refuses``: whether the first attempt of each
        seventh turn is refused for its size."""
        self._talk, self._calls, self._refuses = talk, calls, refuses
        self._words = Words(talk, salt)
        self._count = self._number = 0
        self._stream = self._refused = False
        self._recorded, self._rounds = list[Any](), list[tuple[str, ...]]()

    def at(self, count: int, end: int, *, stream: bool) -> None:
        """The next requests are of this turn, which has the first ``end`` messages."""
        self._count, self._stream = count, stream
        self._recorded = self._talk.turn(end) or answers.turn(self._talk.format, "done")
        self._rounds = list(ROUNDS[count % len(ROUNDS)]) if self._calls else []
        self._refused = self._refuses and count % 7 == 3

    def __call__(self, format: str, body: bytes) -> Reply:
        """What is answered to a body."""
        if self._refused:
            self._refused = False
            return refusing(format, body)
        return reply(format, self._turn(format, body), len(body) // 3, stream=self._stream)

    def _turn(self, format: str, body: bytes) -> list[Any]:
        declared = _declared(body)
        if not self._rounds or "recall" not in declared:
            return self._recorded
        kinds = self._rounds.pop(0)
        calls = [self._call(kind, body, declared) for kind in kinds if kind not in _HOW]
        if "beside" in kinds:
            return answers.with_calls(format, self._recorded, calls)
        return answers.turn(format, "Let me look again." if "said" in kinds else "", calls)

    def _call(self, kind: str, body: bytes, declared: Sequence[str]) -> Call:
        self._number += 1
        name = {"note": "note", "prune": "prune", "names": "prune"}.get(kind, "recall")
        about = f"{kind} {self._count} {self._number}"
        found = [one.decode() for one in HANDLE.findall(body)]
        handle = found[number(about, len(found))] if found else "unknown"
        word = self._words.word(about)
        arguments: dict[str, Any] = {
            "search": {"search": word},
            "handle": {"handle": handle},
            "within": {"handle": handle, "search": word},
            "file": {"file": self._words.path(about)},
            "lines": {"handle": handle, "lines": "2-9"},
            "steps": {"handle": handle, "steps": "1-2"},
            "part": {"handle": handle, "start": 10 * self._number, "end": 10 * self._number + 900},
            "note": {"name": f"plan {self._count % 3}", "text": f"Step {self._count}: {word}."},
            "names": {"names": [one.decode() for one in _LISTED.findall(body)[:2]]},
        }.get(kind, {})
        if name not in declared:
            name, arguments = "recall", {}
        return Call(f"call_r{self._number}", name, arguments)


_HOW = ("said", "beside")


def _declared(body: bytes) -> list[str]:
    """Which of our tools a request declares."""
    tree = json.loads(body)
    text = json.dumps((tree.get("toolConfig") or tree).get("tools"))
    return [name for name in ("recall", "note", "prune") if f'"name": "{name}"' in text]
