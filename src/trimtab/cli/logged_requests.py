"""The request that a command takes: the file itself, or one from a log of sessions.

A log has many requests; ``--turn`` chooses one, by default the last of the main conversation.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from trimtab import formats
from trimtab.cli import files
from trimtab.cli.exit_codes import UNKNOWN_FORMAT, USAGE, ExitWith, is_json
from trimtab.cli.terminal import clean
from trimtab.errors import InvalidRequest
from trimtab.jsontext import paths
from trimtab.jsontext.parsing import parse_bytes
from trimtab.settings import Settings

if TYPE_CHECKING:
    from trimtab.logs.recording import Recording

LOGS = (
    "session logs of Claude Code, Codex, Copilot CLI, Gemini CLI, Goose, OpenClaw,\n"
    "  opencode (export), pi and Qwen Code; records, logs of requests"
)
_PACKED = (".gz", ".parquet")
_LINES = (".jsonl", ".ndjson")


class FoundRequest(NamedTuple):
    """A request as bytes, and what a log tells of it: its format and model."""

    data: bytes
    facts: Settings = Settings()


@dataclass(frozen=True)
class _Logged:
    """A request of a recording: its first ``sent`` messages."""

    recording: Recording
    sent: int


def add_turn(parser: ArgumentParser) -> None:
    """--turn N."""
    parser.add_argument(
        "--turn", type=int, metavar="N",
        help="which request of a session log, from 0 (default: the last of the main conversation)",
    )  # fmt: skip


def request_of(args: Namespace) -> FoundRequest:
    """The request in FILE; if FILE is a log, the one chosen by ``--turn``.

    Prints on standard error which request was chosen.  Anything else is returned as it is, and the
    library reports what is wrong with it.
    """
    packed = args.file.endswith(_PACKED)
    data = b"" if packed else files.request_of(args)
    if not packed and args.turn is None and _is_request(data):
        return FoundRequest(data)
    from trimtab.logs import log_files

    if packed and "://" not in args.file:
        files.read(args.file)  # says what is wrong with the path
    logs = log_files.read([args.file]) if packed else log_files.of_bytes(data, _name(args))
    is_log = packed or args.file.endswith(_LINES) or args.turn is not None
    # Several bodies that nobody called a log are no JSON, and not a log of requests.
    unanswered = logs.unanswered if is_log or is_json(data) else []
    if requests := _requests(logs.recordings, unanswered):
        return _chosen(args, requests)
    if unread := next((problem for problem in logs.problems if problem.agent), None):
        raise ExitWith(UNKNOWN_FORMAT, f"{_name(args)}: {unread.message}")
    if is_log:
        why = f": {logs.problems[0].message}" if logs.problems else ""
        raise ExitWith(
            UNKNOWN_FORMAT,
            f"{_name(args)}: no model call of a session in it{why}; read are {LOGS}; "
            "`trimtab bill`, `trimtab replay` and `trimtab batch` read the same",
        )
    return FoundRequest(data)


def is_log(args: Namespace) -> bool:
    """Whether FILE is a log by its name, or a turn of one was asked for."""
    return args.turn is not None or args.file.endswith((*_PACKED, *_LINES))


def _name(args: Namespace) -> str:
    return "standard input" if args.file == "-" else str(args.file)


def _is_request(data: bytes) -> bool:
    """Whether ``data`` is one request; an exported session is not, though it may have
    ``messages``."""
    from trimtab.logs.kinds import session_reader
    from trimtab.logs.unread import unread_agent

    try:
        tree = parse_bytes(data)
        formats.find(tree)
    except InvalidRequest:
        return False
    return session_reader([tree]) is None and unread_agent([tree]) is None


def _requests(recordings: list[Recording], unanswered: list[Recording]) -> list[_Logged]:
    """All requests: those of the main conversations in their order, then those that the user took
    back and those of subagents."""
    requests: list[_Logged] = []
    last = {recording.session or recording.id: recording for recording in recordings}
    for recording in sorted([*recordings, *unanswered], key=_is_beside):
        requests += [_Logged(recording, turn.sent) for turn in recording.turns]
        is_last = recording in last.values() or recording in unanswered
        if is_last and recording.views[-1].role != "assistant":
            requests.append(_Logged(recording, len(recording.messages)))  # not answered yet
    return requests


def _is_beside(recording: Recording) -> bool:
    """Whether it is no main conversation: a subagent's, or one that the user took back."""
    return recording.task in ("branch", "sidechain")


def _chosen(args: Namespace, requests: list[_Logged]) -> FoundRequest:
    main = [request for request in requests if not _is_beside(request.recording)] or requests
    number = len(main) - 1 if args.turn is None else args.turn
    if not 0 <= number < len(requests):
        raise ExitWith(
            USAGE,
            f"--turn {number}: {_name(args)} has the requests 0 to {len(requests) - 1}: name one",
        )
    request = requests[number]
    recording = request.recording
    if not getattr(args, "json", False):
        agent = f"{recording.agent}, " if recording.agent else ""
        print(
            clean(
                f"{_name(args)}: request {number} of {agent}{recording.id} ({recording.format})"
                f"{_missing(recording)}; --turn takes another, 0 to {len(requests) - 1}"
            ),
            file=sys.stderr,
        )
    args.data = data = paths.dump(recording.body(recording.messages[: request.sent])).encode(
        "utf-8", "surrogatepass"
    )
    return FoundRequest(data, recording.facts)


def _missing(recording: Recording) -> str:
    names = [
        name
        for name, value in (("system prompt", recording.system), ("tools", recording.tools))
        if value is None
    ]
    return f", whose {' and '.join(names)} are not in the log" if names and recording.agent else ""
