"""Makes the pictures of the dashboard in docs/pictures, light and dark.

    python scripts/pictures.py              all of them
    python scripts/pictures.py edit         those whose name begins so

A proxy stands before the strict provider; the recorded session of examples/ goes through it turn
by turn, with a window of 32k, and Chromium takes the pictures.  Needs the extra ``dev``, Pillow and
Chromium (apt-get install chromium).
"""

from __future__ import annotations

import io
import json
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PICTURES = ROOT / "docs" / "pictures"
MAX_BYTES = 150_000
WINDOW = 32_000
WIDE, NARROW = 1_060, 390
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests" / "support")]

OTHERS = (
    ("Which callers rely on round_to_hour?", 14),
    ("Add a test for the empty log file.", 10),
    ("Explain how the report is sorted.", 6),
)
"""Shorter sessions for the list: (first prompt, number of messages after it)."""


def main(wanted: str) -> int:
    """Write the pictures; 1 where one is too large for the repository."""
    from browser import tab
    from proxies import proxied, settled

    from trimtab_lab.testing import StrictProvider

    with (
        StrictProvider(answer="Done.", window=WINDOW) as provider,
        proxied(provider.url, window=WINDOW) as server,
        tab() as page,
    ):
        request = json.loads((ROOT / "examples" / "session.anthropic.json").read_text("utf-8"))
        request["system"][0]["text"] += "\n\nWorking directory: /home/dev/tally"
        for prompt, most in OTHERS:
            first = {"role": "user", "content": prompt}
            drive(server.url, {**request, "messages": [first, *request["messages"][1:most]]})
        drive(server.url, request)
        settled(server)
        page.open(server.dashboard)
        home = f"{server.url}/_trimtab/"
        session = page.eval("document.querySelector('td.first a').href")
        page.open(session)
        edit = page.eval("document.querySelector('[data-part=edits] td.first a').href")
        shots = {
            "session": (session, WIDE), "sessions": (home, WIDE),
            "edit": (f"{edit}?step=1", WIDE), "spend": (f"{home}spend", WIDE),
            "narrow": (session, NARROW),
        }  # fmt: skip
        large = 0
        for name, (address, width) in shots.items():
            if name.startswith(wanted):
                page.open(address)
                for dark in (False,) if name == "narrow" else (False, True):
                    path = PICTURES / f"{name}{'-dark' if dark else ''}.png"
                    path.write_bytes(fewer_colours(taken(page, width, dark)))
                    large += path.stat().st_size > MAX_BYTES
                    print(f"{path.relative_to(ROOT)}  {path.stat().st_size:,} bytes")
    return 1 if large else 0


def drive(url: str, request: dict[str, Any]) -> None:
    """Send the session as its agent did: each request has one turn more."""
    headers = {
        "content-type": "application/json", "anthropic-version": "2023-06-01",
        "user-agent": "claude-cli/2.1.330 (external, cli)", "x-api-key": "none",
    }  # fmt: skip
    for messages in turns(request["messages"]):
        body = json.dumps({**request, "messages": marked(messages)}).encode()
        asked = urllib.request.Request(f"{url}/v1/messages", body, headers)
        with urllib.request.urlopen(asked) as answer:
            answer.read()


def turns(messages: list[Any]) -> Iterator[list[Any]]:
    """The history before each answer of the model."""
    for number, message in enumerate(messages, 1):
        if message["role"] == "user":
            yield messages[:number]


def marked(messages: list[Any]) -> list[Any]:
    """``messages`` with a cache breakpoint at the end, as agents set it."""
    last = json.loads(json.dumps(messages[-1]))
    if isinstance(last["content"], str):
        last["content"] = [{"type": "text", "text": last["content"]}]
    last["content"][-1]["cache_control"] = {"type": "ephemeral"}
    return [*messages[:-1], last]


def taken(page: Any, width: int, dark: bool) -> bytes:
    """A PNG of the page."""
    import base64

    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    page.call("Emulation.setEmulatedMedia", features=[scheme])
    size = {"width": width, "height": 240, "deviceScaleFactor": 1, "mobile": False}
    page.call("Emulation.setDeviceMetricsOverride", **size)
    height = min(int(page.eval("document.documentElement.scrollHeight")), 1_200)
    page.call("Emulation.setDeviceMetricsOverride", **{**size, "height": height})
    return base64.b64decode(page.call("Page.captureScreenshot", format="png")["data"])


def fewer_colours(data: bytes) -> bytes:
    """The picture with 128 colours: a page has few."""
    from PIL import Image

    out = io.BytesIO()
    found = Image.open(io.BytesIO(data)).convert("RGB").quantize(128)
    found.save(out, "PNG", optimize=True)
    return out.getvalue()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else ""))
