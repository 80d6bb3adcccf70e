"""Old turns folded together with the user's words in them, and texts of the user that are cut."""

from __future__ import annotations

import json
import random
import re
from typing import Any

import chats
import pytest
import spoken
from soak.trial import case_of, fit

import trimtab
from trimtab.planning import make_room
from trimtab.planning.planner import Planner
from trimtab.request import minimum

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


@pytest.mark.parametrize("share", [0.3, 0.5])
def test_what_the_user_wrote_stays_in_a_fold_and_the_model_gives_way(share: float) -> None:
    wishes = [f"Please call the folder of step {n} data_{n}." for n in range(20)]
    messages = [
        {"role": role, "content": text}
        for wish in wishes
        for role, text in (("user", wish), ("assistant", "word " * 60))
    ]
    messages.append({"role": "user", "content": "And now?"})
    request = {"model": "gpt-5", "messages": messages}
    window = int(trimtab.measure(request).total * share)
    sent = json.dumps(trimtab.fit(request, window=window, reserve=0).request)
    assert [wish for wish in wishes if wish not in sent] == []


def test_of_what_the_user_wrote_the_oldest_gives_way_first() -> None:
    asked = [f"Wish {n} is about {'thing ' * 12}." for n in range(40)]
    messages = [
        {"role": ("user", "assistant")[n % 2], "content": asked[n // 2] if n % 2 == 0 else "Fine."}
        for n in range(80)
    ]
    messages.append({"role": "user", "content": "And now?"})
    request = {"model": "gpt-5", "messages": messages}
    for window in range(200, 900, 50):
        sent = json.dumps(trimtab.fit(request, window=window, reserve=0).request)
        kept = [wish in sent for wish in asked]
        assert kept == sorted(kept), "no older one where a newer one is gone"


def test_an_older_long_message_loses_lines_of_its_paste_and_keeps_the_rest() -> None:
    rows = [f"2026-03-04T10:00:{n % 60:02}Z INFO job {n} must have ended" for n in range(600)]
    text = "\n".join(["Here is the log:", *rows, "", "Never restart it.", "What went wrong?"])
    messages = [
        {"role": "user", "content": text},
        {"role": "assistant", "content": "I see a job that hangs."},
        {"role": "user", "content": "Go on, please."},
    ]
    request = {"model": "gpt-5", "messages": messages}
    total = trimtab.measure(request).total
    before = 0
    for share in (0.1, 0.25, 0.5, 0.75):
        fitted = trimtab.fit(request, window=int(total * share), reserve=0)
        sent = json.dumps(fitted.request)
        assert all(own in sent for own in ("Here is the log:", "Never restart", "What went wrong?"))
        assert re.search(r"\[(?:\.\.\. )?[\d,]+ lines (?:left out|cut|, )", sent)
        assert before < fitted.report.tokens_after
        assert fitted.report.tokens_after > 0.6 * share * total, "no cliff"
        before = fitted.report.tokens_after


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


GREW = [(360, 1_782), (441, 2_381), (599, 1_926), (602, 1_819), (1_039, 897)]
"""(seed of a history, window) at which a fold of turns is larger than what it replaces: few steps,
which earlier folds of this cut have made small."""


@pytest.mark.parametrize(("seed", "window"), GREW)
def test_turns_whose_fold_is_larger_than_they_are_stay_as_they_were(
    seed: int, window: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = list[tuple[int, int]]()

    def watch(module: Any, name: str) -> None:
        real = getattr(module, name)

        def called(planner: Planner, *args: Any, **more: Any) -> None:
            before = planner.state.tokens
            real(planner, *args, **more)
            sizes.append((before, planner.state.tokens))

        monkeypatch.setattr(module, name, called)

    watch(make_room, "fold_user_turns")
    watch(minimum, "fold_all_user_turns")
    case = case_of(seed)
    assert fit(case, case["request"], window).report.minimum <= window
    assert sizes
    assert all(after <= before for before, after in sizes)


@pytest.mark.parametrize("target", [0.6, 0.8, 1.0])
def test_a_target_of_the_user_s_is_kept_to_where_his_turns_are_folded(target):
    messages = []
    for item in range(1, 41):
        note = f"Item {item}: please note that shelf {7 * item} belongs to team {13 * item}."
        messages += [
            {"role": "user", "content": note},
            {"role": "assistant", "content": f"Noted, item {item}."},
        ]
    request = {"model": "gpt-5", "messages": [*messages, {"role": "user", "content": "Go on."}]}
    fitted = trimtab.fit(request, 600, reserve=0, target=target)
    goal = int(re.search(r"Target: (\d+),", str(fitted.report))[1])
    assert 0.95 * goal <= fitted.tokens_after <= goal
