"""What a dated version of Anthropic's API refuses is repaired for who asks for that version."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

import trimtab
from trimtab_lab.testing import StrictProvider

DOCUMENT = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "d"}}
REQUEST: dict[str, Any] = {
    "model": "claude-sonnet-4-5",
    "max_tokens": 9,
    "temperature": 1.0,
    "top_p": 0.9,
    "messages": [
        {"role": "user", "content": [
            {"type": "text", "text": "q", "citations": [{"type": "char_location"}]},
        ]},
        {"role": "assistant", "content": [DOCUMENT, {"type": "text", "text": "a"}]},
        {"role": "user", "content": "go on"},
    ],
}  # fmt: skip
SENT = {
    "model": "claude-sonnet-4-5",
    "max_tokens": 9,
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "q"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "a"}]},
        {"role": "user", "content": "go on"},
    ],
}


def test_the_newest_version_gets_what_it_takes_and_the_oldest_all() -> None:
    for format in ("anthropic", "anthropic:2023-06-01"):
        assert trimtab.fit(REQUEST, window=9_000, format=format).request is REQUEST
    session = trimtab.Session(window=9_000, format="anthropic:2026-10-21")
    rules = {repair.rule for repair in session.fit(REQUEST).report.repairs}
    assert rules == {"sampling_refused"}, "no content goes before a refusal"
    fitted = session.fit(REQUEST, refused=["document_of_model", "citations_of_user"])
    assert fitted.request == SENT
    rules = {repair.rule for repair in fitted.report.repairs}
    assert rules == {"sampling_refused", "document_of_model", "citations_of_user"}


@pytest.mark.parametrize(("version", "status"), [("2023-06-01", 200), ("2026-10-21", 400)])
def test_the_strict_provider_answers_by_the_version_of_the_header(
    version: str, status: int
) -> None:
    with StrictProvider() as provider:
        headers = {"anthropic-version": version}
        answer = httpx.post(f"{provider.url}/v1/messages", json=REQUEST, headers=headers)
    assert answer.status_code == status


def test_a_wrapped_client_follows_the_version_that_its_sdk_sends() -> None:
    anthropic = pytest.importorskip("anthropic")
    with StrictProvider() as provider:
        client = anthropic.Anthropic(api_key="k", base_url=provider.url, max_retries=0)
        client = client.with_options(default_headers={"anthropic-version": "2026-10-21"})
        keywords = {key: REQUEST[key] for key in ("model", "max_tokens", "messages")}
        trimtab.wrap(client).messages.create(**keywords, extra_body={"temperature": 1.0})
        assert provider.requests[-1].body == SENT
