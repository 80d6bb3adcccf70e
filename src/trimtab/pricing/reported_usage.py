"""Reads the billed tokens from an answer: input, cache reads, cache writes and output.

It reads the usage of all formats, as JSON and as objects of the providers' SDKs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from trimtab.formats import FORMATS
from trimtab.formats.engine.sdk_objects import as_mapping


@dataclass(frozen=True, slots=True)
class ReportedUsage:
    """Billed tokens of one model call: ``input_tokens`` of the whole prompt, of which ``read`` came
    from the cache and ``written`` went into it (``written_1h`` of that for an hour);
    ``output_tokens`` with the thinking that is billed.  If the provider took several steps, these
    are sums over all steps.

    ``cleared``: tokens that the provider removed from the prompt before counting (context editing);
    ``first_step``: the prompt of the first of several steps; ``compacted``: the provider summarized
    the prompt and does not say how large it was; ``managed``: whether the answer reports what the
    provider removed from the prompt before counting.
    """

    input_tokens: int
    output_tokens: int = 0
    read: int = 0
    written: int = 0
    cleared: int = 0
    first_step: int | None = None
    compacted: bool = False
    managed: bool = False
    written_1h: int = 0

    @property
    def sent(self) -> int | None:
        """The prompt as it was sent, in the provider's tokens; None if that is not reported."""
        if self.compacted:
            return None
        return self.cleared + (self.input_tokens if self.first_step is None else self.first_step)


MAX_TOKENS = 1_000_000_000
"""A larger count is none: no prompt and no answer has so many."""
_ANSWERS = [format.rewriter.answers for format in reversed(FORMATS.values())]
_TOKENS = [one.tokens for one in _ANSWERS]
_WITHIN = dict.fromkeys(
    (*(one.usage for one in _ANSWERS), *(keys.within for keys in _TOKENS if keys.within),
     "usage_metadata", "message", "response", "metadata", "interaction")
)  # fmt: skip
"""Keys under which an answer, or an event of a stream, has its usage."""
# Gemini's SDK has snake_case; the last ones are those of gateways, Codex and LangChain.
_INPUT = (*(keys.input for keys in _TOKENS), "prompt_token_count")
_OUTPUT = (*(keys.output for keys in _TOKENS), "candidates_token_count")
_THOUGHT = (*(keys.thought for keys in _TOKENS), "thoughts_token_count")
_DETAILS = (*(keys.details for keys in _TOKENS), "input_token_details")
_APART = [(keys.cached, keys.written) for keys in _TOKENS if keys.apart]
"""(read, written): these are not part of the input count beside them."""
_READ = (
    *(keys.cached for keys in _TOKENS if not keys.apart), "cache_read",
    "cached_content_token_count", "prompt_cache_hit_tokens", "cached_input_tokens",
)  # fmt: skip
_WRITTEN = (
    "cache_creation", *(keys.written for keys in _TOKENS if not keys.apart),
    "cache_write_input_tokens",
)  # fmt: skip


def read_usage(answer: Any) -> ReportedUsage | None:
    """The usage in an answer, an event of a stream, or a usage by itself; None if there is none.

    >>> usage = {"input_tokens": 5, "cache_read_input_tokens": 95, "output_tokens": 7}
    >>> read = read_usage({"usage": usage})
    >>> (read.input_tokens, read.output_tokens, read.read, read.written)
    (100, 7, 95, 0)
    """
    plain = as_mapping(answer)
    for usage in _usages(plain):
        if (given := _number(usage, _INPUT)) is not None:
            reported = _all_steps(_read_usage(usage, given), usage.get("iterations"))
            cleared = read_cleared(plain)
            if cleared is None:
                return reported
            return replace(reported, cleared=cleared, managed=True)
    return None


def _all_steps(last: ReportedUsage, iterations: Any) -> ReportedUsage:
    """The sum over all steps, if the answer lists them (Anthropic's other figures are those of the
    last step, without a compaction)."""
    steps = [step for step in iterations or () if isinstance(step, Mapping)]
    if not steps:
        return last
    read = [_read_usage(step, _number(step, _INPUT) or 0) for step in steps]
    compacted = any(step.get("type") == "compaction" for step in steps)
    return ReportedUsage(
        sum(step.input_tokens for step in read),
        sum(step.output_tokens for step in read),
        sum(step.read for step in read),
        sum(step.written for step in read),
        first_step=read[0].input_tokens,
        compacted=compacted,
        managed=True,
        written_1h=sum(step.written_1h for step in read),
    )


