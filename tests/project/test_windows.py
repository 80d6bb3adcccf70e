"""Windows, as far as it can be asked elsewhere: names that are missing there, paths, file modes.

docs/why/limits.md lists what only a machine with Windows can show.
"""

from __future__ import annotations

import ast
import signal
import socket
from collections.abc import Iterator
from pathlib import Path, PureWindowsPath

import pytest

import trimtab
from trimtab.proxy import server
from trimtab.proxy.app import Proxy
from trimtab.proxy.config.settings import Address, ProxySettings
from trimtab.stores import open_store, sqlite
from trimtab_lab.batch import files

SRC = Path(trimtab.__file__).parent
MISSING_MODULES = {"fcntl", "grp", "pty", "pwd", "resource", "termios", "tty"}
MISSING_NAMES = {
    "signal": {"SIGHUP", "SIGKILL", "SIGUSR1", "SIGUSR2", "SIGCHLD", "SIGPIPE", "SIGALRM", "alarm"},
    "os": {
        "fork", "getuid", "geteuid", "getgid", "chown", "killpg", "getpgid", "setsid", "sysconf",
        "O_NOFOLLOW", "O_DIRECTORY", "O_CLOEXEC", "sched_getaffinity", "fchmod", "getloadavg",
    },
    "socket": {"AF_UNIX", "SO_REUSEPORT"},
}  # fmt: skip


def used(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """(line, name) of what Python lacks on Windows, outside of any ``try`` and ``with``."""
    guarded = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.Try | ast.With)
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) in guarded:
            continue
        if isinstance(node, ast.Import):
            yield from ((node.lineno, a.name) for a in node.names if a.name in MISSING_MODULES)
        elif (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.attr in MISSING_NAMES.get(node.value.id, ())
        ):
            yield node.lineno, f"{node.value.id}.{node.attr}"


def test_what_windows_lacks_is_used_only_where_its_absence_is_caught() -> None:
    found = [
        f"{file.relative_to(SRC)}:{line}: {name}"
        for file in sorted(SRC.rglob("*.py"))
        for line, name in used(ast.parse(file.read_text(encoding="utf-8")))
    ]
    assert found == []


def test_the_proxy_starts_where_no_signal_asks_to_read_the_settings_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(signal, "SIGHUP")
    settings = ProxySettings(listen=Address(port=0))
    with server.Server(Proxy(settings), reread=lambda: settings) as running:
        socket.create_connection(("127.0.0.1", running.port), 5).close()


def test_nobody_else_can_listen_on_the_proxys_port_on_windows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[int] = []
    monkeypatch.setattr(server, "WINDOWS", True)
    monkeypatch.setattr(server.socket, "SO_EXCLUSIVEADDRUSE", -5, raising=False)
    monkeypatch.setattr(
        server.socket.socket, "setsockopt", lambda self, level, name, value: asked.append(name)
    )
    server.listening_socket(ProxySettings(listen=Address(port=0))).close()
    assert asked == [-5]


def test_a_file_of_a_store_is_not_said_to_be_open_to_others_where_modes_mean_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(f"sqlite:///{tmp_path}/kept.db")
    store.facts("tenant", "")
    (tmp_path / "kept.db").chmod(0o666)
    assert "chmod 600" in str(store.faults())
    monkeypatch.setattr(sqlite, "MODES", False)
    assert list(store.faults()) == []


def test_the_users_own_settings_are_found_below_the_profile(tmp_path: Path) -> None:
    own = tmp_path / ".config" / "trimtab" / "trimtab.toml"
    own.parent.mkdir(parents=True)
    own.write_text('window = "60k"\n', encoding="utf-8")
    folder = tmp_path / "project"
    folder.mkdir()
    found = trimtab.load_settings(folder, env={"USERPROFILE": str(tmp_path)})
    assert found.window == 60_000


@pytest.mark.parametrize("path", ["C:/Users/me/agent.db", r"C:\Users\me\agent.db"])
def test_a_store_can_lie_on_a_drive(path: str, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert PureWindowsPath(path).is_absolute()
    assert str(open_store(f"sqlite:///{path}").path).endswith(path)


def test_a_batch_names_its_records_with_slashes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files.os, "sep", "\\")
    assert files.relative(r"C:\logs\a\b.jsonl", r"C:\logs") == "a/b.jsonl"
    assert files.relative(r"C:\logs\b.jsonl", r"C:\logs\b.jsonl") == "b.jsonl"
