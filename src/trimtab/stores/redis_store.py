"""A store in Redis, for several machines.

Writes and deletes are scripts that the server runs atomically.  Durability depends on the server's
setting (appendonly).
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs, quote, urlencode, urlsplit, urlunsplit

from trimtab.errors import MissingExtra, StoreError
from trimtab.forking import renew_in_children
from trimtab.lazy import cached_property
from trimtab.stores.base import (
    ConversationInfo,
    WriteBatch,
    check_version,
    facts_of,
    without_password,
)

VERSION = 1
SECONDS = 2.0
"""Most seconds to wait for an answer."""

# KEYS: entries (a stream), ids, handles, facts, used, names of facts, version.  ARGV: member of
# used, time, version, then four counted lists of pairs: entries, originals (key, data; the handle
# is after the last colon of the key), facts, updated_facts.  Data of an earlier release has no
# names of facts and no version yet.
_WRITE = """
redis.call('SETNX', KEYS[7], ARGV[3])
local at = 4
local function pairs_of(each)
  local n = tonumber(ARGV[at]); at = at + 1
  for _ = 1, n do each(ARGV[at], ARGV[at + 1]); at = at + 2 end
end
if ARGV[1] ~= '' then redis.call('ZADD', KEYS[5], ARGV[2], ARGV[1]) end
pairs_of(function(id, data)
  if redis.call('HSETNX', KEYS[2], id, '') == 1 then
    redis.call('XADD', KEYS[1], '*', 'd', data)
  end
end)
pairs_of(function(key, data)
  if redis.call('SETNX', key, data) == 1 then redis.call('RPUSH', KEYS[3], key) end
end)
if redis.call('EXISTS', KEYS[6]) == 0 then
  for _, name in ipairs(redis.call('HKEYS', KEYS[4])) do redis.call('ZADD', KEYS[6], 0, name) end
end
local function fact(how)
  return function(name, data)
    redis.call('ZADD', KEYS[6], 0, name)
    redis.call(how, KEYS[4], name, data)
  end
