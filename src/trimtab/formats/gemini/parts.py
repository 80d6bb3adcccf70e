"""Where Gemini's generateContent has its parts: each under the key of its type, in camelCase or
snake_case."""

from __future__ import annotations

from trimtab.formats.engine.parts import PartRow, PartTable, Rows

_SEAL = ("thoughtSignature",)
PART: Rows = {
    "text": (
        PartRow("reasoning", payload=("text",), seal=_SEAL, when=(("thought",), True)),
        PartRow("text", payload=("text",), seal=_SEAL),
    ),
    "inlineData": PartRow("media", payload=("inlineData",)),
    "fileData": PartRow("media", payload=("fileData",)),
    "functionCall": PartRow(
        "call", ("functionCall", "id"), ("functionCall", "name"), ("functionCall", "args"),
        seal=_SEAL,
    ),
    "functionResponse": PartRow(
        "result", ("functionResponse", "id"), ("functionResponse", "name"),
        ("functionResponse", "response"), error=("functionResponse", "response", "error"),
    ),
    "executableCode": PartRow("server-call", ("executableCode", "id")),
    "codeExecutionResult": PartRow("server-result", ("codeExecutionResult", "id")),
}  # fmt: skip

PARTS = PartTable(
    messages="contents",
    roles={"user": "user", "function": "user", None: "user", "model": "assistant"},
    parts={"parts": PART},
    by_key=True,
)
