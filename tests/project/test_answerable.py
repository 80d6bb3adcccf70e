"""The benchmark of what can be answered: its worlds, its reader, and that nobody gains by cheating.

Knows ``bench/answerable``.
"""

from __future__ import annotations

import json
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

import trimtab

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))

from answerable import command, model_reader, policies, reader, tokens, trial, worlds
from answerable.policies import Sent, body
from answerable.trial import Task
from answerable.worlds import TOOL, USER, World

TASK = Task("cheat", window=8_000, seed=3, steps=40, tokens=24_000, each=2)
Messages = list[dict[str, Any]]


@pytest.fixture(scope="module")
def world() -> World:
    return worlds.build(TASK.seed, TASK.steps, TASK.tokens, TASK.each)


def ask(world: World, messages: Messages) -> list[str]:
    said = reader.spoken(world.messages)
    answers = [reader.read(body(messages), q, None).answer for q in world.questions]
    return [reader.score(q, a, said) for q, a in zip(world.questions, answers, strict=True)]


def test_the_same_seed_gives_the_same_world_and_another_seed_another(world: World) -> None:
    again = worlds.build(TASK.seed, TASK.steps, TASK.tokens, TASK.each)
    assert (again.messages, again.questions) == (world.messages, world.questions)
    other = worlds.build(4, TASK.steps, TASK.tokens, TASK.each)
    assert other.messages != world.messages


@pytest.mark.parametrize("steps", [40, 400])
def test_a_world_is_a_legal_request_of_the_size_asked_for(steps: int) -> None:
    made = worlds.build(1, steps, 60_000 if steps == 40 else 150_000)
    assert trimtab.check(body(made.messages)) == ()
    size = tokens.count(body(made.messages))
    assert size == trimtab.measure(body(made.messages), counter="o200k").total
    assert 0.85 < size / (60_000 if steps == 40 else 150_000) < 1.15
    assert [made.messages[turn]["role"] for turn in made.turns[:-1]] == ["assistant"] * (
        len(made.turns) - 1
    )


def test_from_the_whole_every_question_is_answered(world: World) -> None:
    assert set(ask(world, world.messages)) == {"right"}
    assert {q.kind for q in world.questions} == {
        "early", "changed", "contradicted", "user", "model"
    }  # fmt: skip


def test_without_the_messages_that_say_it_no_question_is_answered(world: World) -> None:
    for question in world.questions:
        left = [m for m in world.messages if question.value not in json.dumps(m)]
        found = reader.score(question, reader.read(body(left), question, None).answer, {})
        assert found in ("none", "wrong")


