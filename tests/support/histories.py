"""Made-up agent histories in every state a client can bring them: legal, broken, odd, large.

``legal()`` and ``broken()`` draw (request, format).  A history is drawn as a short script (user
speaks, model turn with calls, ...) and then written down in one of two formats, so that both are
tried with the same stories.  Knows the wire formats; does not know the library under test.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st
from wire import MODELS, Call, Frame, Step, write

FORMATS = ("openai-chat", "anthropic")

# --- texts: a unit and how often; large ones cost nothing to draw ---------------------------------

UNITS = (
    "ok",
    "The build failed in src/app.py line 42: NameError: name 'window' is not defined\n",
    "2024-05-01T12:00:00Z INFO worker-7 request 5f3a9c done in 12 ms\n",
    "def f(x):\n    return x + 1\n\n",
    '{"id": 17, "name": "Ada", "tags": ["a", "b"], "ok": true}\n',
    '{\n    "path": "/srv/data/report.csv",\n    "rows": 1200,\n    "ratio": 0.50\n}\n',
    "\x1b[31merror\x1b[0m: cannot find module 'left-pad'   \n",
    "same line\n",
    "Загрузка завершена: 100 %\r",
    "这是一个用于测试的句子，包含标识符 user_42。",
    "👩‍👩‍👧‍👦🚀 e\u0301 ﬃ ",
    "   \t ",
    '\\"quoted\\" <b>&amp;</b> \u2028 \x01 \x7f',
    "aGVsbG8gd29ybGQh" * 4,
    "[trimtab: 120 lines cut; run the tool again] ",
    "word ",
)
TIMES = (1, 1, 1, 2, 5, 20, 60, 200, 1_000)


def texts(times: tuple[int, ...] = TIMES, head: str = "") -> st.SearchStrategy[str]:
    """A unit repeated, with a stamp in front so that most texts differ."""
    return st.builds(
        lambda unit, many, stamp: f"{head}{stamp} {unit * many}".strip(" ") or "x",
        st.sampled_from(UNITS),
        st.sampled_from(times),
        st.integers(0, 99),
    )


SHORT = texts((1, 1, 2, 5))

# --- steps of a story -----------------------------------------------------------------------------

ARGUMENTS = st.one_of(
    st.builds(lambda path: {"path": path}, st.sampled_from(["a.py", "b/ü.md", "C:\\x.txt"])),
    st.builds(lambda text: {"path": "n.txt", "content": text}, texts((1, 5, 60, 1_000))),
    st.just({}),
    st.just({"n": 1e300, "deep": {"list": [None, True, 1.50, "x"]}, "old": "", "Ω": "é"}),
)
CALLS = st.builds(
    Call,
    st.sampled_from(["read_file", "bash", "search-web", "edit"]),
    ARGUMENTS,
    st.sampled_from(["string"] * 4 + ["list", "list", "empty", "none", "image", "unknown"]),
    texts(),
    st.sampled_from([False, False, False, True]),
)
USER = st.builds(
    Step,
    st.just("user"),
    texts((1, 1, 1, 1, 2, 5, 20, 200)),
    st.sampled_from(["", "", "", "list", "two", "image", "unknown", "cached"]),
)
ANSWER = st.builds(
    Step, st.just("answer"), texts((1, 1, 5, 20)), st.sampled_from(["", "", "thinking", "list"])
)
MODEL = st.builds(
    Step,
    st.just("model"),
    st.one_of(st.just(""), SHORT),
    st.sampled_from(["", "", "thinking", "thinking", "redacted", "cached", "server", "legacy"]),
    st.lists(CALLS, min_size=1, max_size=4),
)
SYSTEM = st.builds(Step, st.just("system"), SHORT)
STEPS = st.one_of(MODEL, MODEL, MODEL, MODEL, USER, USER, ANSWER, SYSTEM)

TURN_DAMAGE = (
    *("unanswered", "one unanswered", "duplicate result", "orphan", "early result"),
    *("user between", "split by user", "text first", "split results", "blank", "blank user"),
    *("odd id", "long id", "twin id", "server orphan"),
)
TALK_DAMAGE = ("blank", "blank user", "cached blank", "null content", "orphan")


def frames(format: str) -> st.SearchStrategy[Frame]:
    """What stands around the messages in one format."""
    return st.builds(
        Frame,
        st.sampled_from([False, False, True]),
        st.sampled_from(MODELS[format]),
        st.one_of(st.just(""), SHORT),
        st.booleans(),
        st.integers(0, 3),
        st.sampled_from([None, 64, 512]),
        st.booleans(),
        st.sampled_from(["turn", "global"]),
        st.booleans(),
    )


@st.composite
def _histories(draw: st.DrawFn, damaged: bool, formats: tuple[str, ...]) -> tuple[Any, str]:
    format = draw(st.sampled_from(formats))
    frame = draw(frames(format))
    script = [draw(USER), *draw(st.lists(STEPS, min_size=7, max_size=24))]
    if damaged:
        wounds = st.tuples(st.integers(0, 30), st.sampled_from((*TURN_DAMAGE, *TALK_DAMAGE)))
        for place, damage in draw(st.lists(wounds, min_size=1, max_size=4)):
            script = _wound(script, place, damage)
        script = script[draw(st.sampled_from([0] * 9 + [1])) :]
    tails = ["results", "results", "user", "said"] + ["open", "cut off"] * damaged
    tail = draw(st.sampled_from(tails))
    prefilled = format == "openai-chat" or frame.model in MODELS["anthropic"][:3]
    if tail in ("said", "cut off") and not (damaged or prefilled):
        tail = "user"
    script = _ended(script, tail, draw(USER))
    if format == "anthropic" and not damaged:
        script = _placed(script)
    return write(script, frame, format), format


def _placed(script: list[Step]) -> list[Step]:
    """The script without system messages where Claude refuses them: behind its own words, before
    the user's, and two in a row."""
    kept = []
    for number, step in enumerate(script):
        before = script[number - 1].kind if number else ""
        behind = script[number + 1].kind if number + 1 < len(script) else "model"
        misplaced = before not in ("user", "model") or behind not in ("answer", "model")
        if step.kind != "system" or not misplaced:
            kept.append(step)
    return kept


