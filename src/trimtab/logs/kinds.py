"""Which kind of log parsed lines are, and the recordings in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from trimtab.logs.claude_code import claude_code, is_claude_code
from trimtab.logs.codex import codex, is_codex
from trimtab.logs.copilot_cli import copilot_cli, is_copilot_cli
from trimtab.logs.gemini_cli import gemini_cli, is_gemini_cli
from trimtab.logs.goose import goose, is_goose
from trimtab.logs.opencode import is_opencode, opencode
from trimtab.logs.pi import is_pi, pi
from trimtab.logs.qwen_code import is_qwen_code, qwen_code
from trimtab.logs.recording import Recording
from trimtab.logs.request_logs import FoundRecording, request_recordings

SessionReader = Callable[[Sequence[Any]], Iterator[Recording]]

_SESSIONS: tuple[tuple[Callable[[Sequence[Any]], bool], SessionReader], ...] = (
    (is_qwen_code, qwen_code),
    (is_claude_code, claude_code),
    (is_codex, codex),
    (is_copilot_cli, copilot_cli),
    (is_pi, pi),
    (is_gemini_cli, gemini_cli),
    (is_goose, goose),
    (is_opencode, opencode),
)  # fmt: skip
"""(whether lines are an agent's session log, its reader)."""
_EXPORTS = (is_gemini_cli, is_goose, is_opencode)
"""Logs that may be one value: a file of lines then has a session in each."""
NO_TURN = "no turn of the model in it"


def session_reader(values: Sequence[Any]) -> SessionReader | None:
    """The reader of the agent whose session log these lines are; None if they are none."""
    return next((read for is_log, read in _SESSIONS if is_log(values)), None)


def recordings(
    lines: Sequence[tuple[int, Any]], *, source: str, origin: str
) -> Iterator[FoundRecording]:
    """Every conversation in the lines of one file, with the number of its first line.

    A recording without turns is a request that nobody has answered yet.
    """
    values = [value for _, value in lines]
    if all(any(is_log([value]) for is_log in _EXPORTS) for value in values):
        for line, value in lines:
            yield from _session(line, [value], source, origin)
    elif session_reader(values):
        yield from _session(lines[0][0], values, source, origin)
    else:
        yield from request_recordings(lines, source=source, origin=origin)


def _session(
    line: int, values: Sequence[Any], source: str, origin: str
) -> Iterator[FoundRecording]:
    read = session_reader(values)
    try:
        found = list(read(values)) if read else []
    except (TypeError, ValueError, KeyError, AttributeError, IndexError) as error:
        yield line, f"a damaged session log: {type(error).__name__}: {error}"[:160]
        return
    answered = [recording for recording in found if recording.turns]
    main = [recording for recording in found if recording.task in ("", "main")]
    waiting = [recording for recording in (main or found)[-1:] if not recording.turns]
    for recording in [*answered, *waiting]:
        yield line, recording.renamed(source=recording.source or source, origin=origin)
    if not found:
        yield line, NO_TURN
