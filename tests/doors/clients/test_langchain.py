"""Agents of LangChain with TrimtabMiddleware against the strict provider: real clients, long loops.

Knows what a user of LangChain sees, and what the provider was sent.
"""

from __future__ import annotations

import asyncio
import json
import re
import runpy
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import langchain_agents as lc
import pytest
from langchain.agents.middleware import (
    AgentMiddleware,
    ClearToolUsesEdit,
    ContextEditingMiddleware,
    SummarizationMiddleware,
)
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from settings_words import as_keywords

import trimtab
from trimtab.clients.langchain import TrimtabMiddleware, pre_model_hook
from trimtab.clients.langchain.session_cache import SessionCache
from trimtab.clients.sent_fits import SentFits
from trimtab.journal.excerpts import answer
from trimtab_lab.testing import Answer, Call, Refuse, StrictProvider
from trimtab_lab.testing.record import Record

WINDOW = 11_500
"""The loop of ``langchain_agents`` comes to five times as much."""
MODELS = pytest.mark.parametrize("name", list(lc.MODELS))
PERSIST = pytest.mark.parametrize("persist", [True, False], ids=["persist", "request"])
ASKED = {"messages": [{"role": "user", "content": lc.TASK}]}


def config(thread: str = "1") -> Any:
    return {"recursion_limit": 200, "configurable": {"thread_id": thread}}


def run(agent: Any, how: str = "sync", asked: Any = ASKED, thread: str = "1") -> list[AnyMessage]:
    """The messages after one run."""
    return runs(agent, how, [asked], thread)


def runs(agent: Any, how: str, asks: list[Any], thread: str = "1") -> list[AnyMessage]:
    """The messages after the last of several runs; they share an event loop, as clients do."""

    async def all_of_them() -> Any:
        return [await agent.ainvoke(asked, config(thread)) for asked in asks]

    if how == "async":
        last = asyncio.run(all_of_them())[-1]
    else:
        last = [agent.invoke(asked, config(thread)) for asked in asks][-1]
    return list(last["messages"])


def cached(**keywords: Any) -> SessionCache:
    """The sessions of a middleware with a store."""
    return SessionCache({"store": "memory:", **keywords}, SentFits("test"), "")  # type: ignore[typeddict-item]


def legal(provider: StrictProvider) -> None:
    assert provider.crashes == []
    for record in provider.requests:
        if record.status == 200:
            assert trimtab.check(record.body, format=record.format, model=record.model) == ()


@MODELS
def test_without_the_middleware_the_loop_dies_of_its_history(name: str) -> None:
    with StrictProvider(lc.answers(thinking=name == "anthropic"), window=WINDOW) as provider:
        with pytest.raises(Exception, match=r"context|too long"):
            run(lc.agent(lc.MODELS[name](provider.url), []))
        assert provider.requests[-1].refusal == "overflow"


@pytest.mark.parametrize(("how", "persist"), [("sync", True), ("async", False)])
@MODELS
def test_an_agent_finishes_thirty_turns_of_five_times_the_window(
    name: str, how: str, persist: bool
) -> None:
    thinking = name == "anthropic"
    with StrictProvider(lc.answers(thinking), window=WINDOW) as provider:
        ours = TrimtabMiddleware(window=WINDOW, persist=persist)
        agent = lc.agent(lc.MODELS[name](provider.url), [ours], checkpointer=InMemorySaver())
        messages = run(agent, how)
        assert messages[-1].text == "It was module_3."
        assert [record.status for record in provider.requests] == [200] * (lc.TURNS + 1)
        legal(provider)
    results = [m for m in messages if isinstance(m, ToolMessage)]
    assert len(results) == 2 * lc.TURNS
    assert messages[0].content == lc.TASK
    given = sum(len(lc.read.invoke({"path": f"src/f{n}.py"})) for n in range(lc.TURNS))
    kept = sum(len(m.text) for m in results if m.name == "read")
    assert kept == given if not persist else kept < given / 2
    if not persist:  # the state is the whole history
        assert tokens(messages[:-1]) >= 5 * WINDOW


def test_an_agent_that_streams_finishes_too() -> None:
    with StrictProvider(lc.answers(), window=WINDOW) as provider:
        agent = lc.agent(lc.openai_chat(provider.url), [TrimtabMiddleware(window=WINDOW)])
        seen = [
            chunk.text for chunk, _ in agent.stream(ASKED, config(), stream_mode="messages")
            if isinstance(chunk, AIMessage)
        ]  # fmt: skip
        assert "It was module_3." in "".join(seen)
        assert all(record.stream for record in provider.requests)
        assert {record.status for record in provider.requests} == {200}


# ---------------------------------------------------------------- C1, C8: the hook itself


