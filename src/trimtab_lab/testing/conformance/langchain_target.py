"""A LangChain middleware as a target: judges the model's input in an agent with this middleware.

The agent's state is kept from turn to turn as in a graph; the client's next messages are added to
it.  Needs the extra "langchain".
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Sequence
from typing import Any

from trimtab.errors import MissingExtra
from trimtab_lab.testing.conformance.callable_target import built
from trimtab_lab.testing.conformance.stories import TOOLS
from trimtab_lab.testing.conformance.targets import Sent, TargetConversation, TargetOptions


def _langchain() -> Any:
    try:
        import langchain.agents as agents
    except ImportError:
        raise MissingExtra(
            "a LangChain middleware needs LangChain: pip install 'trimtab[langchain]'"
        ) from None
    return agents


class LangChainMiddleware:
    """``factory()`` makes the middleware, or a list of them, for one conversation; it may take the
    window.  Raises MissingExtra."""

    formats: tuple[str, ...] = ("openai-chat",)

    def __init__(self, name: str, factory: Callable[..., Any], options: TargetOptions) -> None:
        self.name, self._factory, self._options = name, factory, options
        self._agents = _langchain()

    def conversation(self, format: str) -> TargetConversation:
        """A conversation with an agent of its own."""
        made = built(self._factory, {"window": self._options.window})
        middleware = list(made) if isinstance(made, (list, tuple)) else [made]
        return _Agent(self._agents, middleware)

    def close(self) -> None:
        """Nothing was started."""


class _Agent:
    def __init__(self, agents: Any, middleware: list[Any]) -> None:
        from langchain_core import messages, tools

        self._messages = messages
        self._model = _model()
        declared = [
            tools.StructuredTool.from_function(_done, name=name, description=name) for name in TOOLS
        ]
        self._saver = _saver()
        self._make: Callable[..., Any] = functools.partial(
            agents.create_agent, self._model, declared, middleware=middleware,
            checkpointer=self._saver,
        )  # fmt: skip
        self._agent: Any = None
        self._state: dict[str, Any] = {}
        self._taken = 0

    def send(self, request: dict[str, Any]) -> Sent:
        """Run the agent for one call of the model."""
        given = copy.deepcopy(request["messages"])
        system = given[0]["content"] if given[:1] and given[0]["role"] == "system" else None
        given = given[1:] if system is not None else given
        if self._agent is None:
            self._agent = self._make(system_prompt=system)
        fresh = self._messages.convert_to_messages(given[self._taken :])
        self._taken = len(given)
        self._model.got.clear()
        # A checkpoint keeps what a middleware hides from the graph's output; one at a time.
        thread: Any = {"configurable": {"thread_id": "conformance"}}
        if self._state:
            self._agent.update_state(thread, self._state, as_node="tools")
        self._agent.invoke({"messages": fresh}, thread, durability="exit")
        after = self._agent.get_state(thread).values
        self._saver.delete_thread("conformance")
        self._state = {**after, "messages": after["messages"][:-1]}  # without the reply
        got = self._messages.convert_to_openai_messages(self._model.got[-1])
        return Sent({**request, "tools": self._model.tools, "messages": _plain(got)})

    def recall(self, handle: str) -> str | None:
        """None: a middleware offers recall only to the model, as a tool."""
        return None

    def close(self) -> None:
        """Nothing to close: everything is in memory."""


def _saver() -> Any:
    from langgraph.checkpoint.memory import InMemorySaver

    return InMemorySaver()


def _plain(messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Messages as OpenAI's API takes them: empty content beside calls is null, not ""."""
    return [
        {**one, "content": None} if one.get("tool_calls") and not one.get("content") else one
        for one in messages
    ]


def _done(**arguments: Any) -> str:
    """The function of every tool; never run, because the model's reply has no calls."""
    return "done"


def _model() -> Any:
    """A chat model that records its input in ``got`` and ``tools`` and answers "OK"."""
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage
    from langchain_core.outputs import ChatGeneration, ChatResult
    from langchain_core.utils.function_calling import convert_to_openai_tool

    class Recorder(BaseChatModel):
        got: list[Any] = []  # noqa: RUF012 - pydantic copies it for each object
        tools: list[Any] = []  # noqa: RUF012

        @property
        def _llm_type(self) -> str:
            return "recorder"

        def bind_tools(self, tools: Any, **more: Any) -> Any:
            self.tools[:] = [convert_to_openai_tool(one) for one in tools]
            return self

        def _generate(self, messages: Any, *rest: Any, **more: Any) -> ChatResult:
            self.got.append(list(messages))
            return ChatResult(generations=[ChatGeneration(message=AIMessage("OK"))])

    return Recorder()
