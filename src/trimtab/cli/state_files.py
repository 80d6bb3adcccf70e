"""Tokens and addresses of servers on this machine, in files that only their user can read."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

_ADDRESSES = 8


def folder() -> Path:
    """The folder of the user's state files."""
    home = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(home) / "trimtab"


def keep_token(server: str, token: str) -> Path | None:
    """Write a server's token to ``SERVER.token``; None if it can't be written."""
    return _keep(f"{server}.token", token)


def keep_dashboard(address: str) -> None:
    """Remember the address of a dashboard, with its token, before those of other proxies."""
    others = [one for one in dashboards() if one != address]
    _keep("dashboards", "\n".join([address, *others[: _ADDRESSES - 1]]))


def dashboards() -> list[str]:
    """The addresses of the proxies that were started last, the newest first; they may have
    ended."""
    with suppress(OSError, UnicodeDecodeError):
        return (folder() / "dashboards").read_text(encoding="utf-8").split()
    return []


def _keep(name: str, text: str) -> Path | None:
    """Write a file with mode 0600; None if it can't be written."""
    path = folder() / name
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with suppress(FileNotFoundError):  # a new one: nobody has it open, its mode is ours
            path.unlink()
        with os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as file:
            file.write(text + "\n")
    except OSError:
        return None
    return path
