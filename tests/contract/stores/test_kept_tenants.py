"""A proxy's store of the release that took one key for two tenants, as ``Bearer`` and by itself.

``data_files/stores/2026-11-27-keys``; ``tests/support/kept_tenants.py`` made it.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from kept_tenants import SENT, keyed, opened, sent_through

from trimtab import stores
from trimtab.errors import UnknownHandle
from trimtab.proxy.http.headers import fingerprint, fingerprints
from trimtab_lab.testing import StrictProvider

FOLDER = Path(__file__).resolve().parents[2] / "support" / "data_files" / "stores"
NAMES = [
    ("authorization",), ("x-api-key",), ("authorization", "x-api-key"), ("api-key",),
    ("x-goog-api-key",),
]  # fmt: skip
"""The ways in which a key comes now."""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The store, as that release left it."""
    found = tmp_path / "kept.db"
    found.write_bytes(gzip.decompress((FOLDER / "2026-11-27-keys.sqlite.gz").read_bytes()))
    found.chmod(0o600)
    return found


@pytest.fixture(scope="module")
def expected() -> Any:
    packed = (FOLDER / "2026-11-27-keys.tenants.json.gz").read_bytes()
    return json.loads(gzip.decompress(packed))


def tenant_and_session(server: Any, headers: dict[str, str]) -> tuple[str, Any]:
    upstream = server.proxy.settings.upstreams[0]
    tenant = server.proxy.tenants.tenant(headers, "", upstream)
    return tenant, server.proxy.tenants.served(upstream, tenant).session


def originals_of(expected: Any, key: str) -> dict[str, str]:
    """Those of all tenants that the release made of this key."""
    used = [keyed(key, names) for names, _ in SENT[key]]
    tenants = {f"provider/{one}" for headers in used for one in fingerprints(headers, "")}
    found = [expected["originals"].get(tenant, {}) for tenant in tenants]
    return {handle: text for each in found for handle, text in each.items()}


@pytest.mark.parametrize("names", NAMES, ids=" and ".join)
def test_what_was_kept_of_a_key_is_found_however_the_key_comes_now(
    names: tuple[str, ...], file: Path, expected: Any
) -> None:
    """The same bytes are sent, every original comes back, and no other key gets it."""
    with StrictProvider(lambda record: "fine") as provider, opened(provider, file) as server:
        for key, by_seed in expected["sent"].items():
            headers = keyed(key, names)
            for seed, was in by_seed.items():
                assert sent_through(server.url, provider, int(seed), headers) == was, (key, seed)
            _, session = tenant_and_session(server, headers)
            for handle, text in originals_of(expected, key).items():
                assert session.recall(handle) == text
                for other in SENT.keys() - {key}:
                    with pytest.raises(UnknownHandle):
                        tenant_and_session(server, keyed(other, names))[1].recall(handle)


def test_the_expected_store_has_a_key_in_two_tenants(expected: Any) -> None:
    """Else nothing is tried above."""
    assert len(expected["originals"]) == len(SENT) + 1
    assert all(originals_of(expected, key) for key in SENT)
    assert sum(map(len, expected["originals"].values())) == 6


@pytest.mark.parametrize("key", SENT)
def test_all_ways_to_send_a_key_are_one_tenant_in_an_old_store_too(key: str, file: Path) -> None:
    with StrictProvider(lambda record: "fine") as provider, opened(provider, file) as server:
        found = {tenant_and_session(server, keyed(key, names))[0] for names in NAMES}
        assert len(found - {""}) == len(found) == 1


def test_a_conversation_that_goes_on_is_kept_whole_under_one_name(
    file: Path, expected: Any
) -> None:
    """So that purging what is old takes nothing of it; a restart copies nothing again."""
    key, name = "sk-updated", "provider/" + fingerprint({"x-api-key": "sk-updated"}, "")
    sizes = set()
    for _ in range(3):
        with StrictProvider(lambda record: "fine") as provider, opened(provider, file) as server:
            for seed in (4, 5):
                sent_through(server.url, provider, seed, keyed(key, ("authorization",)))
            server.proxy.tenants.close()
        mine = stores.open(f"sqlite:///{file}", name)
        rows = [row for row in mine.store.conversations() if row.tenant == name]
        assert len(rows) == 2
        handles = {handle for row in rows for handle in mine.store.handles(name, row.conversation)}
        assert handles == originals_of(expected, key).keys()
        assert all(mine.original(handle) for handle in handles)
        sizes.add(sum(row.entries for row in rows))
        mine.store.close()
    assert len(sizes) == 1


def test_a_new_key_is_kept_under_the_digest_of_the_key_itself(tmp_path: Path) -> None:
    file = tmp_path / "new.db"
    with StrictProvider(lambda record: "fine") as provider, opened(provider, file) as server:
        for names in NAMES:
            sent_through(server.url, provider, 1, keyed("sk-new", names))
        server.proxy.tenants.close()
    store = stores.open_store(f"sqlite:///{file}")
    found = {row.tenant for row in store.conversations()}
    assert {one for one in found if one.startswith("provider/")} == {
        "provider/" + fingerprint({"x-api-key": "sk-new"}, "")
    }
    store.close()
