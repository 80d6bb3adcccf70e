"""Agents of LangChain against the strict provider: models, tools, scripts of long tool loops.

Knows how LangChain's own clients are pointed at a URL.  Asserts nothing.
"""

from __future__ import annotations

from typing import Any

from langchain.agents import create_agent
from langchain_anthropic import ChatAnthropic
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI

from trimtab_lab.testing import Answer, Call
from trimtab_lab.testing.record import Record

LINES = 90
TURNS = 30
TASK = "Find out which module sets the colour of the parser's flag, and fix it."


@tool
def read(path: str) -> str:
    """Read a file."""
    return "\n".join(f"{path}:{n} set_flag(module_{n % 7}, value_{n * 31})" for n in range(LINES))


@tool
def grep(word: str) -> str:
    """Search for a word."""
    return "\n".join(f"src/{word}/{n}.py:{n}: def fn_{n}_{word}()" for n in range(LINES // 4))


TOOLS = [read, grep]


def script(record: Record) -> Answer:
    """Two parallel calls a turn, thirty turns long, whatever was cut; then the answer."""
    done = int(record.headers.get("x-turn", "0"))
    return turn(done)


def turn(number: int, thinking: str = "") -> Answer:
    """The model's answer in its n-th turn, from 0."""
    if number >= TURNS:
        return Answer("It was module_3.", thinking=thinking)
    calls = [
        Call("read", {"path": f"src/f{number}.py"}, f"call_{number:02}a"),
        Call("grep", {"word": f"needle{number}"}, f"call_{number:02}b"),
    ]
    return Answer(f"Step {number}: I look further.", calls, thinking=thinking)


def answers(thinking: bool = False) -> list[Answer]:
    """The whole loop."""
    return [turn(n, f"Thought {n}." if thinking else "") for n in range(TURNS + 1)]


def openai_chat(url: str, **more: Any) -> ChatOpenAI:
    """OpenAI's Chat Completions."""
    return ChatOpenAI(
        model="gpt-5.1", base_url=f"{url}/v1", api_key="x", max_retries=0, max_tokens=500, **more
    )


def openai_responses(url: str) -> ChatOpenAI:
    """OpenAI's Responses, reasoning and all; nothing is kept on the server."""
    return openai_chat(url, use_responses_api=True, store=False)


def claude(url: str) -> ChatAnthropic:
    """Anthropic's Messages, a model that binds its thinking to what stands before it."""
    return ChatAnthropic(
        model="claude-sonnet-5-5", base_url=url, api_key="x", max_retries=0, max_tokens=500,
        thinking={"type": "adaptive"},
    )  # fmt: skip


MODELS = {"chat": openai_chat, "responses": openai_responses, "anthropic": claude}


def agent(model: Any, middleware: list[Any], **more: Any) -> Any:
    """An agent with the two tools."""
    return create_agent(
        model, TOOLS, system_prompt="You mend programs.", middleware=middleware, **more
    )
