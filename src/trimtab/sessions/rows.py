"""Shortens tool results among rows of a conversation that is not given whole.

A gateway hands over some rows of a chat and takes the same number back.  So a result is shortened
where it is, and nothing is repaired, folded or dropped; as the rest is not seen, no fit can be
promised.  The rows are read as a request of their own, in which each result has a call.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

from trimtab.errors import TrimtabError
from trimtab.journal.hashes import hash_of
from trimtab.planning.fold import SMALL
from trimtab.planning.planner import Planner
from trimtab.planning.presets import STALE
from trimtab.pricing import models
from trimtab.request.fitted import Fitted, facts_of
from trimtab.request.measured import MeasuredRequest
from trimtab.request.planned import planner_for, reduce
from trimtab.sessions.pruning import Pruned
from trimtab.settings import NO_WINDOW, Settings
from trimtab.transcript.model import Place

ROWS_SHARE = 0.5
"""Share of the window that the rows may take: system text, tools, what the model wrote and the last
exchange are not among them (half of the tokens of recorded coding sessions)."""
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of one call.  ``request``: made of them; ``places``: each row's message in it."""

    given: Sequence[Row]
    request: dict[str, Any]
    places: Sequence[int | None]

    def shortened(self, fitted: Fitted[Any]) -> tuple[list[Row], list[str]]:
        """(the rows with the results of ``fitted``, the hashes of what was cut from them).  Raises
        TrimtabError if it has other messages."""
        sent, asked = fitted.messages, self.request["messages"]
        if [row["role"] for row in sent] != [row["role"] for row in asked]:
            raise TrimtabError("the rows were changed in their order: they are sent unchanged")
        handles, rows = facts_of(fitted).handles, list[Row]()
        for row, place in zip(self.given, self.places, strict=True):
            if place is None or sent[place]["content"] == asked[place]["content"]:
                rows.append(row)
            else:
                rows.append({**row, "content": _with_hashes(sent[place]["content"], handles)})
        return rows, [own for handle in handles if (own := hash_of(handle))]


def rows_of(given: Sequence[Row], model: str, session: str) -> Rows | None:
    """The rows as a request; None where there is no result among them.

    ``session``: the caller's name for its session.  With the oldest result it tells conversations
    apart: the first user message is handed over only once there is a second.
    """
    calls = {
        call["id"]: call["function"]
        for row in given if row.get("role") == "assistant"
        for call in row.get("tool_calls") or () if _is_call(call)
    }  # fmt: skip
    messages, places = list[Any](), list[int | None]()
    often, first = Counter[str](), ""
    for row in given:
        content = row.get("content")
        if row.get("role") != "tool" or not isinstance(content, str | list) or not content:
            places.append(None)
            if row.get("role") == "user" and isinstance(content, str) and content:
                messages.append({"role": "user", "content": content})
            continue
        name = str(row.get("tool_call_id"))
        first = first or _digest(name, json.dumps(content))
        often[name] += 1
        id = _digest(name, str(often[name]))[:9]
        function = calls.get(name) or {"name": _tool(row), "arguments": "{}"}
        call = {"id": id, "type": "function", "function": function}
        messages += [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": id, "content": content},
        ]
        places.append(len(messages))
    if not first:
        return None
    opening = {"role": "user", "content": _digest(session, first)}
    return Rows(given, {"model": model, "messages": [opening, *messages]}, places)


def settings_of(settings: Settings, model: str) -> Settings:
    """The settings for rows: their share of the window, and markers that name what is left out.

    Raises InvalidSetting if the window is not known."""
    window = settings.window or models.require(model).window
    room = max(1, int(ROWS_SHARE * (window - (settings.reserve or 0))))
    return settings | Settings(
        window=room, reserve=0, preset="in-place", recall=True, format="openai-chat", prices=None
    )


def applied_only(settings: Settings) -> Settings:
    """The settings with which earlier edits are made again, and no new one."""
    return settings | Settings(window=NO_WINDOW, trigger=1.0)


def shorten(measured: MeasuredRequest) -> Pruned:
    """Shorten results in their place once the rows are above the trigger: older ones down to the
    target; the newest only where that is not enough."""
    inputs = replace(reduce(measured), drops=False, folds=False)
    planner = planner_for(measured, inputs)
    state, eligibility = planner.state, planner.eligibility
    trigger, goal = planner.bounds.trigger, eligibility.target
    if state.tokens <= trigger:
        return Pruned((), {}, (), {})

    def enough() -> bool:
        return state.tokens <= goal

    older = _results(planner, eligibility.raw_from)
    planner.reduce(older, enough, SMALL, max_loss=STALE, priced=True)
    planner.reduce(older, enough, SMALL)
    planner.fill(goal)
    planner.revert(goal)
    newest = _results(planner, len(measured.transcript.messages))
    planner.reduce(newest, lambda: state.tokens <= trigger, SMALL)
    edits = planner.edits()
    refs = measured.transcript.refs
    originals = {
        edit.handle: "".join(refs[ref].block.text for ref in edit.targets) for edit in edits
    }
    return Pruned(edits, originals, (), {})


def _results(planner: Planner, end: int) -> list[Place]:
    """The results of messages[:end] that may be shortened, all as text."""
    places = planner.reducible(0, end, prose=False, protected=False)
    return [place for place in places if place.block.kind == "result"]


def _with_hashes(content: Any, handles: Sequence[str]) -> Any:
    """The content with hashes in place of calls of our own tool, which a gateway does not offer."""
    if isinstance(content, list):
        return [
            {**part, "text": _with_hashes(part["text"], handles)}
            if isinstance(part, dict) and isinstance(part.get("text"), str) else part
            for part in content
        ]  # fmt: skip
    for one in handles:
        content = content.replace(f'recall("{one}")', f'hash="{hash_of(one)}"')
    return content


def _tool(row: Row) -> str:
    name = row.get("name")
    return name if isinstance(name, str) and name else "tool"


def _is_call(call: Any) -> bool:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict) or not isinstance(call.get("id"), str):
        return False
    return all(isinstance(function.get(key), str) for key in ("name", "arguments"))


def _digest(*parts: str) -> str:
    data = "\0".join(parts).encode("utf-8", "surrogatepass")
    return blake2b(data, digest_size=8).hexdigest()
