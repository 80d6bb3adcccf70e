"""Valid conversations of Gemini's generateContent, from ai.google.dev and google-genai's types."""

from __future__ import annotations

import random
from typing import Any

from soak.newest.talk import Talk, Writer
from soak.newest.words import PIXEL

MODELS = ("gemini-3-flash-preview", "gemini-3.5-flash", "gemini-3.1-pro-preview", "gemini-2.5-pro")
_SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}


def talk(rng: random.Random, steps: int) -> Talk:
    """One conversation of so many steps."""
    return _Gemini(rng).talk(steps)


class _Gemini(Writer):
    def talk(self, steps: int) -> Talk:
        model = self.rng.choice(MODELS)
        self.signs = "gemini-3" in model
        self.ids = self.words.one_in(2)
        self.head: dict[str, Any] = {
            "systemInstruction": {"parts": [{"text": self.words.prose("s", 3)}]},
            "tools": [{"functionDeclarations": [
                {"name": name, "description": "A tool", "parameters": _SCHEMA}
                for name in ("read", "bash")
            ]}],
            "generationConfig": {"maxOutputTokens": 1000},
        }  # fmt: skip
        self._ask()
        self.draw(
            {
                self._say: 2, self._calls: 9, self._code: 2, self._server_tool: 2,
                self._media: 1, self._thought: 2, self._future: 1, self._answered_and_asked: 1,
            },
            steps,
        )  # fmt: skip
        dialect = "gemini-3" if self.signs else "gemini-2.5"
        return Talk("gemini", dialect, "contents", self.head, self.end(), model, {}, self.features)

    def _ask(self) -> None:
        parts: list[Any] = [{"text": self.words.prose("u")}]
        if self.words.one_in(6):
            parts.append({"inlineData": {"mimeType": "image/png", "data": PIXEL}})
        elif self.words.one_in(10):
            parts.append({"fileData": {"mimeType": "text/plain", "fileUri": "files/abc"}})
        self.client.append({"role": "user", "parts": parts})

    def _model(self, *parts: Any) -> None:
        self.model({"role": "model", "parts": list(parts)})

    def _call(self, signed: bool) -> dict[str, Any]:
        call: dict[str, Any] = {
            "name": self.rng.choice(("read", "bash")),
            "args": self.words.arguments(),
        }
        if self.ids:
            call["id"] = self.words.id(8)
        part: dict[str, Any] = {"functionCall": call}
        if signed and self.signs:
            part["thoughtSignature"] = self.words.id(40)
        return part

    def _response(self, part: dict[str, Any]) -> dict[str, Any]:
        call = part["functionCall"]
        kind = self.rng.randrange(6)
        response: Any = {"output": self.words.output()}
        if kind == 0:
            response = {"error": self.words.line("t")}
        elif kind == 1:
            response = {"rows": [{"n": n, "note": self.words.line("t", 3)} for n in range(20)]}
        done: dict[str, Any] = {"name": call["name"], "response": response}
        if self.ids:
            done["id"] = call["id"]
        if kind == 2:
            done["parts"] = [{"inlineData": {"mimeType": "image/png", "data": PIXEL}}]
        return {"functionResponse": done}

    # --- steps ---

    def _say(self) -> None:
        self._model({"text": self.words.prose("m")})
        self._ask()

    def _thought(self) -> None:
        signed = {"thoughtSignature": self.words.id(40)} if self.signs else {}
        self._model({"text": self.words.prose("r"), "thought": True},
                    {"text": self.words.prose("m"), **signed})  # fmt: skip
        self._ask()

    def _calls(self) -> None:
        calls = [self._call(n == 0) for n in range(self.rng.choice((1, 1, 2, 3)))]
        lead: list[Any] = []
        if self.words.one_in(3):
            lead.append({"text": self.words.prose("r"), "thought": True})
        if self.words.one_in(3):
            lead.append({"text": self.words.prose("m")})
        self._model(*lead, *calls)
        responses = [self._response(call) for call in calls]
        self.client.append({"role": self.rng.choice(("user", "user", "function")),
                            "parts": responses})  # fmt: skip

    def _answered_and_asked(self) -> None:
        """A new question directly behind the responses, in a content of its own."""
        self._calls()
        self._ask()

    def _code(self) -> None:
        self._model(
            {"executableCode": {"language": "PYTHON", "code": f"print('{self.words.mark('a')}')"}},
            {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": self.words.output(6)}},
            {"text": self.words.prose("m")},
        )
        self._ask()

    def _server_tool(self) -> None:
        """A tool of the server's, shown by includeServerSideToolInvocations."""
        self.head["toolConfig"] = {"includeServerSideToolInvocations": True}
        id = self.words.id(8)
        signed = {"thoughtSignature": self.words.id(30)} if self.signs else {}
        self._model(
            {"toolCall": {"toolType": "GOOGLE_SEARCH_WEB", "id": id,
                          "args": {"queries": [self.words.line("a")]}}, **signed},
            {"toolResponse": {"toolType": "GOOGLE_SEARCH_WEB", "id": id,
                              "response": {"found": self.words.output(5)}}, **signed},
            {"text": self.words.prose("m")},
        )  # fmt: skip
        self._ask()

    def _media(self) -> None:
        self._model({"text": self.words.prose("m")},
                    {"inlineData": {"mimeType": "image/png", "data": PIXEL}})  # fmt: skip
        self._ask()

    def _future(self) -> None:
        """A part and a field that no page names yet."""
        self._model({"hologram": {"text": self.words.prose("m"), "depth": 2}},
                    {"text": self.words.prose("m"), "partHint": {"n": 1}})  # fmt: skip
        self._ask()