def _wound(script: list[Step], place: int, damage: str) -> list[Step]:
    """The script with one step damaged: the next one of a kind that can carry the damage."""
    kinds = ("model",) if damage in TURN_DAMAGE else ("user", "answer")
    fit = [number for number, step in enumerate(script) if step.kind in kinds]
    if not fit:
        return script
    number = fit[place % len(fit)]
    step = script[number]
    calls = step.calls * 2 if len(step.calls) == 1 else step.calls
    hurt = replace(step, damage=damage, calls=calls, extra=step.extra.replace("legacy", ""))
    return [*script[:number], hurt, *script[number + 1 :]]


def legal(formats: tuple[str, ...] = FORMATS) -> st.SearchStrategy[tuple[Any, str]]:
    """Requests that the provider accepts."""
    return _histories(False, formats)


def broken(formats: tuple[str, ...] = FORMATS) -> st.SearchStrategy[tuple[Any, str]]:
    """Histories with one to four wounds; a few of them happen to be legal all the same."""
    return _histories(True, formats)


def histories(formats: tuple[str, ...] = FORMATS) -> st.SearchStrategy[tuple[Any, str]]:
    """Legal and broken ones, half and half."""
    return st.one_of(legal(formats), broken(formats))


def _ended(script: list[Step], tail: str, last: Step) -> list[Step]:
    """The script with the last step it shall have."""
    if tail == "open":
        return [*script, Step("model", "", "", [Call("bash", {}, "string", "x")] * 2, "unanswered")]
    if tail in ("said", "cut off"):
        half = "Well, then I shall" + " " * (tail == "cut off")
        return [*script, last, Step("answer", half)]
    while tail == "results" and len(script) > 1 and script[-1].kind != "model":
        script = script[:-1]
    return script if tail == "results" and script[-1].extra != "legacy" else [*script, last]
