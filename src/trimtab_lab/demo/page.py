"""The demo as one page for the browser, which loads nothing.

Plain strings, since the base install has no template engine; whatever comes from the session is
escaped.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from trimtab.amounts import many, short
from trimtab.reporting.pages import printable, stylesheet
from trimtab_lab.demo.played import Demo, DemoEdit, PlayedRequest
from trimtab_lab.demo.screen import NEXT, about, cuts_and_edits, edit_cells, findings

WIDTH, HEIGHT, GAP = 720, 220, 6
"""Of the chart, in units of its view box."""
AXIS = 46
"""Units at its left for the figures."""


def as_html(demo: Demo) -> str:
    """The whole page."""
    body = (
        f"<h1>{_text(demo.first_sentence)}</h1>",
        f"<p>{_text(demo.money_and_losses[0])}</p>",
        f'<p class="soft">{_text(about(demo))}</p>', *_chart(demo), *_cuts(demo), *_findings(demo),
        *_next(),
    )  # fmt: skip
    return "\n".join([
        "<!doctype html>", '<html lang="en">', "<head>", '<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">', "<title>trimtab demo</title>",
        f"<style>{stylesheet(__package__)}</style>", "</head>", "<body>", *body, "</body>",
        "</html>", "",
    ])  # fmt: skip


def _text(text: str) -> str:
    return escape(printable(text))


def _chart(demo: Demo) -> Iterator[str]:
    """Bars: what each request sent, above it what was not sent; the window as a line; cuts."""
    largest = max(demo.window, *(request.whole for request in demo.requests))
    scale = (HEIGHT - 30) / largest
    step = (WIDTH - AXIS) / len(demo.requests)
    window = HEIGHT - demo.window * scale
    label = f"Tokens of {many(len(demo.requests), 'request')}, before and after trimtab"
    yield f'<figure><svg viewBox="0 0 {WIDTH} {HEIGHT + 24}" role="img" aria-label="{label}">'
    for tokens, y in ((demo.window, window), (0, HEIGHT)):
        yield f'<text x="{AXIS - 6}" y="{y + 4:.1f}" text-anchor="end">{short(tokens)}</text>'
    for number, request in enumerate(demo.requests):
        yield from _bar(request, AXIS + number * step, step - GAP, scale)
    for name, y in (("axis", HEIGHT), ("window", window)):
        yield f'<line class="{name}" x1="{AXIS}" x2="{WIDTH}" y1="{y:.1f}" y2="{y:.1f}"></line>'
    yield (
        f'</svg><figcaption><span class="key" style="background:var(--sent)"></span> sent '
        f'<span class="key" style="background:var(--one)"></span> not sent · - - window of '
        f"{short(demo.window)} tokens · ▾ a cut</figcaption></figure>"
    )


def _bar(request: PlayedRequest, x: float, width: float, scale: float) -> Iterator[str]:
    whole, sent = request.whole * scale, request.sent * scale
    about = f"request {request.number}: {request.whole:,} tokens, {request.sent:,} sent"
    yield f"<g><title>{about}</title>"
    for kind, top, height in (("whole", whole, whole - sent), ("sent", sent, sent)):
        yield (
            f'<rect class="{kind}" x="{x:.1f}" y="{HEIGHT - top:.1f}" width="{width:.1f}" '
            f'height="{height:.1f}"></rect>'
        )
    middle = x + width / 2
    if request.edits:
        yield (
            f'<text class="mark" x="{middle:.1f}" y="{HEIGHT - whole - 6:.1f}" '
            'text-anchor="middle">▾</text>'
        )
    if request.number == 1 or request.edits:
        place = f'x="{middle:.1f}" y="{HEIGHT + 20}" text-anchor="middle"'
        yield f"<text {place}>{request.number}</text>"
    yield "</g>"


def _cuts(demo: Demo) -> Iterator[str]:
    yield f"<h2>{cuts_and_edits(demo)}</h2>"
    refusal = next((one.refusal for one in demo.requests if one.refusal), "")
    if refusal:
        yield f'<p class="soft">Without them: <code>{_text(refusal)}</code></p>'
    for one in demo.edits:
        yield "<details><summary>"
        request, handle, tokens, what = map(_text, edit_cells(one))
        yield f"Request {request}, <code>{handle}</code>: {tokens} tokens, {what}"
        yield "</summary>"
        yield from _before_and_after(one)
        yield "</details>"


def _before_and_after(one: DemoEdit) -> Iterator[str]:
    sides: tuple[tuple[str, Sequence[str]], ...] = (("before", one.before), ("after", one.after))
    for name, lines in sides:
        text = "\n".join(lines)
        yield f"<div>{name}, {many(len(lines), 'line')}</div>"
        yield f'<pre class="{name}" tabindex="0">{_text(text)}</pre>'


def _findings(demo: Demo) -> Iterator[str]:
    yield "<h2>Afterwards</h2><dl>"
    for name, text in findings(demo):
        yield f"<dt>{_text(name)}</dt><dd>{_text(text)}</dd>"
    yield "</dl>"


def _next() -> Iterator[str]:
    yield "<h2>Next</h2><dl>"
    for command, what in NEXT:
        yield f"<dt><code>{_text(command)}</code></dt><dd>{_text(what)}</dd>"
    yield "</dl>"
