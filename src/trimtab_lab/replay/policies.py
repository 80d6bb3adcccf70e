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
from trimtab_lab.replay.recording_index import RecordingIndex

GROUP = "trimtab.policies"


@dataclass(frozen=True)
class PolicyOutput:
    """What a policy sends for one model call.

    ``request``: the body; message objects of the given body may be reused but never changed.
    ``originals``: handle → text that the policy removed in this call and can recall.  ``calls``:
    (input tokens, output tokens) of each call to a model of its own.  ``notes``: (path or place,
    reason) of each change, for people.  ``seconds``: CPU time, if the policy ran in another
    process.  ``room``: if it cut, (tokens after, target in tokens).
    """

    request: Any
    originals: Mapping[str, str] = field(default_factory=dict)
    calls: Sequence[tuple[int, int]] = ()
    notes: Sequence[tuple[str, str]] = ()
    seconds: float | None = None
    room: tuple[int, int] | None = None


PolicyStep = Callable[[dict[str, Any]], PolicyOutput]
"""Called once for each model call of one recording, in order; it may keep state."""


class Policy(Protocol):
    """One way to reduce requests.

    ``name``: as given on the command line; ``version``: of the code that decides; ``format``: the
    one request format it can read, to which recordings are converted ("": any).
    """

    name: str
    version: str
    format: str

    def start(self, index: RecordingIndex, window: int) -> PolicyStep:
        """Begin one recording.  ``index`` has the whole recording with its future, which only a
        bound such as the oracle may use."""
        ...


BUILT_IN = {
    "none": "trimtab_lab.replay.baseline_policies:Everything",
    "trimtab": "trimtab_lab.replay.trimtab_policy:Trimtab",
    "provider-compaction": "trimtab_lab.replay.provider_compaction:ProviderCompaction",
    "keep-last-n": "trimtab_lab.replay.baseline_policies:KeepLast",
    "drop-oldest-safe": "trimtab_lab.replay.baseline_policies:DropOldest",
    "mask-old-observations": "trimtab_lab.replay.baseline_policies:MaskOld",
    "oracle": "trimtab_lab.replay.oracle_policy:Oracle",
    "langchain-trim": "trimtab_lab.replay.peers:LangChainTrim",
    "langchain-clear": "trimtab_lab.replay.peers:LangChainClear",
    "langchain-summarize": "trimtab_lab.replay.peers:LangChainSummarize",
    "litellm-trim": "trimtab_lab.replay.peers:LiteLLMTrim",
    "litellm-compress": "trimtab_lab.replay.peers:LiteLLMCompress",
    "headroom": "trimtab_lab.replay.peers:Headroom",
}
"""Name → class; the peers need ``trimtab replay --setup-peers`` once."""

DEFAULT = (
    "none", "trimtab", "keep-last-n", "drop-oldest-safe", "mask-old-observations", "oracle",
)  # fmt: skip
"""What runs when no policy is named."""


def names() -> list[str]:
    """The names of all policies."""
    return [*BUILT_IN, *(e.name for e in metadata.entry_points(group=GROUP))]


def find(spec: str) -> Policy:
    """``"mask-old-observations"``, or with a number: ``"keep-last-n:40"``.

    Raises InvalidSetting for an unknown name, or a number that the policy does not take.
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
