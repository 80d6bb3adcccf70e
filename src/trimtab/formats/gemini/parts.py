"""Where Gemini's generateContent has its parts: each under the key of its type, in camelCase or
snake_case."""

from __future__ import annotations

from trimtab.formats.engine.parts import PartRow, PartTable, Rows, ToolTable

_SEAL = ("thoughtSignature",)
_CALL = PartRow(
    "call", ("functionCall", "id"), ("functionCall", "name"), ("functionCall", "args"), seal=_SEAL
)
_RESPONSE = PartRow(
    "result", ("functionResponse", "id"), ("functionResponse", "name"),
    ("functionResponse", "response"), error=("functionResponse", "response", "error"),
    text=("functionResponse", "response", "result"), written=("id", "name", "payload", "error"),
)  # fmt: skip
PART: Rows = {
    "text": (
        PartRow("reasoning", payload=("text",), seal=_SEAL, when=(("thought",), True)),
        PartRow("text", payload=("text",), seal=_SEAL),
    ),
    "inlineData": PartRow("media", payload=("inlineData",)),
    "fileData": PartRow("media", payload=("fileData",)),
    "functionCall": _CALL,
    "functionResponse": _RESPONSE,
    "executableCode": PartRow("server-call", ("executableCode", "id")),
    "codeExecutionResult": PartRow("server-result", ("codeExecutionResult", "id")),
}

PARTS = PartTable(
    messages="contents",
    roles={"user": "user", "function": "user", None: "user", "model": "assistant"},
    parts={"parts": PART},
    by_key=True,
    ids_optional=True,
    call=("functionCall", _CALL),
    result=("functionResponse", _RESPONSE),
    tools=ToolTable(
        within=("functionDeclarations", 0), choice=("toolConfig", "functionCallingConfig")
    ),
)
