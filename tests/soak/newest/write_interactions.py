"""Valid conversations of Gemini's Interactions, from ai.google.dev and google-genai's types."""

from __future__ import annotations

import random
from typing import Any

from soak.newest.talk import Talk, Writer
from soak.newest.words import PIXEL

MODELS = ("gemini-3.5-flash", "gemini-3.1-pro-preview")
_SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}


def talk(rng: random.Random, steps: int) -> Talk:
    """One conversation of so many steps."""
    return _Interactions(rng).talk(steps)


class _Interactions(Writer):
    def talk(self, steps: int) -> Talk:
        model = self.rng.choice(MODELS)
        self.head: dict[str, Any] = {
            "model": model, "store": False, "system_instruction": self.words.prose("s", 3),
            "tools": [
                {"type": "function", "name": name, "description": "A tool", "parameters": _SCHEMA}
                for name in ("read", "bash")
            ] + [{"type": "google_search"}, {"type": "code_execution"}],
            "generation_config": {"max_output_tokens": 1000},
        }  # fmt: skip
        self.thinks = self.words.one_in(2)
        self._ask()
        self.draw(
            {
                self._say: 2, self._calls: 9, self._search: 2, self._code: 2,
                self._tool_search: 1, self._mcp: 1, self._future: 1, self._mixed: 1,
            },
            steps,
        )  # fmt: skip
        return Talk(
            "gemini-interactions", "interactions", "input", self.head, self.end(), model, {},
            self.features,
        )  # fmt: skip

    def _text(self, writer: str) -> dict[str, Any]:
        return {"type": "text", "text": self.words.prose(writer)}

    def _ask(self) -> None:
        content = [self._text("u")]
        if self.words.one_in(6):
            content.append({"type": "image", "mime_type": "image/png", "data": PIXEL})
        self.client.append({"type": "user_input", "content": content})

    def _think(self) -> list[Any]:
        if not self.thinks:
            return []
        summary = {"summary": [self._text("r")]} if self.words.one_in(2) else {}
        return [{"type": "thought", "signature": self.words.id(40), **summary}]

    def _output(self) -> dict[str, Any]:
        return {"type": "model_output", "content": [self._text("m")]}

    def _call(self) -> dict[str, Any]:
        return {
            "type": "function_call",
            "id": self.words.id(8),
            "name": self.rng.choice(("read", "bash")),
            "arguments": self.words.arguments(),
        }

    def _result(self, call: dict[str, Any]) -> dict[str, Any]:
        kind = self.rng.randrange(5)
        result: Any = self.words.output()
        if kind == 0:
            result = [{"type": "text", "text": result},
                      {"type": "image", "mime_type": "image/png", "data": PIXEL}]  # fmt: skip
        elif kind == 1:
            result = {"rows": [{"n": n, "note": self.words.line("t", 3)} for n in range(15)]}
        done = {"type": "function_result", "call_id": call["id"], "name": call["name"],
                "result": result}  # fmt: skip
        return {**done, "is_error": True, "result": self.words.line("t")} if kind == 2 else done

    # --- steps ---

    def _say(self) -> None:
        self.model(*self._think(), self._output())
        self._ask()

    def _calls(self) -> None:
        calls = [self._call() for _ in range(self.rng.choice((1, 1, 2, 3)))]
        lead = [self._output()] if self.words.one_in(3) else []
        self.model(*self._think(), *lead, *calls)
        results = [self._result(call) for call in calls]
        if self.words.one_in(3):
            results.reverse()
        self.client += results
        if self.words.one_in(6):
            self._ask()

    def _pair(self, kind: str, arguments: Any, result: Any, **more: Any) -> list[Any]:
        id = self.words.id(8)
        return [
            {"type": f"{kind}_call", "id": id, "arguments": arguments, **more},
            {"type": f"{kind}_result", "call_id": id, "result": result, **more},
        ]

    def _search(self) -> None:
        found = [{"url": "https://a.org", "title": self.words.line("t")} for _ in range(3)]
        pair = self._pair("google_search", {"queries": [self.words.line("a")]}, found,
                          signature=self.words.id(20))  # fmt: skip
        self.model(*self._think(), *pair, self._output())
        self._ask()

    def _code(self) -> None:
        code = {"language": "python", "code": f"print('{self.words.mark('a')}')"}
        self.model(*self._pair("code_execution", code, self.words.output()), self._output())
        self._ask()

    def _mixed(self) -> None:
        """A tool of the server's and one of the client's in one answer."""
        code = {"language": "python", "code": f"print('{self.words.mark('a')}')"}
        call = self._call()
        self.model(*self._think(), *self._pair("code_execution", code, self.words.output()), call)
        self.client.append(self._result(call))

    def _tool_search(self) -> None:
        found = [{"type": "function", "name": f"{self.words.id(5)}_found", "parameters": _SCHEMA}]
        pair = self._pair("tool_search", {"query": self.words.line("a")}, found)
        self.model(*self._think(), *pair, call := self._call())
        self.client.append(self._result(call))

    def _mcp(self) -> None:
        pair = self._pair("mcp_server_tool", self.words.arguments(), self.words.output(),
                          name="ask", server_name="hub")  # fmt: skip
        self.model(*pair, self._output())
        self._ask()

    def _future(self) -> None:
        """Steps that no page names yet, alone and in a pair."""
        pair = self._pair("hologram", {"q": self.words.line("a")}, self.words.output(4))
        alone = {"type": "hologram", "text": self.words.prose("m")}
        self.model(*self.rng.choice((pair, [alone])), self._output())
        self._ask()
