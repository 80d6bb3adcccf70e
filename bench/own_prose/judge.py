"""What became of the user's words in the request that was sent, told from that request alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from answerable.tokens import count, of_message, of_text

import trimtab
from own_prose.pastes import Pasted
from own_prose.rules import Written
from own_prose.talk import body
from own_prose.worlds import TARGET, Trial
from trimtab.errors import CannotFit

Fate = Literal["kept", "torn", "lost"]
USER = "user"


def text_of(messages: Sequence[Mapping[str, Any]], role: str = USER, *, other: bool = False) -> str:
    """All text of a role, or with ``other`` of all other roles."""
    texts = list[str]()
    for message in messages:
        if (message["role"] == role) is not other:
            content = message.get("content") or ""
            parts = content if isinstance(content, list) else [{"text": content}]
            texts += [str(part.get("text") or "") for part in parts]
    return "\n\n".join(texts)


def fate(written: Written, text: str) -> Fate:
    """ "kept" if every needle is found word for word, "torn" if only some are."""
    found = sum(needle in text for needle in written.needles)
    return "kept" if found == len(written.needles) else "torn" if found else "lost"


@dataclass(frozen=True)
class Verdict:
    """``fates``: of each text of the trial; ``possible``: which of them there was room for.

    ``rival``: how many of the texts heads and tails of as many tokens keep.
    ``moved``: texts not kept of which a needle is said by somebody else.  ``whole``: pastes that
    are complete; ``left``: tokens of pasted lines that are left; ``used``: tokens sent for one of
    the target, ``over``: more than the window; ``refused``: nothing could be sent.
    """

    trial: Trial
    fates: tuple[Fate, ...]
    possible: tuple[bool, ...]
    rival: int = 0
    moved: int = 0
    whole: int = 0
    left: int = 0
    used: float = 0.0
    over: bool = False
    refused: bool = False

    @property
    def unkept(self) -> list[Written]:
        """The user's words that are not all there."""
        return [w for w, f in zip(self.trial.written, self.fates, strict=True) if f != "kept"]

    @property
    def taken_for_pasted(self) -> bool:
        """What the user wrote was shortened while more of what was pasted is left, none whole."""
        return bool(self.unkept) and not self.whole and self.left > self._lost_tokens()

    @property
    def taken_for_written(self) -> bool:
        """What the user wrote was shortened while something pasted is kept whole."""
        return bool(self.unkept) and self.whole > 0

    def _lost_tokens(self) -> int:
        return sum(of_text(written.text) for written in self.unkept)

    @property
    def outlived(self) -> int:
        """Texts that are not kept though an older one, at least as long, is."""
        rows = list(zip(self.trial.written, self.fates, strict=True))
        return sum(
            one != "kept"
            and any(f == "kept" and of_text(w.text) >= of_text(new.text) for w, f in rows[:at])
            for at, (new, one) in enumerate(rows)
        )


def possible(trial: Trial) -> tuple[bool, ...]:
    """Which texts there is room for, where the user's messages stay whole, newest first, and
    nothing else does; only a trial that is ``tight`` has too little."""
    if not trial.tight:
        return (True,) * len(trial.written)
    room, kept = TARGET * trial.window, list[Mapping[str, Any]]()
    for message in reversed([m for m in trial.messages if m["role"] == USER]):
        room -= of_message(message)
        if room < 0:
            break
        kept.append(message)
    text = text_of(kept)
    return tuple(fate(written, text) == "kept" for written in trial.written)


def pasted_left(pasted: Pasted, text: str) -> int:
    """Tokens of the pasted lines that are found; lines below 12 characters prove nothing."""
    lines = {line.strip() for line in pasted.text.split("\n") if len(line.strip()) >= 12}
    return sum(of_text(line) for line in lines if line in text)


def judge(trial: Trial, sent: Sequence[Mapping[str, Any]]) -> Verdict:
    """The verdict on the messages that were sent for a trial."""
    text, others = text_of(sent), text_of(sent, other=True)
    fates = tuple(fate(written, text) for written in trial.written)
    moved = sum(
        one != "kept" and any(n in others and n not in text for n in written.needles)
        for one, written in zip(fates, trial.written, strict=True)
    )
    size = count(body(list(map(dict, sent))))
    return Verdict(
        trial, fates, possible(trial), moved=moved,
        whole=sum(one.text.strip("`\n") in text for one in trial.pasted),
        left=sum(pasted_left(one, text) for one in trial.pasted),
        used=size / (TARGET * trial.window), over=size > trial.window,
    )  # fmt: skip


def head_tail(messages: Sequence[Mapping[str, Any]], size: int) -> list[dict[str, Any]]:
    """Heads and tails of texts within so many tokens: of tools' alone where that is enough, else of
    the model's too, else of all."""
    cut: list[dict[str, Any]] = []
    for roles in (("tool",), ("tool", "assistant"), ("tool", "assistant", USER)):
        low, high = 0, max(len(str(message.get("content") or "")) for message in messages) + 1
        while high - low > 8:
            middle = (low + high) // 2
            cut = _shortened(messages, roles, middle)
            low, high = (middle, high) if count(body(cut)) <= size else (low, middle)
        cut = _shortened(messages, roles, low)
        if count(body(cut)) <= size:
            break
    return cut


def _shortened(
    messages: Sequence[Mapping[str, Any]], roles: Sequence[str], most: int
) -> list[dict[str, Any]]:
    cut = list[dict[str, Any]]()
    for message in messages:
        text, half = message.get("content"), most // 2
        if message["role"] in roles and isinstance(text, str) and len(text) > most:
            text = f"{text[:half]}\n[...]\n{text[len(text) - half :]}"
        cut.append({**message, "content": text})
    return cut


def run(trial: Trial) -> Verdict:
    """Fit and judge."""
    try:
        fitted = trimtab.fit(body(trial.messages), window=trial.window, reserve=0, target=TARGET)
    except CannotFit:
        lost: list[Fate] = ["lost"] * len(trial.written)
        found = Verdict(trial, tuple(lost), possible(trial), refused=True)
        size = int(TARGET * trial.window)
    else:
        found = judge(trial, fitted.request["messages"])
        size = count(fitted.request)
    text = text_of(head_tail(trial.messages, size))
    return replace(found, rival=sum(fate(one, text) == "kept" for one in trial.written))