def history(turns: int, size: int = 60) -> list[AnyMessage]:
    """A state as the reducer leaves it: every message has an id."""
    found: list[AnyMessage] = [HumanMessage(lc.TASK, id="task")]
    for n in range(turns):
        call = {"name": "read", "args": {"path": f"f{n}"}, "id": f"call_{n}", "type": "tool_call"}
        text = "\n".join(f"f{n}:{k} value_{k * n} of module_{k % 7}" for k in range(size))
        usage: Any = {"input_tokens": 900 * n + 9, "output_tokens": 9, "total_tokens": 900 * n + 18}
        found += [
            AIMessage(
                f"Step {n}", id=f"ai-{n}", tool_calls=[call], usage_metadata=usage,
                response_metadata={"model_provider": "openai", "model_name": "gpt-5.1"},
            ),
            ToolMessage(
                text, id=f"tool-{n}", tool_call_id=f"call_{n}", name="read", artifact={"n": n},
                additional_kwargs={"mine": n},
            ),
        ]  # fmt: skip
    return found


def tokens(messages: list[AnyMessage]) -> int:
    told: list[trimtab.events.Event] = []
    ours = TrimtabMiddleware(
        window=10**7, settings=trimtab.Settings(counter="o200k", on_event=told.append)
    )
    assert ours.before_model({"messages": messages}, None) is None  # type: ignore[arg-type]
    (fit,) = told
    assert isinstance(fit, trimtab.events.FitEvent)
    return fit.tokens_before


def updates(messages: list[AnyMessage], how: str = "sync", **keywords: Any) -> Any:
    ours = TrimtabMiddleware(**as_keywords(counter="o200k", **keywords))
    if how == "async":
        return asyncio.run(ours.abefore_model({"messages": messages}, None))  # type: ignore[arg-type]
    return ours.before_model({"messages": messages}, None)  # type: ignore[arg-type]


@pytest.mark.row("C1")
@pytest.mark.parametrize("how", ["sync", "async"])
def test_the_hook_returns_none_up_to_the_threshold_and_an_update_one_token_above(
    how: str,
) -> None:
    messages = history(8)
    total = tokens(messages)
    window = next(w for w in range(total, 2 * total) if int(w * 0.85) == total)
    limits = trimtab.Settings(trigger=0.85, target=0.80)
    assert updates(messages, how, window=window, settings=limits) is None
    assert updates(messages, how, window=window - 2, settings=limits)["messages"]


@pytest.mark.row("B7", "C15")
def test_what_the_report_warns_of_reaches_the_logger_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def closed(prompt: str) -> str:
        raise RuntimeError("closed")

    def broken(block: Any, config: Any) -> Any:
        raise RuntimeError("not today")

    found = [{"title": f"T{n}", "url": f"https://a/{n}", "content": f"Word {n} here. " * 200}
             for n in range(8)]  # fmt: skip
    messages = history(2)
    messages[2].content = json.dumps({"articles": found})
    with caplog.at_level("WARNING", "trimtab"):
        updates(messages, window=4_000, summarizer=closed, extra_reducers=[broken])
    said = [r.getMessage() for r in caplog.records if r.name == "trimtab"]
    assert sum("summarizer test_B7_C15" in s or "summarizer closed" in s for s in said) == 1
    assert sum("reducer skipped: broken: RuntimeError" in s for s in said) == 1
    assert not any("not today" in s for s in said), "what an error says may quote a message"


@pytest.mark.row("C1")
def test_without_a_window_the_hook_waits_for_the_model_to_name_it() -> None:
    ours = TrimtabMiddleware()
    unknown = [HumanMessage("word " * 400_000, id="1")]
    assert ours.before_model({"messages": unknown}, None) is None  # type: ignore[arg-type]
    with StrictProvider() as provider:
        model = lc.openai_chat(provider.url, profile={"max_input_tokens": 2_000})
        messages = run(lc.agent(model, [ours]), asked={"messages": history(8)})
        assert messages[-1].text == "OK"
        assert provider.requests[0].tokens <= 2_000


@pytest.mark.row("C8")
@pytest.mark.parametrize("how", ["sync", "async"])
def test_only_changed_messages_come_back_and_with_their_ids(how: str) -> None:
    messages = history(12)
    before = [message.model_copy(deep=True) for message in messages]
    update = updates(messages, how, window=6_000)
    assert messages == before  # the state's own objects are never changed
    by_id = {message.id: message for message in messages}
    changed = update["messages"]
    assert 0 < len(changed) < len(messages)
    results = [message for message in changed if isinstance(message, ToolMessage)]
    assert results
    for message in results:
        was = by_id[message.id]
        assert isinstance(was, ToolMessage)
        assert len(message.text) < len(was.text)
        same = {"content"}
        assert message.model_dump(exclude=same) == was.model_dump(exclude=same)
    rest = [message for message in changed if message not in results]
    assert [message.id for message in rest] == ["ai-11"]  # its usage told of the size before
    assert rest[0].usage_metadata is None
    assert rest[0].response_metadata["usage_before_trimtab"]["total_tokens"] == 900 * 11 + 18


