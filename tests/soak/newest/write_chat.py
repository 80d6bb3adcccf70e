"""Valid conversations of Chat Completions, and of the servers that speak it.

From developers.openai.com, docs of DeepSeek, Mistral, Groq, Cerebras, DashScope, Moonshot and
Google's compatible endpoint, and the chat templates that llama.cpp and vLLM run.
"""

from __future__ import annotations

import json
import random
from typing import Any

from soak.newest.talk import Talk, Writer
from soak.newest.words import PIXEL

MODELS = {
    "openai": ("gpt-5.6", "gpt-5.1", "gpt-6-astra"),
    "deepseek": ("deepseek-pro", "deepseek-flash"),
    "mistral": ("mistral-large-latest", "devstral-medium-latest"),
    "groq": ("openai/gpt-oss-120b",),
    "cerebras": ("gpt-oss-120b",),
    "qwen": ("qwen3.5-plus",),
    "kimi": ("kimi-k2.5",),
    "gemini": ("gemini-3-flash-preview",),
    "openrouter": ("anthropic/claude-opus-5",),
    "llamacpp": ("qwen3.5-27b",),
    "alternating": ("gemma-3-27b-it",),
}
HOSTS = {
    "openai": "https://api.openai.com/v1", "deepseek": "https://api.deepseek.com/v1",
    "mistral": "https://api.mistral.ai/v1", "groq": "https://api.groq.com/openai/v1",
    "cerebras": "https://api.cerebras.ai/v1",
    "qwen": "https://dashscope.aliyuncs.com/compatible-mode/v1",
    "kimi": "https://api.moonshot.ai/v1",
    "gemini": "https://generativelanguage.googleapis.com/v1beta/openai",
    "openrouter": "https://openrouter.ai/api/v1", "llamacpp": "http://127.0.0.1:8080/v1",
    "alternating": "http://127.0.0.1:8081/v1",
}  # fmt: skip
_SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}
_WEIGHTS = {"openai": 6, "deepseek": 2, "mistral": 2, "llamacpp": 2}


def talk(rng: random.Random, steps: int) -> Talk:
    """One conversation of so many steps, in one of the dialects."""
    names = list(MODELS)
    dialect = rng.choices(names, weights=[_WEIGHTS.get(name, 1) for name in names])[0]
    return _Chat(rng, dialect).talk(steps)


