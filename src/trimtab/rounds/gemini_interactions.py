"""Rewrites answers of Gemini's Interactions of several rounds into one."""

from __future__ import annotations

from typing import Any

from trimtab.formats.engine.stream_events import StreamEvent
from trimtab.rounds.stream_rewriter import RewriterBase, SaidError, loads, sse
from trimtab.sessions.streamed_steps import StreamedSteps

_ENDS = ("interaction.completed", "interaction.complete")


class GeminiInteractionsRewriter(RewriterBase):
    """Steps of all rounds are steps of one interaction, with new places in a stream."""

    def __init__(self) -> None:
        super().__init__("gemini-interactions")
        self.recalls: list[Any] = []
        self.has_client_calls = False
        self._rounds = 0
        self._streamed = StreamedSteps()
        self._steps: list[Any] = []
        self._shown: list[Any] = []
        """The steps of this round for the client."""
        self._before: list[Any] = []
        self._new_index: dict[int, int] = {}
        self._next = 0
        self._leads: dict[int, str] = {}
        """Index of a step of this round → what is put before its text for the client."""
        self._last: dict[str, Any] = {}
        self._end: tuple[str, dict[str, Any]] | None = None
        self._done = b""
        self._first_id = ""

    def begin(self) -> None:
        """Begin a round."""
        self._before += self._shown
        self._rounds += 1
        self.recalls, self.has_client_calls, self._end = [], False, None
        self._streamed, self._steps, self._shown = StreamedSteps(), [], []
        self._new_index, self._leads = {}, {}
        self.begin_text()

    def event(self, event: StreamEvent) -> bytes:
        """The bytes to pass on for one event."""
        tree = loads(event)
        if tree is None:
            if b"[DONE]" not in event.raw:
                return event.raw
            self._done = event.raw
            return b""
        kind, whole = str(tree.get("event_type")), self._streamed.take(tree)
        if kind in _ENDS:
            self._take(dict(whole or tree.get("interaction") or {}))
            self._end = (event.name, tree)
            return b""
        if isinstance(tree.get("interaction"), dict):
            self._first_id = self._first_id or str(tree["interaction"].get("id") or "")
        index = tree.get("index")
        if not isinstance(index, int):  # of the interaction as a whole: the client has one
            return b"" if kind.startswith("interaction.") and self._rounds > 1 else event.raw
        if kind == "step.start" and not self._is_recall(tree.get("step")):
            self._new_index[index] = self._next
            self._next += 1
        if index not in self._new_index:
            return b""
        delta = tree.get("delta")
        if isinstance(delta, dict) and delta.get("type") == "text":
            lead = self.break_before(str(delta.get("text") or ""))
            if lead:
                self._leads[index] = lead
                tree["delta"] = {**delta, "text": lead + delta["text"]}
        return sse({**tree, "index": self._new_index[index]}, event.name)

    def _is_recall(self, step: Any) -> bool:
        kind = step.get("type") if isinstance(step, dict) else ""
        return kind == "function_call" and self.is_call(step)

    def _take(self, interaction: dict[str, Any]) -> None:
        self._last = interaction
        self._usage = self.added(self._usage, interaction.get("usage"))
        steps = interaction.get("steps")
        self._steps = [step for step in steps or () if isinstance(step, dict)]
        self.recalls = [step for step in self._steps if self._is_recall(step)]
        calls = [step for step in self._steps if step.get("type") == "function_call"]
        self.has_client_calls = len(calls) > len(self.recalls)
        self._shown = [
            self._broken(index, step)
            for index, step in enumerate(self._steps)
            if not self._is_recall(step)
        ]

    def _broken(self, index: int, step: dict[str, Any]) -> dict[str, Any]:
        """A step for the client; in a stream its text has begun already."""
        content = step.get("content")
        if step.get("type") != "model_output" or not isinstance(content, list):
            return step
        parts = list(content)
        for at, part in enumerate(parts):
            if isinstance(part, dict) and isinstance(part.get("text"), str):
                streamed = bool(self._new_index)
                lead = self._leads.pop(index, "") if streamed else self.break_before(part["text"])
                parts[at] = {**part, "text": lead + part["text"]}
        return {**step, "content": parts}

    def take_full_response(self, tree: Any) -> None:
        """Take a round's whole answer."""
        self._take(tree)

    def real(self) -> list[Any]:
        """Steps."""
        return list(self._steps)

    def visible(self) -> list[Any]:
        """Steps."""
        return [*self._before, *self._shown]

    def end(self) -> bytes:
        """The last events, with what all rounds cost."""
        if self._end is None:
            return self._done
        name, tree = self._end
        # The client has read the first id at the beginning.
        last = {**(tree.get("interaction") or {}), "id": self._first_id, "usage": self._usage}
        return sse({**tree, "interaction": last}, name) + self._done

    def failed(self, failure: SaidError) -> bytes:
        """An ``error`` event."""
        error = {"code": failure.kind, "message": failure.message}
        return sse({"event_type": "error", "error": error}, "error")

    def discard_round_end(self) -> None:
        """Another round comes; what this one cost was taken."""

    def answer(self) -> Any:
        """The last interaction, its id included, with what all rounds said."""
        return {**self._last, "steps": self.visible(), "usage": self._usage}
