"""Makes the store of a proxy with a tenant for each key, as a release keeps it.

    PYTHONPATH=OLD/src:OLD/tests/support:tests/support python tests/support/kept_tenants.py FILE

FILE is a new SQLite file; FILE.expected.json.gz gets what was sent upwards and every original.  The
release told ``Authorization: Bearer KEY`` from ``x-api-key: KEY``.
"""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from typing import Any

from long_sessions import request
from proxies import ask, proxied, settled

import trimtab
from trimtab import stores
from trimtab_lab.testing import StrictProvider

WINDOW = 3_000
TURNS = (6, 9)
SENT: dict[str, list[tuple[tuple[str, ...], int]]] = {
    "sk-bearer": [(("authorization",), 1)],
    "sk-own": [(("x-api-key",), 2)],
    "sk-twice": [(("authorization", "x-api-key"), 3)],
    "sk-updated": [(("x-api-key",), 4), (("authorization",), 5), (("authorization",), 4)],
}
"""Key → in which headers it came, and with which conversation of ``long_sessions``."""


def keyed(key: str, names: tuple[str, ...]) -> dict[str, str]:
    """Headers that carry the key under these names."""
    values = {"authorization": f"Bearer {key}"}
    own = {name: values.get(name, key) for name in names}
    return {"content-type": "application/json", "anthropic-version": "2023-06-01", **own}


def sent_through(url: str, provider: StrictProvider, seed: int, headers: dict[str, str]) -> Any:
    """Send the conversation's last request: what reached the provider."""
    status, _, answer = ask(
        url, "POST", "/v1/messages", json.dumps(request(TURNS[-1], seed)), headers
    )
    assert status == 200, answer
    return provider.requests[-1].body


def opened(provider: StrictProvider, file: Path) -> Any:
    """A proxy on the store."""
    return proxied(
        provider.url, store=f"sqlite:///{file}", tenants="key",
        fit=trimtab.Settings(window=WINDOW, counter="o200k"),
    )  # fmt: skip


def keep(file: Path) -> dict[str, Any]:
    """Play all conversations; what was sent last in each, and every original by tenant."""
    sent: dict[str, dict[str, Any]] = {}
    with StrictProvider(lambda record: "fine") as provider, opened(provider, file) as server:
        for key, turns in SENT.items():
            for names, seed in turns:
                headers = keyed(key, names)
                for count in TURNS:
                    body = json.dumps(request(count, seed))
                    status, _, answer = ask(server.url, "POST", "/v1/messages", body, headers)
                    assert status == 200, answer
                sent.setdefault(key, {})[str(seed)] = provider.requests[-1].body
        settled(server).proxy.tenants.close()
    store = stores.open_store(f"sqlite:///{file}")
    originals: dict[str, dict[str, str]] = {}
    for row in store.conversations():
        if row.tenant.startswith("provider/"):
            mine = stores.open(store, row.tenant)
            for handle in store.handles(row.tenant, row.conversation):
                original = mine.original(handle)
                assert original is not None
                originals.setdefault(row.tenant, {})[handle] = original.text
    store.close()
    return {"sent": sent, "originals": originals}


if __name__ == "__main__":
    made = Path(sys.argv[1])
    expected = json.dumps(keep(made)).encode()
    made.with_name(made.name + ".expected.json.gz").write_bytes(gzip.compress(expected, 9, mtime=0))
