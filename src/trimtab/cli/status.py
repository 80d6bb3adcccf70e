"""``trimtab status``: one line about a session behind the proxy, for people and agents' hooks.

Reads the JSON that an agent gives its hooks, on standard input or as the last argument.  Asks the
proxy, and prints how full the window is, what was cut, and how to recall it.  It starts fast, since
agents wait for it.  On any error it prints less and exits with 0, so that no agent fails because of
it.
"""

from __future__ import annotations

import argparse
import json
import os
import select
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

PROXY = "TRIMTAB_PROXY"
"""The variable with the proxy's address and token, as ``trimtab run`` sets it for its agent."""
_ADDRESS = "http://127.0.0.1:4141"
NO_PROXY = "trimtab: no proxy of yours is running. What was kept: trimtab status --total"
_SECONDS = 0.5
_MAX_BYTES = 1_000_000
_SHOWN_KINDS = 3
_SESSION_KEYS = ("session_id", "thread-id", "sessionID")


def add(parser: argparse.ArgumentParser) -> None:
    """The options of ``trimtab status``."""
    parser.add_argument(
        "payload", nargs="?", metavar="JSON",
        help="in a hook of an agent: what the agent gives it; default: standard input",
    )  # fmt: skip
    parser.add_argument(
        "--session", metavar="ID", help="this session, or how its id begins; default: the newest"
    )
    parser.add_argument(
        "--proxy", metavar="URL",
        help=f"address of the proxy; default: {PROXY}, which trimtab run sets; else the one of "
        f"yours that was started last and runs, else {_ADDRESS}",
    )  # fmt: skip
    parser.add_argument(
        "--total", action="store_true",
        help="what the cuts of all sessions of your proxy saved",
    )  # fmt: skip
    parser.add_argument(
        "--store", metavar="URL",
        help="what those of this store saved; sqlite:///file.db, redis://…, postgresql://…",
    )  # fmt: skip
    parser.add_argument("--tenant", metavar="NAME", help="of these only those of one tenant")
    parser.add_argument("--json", action="store_true", help="the same as JSON")
    parser.set_defaults(run=run)


def main(argv: Sequence[str]) -> int:
    """Without what the other commands share, which takes longer to load than an agent should wait.

    Help and errors are the same as theirs.
    """
    parser = argparse.ArgumentParser(add_help=False, exit_on_error=False)
    add(parser)
    try:
        args, unknown = parser.parse_known_args(argv)
    except argparse.ArgumentError:
        unknown = [*argv]
    if unknown or args.total or args.store or args.tenant:
        from trimtab.cli import commands

        return commands.main(["status", *argv])
    return run(args)


def run(args: argparse.Namespace) -> int:
    """Print the line in the form that the hook expects and return 0; or print the totals."""
    if args.total or args.store or args.tenant:
        from trimtab.cli import totals

        return totals.run(args)
    with suppress(Exception):
        given = _given(args)
        session = args.session or _first(given, _SESSION_KEYS)
        given_proxy = args.proxy or os.environ.get(PROXY, "")
        status = _first_answer([given_proxy] if given_proxy else _own_proxies(), session)
        sys.stdout.write(_printed(status, given, as_json=args.json))
        sys.stdout.flush()
    return 0


def _given(args: argparse.Namespace) -> dict[str, Any]:
    """The JSON that the agent gives its hook; {} if there is none."""
    text = args.payload
    if text is None and sys.stdin is not None and not sys.stdin.isatty():
        text = _waiting()
    try:
        tree = json.loads(text or "{}")
    except ValueError:
        return {}
    return tree if isinstance(tree, dict) else {}


def _waiting() -> str:
    """The text on standard input; "" if nothing is written there in time."""
    try:
        if not select.select([sys.stdin], [], [], _SECONDS)[0]:
            return ""
    except (OSError, ValueError):  # no descriptor (tests), or Windows, where pipes do not select
        pass
    return sys.stdin.read(_MAX_BYTES)


def _first(given: dict[str, Any], keys: Sequence[str]) -> str:
    return next((str(given[key]) for key in keys if given.get(key)), "")


def _own_proxies() -> list[str]:
    """Where proxies of this user may run, the newest first: the dashboards that were kept, as
    ``trimtab dashboard`` finds them, then the standard address."""
    return [*_kept("dashboards").split(), _ADDRESS]


