"""The steps of an interaction, assembled from the events of its stream.

The last event of a stream has the interaction without its steps.  The events are those of
google-genai 3.4 (``StepStart``, ``StepDelta``, ``InteractionCompletedEvent``).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from trimtab.formats.engine.sdk_objects import as_mapping

ENDS = ("interaction.completed", "interaction.complete")
_MEDIA = ("image", "audio", "document", "video")
_SERVER = ("_call", "_result")
"""Suffixes of the step types of Google's own tools; their deltas contain fields of the step."""


class StreamedSteps:
    """Assembles the steps from the events of one stream, taken in order."""

    def __init__(self) -> None:
        self._steps: dict[Any, dict[str, Any]] = {}
        self._arguments: dict[Any, str] = {}
        self._is_known = True

    def take(self, event: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Process an event; returns the whole interaction after the last one, else None (also if
        an event was not understood)."""
        kind, index = event.get("event_type"), event.get("index")
        if kind == "step.start" and isinstance(step := as_mapping(event.get("step")), Mapping):
            self._steps[index] = {key: value for key, value in step.items() if value is not None}
        elif kind == "step.delta":
            delta, begun = as_mapping(event.get("delta")), self._steps.get(index)
            if begun is None or not isinstance(delta, Mapping):
                self._is_known = False
            else:
                self._is_known &= self._grow(begun, delta, index)
        elif kind in ENDS:
            return self._whole(as_mapping(event.get("interaction")))
        return None

    def _grow(self, step: dict[str, Any], delta: Mapping[str, Any], index: Any) -> bool:
        """Add one delta to its step; returns whether it was understood."""
        kind = str(delta.get("type"))
        if kind == "text":
            content = step.setdefault("content", [])
            if not content or content[-1].get("type") != "text":
                content.append({"type": "text", "text": ""})
            content[-1] = {**content[-1], "text": content[-1]["text"] + delta.get("text", "")}
        elif kind == "text_annotation_delta":
            return True  # a later request does not need annotations
        elif kind == "arguments_delta":
            self._arguments[index] = self._arguments.get(index, "") + (delta.get("arguments") or "")
        elif kind == "thought_summary":
            if delta.get("content"):
                step["summary"] = [*step.get("summary", ()), delta["content"]]
        elif kind == "thought_signature":
            step["signature"] = delta.get("signature")
        elif kind in _MEDIA:
            step["content"] = [*step.get("content", ()), delta]
        elif kind.endswith(_SERVER):
            step |= {key: value for key, value in delta.items() if key != "type"}
        else:
            return False
        return True

    def _whole(self, interaction: Any) -> Mapping[str, Any] | None:
        if not isinstance(interaction, Mapping):
            return None
        if interaction.get("steps") or interaction.get("outputs"):
            return interaction
        try:
            for index, text in self._arguments.items():
                if text:  # a call without arguments may send none
                    self._steps[index]["arguments"] = json.loads(text)
        except (ValueError, RecursionError):
            return None
        return {**interaction, "steps": list(self._steps.values())} if self._is_known else None
