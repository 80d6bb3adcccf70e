"""Prints what odd structures cost: time at n, 2n and 4n, and how it grows.

    python bench/structure.py            # every case
    python bench/structure.py calls      # those whose name holds this

Each request is one that repair or planning has to walk: unanswered, duplicate and orphan calls in
each format, many compactions and much reasoning in a row, very many messages, very many lines, very
long texts.  ``ratio`` is the larger of the two doublings; 2 is linear.  ``memory`` is what one call
needs at its most beyond the request, in sizes of the request, where it matters (Linux).  Ends with
1 where a doubling takes more than 2.4 times as long, or a case more time or memory than it may.
Times are of this process alone, the best of five runs in turn.

The doublings are timed without Python's garbage collector, and ``in all``, what a caller waits for
4n, with it.  A full collection begins at 70,000 new objects: the sizes here lie on both sides, so
that its first ones would be read as growth (2.2 to 2.7; from 4n on, 2.1 to 2.4 again).
"""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import trimtab

MAX_RATIO = 2.4
UNSAID = 0.05
"""Seconds below which a ratio says nothing."""

Body = dict[str, Any]


class Case(NamedTuple):
    """``make(n)`` is a request of size n; ``fit`` within a window of ``share`` of its size, or of
    ``window`` tokens; with at most ``memory`` times its size, and ``ratio``."""

    name: str
    make: Callable[[int], Body]
    largest: int
    seconds: float
    share: float = 9.0
    window: int = 0
    recall: bool = False
    memory: float = 0.0
    ratio: float = MAX_RATIO


def _chat(messages: list[Body]) -> Body:
    return {"model": "gpt-5.2", "messages": [{"role": "user", "content": "Go."}, *messages]}


def _chat_calls(n: int) -> list[Body]:
    return [
        {"id": f"c{i}", "type": "function", "function": {"name": "f", "arguments": f'{{"n":{i}}}'}}
        for i in range(n)
    ]


def unanswered_chat(n: int) -> Body:
    return _chat([{"role": "assistant", "content": None, "tool_calls": _chat_calls(n)}])


def unanswered_anthropic(n: int) -> Body:
    calls = [{"type": "tool_use", "id": f"c{i}", "name": "f", "input": {"n": i}} for i in range(n)]
    return {"model": "claude-opus-4-5", "max_tokens": 9, "messages": [
        {"role": "user", "content": "Go."}, {"role": "assistant", "content": calls},
        {"role": "user", "content": "And?"},
    ]}  # fmt: skip


def unanswered_bedrock(n: int) -> Body:
    calls = [{"toolUse": {"toolUseId": f"c{i}", "name": "f", "input": {"n": i}}} for i in range(n)]
    return {"messages": [
        {"role": "user", "content": [{"text": "Go."}]}, {"role": "assistant", "content": calls},
        {"role": "user", "content": [{"text": "And?"}]},
    ]}  # fmt: skip


def unanswered_responses(n: int) -> Body:
    calls = [
        {"type": "function_call", "call_id": f"c{i}", "name": "f", "arguments": f'{{"n":{i}}}'}
        for i in range(n)
    ]
    return {"model": "gpt-5.2", "input": [{"role": "user", "content": "Go."}, *calls]}


def answered_responses(n: int) -> Body:
    body = unanswered_responses(n)
    body["input"] += [
        {"type": "function_call_output", "call_id": f"c{i}", "output": f"is {i}"} for i in range(n)
    ]
    return body


def gemini_calls(n: int) -> Body:
    calls = [{"functionCall": {"name": "f", "args": {"n": i}}} for i in range(n)]
    back = [{"functionResponse": {"name": "f", "response": {"r": i}}} for i in range(n)]
    return {"contents": [
        {"role": "user", "parts": [{"text": "Go."}]}, {"role": "model", "parts": calls},
        {"role": "user", "parts": back},
    ]}  # fmt: skip


def gemini_unanswered(n: int) -> Body:
    body = gemini_calls(n)
    body["contents"][2]["parts"] = [{"text": "And?"}]
    return body


def gemini_turns(n: int) -> Body:
    contents: list[Body] = [{"role": "user", "parts": [{"text": "Go."}]}]
    for i in range(n):
        contents += [
            {"role": "model", "parts": [{"functionCall": {"name": f"f{i % 7}", "args": {"n": i}}}]},
            {"role": "user", "parts": [
                {"functionResponse": {"name": f"f{i % 7}", "response": {"r": i}}}]},
        ]  # fmt: skip
    return {"contents": contents}