def _first_answer(proxies: Sequence[str], session: str) -> dict[str, Any] | None:
    """The status of the first proxy that answers; of those that know ``session``, if any does."""
    first: dict[str, Any] | None = None
    for url in proxies:
        status = _asked(*_proxy(url), session)
        if status and (not session or status.get("session") or status.get("candidates")):
            return status
        first = first or status
    return first


def _proxy(url: str) -> tuple[str, str]:
    """(address without a path, token) of a proxy; without a token in the URL, that of its file."""
    scheme, _, rest = url.partition("://")
    host, _, path = rest.partition("/")
    token = path.removeprefix("token/").partition("/")[0] if path.startswith("token/") else ""
    token = token or path.partition("?token=")[2] or os.environ.get("TRIMTAB_PROXY_TOKEN", "")
    return host if scheme == "http" else "", token or _kept("proxy.token")


def _kept(name: str) -> str:
    """The text of a state file of this user; "" if there is none."""
    home = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    with suppress(OSError, ValueError), open(os.path.join(home, "trimtab", name)) as file:
        return file.read().strip()
    return ""


def _asked(host: str, token: str, session: str) -> dict[str, Any] | None:
    """The proxy's status of a session ("": its newest); None if the proxy can't be reached."""
    name, _, port = host.rpartition(":")
    query = "".join(char if char.isalnum() or char in "-_." else "" for char in session)[:200]
    request = (
        f"GET /_trimtab/status?session={query} HTTP/1.1\r\nhost: {host}\r\n"
        f"x-trimtab-token: {token}\r\nconnection: close\r\n\r\n"
    )
    try:
        with socket.create_connection((name.strip("[]"), int(port)), _SECONDS) as connection:
            connection.sendall(request.encode("latin-1"))
            data = b""
            while len(data) < _MAX_BYTES and (part := connection.recv(65_536)):
                data += part
        head, _, body = data.partition(b"\r\n\r\n")
        answer = json.loads(body) if b" 200 " in head.partition(b"\r\n")[0] else None
    except (OSError, ValueError):
        return None
    return answer if isinstance(answer, dict) else None


def _printed(status: dict[str, Any] | None, given: dict[str, Any], *, as_json: bool) -> str:
    if as_json:
        return f"{json.dumps(status)}\n"
    event = given.get("hook_event_name")
    text = line(status)
    if event is None:  # a status line, a notification, a person
        return f"{text}\n"
    if not status or not status.get("window"):
        return ""
    if (
        event == "PreCompact" and "turn_id" not in given
    ):  # Claude Code: instructions for the summary
        return f"{kept(status)}\n" if status.get("handles") else ""
    return f"{json.dumps({'systemMessage': text})}\n"


def line(status: dict[str, Any] | None) -> str:
    """``trimtab 41% of 196k · 48k cut (result ×12, fold ×2) · trimtab recall rn5ee4xezey``."""
    if not status:
        return NO_PROXY
    if names := status.get("candidates"):
        return f"trimtab: several sessions begin so: {', '.join(names)}"
    if not status.get("session"):
        return "trimtab: no request yet"
    sent, window, cut = status["sent"], status["window"], status["arrived"] - status["sent"]
    parts = [f"trimtab {sent / window:.0%} of {_short(window)}" if window
             else f"trimtab {_short(sent)} tokens"]  # fmt: skip
    if cut > 0:
        kinds = sorted(status["edits"].items(), key=lambda item: -item[1])[:_SHOWN_KINDS]
        about = ", ".join(f"{kind} ×{count}" for kind, count in kinds)
        parts.append(f"{_short(cut)} cut ({about})" if about else f"{_short(cut)} cut")
    if status.get("outcome"):
        parts.append(status["outcome"].removesuffix("."))
    if cut > 0 and status.get("handles"):
        parts.append("recall tool" if status.get("recall")
                     else f"trimtab recall {status['handles'][0]}")  # fmt: skip
    return " · ".join(parts)


def kept(status: dict[str, Any]) -> str:
    """Instructions for a summary to keep handles, so that originals can still be recalled."""
    handles = ", ".join(status["handles"])
    how = "the tool recall" if status.get("recall") else "the command trimtab recall HANDLE"
    return (
        "Parts of this conversation were replaced by trimtab's markers. In the summary keep the "
        f"handles of those that may be needed again, word for word ({handles}): {how} gives the "
        "originals."
    )


def _short(number: int) -> str:
    """``48_213`` → ``48k``."""
    if number >= 1_000_000:
        return f"{number / 1_000_000:.1f}m"
    return f"{number / 1000:.0f}k" if number >= 10_000 else f"{number:,}"
