"""What our hook adds to a request through LiteLLM's server: the same session with and without it.

    python bench/litellm_hook.py [--turns 60] [--window 100k]      # needs litellm[proxy]

Two servers, one upstream: our strict provider, which answers in milliseconds, so that the ratio is
the worst that can be.  Each turn goes to both, in alternating order; a ratio is the median of the
ratios of these pairs.  Times are from the client's side, in milliseconds, first turn left out.
Without the hook the session may not outgrow the provider, which has no window here.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests/support"))

from litellm_server import KEY, litellm_server
from proxies import ask

from trimtab.amounts import amount
from trimtab_lab.testing import Answer, StrictProvider

HEADERS = {"Content-Type": "application/json", "Authorization": f"Bearer {KEY}"}
READ = {"type": "function", "function": {"name": "read", "parameters": {"type": "object"}}}


def turn(number: int) -> list[dict[str, Any]]:
    """A call and its result of some 2,200 tokens."""
    text = "".join(f"src/m{number}.py:{n}: token {n * 7919 + number} a\n" for n in range(160))
    function = {"name": "read", "arguments": json.dumps({"path": f"src/m{number}.py"})}
    call = {"id": f"call_{number}", "type": "function", "function": function}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"call_{number}", "content": text},
    ]


def config(provider: StrictProvider, hook: str = "") -> str:
    """LiteLLM's configuration, with the hook or without."""
    model = f"{{model: openai/gpt-5.1, api_key: x, api_base: {provider.url}/v1}}"
    return f"model_list:\n- model_name: gpt-5.1\n  litellm_params: {model}\n{hook}\n"


def seconds(url: str, messages: list[dict[str, Any]]) -> float:
    """What one request takes."""
    body = json.dumps({"model": "gpt-5.1", "messages": messages, "tools": [READ]})
    began = time.perf_counter()
    status, _, data = ask(url, "POST", "/v1/chat/completions", body, HEADERS)
    if status != 200:
        raise SystemExit(f"refused: {data[:300]!r}")
    return time.perf_counter() - began


def measured(turns: int, window: int) -> list[tuple[float, float, bool]]:
    """(seconds without, seconds with the hook, whether something was cut) of each turn."""
    hook = "litellm_settings: {callbacks: trimtab.clients.litellm.proxy_hook}"
    rows, messages = list[tuple[float, float, bool]](), [{"role": "user", "content": "Read."}]
    with (
        StrictProvider(lambda record: Answer("ok"), counter=None) as provider,
        tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other,
        litellm_server(Path(one), config(provider)) as plain,
        litellm_server(Path(other), config(provider, hook), TRIMTAB_WINDOW=str(window)) as hooked,
    ):  # fmt: skip
        for number in range(turns):
            messages += turn(number)
            times = dict[str, float]()
            for url in (plain, hooked) if number % 2 else (hooked, plain):
                times[url] = seconds(url, messages)
                if url == hooked:
                    sent = provider.requests[-1].body["messages"]  # LiteLLM itself adds a little
                    cut = len(json.dumps(sent)) < 0.95 * len(json.dumps(messages))
            rows.append((times[plain], times[hooked], cut))
    return rows[1:]


def row(name: str, pairs: list[tuple[float, float, bool]]) -> str:
    """One line: medians, and the median of the ratios."""
    if not pairs:
        return f"{name:28} no such turn"
    without, hooked = (1_000 * statistics.median(one[k] for one in pairs) for k in (0, 1))
    ratio = statistics.median(b / a for a, b, _ in pairs)
    return f"{name:28} {len(pairs):6} {without:10.0f} {hooked:10.0f} {ratio:8.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--turns", type=int, default=60)
    parser.add_argument("--window", type=amount, default=100_000)
    given = parser.parse_args()
    rows = measured(given.turns, given.window)
    print(f"{'turns':28} {'count':>6} {'without':>10} {'with':>10} {'ratio':>8}")
    print(row("nothing to cut", [one for one in rows if not one[2]]))
    print(row("with cuts in force", [one for one in rows if one[2]]))
    print(row("all", rows))


if __name__ == "__main__":
    main()
