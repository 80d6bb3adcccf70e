"""The protocol of a reduction policy, and the registry that finds one by name.

To add a policy, write a class with ``name`` and ``start`` and list it in the entry-point group
``trimtab.policies`` of your package.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module, metadata
from typing import Any, Protocol

from trimtab.errors import InvalidSetting
from trimtab.replay.recording_index import RecordingIndex

GROUP = "trimtab.policies"


@dataclass(frozen=True)
class PolicyOutput:
    """What a policy sends for one model call.

    ``request``: the body; the messages of the one that was given may be reused but never changed.
    ``originals``: what it put away in this call and can give back, by handle.  ``calls``: (input
    tokens, output tokens) of each call it made to a model of its own.  ``notes``: (path or place,
    why) of what it changed, for people.  ``seconds``: its CPU time where it ran elsewhere.
    ``room``: where it cut, (tokens after, tokens it was to cut down to).
    """

    request: Any
    originals: Mapping[str, str] = field(default_factory=dict)
    calls: Sequence[tuple[int, int]] = ()
    notes: Sequence[tuple[str, str]] = ()
    seconds: float | None = None
    room: tuple[int, int] | None = None


PolicyStep = Callable[[dict[str, Any]], PolicyOutput]
"""Called once for each model call of one recording, in order; keeps what state it likes."""


class Policy(Protocol):
    """One way to reduce requests.

    ``name`` as given on the command line; ``version`` of what decides; ``format``: the one
    request format it can read ("" for any; recordings are converted for it).
    """

    name: str
    version: str
    format: str

    def start(self, index: RecordingIndex, window: int) -> PolicyStep:
        """Begin one recording.  ``index`` holds the whole recording, its future included: only a
        bound may look there."""
        ...


BUILT_IN = {
    "none": "trimtab.replay.baseline_policies:Everything",
    "trimtab": "trimtab.replay.trimtab_policy:Trimtab",
    "provider-compaction": "trimtab.replay.provider_compaction:ProviderCompaction",
    "keep-last-n": "trimtab.replay.baseline_policies:KeepLast",
    "drop-oldest-safe": "trimtab.replay.baseline_policies:DropOldest",
    "mask-old-observations": "trimtab.replay.baseline_policies:MaskOld",
    "oracle": "trimtab.replay.oracle_policy:Oracle",
    "langchain-trim": "trimtab.replay.peers:LangChainTrim",
    "langchain-clear": "trimtab.replay.peers:LangChainClear",
    "langchain-summarize": "trimtab.replay.peers:LangChainSummarize",
    "litellm-trim": "trimtab.replay.peers:LiteLLMTrim",
    "litellm-compress": "trimtab.replay.peers:LiteLLMCompress",
    "headroom": "trimtab.replay.peers:Headroom",
}
"""Name → class; the peers need ``trimtab replay --setup-peers`` once."""

DEFAULT = (
    "none", "trimtab", "keep-last-n", "drop-oldest-safe", "mask-old-observations", "oracle",
)  # fmt: skip
"""What runs when no policy is named."""


def names() -> list[str]:
    """Every policy that can be named."""
    return [*BUILT_IN, *(e.name for e in metadata.entry_points(group=GROUP))]


def find(spec: str) -> Policy:
    """``"mask-old-observations"``, or with a number: ``"keep-last-n:40"``.

    Raises InvalidSetting for a name nobody registered, or a number the policy does not take.
    """
    name, _, argument = spec.partition(":")
    if name in BUILT_IN:
        module, _, attribute = BUILT_IN[name].partition(":")
        made = getattr(import_module(module), attribute)
    else:
        entry_points = [e for e in metadata.entry_points(group=GROUP) if e.name == name]
        if not entry_points:
            raise InvalidSetting(f"no policy {name!r}; there are {', '.join(names())}")
        made = entry_points[0].load()
    try:
        policy: Policy = made(argument) if argument else made()
    except (TypeError, ValueError) as error:
        raise InvalidSetting(f"policy {spec!r}: {error}") from None
    policy.name = spec
    return policy
