"""Valid conversations of OpenAI's Responses API.

From developers.openai.com and the input items of openai 3.57.  An item that was made after a
reasoning item carries its key in its id, as the server knows it: ``rs_KEY``, ``fc_r_KEY``.
"""

from __future__ import annotations

import json
import random
from typing import Any

from soak.newest.talk import Talk, Writer
from soak.newest.words import PIXEL

MODELS = ("gpt-5.6", "gpt-5.4", "gpt-6-astra", "gpt-5.5-codex")
_SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}


def talk(rng: random.Random, steps: int) -> Talk:
    """One conversation of so many steps."""
    return _Responses(rng).talk(steps)


class _Responses(Writer):
    def talk(self, steps: int) -> Talk:
        model = self.rng.choice(MODELS)
        function = {"type": "function", "parameters": _SCHEMA, "strict": False}
        self.head: dict[str, Any] = {
            "model": model, "instructions": self.words.prose("s", 3), "store": False,
            "max_output_tokens": 1000, "include": ["reasoning.encrypted_content"],
            "tools": [
                {**function, "name": "read"}, {**function, "name": "bash"},
                {"type": "custom", "name": "patch"}, {"type": "shell"}, {"type": "apply_patch"},
                {"type": "local_shell"}, {"type": "web_search"},
                {"type": "programmatic_tool_calling"},
                {"type": "tool_search"}, {**function, "name": "lookup", "defer_loading": True},
            ],
        }  # fmt: skip
        self.reasons = self.words.one_in(2)
        if self.words.one_in(10):
            self.features.add("compacted")
            self.client.append(
                {"type": "compaction", "id": f"cmp_{self.words.id()}",
                 "encrypted_content": self.words.id(80)}
            )  # fmt: skip
        if self.words.one_in(4):
            self.client.append({"role": "developer", "content": self.words.prose("s", 2)})
        self._ask()
        self.draw(
            {
                self._say: 2, self._calls: 9, self._custom: 2, self._shell: 2, self._hosted: 2,
                self._program: 2, self._tool_search: 2, self._mcp: 1, self._computer: 1,
                self._configured: 1, self._more_tools: 1, self._future: 1, self._approval: 1,
                self._late_output: 1,
            },
            steps,
        )  # fmt: skip
        return Talk(
            "openai-responses", "responses", "input", self.head, self.end(), model, {},
            self.features,
        )  # fmt: skip

    # --- items ---

    def _ask(self) -> None:
        text = self.words.prose("u")
        content: Any = text
        if self.words.one_in(3):
            content = [{"type": "input_text", "text": text}]
            if self.words.one_in(3):
                content.append(
                    {"type": "input_image", "image_url": f"data:image/png;base64,{PIXEL}"}
                )
        self.client.append({"type": "message", "role": "user", "content": content})
        if self.words.one_in(8):
            self.client.append({"role": "developer", "content": self.words.prose("s")})

    def _thought(self) -> tuple[list[Any], str]:
        """A reasoning item and what marks the id of the item after it."""
        if not self.reasons:
            return [], ""
        key = self.words.id(10)
        summary = [{"type": "summary_text", "text": self.words.prose("r")}]
        item = {"type": "reasoning", "id": f"rs_{key}", "summary": summary,
                "encrypted_content": self.words.id(60)}  # fmt: skip
        return [item], f"r_{key}"

    def _id(self, prefix: str, mark: str = "") -> dict[str, str]:
        if mark:
            return {"id": f"{prefix}_{mark}"}
        return {} if self.words.one_in(2) else {"id": f"{prefix}_{self.words.id()}"}

    def _message(self, mark: str = "", **more: Any) -> dict[str, Any]:
        part = {"type": "output_text", "text": self.words.prose("m"), "annotations": []}
        id = f"msg_{mark or self.words.id()}"
        return {"type": "message", "role": "assistant", "id": id, "status": "completed",
                "content": [part], **more}  # fmt: skip

    def _call(self, mark: str = "", **more: Any) -> dict[str, Any]:
        return {
            "type": "function_call", **self._id("fc", mark), "call_id": f"call_{self.words.id()}",
            "name": self.rng.choice(("read", "bash")),
            "arguments": json.dumps(self.words.arguments()), **more,
        }  # fmt: skip

    def _output(self, call: dict[str, Any], **more: Any) -> dict[str, Any]:
        output: Any = self.words.output()
        if self.words.one_in(5):
            output = [
                {"type": "input_text", "text": output},
                {"type": "input_image", "image_url": f"data:image/png;base64,{PIXEL}"},
            ]
        kind = f"{call['type']}_output"
        return {"type": kind, "call_id": call["call_id"], "output": output, **more}

    # --- steps ---

    def _say(self) -> None:
        thought, mark = self._thought()
        self.model(*thought, self._message(mark))
        self._ask()

    def _calls(self) -> None:
        thought, mark = self._thought()
        calls = [self._call(mark if n == 0 else "") for n in range(self.rng.choice((1, 1, 2, 3)))]
        lead = [self._message(mark)] if self.words.one_in(3) else []
        if lead and mark:
            calls[0] = self._call()
        self.model(*thought, *lead, *calls)
        outputs = [self._output(call) for call in calls]
        if self.words.one_in(3):
            outputs.reverse()
        self.client += outputs
        if self.words.one_in(6):
            self._ask()

    def _late_output(self) -> None:
        """An output that comes behind other items; only its call has to come before."""
        call = self._call()
        self.model(call, self._message())
        self.client.append(self._output(call))
        self._ask()

    def _custom(self) -> None:
        thought, mark = self._thought()
        text = "\n".join(self.words.line("a") for _ in range(5))
        call = {"type": "custom_tool_call", **self._id("ctc", mark), "name": "patch",
                "call_id": f"call_{self.words.id()}", "input": text}  # fmt: skip
        self.model(*thought, call)
        self.client.append(self._output(call))

    def _shell(self) -> None:
        kind = self.rng.choice(("shell", "local_shell", "apply_patch"))
        call_id = f"call_{self.words.id()}"
        command = ["bash", "-lc", f"ls {self.words.mark('a')}"]
        if kind == "shell":
            call: Any = {"type": "shell_call", "call_id": call_id,
                         "action": {"commands": [command[-1]], "timeout_ms": 1000}}  # fmt: skip
            done: Any = {"type": "shell_call_output", "call_id": call_id, "output": [
                {"stdout": self.words.output(), "stderr": "",
                 "outcome": {"type": "exit", "exit_code": 0}}]}  # fmt: skip
        elif kind == "local_shell":
            id = f"lsh_{self.words.id()}"
            call = {"type": "local_shell_call", "id": id, "call_id": call_id,
                    "status": "completed",
                    "action": {"type": "exec", "command": command, "env": {}}}  # fmt: skip
            done = {"type": "local_shell_call_output", "id": id, "output": self.words.output()}
        else:
            call = {"type": "apply_patch_call", "call_id": call_id, "status": "completed",
                    "operation": {"type": "update_file", "path": f"{self.words.mark('a')}.py",
                                  "diff": f"@@\n+{self.words.line('a')}"}}  # fmt: skip
            done = {"type": "apply_patch_call_output", "call_id": call_id,
                    "status": "completed", "output": self.words.line("t")}  # fmt: skip
        self.model(call)
        self.client.append(done)

    def _hosted(self) -> None:
        """Tools that the server ran: a call without an output item."""
        thought, mark = self._thought()
        kind = self.rng.randrange(4)
        if kind == 0:
            item: Any = {"type": "web_search_call", **self._id("ws", mark), "status": "completed",
                         "action": {"type": "search", "query": self.words.line("a")}}  # fmt: skip
        elif kind == 1:
            item = {"type": "code_interpreter_call", **self._id("ci", mark),
                    "status": "completed", "container_id": "cntr_1",
                    "code": f"print('{self.words.mark('a')}')",
                    "outputs": [{"type": "logs", "logs": self.words.output()}]}  # fmt: skip
        elif kind == 2:
            item = {"type": "file_search_call", **self._id("fs", mark), "status": "completed",
                    "queries": [self.words.line("a")],
                    "results": [{"file_id": "file_1", "filename": "a.md", "score": 0.5,
                                 "text": self.words.output()}]}  # fmt: skip
        else:
            item = {"type": "image_generation_call", "id": f"ig_{mark or self.words.id()}",
                    "status": "completed", "result": PIXEL}  # fmt: skip
        item.setdefault("id", f"ws_{self.words.id()}")
        self.model(*thought, item, self._message())
        self._ask()

    def _program(self) -> None:
        """A program of the model's that calls a client's tool; its output comes later."""
        call_id = f"call_{self.words.id()}"
        caller = {"caller": {"type": "program", "caller_id": call_id}}
        program = {"type": "program", "id": f"prog_{self.words.id()}", "call_id": call_id,
                   "code": f"await tools.read('{self.words.mark('a')}')",
                   "fingerprint": self.words.id(30)}  # fmt: skip
        call = self._call("", **caller)
        self.model(program, call)
        self.client.append(self._output(call, **caller))
        done = {"type": "program_output", "id": f"po_{self.words.id()}", "call_id": call_id,
                "result": self.words.output(), "status": "completed"}  # fmt: skip
        self.model(done, self._message())
        self._ask()

    def _tool_search(self) -> None:
        loaded = {"type": "function", "name": "lookup", "parameters": _SCHEMA, "strict": False,
                  "defer_loading": True, "description": self.words.line("t")}  # fmt: skip
        if self.words.one_in(2):
            call: Any = {"type": "tool_search_call", "call_id": None, "execution": "server",
                         "status": "completed", "arguments": {"paths": ["lookup"]}}  # fmt: skip
            done: Any = {"type": "tool_search_output", "call_id": None, "execution": "server",
                         "status": "completed", "tools": [loaded]}  # fmt: skip
            use = self._call("", name="lookup")
            self.model(call, done, use)
        else:
            call_id = f"call_{self.words.id()}"
            call = {"type": "tool_search_call", "call_id": call_id, "execution": "client",
                    "status": "completed", "arguments": {"goal": self.words.line("a")}}  # fmt: skip
            done = {"type": "tool_search_output", "call_id": call_id, "execution": "client",
                    "status": "completed", "tools": [loaded]}  # fmt: skip
            self.model(call)
            self.client.append(done)
            use = self._call("", name="lookup")
            self.model(use)
        self.client.append(self._output(use))

    def _mcp(self) -> None:
        listing = {
            "type": "mcp_list_tools",
            "id": f"mcpl_{self.words.id()}",
            "server_label": "hub",
            "tools": [{"name": "ask", "input_schema": _SCHEMA}],
        }
        call = {"type": "mcp_call", "id": f"mcp_{self.words.id()}", "server_label": "hub",
                "name": "ask", "arguments": json.dumps(self.words.arguments()),
                "output": self.words.output()}  # fmt: skip
        self.model(listing, call, self._message())
        self._ask()

    def _approval(self) -> None:
        asked = {"type": "mcp_approval_request", "id": f"mcpr_{self.words.id()}",
                 "server_label": "hub", "name": "ask",
                 "arguments": json.dumps(self.words.arguments())}  # fmt: skip
        self.model(asked)
        self.client.append(
            {"type": "mcp_approval_response", "approval_request_id": asked["id"], "approve": True}
        )
        call = {"type": "mcp_call", "id": f"mcp_{self.words.id()}", "server_label": "hub",
                "name": "ask", "arguments": asked["arguments"], "output": self.words.output(),
                "approval_request_id": asked["id"]}  # fmt: skip
        self.model(call, self._message())
        self._ask()

    def _computer(self) -> None:
        call = {"type": "computer_call", "id": f"cu_{self.words.id()}", "status": "completed",
                "call_id": f"call_{self.words.id()}", "pending_safety_checks": [],
                "action": {"type": "screenshot"}}  # fmt: skip
        self.model(call)
        self.client.append(
            {"type": "computer_call_output", "call_id": call["call_id"],
             "output": {"type": "computer_screenshot",
                        "image_url": f"data:image/png;base64,{PIXEL}"}}
        )  # fmt: skip

    def _configured(self) -> None:
        self._say()
        effort = self.rng.choice(("low", "high"))
        self.client.append({"type": "configuration_update", "reasoning": {"effort": effort}})

    def _more_tools(self) -> None:
        self._say()
        self.client.append(
            {"type": "additional_tools", "role": "developer",
             "tools": [{"type": "function", "name": f"{self.words.id(5)}_more",
                        "parameters": _SCHEMA, "strict": False}]}
        )  # fmt: skip

    def _future(self) -> None:
        """Items, parts and a role that no page names yet."""
        call_id = f"call_{self.words.id()}"
        pair = [
            {"type": "hologram_call", "call_id": call_id, "input": self.words.line("a")},
            {"type": "hologram_call_output", "call_id": call_id, "output": self.words.output(6)},
        ]
        alone = {"type": "hologram", "text": self.words.prose("m")}
        self.model(*self.rng.choice((pair, [alone])), self._message(trace_hint={"n": 1}))
        self._ask()
        if self.words.one_in(2):
            self.client.append({"type": "message", "role": "observer",
                                "content": self.words.prose("s")})  # fmt: skip
