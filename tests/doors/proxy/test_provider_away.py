"""A provider that cannot be reached for a while: clients get what they would without us."""

from __future__ import annotations

import json
import socket
import threading
import time

import pytest
from proxies import ask, proxied
from raw_provider import SAID, Talk

from trimtab.proxy import ProxySettings
from trimtab.proxy.agents import AGENTS, Setup
from trimtab.proxy.agents.launch import _private

JSON = {"content-type": "application/json"}
PATH = "/v1/chat/completions"
CHAT = json.dumps({"model": "gpt-5.1", "messages": [{"role": "user", "content": "Hi."}]})


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def answers_later(seconds: float, port: int) -> list[bytes]:
    """A provider that begins to listen after a while; the bodies that it was sent."""
    seen = list[bytes]()

    def listen() -> None:
        time.sleep(seconds)
        with socket.create_server(("127.0.0.1", port)) as listening:
            connection, _ = listening.accept()
            with connection:
                talk = Talk(connection)
                request = talk.request()
                assert request
                seen.append(request.body)
                head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: "
                talk.say(f"{head}{len(SAID)}\r\n\r\n".encode() + SAID)

    threading.Thread(target=listen, daemon=True).start()
    return seen


def test_who_waits_for_the_network_gets_the_answer_once_the_provider_is_back():
    port = free_port()
    seen = answers_later(0.6, port)
    with proxied(f"http://127.0.0.1:{port}", reconnect_seconds=20.0) as server:
        status, _, said = ask(server.url, "POST", PATH, CHAT, JSON)
    assert (status, said) == (200, SAID)
    assert seen == [CHAT.encode()]


def test_who_does_not_gets_a_502_at_once_which_sdks_try_again():
    with proxied(f"http://127.0.0.1:{free_port()}") as server:
        began = time.monotonic()
        status, _, said = ask(server.url, "POST", PATH, CHAT, JSON)
    assert status == 502
    assert b"Connection refused" in said
    assert time.monotonic() - began < 5


def test_the_wait_ends_and_the_error_names_the_cause():
    with proxied(f"http://127.0.0.1:{free_port()}", reconnect_seconds=0.4) as server:
        began = time.monotonic()
        status, _, said = ask(server.url, "POST", PATH, CHAT, JSON)
    assert time.monotonic() - began > 0.3
    assert (status, b"Connection refused" in said) == (502, True)


def test_what_asks_for_no_answer_of_a_model_does_not_wait():
    with proxied(f"http://127.0.0.1:{free_port()}", reconnect_seconds=20.0) as server:
        began = time.monotonic()
        assert ask(server.url, "GET", "/v1/models")[0] == 502
    assert time.monotonic() - began < 10


def test_a_client_that_hangs_up_ends_the_wait():
    with proxied(f"http://127.0.0.1:{free_port()}", reconnect_seconds=60.0) as server:
        with pytest.raises(OSError, match="timed out"):
            _asked_for(0.5, server.port)
        for _ in range(300):
            if not server.proxy.addons.metrics.in_flight:
                break
            time.sleep(0.01)
        assert not server.proxy.addons.metrics.in_flight


def _asked_for(seconds: float, port: int) -> None:
    head = f"POST {PATH} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: {len(CHAT)}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", port), timeout=seconds) as client:
        client.sendall(head.encode() + CHAT.encode())
        client.recv(100)


@pytest.mark.parametrize(("name", "seconds"), [("codex", 600.0), ("claude", 0.0)])
def test_run_waits_for_an_agent_that_waits_for_the_network_by_itself(name, seconds):
    agent = AGENTS[name]
    setup = Setup()
    setup.send("openai", "http://127.0.0.1:9")
    assert _private(ProxySettings(), agent, setup).reconnect_seconds == seconds
    chosen = ProxySettings(reconnect_seconds=5.0)
    assert _private(chosen, agent, setup).reconnect_seconds == 5.0
