"""The MCP server, spoken to by the protocol's own client: over standard input and over HTTP."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import re
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import mcp
import pytest
from shapes import session

import trimtab
from trimtab import stores
from trimtab.journal.folded_steps import steps_of
from trimtab.journal.originals_reader import OriginalsReader
from trimtab.mcp import TOOLS, said, server

ROOT = Path(__file__).resolve().parents[2]
COMMAND = [sys.executable, "-m", "trimtab", "mcp"]
TALK = session("anthropic", steps=14)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A store in which two tenants have kept one conversation each."""
    url = f"sqlite:///{tmp_path_factory.mktemp('store')}/originals.db"
    for tenant in ("mine", "theirs"):
        keep(url, tenant)
    return url


def keep(url: str, tenant: str, preset: str = "balanced") -> trimtab.Session:
    """What a session of this tenant leaves behind; the session."""
    ours = trimtab.Session(
        store=url,
        tenant=tenant,
        window=9_000,
        preset=preset,
        recall=True,
        settings=trimtab.Settings(counter="o200k"),
    )
    ours.fit(json.loads(json.dumps(TALK).replace("src/mod_", f"src/{tenant}_")))
    return ours


def originals(url: str, tenant: str) -> dict[str, str]:
    store = stores.open(url, tenant)
    (kept,) = [row for row in store.store.conversations() if row.tenant == tenant]
    handles = store.store.handles(tenant, kept.conversation)
    return {handle: OriginalsReader(store, lambda: 1.0).recall(handle) for handle in handles}


@contextmanager
def over_http(url: str, tenant: str) -> Iterator[str]:
    """The address of a server of its own, ended afterwards."""
    command = [*COMMAND, "--store", url, "--tenant", tenant, "--http", "--port", "0"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=ROOT)
    try:
        assert process.stderr is not None
        yield process.stderr.readline().strip()
    finally:
        process.terminate()
        process.communicate(timeout=30)


def asked(url: str, tenant: str, transport: str, ask: Callable[[Any], Awaitable[Any]]) -> Any:
    """What a client learns over a transport."""

    async def run(target: Any) -> Any:
        async with mcp.Client(target) as client:
            return await ask(client)

    if transport == "http":
        with over_http(url, tenant) as address:
            return asyncio.run(run(address))
    command, *arguments = [*COMMAND, "--store", url, "--tenant", tenant]
    env = dict(os.environ)  # of itself the client passes on hardly any of it
    return asyncio.run(run(mcp.StdioServerParameters(command=command, args=arguments, env=env)))


def test_over_http_the_token_of_the_printed_address_is_asked_for(url: str) -> None:
    keep(url, "mine")
    with over_http(url, "mine") as address:
        parts = urlsplit(address)
        assert parts.query.startswith("token=")
        token = parts.query.removeprefix("token=")
        for query, headers, status in (
            ("", {}, 401), ("?token=guess", {}, 401),
            ("", {"authorization": f"Bearer {token}"}, 400), (f"?{parts.query}", {}, 400),
        ):  # fmt: skip
            connection = http.client.HTTPConnection(str(parts.hostname), parts.port or 0)
            connection.request("POST", parts.path + query, "{}", headers)
            assert connection.getresponse().status == status
            connection.close()


def test_a_server_for_a_tenant_of_whom_nothing_is_kept_names_those_there_are(url: str) -> None:
    keep(url, "mine")
    with over_http(url, "nobody") as said:
        assert said.startswith("trimtab: nothing of tenant nobody; here are: --tenant ")
        assert "--tenant mine" in said


def text(result: Any) -> str:
    (content,) = result.content
    return str(content.text)


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_the_official_client_recalls_searches_and_is_refused_what_is_not_its_own(
    url: str, transport: str
) -> None:
    mine, theirs = originals(url, "mine"), originals(url, "theirs")
    handle, whole = max(mine.items(), key=lambda item: len(item[1]))
    foreign = next(iter(theirs))
    assert foreign not in mine

    async def ask(client: Any) -> list[Any]:
        tools = (await client.list_tools()).tools
        calls = [
            ("recall", {"handle": handle}),
            ("recall", {"handle": handle, "steps": "2"}),
            ("recall", {"handle": handle, "start": 100, "end": 300}),
            ("recall", {"handle": handle, "search": "token 7919"}),
            ("recall", {"handle": "nobodyshandl"}),
            ("recall", {"handle": foreign}),
            ("recall", {"search": "src/mine_3.py:2"}),
            ("recall", {"search": "src/theirs_3.py:2"}),
            ("recall", {"file": "mine_3.py", "lines": "2"}),
            ("recall", {}),
            ("status", {}),
        ]
        return [tools, *[await client.call_tool(name, given) for name, given in calls]]

    tools, *results = asked(url, "mine", transport, ask)
    assert [tool.name for tool in tools] == ["recall", "note", "status", "pin"]
    contents, step, part, lines, unknown, other, found, not_found, file, listed, status = results
    assert text(contents).splitlines()[2].startswith("step 2: read src/mine_1.py")
    assert text(step) == steps_of(whole, 2, 2)
    assert text(part) == whole[100:300]
    assert re.search(r"\nline \d+ \(chars \d+-\d+\): .*token 7919", text(lines))
    assert (unknown.is_error, other.is_error) == (True, True)
    assert "no original is kept under 'nobodyshandl'" in text(unknown)
    assert text(other).replace(foreign, "X") == text(unknown).replace("nobodyshandl", "X")
    hit = re.match(
        r"(\S+) step (\d+) \(read src/mine_3.py → .*\):\nline \d+ \(chars (\d+)-(\d+)\): (.*)",
        text(found),
    )
    assert hit
    own = steps_of(mine[hit[1]], int(hit[2]), int(hit[2]))
    assert own[int(hit[3]) : int(hit[4])] == hit[5]
    assert not_found.is_error
    assert text(file).splitlines()[0].startswith("[src/mine_3.py as it was read in ")
    assert text(file).splitlines()[1] in whole
    assert "\n 2 read src/mine_1.py → " in text(listed)
    assert "theirs" not in text(listed)
    assert text(status).startswith(f"{len(mine)} originals of 1 conversations, ")


