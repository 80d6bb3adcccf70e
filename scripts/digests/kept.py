"""Sessions with a store, and conversations that a release before has begun.

A store's handles are made with a random key, so files are begun here, in the format in which they
lie on the disk, with a key that is always the same.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from digests.chain import Chain, Clock, Told
from digests.conversations import Found, written
from digests.corpus import Record, number

WINDOW = 16_384
TURNS = 40
_TABLES = """
CREATE TABLE conversations (
    tenant TEXT, conversation TEXT, used_at REAL NOT NULL,
    PRIMARY KEY (tenant, conversation)
) WITHOUT ROWID;
CREATE TABLE entries (
    place INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant TEXT NOT NULL, conversation TEXT NOT NULL, id TEXT NOT NULL, data BLOB NOT NULL,
    UNIQUE (tenant, conversation, id)
);
CREATE TABLE originals (
    tenant TEXT NOT NULL, handle TEXT NOT NULL, conversation TEXT NOT NULL, data BLOB NOT NULL,
    PRIMARY KEY (tenant, handle)
);
CREATE INDEX originals_of ON originals (tenant, conversation);
CREATE TABLE facts (
    tenant TEXT NOT NULL, name TEXT NOT NULL, data BLOB NOT NULL, PRIMARY KEY (tenant, name)
) WITHOUT ROWID;
PRAGMA user_version = 1;
"""


def seeded(path: Path, *tenants: str) -> str:
    """A new store file in which the tenants have keys that are always the same; its URL."""
    db = sqlite3.connect(path)
    db.execute("PRAGMA journal_mode = WAL")
    db.executescript(_TABLES)
    for tenant in tenants:
        about = hashlib.blake2b(f"{tenant}/facts/key".encode(), digest_size=16).digest()
        secret = hashlib.blake2b(tenant.encode(), digest_size=32).digest()
        total = hashlib.blake2b(secret, digest_size=16, person=b"trimtab", key=about).digest()
        db.execute("INSERT INTO facts VALUES (?, 'key', ?)", (tenant, b"\x00" + total + secret))
    db.commit()
    db.close()
    path.chmod(0o600)
    return url_of(path)


def url_of(path: Path) -> str:
    """As ``store=`` takes it."""
    return f"sqlite:///{path}"


@contextmanager
def folder() -> Iterator[Path]:
    """For files that are written often: in memory, where there is such a place."""
    place = "/dev/shm" if Path("/dev/shm").is_dir() else None
    with tempfile.TemporaryDirectory(prefix="same-bytes-", dir=place) as name:
        yield Path(name)


def _session(url: str, clock: Clock, **keywords: Any) -> Any:
    import trimtab

    return trimtab.Session(
        store=url, window=WINDOW, reserve=1_000, recall=True, clock=clock, **keywords
    )


def stored(record: Record) -> Found:
    """A conversation whose session is another one every seventh turn; on the way the answers'
    usage is learned from."""
    talk, chain, clock = record.talk, Chain(), Clock()
    with folder() as place:
        url = seeded(place / "store.db", "default")
        session = _session(url, clock)
        for count, end in enumerate(talk.some_ends(TURNS)):
            clock.turn()
            if count % 7 == 6:
                session.close()
                session = _session(url, clock)
            request = written(talk.body(end), f"stored {record.name}")
            done = chain.step(partial(session.fit, request))
            if done is not None and count % 5 == 4 and number(record.name, 2):
                tokens = int(done.tokens_after * 1.2) + 400
                session.observe({"usage": {"input_tokens": tokens, "output_tokens": 5}}, done)
        yield f"store/{record.name}", _end(chain, session)


def two(first: Record, second: Record) -> Found:
    """Two conversations of one store turn about, each in two sessions turn about."""
    talks, chain, clock = (first.talk, second.talk), Chain(), Clock()
    with folder() as place:
        url = seeded(place / "store.db", "default")
        pair = [_session(url, clock), _session(url, clock, conversation="a name of its own")]
        longest = max(len(talk.some_ends(TURNS)) for talk in talks)
        for count in range(longest):
            for number_, talk in enumerate(talks):
                ends = talk.some_ends(TURNS)
                if count < len(ends):
                    clock.turn()
                    session = pair[(count + number_) % 2]
                    hint = f"conversation {number_}"
                    body = talk.body(ends[count])
                    chain.step(partial(session.fit, body, conversation=hint))
        told = _end(chain, pair[0])
        pair[1].close()
        yield f"store-two/{first.name}", told


def _end(chain: Chain, session: Any) -> Told:
    """The originals as well, by handle."""
    journal = session.journal
    chain.add(json.dumps(journal["originals"], ensure_ascii=False))
    session.close()
    return chain.told(journal)


# --- begun by one release, continued by another ---


def _file(place: Path, record: Record, end: str) -> Path:
    return place / f"{hashlib.blake2b(record.name.encode(), digest_size=8).hexdigest()}.{end}"


def begin(record: Record, place: Path) -> None:
    """Leave a journal and a store file from the middle of a conversation."""
    import trimtab

    talk, clock = record.talk, Clock()
    ends = talk.some_ends(TURNS)
    path = _file(place, record, "db")
    path.unlink(missing_ok=True)
    session = _session(seeded(path, "default"), clock)
    memory = trimtab.Session(window=WINDOW, reserve=1_000, recall=True, clock=clock)
    for end in ends[: len(ends) // 2]:
        clock.turn()
        for one in (session, memory):
            Chain().step(partial(one.fit, talk.body(end)))
    session.close()
    _file(place, record, "json").write_text(json.dumps(memory.journal), encoding="utf-8")
    db = sqlite3.connect(path)
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()


def go_on(record: Record, place: Path) -> Found:
    """The second half of the conversation on what another release has left."""
    import trimtab

    talk, ends = record.talk, record.talk.some_ends(TURNS)
    with folder() as work:
        path = work / "store.db"
        shutil.copy(_file(place, record, "db"), path)
        clock, chain = Clock(), Chain()
        session = _session(url_of(path), clock)
        _rest(chain, session, clock, talk, ends)
        yield f"continued-store/{record.name}", _end(chain, session)
    journal = json.loads(_file(place, record, "json").read_text(encoding="utf-8"))
    clock, chain = Clock(), Chain()
    memory = trimtab.Session(
        window=WINDOW, reserve=1_000, recall=True, clock=clock, journal=journal
    )
    _rest(chain, memory, clock, talk, ends)
    yield f"continued-journal/{record.name}", chain.told(memory.journal)


def _rest(chain: Chain, session: Any, clock: Clock, talk: Any, ends: list[int]) -> None:
    for end in ends[len(ends) // 2 :]:
        clock.turn()
        chain.step(partial(session.fit, talk.body(end)))
