"""Compaction by the provider, if the user enabled it: when it pays, the request for it, and the
items that replace the compacted messages.

The client keeps sending its whole history; the compacted messages are recognised at its beginning
by a digest and replaced by the provider's block.  Requests to another model keep the history and
use our fold.
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from trimtab.formats.body import RequestBody
from trimtab.jsontext import paths
from trimtab.planning.edits import handle
from trimtab.planning.eligibility import OLD_WORDS
from trimtab.pricing import prices
from trimtab.pricing.economics import requests_left
from trimtab.report import ReportEdit
from trimtab.reporting.measured import measure
from trimtab.request.pipeline import FitResult
from trimtab.request.prepared_request import PreparedRequest
from trimtab.transcript.user_text import pieces_of, spans_of

KIND = "provider-compaction"
KEPT_SHARE = 0.25
"""Most tokens of the newest messages, which are not compacted, as a share of the capacity."""
SUMMARY_TOKENS, SUMMARY_SHARE = 2_000, 0.1
"""Assumed size of a summary in tokens, and its limit as a share of the capacity."""
KEYS = {"anthropic": "messages", "openai-responses": "input"}
HEADERS = {"anthropic": {"anthropic-beta": "compact-2026-09-04"}}
PATHS = {"anthropic": "", "openai-responses": "/compact"}
_TABLES = {"anthropic": "claude-5m", "openai-responses": "openai"}
_NOT_ASKED = ("stream", "stream_options", "context_management", "tool_choice", "output_config")
_ASKED = ("model", "instructions", "prompt_cache_key")
"""Keys that OpenAI's ``/responses/compact`` accepts beside the input."""


@dataclass(frozen=True)
class Compacted:
    """A compaction: ``items`` replace the first ``count`` messages with this ``digest`` in requests
    to ``model``."""

    format: str
    model: str
    count: int
    digest: str
    items: tuple[Any, ...]
    tokens_before: int
    tokens_after: int
    handle: str

    def as_dict(self) -> dict[str, Any]:
        """JSON-able; ``Compacted(**…)`` reads it."""
        return {**asdict(self), "items": list(self.items)}

    def row(self, new: bool) -> ReportEdit:
        """The compaction as a row of a report."""
        path = (KEYS[self.format], 0)
        return ReportEdit(
            KIND, "compact", path, (path,), f"the provider summarized {self.count} messages",
            self.tokens_before, self.tokens_after, 0.0, self.handle, new=new,
        )  # fmt: skip


@dataclass(frozen=True)
class CompactionOffer:
    """A compaction request to send instead of folding: ``body``, with ``path`` appended to the
    request's own and ``headers`` added.  ``before``: the messages that the answer would replace;
    ``kept``: the user's words that are kept."""

    body: Any
    path: str
    headers: Mapping[str, str]
    before: Compacted
    kept: tuple[str, ...]
    original: str
    counter: Any = None


# --- the request to the provider -----------------------------------------------------------------


def offer(
    result: FitResult, given: Any, applied: Compacted | None, key: bytes
) -> CompactionOffer | None:
    """The compaction request if it is cheaper than the fold in ``result``, else None.

    ``given``: the request as the client made it; ``applied``: the compaction already applied to it.
    """
    prepared = result.prepared
    transcript, tree = prepared.transcript, prepared.body.tree
    format = transcript.format.name
    model, facts = tree.get("model") if isinstance(tree, dict) else None, transcript.facts
    able = format in KEYS and isinstance(model, str) and not facts.server_state
    if not able or facts.managed or prepared.repairs is not None or result.target is None:
        return None
    number = _first_kept(prepared, 0 if applied is None else len(applied.items))
    if number is None or not _is_cheaper(result, number, _TABLES[format]):
        return None
    shift = 0 if applied is None else applied.count - len(applied.items)
    old = given[KEYS[format]][: number + shift]
    sizes, messages = prepared.sizes, transcript.messages[:number]
    tokens = sum(sizes.message(message) for message in messages)
    if applied is not None:
        tokens += applied.tokens_before - applied.tokens_after
    before = Compacted(
        format, str(model), len(old), digest(old), (), tokens, 0, handle([digest(old)], key)
    )
    kept = _kept_words(prepared, number, result.target)
    body = _body(tree, format, number)
    return CompactionOffer(
        body,
        PATHS[format],
        HEADERS.get(format, {}),
        before,
        kept,
        paths.dump(old),
        prepared.settings.counter,
    )


