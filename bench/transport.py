"""Prints what a transport adds to a request of a megabyte: at first sight, unchanged, with edits.

    python bench/transport.py [RUNS]

Paired: each body goes straight to a stub in the place of the network and, in turn, through our
transport to the same stub; printed is the median of the differences, in milliseconds of CPU time.
"unchanged" is a conversation that was seen before and has one turn more each time; "same bytes" is
the retry of an SDK; "edits" is such a conversation with three results that are cut and stay cut.
"""

from __future__ import annotations

import json
import random
import statistics
import sys
import time
from pathlib import Path
from typing import Any

SRC = Path(__file__).resolve().parents[1] / "src"
sys.path.insert(0, str(SRC))

import httpx2  # noqa: E402

from trimtab import Settings  # noqa: E402
from trimtab.clients.guard import Guard  # noqa: E402
from trimtab.clients.httpx_transport import classes  # noqa: E402

MEGABYTE = 1_000_000
URL = "https://api.openai.com/v1/chat/completions"
ANSWER = json.dumps({"choices": [{"message": {"content": "ok"}}]}).encode()


class Stub(httpx2.BaseTransport):
    """The network: reads the body, answers at once."""

    def handle_request(self, request: Any) -> Any:
        request.read()
        headers = {"content-type": "application/json"}
        return httpx2.Response(200, headers=headers, stream=httpx2.ByteStream(ANSWER))


def turn(number: int, lines: int = 60) -> list[dict[str, Any]]:
    """One call and its result, no two alike."""
    chance = random.Random(number)
    text = "".join(
        f"src/module_{chance.randrange(999)}.py:{n}: token {chance.random()} \u00e9\n"
        for n in range(lines)
    )
    function = {"name": "read", "arguments": json.dumps({"path": f"{number}.py"})}
    call = {"id": f"call_{number}", "type": "function", "function": function}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"call_{number}", "content": text},
    ]


def conversation(seed: int) -> list[dict[str, Any]]:
    """About a megabyte of messages."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": f"What is in here? {seed}"}]
    size = 0
    while size < MEGABYTE:
        messages += turn(seed * 10_000 + len(messages), 30)
        size += len(json.dumps(messages[-2:]))
    return messages


def body(messages: list[dict[str, Any]]) -> bytes:
    """As an SDK writes it."""
    text = json.dumps({"model": "gpt-5.1", "messages": messages}, ensure_ascii=False)
    return text.encode()


def cost(transport: Any, data: bytes) -> float:
    """Milliseconds of one request."""
    request = httpx2.Request("POST", URL, content=data)
    began = time.thread_time()
    transport.handle_request(request).read()
    return (time.thread_time() - began) * 1_000


def paired(ours: Any, plain: Any, bodies: list[bytes]) -> float:
    """Median of what ours adds, over these bodies in order."""
    return statistics.median(cost(ours, data) - cost(plain, data) for data in bodies)


def guarded(**keywords: Any) -> Any:
    """Our transport around a stub."""
    return classes(httpx2)[0](Guard(**keywords), Stub())


def main() -> None:
    """Print the table."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    plain = Stub()
    cost(guarded(window=10_000_000), body(conversation(0)[:21]))  # tables are loaded
    first, unchanged, same, edits = [], [], [], []
    size = 0
    for run in range(1, runs // 3 + 2):
        messages = conversation(run)
        ours = guarded(window=10_000_000)
        first.append(paired(ours, plain, [body(messages)]))
        size = len(body(messages))
        for number in range(3):
            messages = messages + turn(run * 10_000 + 5_000 + number, 30)
            data = body(messages)
            unchanged.append(paired(ours, plain, [data]))
            same.append(paired(ours, plain, [data]))
        cut = guarded(window=10_000_000)
        long = [*messages]
        for number in range(3):
            long += turn(run * 10_000 + 7_000 + number, 120)
        once = Settings(window=10_000_000, result_chars=4_000)
        cut.guard.session.fit(body(long), format="openai-chat:openai", settings=once)
        cost(cut, body(long))
        for number in range(3):
            long = long + turn(run * 10_000 + 8_000 + number, 30)
            edits.append(paired(cut, plain, [body(long)]))
    print(f"body {size / MEGABYTE:.2f} MB, {runs // 3 + 1} conversations; added milliseconds:")
    for name, rows, most in (
        ("first sight", first, 30), ("unchanged, one turn more", unchanged, 2),
        ("the same bytes again", same, 2), ("three edits, one turn more", edits, 4),
    ):  # fmt: skip
        middle, worst = statistics.median(rows), max(rows)
        print(f"  {name:28} {middle:7.2f}  (worst {worst:7.2f}; goal {most})")


if __name__ == "__main__":
    main()
