"""``provider-compaction`` as a policy: trimtab with ``compaction="provider"`` before a simulated
provider.

No model runs here.  Its summary is simulated by whole lines of the replaced messages: the newest
that have an identifier, up to a number of tokens, as a model that only quotes could write.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import trimtab
from trimtab.transcript.tokens import Counter
from trimtab_lab.replay import text_features
from trimtab_lab.replay.message_views import own_counter
from trimtab_lab.replay.policies import PolicyOutput, PolicyStep
from trimtab_lab.replay.recording_index import RecordingIndex
from trimtab_lab.replay.trimtab_policy import Trimtab

READ = 0.1
"""The price of a cached token in our tables; the compaction request repeats the cached prefix."""
OPENING = "Summary of the conversation so far, by a model that is not run in this replay.\n"


class ProviderCompaction(Trimtab):
    """``provider-compaction:500``: with a summary of at most 500 tokens; without a number 2,000.
    Its requests are in Anthropic's format; if it folds instead, it does so like ``trimtab``."""

    name, format = "provider-compaction", "anthropic"

    def __init__(self, argument: str = "2000") -> None:
        super().__init__()
        self.tokens = int(argument)
        if self.tokens < 100:
            raise ValueError("give a summary at least 100 tokens")
        self.options = trimtab.Settings(compaction="provider")

    def start(self, index: RecordingIndex, window: int) -> PolicyStep:
        """One session for the whole recording."""
        session, step = self.session(index, window)
        count = own_counter()

        def asked(body: dict[str, Any]) -> PolicyOutput:
            made, fitted = step(body)
            if fitted.compaction_offer is None:
                return made
            _, offer = fitted.compaction_offer
            given = trimtab.measure(offer.body, format="anthropic", counter=count).total
            text = _summary(offer.body["messages"], self.tokens, count)
            block = {"type": "compaction", "content": text, "encrypted_content": "0" * len(text)}
            if not session.compacted(fitted, {"content": [block]}):
                return made
            made, _ = step(body, again=True)
            return dataclasses.replace(made, calls=[(round(READ * given), count(text))])

        return asked


def _summary(messages: list[Any], tokens: int, count: Counter) -> str:
    """The newest lines with an identifier, in their order, without duplicates."""
    kept: dict[str, None] = {}
    left = tokens - count(OPENING)
    for text in reversed(list(_texts(messages))):
        for line in reversed(text_features.plain_text(text).splitlines()):
            line = line.strip()
            if line in kept or not any(text_features.spans(line)):
                continue
            left -= count(line) + 1
            if left < 0:
                return OPENING + "\n".join(reversed(kept))
            kept[line] = None
    return OPENING + "\n".join(reversed(kept))


def _texts(value: Any) -> Any:
    """Every text in messages, in order."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for part in value:
            yield from _texts(part)
    elif isinstance(value, dict):
        for key in ("content", "text", "input"):
            yield from _texts(value.get(key))
        if value.keys() and "content" not in value and "type" not in value:
            for part in value.values():
                yield from _texts(part)