def test_the_definitions_are_the_same_for_every_tenant_and_name_no_default(url: str) -> None:
    async def listed(tenant: str) -> str:
        async with mcp.Client(server(mine(url, tenant))) as client:
            return str((await client.list_tools()).model_dump_json(exclude={"meta"}))

    assert asyncio.run(listed("mine")) == asyncio.run(listed("nobody"))
    assert not any("default" in json.dumps(schema) for _, _, schema, _ in TOOLS)


def test_over_http_a_page_of_another_host_gets_nothing(url: str) -> None:
    """DNS rebinding: a browser is made to speak to the server under a name of somebody else."""
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}).encode()
    with over_http(url, "mine") as address:
        assert address.startswith("http://127.0.0.1:")
        for header, value in (("Host", "evil.example"), ("Origin", "http://evil.example")):
            request = urllib.request.Request(
                address, body, {"Content-Type": "application/json", header: value}
            )
            with pytest.raises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(request, timeout=20)
            assert refused.value.code in (403, 421)


# --- what the tools say, without a transport ------------------------------------------------------


def mine(url: str, tenant: str = "mine") -> OriginalsReader:
    return OriginalsReader(stores.open(url, tenant), lambda: 2.0)


def test_pin_takes_an_edit_back_and_the_block_stays_whole_from_then_on(tmp_path: Path) -> None:
    """Pinned by the server, seen by the session that made the edit, in its next request."""
    url = f"sqlite:///{tmp_path}/pins.db"
    ours = keep(url, "mine", "in-place")
    edit = next(row for row in ours.history() if len(row.refs) == 1)
    talk = json.loads(json.dumps(TALK).replace("src/mod_", "src/mine_"))
    whole = json.dumps(ours.recall(edit.handle))
    assert whole not in json.dumps(ours.fit(talk).request)
    assert "is whole again" in said(mine(url), "pin", {"handle": edit.handle}).text
    assert whole in json.dumps(ours.fit(talk).request)
    assert said(mine(url), "pin", {"handle": edit.handle}).text.endswith("is pinned already")
    ours.close()


def test_pin_keeps_a_file_of_the_conversation_written_last(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/pins.db"
    keep(url, "mine", "in-place").close()
    assert "from its next request on" in said(mine(url), "pin", {"file": "src/a.py"}).text
    assert mine(url).pins() == ["file:src/a.py"]


def test_a_handle_of_many_steps_is_not_pinned_as_a_whole(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/folds.db"
    ours = keep(url, "mine")
    folds = [row.handle for row in ours.history() if len(row.refs) > 1]
    told = said(mine(url), "pin", {"handle": folds[0]})
    assert "recall what is needed" in told.text
    assert mine(url).recall(folds[0])
    ours.close()


ODD = [
    ("pin", {"handle": "nobodyshandl"}, "no original is kept"),
    ("pin", {}, "give one of handle, text and file"),
    ("pin", {"text": "a", "file": "b"}, "give one of handle, text and file"),
    ("note", {}, "give a name and a text"),
    ("note", {"name": "plan", "text": "x" * 3_000}, "at most 2,000"),
    ("recall", {"search": "nowhere at all"}, "no line of what was left out holds"),
    ("recall", {"file": "nowhere"}, "no reading of 'nowhere' was left out; files there: src/"),
    ("recall", {"handle": "\x00" * 9}, "no original"),
]


@pytest.mark.parametrize(("name", "arguments", "words"), ODD)
def test_odd_calls_are_answered(url: str, name: str, arguments: Any, words: str) -> None:
    told = said(mine(url), name, arguments)
    assert told.failed
    assert words in told.text


def test_a_note_is_answered_as_the_conversation_will_keep_it(url: str) -> None:
    told = said(mine(url), "note", {"name": "plan", "text": "go"})
    assert (told.text, told.failed) == ("Kept: plan", False)


def test_an_empty_store_and_one_that_is_not_there_say_so(tmp_path: Path) -> None:
    empty = mine(f"sqlite:///{tmp_path}/new.db", "nobody")
    assert said(empty, "status", {}).text == "nothing is kept here yet"
    nowhere = said(mine("redis://127.0.0.1:1/0"), "status", {})
    assert nowhere.failed
    assert "cannot be read now" in nowhere.text


def test_what_was_purged_is_said_to_be(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/purged.db"
    keep(url, "mine")
    handle = next(iter(originals(url, "mine")))
    store = stores.open(url, "mine")
    stores.purge(store.store, lambda name: store, now=10**10, older_than=1.0)
    assert "was purged on 2286-11-20" in said(mine(url), "recall", {"handle": handle}).text


def test_without_the_sdk_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp_types", None)
    with pytest.raises(trimtab.errors.MissingExtra, match=r"trimtab\[mcp\]"):
        server(mine("memory:"))
