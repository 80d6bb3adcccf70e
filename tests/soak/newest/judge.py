"""What became of a valid request on its way to the provider, by the provider model alone."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

from soak.newest.formats import provider
from soak.newest.talk import Talk
from soak.newest.words import marks

MADE_INVALID, CHANGED, LOST, STATE, SPEAKER, TWICE = (
    "made invalid", "changed below the trigger", "lost for good", "tool state lost",
    "another's words", "sent twice",
)  # fmt: skip
CALL_IN_TEXT = "calls in the model's text"
"""Its own words, but no longer as a call."""
NEEDLESS = "refused though its newest turn fits"
"""As too long, by us: what is closed and old could have gone."""
NOTES = (CALL_IN_TEXT, NEEDLESS)
"""Counted, but no faults: neither makes a request invalid nor loses anything."""
SORTS = (MADE_INVALID, CHANGED, LOST, STATE, SPEAKER, TWICE)


def _words(body: dict[str, Any], format: str) -> dict[str, set[str]]:
    """Each mark of a body with the channels in which it stands."""
    found: dict[str, set[str]] = defaultdict(set)
    for channel, text in provider(format).channels(body):
        for _, mark in marks(text):
            found[mark].add(channel)
    return found


def cause(words: str) -> str:
    """A refusal without its ids, numbers and names."""
    text = re.sub(r"(messages|input|contents)[.\[]+\d+\]?", r"\1.N", words)
    text = re.sub(r"content[.\[]+\d+\]?", "content.M", text)
    text = re.sub(
        r"\b(?:srvtoolu|toolu|call|tooluse|hgu|mcptoolu|fc|rs|ctc|msg)_[A-Za-z0-9_]+", "ID", text
    )
    return re.sub(r"\d+", "N", text)[:110]


def faults(
    talk: Talk,
    given: dict[str, Any],
    sent: dict[str, Any],
    *,
    same: bool,
    below: bool,
    recalled: Callable[[], list[str]] | None,
) -> list[tuple[str, str]]:
    """(sort, cause) of each thing that is wrong with what was sent for ``given``."""
    room, found = provider(talk.format), list[tuple[str, str]]()
    if (words := room.refusal(sent, talk.headers, talk.dialect)) is not None:
        found.append((MADE_INVALID, cause(words)))
    if below and not same:
        found.append((CHANGED, _difference(given, sent, talk.key)))
    if same:
        return found
    if gone := room.state(given) - room.state(sent):
        found.append(
            (STATE, re.sub(r"[a-z0-9]+_(lookup_\d|inline|more|found)", "…", min(gone))[:50])
        )
    before, after = _words(given, talk.format), _words(sent, talk.format)
    speakers = list[tuple[str, str]]()
    for mark, channels in after.items():
        taken = before.get(mark, set())
        allowed = taken | ({"tool", "model"} if "arguments" in taken else set())
        if "arguments" in taken and "model" in channels - taken and not speakers:
            speakers.append((CALL_IN_TEXT, "arguments in model"))
        if channels - allowed and mark in before:
            name = f"{'/'.join(sorted(taken))} in {'/'.join(sorted(channels - allowed))}"
            found.append((SPEAKER, name))
            break
    found += speakers
    missing = before.keys() - after.keys()
    if missing and recalled is not None:
        try:
            text = "\n".join(recalled())
        except Exception as error:
            found.append((LOST, f"recall raised {type(error).__name__}"))
            return found
        if gone := {mark for mark in missing if mark not in text}:
            where = sorted({channel for mark in gone for channel in before[mark]})
            found.append((LOST, f"of {'/'.join(where)}"))
    return found


def _difference(given: dict[str, Any], sent: dict[str, Any], key: str) -> str:
    """In a word: where two bodies differ."""
    if given == sent:
        return "equal, but other bytes or another object"
    for name in given.keys() | sent.keys():
        if name != key and given.get(name) != sent.get(name):
            return f"{name} differs"
    before, after = given[key], sent[key]
    if len(before) != len(after):
        gone = next((_kinds(m) for m in before if m not in after), Counter())
        return f"{len(before) - len(after)} messages fewer, the first of them {_shown(gone)}"
    for old, new in zip(before, after, strict=True):
        if old != new:
            lost, put = _kinds(old) - _kinds(new), _kinds(new) - _kinds(old)
            if not lost and not put:
                return f"{_shown(_kinds(old))} has other words"
            return f"{_role(old)} lost {_shown(lost) or 'nothing'}, got {_shown(put) or 'nothing'}"
    return "keys differ"


def _role(message: dict[str, Any]) -> str:
    return str(message.get("role") or message.get("type"))


def _kinds(message: dict[str, Any]) -> Counter[str]:
    """The kinds of its blocks; its role where it has none."""
    content = message.get("content", message.get("parts"))
    if not isinstance(content, list):
        return Counter({f"{_role(message)} text": 1})
    return Counter(str(part.get("type") or min(part, default="")) for part in content)


def _shown(kinds: Counter[str]) -> str:
    return ", ".join(sorted(kinds))


def size(body: dict[str, Any]) -> int:
    """Characters of a body."""
    return len(json.dumps(body, ensure_ascii=False))


def max_tokens(body: dict[str, Any]) -> float:
    """More tokens than any provider counts for a body: ids and hex take up to 0.9 a character."""
    text = json.dumps(body, ensure_ascii=False)
    media = r'"(?:image|input_image|image_url|inlineData|fileData|document|container_upload)"'
    return len(text) + 2_000 * len(re.findall(media, text))


def is_needless(talk: Talk, body: dict[str, Any], window: int) -> bool:
    """Whether a request that we refused as too long has a valid end that fits: its head, its newest
    messages from one of the user's on, all that the user said, and the tools it loaded."""
    room, messages = provider(talk.format), body[talk.key]
    users = "".join(text for channel, text in room.channels(body) if channel == "user")
    beside = len(users) + len("".join(room.state(body)))
    output = 1_000
    for n in range(len(messages) - 1, 0, -1):
        end = {**body, talk.key: messages[n:]}
        if max_tokens(end) + beside + output > window:
            return False
        if room.refusal(end, talk.headers, talk.dialect) is None:
            return True
    return False
