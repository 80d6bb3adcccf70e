"""The request that a command takes: the file itself, or one from a log of sessions.

A log has many requests; ``--turn`` chooses one, by default the last of the main conversation.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trimtab import wire
from trimtab.cli import files
from trimtab.cli.exit_codes import UNKNOWN_FORMAT, USAGE, ExitWith
from trimtab.cli.terminal import clean
from trimtab.errors import InvalidRequest
from trimtab.jsontext import paths
from trimtab.jsontext.parsing import parse_bytes

if TYPE_CHECKING:
    from trimtab.replay.recording import Recording

LOGS = "session logs of Claude Code, Codex and opencode (export), records, logs of requests"
_PACKED = (".gz", ".parquet")
_LINES = (".jsonl", ".ndjson")


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


def request_of(args: Namespace) -> bytes:
    """The bytes of the request in FILE; if FILE is a log, of the request chosen by ``--turn``.

    Prints on standard error which request was chosen.  Anything else is returned as it is, and the
    library reports what is wrong with it.
    """
    packed = args.file.endswith(_PACKED)
    data = b"" if packed else files.request_of(args)
    if not packed and args.turn is None and _is_request(data):
        return data
    from trimtab.replay import log_files

    if packed and "://" not in args.file:
        files.read(args.file)  # says what is wrong with the path
    logs = log_files.read([args.file]) if packed else log_files.of_bytes(data, _name(args))
    requests = _requests(logs.recordings)
    if requests:
        return _chosen(args, requests)
    if packed or args.file.endswith(_LINES) or args.turn is not None:
        why = f": {logs.problems[0].message}" if logs.problems else ""
        raise ExitWith(
            UNKNOWN_FORMAT,
            f"{_name(args)}: no model call of a session in it{why}; read are {LOGS}; "
            "`trimtab bill` and `trimtab replay` read the same, `trimtab batch` a corpus",
        )
    return data


def is_log(args: Namespace) -> bool:
    """Whether FILE is a log by its name, or a turn of one was asked for."""
    return args.turn is not None or args.file.endswith((*_PACKED, *_LINES))


def _name(args: Namespace) -> str:
    return "standard input" if args.file == "-" else str(args.file)


def _is_request(data: bytes) -> bool:
    """Whether ``data`` is one request; an exported opencode session is not, though it has
    ``messages``."""
    from trimtab.replay.agent_logs import is_opencode

    try:
        tree = parse_bytes(data)
        wire.find(tree)
    except InvalidRequest:
        return False
    return not is_opencode([tree])


def _requests(recordings: list[Recording]) -> list[_Logged]:
    """All requests: those of the main conversations in their order, then those of subagents."""
    requests: list[_Logged] = []
    last = {recording.session or recording.id: recording for recording in recordings}
    for recording in sorted(recordings, key=_is_sidechain):
        requests += [_Logged(recording, turn.sent) for turn in recording.turns]
        if recording in last.values() and recording.views[-1].role != "assistant":
            requests.append(_Logged(recording, len(recording.messages)))  # not answered yet
    return requests


def _is_sidechain(recording: Recording) -> bool:
    return recording.task == "sidechain"


def _chosen(args: Namespace, requests: list[_Logged]) -> bytes:
    main = [request for request in requests if not _is_sidechain(request.recording)] or requests
    number = len(main) - 1 if args.turn is None else args.turn
    if not 0 <= number < len(requests):
        raise ExitWith(
            USAGE, f"--turn {number}: {_name(args)} has the requests 0 to {len(requests) - 1}"
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
    return data


def _missing(recording: Recording) -> str:
    names = [
        name
        for name, value in (("system prompt", recording.system), ("tools", recording.tools))
        if value is None
    ]
    return f", whose {' and '.join(names)} are not in the log" if names and recording.agent else ""
