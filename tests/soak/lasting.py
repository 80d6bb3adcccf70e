"""Sessions that last: many windows of history come together, notes are chosen anew over and over.

``Lasting(seed, format)`` is one of them, played turn by turn through a ``Session``: files that are
read again, written and edited, failed calls, equal results, long one-line results, calls made at
once, words in between; now and then it is rewound, forked, cut at the head or edited.  What was
wrong is told in ``faults``.  Knows the public API and the judges.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from typing import Any

from settings_words import as_keywords

import trimtab
from soak import story as stories
from soak.sessions import _at, _unmarked
from soak.story import Draw, Message, Part, Story
from soak.trial import MASKED, messages_of, problems, tokens
from soak.writers_more import WRITERS
from trimtab import Fitted

WORDS = ("the", "parser", "reads", "each", "token", "before", "cache", "line", "is", "written",
         "and", "then", "returns", "it", "left")  # fmt: skip
FILES = ("src/app.py", "src/parser.py", "src/cache.py", "src/kept.py")
MOVES = ("on",) * 40 + ("rewind", "fork", "fork", "behead", "edit", "talk", "marks")


class Lasting:
    """One session under way; ``window`` tokens, a turn takes about a seventh."""

    def __init__(self, seed: int, format: str, window: int = 2_000) -> None:
        self.rng = random.Random(seed)
        self.draw, self.format, self.window = Draw(self.rng), format, window
        self.frame = stories.frame(self.draw, format)
        self.frame.bare = self.frame.odd = False
        self.frame.thinking, self.frame.signed, self.frame.ids = "", True, "global"
        self.files = {path: self.lines(12) for path in FILES}
        self.told: Story = [self.said("user", 1)]
        self.other: Story | None = None
        self.keywords: dict[str, Any] = {
            "window": window, "reserve": 0, "counter": "o200k", "format": format,
            "model": self.frame.model, "recall": True, "protected_tools": ["keep_*"],
            "pins": [lambda block: "PINNED" in block.text], "clock": lambda: 0.0,
        }  # fmt: skip
        self.session = trimtab.Session(**as_keywords(**self.keywords))
        self.sent: list[Any] | None = None
        self.faults: list[str] = []
        self.counts: Counter[str] = Counter()

    # --- what is told ---

    def sentence(self) -> str:
        return " ".join(self.rng.choices(WORDS, k=8)) + f" value_{self.rng.randrange(300)}"

    def lines(self, count: int) -> list[str]:
        return [f"{self.sentence()} = {number}" for number in range(count)]

    def said(self, role: str, lines: int) -> Message:
        shape = self.rng.choice(("", "marked")) if role == "user" else ""
        return Message(role, [Part("text", self.draw.tag(), "\n".join(self.lines(lines)), shape)])

    def step(self) -> None:
        """The model thinks, speaks, calls; results come back."""
        rng, tag = self.rng, self.draw.tag
        said, answers = list[Part](), list[Part]()
        if rng.random() < 0.2:
            said.append(Part("thought", tag(), self.sentence()))
        if rng.random() < 0.3:
            said.append(Part("text", tag(), self.sentence()))
        for _ in range(rng.choice((1, 1, 1, 2))):
            name, arguments, text, shape = self.call()
            call = Part("call", tag(), id=f"call_{rng.randrange(10**9)}", name=name)
            call.arguments = arguments
            said.append(call)
            answers.append(Part("result", tag(), text, shape, call.id, name))
        self.told += [Message("assistant", said), Message("user", answers)]

    def call(self) -> tuple[str, dict[str, Any], str, str]:
        """(tool, arguments, result, its shape)."""
        rng, path = self.rng, self.rng.choice(FILES)
        rows, dice = self.files[path], self.rng.random()
        if dice < 0.3:
            return "read_file", {"path": path}, "\n".join(rows), ""
        if dice < 0.36:
            rows[:] = self.lines(12)
            return "write_file", {"path": path, "content": "\n".join(rows)}, "Written.", ""
        if dice < 0.46:
            old, new = rng.choice(rows), self.sentence()
            rows[rows.index(old)] = new
            failed = rng.random() < 0.4
            text = "Error: old_string not found" if failed else "Done."
            arguments = {"path": path, "old_string": old, "new_string": new}
            return "edit_file", arguments, text, "error" if failed else ""
        if dice < 0.52:
            return "bash", {"command": "ls src"}, "\n".join(FILES), ""
        if dice < 0.62:
            return "search-web", {"q": self.sentence()}, "; ".join(self.lines(12)), ""
        if dice < 0.63:
            return "keep_note", {"note": self.sentence()}, self.sentence(), ""
        if dice < 0.64:
            return "bash", {"command": "cat pinned"}, f"PINNED {self.sentence()}", ""
        return "grep", {"pattern": self.sentence()}, "\n".join(self.lines(rng.randint(4, 14))), ""

    # --- what a client does ---

    def move(self) -> str:
        """Something happens to the history; it ends with words or results for the model."""
        name = self.rng.choice(MOVES) if len(self.told) > 8 else "on"
        if name == "rewind":
            places = [n for n, message in enumerate(self.told) if message.role == "user"]
            back = min(self.rng.choice((1, 2, 5, 20)), len(places) - 1)
            self.told = self.told[: places[-1 - back] + 1]
        elif name == "fork":
            mine, self.told = self.told, self.other or list(self.told)
            self.other = mine
        elif name == "behead":
            places = [n for n, m in enumerate(self.told) if m.role == "assistant" and n > 1]
            self.told = [self.told[0], *self.told[self.rng.choice(places[:6]) :]]
        elif name == "edit":
            numbers = [n for n, m in enumerate(self.told) if m.parts[-1].kind == "result"]
            number = self.rng.choice(numbers)
            self.told[number] = self.told[number].copy()
            self.told[number].parts[-1].text = self.sentence()
        elif name == "talk":
            self.told += [self.said("assistant", 8), self.said("user", 1)]
        elif name == "marks":
            self.told[0] = self.told[0].copy()
            self.told[0].parts[0].shape = self.rng.choice(("", "marked"))
        if name != "talk":
            self.step()
        return name

    # --- a turn ---

    def turn(self) -> None:
        """One more request through the session, judged."""
        move = self.move()
        request = WRITERS[self.format](self.told, self.frame)
        before = self.session.journal
        done = self.session.fit(request)
        new = any(edit.new for edit in done.report.edits)
        self.counts["batches"] += new
        found = self._judged(done)
        if not done.report.repairs:  # what is kept is what was repaired
            found += [self._recalled(request, edit) for edit in done.report.edits if edit.new]
        if move in ("on", "talk") and not new and self.sent is not None:
            stays = messages_of(done.request)[: len(self.sent)] == self.sent
            found.append("" if stays else "another beginning though nothing was decided")
        self.sent = json.loads(json.dumps(messages_of(done.request)))
        if new:
            fresh = trimtab.Session(
                journal=json.loads(json.dumps(before)), **as_keywords(**self.keywords)
            )
            same = json.dumps(fresh.fit(request).request) == json.dumps(done.request)
            found.append("" if same else "a session that knows the journal alone sends another")
        self.faults += [f"after {move}, {len(self.told)} messages: {f}" for f in found if f]

    def _judged(self, done: Fitted) -> list[str]:
        case = {"format": self.format, "model": self.frame.model}
        size, report = tokens(case, done.request), done.report
        found = [*problems(case, done.request)]
        found += [text for text in report.warnings if MASKED.match(text) or "fell back" in text]
        if size > self.window:
            found.append(f"{size} > {self.window}")
        if size != report.tokens_after:
            found.append(f"{report.tokens_after} reported, {size} counted")
        return found

    def _recalled(self, request: Any, edit: trimtab.report.ReportEdit) -> str:
        """A new edit's handle gives what stood there."""
        if edit.op == "insert":
            return ""
        text = _unmarked(self.session.recall(edit.handle))
        values = [_unmarked(_at(request, path)) for path in (edit.paths or (edit.path,))]
        if edit.op in ("drop", "fold"):
            same = json.loads(text) == [value for value in values if isinstance(value, dict)]
        else:
            same = (
                text == values[0] if isinstance(values[0], str) else json.loads(text) == values[0]
            )
        return "" if same else f"not what stood there: {edit.op} {edit.kind} {edit.handle}"
