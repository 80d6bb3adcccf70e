"""The tools that we answer ourselves: recall, and on request note, prune, distill and compress.

This file has their definitions and their results.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from trimtab.errors import TrimtabError
from trimtab.formats.registry import FormatName
from trimtab.journal.excerpts import RecallAnswer, answer
from trimtab.session import Session
from trimtab.sessions.note_tool import note_tool
from trimtab.sessions.own_tool import Declaration, OwnTool
from trimtab.sessions.pruning import compress, distill, prune
from trimtab.sessions.recall_tool import NAME, recall_tool
from trimtab.sessions.session_turns import RequestOriginals, prunable, take_out
from trimtab.settings import FitKeywords
from trimtab.transcript.model_notes import NAME as NOTE
from trimtab.transcript.model_notes import noted

PRUNE, DISTILL, COMPRESS = "prune", "distill", "compress"
MAX_NAMES = 40
"""Results that are listed, or pruned, in one call."""
LAST = "\n\n[trimtab: no more recalls in this answer: go on with what is here]"
_TEXT = {"type": "string"}
_NAMED = {"type": "string", "description": "a result's name, as prune lists them"}
_SAID = {"type": "string", "description": "what is worth keeping, in few words"}
_TOOLS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    PRUNE: (
        "Takes tool results that are no longer needed out of this conversation, to make room. "
        "Without names it lists what can be taken out; with names it takes these out. The "
        "recall tool returns what was taken out.",
        {
            "type": "object",
            "properties": {
                "names": {"type": "array", "items": _TEXT, "description": "as the list has them"},
            },
        },
    ),
    DISTILL: (
        "Puts what you found in a tool result, in your own few words, in place of the result, to "
        "make room. The recall tool returns the result.",
        {
            "type": "object",
            "properties": {"name": _NAMED, "words": _SAID},
            "required": ["name", "words"],
        },
    ),
    COMPRESS: (
        "Puts your own few words in place of all tool results from one to another, to make room: "
        "for steps that are done with. The recall tool returns the results.",
        {
            "type": "object",
            "properties": {"first": _NAMED, "last": _NAMED, "words": _SAID},
            "required": ["first", "last", "words"],
        },
    ),
}
"""Description and schema by name; the same bytes in every request and release, for the cache."""


def names(prune: bool, notes: bool) -> tuple[str, ...]:
    """The names of the offered tools."""
    return (NAME, *((NOTE,) if notes else ()), *(_TOOLS if prune else ()))


def definition(format: str, name: str) -> dict[str, Any]:
    """A tool as this format declares it."""
    if name == NOTE:
        return note_tool(format).definition
    if name == NAME:
        return recall_tool(format).definition
    return OwnTool(format, Declaration(name, *_TOOLS[name])).definition


def result(
    format: str, session: Session, body: Any, call: Any, model: str | None, *, last: bool = False
) -> Any:
    """The result of one call, as a part of the message with all results.  ``last``: no further
    call is answered; the result says so."""
    tool = recall_tool(format)
    call_id, name, arguments = tool.read(call)
    keywords: FitKeywords = {
        "format": cast(FormatName, format),
        "recall": True,
        "model": model or None,
    }
    try:
        taken_out = name in _TOOLS
        if name == NOTE:
            notes = note_tool(format)
            return notes.part(call_id, RecallAnswer(*noted(notes.notes(body), arguments)))
        answered = (_taken_out(session, body, name, arguments, keywords) if taken_out
                else answer(RequestOriginals(session, body, **keywords), arguments))  # fmt: skip
    except TrimtabError as error:
        answered = RecallAnswer(f"Nothing was taken out: {error}", True)
    return tool.part(
        call_id, answered._replace(text=answered.text + LAST) if last else answered, name
    )


def _taken_out(
    session: Session, body: Any, tool: str, arguments: Mapping[str, Any], keywords: FitKeywords
) -> RecallAnswer:
    text = {key: str(arguments.get(key) or "") for key in ("name", "first", "last", "words")}
    if tool == DISTILL:
        done = take_out(
            session,
            body,
            lambda transcript: distill(transcript, {text["name"]: text["words"]}),
            **keywords,
        )
    elif tool == COMPRESS:
        ends = text["first"], text["last"]
        done = take_out(
            session, body, lambda transcript: compress(transcript, *ends, text["words"]), **keywords
        )
    else:
        names = arguments.get("names")
        wanted = [str(name) for name in names][:MAX_NAMES] if isinstance(names, list) else []
        if not wanted:
            return RecallAnswer(_listed(session, body, keywords))
        done = take_out(session, body, lambda transcript: prune(transcript, wanted), **keywords)
    lines = [f"{result.name} is out: {result.tokens:,} tokens" for result in done.done]
    lines += [f"{name} stays: it {why}" for name, why in done.why_not.items()]
    if done.why_not:
        lines.append(_listed(session, body, keywords))
    return RecallAnswer("\n".join(lines), failed=not done.done)


def _listed(session: Session, body: Any, keywords: FitKeywords) -> str:
    offered = prunable(session, body, **keywords)
    if not offered:
        return "There is nothing that could be taken out."
    rows = [
        f"{result.name}  {result.tokens:,} tokens  {result.about}" for result in offered[:MAX_NAMES]
    ]
    newer = [f"and {len(offered) - MAX_NAMES} newer ones"] if len(offered) > MAX_NAMES else []
    return "\n".join(["What can be taken out, oldest first:", *rows, *newer])
