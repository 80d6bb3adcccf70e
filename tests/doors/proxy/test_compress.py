"""What a gateway's call of ``/v1/compress`` gets: the same rows, results shortened in their place.

Knows what the gateway hands over and takes back; nothing of how it is done.
"""

from __future__ import annotations

import json
import logging

import pytest
from gateway_client import Gateway
from proxies import ask, proxied

import trimtab
from trimtab.journal.hashes import handle_at, hash_of

NOWHERE = "http://127.0.0.1:1"
"""No upstream answers there."""
FIT = trimtab.Settings(window=24_000)


def result(number: int) -> str:
    return "\n".join(f"src/m{number}.py:{n}: token {n * 7919 + number} alpha" for n in range(60))


def loop(steps: int, *, more_users: int = 0) -> list:
    """A chat of so many calls and results; a further user message before each of the newest."""
    messages = [{"role": "system", "content": "You are an agent."},
                {"role": "user", "content": "What do the files say?"}]  # fmt: skip
    for n in range(steps):
        function = {"name": "read", "arguments": f'{{"path": "src/m{n}.py"}}'}
        call = {"id": f"call_{n}", "type": "function", "function": function}
        messages += [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"call_{n}", "content": result(n)},
        ]
        if n >= steps - more_users:
            messages.append({"role": "user", "content": f"And file {n}?"})
    return messages


@pytest.fixture
def server():
    with proxied(NOWHERE, fit=FIT) as server:
        yield server


def test_few_rows_come_back_as_they_were(server):
    gateway, messages = Gateway(server.url), loop(4)
    assert gateway.shortened(messages) == messages
    assert gateway.answer["tokens_before"] == gateway.answer["tokens_after"]
    assert gateway.answer["ccr_hashes"] == []


def test_old_results_are_shortened_and_the_newest_and_the_users_words_stay(server):
    gateway, messages = Gateway(server.url), loop(30, more_users=2)
    sent = gateway.shortened(messages)
    shorter = [at for at, row in enumerate(sent) if row != messages[at]]
    assert shorter
    assert all(messages[at]["role"] == "tool" for at in shorter)
    assert max(shorter) < len(messages) - 8
    assert all({**sent[at], "content": ""} == {**messages[at], "content": ""} for at in shorter)
    answer = gateway.answer
    assert answer["tokens_after"] < 0.7 * answer["tokens_before"]
    ratio = answer["tokens_after"] / answer["tokens_before"]
    assert answer["compression_ratio"] == pytest.approx(ratio)


def test_each_hash_is_in_its_row_and_gives_the_exact_original(server):
    gateway, messages = Gateway(server.url), loop(30)
    sent = gateway.shortened(messages)
    hashes = gateway.answer["ccr_hashes"]
    rows = {row["content"]: at for at, row in enumerate(sent) if row["role"] == "tool"}
    for hash in hashes:
        (at,) = [at for text, at in rows.items() if f'hash="{hash}"' in text]
        assert gateway.original(hash) == messages[at]["content"]
        assert "recall(" not in sent[at]["content"]


def test_a_query_gives_the_lines_that_match(server):
    gateway = Gateway(server.url)
    gateway.shortened(loop(30))
    hash = gateway.answer["ccr_hashes"][0]
    found = gateway.original(hash, "m0.py:17:")
    assert "src/m0.py:17: token" in found
    assert len(found) < 200


def test_a_growing_session_sends_the_same_rows_until_the_next_cut(server):
    gateway, before, breaks = Gateway(server.url), [], 0
    for steps in range(1, 70):
        sent = gateway.shortened(loop(steps))
        breaks += sent[: len(before)] != before
        before = sent
    assert 2 <= breaks <= 12
    assert gateway.answer["tokens_before"] > 2 * gateway.answer["tokens_after"]


def test_a_session_goes_on_when_its_first_prompt_is_handed_over_at_last(server):
    gateway = Gateway(server.url)
    before = gateway.shortened(loop(30))
    after = gateway.shortened(loop(30, more_users=1))
    assert after[: len(before)] == before


def test_a_restarted_proxy_shortens_the_same_rows_in_the_same_way(tmp_path):
    store = f"sqlite:///{tmp_path}/s.db"
    sent = []
    for _ in range(2):
        with proxied(NOWHERE, fit=FIT, store=store) as server:
            sent.append(Gateway(server.url).shortened(loop(30)))
    assert sent[0] == sent[1]
    with proxied(NOWHERE, fit=FIT, store=store) as server:
        gateway = Gateway(server.url)
        gateway.shortened(loop(30))
        assert gateway.original(gateway.answer["ccr_hashes"][0]) == result(0)


def test_the_command_line_recalls_what_a_gateway_cut_also_by_its_hash(tmp_path, capsys):
    from trimtab.cli import main

    store = f"sqlite:///{tmp_path}/s.db"
    with proxied(NOWHERE, fit=FIT, store=store) as server:
        gateway = Gateway(server.url)
        gateway.shortened(loop(30))
        server.stop()
    hash = gateway.answer["ccr_hashes"][0]
    for name in (hash, handle_at(hash)):
        assert main(["recall", name, "--store", store]) == 0
        assert capsys.readouterr().out == result(0)


