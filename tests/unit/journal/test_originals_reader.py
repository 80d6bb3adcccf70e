"""One tenant's originals without a session: recalled, searched, summed up, pinned.

Over MCP and the command line: ``tests/doors/test_mcp.py``, ``tests/doors/cli/test_recall.py``.
"""

from __future__ import annotations

import pytest

from trimtab.errors import UnknownHandle
from trimtab.journal import originals_reader, passages
from trimtab.journal.file_format import replayed, rows
from trimtab.journal.journal import Journal
from trimtab.journal.originals_reader import OriginalsReader
from trimtab.stores import open_store
from trimtab.stores.tenant import TenantStore
from trimtab.transcript.model import Edit

ONE = Edit("replace", ("a.0",), "[cut]", "cut", "too long", handle="one")
FOLD = Edit("fold", ("b.0", "c.0"), "[2 steps]", "fold", "to make room", handle="fold")
TEXTS = {"one": "the harbour\nthe lighthouse", "fold": "the violin\nthe harbour again"}


@pytest.fixture
def tenant() -> TenantStore:
    """Two conversations of one tenant, and one of another with the same words."""
    store = open_store("memory:")
    for name, tenant in (("first", "mine"), ("second", "mine"), ("first", "theirs")):
        edit = ONE if name == "first" else FOLD
        written = rows(Journal(), Journal((edit,)), at=5)
        own = TenantStore(store, tenant)
        own.write(own.batch(name, written, {edit.handle: TEXTS[edit.handle]}))
    return TenantStore(store, "mine")


def reader(tenant: TenantStore) -> OriginalsReader:
    return OriginalsReader(tenant, lambda: 9.0)


def test_an_original_comes_back_with_its_edits_and_an_unknown_handle_is_an_error(
    tenant: TenantStore,
) -> None:
    ours = reader(tenant)
    assert {handle: ours.recall(handle) for handle in TEXTS} == TEXTS
    assert ours.edits("fold") == [(5, FOLD)]
    for handle in ("two", "", "x" * 65):
        with pytest.raises(UnknownHandle, match="no original is kept"):
            ours.recall(handle)


@pytest.mark.parametrize(
    ("wanted", "most", "found"),
    [
        ("harbour", 9, ["the harbour", "the harbour again"]),
        ("harbour", 1, ["the harbour again"]),
        ("violin", 9, ["the violin"]),
        ("where a violin stood", 9, ["the violin\nthe harbour again"]),
        ("nothing of it", 9, []),
    ],
)
def test_lines_of_all_conversations_are_found_and_where_none_are_the_nearest_passages(
    tenant: TenantStore, wanted: str, most: int, found: list[str]
) -> None:
    assert sorted(row.hit.text for row in reader(tenant).search(wanted, most)) == found


def test_a_search_reads_a_bounded_number_of_characters(
    tenant: TenantStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(originals_reader, "MAX_READ_CHARS", 30)
    assert len(reader(tenant).search("harbour")) == 1
    monkeypatch.undo()
    monkeypatch.setattr(passages, "MAX_RANKED_CHARS", 5)
    assert reader(tenant).search("where a violin stood") == []


def test_the_status_sums_up_the_tenants_own_conversations(tenant: TenantStore) -> None:
    assert reader(tenant).status().startswith("2 originals of 2 conversations, ")
    empty = TenantStore(tenant.store, "nobody")
    assert reader(empty).status() == "nothing is kept here yet"


def test_one_block_is_pinned_once_and_a_fold_is_not_pinned_as_a_whole(
    tenant: TenantStore,
) -> None:
    ours = reader(tenant)
    assert "has 2 parts of old steps" in ours.pin("fold")
    assert "is whole again" in ours.pin("one")
    assert ours.pin("one") == "one is pinned already"
    journal = replayed(Journal(), tenant.read("first")[0])
    assert journal.pins == {"a.0"}
    assert [edit.op for edit in journal.entries] == ["replace", "restore"]
    assert replayed(Journal(), tenant.read("second")[0]).entries == (FOLD,)
