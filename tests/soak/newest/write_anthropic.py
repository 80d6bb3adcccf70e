"""Valid conversations of Anthropic's Messages API.

From platform.claude.com (server tools, programmatic tool calling, tool search, mid-conversation
system messages and tool changes, compaction) and the types of anthropic 2.14.
"""

from __future__ import annotations

import random
from typing import Any

from soak.newest.parts_anthropic import CODE, SCHEMA, Parts, image
from soak.newest.talk import Talk

BOUND_MODELS = ("claude-opus-5-5", "claude-sonnet-5-5", "claude-fable-5-1")
MODELS = ("claude-opus-5", "claude-opus-4-8", "claude-sonnet-5", *BOUND_MODELS)
OLD_VERSION, NEW_VERSION = "2023-06-01", "2026-10-21"


def talk(rng: random.Random, steps: int) -> Talk:
    """One conversation of so many steps."""
    return _Anthropic(rng).talk(steps)


class _Anthropic(Parts):
    def talk(self, steps: int) -> Talk:
        rng = self.rng
        self.name = rng.choice(MODELS)
        bound = self.name in BOUND_MODELS
        self.thinking = "adaptive" if bound else rng.choice(("", "", "enabled", "adaptive"))
        self.head: dict[str, Any] = {
            "model": self.name, "max_tokens": 1000, "system": self.words.prose("s", 3),
            "tools": self._tools(),
        }  # fmt: skip
        self.old = self.words.one_in(3)
        if self.thinking == "enabled":
            self.head["thinking"] = {"type": "enabled", "budget_tokens": 512}
        elif self.thinking:
            kind = rng.choice(("adaptive", "adaptive", "between_tools"))
            self.head["thinking"] = {"type": kind}
        if not self.thinking and self.old:
            self.head["temperature"] = 0.5
        if self.words.one_in(12):
            self._compacted()
        if self.words.one_in(8):
            self._directive()
        self._ask()
        self.draw(
            {
                self._say: 2, self._calls: 9, self._server_search: 2, self._mixed: 3,
                self._programmatic: 3, self._pause: 2, self._filtering: 2, self._tool_search: 2,
                self._client_search: 2, self._mcp: 1, self._future: 1, self._changed_tools: 1,
                self._in_a_row: 1, self._document: 1, self._odd_role: 1, self._browser: 1,
            },
            steps,
        )  # fmt: skip
        self._mark_cache()
        version = OLD_VERSION if self.old else NEW_VERSION
        return Talk(
            "anthropic", "anthropic-old" if self.old else "anthropic", "messages", self.head,
            self.end(), self.name, {"anthropic-version": version}, self.features,
        )  # fmt: skip

    # --- the client ---

    def _user(self, *blocks: Any) -> None:
        self.client.append({"role": "user", "content": list(blocks)})

    def _ask(self) -> None:
        text = self.words.prose("u")
        if self.words.one_in(6):
            self._user(image(), {"type": "text", "text": text})
        elif self.words.one_in(12):
            self._user({"type": "container_upload", "file_id": f"file_{self.words.id()}"},
                       {"type": "text", "text": text})  # fmt: skip
        elif self.words.one_in(2):
            self.client.append({"role": "user", "content": text})
        else:
            self._user({"type": "text", "text": text})
        self._maybe_system()

    def _maybe_system(self, chances: int = 4) -> None:
        """A system message directly behind a user message, last or before a model message."""
        if not self.words.one_in(chances):
            if self.words.one_in(14):
                self._directive()
            return
        self.features.add("system in the middle")
        text = self.words.prose("s")
        content: Any = text if self.words.one_in(2) else [{"type": "text", "text": text}]
        message: dict[str, Any] = {"role": "system", "content": content}
        if self.words.one_in(4):
            message["output_config"] = {"effort": "high"}
        if self.words.one_in(6):
            message["clear_at"] = "next_user_message"
        self.client.append(message)

    def _directive(self) -> None:
        self.features.add("directive only")
        effort = self.rng.choice(("low", "medium", "max"))
        self.client.append({"role": "system", "content": [], "output_config": {"effort": effort}})

    def _answer(self, uses: list[Any], only_results: bool = False) -> None:
        results = [self._result(use) for use in uses]
        if self.words.one_in(3):
            results.reverse()
        if len(results) > 1 and self.words.one_in(6) and not only_results:
            self.features.add("results apart")
            for result in results:
                self._user(result)
        elif not only_results and self.words.one_in(8):
            self._user(*results, self._text("u"))
        else:
            self._user(*results)
        if not only_results:
            self._maybe_system()

    # --- steps ---

    def _compacted(self) -> None:
        self.features.add("compacted")
        block = {"type": "compaction", "content": self.words.prose("r", 4), "signature": "c1"}
        self.client.append({"role": "assistant", "content": [block]})

    def _say(self) -> None:
        if self.thinking or self.words.one_in(2):
            self.model({"role": "assistant", "content": [*self._think(), self._text()]})
        else:
            self.model({"role": "assistant", "content": self.words.prose("m")})
        self._ask()

    def _calls(self) -> None:
        uses = [self._use() for _ in range(self.rng.choice((1, 1, 1, 2, 3)))]
        self.model({"role": "assistant", "content": [*self._lead(), *uses]})
        self._answer(uses)

    def _in_a_row(self) -> None:
        """Model messages in a row are one turn; the results of both follow."""
        if self.thinking:
            return self._calls()
        uses = [self._use(), self._use()]
        self.model(*({"role": "assistant", "content": [self._text(), use]} for use in uses))
        self._user(*(self._result(use) for use in uses))
        return None

    def _server_search(self) -> None:
        use = self._server("web_search")
        cited = self._text()
        cited["citations"] = [
            {"type": "web_search_result_location", "url": "https://a.org", "title": "a",
             "cited_text": self.words.line("t"), "encrypted_index": self.words.id(20)}
        ]  # fmt: skip
        content = [*self._lead(), use, self._hits(use), *self._think(), cited]
        self.model({"role": "assistant", "content": content})
        self._ask()

    def _mixed(self) -> None:
        """A server tool beside a client tool: its result opens the next model message."""
        server, use = self._server("web_search"), self._use()
        self.model({"role": "assistant", "content": [*self._lead(), server, use]})
        self._user(self._result(use, plain=True))
        content: list[Any] = [self._hits(server), *self._think(), self._text()]
        if self.words.one_in(2):
            more = self._use()
            self.model({"role": "assistant", "content": [*content, more]})
            return self._answer([more])
        self.model({"role": "assistant", "content": content})
        return self._ask()

    def _programmatic(self) -> None:
        """Code that calls a client tool, for some rounds, before its own result comes."""
        self.head["container"] = "container_1"
        server = self._server("code_execution")
        caller = {"type": CODE, "tool_id": server["id"]}
        uses = [self._use("query", caller=caller) for _ in range(self.rng.choice((1, 1, 2)))]
        self.model({"role": "assistant", "content": [*self._lead(), server, *uses]})
        self._user(*(self._result(use, plain=True) for use in uses))
        for _ in range(self.rng.choice((0, 0, 1, 3))):
            use = self._use("query", caller=caller)
            self.model({"role": "assistant", "content": [use]})
            self._user(self._result(use, plain=True))
        content = [self._ran(server), *self._think(), self._text()]
        self.model({"role": "assistant", "content": content})
        self._ask()

    def _pause(self) -> None:
        """``pause_turn``: the paused message is sent back as it is, and the model goes on."""
        first, second = self._server("web_search"), self._server("web_search")
        self.model(
            {"role": "assistant", "content": [*self._lead(), first, self._hits(first), second]}
        )
        if self.words.one_in(4):
            self.features.add("system behind a server tool")
            self.client.append({"role": "system", "content": self.words.prose("s")})
        self.model({"role": "assistant", "content": [self._hits(second), self._text()]})
        self._ask()

    def _filtering(self) -> None:
        """Web search that runs inside code (dynamic filtering)."""
        code = self._server("code_execution")
        caller = {"type": CODE, "tool_id": code["id"]}
        inner: list[Any] = []
        for _ in range(self.rng.choice((1, 2))):
            use = self._server("web_search", caller=caller)
            inner += [use, self._hits(use, caller=caller)]
        content = [*self._lead(), code, *inner, self._ran(code, encrypted=True), self._text()]
        self.model({"role": "assistant", "content": content})
        self._ask()

    def _tool_search(self) -> None:
        name = self.rng.choice(self.deferred)
        use = self._server("tool_search_tool_regex")
        found = {
            "type": "tool_search_tool_result", "tool_use_id": use["id"],
            "content": {"type": "tool_search_tool_search_result",
                        "tool_references": [{"type": "tool_reference", "tool_name": name}]},
        }  # fmt: skip
        call = self._use(name)
        self.model({"role": "assistant", "content": [*self._lead(), use, found, call]})
        self._answer([call])

    def _client_search(self) -> None:
        name, use = self.rng.choice(self.deferred), self._use("ToolSearch")
        self.model({"role": "assistant", "content": [*self._lead(), use]})
        self._user(self._result(use, [{"type": "tool_reference", "tool_name": name}]))
        call = self._use(name)
        self.model({"role": "assistant", "content": [*self._lead(), call]})
        self._answer([call])

    def _mcp(self) -> None:
        self.head["mcp_servers"] = [{"type": "url", "name": "hub", "url": "https://hub.example"}]
        if not any(tool.get("type") == "mcp_toolset" for tool in self.head["tools"]):
            self.head["tools"].append({"type": "mcp_toolset", "mcp_server_name": "hub"})
        listing = {"type": "mcp_tool_listing", "mcp_server_name": "hub",
                   "tools": [{"name": "ask", "input_schema": SCHEMA}]}  # fmt: skip
        use = {"type": "mcp_tool_use", "id": f"mcptoolu_{self.words.id()}", "name": "ask",
               "server_name": "hub", "input": self.words.arguments()}  # fmt: skip
        done = {"type": "mcp_tool_result", "tool_use_id": use["id"], "is_error": False,
                "content": [{"type": "text", "text": self.words.output()}]}  # fmt: skip
        content = [*self._think(), listing, use, done, self._text()]
        self.model({"role": "assistant", "content": content})
        self._ask()

    def _changed_tools(self) -> None:
        """A tool is added, or withdrawn, by a system message behind the user's."""
        self.model({"role": "assistant", "content": [*self._think(), self._text()]})
        self._user({"type": "text", "text": self.words.prose("u")})
        kind = self.rng.choice(("tool_addition", "tool_removal"))
        change = {
            "type": kind,
            "tool": {"type": "tool_reference", "name": self.rng.choice(self.deferred)},
        }
        if kind == "tool_addition" and self.words.one_in(2):
            added = {"name": f"{self.words.id(5)}_inline", "input_schema": SCHEMA}
            change = {"type": kind, "tool": {"type": "tool_definition", "definition": added}}
        text = [self._text("s")] if self.words.one_in(2) else []
        self.client.append({"role": "system", "content": [*text, change]})

    def _browser(self) -> None:
        self.features.add("toolset")
        use = self._use("navigate", toolset_name="browser")
        state = {
            "type": "browser_state",
            "tabs": [{"id": "1", "url": "https://a.org", "title": "a", "active": True}],
        }
        self.model({"role": "assistant", "content": [*self._lead(), use]})
        done = self._result(use, [{"type": "text", "text": self.words.output()}, state, image()])
        self._user({**done, "toolset_name": "browser"})
        self._maybe_system()

    def _document(self) -> None:
        """A document in the model's message: taken up to version 2023-06-01."""
        document = {"type": "document", "title": "plan",
                    "source": {"type": "text", "media_type": "text/plain",
                               "data": self.words.prose("m", 4)}}  # fmt: skip
        if self.old:
            content = [*self._think(), self._text(), document]
            self.model({"role": "assistant", "content": content})
            return self._ask()
        self.model({"role": "assistant", "content": [*self._think(), self._text()]})
        document["source"]["data"] = self.words.prose("u", 4)
        return self._user(document, self._text("u"))

    def _future(self) -> None:
        """Blocks that no page names yet, alone and in a pair that refers by id."""
        id = f"hgu_{self.words.id()}"
        pair = [
            {"type": "hologram_use", "id": id, "input": self.words.arguments()},
            {"type": "hologram_result", "tool_use_id": id, "text": self.words.output(6)},
        ]
        alone = {"type": "hologram", "text": self.words.prose("m"), "depth": 3}
        content = [*self._think(), *self.rng.choice((pair, [alone])), self._text()]
        message = {"role": "assistant", "content": content}
        if self.words.one_in(2):
            message["trace_hint"] = "h1"
        self.model(message)
        self._ask()

    def _odd_role(self) -> None:
        """A role that no page names yet."""
        self._say()
        if self.client[-1]["role"] == "user":
            self.client.append({"role": "observer", "content": self.words.prose("s")})

    def _mark_cache(self) -> None:
        """A breakpoint at the system prompt, and one at a first message where it has blocks."""
        if not self.words.one_in(2):
            return
        ttl = {"ttl": "1h"} if self.words.one_in(2) else {}
        text = self.head["system"]
        mark = {"type": "ephemeral", **ttl}
        self.head["system"] = [{"type": "text", "text": text, "cache_control": mark}]
        first = next(m for m in self.turns[0].client if m["role"] == "user")
        if isinstance(first["content"], list) and first["content"][-1]["type"] == "text":
            first["content"][-1]["cache_control"] = {"type": "ephemeral", **ttl}
