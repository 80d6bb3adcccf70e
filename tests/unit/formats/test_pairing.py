"""Each call exactly one result, each result exactly one call, turn by turn: rows E6 and E10.

E6: a filter keeps a result iff its call is pending, and says at level WARNING what it takes out.
E10: the rules of Bedrock Converse, named with path and reason.  Knows requests; the expected
results come from a few lines here that replay the row, not from the library.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from typing import Any

import converse
import judge_bedrock
import pytest
from chat_requests import body, call, calls, result, said, use, used, user
from hypothesis import given
from hypothesis import strategies as st

import trimtab

ASK = user()
NO_ID = {"role": "tool", "content": "nobody asked"}


def kept(request: Any) -> list[str]:
    """What the results of a chat request say, synthetic ones apart."""
    told = [m["content"] for m in request["messages"] if m["role"] == "tool"]
    return [text for text in told if not text.startswith("[No result:")]


def filtered(log: pytest.LogCaptureFixture) -> list[str]:
    """The warnings of the package's logger."""
    return [r.getMessage() for r in log.records if (r.name, r.levelname) == ("trimtab", "WARNING")]


@pytest.mark.parametrize(
    ("request_", "told"),
    [
        (body(ASK, calls(call("c1")), ASK, result("c1")), "1 result pulled next to the call"),
        (body(ASK, calls(call("c1"))), "1 interrupted call answered (read)"),
        (
            body(ASK, calls(call("c1"), call("c2")), ASK, result("c1")),
            "1 result pulled next to the call; 1 interrupted call answered (read)",
        ),
    ],
    ids=["late", "none", "both"],
)
def test_a_repair_says_which_results_it_moved_and_which_it_made_up(
    request_: Any, told: str
) -> None:
    assert [repair.message for repair in trimtab.repair(request_).report.repairs] == [told]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["c1", "c1"], ["c1", "c1_2"]),
        (["c1", "c2", "c1"], ["c1", "c2", "c1_2"]),
        (["c1_2", "c1", "c1"], ["c1_2", "c1", "c1_3"]),
        (["", "c1"], ["call_1", "c1"]),
    ],
    ids=str,
)
def test_the_first_call_of_an_id_keeps_it_and_others_of_its_turn_get_free_ones(
    given: list[str], expected: list[str]
) -> None:
    request = body(ASK, calls(*map(call, given)), *map(result, given))
    _, turn, *results = trimtab.repair(request).request["messages"]
    assert [one["id"] for one in turn["tool_calls"]] == expected
    assert [one["tool_call_id"] for one in results] == expected


# --- E6: what the filter keeps --------------------------------------------------------------------

E6 = {
    "no id, nothing pending": (body(ASK, calls(call("c1")), result("c1", "one"), NO_ID), ["one"]),
    "no id, one call pending": (body(ASK, calls(call("c1")), NO_ID), []),
    "empty id": (body(ASK, calls(call("c1")), result("c1", "one"), result("", "two")), ["one"]),
    "id consumed in the same turn": (
        body(ASK, calls(call("c1")), result("c1", "one"), result("c1", "two")), ["one"]),
    "id consumed long ago": (
        body(ASK, calls(call("c1")), result("c1", "one"), said(), ASK, result("c1", "two")),
        ["one"]),
    "call after its result": (body(ASK, result("c1", "early"), calls(call("c1"))), ["early"]),
    "call after its result, answered again": (
        body(ASK, result("c1", "early"), calls(call("c1")), result("c1", "one")), ["one"]),
    "id never seen": (body(ASK, calls(call("c1")), result("c1", "one"), result("c9")), ["one"]),
    "an id that is called again is pending again": (
        body(ASK, calls(call("c1")), result("c1", "one"), calls(call("c1")), result("c1", "two")),
        ["one", "two"]),
    "pending, but behind other words": (
        body(ASK, calls(call("c1")), user("wait"), said(), result("c1", "one")), ["one"]),
}  # fmt: skip


