"""Encoded and minified runs: what is shortened, what is told of it, and what stays."""

from __future__ import annotations

import base64
import hashlib
import json
import random
import re
import time

import pytest
from blocks import CONFIG, TEXT, block, count, lone_surrogates, offers
from hypothesis import given

from trimtab.reducers.base import json_bytes
from trimtab.reducers.blobs import shorten_blobs

BYTES = random.Random(1).randbytes(3_000)
RUN = base64.b64encode(BYTES).decode()
HEX = BYTES.hex()
MINIFIED = "".join(
    f"function a{n}(b,c){{return b[{n}]?c(b,{n}):e.q{n}(b)||(f={n},g);}}" for n in range(90)
)
CERTIFICATE = base64.encodebytes(BYTES[:900]).decode()


@pytest.mark.parametrize(
    ("before", "run", "after", "kind"),
    [
        ("image: ", RUN, "\nnext line", "base64"),
        ("", RUN.replace("+", "-").replace("/", "_"), " end", "base64"),
        ('{"name":"a.png","data":"', RUN, '","size":3000}', "base64"),
        ("body{background:url(data:image/png;base64,", RUN, ") no-repeat}", "base64"),
        ("//# sourceMappingURL=data:application/json;charset=utf-8;base64,", RUN, "\n", "base64"),
        ("sum ", HEX, "\n", "hex"),
        ("-----BEGIN CERTIFICATE-----\n", CERTIFICATE, "-----END CERTIFICATE-----\n", "base64"),
        ("a.min.js:\n", MINIFIED, "\nb.js: 3 lines\n", "minified"),
        ("👩‍👩‍👧‍👦 ", RUN, " é́̂🇩🇪", "base64"),
    ],
)
def test_a_run_is_told_by_head_size_digest_and_tail(
    before: str, run: str, after: str, kind: str
) -> None:
    (offer,) = [o for o in offers(block(before + run + after), CONFIG) if o.kind == "blobs"]
    assert offer.text.startswith(before + run[:48]), "what stands before it stays, and its head"
    assert offer.text.endswith(after)
    (told,) = re.findall(rf"\[{kind}, ([\d,]+) chars in all, sha256 (\w{{12}})\]", offer.text)
    whole = int(told[0].replace(",", ""))
    assert whole in (len(run), len(run.rstrip("\n").rpartition("\n")[0]) + 1)
    assert told[1] == hashlib.sha256(run[:whole].encode()).hexdigest()[:12]
    assert count(offer.text) < count(before + after) + 300
    assert shorten_blobs(offer.text) is offer.text


def test_json_around_a_run_stays_valid_json() -> None:
    text = json.dumps({"files": [{"path": f"{n}.png", "data": RUN} for n in range(3)], "n": 1.5})
    less = json.loads(shorten_blobs(text))
    assert [one["path"] for one in less["files"]] == ["0.png", "1.png", "2.png"]
    assert less["n"] == 1.5


@pytest.mark.parametrize(
    "text",
    [
        "x" * 5_000,
        "=" * 5_000,
        "-" * 5_000,
        "/home/someone/a/rather/long/path/" * 7,
        "nowhitespacebutlowercaseletters" * 40,
        "word " * 3_000,
        "0123456789abcdef" * 10,
        json.dumps([{"id": n, "name": f"n{n}"} for n in range(900)], separators=(",", ":")),
        "一二三四五六七八九十" * 500,
        "\n".join(f"{n:032x}  file_{n}.txt" for n in range(400)),
    ],
)
def test_what_can_be_read_or_is_short_stays(text: str) -> None:
    assert shorten_blobs(text) is text


@given(TEXT)
def test_nothing_grows_and_no_character_is_split(text: str) -> None:
    new = shorten_blobs(f"{text}{RUN}{text}")
    assert json_bytes(new) <= json_bytes(f"{text}{RUN}{text}")
    assert lone_surrogates(new) <= 2 * lone_surrogates(text)
    assert shorten_blobs(new) == new


@pytest.mark.parametrize(
    "text",
    [
        RUN * 250, (RUN[:255] + " ") * 4_000, "data:" * 200_000, "a;" * 500_000, "aB3" * 330_000,
        (RUN[:70] + "\n") * 14_000, ";=b" * 330_000, "data:a/b;c=d" * 90_000,
    ],
    ids=range(8),
)  # fmt: skip
def test_a_megabyte_is_searched_in_time(text: str) -> None:
    started = time.process_time()
    shorten_blobs(text)
    assert time.process_time() - started < 1
