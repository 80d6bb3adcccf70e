"""What a terminal shows of a text with control sequences.

Knows ECMA-48 escape sequences and carriage returns.  Does not know lines that move the cursor up:
of those every frame is kept.
"""

from __future__ import annotations

import re
import unicodedata

# Bounded and within a line, so that a forged sequence cannot swallow a whole result.
_ESCAPE = re.compile(
    r"\x1b(?:"
    r"\[[0-?]{0,64}[ -/]{0,8}[@-~]?"  # CSI: colours, cursor
    r"|\]8;[^\x07\x1b\n;]{0,256};(?P<link>[^\x07\x1b\n]{0,2048})(?:\x07|\x1b\\)"  # hyperlink
    r"|\][^\x07\x1b\n]{0,4096}(?:\x07|\x1b\\)"  # OSC: window title
    r"|[PX^_][^\x1b\n]{0,4096}\x1b\\"  # DCS, SOS, PM, APC
    r"|[()*+\-./#%][0-9A-Za-z@<=>]"  # character sets
    r"|[=>78cDEHMNOZ]"
    r")?"  # else the bare escape character alone
)
_ERASE = re.compile(r"\x1b\[[012]?K")
_MOVE = re.compile(r"\x1b\[[0-9;]*[ABCDEFGHJLMPSTXdfsu@]|\x1b[78DEM]|\x08")


def strip_escapes(text: str) -> str:
    """Escape sequences removed; a hyperlink's address, which was not on screen, stays as <…>."""
    return _ESCAPE.sub(_shown, text) if "\x1b" in text else text


def _shown(match: re.Match[str]) -> str:
    return f"<{match['link']}>" if match["link"] else ""


def settle_progress(text: str) -> str:
    """Lines rewritten by carriage returns, as last shown; CR LF line ends stay."""
    if "\r" not in text or text.count("\r") == text.count("\r\n"):
        return text
    *lines, last = text.split("\n")
    settled = [
        settle_line(line[:-1]) + "\r" if line.endswith("\r") else settle_line(line)
        for line in lines
    ]
    return "\n".join([*settled, settle_line(last)])


def settle_line(line: str) -> str:
    """One line as a terminal finally shows it, later text written over earlier text.

    Where that cannot be told (cursor movement, wide characters under shorter text) every state
    is kept, each on its own line.
    """
    if "\r" not in line:
        return line
    states = [state for state in line.split("\r") if state]
    if _MOVE.search(line):
        return "\n".join(states)
    shown: list[str] = []  # pieces of the screen line from the left
    cells = 0
    certain = True
    for state in reversed(states):
        text = strip_escapes(state)
        if len(text) > cells:
            certain = certain and (not cells or (_one_cell_each(text) and _one_cell_each(shown[0])))
            shown.append(text[cells:])
            cells = len(text)
        if _ERASE.search(state):
            break
    return "".join(shown) if certain else "\n".join(states)


def _one_cell_each(text: str) -> bool:
    if text.isascii():
        return text.isprintable()
    return text.isprintable() and not any(
        unicodedata.east_asian_width(char) in "WF" or unicodedata.category(char) in ("Mn", "Me")
        for char in text
    )