def test_sessions_of_two_names_have_separate_cuts(server):
    one = Gateway(server.url, **{"x-headroom-affinity": "s1"})
    two = Gateway(server.url, **{"x-headroom-affinity": "s2"})
    one.shortened(loop(30))
    two.shortened(loop(30))
    assert not set(one.answer["ccr_hashes"]) & set(two.answer["ccr_hashes"])


def test_a_tenant_cannot_reach_what_another_tenant_sent():
    with proxied(NOWHERE, fit=FIT, tenants="key") as server:
        mine = Gateway(server.url, Authorization="Bearer a")
        yours = Gateway(server.url, Authorization="Bearer b")
        mine.shortened(loop(30))
        hash = mine.answer["ccr_hashes"][0]
        yours.shortened(loop(30))
        assert hash not in yours.answer["ccr_hashes"]
        assert yours.original(hash) == 404
        assert mine.original(hash) == result(0)
        status, _, data = Gateway(server.url).call("POST", "/v1/compress", {"messages": []})
        assert status == 401
        assert b"send as Authorization" in data


def test_the_proxys_token_is_asked_for_and_may_come_as_the_gateways_key():
    with proxied(NOWHERE, fit=FIT, require_token=True, token="secret-of-proxy") as server:
        rows = {"messages": loop(2)[3:4], "model": "gpt-5.1"}
        assert Gateway(server.url).call("POST", "/v1/compress", rows)[0] == 401
        for gateway in (
            Gateway(server.url, Authorization="Bearer secret-of-proxy"),
            Gateway(f"{server.url}/token/secret-of-proxy"),
        ):
            assert gateway.call("POST", "/v1/compress", rows)[0] == 200


@pytest.mark.parametrize("body", [
    b"", b"[]", b'{"messages": 5}', b'{"messages": ["a"]}', b"{", b"\xff\xfe",
    b'{"messages": null}',
])  # fmt: skip
def test_what_is_no_list_of_rows_is_declined(server, body):
    status, _, data = ask(server.url, "POST", "/v1/compress", body)
    assert status == 400
    assert json.loads(data)["error"]["message"]


@pytest.mark.parametrize("row", [
    {"role": "tool", "content": None}, {"role": "tool", "content": []}, {"role": 5}, {},
    {"role": "tool", "tool_call_id": 7, "content": [{"type": "text", "text": "a"}]},
    {"role": "tool", "tool_call_id": "a", "content": [5, None, {"type": "image_url"}]},
    {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]},
    {"role": "function", "name": "f", "content": "a"},
    {"role": "tool", "tool_call_id": "call_0", "content": "twice"},
    {"role": "assistant", "tool_calls": [5, {"id": 1, "function": {"name": 2}}]},
])  # fmt: skip
def test_an_odd_row_comes_back_as_it_was(server, row):
    gateway = Gateway(server.url)
    rows = [one for one in loop(30) if one["role"] == "tool"]
    status, _, data = gateway.call("POST", "/v1/compress", {"messages": [*rows, row, *rows[:2]],
                                                            "model": "gpt-5.1"})  # fmt: skip
    assert status == 200
    assert json.loads(data)["messages"][30] == row
    assert json.loads(data)["ccr_hashes"]


def test_a_chat_handed_over_whole_keeps_its_other_rows(server):
    gateway, messages = Gateway(server.url), loop(30, more_users=2)
    back = gateway.compressed(messages)
    assert [row for row in back if row["role"] != "tool"] == [
        row for row in messages if row["role"] != "tool"
    ]
    assert gateway.answer["ccr_hashes"]


def test_a_model_without_a_known_window_is_an_error_that_says_what_to_set():
    with proxied(NOWHERE) as server:
        status, _, data = Gateway(server.url, "house-model").call(
            "POST", "/v1/compress", {"messages": loop(2)[3:4], "model": "house-model"}
        )
    assert status == 400
    assert b"window" in data


def test_too_long_a_body_is_declined():
    with proxied(NOWHERE, fit=FIT, max_bytes=10_000) as server:
        rows = {"messages": loop(30), "model": "gpt-5.1"}
        assert Gateway(server.url).call("POST", "/v1/compress", rows)[0] == 413


@pytest.mark.parametrize("hash", ["", "zz", "0" * 13, "f" * 13, "../x", "0" * 24])
def test_an_unknown_hash_is_not_found(server, hash):
    assert Gateway(server.url).original(hash) == 404


def test_no_text_is_logged(server, caplog):
    with caplog.at_level(logging.DEBUG, "trimtab"):
        Gateway(server.url, Authorization="Bearer key-of-mine").shortened(loop(30))
    lines = "\n".join(f"{one.getMessage()} {one.__dict__.get('facts')}" for one in caplog.records)
    assert "gateway compress" in lines
    assert "token 7919" not in lines
    assert "key-of-mine" not in lines


def test_a_hash_tells_its_handle():
    for handle in ("raaaaaaaaaa", "r7777777777", "rbcdefghij2"):
        assert handle_at(hash_of(handle)) == handle
    assert hash_of("p12345") == handle_at("8" * 13) == ""