def duplicates_chat(n: int) -> Body:
    call = {"role": "assistant", "content": None, "tool_calls": _chat_calls(1)}
    return _chat([call, *({"role": "tool", "tool_call_id": "c0", "content": f"is {i}"}
                          for i in range(n))])  # fmt: skip


def orphans_chat(n: int) -> Body:
    return _chat(
        [{"role": "tool", "tool_call_id": f"c{i}", "content": f"is {i}"} for i in range(n)]
    )


def _results(ids: list[str]) -> Body:
    call = {"type": "tool_use", "id": "c0", "name": "f", "input": {}}
    back = [{"type": "tool_result", "tool_use_id": one, "content": f"is {i}"}
            for i, one in enumerate(ids)]  # fmt: skip
    return {"model": "claude-opus-4-5", "max_tokens": 9, "messages": [
        {"role": "user", "content": "Go."}, {"role": "assistant", "content": [call]},
        {"role": "user", "content": back},
    ]}  # fmt: skip


def duplicates_anthropic(n: int) -> Body:
    return _results(["c0"] * n)


def orphans_anthropic(n: int) -> Body:
    return _results([f"c{i}" for i in range(n)])


def orphans_responses(n: int) -> Body:
    body = answered_responses(n)
    body["input"] = [body["input"][0], *body["input"][n + 1 :]]
    return body


def compactions(n: int) -> Body:
    blocks = [{"type": "compaction", "content": f"what was said, {i}"} for i in range(n)]
    return {"model": "claude-opus-4-5", "max_tokens": 9, "messages": [
        {"role": "user", "content": "Go."}, {"role": "assistant", "content": blocks},
        {"role": "user", "content": "And?"},
    ]}  # fmt: skip


def reasoning(n: int) -> Body:
    items = [
        {"type": "reasoning", "id": f"rs_{i}", "summary": [], "encrypted_content": "e"}
        for i in range(n)
    ]
    return {"model": "gpt-5.2", "input": [{"role": "user", "content": "Go."}, *items]}


def copies_of_reasoning(n: int) -> Body:
    body = reasoning(n)
    body["input"] = [{**item, "id": "rs_0"} for item in body["input"][1:]]
    return body


def one_call_a_message(n: int) -> Body:
    return _chat([{"role": "assistant", "content": None, "tool_calls": [call]}
                  for call in _chat_calls(n)])  # fmt: skip


def messages(n: int) -> Body:
    return _chat([
        {"role": ("assistant", "user")[i % 2], "content": f"{i} words of a turn, and more of them"}
        for i in range(n - 1)
    ])  # fmt: skip


