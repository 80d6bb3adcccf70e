"""Are images above providers' limits accepted, and is their text still read?  Prints a table.

    apt install tesseract-ocr; pip install 'trimtab[images]'; python bench/images.py

30 sessions: five kinds of images (a long screenshot, a photo of a page, a scan with noise, many
screenshots in results of tools, a body with too many bytes) in six formats, each through the retry
loop before the strict provider, at its limits.  "read": the share of the words of a page that
tesseract finds in the original images, and in those that were sent; none of one left out.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "tests" / "support")]

from drawn_images import album, data_in, in_result, part  # noqa: E402
from flow_driver import drive  # noqa: E402
from PIL import Image, ImageDraw, ImageFilter, ImageFont  # noqa: E402
from shapes import SIX  # noqa: E402

import trimtab  # noqa: E402
from trimtab_lab.testing import StrictProvider  # noqa: E402

FONT = "DejaVuSans.ttf"
ONE = {**os.environ, "OMP_THREAD_LIMIT": "1"}
"""Threads of tesseract only get in each other's way."""


class Kind(NamedTuple):
    """One kind of session: the size of an image, how many, how it is saved, the provider's
    limits where its own are not known."""

    width: int
    height: int
    count: int = 1
    line: int = 24
    """Pixels of a line's height."""
    saved: str = "PNG"
    noise: int = 0
    limit: tuple[str, int] = ("window", 400_000)
    results: bool = False


KINDS = {
    "long screenshot": Kind(500, 4_100, limit=("image_pixels", 4_000)),
    "photo of a page": Kind(4_100, 600, line=60, saved="JPEG", limit=("image_pixels", 4_000)),
    "scan with noise": Kind(1_000, 900, line=40, noise=60, limit=("image_bytes", 700_000)),
    "21 screenshots": Kind(
        2_100, 300, count=21, line=32, limit=("image_pixels", 2_000), results=True
    ),
    "too many bytes": Kind(2_000, 500, count=6, line=36, limit=("request_bytes", 400_000)),
}


def words_of(seed: int, many: int) -> list[str]:
    """Words that a page shows: plain ones, names and numbers, all different."""
    stems = ("parse", "window", "token", "journal", "reader", "limit", "shared", "border", "cache")
    return [
        f"{stems[(seed + n) % 9]}{'' if n % 3 else n * 7919 % 1000}{'-' if n % 5 == 0 else ''}"
        f"{stems[(seed * 7 + n * 5) % 9]}"
        for n in range(many)
    ]


@cache
def drawn(kind: Kind, seed: int) -> tuple[bytes, tuple[str, ...]]:
    """A page as a file, and its words."""
    image = Image.new("RGB", (kind.width, kind.height), "white")
    draw, font = ImageDraw.Draw(image), ImageFont.truetype(FONT, int(kind.line * 0.66))
    rows, shown = (kind.height - 2 * kind.line) // kind.line, list[str]()
    fresh = iter(words_of(seed, 40 * rows))
    for row in range(rows):
        x = kind.line
        for word in fresh:
            width = draw.textlength(f"{word} ", font=font)
            if x + width > kind.width - kind.line:
                break
            draw.text((x, (row + 1) * kind.line), word, fill="black", font=font)
            shown.append(word)
            x += int(width)
    if kind.noise:
        ground = Image.effect_noise(image.size, kind.noise).convert("RGB")
        image = Image.blend(image, ground, 0.25)
    if kind.saved == "JPEG":
        image = image.filter(ImageFilter.GaussianBlur(1.5))
    file = io.BytesIO()
    image.save(file, kind.saved)
    return file.getvalue(), tuple(shown)


@cache
def read(data: bytes) -> Counter[str]:
    """The words that tesseract finds."""
    command = ["tesseract", "-", "-", "--psm", "6", "-l", "eng"]
    image = Image.open(io.BytesIO(data)).convert("L")
    if max(image.size) < 3_000:  # it wants letters of 20 pixels and more
        image = image.resize((2 * image.width, 2 * image.height), Image.Resampling.BICUBIC)
    file = io.BytesIO()
    image.save(file, "PNG")
    done = subprocess.run(command, input=file.getvalue(), capture_output=True, check=True, env=ONE)
    return Counter(done.stdout.decode("utf-8", "replace").split())


def share(data: bytes, words: tuple[str, ...]) -> float:
    """The share of the words that is found."""
    return (read(data) & Counter(words)).total() / len(words)


class Row(NamedTuple):
    """What came of one session."""

    accepted: bool
    sends: int
    left_out: int
    before: float
    after: float
    size: str
    seconds: float


def played(format: str, kind: Kind) -> Row:
    """One session, all of its images sent in one request."""
    pages = [drawn(kind, seed) for seed in range(kind.count)]
    images = [part(format, data, kind.saved) for data, _ in pages]
    body = in_result(format, images) if kind.results else album(format, *images)
    limits = dict([("window", 400_000), ("images", 200), kind.limit])
    provider, session = StrictProvider(**limits), trimtab.Session(window=390_000, recall=True)
    since = time.perf_counter()
    done = drive(provider, format, body, session.fit)
    seconds = time.perf_counter() - since
    sent = json.loads(done.sent[-1])
    now = list(data_in(sent))
    left = pages[kind.count - len(now) :]  # the oldest go first
    before = sum(share(data, words) for data, words in pages) / kind.count
    read_now = zip(now, (words for _, words in left), strict=True)
    after = sum(share(data, words) for data, words in read_now) / kind.count
    size = "×".join(f"{n:,}" for n in Image.open(io.BytesIO(now[0])).size) if now else "none"
    return Row(
        done.status == 200, done.done.attempts, kind.count - len(now), before, after, size, seconds,
    )  # fmt: skip


def rows() -> Iterator[tuple[str, str, Row]]:
    """Every session."""
    for name, kind in KINDS.items():
        for format in SIX:
            yield name, format, played(format, kind)


def screens() -> None:
    """Print what 30 screens take that Claude shows in 2,000 pixels, and what was sent."""
    kind = Kind(2_880, 1_800, line=28)
    parts = [part("anthropic", drawn(kind, seed)[0]) for seed in range(30)]
    body = album("anthropic", *parts, model="claude-sonnet-4-5")
    since = time.process_time()
    done = trimtab.Session(window=390_000).fit(body)
    seconds, sent = time.process_time() - since, list(data_in(done.request))
    sizes = Counter(Image.open(io.BytesIO(data)).size for data in sent)
    print(f"{seconds:.1f} CPU seconds, {sum(map(len, sent)):,} bytes, {dict(sizes)}")


def main() -> None:
    """Print the table."""
    if "--screens" in sys.argv[1:]:
        screens()
        return
    refused = left = 0
    seconds, before, after = 0.0, list[float](), list[float]()
    print(f"{'images':16} {'format':20} sends  left out  sent as       read before  after  seconds")
    for name, format, row in rows():
        refused, left = refused + (not row.accepted), left + row.left_out
        seconds, before, after = seconds + row.seconds, [*before, row.before], [*after, row.after]
        print(
            f"{name:16} {format:20} {row.sends:5}  {row.left_out:8}  {row.size:12}"
            f"{row.before:12.1%} {row.after:6.1%} {row.seconds:8.1f}", flush=True,
        )  # fmt: skip
    read = f"{sum(before) / len(before):.1%} before, {sum(after) / len(after):.1%} after"
    print(f"{refused} of {len(before)} sessions refused, {left} images left out")
    print(f"words read: {read}; {seconds:.0f} seconds in all sessions")


if __name__ == "__main__":
    main()