@pytest.mark.row("E6")
@pytest.mark.parametrize(("request_", "expected"), E6.values(), ids=E6)
def test_a_result_stays_iff_its_id_is_pending_and_an_id_is_consumed_once(
    request_: Any, expected: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    given_ = kept(request_)
    repaired = trimtab.repair(request_)
    assert kept(repaired.request) == expected
    assert trimtab.check(repaired.request) == ()
    gone = [repair for repair in repaired.report.repairs if repair.handle]
    assert len(gone) == len(filtered(caplog)) == len(given_) - len(expected)
    for repair in gone:
        assert json.loads(repaired.recall(repair.handle))["content"] in given_


@st.composite
def tool_chats(draw: st.DrawFn) -> list[dict[str, Any]]:
    """A chat whose results come whenever they like, under ids that recur or are missing."""
    ids = st.sampled_from(["a", "b", "c"])
    messages: list[dict[str, Any]] = [user()]
    for number in range(draw(st.integers(1, 12))):
        what = draw(st.sampled_from(["call", "result", "result", "nothing", "user"]))
        if what == "call":
            made = draw(st.lists(ids, min_size=1, max_size=3, unique=True))
            messages.append(calls(*map(call, made)))
        elif what == "result":
            messages.append(result(draw(ids), f"result {number}"))
        elif what == "nothing":
            messages.append({**NO_ID, "content": f"result {number}"})
        else:
            messages.append(user(f"words {number}"))
    return messages


def pending_first(messages: list[dict[str, Any]]) -> list[str]:
    """The row, replayed: a call makes its id pending, the next result of that id consumes it.  The
    first call of an id that gets none has the newest result that came before it."""
    pending, found, early = dict[str, str](), list[str](), dict[str, str]()
    for message in messages:
        for made in message.get("tool_calls", ()):
            if pending.get(made["id"]):
                found.append(pending[made["id"]])
            pending[made["id"]] = early.pop(made["id"], "")
        name = message.get("tool_call_id")
        if message["role"] != "tool" or not name:
            continue
        if pending.get(name) is not None:
            del pending[name]
            found.append(message["content"])
        elif not any(made["id"] == name for m in messages[: messages.index(message)]
                     for made in m.get("tool_calls", ())):  # fmt: skip
            early[name] = message["content"]
    return found + [text for text in pending.values() if text]


@pytest.mark.row("E6")
@given(tool_chats())
def test_whatever_the_order_the_results_of_pending_calls_stay(messages: list[Any]) -> None:
    repaired = trimtab.repair(body(*messages))
    assert sorted(kept(repaired.request)) == sorted(pending_first(messages))
    assert trimtab.check(repaired.request) == ()


@pytest.mark.row("E6")
def test_a_result_before_a_call_that_is_just_being_run_is_moved_to_it() -> None:
    request = body(ASK, result("c1", "early"), calls(call("c1"), call("c2")))
    sent = trimtab.repair(request, open_tail=True).request["messages"]
    assert sent == [ASK, calls(call("c1"), call("c2")), result("c1", "early")]
    again = [ASK, calls(call("c1")), result("c1", "one"), ASK, result("c1", "lost")]
    sent = trimtab.repair(body(*again, calls(call("c1"))), open_tail=True).request["messages"]
    assert sent == [*again[:-1], calls(call("c1"))], (
        "it may be the first call's, and the second runs"
    )


# --- E6: who is told ------------------------------------------------------------------------------

SECRET = "the password is hunter2"


def orphaned(call_id: str = "call_gone") -> dict[str, Any]:
    return body(ASK, calls(call("c1")), result("c1"), result(call_id, SECRET), said())


@pytest.mark.row("E6")
def test_the_warning_names_the_removed_result_and_its_handle_but_not_its_text(
    caplog: pytest.LogCaptureFixture,
) -> None:
    fitted = trimtab.fit(orphaned(), window=32_000)
    (line,) = filtered(caplog)
    assert line.startswith("FILTERING OUT messages[3] (orphan_result): ")
    assert "call_gone" in line
    assert f"{len(SECRET)} chars" in line
    assert SECRET not in line
    (repair,) = fitted.report.repairs
    assert line.endswith(repair.handle)
    assert json.loads(fitted.recall(repair.handle))["content"] == SECRET
    assert "call_gone" in str(fitted.report)


@pytest.mark.row("E6")
def test_in_a_session_each_removed_result_is_told_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    session = trimtab.Session(window=32_000)
    request = orphaned()
    session.fit(request)
    session.fit(body(*request["messages"], user("go on")))
    later = trimtab.Session(window=32_000, journal=session.journal)
    later.fit(body(*request["messages"], user("go on"), said(), user("and?")))
    assert len(filtered(caplog)) == 1
    later.fit(body(*request["messages"], user("go on"), result("call_late"), said(), user("so?")))
    assert [("call_late" in line) for line in filtered(caplog)] == [False, True]


@pytest.mark.row("E6")
def test_an_id_with_line_breaks_stays_on_one_short_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    trimtab.repair(orphaned("x\nWARNING:root:forged\x1b[31m" + "y" * 5_000))
    (line,) = filtered(caplog)
    assert line.isprintable()
    assert len(line) < 400


@pytest.mark.row("E6")
@pytest.mark.parametrize("format", ["openai-chat", "openai-responses", "anthropic", "bedrock",
                                    "gemini"])  # fmt: skip
def test_every_format_filters_and_tells(format: str, caplog: pytest.LogCaptureFixture) -> None:
    items: dict[str, Any] = {
        "openai-chat": orphaned(),
        "openai-responses": {"model": "gpt-5.5", "input": [
            ASK, {"type": "function_call_output", "call_id": "call_gone", "output": SECRET}]},
        "anthropic": {"max_tokens": 9, "messages": [
            ASK, said("Hm."), user([used("call_gone", SECRET)])]},
        "bedrock": converse.body(
            converse.user(converse.text("hi")), converse.model(converse.text("Hm.")),
            converse.user(converse.result("call_gone", converse.text(SECRET)))),
        "gemini": {"contents": [
            {"role": "user", "parts": [{"text": "hi"}]},
            {"role": "model", "parts": [{"text": "Hm."}]},
            {"role": "user", "parts": [{"functionResponse": {
                "name": "call_gone", "response": {"output": SECRET}}}]}]},
    }  # fmt: skip
    repaired = trimtab.repair(items[format], format=format)
    assert SECRET not in json.dumps(repaired.request)
    assert trimtab.check(repaired.request, format=format) == ()
    (line,) = filtered(caplog)
    assert "FILTERING OUT" in line
    assert "call_gone" in line
    assert SECRET not in line


@pytest.mark.row("E6")
def test_nothing_filtered_nothing_logged_and_logging_is_not_even_loaded() -> None:
    told = (
        "import json, sys, trimtab\n"
        "ask = [{'role': 'user', 'content': 'hi'}]\n"
        "assert trimtab.repair(ask).request is ask\n"
        "print('logging' in sys.modules)\n"
        "gone = {'role': 'tool', 'tool_call_id': 'x', 'content': 'y'}\n"
        "trimtab.repair([*ask, gone])\n"
        "print('logging' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == ["False", "True"]
    assert done.stderr == ""  # who sets up no logs reads the report


# --- E10: the strict rules ------------------------------------------------------------------------

B_ASK, B_SAID = converse.user(converse.text("hi")), converse.model(converse.text("Hm."))


def asks(*ids: str) -> dict[str, Any]:
    return converse.model(*map(converse.use, ids))


def answers(*ids: str) -> dict[str, Any]:
    return converse.user(*[converse.result(i, converse.text(f"of {i}")) for i in ids])


E10: dict[str, tuple[list[Any], list[tuple[str, tuple[Any, ...]]]]] = {
    "one call, one result": ([B_ASK, asks("a"), answers("a")], []),
    "parallel": ([B_ASK, asks("a", "b"), answers("a", "b")], []),
    "parallel, results in another order": ([B_ASK, asks("a", "b"), answers("b", "a")], []),
    "an id again in a later turn": (
        [B_ASK, asks("a"), answers("a"), asks("a"), answers("a")], []),
    "a call without a result": (
        [B_ASK, asks("a", "b"), answers("a")],
        [("call_unanswered", ("messages", 1, "content", 1))]),
    "a result without a call": (
        [B_ASK, asks("a"), answers("a", "b")],
        [("orphan_result", ("messages", 2, "content", 1))]),
    "two results for one call": (
        [B_ASK, asks("a"), answers("a", "a")],
        [("duplicate_result", ("messages", 2, "content", 1))]),
    "a result behind words": (
        [B_ASK, asks("a"), converse.user(converse.text("so"), *answers("a")["content"])],
        [("result_late", ("messages", 2, "content", 1))]),
    "a result one user turn too late": (
        [B_ASK, asks("a"), B_ASK, B_SAID, answers("a")],
        [("call_unanswered", ("messages", 1, "content", 0)),
         ("orphan_result", ("messages", 4, "content", 0))]),
    "a result before its call": (
        [B_ASK, B_SAID, answers("a"), asks("a"), B_ASK],
        [("orphan_result", ("messages", 2, "content", 0)),
         ("call_unanswered", ("messages", 3, "content", 0))]),
    "as many results as calls, each in the other's turn": (
        [B_ASK, asks("a"), answers("b"), asks("b"), answers("a")],
        [("orphan_result", ("messages", 2, "content", 0)),
         ("call_unanswered", ("messages", 1, "content", 0)),
         ("orphan_result", ("messages", 4, "content", 0)),
         ("call_unanswered", ("messages", 3, "content", 0))]),
    "an id consumed in its turn does not count for the next": (
        [B_ASK, asks("a"), answers("a", "b"), asks("b"), B_ASK],
        [("orphan_result", ("messages", 2, "content", 1)),
         ("call_unanswered", ("messages", 3, "content", 0))]),
    "calls at the end": (
        [B_ASK, asks("a", "b")],
        [("call_unanswered", ("messages", 1, "content", 0)),
         ("call_unanswered", ("messages", 1, "content", 1))]),
}  # fmt: skip


@pytest.mark.row("E10")
@pytest.mark.parametrize(("messages", "expected"), E10.values(), ids=E10)
def test_the_validator_names_every_path_and_a_reason_in_the_providers_words(
    messages: list[Any], expected: list[Any]
) -> None:
    request = converse.body(*messages)
    found = trimtab.check(request)
    assert sorted(map(repr, [(v.rule, v.path) for v in found])) == sorted(map(repr, expected))
    assert bool(found) == bool(judge_bedrock.problems(request))
    for violation in found:
        reason, _, words = violation.message.partition(": ")
        place = request
        for key in violation.path:
            place = place[key]
        part = place.get("toolUse") or place["toolResult"]
        assert part["toolUseId"] in reason
        assert "tool_result" in words or "toolResult" in words


def turn_by_turn(messages: list[Any]) -> None:
    """Calls and results are equal turn by turn as multisets, results first, in the user's turn."""
    for number, message in enumerate(messages):
        results = [p["toolResult"]["toolUseId"] for p in message["content"] if "toolResult" in p]
        before = messages[number - 1] if number else {"role": "user", "content": []}
        made = [p["toolUse"]["toolUseId"] for p in before["content"] if "toolUse" in p]
        assert Counter(made) == Counter(results)
        assert max([0, *Counter(results).values()]) <= 1
        assert not results or (message["role"], before["role"]) == ("user", "assistant")
        first = ["toolResult" in part for part in message["content"]]
        assert first == sorted(first, reverse=True)
    assert not any("toolUse" in part for part in messages[-1]["content"])


@pytest.mark.row("E10")
@pytest.mark.parametrize(("messages", "expected"), E10.values(), ids=E10)
def test_after_repair_each_turn_has_its_results_and_no_other(
    messages: list[Any], expected: list[Any]
) -> None:
    request = converse.body(*messages)
    repaired = trimtab.repair(request).request
    turn_by_turn(repaired["messages"])
    assert (repaired is request) == (not expected)


@st.composite
def tool_turns(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Calls and results in any turn, any number, under three ids."""
    ids = st.lists(st.sampled_from(["a", "b", "c"]), max_size=4)
    messages = [B_ASK]
    for _ in range(draw(st.integers(1, 5))):
        made, given_ = draw(ids), draw(ids)
        messages.append(asks(*dict.fromkeys(made)) if made else B_SAID)
        words = [converse.text("so")] if draw(st.booleans()) or not given_ else []
        parts = [*words, *answers(*given_)["content"]]
        messages.append(converse.user(*(parts if draw(st.booleans()) else reversed(parts))))
    return messages


@pytest.mark.row("E10")
@given(tool_turns())
def test_whatever_came_the_validator_and_the_strict_judge_agree_and_repair_satisfies_both(
    messages: list[Any],
) -> None:
    request = converse.body(*messages)
    assert bool(trimtab.check(request)) == bool(judge_bedrock.problems(request))
    repaired = trimtab.repair(request).request
    assert trimtab.check(repaired) == ()
    assert judge_bedrock.problems(repaired) == []
    turn_by_turn(repaired["messages"])


@pytest.mark.row("E10")
def test_equal_counts_in_the_wrong_turns_are_refused_wherever_turns_are_paired() -> None:
    swapped: list[Any] = [
        body(ASK, calls(call("a")), result("b"), calls(call("b")), result("a")),
        {"max_tokens": 9, "messages": [ASK, said([use("a")]), user([used("b")]), said([use("b")]),
                                       user([used("a")])]},
        converse.body(B_ASK, asks("a"), answers("b"), asks("b"), answers("a")),
    ]  # fmt: skip
    for request in swapped:
        rules = Counter(violation.rule for violation in trimtab.check(request))
        assert rules == {"orphan_result": 2, "call_unanswered": 2}
        assert trimtab.check(trimtab.repair(request).request) == ()


def test_words_beside_a_result_without_a_call_stay() -> None:
    orphan = {"type": "tool_result", "tool_use_id": "toolu_9", "content": "nobody asked"}
    words = {"type": "text", "text": "Go on with the parser."}
    request = {"model": "claude-sonnet-4-5", "max_tokens": 100, "messages": [
        {"role": "user", "content": "Look."},
        {"role": "assistant", "content": "I looked."},
        {"role": "user", "content": [orphan, words]},
    ]}  # fmt: skip
    repaired = trimtab.repair(request)
    assert repaired.request["messages"][2]["content"][0] == words
    assert [repair.rule for repair in repaired.report.repairs] == ["orphan_result"]


def test_arguments_that_are_no_object_are_kept_as_those_of_their_own_call() -> None:
    calls = [{"type": "tool_use", "id": "a", "name": "read", "input": {"path": "a.py"}},
             {"type": "tool_use", "id": "b", "name": "bash", "input": "ls -la"}]  # fmt: skip
    results = [{"type": "tool_result", "tool_use_id": key, "content": "done"} for key in "ab"]
    request = {"model": "claude-sonnet-4-5", "max_tokens": 100, "messages": [
        {"role": "user", "content": "Look."}, {"role": "assistant", "content": calls},
        {"role": "user", "content": results},
    ]}  # fmt: skip
    first, second = trimtab.repair(request).request["messages"][1]["content"]
    assert first == calls[0]
    assert isinstance(second["input"], dict)
    assert "ls -la" in second["input"].values()


ASKED: dict[str, tuple[str, list[Any], list[Any]]] = {
    "anthropic": (
        "messages",
        [
            {"role": "user", "content": "Look."},
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "call_1", "name": "read", "input": {}}],
            },
        ],
        [
            {"role": "assistant", "content": [{"type": "text", "text": "Interrupted."}]},
            {"role": "user", "content": "Go on."},
        ],
    ),
    "bedrock": (
        "messages",
        [
            {"role": "user", "content": [{"text": "Look."}]},
            {
                "role": "assistant",
                "content": [{"toolUse": {"toolUseId": "call_1", "name": "read", "input": {}}}],
            },
        ],
        [
            {"role": "assistant", "content": [{"text": "Interrupted."}]},
            {"role": "user", "content": [{"text": "Go on."}]},
        ],
    ),
    "gemini": (
        "contents",
        [
            {"role": "user", "parts": [{"text": "Look."}]},
            {"role": "model", "parts": [{"functionCall": {"name": "read", "args": {}}}]},
        ],
        [
            {"role": "model", "parts": [{"text": "Interrupted."}]},
            {"role": "user", "parts": [{"text": "Go on."}]},
        ],
    ),
    "openai-responses": (
        "input",
        [
            {"type": "message", "role": "user", "content": "Look."},
            {"type": "function_call", "call_id": "call_1", "name": "read", "arguments": "{}"},
        ],
        [
            {"type": "message", "role": "assistant", "content": "I was interrupted."},
            {"type": "message", "role": "user", "content": "Go on."},
        ],
    ),
    "gemini-interactions": (
        "input",
        [
            {"type": "user_input", "content": [{"type": "text", "text": "Look."}]},
            {"type": "function_call", "id": "call_1", "name": "read", "arguments": {}},
        ],
        [
            {"type": "model_output", "content": [{"type": "text", "text": "Interrupted."}]},
            {"type": "user_input", "content": [{"type": "text", "text": "Go on."}]},
        ],
    ),
}


@pytest.mark.parametrize("format", ASKED)
def test_the_answer_of_an_interrupted_call_stays_where_it_is_when_the_model_goes_on(
    format: str,
) -> None:
    key, first, then = ASKED[format]
    session = trimtab.Session(window=8_000, format=format)
    sent = session.fit({"model": "m", key: first}).request[key]
    assert len(sent) == 3
    assert session.fit({"model": "m", key: [*first, *then]}).request[key] == [*sent, *then]
