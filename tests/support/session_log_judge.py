"""What a session log says, read a second time by code that shares nothing with ``trimtab.logs``.

``said(name, values)`` follows the lines of one agent's log from the newest leaf to the root by hand
and returns the conversation of the newest branch, one list of steps for each stretch between two
compactions.  ``steps(format, messages)`` returns the same of a recording.  A step is what the model
wrote (texts, ids of calls) and what followed it: results by id, and the texts of others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

Values = list[dict[str, Any]]


class Step(NamedTuple):
    texts: list[str]
    calls: list[str]
    results: dict[str, str]
    then: list[str]


def _step(texts: list[str] = [], calls: list[str] = []) -> Step:  # noqa: B006 (never changed)
    return Step([text for text in texts if text.strip()], list(calls), {}, [])


def _blocks(content: Any) -> list[Any]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content or [])


def _text(content: Any) -> str:
    return "\n".join(
        b["text"]
        for b in _blocks(content)
        if isinstance(b, dict) and isinstance(b.get("text"), str)
    )


# --- recordings --------------------------------------------------------------------------------


def steps(format: str, messages: Any) -> list[Step]:
    found = [_step()]
    for message in messages:
        _READ[format](found, message)
    return found


def _anthropic(found: list[Step], message: dict[str, Any]) -> None:
    blocks = _blocks(message["content"])
    if message["role"] == "assistant":
        texts = [b["text"] for b in blocks if b["type"] == "text"]
        found.append(_step(texts, [b["id"] for b in blocks if b["type"] == "tool_use"]))
        return
    for block in blocks:
        if block["type"] == "tool_result":
            found[-1].results[block["tool_use_id"]] = _text(block.get("content"))
        elif block["type"] == "text":
            found[-1].then.append(block["text"])


def _chat(found: list[Step], message: dict[str, Any]) -> None:
    if message["role"] == "assistant":
        calls = [call["id"] for call in message.get("tool_calls", ())]
        found.append(_step([message["content"] or ""], calls))
    elif message["role"] == "tool":
        found[-1].results[message["tool_call_id"]] = _text(message["content"])
    elif message["role"] == "user":
        found[-1].then.extend(b["text"] for b in _blocks(message["content"]) if "text" in b)


def _gemini(found: list[Step], message: dict[str, Any]) -> None:
    parts = message["parts"]
    if message["role"] == "model":
        calls = [p["functionCall"].get("id", "") for p in parts if "functionCall" in p]
        found.append(_step([p["text"] for p in parts if "text" in p], calls))
        return
    for part in parts:
        if "functionResponse" in part:
            response = part["functionResponse"]
            found[-1].results[response.get("id", "")] = str(response.get("response"))
        elif "text" in part:
            found[-1].then.append(part["text"])


_READ: dict[str, Callable[[list[Step], dict[str, Any]], None]] = {
    "anthropic": _anthropic, "openai-chat": _chat, "gemini": _gemini,
}  # fmt: skip


# --- logs --------------------------------------------------------------------------------------


def said(name: str, values: Values) -> list[list[Step]]:
    return _SAID[name](values)


def _chain(values: Values, id_: str, parent: str, leaf: dict[str, Any]) -> Values:
    """From the root to the leaf.  A parent that the log lacks: the line above."""
    by_id = {v[id_]: v for v in reversed(values) if id_ in v}
    at = {id(v): n for n, v in enumerate(values)}
    chain = [leaf]
    while True:
        line = chain[-1]
        above = values[at[id(line)] - 1] if at[id(line)] else None
        named = line.get(parent) or line.get("logicalParentUuid")
        begins = named is None and line.get("type") == "user" and len(by_id) > 1
        before = by_id.get(named) or (None if begins else above)
        if before is None or any(before is v for v in chain):
            return chain[::-1]
        chain.append(before)


def _is_claude_line(line: dict[str, Any]) -> bool:
    message = line.get("message")
    return (
        isinstance(message, dict)
        and message.get("role") in ("user", "assistant")
        and not line.get("isApiErrorMessage")
        and message.get("model") != "<synthetic>"
    )


def _claude(values: Values) -> list[list[Step]]:
    lines = [v for v in values if not v.get("isSidechain") and "uuid" in v]
    spoken = [line for line in lines if _is_claude_line(line)]
    by_id, inner = {line["uuid"]: line for line in reversed(lines)}, set[str]()
    for line in spoken:
        above = by_id.get(line.get("parentUuid") or line.get("logicalParentUuid"))
        while above is not None and not _is_claude_line(above):
            above = by_id.get(above.get("parentUuid") or above.get("logicalParentUuid"))
        inner.add(above["uuid"] if above else "")
    leaves = [line for line in spoken if line["uuid"] not in inner]
    leaf = max(leaves, key=lambda line: (line["timestamp"], leaves.index(line)))
    results = {
        b.get("tool_use_id"): _text(b.get("content"))
        for line in reversed(spoken)
        for b in _blocks(line["message"]["content"])
        if b["type"] == "tool_result"
    }
    beside = {  # a comment on a call stands in the line of its result
        b.get("tool_use_id"): (
            line,
            [t["text"] for t in _blocks(line["message"]["content"]) if "text" in t],
        )
        for line in reversed(spoken)
        for b in _blocks(line["message"]["content"])
        if b["type"] == "tool_result"
    }
    parts, done = [[_step()]], set[str]()
    chain = _chain(lines, "uuid", "parentUuid", leaf)
    for line in chain:
        if not _is_claude_line(line):
            continue
        message = line["message"]
        if line.get("isCompactSummary") and parts[-1] != [_step()]:
            parts.append([_step()])
        if message["role"] == "assistant":
            if message["id"] in done:
                continue
            done.add(message["id"])
            pieces = [
                s["message"]["content"] for s in spoken if s["message"].get("id") == message["id"]
            ]
            blocks = [block for piece in pieces for block in _blocks(piece)]
            texts = [b["text"] for b in blocks if b["type"] == "text"]
            calls = [b["id"] for b in blocks if b["type"] == "tool_use"]
            parts[-1].append(_step(texts, calls))
            parts[-1][-1].results.update({c: results[c] for c in calls if c in results})
            for answer, comments in (beside[c] for c in calls if c in beside):
                if not any(answer is v for v in chain):
                    parts[-1][-1].then.extend(comments)
            continue
        for block in _blocks(message["content"]):
            if block["type"] == "text":
                parts[-1][-1].then.append(block["text"])
            elif block["type"] == "tool_result":
                parts[-1][-1].results[block["tool_use_id"]] = results[block["tool_use_id"]]
    return parts


def _qwen(values: Values) -> list[list[Step]]:
    leaf = [v for v in values if "message" in v and v["type"] != "system"][-1]
    chain = _chain(values, "uuid", "parentUuid", leaf)
    parts = [[_step()]]
    for line in (v for v in values if v["uuid"] in {c["uuid"] for c in chain}):
        history = line.get("systemPayload", {}).get("compressedHistory")
        if history is not None:
            parts.append(steps("gemini", history))
        elif line["type"] != "system" and line["message"]["parts"]:
            pieces = [v for v in values if v["uuid"] == line["uuid"]]
            if line is pieces[0]:
                parts_of = [part for piece in pieces for part in piece["message"]["parts"]]
                _gemini(parts[-1], {"role": line["message"]["role"], "parts": parts_of})
    return parts


def _gemini_cli(values: Values) -> list[list[Step]]:
    messages: Values = list(values[0].get("messages", ()))
    for value in values[1:]:
        if "$rewindTo" in value:
            ids = [m["id"] for m in messages]
            messages = messages[: ids.index(value["$rewindTo"])]
        elif value.get("type"):
            same = [n for n, m in enumerate(messages) if m.get("id") == value["id"]]
            messages[same[0] if same else len(messages) :][:1] = [value]
            if same:
                messages[same[0]] = value
            else:
                messages.append(value)
    found = [_step()]
    for message in messages:
        content = message.get("content", "")
        texts = [content] if isinstance(content, str) else [p.get("text", "") for p in content]
        if message["type"] == "user" and not texts[0].startswith("/"):
            found[-1].then.extend(texts)
        elif message["type"] == "gemini":
            calls = message.get("toolCalls", ())
            found.append(_step(texts, [call["id"] for call in calls]))
            for call in calls:
                for part in call.get("result") or ():
                    response = part["functionResponse"]
                    found[-1].results[response["id"]] = str(response["response"])
    return [found]


def _copilot(values: Values) -> list[list[Step]]:
    ids = [value.get("id") for value in values]
    for n in [n for n, value in enumerate(values) if value["type"] == "session.snapshot_rewind"]:
        gone = range(ids.index(values[n]["data"]["upToEventId"]), n)
        values = [{"type": ""} if m in gone else value for m, value in enumerate(values)]
    found = [_step()]
    for value in values:
        data = value.get("data", {})
        if data.get("parentToolCallId"):
            continue
        match value["type"]:
            case "user.message":
                found[-1].then.append(data.get("transformedContent") or data["content"])
            case "system.notification" if "<system_notification>" in data["content"]:
                found[-1].then.append(data["content"])
            case "assistant.message" if data["content"] or data.get("toolRequests"):
                calls = [call["toolCallId"] for call in data.get("toolRequests", ())]
                found.append(_step([data["content"]], calls))
            case "tool.execution_complete":
                text = (data.get("result") or {}).get("content") or data.get("error", {}).get(
                    "message"
                )
                found[-1].results[data["toolCallId"]] = text or ""
    return [found]


def _pi(values: Values) -> list[list[Step]]:
    entries = [v for v in values if v["type"] in _PI_ITEMS]
    chain = _chain(values, "id", "parentId", entries[-1])
    chain = [entry for entry in chain if entry["type"] in _PI_ITEMS]
    parts: list[list[Step]] = [[_step()]]
    for place, entry in enumerate(chain):
        if entry["type"] != "compaction":
            _pi_entry(parts[-1], entry)
            continue
        parts.append([_step()])
        parts[-1][-1].then.append(entry["summary"])
        for kept in chain[:place]:
            index = entry.get("firstKeptEntryIndex")
            first = _place(chain, entry.get("firstKeptEntryId"))
            if index is not None:
                is_kept = any(kept is v for v in values[index:])
            else:
                is_kept = place > first <= _place(chain, kept["id"])
            if is_kept and kept["type"] != "compaction":
                _pi_entry(parts[-1], kept)
    return parts


_PI_ITEMS = ("message", "custom_message", "branch_summary", "compaction")


def _place(chain: Values, id_: Any) -> int:
    return next((n for n, entry in enumerate(chain) if entry.get("id") == id_), len(chain))


def _pi_entry(found: list[Step], entry: dict[str, Any]) -> None:
    message = entry.get("message", entry)
    content = message.get("content", message.get("summary"))
    match message.get("role"):
        case "assistant":
            texts = [b["text"] for b in _blocks(content) if b["type"] == "text"]
            calls = [b["id"].split("|")[0] for b in _blocks(content) if b["type"] == "toolCall"]
            stopped = message.get("stopReason") in ("error", "aborted")
            if not stopped and (calls or any(texts)):
                found.append(_step(texts, calls))
        case "toolResult":
            found[-1].results[message["toolCallId"].split("|")[0]] = _text(content)
        case "bashExecution":
            output = message["output"] or "(no output)"
            found[-1].then.append(f"Ran `{message['command']}`\n```\n{output}\n```")
        case _:
            found[-1].then.extend(b["text"] for b in _blocks(content) if b.get("text"))


def _goose(values: Values) -> list[list[Step]]:
    found = [_step()]
    for message in values[0].get("conversation") or values[1:]:
        if message.get("metadata", {}).get("agentVisible") is False:
            continue
        texts = [b["text"] for b in message["content"] if b["type"] == "text"]
        if message["role"] == "assistant":
            calls = [b["id"] for b in message["content"] if b["type"] == "toolRequest"]
            found.append(_step(texts, calls))
            continue
        for block in message["content"]:
            if block["type"] == "toolResponse":
                result = block["toolResult"]
                value = result.get("value")
                content = value["content"] if isinstance(value, dict) else value
                found[-1].results[block["id"]] = result.get("error") or _text(content)
        found[-1].then.extend(texts)
    return [found]


_SAID: dict[str, Callable[[Values], list[list[Step]]]] = {
    "claude-code": _claude, "qwen-code": _qwen, "gemini-cli": _gemini_cli, "copilot-cli": _copilot,
    "pi": _pi, "openclaw": _pi, "goose": _goose,
}  # fmt: skip


def codex_items(values: Values) -> list[list[Any]]:
    """The items of each stretch of a Codex rollout."""
    parts: list[list[Any]] = [[]]
    for value in values:
        payload = value.get("payload", {})
        if value["type"] == "response_item":
            parts[-1].append(payload)
        elif value["type"] == "compacted":
            message = {"type": "message", "role": "user", "content": payload.get("message")}
            parts.append(list(payload.get("replacement_history") or [message]))
        elif payload.get("type") == "thread_rolled_back":
            for _ in range(payload["num_turns"]):
                while parts[-1].pop().get("role") != "user":
                    pass
    return parts


def differences(wanted: list[Step], found: list[Step]) -> Iterator[str]:
    """Where a recording says something else than its log; an answer's texts are compared joined."""
    for number, (one, other) in enumerate(zip(wanted, found, strict=False)):
        for field in ("calls", "results"):
            if getattr(one, field) != getattr(other, field):
                yield f"step {number}: {field}: {getattr(one, field)} != {getattr(other, field)}"
        for field in ("texts", "then"):
            if "\n".join(getattr(one, field)) != "\n".join(getattr(other, field)):
                yield f"step {number}: {field}: {getattr(one, field)} != {getattr(other, field)}"
    if len(wanted) != len(found):
        yield f"{len(wanted)} steps in the log, {len(found)} in the recording"
