"""One record of a corpus: what is taken for a request, and what stays as it was."""

from __future__ import annotations

import json
from typing import Any

import pytest
from corpora import FORMATS, record

import trimtab
from trimtab.settings import Settings
from trimtab_lab.batch.records import RecordFit, RecordOptions, fit_line, fit_value

WANTED = RecordOptions(Settings(window=4_000, reserve=0))
ANSWERS = {
    "openai-chat": [{"role": "assistant", "content": "It is value_7, I am sure of that."}],
    "anthropic": [{"role": "assistant", "content": [{"type": "text", "text": "It is value_7."}]}],
    "openai-responses": [
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
         "content": [{"type": "output_text", "text": "It is value_7.", "annotations": []}]},
    ],
}  # fmt: skip


def line(value: Any) -> bytes:
    return json.dumps(value).encode()


def messages(body: dict[str, Any]) -> list[Any]:
    return body["messages"] if "messages" in body else body["input"]


def kind(fit: RecordFit) -> str:
    return fit.error["error"] if fit.error else ""


def test_a_request_that_fits_keeps_every_byte() -> None:
    given = b'{"messages": [ {"role":"user","content":"caf\\u00e9 1.50"} ], "meta": 1e2 }'
    fit = fit_line(given + b"\n", WANTED)
    assert fit.output == given
    assert fit.row["before"] == fit.row["after"] > 0


def test_a_request_over_several_lines_becomes_one_line() -> None:
    given = json.dumps({"messages": [{"role": "user", "content": "hello"}]}, indent=2).encode()
    fit = fit_line(given, WANTED)
    assert b"\n" not in fit.output
    assert json.loads(fit.output) == json.loads(given)


@pytest.mark.parametrize("number", range(3), ids=FORMATS)
def test_a_request_that_is_too_long_is_fitted_as_fit_does(number: int) -> None:
    body = record(number)
    fit = fit_line(line(body), WANTED)
    assert fit.output == trimtab.fit(line(body), settings=WANTED.settings).request
    assert trimtab.check(fit.output) == ()
    assert fit.row["after"] <= 4_000 < fit.row["before"]
    assert sum(count for count, _, _ in fit.row["edits"].values()) > 0


@pytest.mark.parametrize("number", range(3), ids=FORMATS)
@pytest.mark.parametrize("window", [4_000, 1_000_000])
def test_the_model_s_last_words_stay_and_count(number: int, window: int) -> None:
    body, answer = record(number), ANSWERS[FORMATS[number]]
    messages(body).extend(answer)
    fit = fit_line(line(body), RecordOptions(Settings(window=window, reserve=0)))
    assert messages(json.loads(fit.output))[-len(answer) :] == answer
    assert len(messages(json.loads(fit.output))) <= len(messages(body))  # and nothing is added
    if window == 1_000_000:
        assert fit.output == line(body)
    else:
        assert fit.row["after"] <= window
        prompt = json.loads(fit.output)
        del messages(prompt)[-len(answer) :]
        assert trimtab.check(prompt) == ()
        assert trimtab.measure(prompt).total < fit.row["after"]


def test_room_is_left_for_the_answer() -> None:
    body = record(0)
    long = {"role": "assistant", "content": " ".join(f"word{n}" for n in range(1_000))}
    body["messages"].append(long)
    fit = fit_line(line(body), WANTED)
    assert trimtab.measure(fit.output).total <= 4_000
    assert json.loads(fit.output)["messages"][-1] == long
    long["content"] *= 3
    fit = fit_line(line(body), WANTED)
    assert kind(fit) == "CannotFit"
    assert fit.row["error"] == "CannotFit: window"


@pytest.mark.parametrize("as_text", [False, True])
@pytest.mark.parametrize("key", ["request", "body"])
def test_a_request_under_a_key_of_a_log_is_put_back_there(as_text: bool, key: str) -> None:
    body = record(1)
    given = {"id": 7, key: json.dumps(body) if as_text else body, "score": 1.5}
    out = json.loads(fit_line(line(given), WANTED).output)
    inner = json.loads(out[key]) if as_text else out[key]
    assert inner == trimtab.fit(body, settings=WANTED.settings).request
    assert {**out, key: 0} == {**given, key: 0}


def test_a_key_that_was_named_is_the_only_one_looked_at() -> None:
    body = record(1)
    given = {"mine": body, "request": {"messages": [{"role": "user", "content": "other"}]}}
    fit = fit_line(line(given), RecordOptions(WANTED.settings, key="mine"))
    out = json.loads(fit.output)
    assert out["request"] == given["request"]
    assert out["mine"] == trimtab.fit(body, settings=WANTED.settings).request
    assert kind(fit_line(line({"request": body}), RecordOptions(WANTED.settings, "mine"))) == (
        "InvalidRequest"
    )


@pytest.mark.parametrize(
    "given", [b"nope", b"3", b"null", b"[]", b"{}", b'{"body": 3}', b'{"messages": {"a": 1}}',
              b'{"request": {"x": "y"}}', b'"' + b"\xff" * 5 + b'"', b"[" * 100_000]
)  # fmt: skip
def test_what_is_no_request_is_an_error_with_its_type(given: bytes) -> None:
    fit = fit_line(given, WANTED)
    assert fit.output is None
    assert kind(fit) == "InvalidRequest"
    assert fit.row["error"].startswith("InvalidRequest")


def test_what_cannot_fit_says_how_much_is_missing() -> None:
    schema = {"name": "t", "description": " ".join(f"w{n}" for n in range(5_000))}
    body = {"messages": [{"role": "user", "content": "hi"}],
            "tools": [{"type": "function", "function": schema}]}  # fmt: skip
    fit = fit_line(line(body), WANTED)
    assert fit.row["error"] == "CannotFit: window"
    assert fit.error is not None
    assert fit.error["needed"] > 0


def test_a_value_is_fitted_and_left_as_it_was() -> None:
    body = record(2)
    before = json.dumps(body)
    fit = fit_value(body, WANTED)
    assert json.dumps(body) == before
    assert fit.output == trimtab.fit(body, settings=WANTED.settings).request


def test_originals_are_given_where_they_were_asked_for() -> None:
    body = record(1)
    fitted = trimtab.fit(line(body), settings=WANTED.settings)
    fit = fit_line(line(body), RecordOptions(WANTED.settings, originals=True))
    assert fit.originals == {
        edit.handle: fitted.recall(edit.handle) for edit in fitted.report.edits
    }
    assert fit.originals
    assert not fit_line(line(body), WANTED).originals


def test_all_that_one_repair_took_out_is_among_the_originals() -> None:
    summary = {"type": "compaction", "content": "It went well.", "signature": "sig"}
    body = {"model": "claude-sonnet-4-5", "max_tokens": 100, "messages": [
        {"role": "user", "content": "first words"}, {"role": "assistant", "content": "answer"},
        {"role": "assistant", "content": [summary]}, {"role": "user", "content": "next"},
    ]}  # fmt: skip
    fit = fit_line(line(body), RecordOptions(WANTED.settings, originals=True))
    given = [json.loads(original) for original in fit.originals.values()]
    assert given == body["messages"][:2]
