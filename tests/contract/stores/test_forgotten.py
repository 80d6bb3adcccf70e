"""One conversation is deleted: nothing of it is left in the store, and all of the others is.

Judged by what the file or server holds (``stored_values``), not by what our code finds.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import store_urls
from stored_values import everything

import trimtab
from trimtab import stores
from trimtab.cli import main
from trimtab.rounds import ExchangeMemory, exchanges_of
from trimtab.rounds.hidden_exchanges import HiddenExchange
from trimtab.stores.base import RESPONSES
from trimtab.stores.tenant import stored_under

KINDS = (*store_urls.NEAR, *store_urls.FAR)


@pytest.fixture(params=KINDS)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    with store_urls.store_url(request.param, tmp_path) as found:
        yield found


def talk(word: str, first: str = "Read the files.") -> dict[str, Any]:
    """A conversation too long for its window, with ``word`` in each result."""
    messages: list[Any] = [{"role": "user", "content": first}]
    for step in range(12):
        call = {"type": "tool_use", "id": f"toolu_{step}", "name": "read", "input": {"n": step}}
        lines = "\n".join(f"{word}-{step}-{n}: {n * 7919}" for n in range(60))
        result = {"type": "tool_result", "tool_use_id": f"toolu_{step}", "content": lines}
        messages += [
            {"role": "assistant", "content": [call]},
            {"role": "user", "content": [result]},
        ]
    return {"model": "claude-sonnet-4-5", "max_tokens": 500, "messages": messages}


def kept(url: str, tenant: str, word: str, first: str = "Read the files.") -> tuple[str, list[str]]:
    """(id, handles) of a conversation with originals, journal, pin, hidden exchanges."""
    session = trimtab.Session(store=url, tenant=tenant, window=3_000, recall=True)
    done = session.fit(talk(word, first))
    session.pin(text=f"{word}-3-3")
    handles = [edit.handle for edit in done.report.edits]
    store = exchanges_of(session)
    assert store is not None
    hidden = ExchangeMemory().of("up", tenant)
    real = [{"role": "assistant", "content": f"{word} was looked up"}]
    hidden.put(done.conversation, "turn", HiddenExchange(real, []), store)
    hidden.follow(done.conversation, f"resp_{word}", "resp_2", [f"{word} was read"], store)
    session.close()
    return done.conversation, handles


def test_nothing_of_a_conversation_is_left_and_all_of_the_others_is(url: str) -> None:
    id, handles = kept(url, "mine", "quokka")
    same, _ = kept(url, "theirs", "wombat")
    other, _ = kept(url, "mine", "numbat", "Read others.")
    assert id == same != other, "two tenants began with the same words"
    before = everything(url)
    counts = {word: before.count(word.encode()) for word in ("quokka", "wombat", "numbat")}
    assert min(counts.values()) > 100
    store = stores.open_store(url)
    of = partial(stores.open, store)
    done = stores.purge(store, of, now=time.time(), conversations=stored_under("mine", id, []))
    assert (done.conversations, done.originals) == (1, len(set(handles)))
    store.close()
    after = everything(url)
    assert b"quokka" not in after.replace(b"resp_quokka", b""), "but the id of a response"
    for word in ("wombat", "numbat"):
        assert after.count(word.encode()) == counts[word]
    session = trimtab.Session(store=url, tenant="theirs", window=3_000, recall=True)
    again = session.fit(talk("wombat"))
    old = [edit.handle for edit in again.report.edits if not edit.new]
    assert old
    assert "wombat-" in session.recall(old[0])
    mine = trimtab.Session(store=url, tenant="mine")
    with pytest.raises(trimtab.UnknownHandle, match="purged"):
        mine.recall(handles[0])
    mine.close()
    session.close()


def test_a_response_that_was_deleted_is_followed_no_more(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'store.db'}"
    id, _ = kept(url, "mine", "quokka")
    store = stores.open_store(url)
    of = partial(stores.open, store)
    stores.purge(store, of, now=time.time(), conversations=stored_under("mine", id, []))
    assert of("mine").facts(f"hidden/{RESPONSES}/") == {f"hidden/{RESPONSES}/resp_quokka": None}
    session = trimtab.Session(store=url, tenant="mine", window=3_000)
    body = {"model": "gpt-5.5", "input": [], "previous_response_id": "resp_quokka"}
    hidden = ExchangeMemory().of("up", "mine")
    assert hidden.followed(body, exchanges_of(session)) is body
    session.close()


def test_the_command_asks_whose_it_is_where_two_tenants_have_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = f"sqlite:///{tmp_path / 'store.db'}"
    id, _ = kept(url, "mine", "quokka")
    kept(url, "theirs", "wombat")
    assert main(["purge", id[:6], "--store", url]) == 2
    assert "2 tenants have" in capsys.readouterr().err
    assert main(["purge", id[:6], "--store", url, "--tenant", "mine"]) == 0
    assert capsys.readouterr().out.startswith("1 conversation with ")
    left = everything(url)
    assert b"quokka-" not in left
    assert b"wombat-" in left
    assert main(["purge", id[:6], "--store", url, "--tenant", "mine"]) == 7
    assert main(["doctor", "--store", url]) == 0


def test_journals_of_images_go_too(tmp_path: Path) -> None:
    from drawn_images import album, part, picture

    url = f"sqlite:///{tmp_path / 'store.db'}"
    session = trimtab.Session(store=url, window=100_000, settings=trimtab.Settings(image_pixels=99))
    done = session.fit(album("anthropic", part("anthropic", picture(640, 400))))
    session.close()
    sent = done.request["messages"][0]["content"][0]["source"]["data"]
    assert sent.encode() in everything(url)
    assert main(["purge", done.conversation[:8], "--store", url]) == 0
    assert sent.encode() not in everything(url)
    assert json.dumps(sent[:60]).strip('"').encode() not in everything(url)
