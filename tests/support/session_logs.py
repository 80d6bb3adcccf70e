"""Small session logs, one for each agent that is read: two calls in parallel, a failed one, what
the user took back, and a compaction where the agent's format has one.

Made up from the public sources of the agents: the field names are theirs, the words are ours.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

Values = list[dict[str, Any]]

WITHDRAWN = "You must never use Postgres."
ASKED = "Use Postgres."


def written(path: Path, values: Values) -> str:
    """A file of lines, or of one document."""
    lines = [json.dumps(value) for value in values]
    path.write_text("\n".join(lines) + "\n" if path.suffix == ".jsonl" else lines[0])
    return str(path)


def _clock(values: Values, key: str = "timestamp") -> Values:
    return [{key: f"2026-09-01T10:00:{n:02}.000Z", **value} for n, value in enumerate(values)]


def claude_code() -> Values:
    """Streamed, parallel tools: both results stand before the pieces with their calls; a rewind."""

    def line(uuid: str, parent: str | None, role: str, content: Any, **message: Any) -> Any:
        about = {"id": f"m{uuid[1]}", "model": "claude-sonnet-4-5"} if role == "assistant" else {}
        return {
            "uuid": uuid, "parentUuid": parent, "type": role, "sessionId": "s", "cwd": "/w/app",
            "isSidechain": False, "message": {"role": role, "content": content, **about, **message},
        }  # fmt: skip

    def use(id_: str) -> list[Any]:
        return [{"type": "tool_use", "id": id_, "name": "Read", "input": {"path": id_}}]

    def result(id_: str, text: str) -> list[Any]:
        return [{"type": "tool_result", "tool_use_id": id_, "content": text}]

    usage = {"input_tokens": 10, "cache_read_input_tokens": 90, "output_tokens": 5}
    lines = _clock([
        line("u0", None, "user", "Which database?"),
        line("a1", "u0", "assistant", [{"type": "text", "text": "I look."}]),
        line("a1b", "a1", "assistant", use("t1")),
        line("a1c", "a1b", "assistant", use("t2"), usage=usage),
        line("r1", "a1b", "user", result("t1", "one")),
        line("r2", "a1c", "user", result("t2", "two")),
        line("a2", "r2", "assistant", [{"type": "text", "text": "MySQL or Postgres."}]),
        line("u3", "a2", "user", WITHDRAWN),
        line("a3", "u3", "assistant", [{"type": "text", "text": "MySQL it is."}], usage=usage),
        line("u4", "a2", "user", ASKED),
        line("a4", "u4", "assistant", [{"type": "text", "text": "Postgres it is."}], usage=usage),
    ])  # fmt: skip
    order = [0, 4, 1, 5, 2, 3, *range(6, len(lines))]
    return [lines[n] for n in order]


def qwen_code() -> Values:
    def line(uuid: str, parent: str | None, kind: str, parts: list[Any], **more: Any) -> Any:
        role = "model" if kind == "assistant" else "user"
        return {
            "uuid": uuid, "parentUuid": parent, "type": kind, "sessionId": "s", "cwd": "/w/app",
            "version": "0.21.0", "message": {"role": role, "parts": parts}, **more,
        }  # fmt: skip

    def call(id_: str) -> dict[str, Any]:
        return {"functionCall": {"id": id_, "name": "read_file", "args": {"path": id_}}}

    def result(id_: str, output: str) -> dict[str, Any]:
        response = {"id": id_, "name": "read_file", "response": {"output": output}}
        return {"functionResponse": response}

    model: dict[str, Any] = {
        "model": "qwen3-coder", "contextWindowSize": 262_144,
        "usageMetadata": {"promptTokenCount": 100, "candidatesTokenCount": 5,
                          "cachedContentTokenCount": 60},
    }  # fmt: skip
    compressed = [{"role": "user", "parts": [{"text": "So far: two files were read."}]},
                  {"role": "model", "parts": [{"text": "Got it."}]}]  # fmt: skip
    return _clock([
        line("u0", None, "user", [{"text": "Which database?"}]),
        line("a1", "u0", "assistant", [{"text": "I look."}, call("t1"), call("t2")], **model),
        line("r1", "a1", "tool_result", [result("t1", "one")]),
        line("r2", "r1", "tool_result", [result("t2", "two")]),
        {"uuid": "s1", "parentUuid": "r2", "sessionId": "s", "type": "system",
         "subtype": "ui_telemetry", "systemPayload": {}},
        line("a2", "s1", "assistant", [{"text": "MySQL or Postgres."}], **model),
        {"uuid": "s2", "parentUuid": "a2", "sessionId": "s", "type": "system",
         "subtype": "chat_compression", "systemPayload": {"compressedHistory": compressed}},
        line("u3", "s2", "user", [{"text": WITHDRAWN}]),
        line("a3", "u3", "assistant", [{"text": "MySQL it is."}], **model),
        {"uuid": "s3", "parentUuid": "s2", "sessionId": "s", "type": "system", "subtype": "rewind",
         "systemPayload": {"truncatedCount": 2}},
        line("u4", "s3", "user", [{"text": ASKED}]),
        line("a4", "u4", "assistant", [{"text": "Postgres "}], **model),
        line("a4", "u4", "assistant", [{"text": "it is."}], **model),
    ])  # fmt: skip


def gemini_cli() -> Values:
    def call(id_: str, output: str) -> dict[str, Any]:
        response = {"id": id_, "name": "read_file", "response": {"output": output}}
        return {"id": id_, "name": "read_file", "args": {"path": id_}, "status": "success",
                "result": [{"functionResponse": response}]}  # fmt: skip

    tokens = {"input": 100, "output": 5, "cached": 60, "thoughts": 7, "tool": 0, "total": 112}
    model = {"type": "gemini", "model": "gemini-3-pro-preview", "tokens": tokens}
    reading = {"id": "g1", **model, "content": "I look."}
    return [
        {"sessionId": "s", "projectHash": "ab", "startTime": "2026-09-01T10:00:00.000Z",
         "kind": "main", "directories": ["/w/app"]},
        *_clock([
            {"id": "c1", "type": "user", "content": [{"text": "/stats"}]},
            {"id": "i1", "type": "info", "content": "3 requests"},
            {"id": "u1", "type": "user", "content": [{"text": "Which database?"}]},
            reading,
            {**reading, "toolCalls": [call("t1", "one"), call("t2", "two")]},
            {"id": "g2", **model, "content": "MySQL or Postgres."},
            {"id": "u2", "type": "user", "content": [{"text": WITHDRAWN}]},
            {"id": "g3", **model, "content": "MySQL it is."},
        ]),
        {"$rewindTo": "u2"},
        {"$set": {"lastUpdated": "2026-09-01T10:00:09.000Z"}},
        *_clock([
            {"id": "u3", "type": "user", "content": [{"text": ASKED}]},
            {"id": "g4", **model, "content": "Postgres it is."},
        ]),
    ]  # fmt: skip


def gemini_cli_document() -> Values:
    """The older file: one object."""
    head, *messages = gemini_cli()
    kept = [m for m in messages if m.get("id") not in ("u2", "g3", None)]
    return [{**head, "messages": kept[:3] + kept[4:]}]


def copilot_cli() -> Values:
    def event(id_: str, parent: str | None, kind: str, **data: Any) -> dict[str, Any]:
        return {"type": kind, "id": id_, "parentId": parent, "data": data}

    def call(id_: str, name: str = "view", **arguments: Any) -> dict[str, Any]:
        return {"toolCallId": id_, "name": name, "arguments": arguments, "type": "function"}

    def done(id_: str, parent: str, call_id: str, **data: Any) -> dict[str, Any]:
        return event(id_, parent, "tool.execution_complete", toolCallId=call_id, **data)

    side = {"parentToolCallId": "t2"}
    return _clock([
        event("e0", None, "session.start", sessionId="s", producer="copilot-agent",
              context={"cwd": "/w/app"}),
        event("e1", "e0", "session.model_change", newModel="gpt-5.4"),
        event("e2", "e1", "system.message", role="system", content="You are Copilot."),
        event("e3", "e2", "user.message", content="Which database?",
              transformedContent="<now>10:00</now> Which database?"),
        event("e4", "e3", "assistant.message", content="I look.", toolRequests=[
            call("t1", path="a"), call("t2", "task", prompt="Explore the tables.")]),
        event("e5", "e4", "assistant.message", content="I explore.", **side),
        event("e5b", "e5", "system.notification", content="Discovered AGENTS.md"),
        event("e5c", "e5b", "user.message", content="Be quick."),
        done("e6", "e5c", "t2", success=True, result={"content": "two"}),
        done("e7", "e6", "t1", success=False, error={"message": "no such file"}),
        event("e8", "e7", "assistant.message", content="MySQL or Postgres."),
        event("e9", "e8", "user.message", content=WITHDRAWN),
        event("e10", "e9", "assistant.message", content="MySQL it is."),
        event("e11", "e10", "session.snapshot_rewind", upToEventId="e9", eventsRemoved=2),
        event("e12", "e11", "user.message", content=ASKED),
        event("e13", "e12", "assistant.message", content="Postgres it is."),
    ])  # fmt: skip


def pi(cwd: str = "/w/app") -> Values:
    def entry(id_: str, parent: str | None, role: str, content: Any, **more: Any) -> Any:
        message = {"role": role, "content": content, **more}
        return {"type": "message", "id": id_, "parentId": parent, "message": message}

    def text(words: str) -> list[Any]:
        return [{"type": "text", "text": words}]

    def call(id_: str) -> dict[str, Any]:
        return {"type": "toolCall", "id": id_, "name": "read", "arguments": {"path": id_}}

    usage = {"input": 10, "output": 5, "cacheRead": 80, "cacheWrite": 10, "totalTokens": 105}
    model: dict[str, Any] = {"api": "anthropic-messages", "model": "claude-opus-4-5",
                             "usage": usage, "stopReason": "stop"}  # fmt: skip
    return _clock([
        {"type": "session", "version": 3, "id": "s", "cwd": cwd},
        {"type": "model_change", "id": "c0", "parentId": None, "modelId": "claude-opus-4-5"},
        entry("u0", "c0", "user", text("Which database?")),
        entry("a1", "u0", "assistant", [*text("I look."), call("t1|fc_1"), call("t2")], **model),
        entry("r1", "a1", "toolResult", text("one"), toolCallId="t1|fc_1", isError=False),
        entry("r2", "r1", "toolResult", text("no such file"), toolCallId="t2", isError=True),
        entry("x1", "r2", "assistant", text("I st"), **{**model, "stopReason": "aborted"}),
        entry("a2", "x1", "assistant", text("MySQL or Postgres."), **model),
        {"type": "compaction", "id": "k1", "parentId": "a2", "summary": "Two files were read.",
         "firstKeptEntryId": "a2", "tokensBefore": 900},
        entry("u3", "k1", "user", text(WITHDRAWN)),
        entry("a3", "u3", "assistant", text("MySQL it is."), **model),
        entry("u4", "k1", "user", text(ASKED)),
        entry("a4", "u4", "assistant", text("Postgres it is."), **model),
    ])  # fmt: skip


def openclaw() -> Values:
    return pi("/root/.openclaw/workspace")


def goose() -> Values:
    """An export: what a compaction hid from the model stays in the conversation."""
    head, *messages = goose_lines()
    export = {"id": "20260901_1", "working_dir": "/w/app", "conversation": messages,
              "model_config": {"model_name": "gpt-5.4"}}  # fmt: skip
    return [{**head, **export}]


def goose_lines() -> Values:
    """The older file: the session in its first line."""

    def message(role: str, *content: Any, seen: bool = True) -> dict[str, Any]:
        metadata = {"userVisible": True, "agentVisible": seen}
        return {"role": role, "created": 1_788_256_800, "content": list(content),
                "metadata": metadata}  # fmt: skip

    def text(words: str) -> dict[str, Any]:
        return {"type": "text", "text": words}

    def call(id_: str) -> dict[str, Any]:
        value = {"name": "developer__shell", "arguments": {"command": id_}}
        return {"type": "toolRequest", "id": id_, "toolCall": {"status": "success", "value": value}}

    def result(id_: str, answer: dict[str, Any]) -> dict[str, Any]:
        return {"type": "toolResponse", "id": id_, "toolResult": answer}

    return [
        {"working_dir": "/w/app", "description": "databases", "message_count": 6},
        message("user", text(WITHDRAWN), seen=False),
        message("user", text("Which database?")),
        message("assistant", text("I look."), call("t1"), call("t2")),
        message(
            "user",
            result("t1", {"status": "success", "value": {"content": [text("one")]}}),
            result("t2", {"status": "error", "error": "no such file"}),
        ),
        message("assistant", text("MySQL or Postgres.")),
        message("user", text(ASKED)),
        message("assistant", text("Postgres it is.")),
    ]


def codex() -> Values:
    def item(**payload: Any) -> dict[str, Any]:
        return {"type": "response_item", "payload": payload}

    def said(role: str, words: str) -> dict[str, Any]:
        kind = "input_text" if role == "user" else "output_text"
        return item(type="message", role=role, content=[{"type": kind, "text": words}])

    return _clock([
        {"type": "session_meta", "payload": {"id": "s", "cwd": "/w/app"}},
        {"type": "turn_context", "payload": {"model": "gpt-5.5"}},
        said("user", "<environment_context>here</environment_context>"),
        said("user", "Which database?"),
        item(type="function_call", call_id="t1", name="read", arguments="{}"),
        item(type="function_call_output", call_id="t1", output="one"),
        said("assistant", "MySQL or Postgres."),
        said("user", WITHDRAWN),
        said("assistant", "MySQL it is."),
        {"type": "event_msg", "payload": {"type": "thread_rolled_back", "num_turns": 1}},
        said("user", ASKED),
        said("assistant", "Postgres it is."),
    ])  # fmt: skip


LOGS: dict[str, tuple[str, Values, str, int]] = {
    "claude-code": ("0f3a.jsonl", claude_code(), "anthropic", 2),
    "codex": ("rollout-1.jsonl", codex(), "openai-responses", 2),
    "qwen-code": ("qwen.jsonl", qwen_code(), "gemini", 3),
    "gemini-cli": ("session-1.jsonl", gemini_cli(), "gemini", 2),
    "copilot-cli": ("events.jsonl", copilot_cli(), "openai-chat", 3),
    "pi": ("pi.jsonl", pi(), "anthropic", 3),
    "openclaw": ("claw.jsonl", openclaw(), "anthropic", 3),
    "goose": ("session.json", goose(), "openai-chat", 1),
}
"""Agent → (file name, lines, format of its recordings, how many there are)."""
