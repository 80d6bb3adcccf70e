"""The strict provider's log over HTTP, for tests that are not written in Python."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from trimtab_lab.testing import StrictProvider

ROOT = Path(__file__).resolve().parents[3]
ORPHAN = {
    "model": "gpt-4o",
    "messages": [{"role": "user", "content": "Go."},
                 {"role": "tool", "tool_call_id": "a", "content": "ok"}],
}  # fmt: skip


def log(provider: StrictProvider, method: str = "GET") -> tuple[int, dict]:
    answer = provider.respond(method, "/_requests", "", {}, b"")
    return answer.status, json.loads(b"".join(answer.chunks))


def test_the_log_says_what_was_sent_and_why_it_was_refused_and_holds_no_header() -> None:
    provider = StrictProvider(window=8_000)
    keys = {"authorization": "Bearer a-secret"}
    body = json.dumps(ORPHAN).encode()
    assert provider.respond("POST", "/v1/chat/completions", "", keys, body).status == 400
    status, found = log(provider)
    row = found["requests"][0]
    assert status == 200
    assert (row["status"], row["format"], row["body"]) == (400, "openai-chat", ORPHAN)
    assert row["refusal"] == "rule:orphan_result"
    assert row["violations"][0]["rule"] == "orphan_result"
    assert "a-secret" not in json.dumps(found)


def test_the_log_is_emptied_on_demand_and_other_methods_are_refused() -> None:
    provider = StrictProvider()
    provider.respond("POST", "/v1/chat/completions", "", {}, b"{}")
    assert len(log(provider, "DELETE")[1]["requests"]) == 1
    assert log(provider)[1] == {"requests": []}
    assert log(provider, "PUT")[0] == 405


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_the_command_listens_where_it_is_told_and_the_example_in_shell_works(host: str) -> None:
    command = [sys.executable, "-m", "trimtab_lab.testing", "--host", host]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        url = process.stdout.readline().strip()
        example = ROOT / "examples/strict-provider/check.sh"
        said = subprocess.run(
            ["sh", str(example), url], capture_output=True, text=True, check=True,
            env={**os.environ, "NO_PROXY": "*"},
        ).stdout  # fmt: skip
        assert "role 'tool'" in said
        with urllib.request.urlopen(f"{url}/_requests") as answer:
            assert len(json.load(answer)["requests"]) == 1
    finally:
        process.terminate()
        process.communicate(timeout=20)