def test_a_fact_that_changed_is_wrong_where_only_the_old_one_is_left(world: World) -> None:
    half = world.messages[: len(world.messages) // 2]
    scores = dict(zip((q.text for q in world.questions), ask(world, half), strict=True))
    changed = [q for q in world.questions if q.kind == "changed"]
    assert {scores[q.text] for q in changed} == {"wrong"}


def test_a_ticket_s_members_may_stand_before_its_id_or_under_its_call(world: World) -> None:
    asked = next(q for q in world.questions if q.subject == "assignee")
    said = f'get_ticket OPS-1\n  {{"assignee": "{asked.value}", "id": "{asked.entity}"}}'
    assert [value for _, value in reader.statements(said, asked)] == [asked.value]
    bare = '{\n "comments": [],\n "assignee": "lin"\n}'
    assert [value for _, value in reader.statements(bare, asked, asked.entity)] == ["lin"]
    assert not list(reader.statements(f"OPS-1\n{bare}", asked, asked.entity))


def test_a_line_of_several_values_says_of_none_whose_it_is(world: World) -> None:
    asked = next(q for q in world.questions if q.subject == "code")
    line = f"request={asked.entity} ended code=E1234"
    assert [value for _, value in reader.statements(line, asked)] == ["E1234"]
    assert not list(reader.statements(f"{line} code=E4321", asked))


def _places(world: World) -> list[float]:
    """Where in its result what tools say stands, as shares of it; edits are their facts alone."""
    facts = {question.value for question in world.questions if TOOL in question.speakers}
    texts = [m["content"] for m in world.messages if m["role"] == TOOL and len(m["content"]) > 500]
    return [t.index(one) / len(t) for one in facts for t in texts if one in t and one[-1].isdigit()]


def test_facts_of_tools_stand_anywhere_in_a_result() -> None:
    places = sorted(place for seed in range(4) for place in _places(worlds.build(seed, 40, 60_000)))
    assert len(places) > 40
    thirds = [sum(low <= 3 * place < low + 1 for place in places) for low in range(3)]
    assert min(thirds) > len(places) / 6


def test_noise_is_of_the_same_make_as_facts() -> None:
    world = worlds.build(1, 40, 60_000)
    asked = {q.entity for q in world.questions}
    for start in ("host-", "req-"):
        words = set(re.findall(rf"\b{start}\d+\b", json.dumps(world.messages)))
        facts, noise = words & asked, words - asked
        assert facts
        lengths = {len(word) for word in noise}
        assert len(noise) > 5
        assert {len(word) for word in facts} <= lengths
    codes = [line for m in world.messages for line in str(m.get("content")).split("\n")
             if " code=" in line]  # fmt: skip
    assert {"ERROR" in line for line in codes} == {True, False}


@pytest.mark.parametrize("place", [slice(None, 900), slice(-900, None)])
def test_who_keeps_one_end_of_each_result_loses_facts_of_tools_alone(place: slice) -> None:
    world = worlds.build(2, 40, 60_000)
    kept = [
        {**m, "content": m["content"][place]} if m["role"] == TOOL else m for m in world.messages
    ]
    scores = [trial.Scored(q, s) for q, s in zip(world.questions, ask(world, kept), strict=True)]
    assert 0 < trial.share(trial.of_group(scores, TOOL)) < 0.7
    assert trial.share(trial.of_group(scores, USER)) == 1
    assert trial.share(trial.of_group(scores, "assistant")) == 1


def test_every_question_belongs_to_who_said_it(world: World) -> None:
    groups = {q.subject: trial.group(q) for q in world.questions}
    assert groups == {
        "constant": "tool", "assignee": "tool", "version": "tool", "code": "tool", "due": "tool",
        "told_due": "user", "freeze": "user", "forbidden": "user", "named": "assistant",
    }  # fmt: skip


def test_head_and_tail_has_as_many_tokens_as_ours_and_no_middle(world: World) -> None:
    ours, theirs = (
        policies.start(name, world, TASK.window) for name in ("trimtab:balanced", "head-tail")
    )
    sizes = [
        (tokens.count(ours(world.messages[:turn]).request), theirs(world.messages[:turn]))
        for turn in world.turns
    ]
    last = sizes[-1][1].request
    for size, sent in sizes:
        assert tokens.count(sent.request) <= min(TASK.window, 1.1 * size)
    assert tokens.count(last) > 0.6 * sizes[-1][0]
    assert trimtab.check(last) == ()
    assert (
        policies.head_tail([{"role": TOOL, "content": "a" * 500 + "b" * 500}], 100)[0]["content"]
        == "a" * 50 + "\n[900 characters left out]\n" + "b" * 50
    )


def _base(world: World) -> Callable[[Messages], tuple[Messages, Messages]]:
    """A safe cut, and what it cut."""
    step = policies.start("drop-oldest-safe", world, TASK.window // 2)

    def split(messages: Messages) -> tuple[Messages, Messages]:
        kept = step(messages).request["messages"]
        known = [json.dumps(one) for one in kept]
        return kept, [one for one in messages if json.dumps(one) not in known]

    return split


def _texts(messages: Messages, chars: int = 10**9) -> str:
    """What tools said."""
    return "\n".join(m["content"] for m in messages if m["role"] == TOOL)[:chars]


class _Forged:
    """Originals that say what no tool said."""

    def __init__(self, world: World) -> None:
        self.world = world

    def recall(self, arguments: Mapping[str, Any]) -> str:
        lines = [f"[{q.entity} {q.attribute}: {q.value}]" for q in self.world.questions]
        return "[left out; the user said]\n" + "\n".join(lines)

    def search(self, words: str) -> list[tuple[str, int, int, str]]:
        return [("rforged", 0, 9, f"{words}: see the original")]


def mover(world: World, split: Any, messages: Messages) -> Sent:
    """Says in the user's name what tools said."""
    kept, cut = split(messages)
    return Sent(body([kept[0], {"role": USER, "content": f"So far:\n{_texts(cut)}"}, *kept[1:]]))


def forger(world: World, split: Any, messages: Messages) -> Sent:
    """Leaves markers that quote the user within results of tools, and handles of forgeries."""
    kept, cut = split(messages)
    said = " ".join(m["content"] for m in cut if m["role"] == USER)
    note = f'[{len(cut)} left out; the user said: "{said}"; recall("rforged")]'
    forged = [{**m, "content": f"{note}\n{m['content']}"} if m["role"] == TOOL else m for m in kept]
    return Sent(body(forged), _Forged(world))


def lister(world: World, split: Any, messages: Messages) -> Sent:
    """Lists identifiers and values bare."""
    kept, cut = split(messages)
    words = {word.strip('",|:=[]{}') for word in json.dumps(cut).replace("\\n", " ").split()}
    bare = " ".join(sorted(word for word in words if any(c.isdigit() for c in word)))
    told = [{**m, "content": f"{bare}\n{m['content']}"} if m["role"] == TOOL else m for m in kept]
    return Sent(body(told))


@pytest.mark.parametrize("cheat", [mover, forger, lister])
def test_who_moves_speakers_forges_markers_or_lists_bare_identifiers_gains_nothing(
    world: World, cheat: Callable[..., Sent]
) -> None:
    honest, cheating = _base(world), _base(world)
    task = Task("cheat", 10**6, TASK.seed, TASK.steps)  # room for whatever it puts there
    base = trial.play(task, world, lambda messages: Sent(body(honest(messages)[0])))
    done = trial.play(task, world, lambda messages: cheat(world, cheating, messages))
    right = {one.question.text for one in base.recalled if one.score == "right"}
    assert {one.question.text for one in done.plain if one.score == "right"} <= right
    assert {one.question.text for one in done.recalled if one.score == "right"} <= right
    assert 0 < len(right) < len(world.questions)
    if cheat is forger:
        assert any(one.score == "forged" for one in done.recalled)
    if cheat is mover:  # and it is told
        assert sum(one.score == "moved" for one in done.plain) >= 6


@pytest.mark.parametrize("preset", ["balanced", "in-place"])
def test_ours_answers_with_recall_and_in_nobody_else_s_name(preset: str) -> None:
    done = trial.run(Task(f"trimtab:{preset}", 8_000, 1, 40, 24_000, 2))
    assert trial.share(done.recalled) >= 0.95
    assert trial.share(done.plain) > 0
    assert done.over == 0
    assert trial.share(done.plain, "moved") == trial.share(done.recalled, "moved") == 0
    assert 0 < done.calls <= reader.BUDGET * len(done.recalled)


def test_the_table_tells_every_policy(capsys: pytest.CaptureFixture[str]) -> None:
    task = {"window": 8_000, "seed": 1, "steps": 40, "tokens": 20_000, "each": 1}
    names = ("none", "drop-oldest-safe", "summarize", "compaction", "head-tail",
             "trimtab:balanced")  # fmt: skip
    found = [trial.run(Task(name, **task)) for name in names]
    told = command.table(found)
    assert told.count("\n| ") == len(names) + 1
    assert "| nothing is done | 0% (" in told
    assert "| policy | tool facts | the user's words | the model's words |" in told
    assert "8 tool facts, 3 the user's words, 1 the model's words in a world" in (
        command.explained(found)
    )
    assert "| version | " in command.kinds(found, "trimtab:balanced")


def test_an_interval_holds_its_share() -> None:
    question = worlds.build(1, 40, 20_000, 1).questions[0]
    for right in (0, 7, 10):
        scores = [trial.Scored(question, "right" if n < right else "none") for n in range(10)]
        low, high = trial.interval(scores)
        assert 0 <= low <= trial.share(scores) <= high <= 1


# --- a model in the reader's place ---


class _Server(BaseHTTPRequestHandler):
    """Searches once where it may, then says the first value that stands in what it was told."""

    asked: list[dict[str, Any]]
    world: World
    slow = 0.0

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.asked.append(request)
        if self.slow:
            time.sleep(self.slow)
            return
        last = request["messages"][-1]
        message: dict[str, Any] = {"role": "assistant", "content": "unknown"}
        tools = {tool["function"]["name"] for tool in request.get("tools", [])}
        if last["role"] == USER and "search" in tools:
            asked = next(q for q in self.world.questions if q.text in last["content"])
            given = json.dumps({"words": asked.entity})
            function = {"name": "search", "arguments": given}
            message["tool_calls"] = [{"id": "s1", "type": "function", "function": function}]
        elif last["role"] == TOOL:
            message["content"] = f"I read: {last['content']}"
        answer = {"choices": [{"message": message}],
                  "usage": {"prompt_tokens": 10_000, "completion_tokens": 100}}  # fmt: skip
        data = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *rest: Any) -> None:
        """Nothing."""


@pytest.fixture
def server() -> Iterator[tuple[str, type[_Server]]]:
    handler = type("Handler", (_Server,), {"asked": []})
    with HTTPServer(("127.0.0.1", 0), handler) as made:
        threading.Thread(target=made.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{made.server_port}/v1", handler
        made.shutdown()


MODEL_TASK = Task("trimtab:balanced", 8_000, 1, 40, 24_000, 1)


def _scores(server: tuple[str, type[_Server]], cap: float) -> tuple[list[Any], Any]:
    url, handler = server
    handler.world = worlds.build(1, 40, 24_000, 1)
    endpoint = model_reader.Endpoint(url, "m", cap, price_in=3.0, price_out=15.0, seed=7)
    return list(model_reader.scores([MODEL_TASK], endpoint)), endpoint


def test_a_model_answers_in_the_reader_s_place_with_recall_and_without(
    server: tuple[str, type[_Server]],
) -> None:
    scores, endpoint = _scores(server, 100.0)
    count = len(server[1].world.questions)
    assert len(scores) == 2 * count
    assert {one.score for _, recall, one in scores if not recall} == {"none"}
    assert sum(one.score == "right" for _, recall, one in scores if recall) > count / 4
    first = server[1].asked[0]
    assert (first["model"], first["seed"], first["temperature"]) == ("m", 7, 0)
    assert "recall" not in {tool["function"]["name"] for tool in first["tools"]}
    assert endpoint.spent == pytest.approx(len(server[1].asked) * (0.03 + 0.0015))


def test_no_more_is_asked_once_the_cap_is_reached(server: tuple[str, type[_Server]]) -> None:
    scores, endpoint = _scores(server, 0.1)
    assert len(server[1].asked) <= 5
    assert len(scores) < 2 * len(server[1].world.questions)
    assert endpoint.spent < 0.1 + 2 * 0.0315


def test_the_command_prints_the_table_of_a_model(
    server: tuple[str, type[_Server]], capsys: pytest.CaptureFixture[str]
) -> None:
    server[1].world = worlds.build(1, 40, 20_000, 1)
    argv = ["--model", server[0], "--name", "m", "--cap", "9", "--window", "8000", "--steps", "40"]
    argv += ["--tokens", "20000", "--each", "1", "--policy", "trimtab:balanced"]
    assert command.main(argv) == 0
    told = capsys.readouterr().out
    assert "| 8,000 | trimtab:balanced | yes | 12 |" in told
    assert "model m, $" in told


def test_a_value_counts_only_as_a_word_of_its_own() -> None:
    question = worlds.build(1, 40, 20_000, 1).questions[0]
    assert model_reader.score(question, f"It is {question.value}.") == "right"
    assert model_reader.score(question, f"It is {question.value}9") == "wrong"
    assert model_reader.score(question, "unknown") == "none"


def _asked_again(server: tuple[str, type[_Server]], file: Path, **more: Any) -> tuple[int, Any]:
    """How often the model was asked, and the scores."""
    url, handler = server
    handler.world = worlds.build(1, 40, 24_000, 1)
    handler.asked.clear()
    given = {"cap": 100.0, "price_in": 3.0, "price_out": 15.0, "answers": file, **more}
    endpoint = model_reader.Endpoint(url, "m", **given)
    found = list(model_reader.scores([MODEL_TASK], endpoint))
    return len(handler.asked), found


def test_a_second_run_asks_only_what_has_no_answer(
    server: tuple[str, type[_Server]], tmp_path: Path
) -> None:
    file = tmp_path / "answers.jsonl"
    asked, found = _asked_again(server, file)
    assert asked > len(found) > 0
    assert _asked_again(server, file) == (0, found)
    lines = file.read_text().splitlines()
    file.write_text("\n".join(lines[:-1]) + "\n")
    asked, again = _asked_again(server, file)
    assert 0 < asked < 5
    assert again == found
    assert _asked_again(server, file, seed=5)[0] > 5  # that is another question


def test_what_earlier_runs_spent_counts_for_the_cap(
    server: tuple[str, type[_Server]], tmp_path: Path
) -> None:
    file = tmp_path / "answers.jsonl"
    asked, found = _asked_again(server, file, cap=0.1)
    assert asked <= 5
    assert _asked_again(server, file, cap=0.1) == (0, found)
    assert _asked_again(server, file, cap=0.2)[0] > 0


def test_what_is_late_is_told_apart_and_asked_again(
    server: tuple[str, type[_Server]], tmp_path: Path
) -> None:
    file, handler = tmp_path / "answers.jsonl", server[1]
    question = worlds.build(1, 40, 24_000, 1).questions[0]
    endpoint = model_reader.Endpoint(server[0], "m", 9.0, 3.0, 15.0, timeout=0.05, answers=file)
    handler.slow = 0.3
    row = model_reader._answered(
        model_reader.Asked(MODEL_TASK, question, False, Sent(body([]))), ["late"], endpoint
    )
    assert row["said"] is None
    handler.slow = 0.0
    _, found = _asked_again(server, file)
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    file.write_text(json.dumps({**rows[0], "said": None}) + "\n" + "".join(
        json.dumps(one) + "\n" for one in rows[1:]
    ))  # fmt: skip
    late = list(
        model_reader.scores([MODEL_TASK], model_reader.Endpoint(server[0], "m", 0.0, 3.0, 15.0,
                                                                answers=file))
    )  # fmt: skip
    assert late[0][2].score == model_reader.LATE  # nothing is left to ask it again
    asked, again = _asked_again(server, file)
    assert asked == 1
    assert again == found


PAIRED = ["--paired", "--window", "1000", "--steps", "20", "--tokens", "4000", "--each", "1"]


def test_pairs_are_of_as_many_tokens_and_only_of_questions_that_all_were_asked(
    server: tuple[str, type[_Server]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server[1].world = worlds.build(1, 20, 4_000, 1)
    argv = [*PAIRED, "--model", server[0], "--cap", "9", "--answers", str(tmp_path / "a.jsonl"),
            "--policy", *policies.PAIRED]  # fmt: skip
    assert command.main(argv) == 0
    told = capsys.readouterr().out
    assert len(re.findall(r"(?m)^\| [^|]+ \| [\d,]+ \| 12 \|", told)) == 4
    assert "| only the messages that name what is asked about | 12 | 0 | 0 |" in told
    assert "tools" not in server[1].asked[0]
    sizes = {
        name: tokens.count(policies.equal(name, server[1].world, 1_000).request)
        for name in policies.PAIRED[:3]
    }
    ours = sizes.pop("trimtab:balanced")
    assert all(0.7 * ours < size <= ours for size in sizes.values())
    kept = (tmp_path / "a.jsonl").read_text().splitlines()
    (tmp_path / "a.jsonl").write_text("\n".join(kept[:-2]) + "\n")
    assert command.main([*argv, "--cap", "0"]) == 0  # what was paid is above the cap
    assert "| only the messages that name what is asked about | 10 |" in capsys.readouterr().out


def test_the_messages_that_name_it_hold_every_answer() -> None:
    world = worlds.build(1, 20, 4_000, 1)
    for question in world.questions:
        request = policies.fact_alone(world, question).request
        found = reader.read(request, question, None).answer
        assert found is not None
        assert found.value == question.value
        assert trimtab.check(request) == ()
        assert tokens.count(request) < 1_000
