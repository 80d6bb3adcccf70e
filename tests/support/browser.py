"""A real Chromium, driven over its debugging pipe: pages loaded, looked at, pictured.

Knows the DevTools protocol as far as needed, over the WebSocket that Chromium opens on loopback.
Asserts nothing.
"""

from __future__ import annotations

import base64
import itertools
import json
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from world_needs import absent, browser

WAIT_SECONDS = 30.0


class Tab:
    """One page."""

    def __init__(self, socket: Any) -> None:
        self._socket, self._numbers = socket, itertools.count(1)
        self.events: list[dict[str, Any]] = []

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """One command; events that come before its answer are kept."""
        number = next(self._numbers)
        self._socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self._socket.recv(timeout=WAIT_SECONDS))
            if message.get("id") == number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                found: dict[str, Any] = message["result"]
                return found
            self.events.append(message)

    def wait(self, method: str) -> dict[str, Any]:
        """The next event of this kind."""
        for index, event in enumerate(self.events):
            if event.get("method") == method:
                return self.events.pop(index)
        while True:
            message = json.loads(self._socket.recv(timeout=WAIT_SECONDS))
            if message.get("method") == method:
                found: dict[str, Any] = message
                return found
            self.events.append(message)

    def open(self, url: str) -> None:
        """Load a page."""
        self.events = [e for e in self.events if e.get("method") != "Page.loadEventFired"]
        self.call("Page.navigate", url=url)
        self.wait("Page.loadEventFired")

    def eval(self, script: str) -> Any:
        """The value of an expression in the page."""
        found = self.call("Runtime.evaluate", expression=script, returnByValue=True)
        if "exceptionDetails" in found:
            raise RuntimeError(found["exceptionDetails"])
        return found["result"].get("value")

    def click(self, script: str) -> None:
        """Click the element that an expression gives; returns when the next page has loaded."""
        self.events = [e for e in self.events if e.get("method") != "Page.loadEventFired"]
        self.eval(f"({script}).click()")
        self.wait("Page.loadEventFired")

    def picture(self, path: Path, *, width: int = 1180, dark: bool = False) -> None:
        """The whole page as a PNG."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        flat = {"width": width, "height": 320, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", **flat)
        height = int(self.eval("document.documentElement.scrollHeight"))
        size = {**flat, "height": min(max(height, 320), 2_400)}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        data = self.call("Page.captureScreenshot", format="png")["data"]
        path.write_bytes(base64.b64decode(data))


@contextmanager
def tab(*arguments: str) -> Iterator[Tab]:
    """A tab of a Chromium of its own."""
    try:
        from websockets.sync.client import connect
    except ImportError:
        absent("websockets is not installed: pip install websockets")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        command = [browser(), "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run",
                   f"--user-data-dir={home}", "--remote-debugging-port=0", "--hide-scrollbars",
                   "--disable-dev-shm-usage", *arguments, "about:blank"]  # fmt: skip
        with open(Path(home) / "log", "wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            port = _port(Path(home))
            page = _first_page(port)
            with connect(page, max_size=None, proxy=None) as socket:
                found = Tab(socket)
                found.call("Page.enable")
                found.call("Runtime.enable")
                found.call("Log.enable")
                yield found
        finally:
            process.terminate()
            process.wait(20)


def _port(home: Path) -> int:
    """Where Chromium listens: it writes it down."""
    file, deadline = home / "DevToolsActivePort", time.monotonic() + WAIT_SECONDS
    while time.monotonic() < deadline:
        if file.exists() and len(lines := file.read_text().splitlines()) == 2:
            return int(lines[0])
        time.sleep(0.05)
    raise RuntimeError(f"Chromium did not start: {(home / 'log').read_text()[-500:]}")


def _first_page(port: int) -> str:
    import urllib.request

    deadline = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < deadline:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/json") as answer:
            pages = [one for one in json.load(answer) if one["type"] == "page"]
        if pages:
            return str(pages[0]["webSocketDebuggerUrl"])
        time.sleep(0.05)
    raise RuntimeError("Chromium shows no page")
