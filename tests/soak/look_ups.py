"""Programs that look up what was cut, while it is being cut: the command line, an MCP client.

A handle that a provider was shown is found at every door, whatever happened to the store; what it
gives is judged by its rows.
"""

from __future__ import annotations

import asyncio
import os
import random
import re
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import mcp
from own_servers import OwnServer, free_port

from soak.clients import PATIENCE_SECONDS, Findings
from soak.rows import wrong_original, wrong_rows
from trimtab.errors import StoreError

ADDRESS = re.compile(r"http://\S+token=\S+")
COMMAND = [sys.executable, "-m", "trimtab"]


class McpServer(OwnServer):
    """``trimtab mcp --http`` for one tenant of a store."""

    def __init__(self, store: str, tenant: str, env: dict[str, str], log: Path) -> None:
        port = free_port()
        command = [*COMMAND, "mcp", "--store", store, "--tenant", tenant, "--http"]
        super().__init__([*command, "--port", str(port)], port, f"http://127.0.0.1:{port}/mcp")
        self.env, self.log = env, log

    def launched(self) -> subprocess.Popen[bytes]:
        """Its process; where it listens, with its token, is the first line of its log."""
        with self.log.open("wb") as log:
            return subprocess.Popen(
                self.command, stdout=log, stderr=log, env=self.env, start_new_session=True
            )

    @property
    def address(self) -> str:
        """As it prints it.  Raises StoreError where it has not yet."""
        if found := ADDRESS.search(self.log.read_text("utf-8", "replace")):
            return found[0]
        raise StoreError("it says no address")


class Programs:
    """What looks into one store.  ``tenant``: of the conversations whose handles come here."""

    def __init__(self, store: str, tenant: str, folder: Path, found: Findings) -> None:
        self.store, self.tenant, self.found = store, tenant, found
        self.rng, self.lock = random.Random(store + tenant), threading.Lock()
        self.env = {**os.environ, "HOME": str(folder), "XDG_STATE_HOME": str(folder)}
        name = re.sub(r"\W+", "-", f"mcp-{store}-{tenant}")
        self.server = McpServer(store, tenant, self.env, folder / f"{name}.log")

    def one(self, handle: str, owner: str) -> None:
        """By one of the doors, as often as the store is away."""
        door = self.rng.choice((self.recall, self.search, self.pin, self.ask, self.ask_search))
        until, said = time.monotonic() + PATIENCE_SECONDS, ""
        while time.monotonic() < until:
            try:
                wrong = door(handle, owner)
            except (StoreError, OSError) as error:
                said = str(error)
                time.sleep(0.3)
                continue
            self.found.count(f"look-ups by programs: {door.__name__}")
            if wrong:
                self.found.fault(f"{owner}, {door.__name__} {handle}: {wrong[0]}")
            return
        self.found.fault(f"{owner}, {door.__name__} {handle}: never: {said[:300]}")

    # --- the command line ---

    def recall(self, handle: str, owner: str) -> list[str]:
        """The whole original."""
        text = self.command("recall", handle, "--whole")
        return list(wrong_original(text.removesuffix("\n"), owner)) if text.strip() else ["empty"]

    def search(self, handle: str, owner: str) -> list[str]:
        """Lines of it."""
        return list(wrong_rows(self.command("search", "module_3 changed", handle), owner))

    def pin(self, handle: str, owner: str) -> list[str]:
        """Sent again from the next request on, or the reason why not."""
        self.command("pin", handle)
        return []

    def command(self, name: str, *given: str) -> str:
        """What it prints.  Raises StoreError where it ends with another code than 0."""
        place = ["--store", self.store, "--tenant", self.tenant]
        done = subprocess.run(
            [*COMMAND, name, *given, *place], capture_output=True, text=True, env=self.env,
            timeout=120, check=False,
        )  # fmt: skip
        if "Traceback" in done.stderr:
            self.found.fault(f"trimtab {name}: {done.stderr[-300:]}")
        if done.returncode:
            raise StoreError(f"{done.returncode}: {done.stderr}")
        return done.stdout

    # --- an MCP client ---

    def ask(self, handle: str, owner: str) -> list[str]:
        """The original, or of a fold its contents."""
        text = self.asked(handle=handle)
        return list(wrong_rows(text, owner)) if text.strip() else ["empty"]

    def ask_search(self, handle: str, owner: str) -> list[str]:
        """In all conversations of the tenant."""
        return list(wrong_rows(self.asked(search="module_3 changed"), ""))

    def asked(self, **given: Any) -> str:
        """What the tool answers.  Raises StoreError where it says that it found nothing."""
        with self.lock:  # two clients ask through it
            self.server.start()

        async def run() -> Any:
            async with mcp.Client(self.server.address) as client:
                return await client.call_tool("recall", given)

        try:
            done = asyncio.run(run())
        except Exception as error:  # of the protocol's client, in groups
            raise StoreError(told(error)) from error
        text = "\n".join(part.text for part in done.content)
        if done.is_error:
            raise StoreError(text)
        return text

    def close(self) -> None:
        """End the server."""
        with suppress(OSError):
            self.server.kill()


def told(error: BaseException) -> str:
    """An error by the first one in it."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}"
