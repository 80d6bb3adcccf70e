"""Old turns folded together with the user's words in them, and texts of the user that are cut."""

from __future__ import annotations

import json
import random
import re
from typing import Any

import chats
import pytest
import spoken

import trimtab

TALK: dict[str, Any] = {"model": "gpt-5", "messages": [
    {"role": ("user", "assistant")[n % 2], "content": f"{n} " + "word " * 60} for n in range(41)
]}  # fmt: skip


@pytest.mark.parametrize("window", [120, 260])
@pytest.mark.parametrize("recall", [False, True])
def test_the_users_message_of_a_fold_says_how_much_is_gone_and_where_it_is_kept(
    window: int, recall: bool
) -> None:
    fitted = trimtab.fit(TALK, window=window, reserve=0, recall=recall)
    (edit,) = fitted.report.edits
    fetch = f'; recall("{edit.handle}") has them' if recall else ""
    left = {120: " left out to fit", 260: ", of which these words are left"}[window]
    first, model, last = fitted.request["messages"]
    assert first["content"].splitlines()[0] == f"[40 earlier messages{left}{fetch}]"
    assert (model["role"], last) == ("assistant", TALK["messages"][-1])


def test_a_greeting_of_the_model_before_the_users_first_words_is_folded_with_them() -> None:
    greeting = {"role": "assistant", "content": "Hello! " + "word " * 60}
    request = {**TALK, "messages": [greeting, *TALK["messages"]]}
    first, *rest = trimtab.fit(request, window=120, reserve=0).request["messages"]
    assert first == {"role": "user", "content": "[41 earlier messages left out to fit]"}
    assert len(rest) == 2


@pytest.mark.parametrize("window", [140, 400])
def test_a_demand_of_the_user_stays_in_the_message_of_the_fold(window: int) -> None:
    demand = "Never push to main."
    messages = [{"role": "user", "content": f"Look around. {demand} " + "word " * 60}]
    request = {**TALK, "messages": messages + TALK["messages"][1:]}
    first, *_ = trimtab.fit(request, window=window, reserve=0).request["messages"]
    assert re.search(rf"^.*{demand}", first["content"], re.MULTILINE)


@pytest.mark.parametrize("window", [400, 500, 600])
def test_another_text_of_the_user_is_cut_before_a_demand_in_the_longest(window: int) -> None:
    rows = [f"row {n} of the story tells of things {n * 7}" for n in range(120)]
    demands = [f"Never delete the file number_{n}.txt in the folder." for n in range(12)]
    texts = ["\n".join([*rows[:60], *demands, *rows[60:]]), "\n".join(rows[:110])]
    content = [{"type": "text", "text": text} for text in texts]
    request = {"model": "gpt-5", "messages": [{"role": "user", "content": content}]}
    sent = json.dumps(trimtab.fit(request, window=window, reserve=0).request)
    assert [demand for demand in demands if demand not in sent] == []


def test_where_steps_are_not_folded_only_the_turns_are_folded_and_the_newest_steps_stay() -> None:
    rng, script = random.Random(1), list[str | spoken.Step]()
    for number in range(4):
        script.append(f"Question {number}: {chats.words(rng, 40)}?")
        for _ in range(3):
            back = "\n".join(chats.words(rng, 8) for _ in range(3))
            called = spoken.Called("look_up", {"key": f"key-{rng.randint(0, 10**6)}"}, back)
            script.append(spoken.Step("", (called,)))
        if number < 3:
            script.append(spoken.Step(chats.words(rng, 30)))
    request = spoken.written("openai-chat", script)
    fitted = trimtab.fit(request, window=900, reserve=0, preset="in-place")
    assert [edit.op for edit in fitted.report.edits] == ["fold"]
    assert fitted.request["messages"][-20:] == request["messages"][-20:]


NOTE = "[image left out to fit]"


@pytest.mark.parametrize(("share", "folded"), [(0.97, False), (1.01, True)])
def test_a_request_that_was_fitted_before_is_folded_once_more_only_where_it_does_not_fit(
    share: float, folded: bool
) -> None:
    """The trigger is at 0.95 of the window."""
    noted = {**TALK, "messages": [*TALK["messages"]]}
    noted["messages"][2] = {"role": "user", "content": NOTE}
    for request, may in ((TALK, True), (noted, folded)):
        window = int(trimtab.measure(request).total / share)
        report = trimtab.fit(request, window=window, reserve=0).report
        assert bool(report.edits) is may
        if may:  # room is left for the next turns
            assert 0.5 < report.tokens_after / window < 0.85


def test_a_model_that_repeats_a_note_is_cut_no_more_often() -> None:
    """Its session would be taken for a request that was fitted before."""
    whole = chats.script(110, tools=True)

    def batches(echo: str) -> list[int]:
        session, found = trimtab.Session(window=8_000, reserve=1_000), list[int]()
        first = len(whole)
        for number, request in enumerate(chats.requests("openai-chat", whole)):
            for message in request["messages"][first:]:
                if message["role"] == "assistant" and message.get("content"):
                    message["content"] = f"{echo}\n{message['content']}"
            if any(edit.new for edit in session.fit(request).report.edits):
                first = min(first, len(request["messages"]))
                found.append(number)
        return found

    assert len(batches(NOTE)) == len(batches("Well, as I said before.")) > 4
