"""The protocol of a reduction policy, and how one is found by its name.

To add a policy, write a class as ``Policy`` says and name it: ``module:Class`` or
``file.py:Class``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from trimtab.errors import InvalidSetting
from trimtab_lab.loading import load
from trimtab_lab.replay.recording_index import RecordingIndex


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
        bound such as ``bench/oracle.py`` may use."""
        ...


BUILT_IN = {
    "none": "trimtab_lab.replay.baseline_policies:Everything",
    "trimtab": "trimtab_lab.replay.trimtab_policy:Trimtab",
    "keep-last-n": "trimtab_lab.replay.baseline_policies:KeepLast",
    "drop-oldest-safe": "trimtab_lab.replay.baseline_policies:DropOldest",
    "mask-old-observations": "trimtab_lab.replay.baseline_policies:MaskOld",
}
"""Name → class."""

DEFAULT = ("none", "trimtab", "drop-oldest-safe")
"""What runs when no policy is named."""


def find(spec: str) -> Policy:
    """``"mask-old-observations"``, with a number ``"keep-last-n:40"``, or ``"module:Class"``.

    Raises InvalidSetting for an unknown name, or a number that the policy does not take.
    """
    name, _, argument = spec.partition(":")
    if name not in BUILT_IN and not argument:
        known = ", ".join(BUILT_IN)
        raise InvalidSetting(f"no policy {name!r}; there are {known}, and MODULE:CLASS for yours")
    made = load(BUILT_IN.get(name, spec))
    try:
        policy: Policy = made(argument) if argument and name in BUILT_IN else made()
    except (TypeError, ValueError) as error:
        raise InvalidSetting(f"policy {spec!r}: {error}") from None
    if name in BUILT_IN:
        policy.name = spec
    return policy
