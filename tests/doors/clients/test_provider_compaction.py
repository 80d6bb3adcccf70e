"""``compaction="provider"``: at the trigger the provider is asked to summarize, where that is
cheaper than our fold; everything else stays as it is with a fold.

The provider is ``compacting_provider``, which enforces what Anthropic and OpenAI say of theirs.
"""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

import anthropic
import openai
import pytest
from compacting_provider import Compacting

import trimtab
from trimtab import Settings

WINDOW, TURNS = 10_000, 25
TASK = "Find the bug in the parser. Never touch setup.py."
MODEL = "claude-opus-4-6"
READ = {"name": "read", "description": "Read", "input_schema": {"type": "object"}}
FUNCTION = {"type": "function", "name": "read", "parameters": {"type": "object"}, "strict": False}
ASKED = Settings(compaction="provider", counter="o200k", target=0.75)


def lines(turn: int) -> str:
    return "".join(f"src/m{turn}_{n}.py:{n}: value = {turn * 7919 + n}\n" for n in range(60))


def claude(url: str, settings: Settings = ASKED, **more: Any) -> Any:
    client = anthropic.Anthropic(base_url=url, api_key="x", max_retries=0)
    return trimtab.wrap(client, window=WINDOW, settings=settings, **more)


def turn_of(answer: Any, turn: int) -> list[Any]:
    """What a client appends for an answer."""
    content = [part.model_dump(exclude_none=True) for part in answer.content]
    results = [
        {"type": "tool_result", "tool_use_id": part["id"], "content": lines(turn)}
        for part in content
        if part["type"] == "tool_use"
    ]
    said = {"role": "user", "content": results or f"And part {turn}?"}
    return [{"role": "assistant", "content": content}, said]


def loop(client: Any, model: str = MODEL, turns: int = TURNS, history: Any = None) -> list[Any]:
    history = [{"role": "user", "content": TASK}] if history is None else history
    for turn in range(turns):
        answer = client.messages.create(
            model=model, max_tokens=100, messages=history, tools=[READ], stream=False
        )
        history += turn_of(answer, turn)
    return history


def asked_to_compact(provider: Compacting) -> list[Any]:
    return [one for one in provider.asked if one.body.get("compaction") or one.body.get("compact")]


def test_claude_is_asked_at_the_trigger_and_its_block_stands_first_from_then_on() -> None:
    with Compacting(WINDOW, 3) as provider:
        loop(claude(provider.url))
        assert [one.refusal for one in provider.asked if one.refusal] == []
        first, second = asked_to_compact(provider)
        assert first.live > 0.5 * WINDOW
        assert first.betas == ("compact-2026-09-04",)
        number = provider.asked.index(first)
        after = provider.asked[number + 1 : provider.asked.index(second)]
        assert len(after) > 4
        assert after[0].live < 0.4 * WINDOW
        assert all(len(one.blocks) == 1 and one.blocks == after[0].blocks for one in after)
        assert all(one.betas == ("compact-2026-09-04",) for one in after)
        wanted = [json.dumps(one.body["messages"][:2]) for one in provider.asked]
        assert all("Never touch setup.py." in text for text in wanted)
        [later] = provider.asked[-1].blocks
        assert later not in after[0].blocks  # the second stands for the first too


def test_nothing_is_asked_without_the_option() -> None:
    with Compacting(WINDOW, 3) as provider:
        loop(claude(provider.url, Settings(counter="o200k")))
        assert asked_to_compact(provider) == []
        assert not any(one.refusal or one.blocks or one.betas for one in provider.asked)