@pytest.mark.row("C8")
def test_the_numbers_of_the_design_are_a_preset() -> None:
    messages, window = searched()
    told: list[trimtab.events.Event] = []
    ours = TrimtabMiddleware.just_in_time(
        window=window, settings=trimtab.Settings(counter="o200k", on_event=told.append)
    )
    update = ours.before_model({"messages": messages}, None)  # type: ignore[arg-type]
    assert update is not None
    *edits, fit = told
    assert isinstance(fit, trimtab.events.FitEvent)
    assert {edit.as_dict()["kind"] for edit in edits} == {"articles"}
    assert fit.tokens_after <= 0.80 * window + 100
    assert [message.id for message in update["messages"]] == ["t2"]  # the newest result
    short = [
        a["metadata"].get("compressed") for a in json.loads(update["messages"][0].text)["articles"]
    ]
    first = short.index(True)
    assert short == [None] * first + [True] * (7 - first)  # its last articles
    assert 0 < first < 7
    at = TrimtabMiddleware.just_in_time(window=262_144)
    fitted = at._sessions.of_key("").fit({"messages": []}, format="openai-chat", window=262_144)
    assert fitted.report.limits["trigger_tokens"] == 222_822


def searched(seed: int = 0) -> tuple[list[AnyMessage], int]:
    """A conversation with three search results, and a window of which it takes 95 %."""
    from retrieval_cases import QUESTION, articles

    messages: list[AnyMessage] = [HumanMessage(QUESTION, id="q")]
    for call in range(3):
        text = json.dumps({"articles": articles(7, 60, seed=call + seed)})
        made = {"name": "search", "args": {}, "id": f"call_{call}", "type": "tool_call"}
        messages.append(AIMessage("", id=f"a{call}", tool_calls=[made]))
        messages.append(ToolMessage(text, id=f"t{call}", tool_call_id=f"call_{call}"))
    return messages, int(tokens(messages) / 0.95)


def articles_of(message: AnyMessage) -> list[dict[str, Any]]:
    return list(json.loads(message.text)["articles"])


@pytest.mark.row("C4")
def test_just_in_time_asks_the_summarizer_for_thirty_per_cent_of_an_article() -> None:
    messages, window = searched()
    prompts: list[str] = []

    def say(prompt: str) -> str:
        prompts.append(prompt)
        return "The keeper at Ymir rock was paid 412 crowns."

    ours = TrimtabMiddleware.just_in_time(window=window, summarizer=say)
    update = ours.before_model({"messages": messages}, None)  # type: ignore[arg-type]
    assert update is not None
    (changed,) = update["messages"]
    before = {a["title"]: a for a in articles_of(messages[6])}
    after = articles_of(changed)
    said = [a for a in after if "412 crowns" in a["content"]]
    assert said
    assert said == after[-len(said) :]  # the last of the newest result
    assert len(prompts) >= len(said)
    for article in said:
        (prompt,) = [p for p in prompts if f"Title: {article['title']}\n" in p]
        assert article["url"] in prompt
        assert before[article["title"]]["content"] in prompt
        assert "Question: How much was the lighthouse keeper" in prompt
        asked = int(re.search(r"to at most (\d+) tokens", prompt)[1])  # type: ignore[index]
        whole = trimtab.measure([{"role": "user", "content": before[article["title"]]["content"]}])
        assert 0.2 * whole.total < asked <= 0.3 * whole.total
        assert article["metadata"]["compressed"] is True
    whole = 6 - len(said)  # one between them may be said by half
    assert after[:whole] == articles_of(messages[6])[:whole]


@pytest.mark.row("C4")
def test_an_article_said_by_half_in_the_state_is_shortened_again_when_there_is_need() -> None:
    messages, window = searched()

    def update(messages: list[AnyMessage], window: int) -> list[AnyMessage]:
        ours = TrimtabMiddleware.just_in_time(window=window, summarizer=lambda prompt: "Paid 412.")
        changed = ours.before_model({"messages": messages}, None)  # type: ignore[arg-type]
        assert changed is not None
        by_id = {message.id: message for message in changed["messages"]}
        return [by_id.get(message.id, message) for message in messages]

    once = update(messages, window)
    before = {a["title"]: a["content"] for a in articles_of(messages[6])}
    (half,) = [  # the room that was left went to the one shortened last
        a for a in articles_of(once[6])
        if 0.3 * len(before[a["title"]]) < len(a["content"]) < len(before[a["title"]])
    ]  # fmt: skip
    assert "compressed" not in half["metadata"]
    made = {"name": "search", "args": {}, "id": "call_4", "type": "tool_call"}
    later = [
        AIMessage("", id="a4", tool_calls=[made]),
        ToolMessage("Nothing found.", id="t4", tool_call_id="call_4"),
        HumanMessage("And now? " * 900, id="q2"),
    ]
    twice = update([*once, *later], window)
    (again,) = [a for a in articles_of(twice[6]) if a["title"] == half["title"]]
    assert again["metadata"]["compressed"] is True
    assert len(again["content"]) < len(half["content"])
    done = [a for a in articles_of(once[6]) if a["metadata"].get("compressed")]
    assert done
    assert all(a in articles_of(twice[6]) for a in done)  # what is done stays as it is


