"""Prints what lossless steps alone save on recorded transcripts, per source.

    python bench/lossless.py [--every N] [directory of transcripts]

Reads the request records (`*.jsonl.gz`, directory from the argument, TRIMTAB_DATA or
../shared/data); of every N-th one with ``--every``.  Sizes are o200k tokens of every string the
model reads, + 4 a message, + 10 a call or result.  Two kinds of lossless stand side by side:

- *exact text*: a decoder restores the text byte for byte (line numbers on each tenth line, letters
  instead of JSON escapes);
- *exact values*: besides, JSON is compact or a table, terminal control, progress and trailing
  blanks are gone, and repeated lines are counted; that text is no longer the same.

An edit call quotes the text of a file without its line numbers; ``quotes`` counts the old texts of
the recorded edit calls that stood in an earlier result and still do, to the letter, when results
are shown with fewer numbers (``quotable``: of so many).
"""

from __future__ import annotations

import gzip
import json
import os
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "src"))

from trimtab import formats  # noqa: E402
from trimtab.reducers import Config, levels  # noqa: E402
from trimtab.reducers.respell import line_numbers  # noqa: E402
from trimtab.transcript.model import Block  # noqa: E402
from trimtab.transcript.token_sizes import TokenSizes  # noqa: E402
from trimtab.transcript.tokens import counter_for  # noqa: E402
from trimtab.transcript.transcript import Transcript  # noqa: E402

READABLE = ("openai-chat", "openai-responses", "anthropic", "bedrock", "gemini")
COUNT = counter_for("o200k", model=None, format="")
EXACT_TEXT = ("line-numbers", "unescape")
_NUMBER = re.compile(r"^ *[0-9]+(?:→|\t| ?\| ?|: )", re.MULTILINE)
OLD_TEXT = ("old_string", "old_str", "oldText")


def transcripts(file: Path, every: int) -> Iterator[Transcript]:
    """The readable records of one file."""
    number = 0
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        for line in lines:
            record = json.loads(line)
            if record["format"] not in READABLE:
                continue
            number += 1
            if number % every == 0:
                key = {"openai-responses": "input", "gemini": "contents"}
                body = {key.get(record["format"], "messages"): record["messages"]}
                format, _ = formats.find(body, record["format"])
                yield formats.read(body, format, model=record.get("model"))


def saved(block: Block, config: Config) -> Counter[str]:
    """Tokens that each lossless step saves on one block, by its kind."""
    found, last = Counter[str](), config.count(block.text)
    for offer in levels(block, config):
        if offer.loss > 0 or offer.op != "replace":
            break
        tokens = config.count(offer.text)
        found[offer.kind] += last - tokens
        last = tokens
    return found


def old_texts(block: Block) -> Iterator[str]:
    """What an edit call says stands in the file."""
    try:
        arguments = json.loads(block.text)
    except ValueError:
        return
    given = arguments if isinstance(arguments, dict) else {}
    for one in [given, *(e for e in given.get("edits") or () if isinstance(e, dict))]:
        for key in OLD_TEXT:
            if isinstance(one.get(key), str) and one[key].strip():
                yield one[key]


def plain(text: str) -> str:
    """A result without its line numbers, as the model quotes it."""
    return _NUMBER.sub("", text)


def measure(file: Path, every: int) -> Counter[str]:
    """All figures of one source."""
    config, total = Config(COUNT), Counter[str]()
    for transcript in transcripts(file, every):
        total["tokens"] += TokenSizes(COUNT).measure(transcript)
        seen: list[tuple[str, str]] = []
        for place in transcript.places():
            block = place.block
            if block.kind == "result" and block.text:
                total["result"] += COUNT(block.text)
                total.update(saved(block, config))
                thin = next(line_numbers(block, config), None)
                seen.append((plain(block.text), plain(thin.text if thin else block.text)))
            elif block.kind == "call":
                for old in old_texts(block):
                    stood = [after for before, after in reversed(seen) if old in before]
                    total["quotable"] += bool(stood)
                    total["quotes"] += any(old in after for after in stood)
    return total


def main() -> None:
    arguments = sys.argv[1:]
    every = 1
    if "--every" in arguments:
        at = arguments.index("--every")
        every = int(arguments[at + 1])
        del arguments[at : at + 2]
    named = arguments[0] if arguments else os.environ.get("TRIMTAB_DATA")
    folder = Path(named) if named else ROOT.parent / "shared" / "data"
    print(
        f"{'source':24}{'tokens':>12}{'exact text':>12}{'exact values':>14}{'quotes':>16}  by step"
    )
    for file in sorted(folder.glob("*.jsonl.gz")):
        found = measure(file, every)
        if not found["result"]:
            continue
        tokens = found["tokens"]
        steps = {k: v for k, v in found.items() if k not in
                 ("tokens", "result", "quotes", "quotable")}  # fmt: skip
        exact = sum(steps.get(kind, 0) for kind in EXACT_TEXT)
        print(
            f"{file.name.removesuffix('.jsonl.gz'):24}{tokens:12,}{100 * exact / tokens:11.1f}%"
            f"{100 * sum(steps.values()) / tokens:13.1f}%"
            f"{found['quotes']:8,}/{found['quotable']:<7,}  "
            + ", ".join(f"{k} {100 * v / tokens:.2f}%" for k, v in sorted(steps.items())),
            flush=True,
        )


if __name__ == "__main__":
    main()