def _first_kept(prepared: PreparedRequest, applied: int) -> int | None:
    """The index of the first message that is not compacted: from there on at most KEPT_SHARE of the
    capacity is kept, and what precedes it ends with a whole step.  ``applied``: number of leading
    messages that come from a compaction.  None if there is nothing to compact."""
    messages, sizes = prepared.transcript.messages, prepared.sizes
    most = KEPT_SHARE * prepared.limits.bounds.capacity
    behind = sum(sizes.message(message) for message in messages)
    waiting: set[str] = set()
    for number, message in enumerate(messages[:-1], 1):
        if message.compaction is not None and number > applied:
            return None  # the client has compacted by itself
        behind -= sizes.message(message)
        waiting.update(message.call_ids)
        waiting.difference_update(message.result_ids)
        if not waiting and message.role != "assistant" and behind <= most:
            return number if number > applied + 1 else None
    return None


def _is_cheaper(result: FitResult, number: int, table: str) -> bool:
    """Whether the provider's summary of the first ``number`` messages costs less than the fold that
    was made, over the requests expected to follow; in plain input tokens."""
    prepared = result.prepared
    transcript, sizes = prepared.transcript, prepared.sizes
    price = prices.named(prepared.settings.prices or table)
    message_tokens = [sizes.message(message) for message in transcript.messages]
    head, left = sizes.head(transcript), requests_left(transcript)
    refs = transcript.refs
    first = min((refs[ref].message for e in result.new for ref in e.targets if ref in refs),
                default=0)  # fmt: skip
    unchanged = head + sum(message_tokens[: max(first, 0)])
    fold = price.prompt(result.tokens_after, unchanged) + left * price.read * result.tokens_after
    to_summarize, capacity = head + sum(message_tokens[:number]), prepared.limits.bounds.capacity
    if to_summarize > capacity:
        return False  # the whole exceeds the window, so the provider cannot read it
    summary = _summary_tokens(capacity)
    with_summary = head + summary + sum(message_tokens[number:])
    cached = 0 if prepared.limits.cold else to_summarize
    compaction = price.prompt(to_summarize, cached) + summary * price.output
    compaction += price.prompt(with_summary, head) + left * price.read * with_summary
    return compaction < fold


def _summary_tokens(capacity: int) -> int:
    return min(SUMMARY_TOKENS, int(SUMMARY_SHARE * capacity))


def _kept_words(prepared: PreparedRequest, number: int, target: int) -> tuple[str, ...]:
    """The user's words kept with a summary: what is written in older texts, and the newest text
    whole.  Where they do not fit, its pasted parts give way, then what was written, the oldest
    first."""
    texts = [
        block.text
        for message in prepared.transcript.messages[:number]
        if message.role in ("user", "tool")  # a user's text may be beside results
        for block in message.blocks
        if block.kind == "text"
    ]
    count, room = prepared.sizes.counter, _room_for_words(prepared, number, target)
    kept = [_newest_written(texts[:-1], room, count), *texts[-1:]]
    if sum(map(count, kept)) > room:
        kept = [_newest_written(texts, room, count)]
    return tuple(filter(None, kept))