@pytest.mark.row("C11")
@PERSIST
def test_another_thread_asks_for_no_summary_that_this_process_has(persist: bool) -> None:
    messages, window = searched()
    prompts: list[str] = []

    def say(prompt: str) -> str:
        prompts.append(prompt)
        return "The keeper at Ymir rock was paid 412 crowns."

    with StrictProvider(["So."] * 3) as provider:
        model = lc.openai_chat(provider.url)
        first, second = (
            TrimtabMiddleware.just_in_time(window=window, summarizer=say, persist=persist)
            for _ in range(2)
        )
        for thread, ours in enumerate((first, first, second)):
            agent = lc.agent(model, [ours], checkpointer=InMemorySaver())
            run(agent, asked={"messages": messages}, thread=f"{thread}")
            if thread == 0:
                asked = len(prompts)
                assert asked
        assert len(prompts) == asked
        bodies = [record.body["messages"] for record in provider.requests]
        assert bodies[0] == bodies[2]


KEYWORDS: dict[str, Any] = {
    "summarizer": lambda prompt: "short",
    "protected_tools": ["plan"],
    "pins": [lambda block: "never delete" in block.text],
    "on_event": lambda event: None,
}


@pytest.mark.parametrize("name", KEYWORDS)
@pytest.mark.parametrize("make", [TrimtabMiddleware, TrimtabMiddleware.just_in_time,
                                  pre_model_hook])  # fmt: skip
def test_the_keywords_that_the_page_names_are_taken(make: Any, name: str) -> None:
    value = KEYWORDS[name]
    made = make(window=WINDOW, **{name: value}, settings=trimtab.Settings(counter="o200k"))
    if isinstance(made, TrimtabMiddleware):
        settings = made._sessions.settings
        taken = getattr(settings, name)
        assert (taken.say if name == "summarizer" else taken) == value
        assert settings.counter == "o200k"
    with pytest.raises(TypeError, match="did you mean summarizer"):
        make(window=WINDOW, summariser=value)
    with pytest.raises(TypeError, match=r"settings=trimtab.Settings\(trigger=…\)"):
        make(window=WINDOW, trigger=0.9)


def test_protected_tools_and_events_given_by_keyword_have_their_effect() -> None:
    messages, window = searched()
    events: list[trimtab.events.Event] = []
    ours = TrimtabMiddleware(window=window, protected_tools=["search"], on_event=events.append)
    assert ours.before_model({"messages": messages}, None) is None  # type: ignore[arg-type]
    free = TrimtabMiddleware(window=window, on_event=events.append)
    assert free.before_model({"messages": messages}, None)  # type: ignore[arg-type]
    assert events


@pytest.mark.row("C8")
def test_it_runs_before_summarization_which_then_has_nothing_to_do() -> None:
    """Also X13: the compactor of LangChain reads the usage of the newest answer."""

    def summarized(first: list[Any]) -> bool:
        script = [*lc.answers()[:20], "It was module_3."]
        with StrictProvider(script, window=WINDOW if first else None) as provider:
            model = lc.openai_chat(provider.url)
            theirs = SummarizationMiddleware(
                model, trigger=("tokens", int(0.95 * WINDOW)), keep=("messages", 4),
                summarizer=lambda _: "A summary.",
            )  # fmt: skip
            messages = run(lc.agent(model, [*first, theirs], checkpointer=InMemorySaver()))
            assert messages[-1].text == "It was module_3."
            return messages[0].additional_kwargs.get("lc_source") == "summarization"

    assert not summarized([TrimtabMiddleware(window=WINDOW)])
    assert summarized([])


@pytest.mark.row("X13")
@PERSIST
def test_a_summarizer_in_front_of_ours_is_warned_of(persist: bool) -> None:
    script = [*lc.answers()[:8], "It was module_3."]
    with StrictProvider([*script, *script], window=WINDOW) as provider:
        model = lc.openai_chat(provider.url)
        theirs = SummarizationMiddleware(
            model, trigger=("tokens", WINDOW // 2), keep=("messages", 4), summarizer=lambda _: "So."
        )
        ours = TrimtabMiddleware(window=WINDOW, persist=persist)
        with pytest.warns(UserWarning, match="put TrimtabMiddleware first") as told:
            run(lc.agent(model, [theirs, ours], checkpointer=InMemorySaver()))
        assert len(told) == 1
        with warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)
            ours = TrimtabMiddleware(window=WINDOW, persist=persist)
            run(lc.agent(model, [ours, theirs], checkpointer=InMemorySaver()), thread="2")


