"""Rows A13, B16, B17, B23, B24, C11, E12, E13, E15, X4: what is kept, and how it comes back."""

from __future__ import annotations

import copy
import json
import time
from pathlib import Path
from typing import Any

import pytest
from long_sessions import KEYWORDS, WINDOW, grown, request, step
from settings_words import as_keywords
from shapes import SIX, items_of, session

import trimtab
from trimtab import UnknownHandle, stores
from trimtab.journal import excerpts


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'store.db'}"


def kept(url: str, **keywords: Any) -> trimtab.Session:
    return trimtab.Session(store=url, **as_keywords(**{**KEYWORDS, **keywords}))


def handles(done: trimtab.Fitted) -> list[str]:
    return [edit.handle for edit in done.report.edits if edit.op != "insert"]


# --- A13: the caller's own objects ----------------------------------------------------------------


@pytest.mark.row("A13")
@pytest.mark.parametrize("format", SIX)
def test_the_callers_objects_stay_and_a_request_that_fits_is_sent_as_it_is(
    format: str, url: str
) -> None:
    body = session(format, steps=30, lines=40)
    before, size = copy.deepcopy(body), trimtab.measure(body, counter="o200k").total
    mine = kept(url, window=size // 2, reserve=0, format=format)
    done = mine.fit(body)
    assert done.request != body
    assert body == before
    healthy = copy.deepcopy(body)
    del items_of(healthy)[8:]  # rewound: what is left fits as it came
    healthy = trimtab.repair(healthy, format=format).request
    again = mine.fit(healthy)
    assert again.request is healthy
    assert mine.fit(body).request == done.request, "what would fail again is reduced again"


@pytest.mark.row("A13")
def test_the_original_is_kept_for_a_restore(url: str) -> None:
    body = request(20)
    mine = kept(url)
    done = mine.fit(body)
    for handle in handles(done):
        mine.undo(handle)
    restored = mine.fit(body, window=100_000)
    assert restored.request == body


# --- B16: state survives --------------------------------------------------------------------------


@pytest.mark.row("B16")
def test_a_restart_sends_byte_identical_requests_and_knows_its_numbers(url: str) -> None:
    first = kept(url)
    sent = [first.fit(json.dumps(body)).request for body in grown(18)]
    stats, history = first.stats(), first.history()
    first.close()
    again = kept(url)
    assert again.fit(json.dumps(request(18))).request == sent[-1]
    assert again.history() == history
    assert again.stats()["edits"] == stats["edits"]


@pytest.mark.row("B16")
@pytest.mark.parametrize("damage", ["garbage", "half", "empty"])
def test_a_damaged_file_is_a_warning_and_the_request_goes_on(damage: str, url: str) -> None:
    first = kept(url)
    first.fit(request(20))
    first.close()
    file = Path(url.removeprefix("sqlite:///"))
    for other in file.parent.glob("store.db-*"):
        other.unlink()
    data = file.read_bytes()
    file.write_bytes(
        {"garbage": b"\x00garbage" * 4_000, "half": data[: len(data) // 2], "empty": b""}[damage]
    )
    done = kept(url, recall=True).fit(request(21))
    assert trimtab.check(done.request) == ()
    assert done.report.tokens_after <= WINDOW
    assert (damage == "empty") != any("store" in text for text in done.report.warnings)


@pytest.mark.row("B16")
@pytest.mark.parametrize("name", ["../../etc/passwd", "a\0b", "ü/🚀", "x" * 5_000, "'; DROP --"])
def test_any_text_may_name_a_conversation(name: str, url: str) -> None:
    done = kept(url).fit(request(20), conversation=name)
    rewritten = request(20)
    rewritten["messages"][0]["content"] = "The client's own summary."
    assert set(handles(kept(url).fit(rewritten, conversation=name))) == set(handles(done))


@pytest.mark.row("B16")
def test_a_forked_session_goes_on_with_what_was_decided_before(url: str) -> None:
    done = kept(url).fit(request(20), conversation="one")
    fork = request(20)
    fork["messages"] += step(700)
    sent = kept(url).fit(fork, conversation="two").request
    assert sent["messages"][: len(done.request["messages"])] == done.request["messages"]


# --- B17: savings ---------------------------------------------------------------------------------


@pytest.mark.row("B17")
def test_a_saving_is_counted_once_however_often_and_wherever_it_is_sent(url: str) -> None:
    first = kept(url)
    done = first.fit(request(20))
    first.close()
    saved = sum(edit.tokens_saved for edit in done.report.edits)
    for _ in range(3):
        mine = kept(url)
        mine.fit(request(20))
        mine.close()
    stats = kept(url).stats()
    assert sum(stats["saved"].values()) == saved
    assert set(stats["saved"]) == {edit.kind for edit in done.report.edits}
    assert stats["kept_out"] == 4 * (done.report.tokens_before - done.report.tokens_after)


@pytest.mark.row("B17")
def test_over_many_batches_each_edit_is_counted_in_the_batch_that_made_it(url: str) -> None:
    mine = kept(url, preset="in-place")
    known, batches = set[tuple[str, str, int]](), 0
    for number in range(5, 60):
        edits = mine.fit(request(number)).report.edits
        made = {(edit.handle, edit.kind, edit.tokens_after): edit for edit in edits}
        made = {key: edit for key, edit in made.items() if key not in known}
        known |= made.keys()
        batches += bool(made)
    stats = mine.stats()
    assert stats["batches"] == batches > 2
    assert stats["edits"] == len(known)
    assert sum(stats["saved"].values()) == sum(edit.tokens_saved for edit in edits)


# --- B23: notes within notes ----------------------------------------------------------------------


@pytest.mark.row("B23")
def test_notes_never_outgrow_the_window_and_every_step_comes_back_exactly(url: str) -> None:
    mine, shares = kept(url), list[float]()
    first: dict[str, str] = {}
    for number in range(5, 91):
        done = mine.fit(request(number))
        folded = sum(edit.tokens_after for edit in done.report.edits if edit.op in ("drop", "fold"))
        shares.append(folded / done.report.limits["capacity"])
        for handle in handles(done):
            first.setdefault(handle, mine.recall(handle))
    assert max(shares) < 0.75, "there is room for new steps whatever was folded before"
    assert max(shares[-20:]) <= 1.2 * max(shares[30:50]), "notes of notes do not grow on"
    other = kept(url)
    assert {handle: other.recall(handle) for handle in first} == first
    steps = request(90)["messages"][1:]
    for handle in handles(done):
        whole = json.loads(other.recall(handle))
        at = steps.index(whole[0])
        assert steps[at : at + len(whole)] == whole


@pytest.mark.row("B23")
def test_what_was_decompressed_can_be_compressed_again(url: str) -> None:
    mine = kept(url)
    sent = mine.fit(request(20)).request
    handle = handles(mine.fit(request(20)))[0]
    mine.undo(handle)
    assert mine.fit(request(20), window=100_000).request != sent
    mine.unpin(handle)
    assert mine.fit(request(20)).request == sent


# --- B24: what fills a request --------------------------------------------------------------------


@pytest.mark.row("B24")
@pytest.mark.parametrize("format", SIX)
def test_a_breakdown_adds_up_and_the_rest_is_the_fixed_cost(format: str) -> None:
    body = session(format, steps=10, lines=20)
    measured = trimtab.measure(body, counter="o200k", format=format)
    assert {row.role for row in measured.rows} >= {"user", "assistant"}
    rest = measured.total - sum(row.tokens for row in measured.rows)
    assert 0 < rest < 0.4 * measured.total
    done = trimtab.fit(
        body,
        window=measured.total // 2,
        reserve=0,
        format=format,
        settings=trimtab.Settings(counter="o200k"),
    )
    pruned = sum(edit.tokens_saved for edit in done.report.edits)
    assert pruned == done.report.tokens_before - done.report.tokens_after


@pytest.mark.row("B24")
def test_statistics_are_those_of_all_sessions(url: str) -> None:
    for seed in range(3):
        mine = kept(url)
        mine.fit(request(20, seed))
        mine.close()
    stats = kept(url).stats()
    assert (stats["turns"], stats["batches"]) == (3, 3)


# --- C11: shortened articles are cached -----------------------------------------------------------


@pytest.mark.row("C11")
def test_with_a_store_nobody_is_asked_again_after_a_restart(url: str) -> None:
    asked: list[str] = []

    def say(prompt: str) -> str:
        asked.append(prompt)
        return "The answer is in line 7."

    articles = [
        {"title": f"Article {n}", "url": f"https://example.org/{n}", "content": f"{n} words " * 400}
        for n in range(8)
    ]
    body = request(1)
    body["messages"][2]["content"][0]["content"] = json.dumps(articles)
    size = trimtab.measure(body, counter="o200k").total
    limits = trimtab.Settings(window=size // 2, reserve=0)
    options = {"counter": "o200k", "settings": limits, "summarizer": say, "store": url}
    sent = trimtab.Session(**as_keywords(**options)).fit(body).request
    before = len(asked)
    assert before
    assert trimtab.Session(**as_keywords(**options)).fit(body).request == sent
    assert len(asked) == before


# --- E12: originals by id -------------------------------------------------------------------------


@pytest.mark.row("E12")
def test_an_id_gives_the_original_whole_or_in_pages(url: str) -> None:
    mine = kept(url)
    body = request(20)
    body["messages"][2]["content"][0]["content"] = "\n".join(f"line {n}" for n in range(9_000))
    done = mine.fit(body)
    handle = max(handles(done), key=lambda one: len(mine.recall(one)))
    whole = mine.recall(handle)
    assert len(whole) > 2 * excerpts.MAX_CHARS
    pages = "".join(
        mine.recall(handle, start, start + 1_000) for start in range(0, len(whole), 1_000)
    )
    assert pages == whole
    said = excerpts.answer(mine, {"handle": handle, "start": 0})
    assert said.text.startswith(whole[: excerpts.MAX_CHARS])
    assert f"start={excerpts.MAX_CHARS}" in said.text
    rest = excerpts.answer(mine, {"handle": handle, "start": excerpts.MAX_CHARS}).text
    assert rest.startswith(whole[excerpts.MAX_CHARS : excerpts.MAX_CHARS + 100])


@pytest.mark.row("E12")
def test_an_unknown_or_expired_id_says_so_and_what_to_do(url: str) -> None:
    mine = kept(url)
    handle = handles(mine.fit(request(20)))[0]
    with pytest.raises(UnknownHandle, match="run the tool again"):
        mine.recall("r000000000")
    shop = stores.open(url)
    stores.purge(shop.store, lambda tenant: shop, now=time.time() + 1, older_than=0)
    with pytest.raises(UnknownHandle, match="purged"):
        mine.recall(handle)
    assert excerpts.answer(mine, {"handle": handle}).failed


# --- E13: changed copies are remembered -----------------------------------------------------------


@pytest.mark.row("E13")
@pytest.mark.parametrize("format", SIX)
def test_repaired_and_reduced_copies_never_replace_the_original(format: str, url: str) -> None:
    body = session(format, steps=24, lines=30)
    items = items_of(body)
    results = [n for n in range(len(items)) if "result" in json.dumps(items[n])[:400].lower()]
    orphan = copy.deepcopy(items[results[0]] if results else items[2])
    items.insert(1, orphan)  # answers nothing there
    before = json.dumps(body)
    size = trimtab.measure(body, counter="o200k", format=format).total
    mine = kept(url, window=size // 2, reserve=0, format=format)
    done = mine.fit(body)
    assert json.dumps(body) == before
    names = [*handles(done), *(r.handle for r in done.report.repairs if r.handle)]
    originals = {name: done.recall(name) for name in names}
    assert originals
    again = kept(url, window=size // 2, reserve=0, format=format)
    assert again.fit(json.loads(before)).request == done.request
    assert {name: again.recall(name) for name in names} == originals


# --- E15: cache breakpoints -----------------------------------------------------------------------


def marks(tree: Any) -> int:
    if isinstance(tree, dict):
        return ("cache_control" in tree) + sum(marks(value) for value in tree.values())
    return sum(marks(value) for value in tree) if isinstance(tree, list) else 0


@pytest.mark.row("E15")
def test_the_clients_breakpoints_stay_no_more_than_four_and_never_within_a_step(
    url: str,
) -> None:
    mine = kept(url)
    for number in range(6, 40):
        body = request(number)
        places = sorted({0, 2 * (number // 3), 2 * (number // 2), 2 * number})
        for place in places:
            message = body["messages"][place]
            if isinstance(message["content"], str):
                message["content"] = [{"type": "text", "text": message["content"]}]
            message["content"][-1]["cache_control"] = {"type": "ephemeral"}
        done = mine.fit(body)
        assert 1 <= marks(done.request) <= marks(body) <= 4
        assert trimtab.check(done.request) == ()
        last = done.request["messages"][-1]["content"][-1]
        assert "cache_control" in last, "the newest one is where the client put it"
        for message in done.request["messages"]:
            assert message["role"] == "user" or not marks(message), "none between call and result"


# --- X4: everything comes back --------------------------------------------------------------------


@pytest.mark.row("X4")
def test_every_removal_of_a_session_is_kept_and_retrievable_by_another_process(url: str) -> None:
    mine, known = kept(url), dict[str, str]()
    for body in grown(40):
        done = mine.fit(body)
        known |= {handle: done.recall(handle) for handle in handles(done)}
    mine.close()
    other = kept(url)
    assert {handle: other.recall(handle) for handle in known} == known
    last = handles(kept(url).fit(request(40)))
    whole = "".join(known[handle] for handle in last)
    for message in request(40)["messages"][1:21]:
        assert json.dumps(message, separators=(",", ":")) in whole, "dropped, and kept as it was"


@pytest.mark.row("X4")
def test_age_and_size_bound_what_is_kept_and_nothing_does_unless_asked(url: str) -> None:
    for seed in range(3):
        mine = kept(url)
        mine.fit(request(20, seed))
        mine.close()
    shop = stores.open(url)
    rows = shop.store.conversations()
    assert len(rows) == 3
    total = sum(row.stored_bytes for row in rows)

    def of(tenant: str) -> stores.TenantStore:
        return shop

    now = time.time() + 10
    assert stores.purge(shop.store, of, now=now + 10**9) == (0, 0, 0)
    done = stores.purge(shop.store, of, now=now, keep_bytes=total - 1)
    assert done.conversations == 1
    assert stores.purge(shop.store, of, now=now, older_than=0).conversations == 2


@pytest.mark.row("X4")
def test_secrets_are_unreadable_on_the_disk_with_a_key(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(stores.KEY_VARIABLE, "correct horse battery staple")
    body = request(20)
    body["messages"][2]["content"][0]["content"] += "\nAPI_KEY=sk-very-secret-0123456789"
    mine = kept(url)
    done = mine.fit(body)
    mine.close()
    folder = Path(url.removeprefix("sqlite:///")).parent
    assert all(b"very-secret" not in file.read_bytes() for file in folder.iterdir())
    assert any("sk-very-secret" in kept(url).recall(handle) for handle in handles(done))
