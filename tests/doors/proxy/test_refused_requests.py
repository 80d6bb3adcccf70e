"""A fault that the provider names, through the proxy: one send more, and none after a restart.

Knows small requests with each fault (``refused_requests``) and what reaches the provider.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from proxies import ask, proxied
from refused_requests import FAULTS

from trimtab_lab.testing import Refuse, StrictProvider

PATHS = {
    "openai-chat": "/v1/chat/completions",
    "openai-responses": "/v1/responses",
    "anthropic": "/v1/messages",
}
JSON = {"content-type": "application/json", "authorization": "Bearer sk-one"}
CASES = {
    "reasoning_content": "'messages.1' : for 'role:assistant' the following must be satisfied["
    "('messages.1' : property 'reasoning_content' is unsupported)]",
    "output fields of a picture": "Unknown parameter: 'input[1].action'.",
    "mark of thinking": "messages.1.content.0.thinking.cache_control: Extra inputs are not "
    "permitted",
    "late system": "System message must be at the beginning.",
    "asks above 4096": "max_tokens is too large: 8192. This model supports at most 4096 "
    "completion tokens, whereas you provided 8192.",
    "12 images of 10": "Too many images in request. Max is 10.",
}


class Provider:
    """Refuses what has the fault."""

    def __init__(self, name: str) -> None:
        self.fault, self.words = FAULTS[name], CASES[name]

    def __call__(self, record: Any) -> Any:
        if self.fault.is_in(record.body):
            return Refuse("named", status=400, body={"error": {"message": self.words}})
        return "OK"


@pytest.mark.parametrize("name", CASES)
def test_a_named_fault_costs_one_send_and_after_a_restart_none(name: str, tmp_path: Path) -> None:
    answer = Provider(name)
    fault, path = answer.fault, PATHS[answer.fault.format]
    with StrictProvider(answer) as provider:
        for requests, refusals in (([fault.request(), fault.longer()], 1), ([fault.longer()], 0)):
            before = len(provider.requests)
            store = f"sqlite:///{tmp_path}/s.db"
            with proxied(provider.url, store=store, window=10_000_000) as server:
                for body in requests:
                    status, _, got = ask(server.url, "POST", path, json.dumps(body), JSON)
                    assert status == 200, got
                server.proxy.tenants.close()
            sent = provider.requests[before:]
            assert sum(record.status == 400 for record in sent) == refusals
        longer = [record.body for record in provider.requests if record.status == 200]
        assert longer[-1] == longer[-2], "the same request before and after"


def test_another_conversation_is_sent_as_it_came() -> None:
    answer = Provider("reasoning_content")
    with StrictProvider(answer) as provider, proxied(provider.url, window=10_000_000) as server:
        for begin in ("", "Something else.", "A third thing."):
            body = answer.fault.request(begin)
            path = PATHS[answer.fault.format]
            assert ask(server.url, "POST", path, json.dumps(body), JSON)[0] == 200
        statuses = [record.status for record in provider.requests]
        assert statuses == [400, 200, 400, 200, 200], (
            "a second conversation makes it the endpoint's"
        )