def test_a_provider_that_does_not_compact_costs_nothing_but_the_question(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with Compacting(WINDOW, 3) as provider, caplog.at_level(logging.WARNING, logger="trimtab"):
        provider.refuses_to_compact = True
        loop(claude(provider.url))
        assert asked_to_compact(provider)
        assert not any(one.blocks for one in provider.asked)
        assert max(one.live for one in provider.asked) <= WINDOW
        assert "did not compact (status 529): folded instead" in caplog.text


def test_openai_is_asked_at_its_own_path_and_its_window_goes_on_as_it_is() -> None:
    with Compacting(WINDOW, 3) as provider:
        client = trimtab.wrap(
            openai.OpenAI(base_url=f"{provider.url}/v1", api_key="x", max_retries=0),
            window=WINDOW, settings=ASKED,
        )  # fmt: skip
        history: list[Any] = [{"type": "message", "role": "user", "content": TASK}]
        for turn in range(TURNS):
            answer = client.responses.create(
                model="gpt-5.5", input=history, tools=[FUNCTION], store=False
            )
            for item in answer.output:
                history.append(item.model_dump(exclude_none=True))
                if item.type == "function_call":
                    found = {"call_id": item.call_id, "output": lines(turn)}
                    history.append({"type": "function_call_output", **found})
            if answer.output[-1].type == "message":
                said = f"And part {turn}?"
                history.append({"type": "message", "role": "user", "content": said})
        assert [one.refusal for one in provider.asked if one.refusal] == []
        first = asked_to_compact(provider)[0]
        following = provider.asked[provider.asked.index(first) + 1]
        assert following.live < 0.4 * WINDOW
        assert following.body["input"][0]["content"] == TASK
        assert len(following.blocks) == 1


def test_an_async_client_asks_too() -> None:
    async def held(url: str) -> None:
        client = trimtab.wrap(
            anthropic.AsyncAnthropic(base_url=url, api_key="x", max_retries=0),
            window=WINDOW, settings=ASKED,
        )  # fmt: skip
        history: list[Any] = [{"role": "user", "content": TASK}]
        for turn in range(16):
            answer = await client.messages.create(
                model=MODEL, max_tokens=100, messages=history, tools=[READ]
            )
            history += turn_of(answer, turn)

    with Compacting(WINDOW, 3) as provider:
        asyncio.run(held(provider.url))
        assert asked_to_compact(provider)
        assert provider.asked[-1].blocks
        assert not any(one.refusal for one in provider.asked)


def test_another_model_gets_the_history_itself_and_our_fold() -> None:
    with Compacting(WINDOW, 3) as provider:
        client = claude(provider.url)
        history = loop(client, turns=18)
        assert provider.asked[-1].blocks
        loop(client, model="claude-sonnet-4-5", turns=1, history=history)
        assert provider.asked[-1].blocks == []
        assert not any(one.refusal for one in provider.asked)
        assert len(provider.asked[-1].body["messages"]) > 5


def compacted_session(**more: Any) -> tuple[trimtab.Session, list[Any], Any]:
    """A session whose provider has just compacted; the history, and the fit before it did."""
    session = trimtab.Session(window=WINDOW, settings=ASKED, **more)
    history: list[Any] = [{"role": "user", "content": TASK}]
    provider, turn = Compacting(WINDOW, 3), 0
    while True:
        fitted = session.fit(request(history))
        if fitted.compaction_offer is not None:
            status, answer = provider.answer(fitted.compaction_offer[1].body)
            assert status == 200
            assert session.compacted(fitted, answer)
            return session, history, fitted
        history += [
            {"role": "assistant", "content": [
                {"type": "tool_use", "id": f"toolu_{turn}", "name": "read", "input": {}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": f"toolu_{turn}", "content": lines(turn)}]},
        ]  # fmt: skip
        turn += 1


def request(history: list[Any]) -> dict[str, Any]:
    return {"model": MODEL, "max_tokens": 100, "messages": history, "tools": [READ]}


def test_it_stands_in_report_and_history_like_an_edit_and_its_original_comes_back() -> None:
    session, history, before = compacted_session()
    fitted = session.fit(request(history))
    [row] = fitted.report.edits
    assert (row.kind, row.op, row.new) == ("provider-compaction", "compact", True)
    assert row.tokens_saved > 0.5 * WINDOW
    assert fitted.report.tokens_before == before.report.tokens_before
    assert fitted.report.tokens_after == fitted.report.tokens_before - row.tokens_saved
    assert "provider-compaction" in str(fitted.report)
    old = json.loads(session.recall(row.handle))
    assert old == history[: len(old)]
    assert fitted.request["messages"][2:] == history[len(old) :]
    assert trimtab.check(fitted.request) == ()
    assert session.history()[-1]["handle"] == row.handle
    again = session.fit(request(history))
    assert again.request == fitted.request
    assert not again.report.edits[0].new


def test_undo_sends_the_history_again_and_a_changed_history_is_sent_as_it_is() -> None:
    session, history, _ = compacted_session()
    [row] = session.fit(request(history)).report.edits
    changed = [{"role": "user", "content": "Something else."}, *history[1:]]
    assert session.fit(request(changed)).request["messages"][0] == changed[0]
    session.undo(row.handle)
    assert session.fit(request(history)).request["messages"][0] == history[0]


def test_with_a_store_another_process_sends_the_same_block(tmp_path: Any) -> None:
    url = f"sqlite:///{tmp_path}/t.db"
    session, history, _ = compacted_session(store=url)
    sent = session.fit(request(history)).request
    assert sent["messages"][0]["content"][0]["type"] == "compaction"
    session.close()
    other = trimtab.Session(window=WINDOW, settings=ASKED, store=url)
    fitted = other.fit(request(history))
    assert fitted.request == sent
    assert json.loads(other.recall(fitted.report.edits[0].handle))[0] == history[0]
    other.close()


def wishes(count: int, words: int = 60) -> list[Any]:
    """Turns in which the user writes much and the agent reads a file; prose in all of them."""
    history: list[Any] = []
    for turn in range(count):
        wish = f"Wish {turn} is this. " + f"The {turn}th thing shall hold its own word here. " * (
            words // 10
        )
        call = {"type": "tool_use", "id": f"toolu_w{turn}", "name": "read", "input": {"n": turn}}
        back = {"type": "tool_result", "tool_use_id": call["id"], "content": lines(turn)[:400]}
        history += [
            {"role": "user", "content": wish.strip()},
            {"role": "assistant", "content": [call]},
            {"role": "user", "content": [back]},
            {"role": "assistant", "content": f"Wish {turn} it is."},
        ]
    return [*history, {"role": "user", "content": "And now?"}]


def compacted(whole: list[Any], every: int) -> tuple[str, int, int]:
    """(the first messages sent after a compaction, as JSON; their tokens; how many of ``whole``
    the client had sent by then)."""
    with Compacting(WINDOW, 3) as provider:
        client = claude(provider.url)
        for end in range(1, len(whole) + 1, every):
            client.messages.create(
                model=MODEL, max_tokens=100, messages=whole[:end], tools=[READ], stream=False
            )
            if asked_to_compact(provider):
                break
        assert [one.refusal for one in provider.asked if one.refusal] == []
        sent = provider.asked[-1]
        assert sent.blocks
        return json.dumps(sent.body["messages"], ensure_ascii=False), sent.live, end


@pytest.mark.parametrize("words", [60, 240, 400, 600, 800])
def test_of_what_the_user_wrote_as_much_stays_with_a_summary_as_fits_the_newest_first(
    words: int,
) -> None:
    texts, live, end = compacted(wishes(60, words), 4)
    kept = [f"Wish {turn} is this." in texts for turn in range(end // 4)]
    assert kept == sorted(kept), "no older one where a newer one is gone"
    assert all(kept) is (words < 400)
    assert all(kept) or live > 0.7 * WINDOW, "as much as fits"
    assert live <= 0.75 * WINDOW, "and what follows has room"
    if words >= 400:
        assert "Wish 0 is this." not in texts
        assert "The 0th thing shall hold" in texts, "piece by piece"


@pytest.mark.parametrize("count", [260, 320])
def test_what_the_user_pasted_gives_way_to_a_summary_before_what_they_wrote(count: int) -> None:
    rows = [f"2026-03-04T10:{n // 60:02}:{n % 60:02}Z INFO job {n} ended" for n in range(count)]
    text = "\n".join(["Here is the log:", *rows, "", "Never restart it.", "What went wrong?"])
    steps = [message for message in wishes(40) if not isinstance(message["content"], str)]
    whole = [*wishes(3)[:-1], {"role": "user", "content": text}, *steps]
    texts, live, _ = compacted(whole, 2)
    assert all(f"Wish {turn} is this." in texts for turn in range(3))
    assert "Never restart it." in texts
    assert live <= 0.75 * WINDOW
    assert rows[100] not in texts
