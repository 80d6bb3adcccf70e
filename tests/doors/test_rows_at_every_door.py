"""Rows B4, B9, B17, C4 and C11 by default settings: wrap, proxy, LangChain, command line.

Knows what a user of each door types, and what the provider is sent.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anthropic
import langchain_agents as lc
import pytest
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from proxies import proxied
from retrieval_cases import QUESTION, articles
from tool_calls import Step, conversation

import trimtab
from trimtab.cli import main
from trimtab.clients.langchain import TrimtabMiddleware
from trimtab_lab.testing import StrictProvider

Send = Callable[[list[Step]], str]
"""Sends the conversation of these steps; returns the body that the provider gets, as JSON."""
LONG = "".join(f"old_line_{n} = {n * 7919}\n" for n in range(400))
FAILED = Step("edit", {"file_path": "src/b.py", "old_string": LONG, "new_string": "x"},
              "The quota of this workspace is used up.", True)  # fmt: skip
TALK = [Step("ask", {"n": n}, f"answer {n}: " + f"w{n} " * 200) for n in range(12)]
PAPERS = [Step("search", {"q": n}, json.dumps({"articles": articles(7, 60, seed=n)}))
          for n in range(3)]  # fmt: skip
SUMMARY = "The keeper at Ymir rock was paid 412 crowns."


def size(steps: list[Step]) -> int:
    return trimtab.measure(conversation("anthropic", *steps, last=QUESTION)).total


def body_of(steps: list[Step]) -> dict[str, Any]:
    body = conversation("anthropic", *steps, last=QUESTION)
    return {**body, "model": "claude-sonnet-4-5", "max_tokens": 100}


@contextmanager
def at_wrap(window: int, url: str, say: str, folder: Path) -> Iterator[Send]:
    with StrictProvider(answer="OK") as provider:
        plain = anthropic.Anthropic(base_url=provider.url, api_key="x", max_retries=0)
        client = trimtab.wrap(
            plain, window=window, store=url, settings=trimtab.Settings(summarizer=endpoint(say))
        )

        def send(steps: list[Step]) -> str:
            client.messages.create(**body_of(steps))
            return json.dumps(provider.requests[-1].body)

        yield send


@contextmanager
def at_the_proxy(window: int, url: str, say: str, folder: Path) -> Iterator[Send]:
    fit = trimtab.Settings(summarizer=endpoint(say))
    with (
        StrictProvider(answer="OK") as provider,
        proxied(provider.url, window=window, store=url, fit=fit) as server,
    ):
        client = anthropic.Anthropic(base_url=server.url, api_key="x", max_retries=0)

        def send(steps: list[Step]) -> str:
            client.messages.create(**body_of(steps))
            return json.dumps(provider.requests[-1].body)

        yield send


@contextmanager
def at_langchain(window: int, url: str, say: str, folder: Path) -> Iterator[Send]:
    with StrictProvider(answer="OK") as provider:
        ours = TrimtabMiddleware(window=window, store=url, summarizer=endpoint(say))
        model = ChatAnthropic(
            model="claude-sonnet-4-5", base_url=provider.url, api_key="x", max_retries=0,
            max_tokens=100,
        )  # fmt: skip
        agent = lc.agent(model, [ours], checkpointer=InMemorySaver())
        runs = iter(range(10**6))

        def send(steps: list[Step]) -> str:
            messages: list[AnyMessage] = [HumanMessage("Please mend the parser.", id="u")]
            for number, step in enumerate(steps):
                call = {"name": step.tool, "args": step.arguments, "id": f"call_{number}",
                        "type": "tool_call"}  # fmt: skip
                messages.append(AIMessage("", id=f"a{number}", tool_calls=[call]))
                status = "error" if step.error else "success"
                messages.append(ToolMessage(step.result, id=f"t{number}", status=status,
                                            tool_call_id=f"call_{number}"))  # fmt: skip
            messages.append(HumanMessage(QUESTION, id="q"))
            config: Any = {"configurable": {"thread_id": f"{next(runs)}"}}
            agent.invoke({"messages": messages}, config)
            return json.dumps(provider.requests[-1].body)

        yield send


@contextmanager
def at_the_command_line(window: int, url: str, say: str, folder: Path) -> Iterator[Send]:
    given, out = folder / "in.json", folder / "out.json"
    asked = ["--summarizer-url", say, "--summarizer-model", "m"] if say else []

    def send(steps: list[Step]) -> str:
        given.write_text(json.dumps(body_of(steps)))
        words = ["fit", str(given), "-o", str(out), "--window", str(window)]
        words += ["--journal", str(folder / "journal.json")]
        assert main([*words, *asked]) == 0
        return out.read_text()

    yield send


DOORS = {"wrap": at_wrap, "proxy": at_the_proxy, "LangChain": at_langchain,
         "command line": at_the_command_line}  # fmt: skip
EVERY_DOOR = pytest.mark.parametrize("door", DOORS)


def endpoint(url: str) -> Any:
    return trimtab.settings.Endpoint(url, "m") if url else None


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/store.db"


def stats(door: str, url: str, turns: int, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """What was counted: in the store once it knows of so many turns; at the command line by the
    report, whose edits are all that stand."""
    report = capsys.readouterr().err
    if door == "command line":
        line = re.search(r", ([\d,]+) → ([\d,]+) tokens: .*the call failed", report)
        sizes = [int(size.replace(",", "")) for size in line.groups()] if line else []
        saved = {"failed-input": sizes[0] - sizes[1]} if line else {}
        failed = dict.fromkeys(re.findall(r"the call failed \((\w+)\)", report), 1)
        return {"turns": turns, "saved": saved, "failed": failed}
    turns *= 2 if door == "LangChain" else 1  # before the model, and around it
    tenant = "provider/local" if door == "proxy" else "default"
    for _ in range(200):
        if main(["status", "--store", url, "--tenant", tenant, "--json"]) == 0:
            said: dict[str, Any] = json.loads(capsys.readouterr().out)
            if said["turns"] >= turns:
                return said
        capsys.readouterr()
        time.sleep(0.05)
    raise AssertionError(f"fewer than {turns} turns were counted")


@pytest.mark.row("B4", "B9")
@EVERY_DOOR
def test_the_input_of_a_call_that_a_flag_calls_failed_goes_and_its_error_stays(
    door: str, url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad, good = ([TALK[0], step, *TALK[1:]] for step in (FAILED, FAILED._replace(error=False)))
    window = int(size(bad) / 0.97)
    with DOORS[door](window, url, "", tmp_path) as send:
        sent = send(bad)
    assert "old_line_200 =" not in sent
    assert "src/b.py" in sent
    assert FAILED.result in sent
    whole = sum(step.result in sent for step in TALK)
    assert whole == len(TALK)  # nothing else had to go
    assert stats(door, url, 1, capsys)["failed"] == {"other": 1}
    assert "old_line_200 =" in json.dumps(body_of(good))


@pytest.mark.row("B4", "B9")
@EVERY_DOOR
def test_without_a_flag_an_unknown_text_is_no_failure(
    door: str, url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = [TALK[0], FAILED._replace(error=False), *TALK[1:]]
    with DOORS[door](int(size(good) / 0.97), url, "", tmp_path) as send:
        send(good)
    assert stats(door, url, 1, capsys)["failed"] == {}


@pytest.mark.row("B17")
@EVERY_DOOR
def test_what_was_saved_is_counted_once_and_by_cause(
    door: str, url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = [TALK[0], FAILED, *TALK[1:]]
    with DOORS[door](int(size(bad) / 0.97), url, "", tmp_path) as send:
        first = send(bad)
        once = stats(door, url, 1, capsys)
        for _ in range(2):
            assert send(bad) == first
        again = stats(door, url, 3, capsys)
    assert once["saved"].keys() == {"failed-input"}
    assert again["saved"] == once["saved"]
    assert again["turns"] == once["turns"] * 3
    arrived = (trimtab.measure(body_of(bad)).total, trimtab.measure(json.loads(first)).total)
    if door != "LangChain":  # its model brings a tool and a prompt of its own
        assert once["saved"]["failed-input"] == pytest.approx(arrived[0] - arrived[1], abs=20)


@pytest.mark.row("C4", "C11")
@EVERY_DOOR
def test_a_summarizer_is_asked_for_less_of_each_article_and_once_for_each(
    door: str, url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with StrictProvider(answer=SUMMARY) as model:
        with DOORS[door](int(size(PAPERS) / 0.97), url, f"{model.url}/v1", tmp_path) as send:
            first = send(PAPERS)
            prompts = [str(one.body["messages"][0]["content"]) for one in model.requests]
            assert SUMMARY in first
            assert prompts
            for prompt in prompts:
                assert f"Question: {QUESTION}" in prompt
                title = re.search(r"Title: (Article \d-\d)\n", prompt)
                assert title is not None
                assert "https://ex.org/" in prompt
                tokens = int(re.search(r"at most (\d+) tokens", prompt)[1])  # type: ignore[index]
                (whole,) = [
                    a["content"] for step in PAPERS for a in json.loads(step.result)["articles"]
                    if a["title"] == title[1]
                ]  # fmt: skip
                assert whole in prompt
                said = {
                    "model": "claude-sonnet-4-5",
                    "messages": [{"role": "user", "content": whole}],
                }
                assert tokens <= 0.65 * trimtab.measure(said, format="anthropic").total
            assert first.count("compressed") >= first.count(SUMMARY) > 0
            assert send(PAPERS) == first
        with DOORS[door](int(size(PAPERS) / 0.97), url, f"{model.url}/v1", tmp_path) as send:
            assert send(PAPERS) == first  # after a restart
        assert len(model.requests) == len(prompts)