def _room_for_words(prepared: PreparedRequest, number: int, target: int) -> int:
    """Tokens under the target beside the summary and the newer messages; more, up to the trigger,
    where that is less than the share that old words of the user have in any cut."""
    sizes, bounds, transcript = prepared.sizes, prepared.limits.bounds, prepared.transcript
    rest = sizes.head(transcript) + _summary_tokens(bounds.capacity)
    rest += sum(sizes.message(message) for message in transcript.messages[number:])
    return min(bounds.trigger - rest, max(target - rest, int(OLD_WORDS * bounds.capacity)))


def _newest_written(texts: Sequence[str], room: int, count: Callable[[str], int]) -> str:
    """The newest pieces written in these texts that fit together, each part once, in order."""
    kept: dict[str, None] = {}
    spans = [(text, span) for text in texts for span in spans_of(text) if span.kind == "written"]
    for text, span in reversed(spans):
        start = span.end
        if text[span.start : span.end].strip() in kept:
            continue
        for begin, end in reversed(pieces_of(text, span)):
            room -= count(text[begin:end]) + 1
            if room < 0:
                break
            start = begin
        kept[text[start : span.end].strip()] = None
        if room < 0:
            break  # an older piece never stays where a newer one had to go
    return "\n".join(filter(None, reversed(kept)))


def _body(tree: Any, format: str, number: int) -> dict[str, Any]:
    if format == "anthropic":
        fields = {key: value for key, value in tree.items() if key not in _NOT_ASKED}
        messages = tree["messages"][:number]
        return {**fields, "messages": messages, "compaction": {"type": "summarize"}}
    return {**{key: tree[key] for key in _ASKED if key in tree}, "input": tree["input"][:number]}


# --- the provider's answer -----------------------------------------------------------------------


def taken(offer: CompactionOffer, answer: Any) -> Compacted | None:
    """The compaction in the provider's answer; None if it has none or saves no tokens."""
    format = offer.before.format
    key = "content" if format == "anthropic" else "output"
    content = answer.get(key) if isinstance(answer, Mapping) else None
    content = content if isinstance(content, list) else []
    parts = [part for part in content if isinstance(part, dict)]
    blocks = [part for part in parts if part.get("type") == "compaction"]
    if len(blocks) != 1:
        return None
    items: list[Any] = parts  # OpenAI's window is used as it is; it contains the user's words
    if format == "anthropic":
        if not blocks[0].get("content"):
            return None  # an empty block: the compaction failed
        items = [{"role": "assistant", "content": blocks}]
        if offer.kept:
            user_texts = [{"type": "text", "text": text} for text in offer.kept]
            items.append({"role": "user", "content": user_texts})
    request = {"model": offer.before.model, KEYS[format]: items}
    tokens = measure(request, format=format, counter=offer.counter).total
    if tokens >= offer.before.tokens_before:
        return None
    return replace(offer.before, items=tuple(items), tokens_after=tokens)


def applied(known: Sequence[Compacted], body: RequestBody) -> tuple[RequestBody, Compacted] | None:
    """The request with the newest compaction of its beginning applied; None if none matches."""
    tree = body.tree
    for compacted in reversed(known):
        messages = tree.get(KEYS[compacted.format]) if isinstance(tree, dict) else None
        if not isinstance(messages, list) or tree.get("model") != compacted.model:
            continue
        count = compacted.count
        if len(messages) > count and digest(messages[:count]) == compacted.digest:
            items = [*copy.deepcopy(compacted.items), *messages[count:]]
            changed: Any = {**tree, KEYS[compacted.format]: items}
            if body.written is not None:
                changed = paths.dump(changed)
                changed = changed if isinstance(body.written, str) else changed.encode()
            return RequestBody.of(changed), compacted
    return None


def digest(messages: Sequence[Any]) -> str:
    """A digest of the messages without ``cache_control``, which clients move."""
    data = paths.dump(_unmarked(list(messages))).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(data, digest_size=12).hexdigest()


def _unmarked(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _unmarked(part) for key, part in value.items() if key != "cache_control"}
    return [_unmarked(part) for part in value] if isinstance(value, list) else value
