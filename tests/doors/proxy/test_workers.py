"""``trimtab proxy --workers N``: one port, one token, one store; a worker that dies comes back."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import types
from pathlib import Path

import pytest
from long_requests import JSON, long_session
from proxies import ask

from trimtab.errors import InvalidSetting
from trimtab.proxy import ProxySettings, workers
from trimtab.proxy.server import run_in_loop
from trimtab_lab.testing import StrictProvider

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="workers are forked")


def two_of(process, before):
    """The ids of its two workers, once they are others than before."""
    for _ in range(400):
        now = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        if len(now) == 2 and now != before:
            return now
        time.sleep(0.05)
    raise AssertionError(f"workers {now}, before {before}")


def counted(url, token):
    """Requests that were answered, and those in progress, by the metrics."""
    text = ask(url, "GET", "/metrics", headers={"x-trimtab-token": token})[2].decode()
    rows = re.findall(r"^trimtab_(requests_total|in_flight)\S* (\S+)$", text, re.MULTILINE)
    return {name: sum(float(number) for other, number in rows if other == name) for name, _ in rows}


SETTLED = {"requests_total": 7.0, "in_flight": 0.0}


def within(seconds, holds):
    """Wait until it holds; an assertion where it does not."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_workers_share_port_token_and_store_and_one_that_dies_comes_back(tmp_path):
    env = {**os.environ, "HOME": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    env.pop("XDG_STATE_HOME", None)
    with StrictProvider() as provider:
        words = ("--listen", "127.0.0.1:0", "--workers", "2", "--upstream", provider.url,
                 "--window", "40k")  # fmt: skip
        process = subprocess.Popen(
            [sys.executable, "-m", "trimtab", "proxy", *words], env=env, cwd=tmp_path,
            stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        try:
            line = process.stderr.readline()
            url, token = re.search(r"on (\S+), 2 workers, .*token=(\S+)", line).groups()
            threading.Thread(target=process.stderr.read, daemon=True).start()
            first = two_of(process, ())
            for _ in range(6):  # whichever serves it: the same edits
                body = long_session(30, most=500)
                assert ask(url, "POST", "/v1/messages", body, JSON)[0] == 200
            assert len({json.dumps(one.body) for one in provider.requests}) == 1
            for _ in range(6):
                head = {"x-trimtab-token": token}
                assert ask(url, "GET", "/_trimtab/", headers=head)[0] == 200
            os.kill(int(first[1]), signal.SIGSTOP)  # so that the other has half of a request
            with socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2]))) as half:
                half.sendall(
                    b"POST /v1/messages HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 9\r\n\r\n"
                )
                while not counted(url, token)["in_flight"]:
                    time.sleep(0.01)
                os.kill(int(first[0]), signal.SIGKILL)
            os.kill(int(first[1]), signal.SIGCONT)
            now = two_of(process, first)
            assert first[1] in now
            assert ask(url, "POST", "/v1/messages", long_session(31, most=500), JSON)[0] == 200
            # A client may have its whole answer before the worker has counted it: wait for that,
            # or a worker stopped in between keeps it to itself.
            within(20, lambda: counted(url, token) == SETTLED)
            for waits in map(int, now):  # the other answers: for all, with the one that was killed
                os.kill(waits, signal.SIGSTOP)
                assert counted(url, token) == SETTLED
                os.kill(waits, signal.SIGCONT)
            process.send_signal(signal.SIGTERM)
            assert process.wait(20) == 0
        finally:
            process.kill()


def test_workers_end_when_their_parent_is_killed(tmp_path):
    """They would keep the port, and no other proxy could be started on it."""
    env = {**os.environ, "HOME": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    env.pop("XDG_STATE_HOME", None)
    words = ("--listen", "127.0.0.1:0", "--workers", "2", "--upstream", "http://127.0.0.1:1")
    process = subprocess.Popen(
        [sys.executable, "-m", "trimtab", "proxy", *words], env=env, cwd=tmp_path,
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    workers = []
    try:
        process.stderr.readline()
        workers = two_of(process, ())
        process.kill()
        process.wait(20)
        within(20, lambda: not any(runs(worker) for worker in workers))
    finally:
        process.kill()
        for worker in filter(runs, workers):
            os.kill(int(worker), signal.SIGKILL)


def runs(worker):
    """Whether a process is there and no zombie."""
    try:
        return Path(f"/proc/{worker}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_store_of_one_process_is_none_for_several():
    with pytest.raises(InvalidSetting, match="through a store"):
        workers.check(ProxySettings(store="memory:", workers=2))
    workers.check(ProxySettings(store="sqlite:///x.db", workers=2))


@pytest.mark.parametrize("at_once", [False, True])
def test_workers_that_cannot_begin_are_not_started_for_ever(at_once, monkeypatch):
    if at_once:  # all have ended before the first of them is looked at
        monkeypatch.setattr(workers, "wait", lambda ends: time.sleep(0.5))

    def work() -> None:
        raise InvalidSetting("no")

    assert workers.serve(work, 2) == 1


def test_uvloop_is_used_where_it_is_installed(monkeypatch):
    import asyncio

    made = []
    fake = types.ModuleType("uvloop")
    fake.new_event_loop = lambda: made.append(1) or asyncio.new_event_loop()
    monkeypatch.setitem(sys.modules, "uvloop", fake)
    run_in_loop(asyncio.sleep(0))
    assert made == [1]
    monkeypatch.setitem(sys.modules, "uvloop", None)
    run_in_loop(asyncio.sleep(0))
    assert made == [1]
