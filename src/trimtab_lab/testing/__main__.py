"""``python -m trimtab.testing``: the strict provider on a port, until it is stopped."""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from trimtab.errors import TrimtabError
from trimtab_lab.testing.faults import ScriptStep, step_from
from trimtab_lab.testing.http_apis.refusals import styles
from trimtab_lab.testing.http_apis.server import LOOPBACK
from trimtab_lab.testing.provider import StrictProvider
from trimtab_lab.testing.record import Record


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until Ctrl-C or SIGTERM; one line on stderr for each request."""
    options = _parser().parse_args(arguments)
    try:
        provider = StrictProvider(
            _script(options.script), window=options.window, style=options.style,
            counter=options.counter, request_bytes=options.request_bytes,
            result_chars=options.result_chars, overflow_as=options.overflow_as,
            answer=options.answer, max_requests=options.max_requests,
        ).start(options.port, options.host)  # fmt: skip
    except (TrimtabError, OSError, ValueError) as error:
        print(f"trimtab.testing: {error}", file=sys.stderr)
        return 2
    print(provider.url, flush=True)
    printed = 0
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        while True:
            time.sleep(0.05)
            printed = _print_new(provider, printed)
    except KeyboardInterrupt:
        return 0
    finally:
        provider.close()
        _print_new(provider, printed)


def _print_new(provider: StrictProvider, printed: int) -> int:
    """Print the requests answered since the last call; return how many are printed so far."""
    printed = min(printed, len(provider.requests))  # a client may have emptied the log
    while printed < len(provider.requests) and provider.requests[printed].status:
        print(_line(provider.requests[printed]), file=sys.stderr, flush=True)
        printed += 1
    return printed


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m trimtab.testing",
        description="A fake provider as strict as the real ones.  Prints its URL.",
    )
    parser.add_argument("--port", type=int, default=0, help="default: a free one")
    parser.add_argument("--host", default=LOOPBACK, help="default: 127.0.0.1; containers need more")
    parser.add_argument("--window", type=int, help="tokens of prompt and requested output")
    parser.add_argument("--style", choices=[*styles()], help="whose refusals; default: by format")
    parser.add_argument("--counter", choices=["o200k", "estimate"], default="o200k")
    parser.add_argument("--request-bytes", type=int)
    parser.add_argument("--result-chars", type=int, help="characters of one tool result")
    parser.add_argument(
        "--overflow-as", choices=["status", "in-stream", "empty-stream", "truncate", "finish"]
    )
    parser.add_argument("--script", type=Path, help="JSON: a list of answers and faults")
    parser.add_argument("--answer", default="OK", help="the text when the script is used up")
    parser.add_argument("--max-requests", type=int)
    return parser


def _script(path: Path | None) -> list[ScriptStep]:
    if path is None:
        return []
    items = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(items, list):
        raise ValueError(f"{path}: a script is a list")
    return [step_from(item) for item in items]


def _line(record: Record) -> str:
    what = record.refusal or f"{record.cached_tokens} cached"
    rules = ", ".join(dict.fromkeys(violation.rule for violation in record.violations))
    size = f"{record.tokens}+{record.output} tokens"
    return f"{record.status} {record.format} {size} {what} {rules}".rstrip()


if __name__ == "__main__":
    raise SystemExit(main())