end
pairs_of(fact('HSETNX'))
pairs_of(fact('HSET'))
"""

# KEYS: facts, names of facts.  ARGV: prefix.  Returns names and data in turn.
_FACTS = """
if redis.call('EXISTS', KEYS[2]) == 0 then return redis.call('HGETALL', KEYS[1]) end
local found = {}
local last = ARGV[1] .. string.char(255)
for _, name in ipairs(redis.call('ZRANGEBYLEX', KEYS[2], '[' .. ARGV[1], '(' .. last)) do
  found[#found + 1] = name
  found[#found + 1] = redis.call('HGET', KEYS[1], name)
end
return found
"""

# KEYS: entries, ids, handles, used, facts, names of facts.  ARGV: member of used, time, then
# prefixes of the names of facts to delete too.
_FORGET = """
local used = redis.call('ZSCORE', KEYS[4], ARGV[1])
if used and tonumber(used) >= tonumber(ARGV[2]) then return 0 end
for _, key in ipairs(redis.call('LRANGE', KEYS[3], 0, -1)) do redis.call('DEL', key) end
redis.call('DEL', KEYS[1], KEYS[2], KEYS[3])
redis.call('ZREM', KEYS[4], ARGV[1])
for _, name in ipairs(redis.call('HKEYS', KEYS[5])) do
  for at = 3, #ARGV do
    if string.sub(name, 1, string.len(ARGV[at])) == ARGV[at] then
      redis.call('HDEL', KEYS[5], name)
      redis.call('ZREM', KEYS[6], name)
    end
  end
end
return 1
"""


class RedisStore:
    """Keys under one prefix (``?prefix=``, else ``trimtab``), all in one slot of a cluster; with
    ``?cluster=yes`` each tenant has a slot of its own."""

    is_local = False

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        query = parse_qs(parts.query)
        prefix = query.pop("prefix", ["trimtab"])[0]
        self._prefix, self._cluster = prefix, query.pop("cluster", ["no"])[0] == "yes"
        bare = urlunsplit(parts._replace(query=urlencode(query, doseq=True)))
        self.url = without_password(url)
        self._listed = set[str]()
        """Tenants of a cluster that are known to be in the set of all tenants."""
        try:
            import redis
            from redis.backoff import NoBackoff
            from redis.retry import Retry
        except ImportError:
            raise MissingExtra(
                "a store in Redis needs its client: pip install 'trimtab[redis]'"
            ) from None
        self._module, self._scripts = redis, dict[str, Any]()
        self._errors: tuple[type[Exception], ...] = (redis.RedisError, OSError)
        read: Any = redis.connection.parse_url
        try:
            read(bare)
        except ValueError as error:
            raise self._error(error) from error
        # A cut connection is opened again; a server that hangs has had its time.
        self._bare = bare
        self._retry = Retry(NoBackoff(), 1, supported_errors=(redis.ConnectionError,))
        self._version_read = False
        self._inherited: Any = None
        """The client of the process that forked this one: never used or closed here."""
        renew_in_children(self)

    def renew(self) -> None:
        """A child makes its own client: a thread of its parent may have held that one's locks."""
        self._inherited = self.__dict__.pop("_redis", None)
        self._scripts = {}

    @cached_property
    def _redis(self) -> Any:
        """The client, made on first use: a cluster's client connects as soon as it is made."""
        kind = self._module.RedisCluster if self._cluster else self._module.Redis
        return kind.from_url(
            self._bare, socket_timeout=SECONDS, socket_connect_timeout=SECONDS, retry=self._retry,
            decode_responses=False,
        )  # fmt: skip

    def _run(self, script: str, keys: list[str], values: list[Any]) -> Any:
        """Run a script; its text is sent only if the server does not have it yet."""
        command = self._scripts.get(script)
        if command is None:
            command = self._scripts.setdefault(script, self._redis.register_script(script))
        return command(keys=keys, args=values)

    def write(self, tenant: str, batch: WriteBatch) -> None:
        """See ``Store``."""
        name = batch.conversation
        keys = [self._key(tenant, kind, name) for kind in "eih"]
        base = self._base(tenant)
        keys += [self._key(tenant, "f"), f"{base}:used", self._key(tenant, "n"), f"{base}:version"]
        values: list[Any] = [_member(tenant, name) if name else "", time.time(), VERSION]
        originals = [(self._key(tenant, "o", handle), data) for handle, data in batch.originals]
        for rows in (batch.entries, originals, batch.facts, batch.updated_facts):
            values.append(len(rows))
            for row in rows:
                values += row
        with self._store_errors():
            if self._cluster and tenant not in self._listed:
                self._redis.setnx(self._version, VERSION)
                self._redis.sadd(self._tenants, tenant)
                self._listed.add(tenant)
            self._run(_WRITE, keys, values)

    def read(self, tenant: str, conversation: str, after: str = "") -> tuple[list[bytes], str]:
        """See ``Store``."""
        with self._store_errors():
            first = f"({after}" if after else "-"
            rows = self._redis.xrange(self._key(tenant, "e", conversation), min=first)
        return [row[b"d"] for _, row in rows], rows[-1][0].decode() if rows else after

    def original(self, tenant: str, handle: str) -> bytes | None:
        """See ``Store``."""
        with self._store_errors():
            data: bytes | None = self._redis.get(self._key(tenant, "o", handle))
        return data

    def handles(self, tenant: str, conversation: str) -> list[str]:
        """See ``Store``."""
        with self._store_errors():
            keys = self._redis.lrange(self._key(tenant, "h", conversation), 0, -1)
        return [key.decode().rpartition(":")[2] for key in keys]

    def fact(self, tenant: str, name: str) -> bytes | None:
        """See ``Store``."""
        with self._store_errors():
            data: bytes | None = self._redis.hget(self._key(tenant, "f"), name)
        return data

    def facts(self, tenant: str, prefix: str) -> Mapping[str, bytes]:
        """See ``Store``."""
        with self._store_errors():
            keys = [self._key(tenant, kind) for kind in "fn"]
            rows: list[bytes] = self._run(_FACTS, keys, [prefix])
        named = sorted(
            (name.decode(), data) for name, data in zip(rows[::2], rows[1::2], strict=True)
        )
        return {name: data for name, data in named if name.startswith(prefix)}

    def conversations(self) -> Sequence[ConversationInfo]:
        """See ``Store``."""
        with self._store_errors():
            names = self._redis.smembers(self._tenants) if self._cluster else [b""]
            bases = [self._base(name.decode()) for name in names]
            rows = [row for base in bases for row in
                    self._redis.zrange(f"{base}:used", 0, -1, withscores=True)]  # fmt: skip
            rows.sort(key=lambda row: float(row[1]))
            return [self._info(member, used_at) for member, used_at in rows]

    def _info(self, member: bytes, used_at: float) -> ConversationInfo:
        tenant, name = json.loads(member)
        entries = [row[b"d"] for _, row in self._redis.xrange(self._key(tenant, "e", name))]
        keys = self._redis.lrange(self._key(tenant, "h", name), 0, -1)
        size = sum(map(len, entries)) + sum(self._redis.strlen(key) for key in keys)
        return ConversationInfo(tenant, name, used_at, len(entries), len(keys), size)

    def delete(self, tenant: str, conversation: str, *, before: float) -> bool:
        """See ``Store``."""
        keys = [self._key(tenant, kind, conversation) for kind in "eih"]
        keys.append(f"{self._base(tenant)}:used")
        keys += [self._key(tenant, kind) for kind in "fn"]
        values: list[Any] = [_member(tenant, conversation), before, *facts_of(conversation)]
        with self._store_errors():
            return bool(self._run(_FORGET, keys, values))

    def faults(self) -> Sequence[str]:
        """See ``Store``: checks only that the server answers; Redis keeps no checksums."""
        with self._store_errors():
            self._redis.ping()
        return ()

    def close(self) -> None:
        """See ``Store``."""
        if client := self.__dict__.pop("_redis", None):
            self._scripts.clear()
            client.close()

    @property
    def _version(self) -> str:
        return f"{{{self._prefix}}}:version"

    @property
    def _tenants(self) -> str:
        return f"{{{self._prefix}}}:tenants"

    def _base(self, tenant: str) -> str:
        """The prefix of keys; the part in braces decides their slot in a cluster."""
        own = f":{quote(tenant, safe='')}" if self._cluster else ""
        return f"{{{self._prefix}{own}}}"

    def _key(self, tenant: str, kind: str, name: str = "") -> str:
        return f"{self._base(tenant)}:{quote(tenant, safe='')}:{kind}:{name}"

    @contextmanager
    def _store_errors(self) -> Iterator[None]:
        try:
            if not self._version_read:
                check_version(int(self._redis.get(self._version) or VERSION), VERSION)
                self._version_read = True
            yield
        except self._errors as error:
            raise self._error(error) from error

    def _error(self, error: Exception) -> StoreError:
        what, then = "does not answer", "start Redis, or name another store"
        if isinstance(error, self._module.OutOfMemoryError):
            what, then = "is full", "raise its maxmemory, or trimtab purge --store"
        return StoreError(f"{self.url} {what} ({type(error).__name__}: {error}): {then}")


def _member(tenant: str, conversation: str) -> str:
    return json.dumps([tenant, conversation])
