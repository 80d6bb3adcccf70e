"""Whatever is handed to a public function: it answers, or raises an error of ``trimtab.errors``.

Every function, every argument, values of every kind; each error can be printed.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from shapes import FORMATS, session

import trimtab
from trimtab import clients
from trimtab.errors import InvalidSetting, TrimtabError
from trimtab.retry.refusals import classify
from trimtab.sessions.pruning import compress, distill, prune
from trimtab.sessions.session_turns import take_out
from trimtab.settings import Summarizer
from trimtab.stores import open_store
from trimtab_lab.testing import StrictProvider


class Hostile:
    """Raises whatever is asked of it."""

    def __iter__(self) -> Iterator[Any]:
        raise RuntimeError("iter")

    def __bool__(self) -> bool:
        raise RuntimeError("bool")

    def __repr__(self) -> str:
        raise RuntimeError("repr")


def deep(kind: type[Any]) -> Any:
    """100,000 containers, one in the other."""
    top: Any = kind()
    inner = top
    for _ in range(100_000):
        child = kind()
        if kind is dict:
            inner["a"] = child
        else:
            inner.append(child)
        inner = child
    return top


HUGE = 10**5000
VALUES: list[Any] = [
    5, -1, 0, 1.5, float("nan"), float("inf"), True, False, "x", "", b"x", None, [], {}, (), [None],
    [5], ["a"], {"a": 1}, {1: 2}, lambda block: True, int, Path("a"), [Path("a")], object(), set(),
    HUGE, "\ud800", Hostile(), range(3), "\x00",
]  # fmt: skip
DEEP = deep(dict), deep(list)
CYCLE: dict[str, Any] = {"messages": []}
CYCLE["messages"].append(CYCLE)
ODD_CALL = {"id": HUGE, "function": {"name": HUGE, "arguments": HUGE}}
REQUESTS: list[Any] = [
    *VALUES, *DEEP, CYCLE, {"messages": [DEEP[0]]}, {"messages": DEEP[0]},
    {"messages": [{"role": "user", "content": DEEP[1]}]},
    {"messages": [{"role": "user", "content": HUGE}]},
    {"messages": [{"role": "user", "content": [{"type": "text", "text": 5}]}]},
    {"messages": [5]}, {"contents": [{"parts": 5}]}, {"input": [5]},
    {"system": 5, "max_tokens": 1, "messages": []},
    {"messages": [{"role": 5, "content": "x"}], "tools": 5},
    '{"messages":' + "1" * 5000 + "}",
    {"messages": [{"role": "user", "content": object()}]},
    {"messages": [{"role": "user", "content": {1, 2}}]},
    {"messages": [{"role": "assistant", "tool_calls": [ODD_CALL]}]},
    {"model": 5, "messages": [{"role": "user", "content": "x"}]},
    {"messages": [{"role": "assistant", "tool_calls": [{"a": 1}]}]},
    {"messages": [
        {"role": "user", "content": [{"toolResult": {"toolUseId": "a", "content": [{}]}}]},
    ]},
]  # fmt: skip
SMALL = {"messages": [{"role": "user", "content": "hi"}]}


def answers(call: Callable[[], Any]) -> None:
    """It returns, or raises one of ours, which can be printed."""
    told = "nothing"
    try:
        call()
    except TrimtabError as error:
        told = str(error)
    assert told


ON_REQUESTS: dict[str, Callable[[Any], Any]] = {
    "fit": lambda v: trimtab.fit(v, window=4000),
    "check": trimtab.check,
    "repair": trimtab.repair,
    "measure": trimtab.measure,
    "detect": trimtab.detect,
    "Session.fit": lambda v: trimtab.Session(window=4000).fit(v),
    "Session.sweep": lambda v: trimtab.Session(window=4000).sweep(v),
    "Session.observe": lambda v: trimtab.Session(window=4000).observe(v),
    **{f"convert to {to}": lambda v, to=to: trimtab.convert(v, to=to) for to in FORMATS},
    **{f"check {f}": lambda v, f=f: trimtab.check(v, format=f) for f in FORMATS},
    **{f"fit {f}": lambda v, f=f: trimtab.fit(v, format=f, window=4000) for f in FORMATS},
    **{f"convert {f}": lambda v, f=f: trimtab.convert(v, "bedrock", format=f) for f in FORMATS},
}


@pytest.mark.parametrize("name", ON_REQUESTS)
def test_any_request_is_answered_or_refused_by_an_error_of_ours(name: str) -> None:
    for value in REQUESTS:
        answers(lambda v=value: ON_REQUESTS[name](v))  # type: ignore[misc]


def parameters(function: Callable[..., Any]) -> list[str]:
    kinds = inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
    found = inspect.signature(function).parameters.values()
    return [p.name for p in found if p.kind in kinds and p.name not in ("request", "clock")]


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "check": trimtab.check, "repair": trimtab.repair, "convert": trimtab.convert,
    "measure": trimtab.measure, "detect": trimtab.detect,
}  # fmt: skip


@pytest.mark.parametrize(("name", "argument"), [(n, a) for n in FUNCTIONS
                                                for a in parameters(FUNCTIONS[n])])  # fmt: skip
def test_any_argument_is_taken_or_refused_by_an_error_of_ours(name: str, argument: str) -> None:
    for value in VALUES:
        answers(lambda v=value: FUNCTIONS[name](SMALL, **{argument: v}))  # type: ignore[misc]


@pytest.mark.parametrize("argument", parameters(trimtab.Session))
def test_any_argument_of_a_session_is_taken_or_refused_by_an_error_of_ours(
    argument: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    def turn(value: Any) -> None:
        with_window = {"window": 4000} if argument != "settings" else {}
        one = trimtab.Session(**{**with_window, argument: value})
        one.fit(SMALL)
        one.close()

    for value in VALUES:
        answers(lambda v=value: turn(v))  # type: ignore[misc]
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("argument", ["conversation", "tenant", "clock"])
def test_any_argument_of_a_session_with_a_store_is_taken_or_refused_when_it_is_made(
    argument: str,
) -> None:
    for value in VALUES:
        if argument == "clock" and callable(value):
            continue  # a function of the caller's may raise what it likes
        try:
            one = trimtab.Session(window=4000, store="memory:", **{argument: value})
        except InvalidSetting:
            continue
        one.fit(SMALL)


SESSION = trimtab.Session(window=4000)
FITTED = SESSION.fit(session("openai-chat", steps=16))
HANDLE = FITTED.report.edits[0].handle
USES: dict[str, Callable[[Any], Any]] = {
    **{name: getattr(SESSION, name) for name in ("pin", "unpin", "undo", "recall", "search")},
    "shown": SESSION.shown,
    "recall from": lambda v: SESSION.recall(HANDLE, v),
    "recall to": lambda v: SESSION.recall(HANDLE, 0, v),
    "search in": lambda v: SESSION.search("a", v),
    "search most": lambda v: SESSION.search("a", most=v),
    "observe for": lambda v: SESSION.observe({"usage": {"prompt_tokens": 5}}, v),
    "prune": lambda v: take_out(SESSION, SMALL, lambda given: prune(given, v)),
    "distill": lambda v: take_out(SESSION, SMALL, lambda given: distill(given, v)),
    "compress from": lambda v: take_out(
        SESSION, SMALL, lambda given: compress(given, v, "b", "words")
    ),
    "compress in": lambda v: take_out(SESSION, SMALL, lambda given: compress(given, "a", "b", v)),
    "sweep": lambda v: SESSION.sweep(SMALL, v),
    "recall_tool": trimtab.recall_tool,
    "look up": lambda v: SESSION.look_up(handle=v, search=v, file=v, steps=v, lines=v, start=v),
    "note_tool": trimtab.note_tool,
    "note_tool result": lambda v: trimtab.note_tool("anthropic").result(v, v),
    "wrap": trimtab.wrap,
    "load_settings": trimtab.load_settings,
    "Fitted.recall": FITTED.recall,
    "classify status": lambda v: classify(v, b"x"),
    "classify": lambda v: classify(400, v),
    "stores.open": trimtab.stores.open,
    "Endpoint": lambda v: trimtab.Endpoint(v, "m"),
    "Endpoint model": lambda v: trimtab.Endpoint("http://localhost:80", v),
    "Endpoint api": lambda v: trimtab.Endpoint("http://localhost:80", "m", api=v),
    "Summarizer parallel": lambda v: Summarizer(str, parallel=v),
    "Summarizer seconds": lambda v: Summarizer(str, seconds=v),
    "wrap retry_result_chars": lambda v: clients.httpx_client(retry_result_chars=v),
    "httpx_client library": lambda v: clients.httpx_client(library=v, retry_result_chars=0),
    "StrictProvider window": lambda v: StrictProvider(window=v),
}


@pytest.mark.parametrize("name", USES)
def test_any_use_is_answered_or_refused_by_an_error_of_ours(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for value in VALUES:
        answers(lambda v=value: USES[name](v))  # type: ignore[misc]
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("url", ["sqlite", "sqlite:", "sqlite://", "sqlite:x.db", "sqlite://x.db"])
def test_a_store_without_its_file_says_what_to_write(url: str) -> None:
    with pytest.raises(InvalidSetting, match=r"sqlite:///trimtab\.db"):
        open_store(url)