def steps(n: int) -> Body:
    found: list[Body] = []
    for i in range(n // 2):
        found += [
            {"role": "assistant", "content": None, "tool_calls": [
                {**_chat_calls(1)[0], "id": f"c{i}"}]},
            {"role": "tool", "tool_call_id": f"c{i}", "content": f"{i} is value_{i * 7919}"},
        ]  # fmt: skip
    return _chat(found)


def lines(n: int) -> Body:
    text = "\n".join(f"{i} of name_{i % 9973}" for i in range(n))
    return _chat([
        {"role": "assistant", "content": None, "tool_calls": _chat_calls(1)},
        {"role": "tool", "tool_call_id": "c0", "content": text},
        {"role": "assistant", "content": "Read."}, {"role": "user", "content": "And now?"},
    ])  # fmt: skip


def megabytes(n: int) -> Body:
    """A text of n million characters in results of 1 MB each."""
    piece = "".join(f"{i} is value_{i * 7919 % 100_003} of it\n" for i in range(40_000))[:1_000_000]
    found: list[Body] = []
    for i in range(n):
        found += [
            {"role": "assistant", "content": None, "tool_calls": [
                {**_chat_calls(1)[0], "id": f"c{i}"}]},
            {"role": "tool", "tool_call_id": f"c{i}", "content": f"{i}{piece}"},
        ]  # fmt: skip
    return _chat(found)


CASES = (
    Case("unanswered calls, chat", unanswered_chat, 8_000, 1.0),
    Case("unanswered calls, anthropic", unanswered_anthropic, 8_000, 1.0),
    Case("unanswered calls, bedrock", unanswered_bedrock, 8_000, 1.0),
    Case("unanswered calls, responses", unanswered_responses, 8_000, 1.0),
    Case("answered calls, responses", answered_responses, 8_000, 1.0),
    Case("calls of one turn, gemini", gemini_calls, 8_000, 1.0),
    Case("unanswered calls, gemini", gemini_unanswered, 8_000, 1.0),
    Case("turns of one call, gemini", gemini_turns, 8_000, 1.0),
    Case("duplicate results, chat", duplicates_chat, 8_000, 1.0),
    Case("duplicate results, anthropic", duplicates_anthropic, 8_000, 1.0),
    Case("orphan results, chat", orphans_chat, 8_000, 1.0),
    Case("orphan results, anthropic", orphans_anthropic, 8_000, 1.0),
    Case("orphan results, responses", orphans_responses, 8_000, 1.0),
    Case("compactions, anthropic", compactions, 8_000, 1.0),
    Case("reasoning in a row, responses", reasoning, 8_000, 1.5),
    Case("copies of reasoning, responses", copies_of_reasoning, 8_000, 1.5),
    Case("unanswered messages, chat", one_call_a_message, 8_000, 1.0),
    Case("messages", messages, 100_000, 5.0),
    Case("messages of steps", steps, 100_000, 5.0),
    Case("messages of steps, cut", steps, 20_000, 5.0, 0.5),
    Case("steps that cannot fit", steps, 8_000, 5.0, window=30),
    Case("steps that cannot fit, recall", steps, 8_000, 5.0, window=30, recall=True),
    # The largest is split first: providers take at most 10,485,760 characters in one text.
    Case("lines, cut", lines, 1_000_000, 5.0, 0.02, memory=16.0, ratio=3.2),
    Case("megabytes", megabytes, 46, 5.0, memory=4.0),
    Case("megabytes, cut", megabytes, 46, 5.0, 0.01, memory=4.0),
)


def fit(case: Case, body: Body, size: int) -> None:
    """One call with a body of so many characters."""
    window = case.window or max(1_000, int(case.share * size / 4))
    with suppress(trimtab.CannotFit):
        trimtab.fit(body, window=window, reserve=0, recall=case.recall)


def seconds(case: Case, sizes: list[int]) -> tuple[list[float], float]:
    """The best time for each size without the garbage collector, and for the largest with it."""
    best = dict.fromkeys(sizes, float("inf"))
    in_all = float("inf")
    for _ in range(5 if case.seconds < 2 else 2):
        for n in sizes:
            best[n] = min(best[n], _timed(case, n, collecting=False))
        in_all = min(in_all, _timed(case, sizes[-1], collecting=True))
    return list(best.values()), in_all


def _timed(case: Case, n: int, *, collecting: bool) -> float:
    body = case.make(n)
    size = len(json.dumps(body))
    gc.collect()
    if not collecting:
        gc.disable()
    begin = time.process_time()
    fit(case, body, size)
    took = time.process_time() - begin
    gc.enable()
    return took


def memory(case: Case) -> float:
    """What the largest needs at its most beyond the request, in sizes of the request (Linux)."""
    body = case.make(case.largest)
    size = len(json.dumps(body))
    Path("/proc/self/clear_refs").write_text("5")  # forget the most so far: proc(5)
    before = _max_kilobytes()
    fit(case, body, size)
    return (_max_kilobytes() - before) * 1024 / size


def _max_kilobytes() -> int:
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0])


def measured_memory(case: Case) -> float:
    """``memory``, in a process of its own; 0 where the system does not tell."""
    if not Path("/proc/self/clear_refs").exists():
        return 0.0
    command = [sys.executable, __file__, case.name, "--memory"]
    return float(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)


def main(wanted: str = "") -> int:
    """Print each case; 1 where one is too slow, too large or grows too fast."""
    trimtab.fit(messages(100), window=10_000, reserve=0)  # what is loaded once
    print(f"{'':32}{'n':>9}{'s at n':>9}{'2n':>9}{'4n':>9}{'ratio':>7}{'in all':>8}{'may':>6}")
    failed = False
    for case in CASES:
        if wanted not in case.name:
            continue
        needs = measured_memory(case) if case.memory else 0.0
        sizes = [case.largest // 4, case.largest // 2, case.largest]
        times, in_all = seconds(case, sizes)
        ratio = max((b / a for a, b in pairwise(times) if a > UNSAID), default=0.0)
        bad = ratio > case.ratio or in_all > case.seconds or needs > case.memory
        failed |= bad
        row = "".join(f"{one:>9.2f}" for one in times)
        told = f"{case.name:32}{sizes[0]:>9,}{row}{ratio:>7.2f}{in_all:>8.2f}{case.seconds:>6.1f}"
        told += f"{needs:>8.2f} x memory" if case.memory else ""
        print(f"{told}{'  !' if bad else ''}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    if sys.argv[2:] == ["--memory"]:
        trimtab.fit(messages(100), window=10_000, reserve=0)
        print(memory(next(case for case in CASES if case.name == sys.argv[1])))
    else:
        sys.exit(main(*sys.argv[1:2]))
