"""Ids as people have them: how a handle or a conversation begins is enough, in every command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from long_sessions import KEYWORDS, request
from settings_words import as_keywords

import trimtab
from trimtab import stores
from trimtab.cli import main


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A store with a conversation of each of two tenants."""
    url = f"sqlite:///{tmp_path / 'store.db'}"
    for tenant, seed in (("anthropic/a", 0), ("anthropic/b", 1)):
        session = trimtab.Session(store=url, tenant=tenant, **as_keywords(**KEYWORDS))
        session.fit(request(20, seed))
        session.close()
    return url


def conversations(url: str) -> dict[str, str]:
    """Tenant → its conversation."""
    return {row.tenant: row.conversation for row in stores.open_store(url).conversations()}


def handles(url: str, tenant: str) -> list[str]:
    return stores.open_store(url).handles(tenant, conversations(url)[tenant])


def test_the_beginning_of_a_handle_is_enough_whoever_its_tenant_is(url, capsysbinary):
    for tenant in conversations(url):
        (handle, *_) = handles(url, tenant)
        assert main(["recall", handle, "--whole", "--store", url]) == 0
        whole = capsysbinary.readouterr().out
        assert whole
        assert main(["recall", handle[:8], "--whole", "--store", url]) == 0
        assert capsysbinary.readouterr().out == whole
        assert main(["pin", handle[:8], "--store", url]) == 0
        assert handle.encode() in capsysbinary.readouterr().err


def test_a_beginning_that_several_handles_have_names_them(url, capsys):
    every = sorted(one for tenant in conversations(url) for one in handles(url, tenant))
    assert {one[0] for one in every} == {"r"}
    for command in (["recall", "r"], ["search", "x", "r"], ["pin", "r"]):
        assert main([*command, "--store", url]) == 2
        names = ", ".join(every)
        error = f"trimtab: {len(every)} handles begin with r: {names}; give more of one\n"
        assert capsys.readouterr().err == error


def test_a_conversation_is_listed_searched_and_pinned_in_by_how_its_id_begins(url, capsys):
    for tenant, conversation in conversations(url).items():
        assert main(["recall", conversation[:8], "--store", url]) == 0
        out = capsys.readouterr().out
        (other,) = {*conversations(url)} - {tenant}
        assert any(one in out for one in handles(url, tenant))
        assert not any(one in out for one in handles(url, other))
        pin = ["pin", "--text", "Never push.", "--conversation", conversation[:8], "--store", url]
        assert main(pin) == 0
        assert f"in conversation {conversation}" in capsys.readouterr().err


def test_a_conversation_is_deleted_by_how_its_id_begins_and_no_other_is(url, capsys):
    (gone, kept), (id, _) = conversations(url), conversations(url).values()
    assert main(["purge", id[:8], "--store", url]) == 0
    assert capsys.readouterr().out.startswith("1 conversation with ")
    assert [*conversations(url)] == [kept] != [gone]
    assert main(["purge", id[:8], "--store", url]) == 7
    error = (
        f"trimtab: no conversation begins with '{id[:8]}'; here are {conversations(url)[kept]}\n"
    )
    assert capsys.readouterr().err == error


def test_a_journal_takes_the_beginning_of_a_handle_too(tmp_path, capsys):
    session = trimtab.Session(**as_keywords(**KEYWORDS))
    handle = session.fit(request(20, 0)).report.edits[0].handle
    file = tmp_path / "kept.json"
    file.write_text(json.dumps(session.journal))
    assert main(["pin", handle[:8], "--journal", str(file)]) == 0
    assert (
        capsys.readouterr().err
        == f"{handle} is undone: its original is sent again from the next request on\n"
    )
    assert main(["pin", "nothing", "--journal", str(file)]) == 7
    error = f"no cut has the handle 'nothing': trimtab recall --journal {file} lists them"
    assert error in capsys.readouterr().err


def test_what_begins_like_nothing_is_an_unknown_handle(url, capsys):
    assert main(["recall", "nothing", "--store", url]) == 7
    assert "no original is kept under 'nothing'" in capsys.readouterr().err
