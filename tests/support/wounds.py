"""What becomes of a request behind the story: habits of clients, and harm to what is written.

``habit`` writes the same in a way that most providers accept too; ``hurt`` does harm that a story
cannot tell: to fields, ids and spellings of one format.  Both change a request in place.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from typing import Any

Items = list[Any]
Change = Callable[[random.Random, Items], None]
KEYS = ("messages", "contents", "input")
LONG = "2024-05-01T12:00:00Z INFO worker-7 request 5f3a9c done in 12 ms, cached\n" * 1_400
MARK = {"type": "ephemeral"}


def items_of(request: Any) -> Items:
    """The list of messages, contents or items."""
    if isinstance(request, list):
        return request
    found: Items = next(request[key] for key in KEYS if key in request)
    return found


def habit(rng: random.Random, request: Any, format: str) -> None:
    """One habit of a client."""
    items = items_of(request)
    if isinstance(request, dict) and rng.random() < 0.3:
        request |= rng.choice(HEADS.get(format, [{}]))
    rng.choice([*HABITS.get(format, []), _two_in_a_row, _long])(rng, items)


def hurt(rng: random.Random, request: Any, format: str) -> None:
    """One harm."""
    items = items_of(request)
    if items:
        rng.choice([*HARM, *OWN_HARM.get(format, [])])(rng, items)
    for item in items:
        if format == "gemini" and item.get("role") == "function" and not item.get("parts"):
            item["role"] = "user"  # else it reads as a message of OpenAI's


def refer_to_tools(request: Any) -> None:
    """References in tool results name a tool that is declared, where any is."""
    if not isinstance(request, dict) or not request.get("tools"):
        return
    for item in items_of(request):
        for part in _content(item):
            for inner in _content(part) if "tool_use_id" in part else ():
                if inner.get("type") == "tool_reference":
                    inner["tool_name"] = request["tools"][0]["name"]


# --- habits ---------------------------------------------------------------------------------------

HEADS: dict[str, list[dict[str, Any]]] = {
    "openai-chat": [{"max_completion_tokens": 512}, {"metadata": {"user_id": "u_1"}}],
    "anthropic": [{"temperature": 1.0}, {"metadata": {"user_id": "u_1"}}],
}


def _content(item: Any) -> Items:
    """The parts of a message, where it is a list of parts."""
    found = item.get("content", item.get("parts")) if isinstance(item, dict) else None
    return found if isinstance(found, list) else []


def _two_in_a_row(rng: random.Random, items: Items) -> None:
    """Somebody who says something says it again, in a message of its own."""
    said = [n for n, item in enumerate(items) if _is_said(item)]
    if said:
        number = rng.choice(said)
        items.insert(number, copy.deepcopy(items[number]))


def _is_said(item: Any) -> bool:
    """Whether a message has words alone."""
    content = item.get("content") or item.get("parts")
    words = isinstance(content, str) or (
        bool(content) and all("text" in part and "thought" not in part for part in content)
    )
    calls = item.get("tool_calls") or item.get("function_call")
    return words and not calls and item.get("role") not in ("tool", "function")


def _long(rng: random.Random, items: Items) -> None:
    """A text of a hundred thousand characters."""
    texts = [part for item in items for part in _content(item) if "text" in part]
    texts += [item for item in items if isinstance(item.get("content"), str)]
    if texts and rng.random() < 0.2:
        found = rng.choice(texts)
        found["text" if "text" in found else "content"] = LONG


def _legacy(rng: random.Random, items: Items) -> None:
    """A call and its result as they were before there were tool calls."""
    for number, item in enumerate(items[:-1]):
        calls = item.get("tool_calls") or ()
        if len(calls) == 1 and items[number + 1].get("role") == "tool":
            name = calls[0]["function"]["name"]
            items[number] = {"role": "assistant", "content": item["content"],
                             "function_call": calls[0]["function"]}  # fmt: skip
            content = items[number + 1]["content"]
            items[number + 1] = {"role": "function", "name": name, "content": content}
            return


def _marked(rng: random.Random, items: Items) -> None:
    """A cache breakpoint at a text of the user."""
    for item in items:
        if item.get("role") == "user" and isinstance(item.get("content"), str):
            item["content"] = [{"type": "text", "text": item["content"], "cache_control": MARK}]
            return


def _function_role(rng: random.Random, items: Items) -> None:
    """Responses under the role ``function``."""
    for item in items:
        if any("functionResponse" in part for part in _content(item)):
            item["role"] = "function"


def _one_sided_ids(rng: random.Random, items: Items) -> None:
    """Ids on calls alone, on responses alone, or on some of them."""
    call, response = ("functionCall",), ("functionResponse",)
    gone = rng.choice((call, response, call + response))
    for item in items:
        for number, part in enumerate(_content(item)):
            for key in gone if len(gone) == 1 or number % 2 else ():
                part.get(key, {}).pop("id", None)


def _odd_name(rng: random.Random, items: Items) -> None:
    """A tool under a name with a colon, and one that found nothing."""
    for item in items:
        for part in _content(item):
            for inner in (part.get("functionCall"), part.get("functionResponse")):
                if inner and inner["name"] == "edit":
                    inner["name"] = "default_api:edit"
                    if inner.get("response"):
                        inner["response"] = {"rows": []}


HABITS: dict[str, list[Change]] = {
    "openai-chat": [_legacy, _marked],
    "anthropic": [_marked],
    "gemini": [_function_role, _one_sided_ids, _odd_name],
}

# --- harm -----------------------------------------------------------------------------------------


def _dropped(rng: random.Random, items: Items) -> None:
    if len(items) > 1:
        del items[rng.randrange(len(items))]


def _headless(rng: random.Random, items: Items) -> None:
    del items[: rng.randrange(min(4, len(items)))]


def _doubled(rng: random.Random, items: Items) -> None:
    items.insert(rng.randrange(len(items)), copy.deepcopy(rng.choice(items)))


def _swapped(rng: random.Random, items: Items) -> None:
    one, other = rng.randrange(len(items)), rng.randrange(len(items))
    items[one], items[other] = items[other], items[one]


def _moved(rng: random.Random, items: Items) -> None:
    items.append(items.pop(rng.randrange(len(items))))


def _field(value: Any) -> Change:
    """The content of a message is this; text only where a provider takes text."""

    def change(rng: random.Random, items: Items) -> None:
        item = rng.choice(items)
        key = next((k for k in ("content", "parts", "output", "result") if k in item), "content")
        if not value or isinstance(item.get("content"), (str, list)):
            item[key] = copy.deepcopy(value)

    return change


def _without_content(rng: random.Random, items: Items) -> None:
    item = rng.choice(items)
    for key in ("content", "parts", "output"):
        item.pop(key, None)


def _blank(rng: random.Random, items: Items) -> None:
    """A blank text among parts, now and then with a cache breakpoint."""
    parts = _content(rng.choice(items))
    text = next((p for p in parts if isinstance(p.get("text"), str)), None)
    if text is not None:
        blank = {**text, "text": rng.choice(("", " \n", "\n\n"))}
        if "type" in text and rng.random() < 0.3:
            blank["cache_control"] = MARK
        parts.insert(rng.randrange(len(parts) + 1), blank)


def _odd_id(rng: random.Random, items: Items) -> None:
    """A call and its result, or every call of one id, under an id that few providers take."""
    odd = rng.choice(("functions.read:0 1", "a b/ü", "i" * 90, "", "rs_1", "item-7"))
    holders = [(holder, key) for item in items for holder, key in _ids(item)]
    if holders:
        holder, key = rng.choice(holders)
        old = holder[key]
        for other, name in holders:
            if other[name] == old and (rng.random() < 0.8 or other is holder):
                other[name] = odd


def _twin_id(rng: random.Random, items: Items) -> None:
    """A call has the id of another."""
    holders = [(holder, key) for item in items for holder, key in _ids(item)]
    if len(holders) > 1:
        (one, key), (other, name) = rng.sample(holders, 2)
        one[key] = other[name]


def _ids(item: Any) -> Items:
    """(object, key) of every id of a call or result in a message."""
    found = [(item, key) for key in ("tool_call_id", "call_id") if key in item]
    found += [(call, "id") for call in item.get("tool_calls") or ()]
    for part in _content(item):
        if not isinstance(part, dict):
            continue
        inner = next((v for k, v in part.items() if k.startswith(("tool", "function"))
                      and isinstance(v, dict)), part)  # fmt: skip
        keys = ("toolUseId", "tool_use_id", "id")
        found += [(inner, key) for key in keys if isinstance(inner.get(key), str)]
    return found


def _parts_with(items: Items, key: str) -> Items:
    return [part for item in items for part in _content(item) if key in part]


def _inserted(*parts: dict[str, Any]) -> Change:
    """One of these parts stands in a message of parts."""

    def change(rng: random.Random, items: Items) -> None:
        found = [content for item in items if (content := _content(item))]
        if found:
            content = rng.choice(found)
            content.insert(rng.randrange(len(content) + 1), copy.deepcopy(rng.choice(parts)))

    return change


def _everywhere(part: dict[str, Any]) -> Change:
    """This part at the end of every message."""

    def change(rng: random.Random, items: Items) -> None:
        for item in items:
            _content(item).append(copy.deepcopy(part))

    return change


def _changed(key: str, *changes: dict[str, Any]) -> Change:
    """One object under this key has one of these fields changed."""

    def change(rng: random.Random, items: Items) -> None:
        found = _parts_with(items, key)
        if found:
            rng.choice(found)[key].update(copy.deepcopy(rng.choice(changes)))

    return change


def _assistant(rng: random.Random, items: Items) -> None:
    """Another provider's name for the model's role."""
    rng.choice(items)["role"] = "assistant"


def _unsigned(rng: random.Random, items: Items) -> None:
    """Signatures are gone: of one part, or of all."""
    found = _parts_with(items, "thoughtSignature")
    for part in found if rng.random() < 0.5 else found[:1]:
        del part["thoughtSignature"]


HARM: list[Change] = [
    _dropped, _headless, _doubled, _swapped, _moved, _field(None), _field([]), _field(""),
    _field("plain words"), _blank, _blank, _odd_id, _odd_id, _twin_id,
]  # fmt: skip
POINT = {"cachePoint": {"type": "default"}}
DOCX = {"document": {"name": "Report", "format": "docx", "source": {"bytes": "UEsDBBQ="}}}
OWN_HARM: dict[str, list[Change]] = {
    "anthropic": [
        _inserted({"type": "web_search_tool_result", "tool_use_id": "srvtoolu_9", "content": []}),
        _inserted({"type": "tool_result", "tool_use_id": "lost", "content": "who asked?"}),
    ],
    "bedrock": [
        _inserted(POINT, DOCX), _everywhere(POINT),
        _inserted({"reasoningContent": {"reasoningText": {"text": "hm"}}}),
        _changed("toolUse", {"name": "mcp.read file"}, {"input": '{"path": "a"}'}),
        _changed("toolResult", {"content": [{"json": [1, 2]}]}, {"content": "done"},
                 {"content": [], "status": "error"}),
    ],
    "gemini": [
        _without_content, _inserted({"thoughtSignature": "c2ln"}), _assistant, _unsigned,
        _changed("functionCall", {"args": '{"path": "a"}'}),
        _changed("functionResponse", {"response": "plain text"}),
    ],
    "openai-responses": [
        _without_content, _dropped, _headless, _moved, _swapped,
    ],
}  # fmt: skip