class _Chat(Writer):
    def __init__(self, rng: random.Random, dialect: str) -> None:
        super().__init__(rng)
        self.dialect, self.calls = dialect, 1
        self.thinks = dialect in ("deepseek", "kimi") or (
            dialect in ("qwen", "openrouter", "llamacpp", "groq", "cerebras")
            and self.words.one_in(2)
        )

    def talk(self, steps: int) -> Talk:
        model = self.rng.choice(MODELS[self.dialect])
        self.head: dict[str, Any] = {"model": model, "max_completion_tokens": 1000}
        if self.dialect not in ("openai", "groq"):
            self.head = {"model": model, "max_tokens": 1000}
        names = ("read", "bash")
        if self.dialect != "alternating":
            self.head["tools"] = [
                {"type": "function",
                 "function": {"name": name, "description": "A tool", "parameters": _SCHEMA}}
                for name in names
            ]  # fmt: skip
        if self.dialect == "kimi":
            self.head["thinking"] = {"type": "enabled"}
        if self.dialect == "openai":
            self.head["tools"].append({"type": "custom", "custom": {"name": "sh"}})
        if self.words.one_in(5) and self.dialect == "openai":
            self.client.append({"role": "developer", "content": self.words.prose("s", 3)})
        else:
            self.client.append({"role": "system", "content": self.words.prose("s", 3)})
        self._ask()
        if self.dialect == "alternating":
            self.draw({self._say: 1}, steps)
        else:
            opened = self.dialect in ("openai", "deepseek", "openrouter")
            self.draw(
                {
                    self._say: 2, self._calls: 9, self._apart: 1,
                    self._system: 2 if opened else 0,
                    self._custom: 2 if self.dialect == "openai" else 0,
                    self._future: 1 if self.dialect == "openai" else 0,
                    self._parts: 2 if self.dialect != "mistral" else 0,
                },
                steps,
            )  # fmt: skip
        return Talk(
            "openai-chat", f"chat-{self.dialect}", "messages", self.head, self.end(), model, {},
            self.features,
        )  # fmt: skip

    # --- the client ---

    def _ask(self) -> None:
        text = self.words.prose("u")
        content: Any = text
        if self.dialect not in ("alternating", "mistral") and self.words.one_in(4):
            content = [{"type": "text", "text": text}]
            if self.words.one_in(3):
                url = f"data:image/png;base64,{PIXEL}"
                content.append({"type": "image_url", "image_url": {"url": url}})
        self.client.append({"role": "user", "content": content})

    def _assistant(self, **fields: Any) -> dict[str, Any]:
        message = {"role": "assistant", **fields}
        if self.thinks:
            if self.dialect in ("deepseek", "kimi", "qwen", "llamacpp"):
                message["reasoning_content"] = self.words.prose("r")
            elif self.dialect == "openrouter":
                message["reasoning_details"] = [
                    {"type": "reasoning.text", "text": self.words.prose("r"), "index": 0}
                ]
            else:
                message["reasoning"] = self.words.prose("r")
        return message

    def _call(self, first: bool = True) -> dict[str, Any]:
        name = self.rng.choice(("read", "bash"))
        id = f"call_{self.words.id(20)}"
        if self.dialect == "mistral":
            id = self.words.id(9)
        elif self.dialect == "kimi":
            id = f"functions.{name}:{self.calls}"
        elif self.dialect == "llamacpp":  # counts anew in each answer
            id = f"call_{0 if first else self.calls}"
        self.calls += 1
        call: dict[str, Any] = {
            "id": id,
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(self.words.arguments())},
        }
        if self.dialect == "gemini" and first:
            call["extra_content"] = {"google": {"thought_signature": self.words.id(40)}}
        return call

    def _result(self, call: dict[str, Any]) -> dict[str, Any]:
        text: Any = self.words.output()
        done = {"role": "tool", "tool_call_id": call["id"], "content": text}
        if self.dialect in ("openai", "qwen", "deepseek") and self.words.one_in(5):
            done["content"] = [{"type": "text", "text": text}]
            if self.dialect == "deepseek":
                url = f"data:image/png;base64,{PIXEL}"
                done["content"].append({"type": "image_url", "image_url": {"url": url}})
        if self.dialect == "mistral":
            done["name"] = call["function"]["name"]
        return done

    # --- steps ---

    def _say(self) -> None:
        self.model(self._assistant(content=self.words.prose("m")))
        self._ask()

    def _after_results(self) -> None:
        """Where a user message may follow the results at once: not at Mistral."""
        if self.words.one_in(5) and self.dialect not in ("mistral", "llamacpp"):
            self._ask()

    def _calls(self) -> None:
        many = self.rng.choice((1, 1, 1, 2, 3))
        calls = [self._call(n == 0) for n in range(many)]
        text = self.words.prose("m") if self.words.one_in(2) else None
        if self.dialect in ("mistral", "llamacpp"):
            text = text or ""
        self.model(self._assistant(content=text, tool_calls=calls))
        results = [self._result(call) for call in calls]
        if self.words.one_in(4):
            results.reverse()
        self.client += results
        self._after_results()

    def _apart(self) -> None:
        """Parallel work as two steps without a word of the user between them."""
        for _ in range(2):
            call = self._call()
            self.model(self._assistant(content=self.words.prose("m"), tool_calls=[call]))
            self.client.append(self._result(call))

    def _system(self) -> None:
        """A system message in the middle: legal anywhere but inside an exchange."""
        self.model(self._assistant(content=self.words.prose("m")))
        if self.words.one_in(2):
            self.client.append({"role": "system", "content": self.words.prose("s")})
            self._ask()
        else:
            self._ask()
            self.client.append({"role": "system", "content": self.words.prose("s")})

    def _custom(self) -> None:
        id = f"call_{self.words.id()}"
        text = "\n".join(self.words.line("a") for _ in range(4))
        call = {"id": id, "type": "custom", "custom": {"name": "sh", "input": text}}
        self.model(self._assistant(content=None, tool_calls=[call, other := self._call()]))
        done = {"role": "tool", "tool_call_id": id, "content": self.words.output()}
        self.client += [done, self._result(other)]

    def _parts(self) -> None:
        """Answers as lists of parts."""
        parts = [{"type": "text", "text": self.words.prose("m")} for _ in range(2)]
        if self.dialect == "openai" and self.words.one_in(3):
            self.model(self._assistant(content=[{"type": "refusal", "refusal": parts[0]["text"]}]))
        else:
            self.model(self._assistant(content=parts))
        self._ask()

    def _future(self) -> None:
        """Parts, fields and a role that no page names yet."""
        part = {"type": "hologram", "text": self.words.prose("m"), "depth": 2}
        content = [{"type": "text", "text": self.words.prose("m")}, part]
        self.model(self._assistant(content=content, trace_hint={"id": self.words.id()}))
        self._ask()
        if self.words.one_in(2):
            self.client.append({"role": "observer", "content": self.words.prose("s")})
