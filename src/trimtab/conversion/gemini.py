"""Reads Gemini generateContent into a neutral request, and writes one.

Takes both spellings of keys, camelCase and snake_case.  A call without a signature is sent with
the placeholder that Google documents.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from trimtab.conversion import media as medium
from trimtab.conversion.gemini_response import read_response, write_response
from trimtab.conversion.ids import ConversionTarget, NameRules, Ordinals
from trimtab.conversion.neutral_request import (
    CallPart,
    ConversionLog,
    MediaPart,
    NeutralRequest,
    NeutralTurn,
    Part,
    ReasoningPart,
    ResultPart,
    Setting,
    TextPart,
    Tool,
    ToolChoice,
    write_settings,
)
from trimtab.conversion.tool_payloads import arguments_of
from trimtab.conversion.turn_order import OrderedTurn, TargetRules, choice_for, ordered, tools_for
from trimtab.formats.gemini.pairs import PairKey, paired
from trimtab.jsontext.paths import Path

name_rules = NameRules(names="a-zA-Z0-9_.:-", longest_name=64, first_of_name="a-zA-Z_")
"""Names begin with a letter or underscore, 64 chars of letters, digits, ``_.:-`` (API reference,
FunctionDeclaration); ids are free."""

SKIP = "skip_thought_signature_validator"
"""Documented for calls that another model made (also used by gemini-cli and vercel/ai)."""
_SKIPS = frozenset((SKIP, "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I=",
                    "context_engineering_is_the_way_to_go"))  # fmt: skip

_CONFIG = {
    "maxOutputTokens": "max_output", "temperature": "temperature", "topP": "top_p",
    "topK": "top_k", "stopSequences": "stop", "seed": "seed",
}  # fmt: skip
_WRITTEN = {name: key for key, name in _CONFIG.items()}
_BODY = frozenset(("contents", "systemInstruction", "tools", "toolConfig", "generationConfig"))
_PART = frozenset(("text", "thought", "thoughtSignature", "functionCall", "functionResponse",
                   "inlineData", "fileData"))  # fmt: skip
_CALL = frozenset(("id", "name", "args"))
_RESPONSE = frozenset(("id", "name", "response", "parts"))
_DECLARATION = frozenset(("name", "description", "parameters", "parametersJsonSchema"))
_MODES = {"AUTO": "auto", "NONE": "none", "ANY": "any", "VALIDATED": "auto"}

# --- reading -------------------------------------------------------------------------------------


def camel(value: Any) -> Any:
    """An object with its keys in camelCase (one level: what is inside may be the user's own)."""
    if not isinstance(value, dict):
        return value
    if not any("_" in key for key in value):
        return value
    return {_camel(key): item for key, item in value.items()}


def _camel(key: str) -> str:
    first, *rest = key.split("_")
    return first + "".join(word.capitalize() for word in rest)


def read(tree: Any, log: ConversionLog) -> NeutralRequest:
    """A body, or a bare list of contents."""
    if isinstance(tree, list):
        return NeutralRequest(tuple(_turns(tree, (), log)), bare=True)
    body = camel(tree)
    log.rest(body, _BODY | {"model"}, ())
    turns = _turns(body.get("contents") or [], ("contents",), log)
    head = camel(body.get("systemInstruction"))
    if head:
        parts = head if isinstance(head, list) else head.get("parts") if isinstance(head, dict) \
            else [{"text": head}]  # fmt: skip
        path: Path = ("systemInstruction", "parts")
        texts = _parts(parts, path, Ordinals(), log)
        turns.insert(0, NeutralTurn("system", tuple(texts), path[:1]))
    settings: dict[str, Setting] = {}
    if body.get("model"):
        settings["model"] = Setting(body["model"], ("model",))
    config = camel(body.get("generationConfig") or {})
    for key, name in _CONFIG.items():
        if config.get(key) is not None:
            settings[name] = Setting(config[key], ("generationConfig", key))
    log.rest(config, frozenset(_CONFIG), ("generationConfig",))
    tools = body.get("tools") or []
    tools = _tools(tools if isinstance(tools, list) else [tools], log)
    return NeutralRequest(tuple(turns), tools, _choice(body, log), settings)


def _turns(contents: Any, base: Path, log: ConversionLog) -> list[NeutralTurn]:
    unnamed = Ordinals()
    turns: list[NeutralTurn] = []
    for number, content in enumerate(contents):
        path = (*base, number)
        log.rest(content, frozenset(("role", "parts")), path)
        parts = _parts(content.get("parts"), (*path, "parts"), unnamed, log)
        role: Any = "assistant" if content.get("role") == "model" else "user"
        turns.append(NeutralTurn(role, tuple(parts), path))
    return [turn for run in _runs(turns) for turn in _with_ids(run, unnamed)]


def _runs(turns: list[NeutralTurn]) -> Iterator[list[NeutralTurn]]:
    """What the model said in a row, with what came before it spoke again."""
    run: list[NeutralTurn] = []
    for turn in turns:
        if run and turn.role == "assistant" != run[-1].role:
            yield run
            run = []
        run.append(turn)
    yield run


def _with_ids(run: list[NeutralTurn], unnamed: Ordinals) -> list[NeutralTurn]:
    """The turns with each result under the id of the call it answers."""
    calls = [p for turn in run for p in turn.parts if isinstance(p, CallPart)]
    results = [p for turn in run for p in turn.parts if isinstance(p, ResultPart)]
    if not results:
        return run
    pairs = paired(
        [PairKey("" if call.id in unnamed.made else call.id, call.name) for call in calls],
        [PairKey(result.id, result.name) for result in results],
    )
    ids = iter(
        (result.id or f"{result.name}:unasked") if index is None else calls[index].id
        for result, index in zip(results, pairs, strict=True)
    )
    return [
        turn._replace(parts=tuple(
            part._replace(id=next(ids)) if isinstance(part, ResultPart) else part
            for part in turn.parts
        ))
        for turn in run
    ]  # fmt: skip


def _parts(items: Any, path: Path, unnamed: Ordinals, log: ConversionLog) -> list[Part]:
    parts: list[Part] = []
    for number, item in enumerate(items or ()):
        parts += _part(camel(item), (*path, number), unnamed, log)
    return parts


def _part(item: Any, path: Path, unnamed: Ordinals, log: ConversionLog) -> list[Part]:
    signature = item.get("thoughtSignature")
    if signature and signature not in _SKIPS:
        log.lose((*path, "thoughtSignature"), "signature", "another provider refuses it")
    if "functionCall" in item:
        inner = camel(item["functionCall"])
        where = (*path, "functionCall")
        log.rest(inner, _CALL, where)
        name = str(inner.get("name") or "")
        arguments = arguments_of(inner.get("args"), (*where, "args"), log)
        return [CallPart(str(inner.get("id") or "") or unnamed.call(name), name, arguments, path)]
    if "functionResponse" in item:
        return [_result(camel(item["functionResponse"]), path, log)]
    log.rest(item, _PART, path)
    if item.get("thought"):
        return [ReasoningPart(str(item.get("text") or ""), path)]
    if isinstance(item.get("text"), str):
        return [TextPart(item["text"], (*path, "text"))] if item["text"] else []
    media = _media(item, path)
    return [media] if media else []


def _result(inner: Any, path: Path, log: ConversionLog) -> ResultPart:
    """A result under its given id, if it has one; ``_with_ids`` names the call it answers."""
    where = (*path, "functionResponse")
    log.rest(inner, _RESPONSE, where)
    items, error = read_response(inner.get("response"), (*where, "response"))
    for number, item in enumerate(inner.get("parts") or ()):
        media_part = _media(camel(item), (*where, "parts", number))
        if media_part:
            items.append(media_part)
        else:
            log.lose((*where, "parts", number), "part of a result")
    name = str(inner.get("name") or "")
    return ResultPart(str(inner.get("id") or ""), name, tuple(items), path, error)


def _media(item: Any, path: Path) -> MediaPart | None:
    inline, stored = camel(item.get("inlineData")), camel(item.get("fileData"))
    if inline:
        mime = str(inline.get("mimeType") or "application/octet-stream")
        data = medium.base64_of(inline.get("data"))
        name = str(inline.get("displayName") or "")
        return MediaPart(medium.kind_of(mime), mime, path, data=data, name=name)
    if stored:
        mime = str(stored.get("mimeType") or "application/octet-stream")
        name = str(stored.get("displayName") or "")
        return MediaPart(
            medium.kind_of(mime), mime, path, url=str(stored.get("fileUri")), name=name
        )
    return None


def _tools(tools: Any, log: ConversionLog) -> tuple[Tool, ...]:
    converted = []
    for number, item in enumerate(tools):
        item = camel(item)
        path: Path = ("tools", number)
        log.rest(item, frozenset(("functionDeclarations",)), path)
        for index, declaration in enumerate(item.get("functionDeclarations") or ()):
            inner, where = camel(declaration), (*path, "functionDeclarations", index)
            log.rest(inner, _DECLARATION, where)
            schema = inner.get("parametersJsonSchema") or _plain(inner.get("parameters"))
            about = str(inner.get("description") or "")
            converted.append(Tool(str(inner.get("name")), about, schema, where))
    return tuple(converted)


def _plain(schema: Any) -> Any:
    """An OpenAPI schema as JSON Schema: types in lower case (keys of ``properties`` are names)."""
    if not isinstance(schema, dict):
        return schema
    out: dict[str, Any] = {}
    for key, value in schema.items():
        if key == "type" and isinstance(value, str):
            out[key] = value.lower()
        elif key == "properties" and isinstance(value, dict):
            out[key] = {name: _plain(inner) for name, inner in value.items()}
        elif key in ("anyOf", "any_of") and isinstance(value, list):
            out["anyOf"] = [_plain(inner) for inner in value]
        else:
            out[key] = _plain(value) if key == "items" else value
    return out


def _choice(body: Any, log: ConversionLog) -> ToolChoice | None:
    config = camel(body.get("toolConfig") or {})
    log.rest(config, frozenset(("functionCallingConfig",)), ("toolConfig",))
    inner = camel(config.get("functionCallingConfig") or {})
    path: Path = ("toolConfig", "functionCallingConfig")
    mode: Any = _MODES.get(str(inner.get("mode", "")).upper())
    allowed = inner.get("allowedFunctionNames") or []
    if mode == "any" and len(allowed) == 1:
        return ToolChoice("tool", path, str(allowed[0]))
    if allowed:
        log.lose((*path, "allowedFunctionNames"), "allowed tools")
    return ToolChoice(mode, path) if mode else None


# --- writing -------------------------------------------------------------------------------------

_TARGET_RULES = TargetRules(begins_with_user=True, ends_with_user=True)


def write(neutral: NeutralRequest, target: ConversionTarget, log: ConversionLog) -> Any:
    """A body, without the model: Gemini has it in the URL."""
    shaped = ordered(neutral, _TARGET_RULES, log)
    body: dict[str, Any] = {}
    head = [part for turn in shaped.head for part in turn.parts if isinstance(part, TextPart)]
    if head:
        body["systemInstruction"] = {"parts": [{"text": part.text} for part in head]}
    writer = _Writer(target, log, _names(neutral))
    body["contents"] = [content for step in shaped.steps for content in writer.step(step)]
    tools = tools_for(neutral, _TARGET_RULES, log)
    if tools:
        body["tools"] = [{"functionDeclarations": [_write_tool(t, target) for t in tools]}]
    choice = choice_for(neutral, tools, log)
    if choice:
        config: dict[str, Any] = {"mode": "ANY" if choice.mode == "tool" else choice.mode.upper()}
        if choice.mode == "tool":
            config["allowedFunctionNames"] = [target.names(choice.name)]
        body["toolConfig"] = {"functionCallingConfig": config}
    settings = dict(neutral.settings)
    if "model" in settings:
        log.notes["the model is named in the URL, not in the body"] += 1
        del settings["model"]
    config = write_settings(replace(neutral, settings=settings), _WRITTEN, log)
    if config:
        body["generationConfig"] = config
    return body


def _names(neutral: NeutralRequest) -> dict[str, str]:
    return {call.id: call.name for call in neutral.calls}


class _Writer:
    """Steps to contents; a result must carry the name of its tool."""

    def __init__(self, target: ConversionTarget, log: ConversionLog, names: dict[str, str]) -> None:
        self.target, self.log, self.tools = target, log, names
        self.signs = not target.is_of("gemini-1", "gemini-2")
        self.nests = self.signs

    def step(self, step: OrderedTurn) -> list[Any]:
        """One or two contents: results stand apart from what the user said."""
        if step.role == "assistant":
            parts = self._model_parts(step.parts)
            for part in step.parts:
                if isinstance(part, CallPart):
                    self.tools[part.id] = part.name
            return [{"role": "model", "parts": parts}, *self._results(step.results)]
        results = [part for part in step.parts if isinstance(part, ResultPart)]
        spoken = [
            self._media_or_text(p) for p in step.parts if isinstance(p, (TextPart, MediaPart))
        ]
        said = [{"role": "user", "parts": spoken}] if spoken else []
        return self._results(results) + said

    def _model_parts(self, parts: list[Part]) -> list[Any]:
        out: list[Any] = []
        signed = not self.signs
        for part in parts:
            if isinstance(part, CallPart):
                name, call_id = self.target.names(part.name), self.target.ids(part.id)
                made: dict[str, Any] = {
                    "functionCall": {"id": call_id, "name": name, "args": part.arguments}
                }
                if not signed:  # only the first call of a step carries one
                    made["thoughtSignature"] = SKIP
                    self.log.notes["calls given the signature that asks for no check"] += 1
                signed = True
                out.append(made)
            else:
                out.append(self._media_or_text(part))
        return out

    def _media_or_text(self, part: Any) -> Any:
        if isinstance(part, MediaPart):
            return _write_media(part) or {"text": medium.named(part, self.log).text}
        return {"text": part.text}

    def _results(self, results: list[ResultPart]) -> list[Any]:
        parts: list[Any] = []
        beside: list[Any] = []
        for result in results:
            media = [item for item in result.items if isinstance(item, MediaPart)]
            inner: dict[str, Any] = {
                "id": self.target.ids(result.id),
                "name": self.target.names(result.name or self.tools.get(result.id) or "tool"),
                "response": write_response(result, self.log),
            }
            if media and self.nests:
                inner["parts"] = [self._inner(item) for item in media]
                inner["parts"] = [part for part in inner["parts"] if part]
            elif media:
                for item in media:
                    self.log.lose(item.path, f"{item.kind} in a result", "stands behind it")
                beside += [self._media_or_text(item) for item in media]
            parts.append({"functionResponse": inner})
        return [{"role": "user", "parts": parts + beside}] if parts else []

    def _inner(self, item: MediaPart) -> Any:
        written = _write_media(item)
        if written is None:
            medium.named(item, self.log)
        return written


def _write_media(part: MediaPart) -> Any:
    if part.data:
        named = {"displayName": part.name} if part.name else {}
        return {"inlineData": {"mimeType": part.mime, "data": part.data, **named}}
    if part.url.startswith(("http:", "https:", "gs:")):
        return {"fileData": {"mimeType": part.mime, "fileUri": part.url}}
    return None


def _write_tool(tool: Tool, target: ConversionTarget) -> Any:
    out: dict[str, Any] = {"name": target.names(tool.name)}
    out |= {"description": tool.description} if tool.description else {}
    return {**out, "parametersJsonSchema": tool.schema}
