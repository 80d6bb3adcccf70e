"""bench/kits: what it reads of a recording, and the versions that its page names."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "bench"))

from kits import command, sessions  # noqa: E402
from kits.tables import share, table  # noqa: E402


def test_the_page_names_each_kit_at_the_version_that_is_installed() -> None:
    page = (ROOT / "docs" / "why" / "kits.md").read_text("utf-8")
    pinned = [pin.split("==") for pin in command.PINS if "==" in pin]
    assert len(pinned) == 4
    missing = [f"{name} {version}" for name, version in pinned if f"{name} {version}" not in page]
    assert missing == []


def test_the_words_of_a_custom_tools_call_are_read_like_a_functions() -> None:
    custom = {"id": "c1", "type": "custom", "custom": {"name": "patch", "input": "a\nb"}}
    record = {
        "format": "openai-chat", "model": "gpt-5",
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "Go"}]},
            {"role": "assistant", "content": None, "tool_calls": [custom]},
            {"role": "tool", "tool_call_id": "c1", "content": "ok"},
            {"role": "assistant", "content": "Done."},
        ],
    }  # fmt: skip
    messages = list(sessions._chat(record))
    assert [list(sessions.texts(message)) for message in messages] == [
        ["Go"], ["", "a\nb"], ["ok"],
    ]  # fmt: skip


def test_a_share_of_nothing_is_no_share() -> None:
    assert table(("a", "b"), [(share([True, False]), share([]))]).splitlines()[-1] == "| 50 % | – |"
