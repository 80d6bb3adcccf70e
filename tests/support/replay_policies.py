"""Policies of somebody else, as ``--policy replay_policies:Third`` finds them."""

from __future__ import annotations

from typing import Any

from trimtab_lab.replay.policies import PolicyOutput
from trimtab_lab.replay.recording_index import RecordingIndex


class Third:
    """Sends the user's words alone."""

    name, version, format = "third", "9", ""

    def start(self, index: RecordingIndex, window: int) -> Any:
        return lambda body: PolicyOutput({**body, "messages": body["messages"][:1]})


class ThirdOfChat(Third):
    """The same for one format."""

    format = "openai-chat"


class Careless(Third):
    """Empties the messages it is given instead of copies."""

    def start(self, index: RecordingIndex, window: int) -> Any:
        def step(body: dict[str, Any]) -> PolicyOutput:
            for message in body["messages"]:
                message["content"] = "-"
            return PolicyOutput(body)

        return step
