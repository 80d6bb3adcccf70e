"""LangChain's agents with ``TrimtabMiddleware``: they are told what the user of a recording said,
their model answers what its model did, and their tools give what its tools gave.

What is digested is what LangChain's own clients send, and the agent's state at the end.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from digests import answers
from digests.answers import Call
from digests.chain import Chain, Clock
from digests.conversations import Found, converted
from digests.corpus import Record, number
from digests.scripted import Words
from digests.upstream import HANDLE, reply
from digests.wrapped import http_client

WINDOW, TURNS = 16_384, 30
SCENES: Mapping[str, dict[str, Any]] = {
    "state": {"persist": True},
    "request": {"persist": False, "recall": True},
    "notes": {"persist": True, "recall": True, "notes": True},
}
"""Keywords of the middleware by a name for them."""
_URL = "https://provider.invalid"


class Step(NamedTuple):
    """What the model says, and what is given to it then: a result for each call, by its id; where
    it calls nothing, what the user says next, None at the end."""

    text: str
    calls: Sequence[Call]
    results: Mapping[str, str]
    said: str | None


def steps(messages: Sequence[Any]) -> tuple[str, list[Step]]:
    """What the user says first, and the steps, of a conversation in Chat Completions."""
    said, found, ids = list[str](), list[Step](), dict[str, str]()
    first: str | None = None
    for message in messages:
        role, text = message.get("role"), _text(message.get("content"))
        if role == "user":
            said.append(text)
        elif role == "tool":
            id = ids.get(str(message.get("tool_call_id")))
            if id and found:
                found[-1].results[id] = text  # type: ignore[index]
        elif role == "assistant":
            if first is None:
                first = "\n".join(said) or "Go on."
            elif found and not found[-1].calls:
                found[-1] = found[-1]._replace(said="\n".join(said) or "Go on.")
            said = []
            calls = list[Call]()
            for at, call in enumerate(message.get("tool_calls") or ()):
                ids[str(call.get("id"))] = id = f"call_{len(found)}_{at}"
                made = call.get("function") or call.get("custom") or {}
                name = re.sub(r"[^\w-]", "_", str(made.get("name")))
                given = made.get("arguments") or made.get("input")
                calls.append(Call(id, name, _arguments(given)))
            found.append(Step(text, calls, {}, None))
    return first or "Go on.", found


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join(str(p.get("text") or "") for p in content if isinstance(p, dict))
    return str(content or "")


def _arguments(text: Any) -> dict[str, Any]:
    try:
        found = json.loads(text or "{}")
    except ValueError:
        found = {"text": text}
    return found if isinstance(found, dict) else {"value": found}


# --- the agent ---


def agent(name: str, record: Record, model: str) -> Found:
    """A recording through an agent."""
    talk = converted(record, "openai-chat")
    if talk is None:
        return
    key = f"{name}/{model}/{record.name}"
    said, script = steps(talk.messages)
    chain = Chain()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loop = _Loop(chain, model, script[:TURNS], Words(talk, key), asks="recall" in SCENES[name])
        made = loop.agent(name)
        config: Any = {"recursion_limit": 1_000, "configurable": {"thread_id": "1"}}
        asked: str | None = said
        while asked is not None:
            message = {"role": "user", "content": asked, "id": loop.id}
            try:
                made.invoke({"messages": [message]}, config)
            except Exception as error:
                chain.add(f"{type(error).__name__}")
                break
            asked = loop.next_said()
        values = made.get_state(config).values
    chain.add(json.dumps([[m.type, m.text, _calls(m)] for m in values["messages"]]))
    ours = values.get("trimtab") or {}
    yield f"langchain/{key}", chain.told(ours.get("journal"))


def _calls(message: Any) -> Any:
    return [[call["name"], call["args"]] for call in getattr(message, "tool_calls", ())]


class _Loop:
    """The model's and the tools' side of a recording."""

    def __init__(
        self, chain: Chain, model: str, script: Sequence[Step], words: Words, *, asks: bool
    ) -> None:
        self._chain, self._model, self._script = chain, model, script
        self._words, self._asks, self._asked, self._at = words, asks, 0, -1
        self._sent = 0

    def agent(self, name: str) -> Any:
        """An agent whose model and tools these are."""
        from langchain.agents import create_agent
        from langgraph.checkpoint.memory import InMemorySaver

        from trimtab.clients.langchain import TrimtabMiddleware

        keywords = {"window": WINDOW, "reserve": 1_000, "clock": Clock(), **SCENES[name]}
        names = sorted({call.name for step in self._script for call in step.calls})
        return create_agent(
            _MODELS[self._model](self._respond), [_tool(name) for name in names],
            system_prompt="You help.", middleware=[TrimtabMiddleware(**keywords), self._tools()],
            checkpointer=InMemorySaver(),
        )  # fmt: skip

    def _tools(self) -> Any:
        """A middleware that gives the recorded results; our own tools are run.  Messages get ids
        that are always the same."""
        from langchain.agents.middleware import AgentMiddleware
        from langchain_core.messages import ToolMessage

        outer = self

        class Recorded(AgentMiddleware):
            def wrap_model_call(self, request: Any, handler: Any) -> Any:
                answer = handler(request)
                for message in answer.result:
                    message.id = f"m{outer._sent}"
                return answer

            def wrap_tool_call(self, request: Any, handler: Any) -> Any:
                id, name = request.tool_call["id"], request.tool_call["name"]
                if name in ("recall", "note"):
                    result = handler(request)
                    result.id = f"r{id}"
                    return result
                text = outer._script[outer._at].results.get(id, "")
                return ToolMessage(text, id=f"r{id}", tool_call_id=id, name=name)

        return Recorded()

    def _respond(self, path: str, body: bytes) -> tuple[int, str, bytes]:
        self._chain.add(path, body)
        self._sent += 1
        format = _FORMATS[self._model]
        ask = self._asks and self._at >= 0 and self._at % 3 == 2 and self._asked != self._at
        if ask:
            self._asked = self._at
            items = answers.turn(format, "", self._own_calls(body))
        else:
            self._at += 1
            step = self._script[self._at] if self._at < len(self._script) else _END
            items = answers.turn(format, step.text or ("" if step.calls else "Done."), step.calls)
        return reply(format, items, len(body) // 3)

    def _own_calls(self, body: bytes) -> list[Call]:
        found = HANDLE.findall(body)
        handle = found[number(str(self._at), len(found))].decode() if found else "unknown"
        word = self._words.word(self._at)
        asked: Sequence[dict[str, Any]] = (
            {}, {"search": word}, {"handle": handle}, {"file": self._words.path(self._at)},
            {"handle": handle, "lines": "2-9"}, {"handle": handle, "steps": "1-2"},
        )  # fmt: skip
        calls = [Call(f"call_r{self._at}", "recall", asked[self._at // 3 % len(asked)])]
        if b'"note"' in body:
            text = {"name": f"plan {self._at % 2}", "text": f"Step {self._at}: {word}."}
            calls.append(Call(f"call_n{self._at}", "note", text))
        return calls

    @property
    def id(self) -> str:
        """Of what the user says next."""
        return f"u{self._sent}"

    def next_said(self) -> str | None:
        """What the user says after a run of the agent; None at the end."""
        return self._script[self._at].said if self._at < len(self._script) - 1 else None


_END = Step("Done.", (), {}, None)


def _tool(name: str) -> Any:
    from langchain_core.tools import StructuredTool

    schema = {"type": "object", "properties": {}, "title": name}
    return StructuredTool(name=name, description=name, args_schema=schema, func=str)


# --- the models ---


def _chat(respond: Callable[..., Any], **more: Any) -> Any:
    from langchain_openai import ChatOpenAI
    from openai import DefaultHttpxClient

    return ChatOpenAI(
        model="gpt-5.1", base_url=f"{_URL}/v1", api_key="k", max_retries=0, max_tokens=500,
        http_client=http_client(DefaultHttpxClient, respond), **more,
    )  # fmt: skip


def _responses(respond: Callable[..., Any]) -> Any:
    return _chat(respond, use_responses_api=True, store=False)


def _claude(respond: Callable[..., Any]) -> Any:
    import anthropic
    from langchain_anthropic import ChatAnthropic

    made = ChatAnthropic(
        model="claude-sonnet-4-5", base_url=_URL, api_key="k", max_retries=0, max_tokens=500
    )
    client = http_client(anthropic.DefaultHttpxClient, respond)
    made.__dict__["_client"] = anthropic.Anthropic(  # it takes no HTTP client
        api_key="k", base_url=_URL, max_retries=0, http_client=client
    )
    return made


_MODELS = {"chat": _chat, "responses": _responses, "anthropic": _claude}
_FORMATS = {"chat": "openai-chat", "responses": "openai-responses", "anthropic": "anthropic"}
MODELS: Sequence[str] = tuple(_MODELS)


# --- the hook ---


def hook(record: Record) -> Found:
    """A recording's growing messages through ``pre_model_hook``."""
    from trimtab.clients.langchain import pre_model_hook

    talk = converted(record, "openai-chat")
    if talk is None:
        return
    messages, ends = _messages(*steps(talk.messages))
    for persist in (False, True):
        chain = Chain()
        ours = pre_model_hook(
            persist=persist, window=WINDOW, reserve=1_000, recall=True, clock=Clock()
        )
        for end in ends[:TURNS]:
            update = ours({"messages": messages[:end]})
            for key in sorted(update):
                rows = [message.model_dump(mode="json") for message in update[key]]
                chain.add(key, json.dumps(rows))
        yield f"langchain-hook/{'state' if persist else 'request'}/{record.name}", chain.told()


def _messages(said: str, script: Sequence[Step]) -> tuple[list[Any], list[int]]:
    """A recording as LangChain's messages, and how many each call of the model is given."""
    from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

    found, ends = list[Any]([HumanMessage(said, id="0")]), list[int]()
    for at, step in enumerate(script):
        ends.append(len(found))
        calls = [{"id": id, "name": name, "args": given} for id, name, given in step.calls]
        found.append(AIMessage(step.text, id=f"m{at}", tool_calls=calls))
        for id, name, _ in step.calls:
            text = step.results.get(id, "")
            found.append(ToolMessage(text, id=f"r{id}", tool_call_id=id, name=name))
        if step.said is not None:
            found.append(HumanMessage(step.said, id=f"u{at}"))
    return found, ends
