"""Which requests the proxy makes to fit on the spot: those that only go on, with room to spare."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest

from trimtab.proxy import ProxySettings, Upstream
from trimtab.proxy.plan import INLINE_BYTES
from trimtab.proxy.tenants import Tenants
from trimtab.session import Session

FORMAT = "openai-chat"
HERE = Upstream("u", "http://127.0.0.1:1")


def turns(count: int, size: int = 3_000) -> list[Any]:
    found: list[Any] = [{"role": "user", "content": "What is in these files?"}]
    for n in range(count):
        call = {"id": f"c{n}", "type": "function", "function": {"name": "read", "arguments": "{}"}}
        found.append({"role": "assistant", "content": None, "tool_calls": [call]})
        text = "".join(f"line {i} of file {n}\n" for i in range(size // 18))
        found.append({"role": "tool", "tool_call_id": f"c{n}", "content": text})
    return found


def body(messages: list[Any]) -> bytes:
    return json.dumps({"model": "gpt-5.1", "messages": messages}).encode()


def begun(window: int, messages: list[Any], **fit: Any) -> tuple[Tenants, Session]:
    """Tenants that have seen a conversation so far."""
    given = {"window": window, **fit}
    tenants = Tenants(ProxySettings(upstreams=(HERE,), store="memory:", fit=given))
    session = tenants.served(HERE, "t").session
    assert tenants.quick(session, "t", body(messages), FORMAT) is None, "it was never seen"
    session.fit(tenants.source("t", body(messages)), format=FORMAT)
    return tenants, session


def test_a_request_that_goes_on_with_room_to_spare_is_fitted_on_the_spot() -> None:
    tenants, session = begun(200_000, turns(20))
    longer = body(turns(21))
    source = tenants.quick(session, "t", longer, FORMAT)
    assert source is not None
    assert session.fit(source, format=FORMAT).request is longer


@pytest.mark.parametrize("standing", [20, 40], ids=["nothing cut", "edits stand"])
def test_one_that_may_need_a_decision_is_not(standing: int) -> None:
    window = 32_000 if standing == 20 else 12_000
    tenants, session = begun(window, turns(standing))
    assert bool(session.journal["edits"]) is (standing == 40)
    assert tenants.quick(session, "t", body(turns(standing + 6)), FORMAT) is None


@pytest.mark.parametrize("fit", [{"arrival": "large"}, {"calls_left": 3}], ids=str)
def test_one_whose_settings_ask_for_a_decision_at_each_turn_is_not(fit: dict[str, Any]) -> None:
    tenants, session = begun(200_000, turns(20), **fit)
    assert tenants.quick(session, "t", body(turns(21)), FORMAT) is None


def test_one_with_much_that_is_new_is_not() -> None:
    tenants, session = begun(1_000_000, turns(20))
    more = [*turns(20), {"role": "user", "content": "x" * INLINE_BYTES}]
    assert tenants.quick(session, "t", body(more), FORMAT) is None


def test_one_whose_conversation_is_being_fitted_is_not() -> None:
    tenants, session = begun(200_000, turns(20))
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with session._last.lock:
            held.set()
            done.wait(10)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(10)
    assert tenants.quick(session, "t", body(turns(21)), FORMAT) is None
    done.set()
    thread.join()
    assert tenants.quick(session, "t", body(turns(21)), FORMAT) is not None


@pytest.mark.parametrize("odd", [b"null", b"[" * 30_000, b'{"messages": 3}', b"x" * 30_000])
def test_a_body_of_odd_shape_is_not(odd: bytes) -> None:
    tenants, session = begun(200_000, turns(20))
    assert tenants.quick(session, "t", odd, FORMAT) is None
