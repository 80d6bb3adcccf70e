"""Reads the request, and writes files atomically."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from argparse import Namespace
from pathlib import Path

from trimtab.cli.exit_codes import MISSING, UNREADABLE, USAGE, ExitWith, is_json
from trimtab.errors import InvalidRequest
from trimtab.logs.unread import DATABASE, SQLITE


def request_of(args: Namespace) -> bytes:
    """The bytes of ``args.file`` (``-``: standard input), kept in ``args.data`` for errors."""
    args.data = data = _stdin() if args.file == "-" else read(args.file)
    name = "standard input" if args.file == "-" else args.file
    if not data.strip():
        raise ExitWith(UNREADABLE, f"{name} is empty; give a request as JSON")
    if data.startswith(SQLITE):
        raise ExitWith(UNREADABLE, f"{name} is {DATABASE}")
    if b"\0" in data:  # JSON text never holds a zero byte
        raise ExitWith(UNREADABLE, f"{name} is binary; give a request as JSON in UTF-8")
    return data


def _stdin() -> bytes:
    if sys.stdin is None or sys.stdin.isatty():
        raise ExitWith(USAGE, "name a FILE, or pipe a request into the command")
    return sys.stdin.buffer.read()


def read(name: str) -> bytes:
    """The bytes of a file.  Raises ExitWith, with the reason in one line."""
    try:
        return Path(name).read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        raise ExitWith(MISSING, f"{name}: no such file; check the path") from None
    except IsADirectoryError:
        raise ExitWith(UNREADABLE, f"{name} is a directory; name a file") from None
    except OSError as error:
        raise ExitWith(
            UNREADABLE, f"{name}: {error.strerror or error}; name a file that can be read"
        ) from None


def about(args: Namespace, error: InvalidRequest) -> str:
    """The message of an error in the request, with its file and, if that is a log of sessions, the
    commands that read logs."""
    if getattr(args, "data", None) is None:
        return str(error)
    if args.file == "-":
        return f"standard input: {error}"
    return f"{args.file}: {error}{_as_a_log(args)}"


def _as_a_log(args: Namespace) -> str:
    """How the file is read where it is a log; "" where it looks like none."""
    if args.file.endswith(".jsonl"):
        return "; a session log is read by `trimtab fit`, `check`, `inspect`, `convert` and `bill`"
    first, _, rest = args.data.strip().partition(b"\n")
    if rest and is_json(first) and is_json(rest.partition(b"\n")[0]):
        return "; each line of it is JSON, as in a log: --turn N takes one, or name it *.jsonl"
    return ""


def deliver(name: str | None, request: bytes) -> str:
    """Write a request to a file, or to standard output where no file is named.

    On a terminal it is not written, unless ``name`` is ``-``: nobody reads it there.  Returns a
    line that says so; else "".
    """
    if name is None and sys.stdout.isatty():
        return f"the request ({len(request):,} bytes) is not written: -o FILE, or a pipe"
    write(name or "-", request)
    return ""


def write(name: str, data: bytes, *, private: bool = False) -> None:
    """Write a file (``-``: standard output) atomically: a reader sees the old or the new one.

    ``private`` makes it readable by its owner alone; otherwise an existing file keeps its mode.
    """
    if name == "-":
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return
    target = Path(os.path.realpath(name))
    try:
        if target.exists() and not target.is_file():  # /dev/null, a pipe; a directory raises
            target.write_bytes(data)
        else:
            _replace(target, data, 0o600 if private else _mode(target))
    except FileNotFoundError:
        raise ExitWith(MISSING, f"{name}: no such directory to write to; make it first") from None
    except OSError as error:
        raise ExitWith(
            UNREADABLE, f"{name}: cannot write: {error.strerror or error}; name another file"
        ) from None


def _replace(target: Path, data: bytes, mode: int) -> None:
    number, temporary = tempfile.mkstemp(prefix=".trimtab-", dir=target.parent)
    try:
        with os.fdopen(number, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, mode)
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _mode(target: Path) -> int:
    if target.exists():
        return target.stat().st_mode & 0o777
    mask = os.umask(0)  # the only way to read it
    os.umask(mask)
    return 0o666 & ~mask
