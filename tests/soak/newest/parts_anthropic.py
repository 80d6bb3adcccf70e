"""Blocks of Anthropic's messages, as its pages and SDK types have them."""

from __future__ import annotations

from typing import Any

from soak.newest.talk import UNSIGNED, Writer
from soak.newest.words import PIXEL

CODE = "code_execution_20260120"
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}


class Parts(Writer):
    """Draws blocks.  ``thinking``: the mode, "" for none; ``deferred``: tools not loaded yet."""

    thinking: str
    deferred: list[str]

    def _tools(self) -> list[dict[str, Any]]:
        tools: list[dict[str, Any]] = [
            {"name": "read", "description": "Read a file", "input_schema": SCHEMA},
            {"name": "bash", "description": "Run a command", "input_schema": SCHEMA},
            {"name": "query", "input_schema": SCHEMA, "allowed_callers": [CODE]},
            {"name": "ToolSearch", "description": "Find tools", "input_schema": SCHEMA},
            {"type": CODE, "name": "code_execution"},
            {"type": "web_search_20260318", "name": "web_search"},
            {"type": "tool_search_tool_regex_20251119", "name": "tool_search_tool_regex"},
        ]
        self.deferred = [f"{self.words.id(4)}_lookup_{n}" for n in range(6)]
        tools += [
            {"name": name, "description": "Look up", "input_schema": SCHEMA, "defer_loading": True}
            for name in self.deferred
        ]
        return tools

    def _think(self) -> list[Any]:
        if not self.thinking:
            return []
        if self.words.one_in(8):
            return [{"type": "redacted_thinking", "data": self.words.id(40)}]
        text = self.words.prose("r")
        return [{"type": "thinking", "thinking": text, "signature": UNSIGNED}]

    def _text(self, writer: str = "m") -> dict[str, Any]:
        return {"type": "text", "text": self.words.prose(writer)}

    def _lead(self) -> list[Any]:
        return [*self._think(), *([self._text()] if self.words.one_in(2) else [])]

    def _use(self, name: str = "", **more: Any) -> dict[str, Any]:
        return {
            "type": "tool_use", "id": f"toolu_{self.words.id()}",
            "name": name or self.rng.choice(("read", "bash")), "input": self.words.arguments(),
            **more,
        }  # fmt: skip

    def _server(self, name: str, **more: Any) -> dict[str, Any]:
        return {
            "type": "server_tool_use", "id": f"srvtoolu_{self.words.id()}", "name": name,
            "input": self.words.arguments(), **more,
        }  # fmt: skip

    def _hits(self, use: dict[str, Any], **more: Any) -> dict[str, Any]:
        found = [
            {
                "type": "web_search_result", "url": f"https://{self.words.id()}.org",
                "title": self.words.line("t"), "encrypted_content": self.words.id(60),
            }
            for _ in range(self.rng.randint(1, 4))
        ]  # fmt: skip
        return {
            "type": "web_search_tool_result",
            "tool_use_id": use["id"],
            "content": found,
            **more,
        }

    def _ran(self, use: dict[str, Any], encrypted: bool = False) -> dict[str, Any]:
        content: dict[str, Any] = {
            "type": "code_execution_result", "stdout": self.words.output(8), "stderr": "",
            "return_code": 0, "content": [],
        }  # fmt: skip
        if encrypted:
            content = {
                "type": "encrypted_code_execution_result", "encrypted_stdout": self.words.id(80),
                "stderr": "", "return_code": 0, "content": [],
            }  # fmt: skip
        return {"type": "code_execution_tool_result", "tool_use_id": use["id"], "content": content}

    def _result(self, use: dict[str, Any], content: Any = None, plain: bool = False) -> Any:
        done: dict[str, Any] = {"type": "tool_result", "tool_use_id": use["id"]}
        kind = 0 if plain else self.rng.randrange(9)
        if content is not None:
            done["content"] = content
        elif kind < 5:
            done["content"] = self.words.output()
        elif kind == 5:
            done["content"] = [{"type": "text", "text": self.words.output()}, image()]
        elif kind == 6:
            done |= {"content": f"error: {self.words.line('t')}", "is_error": True}
        elif kind == 7:
            done["content"] = [
                {"type": "text", "text": self.words.output()},
                {"type": "hologram", "text": self.words.line("t")},
            ]
        elif self.words.one_in(2):
            done["content"] = []
        return done


def image() -> dict[str, Any]:
    source = {"type": "base64", "media_type": "image/png", "data": PIXEL}
    return {"type": "image", "source": source}