def read_cleared(answer: Any) -> int | None:
    """Tokens that the provider cleared from the prompt before counting, by the answer's
    ``applied_edits``; None if it has none."""
    if not isinstance(answer, Mapping):
        return None
    around = (answer, *(as_mapping(answer.get(name)) for name in ("message", "response")))
    for holder in around:
        managed = (
            as_mapping(holder.get("context_management")) if isinstance(holder, Mapping) else None
        )
        edits = managed.get("applied_edits") if isinstance(managed, Mapping) else None
        if isinstance(edits, list):
            plain = (as_mapping(edit) for edit in edits)
            return sum(
                _number(edit, ("cleared_input_tokens",)) or 0
                for edit in plain
                if isinstance(edit, Mapping)
            )
    return None


def read_diagnosis(answer: Any) -> str:
    """The provider's own finding on its prompt cache, as it names it; "" if the answer has none.

    Anthropic: the type of ``diagnostics.cache_miss_reason``.  OpenAI Responses:
    ``prompt_cache_diagnostics``, its type, or the reason of a ``cache_miss``.  Both only answer
    clients that ask for it.

    >>> read_diagnosis({"diagnostics": {"cache_miss_reason": {"type": "tools_changed"}}})
    'tools_changed'
    """
    plain = as_mapping(answer)
    if not isinstance(plain, Mapping):
        return ""
    for holder in (plain, *(as_mapping(plain.get(name)) for name in ("message", "response"))):
        if not isinstance(holder, Mapping):
            continue
        told, found = as_mapping(holder.get("diagnostics")), holder.get("prompt_cache_diagnostics")
        reason = as_mapping(told.get("cache_miss_reason") if isinstance(told, Mapping) else found)
        if isinstance(reason, Mapping):
            name = reason.get("reason") or reason.get("type")
            return name[:40] if isinstance(name, str) else ""
    return ""


def _read_usage(usage: Mapping[str, Any], given: int) -> ReportedUsage:
    output = (_number(usage, _OUTPUT) or 0) + (_number(usage, _THOUGHT) or 0)
    details = next((d for k in _DETAILS if isinstance(d := usage.get(k), Mapping)), {})
    read, written = _number(details, _READ), _number(details, _WRITTEN)
    if read is not None or written is not None or "prompt_tokens" in usage:
        read = _number(usage, _READ) if read is None else read
        return ReportedUsage(_whole(usage, given, read or 0), output, read or 0, written or 0)
    for names in _APART:
        if any(name in usage for name in names):
            read, written = (_number(usage, (name,)) or 0 for name in names)
            hour = min(written, _written_for_an_hour(usage))
            return ReportedUsage(given + read + written, output, read, written, written_1h=hour)
    return ReportedUsage(given, output, _number(usage, _READ) or 0, _number(usage, _WRITTEN) or 0)


def _written_for_an_hour(usage: Mapping[str, Any]) -> int:
    """Cache writes with a lifetime of an hour, which Anthropic reports separately."""
    kinds = usage.get("cache_creation")
    tokens = _number(kinds, ("ephemeral_1h_input_tokens",)) if isinstance(kinds, Mapping) else 0
    return tokens or 0


def _whole(usage: Mapping[str, Any], given: int, read: int) -> int:
    """The whole prompt.  Some gateways report only the uncached part as input: known by cached
    tokens being more than ``given``, and then both are added."""
    apart = max([read, *(_number(usage, (name,)) or 0 for name, _ in _APART)])
    return given + apart if apart > given else given


def _usages(value: Any, depth: int = 0) -> Iterator[Mapping[str, Any]]:
    """``value`` itself and the mappings under the keys of a usage, outermost first."""
    if not isinstance(value, Mapping) or depth > 3:
        return
    yield value
    for name in _WITHIN:
        yield from _usages(as_mapping(value.get(name)), depth + 1)


def _number(values: Mapping[str, Any], names: Sequence[str]) -> int | None:
    for name in names:
        number = values.get(name)
        if type(number) is int and 0 <= number <= MAX_TOKENS:
            return number
    return None