@pytest.mark.row("X13")
@pytest.mark.parametrize("how", ["sync", "async"])
def test_a_middleware_in_front_of_ours_that_clears_results_is_named_once(how: str) -> None:
    theirs = ContextEditingMiddleware(edits=[ClearToolUsesEdit(trigger=WINDOW // 2)])
    with StrictProvider([*lc.answers()[:8], "So."] * 2, window=WINDOW) as provider:
        model = lc.openai_chat(provider.url)
        with pytest.warns(UserWarning, match="remove it from middleware") as told:
            run(lc.agent(model, [theirs, TrimtabMiddleware(window=WINDOW)]), how)
        assert [str(one.message).partition(" ")[0] for one in told] == ["ContextEditingMiddleware"]
        legal(provider)
        with warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)
            run(lc.agent(model, [TrimtabMiddleware(window=WINDOW), theirs]))


@pytest.mark.row("X13")
def test_a_summary_made_around_the_model_is_named_with_how_it_is_excluded() -> None:
    """As deepagents does it: the state keeps all, and the call is given a summary."""

    class SummarizationAround(AgentMiddleware[Any, Any, Any]):
        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            if len(request.messages) < 8:
                return handler(request)
            said = {"lc_source": "summarization"}
            summary = HumanMessage("In short: nothing yet.", additional_kwargs=said)
            return handler(request.override(messages=[summary, *request.messages[-3:]]))

    with StrictProvider([*lc.answers()[:8], "So."] * 2, window=100_000) as provider:
        model = lc.openai_chat(provider.url)
        with pytest.warns(UserWarning, match=r"deepagents .*\(excluded_middleware=") as told:
            run(lc.agent(model, [SummarizationAround(), TrimtabMiddleware(window=90_000)]))
        assert len(told) == 1
        legal(provider)


# ---------------------------------------------------------------- what the middleware shows


@MODELS
@PERSIST
def test_a_middleware_shows_what_was_cut_and_gives_it_back(
    name: str, persist: bool, caplog: pytest.LogCaptureFixture
) -> None:
    ours = TrimtabMiddleware(window=WINDOW, persist=persist)
    assert (ours.report, ours.history()) == (None, [])
    thinking = name == "anthropic"
    with StrictProvider(lc.answers(thinking), window=WINDOW) as provider, caplog.at_level("INFO"):
        agent = lc.agent(lc.MODELS[name](provider.url), [ours], checkpointer=InMemorySaver())
        run(agent, thread="a")
    view, edits = trimtab.of(ours), ours.history()
    assert ours.report is not None
    assert ours.report.tokens_after <= ours.report.tokens_before
    assert edits
    assert edits == view.history() == view.conversations["a"].history()
    assert any("src/f" in view.recall(edit.handle) for edit in edits)
    assert view.stats is ours.stats
    assert view.stats.requests == lc.TURNS + 1
    told = [r for r in caplog.records if (r.name, r.levelname) == ("trimtab", "INFO")]
    lines = [r.getMessage() for r in told]
    assert len(lines) == view.stats.cuts > 0
    assert all('; undo: trimtab.of(middleware).undo("' in line for line in lines)
    assert repr(view).startswith(f"<trimtab on TrimtabMiddleware: {lc.TURNS + 1} requests, ")
    assert (view.stats.refusals_avoided > view.stats.cuts) is not persist
    view.undo(edits[-1].handle)
    assert ours.history()[-1].undone


@pytest.mark.parametrize(
    ("persist", "preset"), [(True, "in-place"), (True, "balanced"), (False, "balanced")]
)
def test_the_report_and_the_counters_tell_of_a_cut_wherever_it_was_made(
    persist: bool, preset: Any
) -> None:
    ours = TrimtabMiddleware(
        window=WINDOW, persist=persist, settings=trimtab.Settings(preset=preset)
    )
    reports = []

    class Reports(AgentMiddleware[Any, Any, Any]):
        def after_model(self, state: Any, runtime: Any) -> None:
            reports.append((trimtab.of(ours).stats.cuts, ours.report))

    with StrictProvider(lc.answers(), window=WINDOW) as provider:
        agent = lc.agent(lc.openai_chat(provider.url), [ours, Reports()])
        run(agent)
    cuts = [0, *(cuts for cuts, _ in reports)]
    after_cut = [report for n, (now, report) in enumerate(reports) if now > cuts[n]]
    assert after_cut
    for report in after_cut:
        assert report is not None
        assert ": reduced to " in report.reason
        assert any(edit.new for edit in report.edits)
        handles = [edit.handle for edit in report.edits]
        assert len(handles) == len(set(handles))
        assert report.tokens_before - report.tokens_after == report.tokens_saved > 1000
    stats = ours.stats
    assert stats.changed >= stats.cuts == len(after_cut)
    assert stats.tokens_saved >= stats.tokens_archived * 0.9
    assert stats.refusals_avoided > 0
    assert "nothing" in reports[0][1].reason


def test_threads_of_one_middleware_are_told_apart() -> None:
    ours = TrimtabMiddleware(window=WINDOW, persist=False)
    with StrictProvider([*lc.answers()[:9], "One.", "Two."], window=WINDOW) as provider:
        agent = lc.agent(lc.openai_chat(provider.url), [ours], checkpointer=InMemorySaver())
        run(agent, thread="a")
        edits = ours.history()
        run(agent, asked={"messages": [{"role": "user", "content": "Hello."}]}, thread="b")
    assert edits
    assert ours.history() == []
    assert list(trimtab.of(ours).conversations) == ["a", "b"]
    assert trimtab.of(ours).conversations["a"].history() == edits
    assert trimtab.of(ours).recall(edits[0].handle)


@MODELS
@PERSIST
def test_what_is_undone_is_whole_again_in_the_next_call(name: str, persist: bool) -> None:
    """With persist the state has what was sent: the original is put back there."""
    ours = TrimtabMiddleware(window=WINDOW, persist=persist, preset="in-place")
    with StrictProvider([*lc.answers()[:9], "Half way.", "Whole."], window=100_000) as provider:
        agent = lc.agent(lc.MODELS[name](provider.url), [ours], checkpointer=InMemorySaver())
        run(agent)
        edit = next(e for e in reversed(ours.history()) if e.tool == "read" and e.noun == "result")
        original = json.dumps(trimtab.of(ours).recall(edit.handle))[1:-1]
        assert original not in json.dumps(provider.requests[-1].body)
        trimtab.of(ours).undo(edit.handle)
        messages = run(agent, asked={"messages": [{"role": "user", "content": "And now?"}]})
        assert original in json.dumps(provider.requests[-1].body)
        legal(provider)
    text = trimtab.of(ours).recall(edit.handle)
    assert [m.text for m in messages if isinstance(m, ToolMessage)].count(text) == 1


# ---------------------------------------------------------------- state over checkpoints


@PERSIST
def test_after_a_restart_the_journal_goes_on_from_the_checkpoint(persist: bool) -> None:
    saver = InMemorySaver()
    with StrictProvider([*lc.answers()[:20], "Half way.", "Go on."], window=WINDOW) as provider:
        model = lc.openai_chat(provider.url)
        first = TrimtabMiddleware(window=WINDOW, persist=persist)
        before = lc.agent(model, [first], checkpointer=saver)
        assert run(before)[-1].text == "Half way."
        sent = provider.requests[-1].body["messages"]
        state = before.get_state(config()).values
        assert state["trimtab"]["journal"]["edits"]
        again = TrimtabMiddleware(window=WINDOW, persist=persist)  # another process
        after = lc.agent(model, [again], checkpointer=saver)
        run(after, asked={"messages": [{"role": "user", "content": "And?"}]})
        assert provider.requests[-1].body["messages"][: len(sent)] == sent
        handle, text = next(iter(state["trimtab"]["journal"]["originals"].items()))
        assert again.recall(after.get_state(config()).values, handle) == text
        with pytest.raises(trimtab.UnknownHandle):
            again.recall({"messages": []}, handle)


def test_with_a_store_the_journal_is_there_and_the_state_is_free_of_it(tmp_path: Path) -> None:
    url, saver = f"sqlite:///{tmp_path}/trimtab.db", InMemorySaver()
    with StrictProvider([*lc.answers()[:9], "Half way.", "Go on."], window=WINDOW) as provider:
        model = lc.openai_chat(provider.url)
        agent = lc.agent(model, [TrimtabMiddleware(window=WINDOW, store=url)], checkpointer=saver)
        run(agent)
        assert "trimtab" not in agent.get_state(config()).values
        sent = provider.requests[-1].body["messages"]
        again = TrimtabMiddleware(window=WINDOW, store=url)  # as another process has it
        after = lc.agent(model, [again], checkpointer=saver)
        run(after, asked={"messages": [{"role": "user", "content": "And?"}]})
        assert provider.requests[-1].body["messages"][: len(sent)] == sent


def test_the_model_gets_an_original_back_by_its_handle() -> None:
    """The handle is in the note that the model reads; the tool belongs to the middleware."""

    def say(record: Record) -> Any:
        messages = record.body["messages"]
        done = sum(message["role"] == "assistant" for message in messages)
        found = re.search(r'recall\("([^"]+)"\)', json.dumps(messages).replace("\\", ""))
        if any(call["function"]["name"] == "recall" for call in calls_of(messages)):
            return "Found."
        if found:
            return Answer("", [Call("recall", {"handle": found[1], "end": 400})])
        return lc.turn(done)

    with StrictProvider(say, window=WINDOW) as provider:
        ours = TrimtabMiddleware(window=WINDOW, recall=True)
        agent = lc.agent(lc.openai_chat(provider.url), [ours], checkpointer=InMemorySaver())
        messages = run(agent)
        assert messages[-1].text == "Found."
        legal(provider)
        (result,) = [m for m in messages if isinstance(m, ToolMessage) and m.name == "recall"]
        asked = next(c for m in messages if isinstance(m, AIMessage) for c in m.tool_calls
                     if c["name"] == "recall")  # fmt: skip
        original = ours.recall(agent.get_state(config()).values, asked["args"]["handle"])
        assert original[:400] in result.text
        names = [tool["function"]["name"] for tool in provider.requests[0].body["tools"]]
        assert "recall" in names


@pytest.mark.parametrize("persist", [False, True])
def test_the_model_lists_searches_and_reads_files_of_its_own_thread(persist: bool) -> None:
    asks: list[dict[str, Any]] = [{}, {"search": "module_3 value_93"}, {"file": "src/f0.py"}]
    with StrictProvider(
        [*lc.answers()[:20], *(Answer("", [Call("recall", one)]) for one in asks), "Found."],
        window=WINDOW,
    ) as provider:
        ours = TrimtabMiddleware(window=WINDOW, recall=True, persist=persist)
        agent = lc.agent(lc.openai_chat(provider.url), [ours], checkpointer=InMemorySaver())
        messages = run(agent)
    listed, found, file = [
        m.text for m in messages if isinstance(m, ToolMessage) and m.name == "recall"
    ]
    assert "read src/f1.py → 90 lines" in listed
    assert "src/f0.py:3 set_flag(module_3, value_93)" in found
    assert file.startswith("[src/f0.py as it was read in ")
    assert "src/f0.py:89 set_flag" in file


def test_threads_that_share_a_store_are_told_of_their_own_results_only() -> None:
    cache = cached(window=WINDOW, recall=True)
    for name in ("alpha", "beta"):
        messages: list[Any] = [{"role": "user", "content": "Read all."}]
        for n in range(20):
            call = {"id": f"c{n}", "type": "function", "function": {
                "name": "read", "arguments": json.dumps({"path": f"{name}_{n}.py"})}}  # fmt: skip
            result = "\n".join(f"{name}_{n}: value {k * 7919}" for k in range(90))
            messages += [{"role": "assistant", "tool_calls": [call]},
                         {"role": "tool", "tool_call_id": f"c{n}", "content": result}]  # fmt: skip
        cache.of_key(name).fit({"messages": messages}, format="openai-chat")
    for mine, other in (("alpha", "beta"), ("beta", "alpha")):
        listed = answer(cache.of_key(mine).originals, {}).text
        assert f"read {mine}_3.py" in listed
        assert other not in listed
    elsewhere = cached(window=WINDOW)
    assert "give the handle" in answer(elsewhere.of_key("alpha").originals, {}).text


def test_a_note_of_the_model_is_answered_by_the_agent_and_stays_in_what_is_sent() -> None:
    plan = Answer("", [Call("note", {"name": "plan", "text": "look at module_3 first"})])
    long = Answer("", [Call("note", {"name": "all", "text": "x" * 3_000})])
    with StrictProvider([plan, long, *lc.answers()], window=WINDOW) as provider:
        ours = TrimtabMiddleware(window=WINDOW, notes=True, persist=False)
        agent = lc.agent(lc.openai_chat(provider.url), [ours], checkpointer=InMemorySaver())
        messages = run(agent)
        legal(provider)
    told = [m.text for m in messages if isinstance(m, ToolMessage) and m.name == "note"]
    assert told[0] == "Kept: plan"
    assert "at most 2,000" in told[1]
    sent = provider.requests[-1].body["messages"]
    assert "look at module_3 first" in json.dumps(calls_of(sent))
    assert len(sent) < len(messages) / 2


def calls_of(messages: list[Any]) -> list[Any]:
    return [call for message in messages for call in message.get("tool_calls") or ()]


def test_another_thread_knows_nothing_of_the_first() -> None:
    ours = TrimtabMiddleware(window=WINDOW)
    with StrictProvider([*lc.answers()[:9], "So."], window=WINDOW) as provider:
        agent = lc.agent(lc.openai_chat(provider.url), [ours], checkpointer=InMemorySaver())
        run(agent)
        assert agent.get_state(config()).values["trimtab"]
        run(agent, asked={"messages": [{"role": "user", "content": "Hello."}]}, thread="2")
        assert "trimtab" not in agent.get_state(config("2")).values
        assert "trimtab" not in agent.invoke(ASKED, config("3"))  # nor is it output


# ---------------------------------------------------------------- refusals


@pytest.mark.row("A9")
@pytest.mark.parametrize("how", ["sync", "async"])
@MODELS
def test_a_refusal_for_size_is_answered_by_something_smaller(name: str, how: str) -> None:
    """The middleware believes in a window that the provider has not."""
    told: list[trimtab.events.Event] = []
    with StrictProvider(window=6_000) as provider:
        ours = TrimtabMiddleware(window=50_000, settings=trimtab.Settings(on_event=told.append))
        agent = lc.agent(lc.MODELS[name](provider.url), [ours])
        asks = [{"messages": history(14)}, {"messages": history(13)}]
        assert runs(agent, how, asks)[-1].text == "OK"
        first, second, *rest = provider.requests
        assert first.refusal == "overflow"
        assert second.tokens < first.tokens
        legal(provider)
        if name == "responses":  # names no limit: it is approached, and may be met once more
            assert [record.status for record in provider.requests].count(200) == 2
            assert rest[-1].status == 200
            assert len(rest) <= 3
        else:
            assert [record.status for record in rest] == [200]
    assert ours.stats.requests == 2
    assert ours.stats.retries == len(provider.requests) - 2
    assert ours.stats.recovered <= ours.stats.retries
    refusals = [event for event in told if isinstance(event, trimtab.events.RefusalEvent)]
    retries = [event for event in told if isinstance(event, trimtab.events.RetryEvent)]
    assert refusals[0].kind == "too_long"
    assert retries[-1].outcome == "accepted"


@pytest.mark.row("A11")
@pytest.mark.parametrize("when", ["rate", "server_error", "overloaded"])
def test_other_errors_are_passed_on_after_one_send(when: str) -> None:
    with StrictProvider([Refuse(when)], window=WINDOW) as provider:
        agent = lc.agent(lc.openai_chat(provider.url), [TrimtabMiddleware(window=WINDOW)])
        with pytest.raises(Exception, match=r"Error code"):
            run(agent)
        assert len(provider.requests) == 1


@pytest.mark.row("A11")
def test_compression_comes_before_the_retries_of_the_agent() -> None:
    from langchain.agents.middleware import ModelRetryMiddleware

    with StrictProvider(window=6_000) as provider:
        retries = ModelRetryMiddleware(max_retries=0, on_failure="error")
        ours = TrimtabMiddleware(window=50_000)
        agent = lc.agent(lc.openai_chat(provider.url), [retries, ours])
        assert run(agent, asked={"messages": history(14)})[-1].text == "OK"
        assert provider.requests[0].refusal == "overflow"


def test_what_cannot_be_made_smaller_is_the_provider_s_own_error() -> None:
    with StrictProvider(window=600) as provider:
        agent = lc.agent(lc.openai_chat(provider.url), [TrimtabMiddleware(window=50_000)])
        with pytest.raises(Exception, match="maximum context length is 600 tokens"):
            run(agent)


# ---------------------------------------------------------------- failures


def test_an_error_of_ours_never_breaks_a_turn(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(*_: Any, **__: Any) -> Any:
        raise RuntimeError("made to fail")

    monkeypatch.setattr("trimtab.clients.langchain.request_head.RequestHead.adapter", fails)
    with StrictProvider(window=WINDOW) as provider:
        agent = lc.agent(lc.openai_chat(provider.url), [TrimtabMiddleware(window=WINDOW)])
        assert run(agent)[-1].text == "OK"
    assert "RuntimeError" in caplog.text


def test_a_call_that_was_interrupted_is_answered_before_the_model_sees_it() -> None:
    call = {"name": "read", "args": {"path": "a"}, "id": "call_1", "type": "tool_call"}
    torn = [HumanMessage("Read a."), AIMessage("", tool_calls=[call]), HumanMessage("Well?")]
    with StrictProvider(window=WINDOW) as provider:
        agent = lc.agent(lc.openai_chat(provider.url), [TrimtabMiddleware(window=WINDOW)])
        assert run(agent, asked={"messages": torn})[-1].text == "OK"
        roles = [message["role"] for message in provider.requests[0].body["messages"]]
        assert roles == ["system", "user", "assistant", "tool", "user"]


def test_a_wrong_setting_is_told_where_it_is_given() -> None:
    with pytest.raises(trimtab.InvalidSetting, match="preset"):
        TrimtabMiddleware(window=WINDOW, preset="best")


def test_without_langchain_the_error_names_the_extra() -> None:
    code = (
        "import sys\nsys.modules['langchain'] = None\n"
        "try:\n    import trimtab.clients.langchain\n"
        "except ImportError as error:\n    print(type(error).__name__, error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.startswith("MissingExtra")
    assert "pip install 'trimtab[langchain]'" in done.stdout


# ---------------------------------------------------------------- LangGraph's prebuilt agent


@PERSIST
@pytest.mark.filterwarnings("ignore:create_react_agent has been moved")
def test_pre_model_hook_carries_a_prebuilt_agent_through_thirty_turns(persist: bool) -> None:
    from langgraph.prebuilt import create_react_agent

    from trimtab.clients.langchain import pre_model_hook

    with StrictProvider(lc.answers(), window=WINDOW) as provider:
        agent = create_react_agent(
            lc.openai_chat(provider.url), lc.TOOLS, prompt="You mend programs.",
            pre_model_hook=pre_model_hook(window=WINDOW - 1_000, persist=persist),
            checkpointer=InMemorySaver(),
        )  # fmt: skip
        messages = run(agent)
        assert messages[-1].text == "It was module_3."
        assert [record.status for record in provider.requests] == [200] * (lc.TURNS + 1)
        legal(provider)
    read = [m for m in messages if isinstance(m, ToolMessage) and m.name == "read"]
    whole = all(m.text == lc.read.invoke({"path": f"src/f{n}.py"}) for n, m in enumerate(read))
    assert whole is not persist


def test_the_example_finishes_within_its_window(capsys: pytest.CaptureFixture[str]) -> None:
    example = Path(__file__).resolve().parents[3] / "examples" / "langchain_agent.py"
    runpy.run_path(str(example), run_name="__main__")
    answer, sizes, refused = capsys.readouterr().out.splitlines()
    assert answer == "All ten read."
    assert sizes.startswith("11 requests, the largest ")
    assert refused == "refused: none"
