"""The demo on a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from trimtab.amounts import many, short
from trimtab.cli.terminal import Terminal, clean
from trimtab.reporting.columns import aligned
from trimtab_lab.demo.played import SOUGHT, Demo, DemoEdit, PlayedRequest

MAX_GAUGE, SHOWN_LINES = 36, 5
NEXT = (
    ("trimtab run claude", "start a coding agent that can't outgrow its window"),
    ("trimtab fit request.json --window 32k", "make one of your own requests fit"),
    ("trimtab replay ~/.claude/projects --advise", "see which window pays for your sessions"),
)
"""(command, what it does) of the three that are named last."""


def as_text(demo: Demo, terminal: Terminal) -> str:
    """Everything but the path of the page."""
    parts = (
        _head(demo, terminal), _requests(demo, terminal), _cuts(demo, terminal),
        _before_and_after(demo, terminal), _afterwards(demo, terminal),
    )  # fmt: skip
    return "\n\n".join("\n".join(part) for part in parts)


def what_next(terminal: Terminal) -> str:
    """The three next commands."""
    rows = [["  " + command, about] for command, about in NEXT]
    return "\n".join([terminal.paint("bold", "Next"), *aligned(rows, left=2)])


def about(demo: Demo) -> str:
    """Where the figures come from."""
    return (
        f"A recorded session of a coding agent ({demo.recording.model}), {short(demo.window)} "
        "tokens of window, played on this machine against a strict fake provider. No model was "
        "asked."
    )


def cuts_and_edits(demo: Demo) -> str:
    """ "2 cuts, 4 edits": a cut is what one request lost, in one edit or several."""
    cuts = sum(bool(one.edits) for one in demo.requests)
    return f"{many(cuts, 'cut')}, {many(len(demo.edits), 'edit')}"


def edit_cells(one: DemoEdit) -> list[str]:
    """Request, handle, tokens before and after, and what went."""
    edit = one.edit
    return [
        f"{one.request}", edit.handle, f"{edit.tokens_before:,} → {edit.tokens_after:,}",
        edit.title,
    ]  # fmt: skip


def findings(demo: Demo) -> list[tuple[str, str]]:
    """(heading, sentence): what was kept, lost, found again; a look-up and an undo."""
    found, undone = demo.found, demo.undone
    where = "still in" if found.in_last_request else "no longer in"
    same = "equal to" if found.equal else "not equal to"
    back = "is in the request again" if undone.whole_again else "is not in the request"
    return [
        ("Kept", " ".join(demo.money_and_losses[1:])),
        ("Lost", f"{many(demo.gone, 'line')} of the last request were not sent."),
        ("Found again", f"{demo.gone_found:,} of these {demo.gone:,} lines, in "
         f"{many(demo.originals, 'original')}; {demo.equal} of {demo.originals} are equal to the "
         "recording, byte for byte."),
        ("Look up", f"The search “{SOUGHT}” finds “{found.hit.text.strip()}”, {where} the last "
         f"request. The original {found.hit.handle} has {found.chars:,} characters and is {same} "
         "the recording, byte for byte."),
        ("Undo", f"After undo {undone.handle} its original {back}, which then has "
         f"{undone.sent:,} of {demo.window:,} tokens."),
    ]  # fmt: skip


def _head(demo: Demo, terminal: Terminal) -> Iterator[str]:
    yield terminal.paint("bold", demo.first_sentence)
    for text in (demo.money_and_losses[0], about(demo)):
        yield from _wrapped(terminal, text)


def _requests(demo: Demo, terminal: Terminal) -> Iterator[str]:
    columns = max(8, min(MAX_GAUGE, terminal.columns - 49))
    largest = max(request.whole for request in demo.requests)
    yield terminal.paint("bold", "  #  tokens → sent")
    for one in demo.requests:
        yield _request(one, demo.window, largest, columns, terminal)


def _request(
    one: PlayedRequest, window: int, largest: int, columns: int, terminal: Terminal
) -> str:
    """``11  32,329 → 18,163  ██████···│·  would be refused``."""
    full, cut, mark = ("█", "░", "│") if terminal.blocks else ("#", ".", "|")
    edge, sent, whole = (round(n / largest * columns) for n in (window, one.sent, one.whole))
    cells = [
        terminal.paint("dim", mark) if n == edge
        else terminal.paint("good", full) if n < sent
        else terminal.paint("over", cut) if n < whole
        else " "
        for n in range(columns + 1)
    ]  # fmt: skip
    arrow = f"{one.whole:>7,}   {'':>6}" if one.sent == one.whole else (
        f"{one.whole:>7,} → {one.sent:>6,}"
    )  # fmt: skip
    end = "would be refused" if one.refusal else ""
    end += ", cut" if one.edits else ""
    return f"{one.number:>3} {arrow}  {''.join(cells)} {end}".rstrip()


def _cuts(demo: Demo, terminal: Terminal) -> Iterator[str]:
    refusal = next((one.refusal for one in demo.requests if one.refusal), "")
    if refusal:
        yield from _wrapped(terminal, f"The refusal: {refusal}")
        yield ""
    rows = [["request", "handle", "tokens", "what went"], *map(edit_cells, demo.edits)]
    head, *lines = (clean(line) for line in aligned(rows, left=4))
    yield terminal.paint("bold", cuts_and_edits(demo))
    yield terminal.paint("dim", head)
    yield from (_within(line, terminal.columns) for line in lines)


def _before_and_after(demo: Demo, terminal: Terminal) -> Iterator[str]:
    one = max(demo.edits, key=lambda one: one.edit.tokens_saved)
    yield terminal.paint("bold", f"{one.edit.handle}, before and after")
    for name, sign, lines in (("over", "-", one.before), ("good", "+", one.after)):
        for line in _beginning(lines, terminal.columns - 4):
            yield terminal.paint(name, f"  {sign} {line}")


def _beginning(lines: Sequence[str], columns: int) -> Iterator[str]:
    for line in lines[:SHOWN_LINES]:
        yield _within(clean(line.expandtabs(4)), columns)
    if len(lines) > SHOWN_LINES:
        yield f"… {many(len(lines) - SHOWN_LINES, 'more line')}"


def _within(text: str, columns: int) -> str:
    return text if len(text) <= columns else f"{text[: columns - 1]}…"


def _afterwards(demo: Demo, terminal: Terminal) -> Iterator[str]:
    for name, text in findings(demo):
        yield from _wrapped(terminal, clean(text), f"{name:12}")


def _wrapped(terminal: Terminal, text: str, head: str = "") -> list[str]:
    """The text in lines of at most 100 columns; ``head`` begins the first."""
    width = min(100, terminal.columns)
    lines = textwrap.wrap(text, width, initial_indent=head, subsequent_indent=" " * len(head))
    return [terminal.paint("bold", head) + lines[0][len(head) :], *lines[1:]] if head else lines
