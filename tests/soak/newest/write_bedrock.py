"""Valid conversations of Bedrock's Converse, from its service model and the user guide."""

from __future__ import annotations

import random
from typing import Any

from soak.newest.talk import Talk, Writer
from soak.newest.words import PIXEL

MODELS = (
    "us.anthropic.claude-opus-4-8-v1:0",
    "amazon.nova-2-pro-v1:0",
    "us.anthropic.claude-sonnet-5",
)
_SCHEMA = {"json": {"type": "object", "properties": {"path": {"type": "string"}}}}


def talk(rng: random.Random, steps: int) -> Talk:
    """One conversation of so many steps."""
    return _Bedrock(rng).talk(steps)


class _Bedrock(Writer):
    def talk(self, steps: int) -> Talk:
        model = self.rng.choice(MODELS)
        self.claude = "claude" in model
        tools: list[Any] = [
            {"toolSpec": {"name": name, "description": "A tool", "inputSchema": _SCHEMA}}
            for name in ("read", "bash", "lookup")
        ]
        if not self.claude:
            tools.append({"systemTool": {"name": "nova_code_interpreter"}})
        system: list[Any] = [{"text": self.words.prose("s", 3)}]
        if self.words.one_in(3):
            ttl = {"ttl": "1h"} if self.claude and self.words.one_in(2) else {}
            system.append({"cachePoint": {"type": "default", **ttl}})
        self.head: dict[str, Any] = {
            "system": system, "toolConfig": {"tools": tools},
            "inferenceConfig": {"maxTokens": 1000},
        }  # fmt: skip
        self.thinking = self.claude and self.words.one_in(3)
        self.images = 0
        self._ask()
        claude = 1 if self.claude else 0
        self.draw(
            {
                self._say: 2, self._calls: 9, self._json: 2, self._document: 1,
                self._system: 2 * claude, self._changed_tools: claude, self._cited: claude,
                self._ran_by_server: 2 * (1 - claude), self._future: 1, self._cache: 1,
            },
            steps,
        )  # fmt: skip
        dialect = "bedrock-claude" if self.claude else "bedrock-nova"
        return Talk("bedrock", dialect, "messages", self.head, self.end(), model, {}, self.features)

    def _image(self) -> list[Any]:
        self.images += 1
        if self.images > 15:
            return []
        return [{"image": {"format": "png", "source": {"bytes": PIXEL}}}]

    def _think(self) -> list[Any]:
        if not self.thinking:
            return []
        text = {"text": self.words.prose("r"), "signature": self.words.id(40)}
        return [{"reasoningContent": {"reasoningText": text}}]

    def _use(self, **more: Any) -> dict[str, Any]:
        return {
            "toolUse": {
                "toolUseId": f"tooluse_{self.words.id()}",
                "name": self.rng.choice(("read", "bash")), "input": self.words.arguments(), **more,
            }
        }  # fmt: skip

    def _result(self, use: dict[str, Any], content: list[Any] | None = None) -> dict[str, Any]:
        done: dict[str, Any] = {
            "toolUseId": use["toolUse"]["toolUseId"],
            "content": content or [{"text": self.words.output()}],
        }
        kind = self.rng.randrange(8)
        if kind == 0:
            done |= {"status": "error", "content": [{"text": f"error: {self.words.line('t')}"}]}
        elif kind == 1:
            done["content"] = [*done["content"], *self._image()]
        elif kind == 2:
            done["status"] = "success"
        return {"toolResult": done}

    def _user(self, *blocks: Any) -> None:
        self.client.append({"role": "user", "content": list(blocks)})

    def _ask(self) -> None:
        image = self._image() if self.words.one_in(6) else []
        self._user(*image, {"text": self.words.prose("u")})

    def _answer(self, *blocks: Any) -> None:
        self.model({"role": "assistant", "content": [*self._think(), *blocks]})

    # --- steps ---

    def _say(self) -> None:
        self._answer({"text": self.words.prose("m")})
        self._ask()

    def _calls(self) -> None:
        uses = [self._use() for _ in range(self.rng.choice((1, 1, 2, 3)))]
        lead = [{"text": self.words.prose("m")}] if self.claude and self.words.one_in(2) else []
        self._answer(*lead, *uses)
        results = [self._result(use) for use in uses]
        if self.words.one_in(3):
            results.reverse()
        text = [{"text": self.words.prose("u")}] if self.claude and self.words.one_in(8) else []
        self._user(*results, *text)

    def _json(self) -> None:
        use = self._use()
        self._answer(use)
        rows = [{"n": n, "note": self.words.line("t", 4)} for n in range(self.rng.choice((2, 30)))]
        self._user(self._result(use, [{"json": {"rows": rows}}]))

    def _document(self) -> None:
        self._answer({"text": self.words.prose("m")})
        document = {"format": "txt", "name": f"plan {self.words.id(4)}",
                    "source": {"text": self.words.prose("u", 5)}}  # fmt: skip
        self._user({"document": document}, {"text": self.words.prose("u")})

    def _cited(self) -> None:
        cited = {"content": [{"text": self.words.prose("m")}],
                 "citations": [{"title": "a", "sourceContent": [{"text": self.words.line("t")}],
                                "location": {"web": {"url": "https://a.org"}}}]}  # fmt: skip
        self._answer({"text": self.words.prose("m")}, {"citationsContent": cited})
        self._ask()

    def _cache(self) -> None:
        """A cache point at the end of a first question, where there is none yet."""
        self._say()
        if "cachePoint" not in str(self.head["system"]) and "cachePoint" not in str(self.client):
            self.head["system"].append({"cachePoint": {"type": "default"}})

    def _system(self) -> None:
        """A system message directly behind the user's."""
        self._say()
        self.client.append({"role": "system", "content": [{"text": self.words.prose("s")}]})

    def _changed_tools(self) -> None:
        self._say()
        kind = self.rng.choice(("toolAddition", "toolRemoval"))
        change = {kind: {"tool": {"type": "tool_reference", "name": "lookup"}}}
        content = [{"text": self.words.prose("s")}, change]
        self.client.append({"role": "system", "content": content})

    def _ran_by_server(self) -> None:
        """A tool of Nova's: call and result stand in the model's message."""
        use = self._use(type="server_tool_use", name="nova_code_interpreter")
        done = {"toolUseId": use["toolUse"]["toolUseId"], "type": "nova_code_interpreter_result",
                "content": [{"json": {"stdOut": self.words.output(5), "exitCode": 0}}]}  # fmt: skip
        self._answer(use, {"toolResult": done}, {"text": self.words.prose("m")})
        self._ask()

    def _future(self) -> None:
        """A member of the union that the guide does not name yet."""
        self._answer({"hologram": {"text": self.words.prose("m"), "depth": 3}},
                     {"text": self.words.prose("m")})  # fmt: skip
        self._ask()
