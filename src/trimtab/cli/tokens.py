"""Access tokens of servers on this machine, in files that only their user can read."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


def folder() -> Path:
    """The folder of the user's state files."""
    home = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(home) / "trimtab"


def keep(name: str, token: str) -> Path | None:
    """Write a server's token to ``NAME.token`` (mode 0600); None if it can't be written."""
    path = folder() / f"{name}.token"
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with suppress(FileNotFoundError):  # a new one: nobody has it open, its mode is ours
            path.unlink()
        with os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as file:
            file.write(token + "\n")
    except OSError:
        return None
    return path
