"""What look-ups cost is told apart in the dashboard and in the bill of a proxy's store."""

from __future__ import annotations

import json

from proxies import ask, proxied, settled
from recalled_files import file
from sdk_clients import PROMPT, Claude

from trimtab.cli.commands import main
from trimtab_lab.testing import Answer, Call, StrictProvider

WINDOW = 12_000


class Searcher:
    """Reads five files, then looks a line of the first one up, twice."""

    def __init__(self):
        self.step = 0

    def __call__(self, record):
        self.step += 1
        if self.step in (6, 7):
            return Answer("", [Call("recall", {"search": "line 150 of file 1"})])
        if self.step > 8:
            return Answer("Done.")
        return Answer("", [Call("read", {"path": f"{self.step}.txt"})])


def test_the_dashboard_and_the_bill_say_what_look_ups_cost(tmp_path, capsys):
    store = f"sqlite:///{tmp_path}/s.db"
    with (
        StrictProvider(Searcher(), window=WINDOW) as provider,
        proxied(provider.url, window=WINDOW, store=store, recall=True) as server,
    ):
        client, number = Claude(server.url), 0
        client.ask(PROMPT)
        said = client.send(False)
        while said.calls:
            number += 1
            client.give({call_id: file(number) for call_id, _, _ in said.calls})
            said = client.send(False)
        spend = json.loads(ask(settled(server).url, "GET", "/_trimtab/spend.json")[2])
        assert spend["look_ups"]["calls"] == 2
        cost, paid = (sum(spend[name]["dollars"].values()) for name in ("look_ups", "paid"))
        assert 0 < cost < paid
        page = ask(server.url, "GET", "/_trimtab/spend")[2].decode()
        assert "2 calls in which the model read what it looked up" in page
        server.__exit__()
    assert main(["bill", store]) == 0
    assert "for 2 look-ups of the model" in capsys.readouterr().out


def test_the_output_of_each_round_is_billed_once():
    """Before, a whole answer of two rounds was billed that of the first one twice."""
    script = [Answer("Let me look. " * 20, [Call("recall", {})]), "Done."]
    tool = {"name": "read", "input_schema": {"type": "object"}}
    body = {"model": "claude-sonnet-4-5", "max_tokens": 99, "tools": [tool],
            "messages": [{"role": "user", "content": "Hi."}]}  # fmt: skip
    with StrictProvider(script) as provider, proxied(provider.url, recall=True) as server:
        answer = json.loads(ask(server.url, "POST", "/v1/messages", json.dumps(body), {})[2])
        spend = json.loads(ask(settled(server).url, "GET", "/_trimtab/spend.json")[2])
        assert len(provider.requests) == 2
    assert spend["paid"]["tokens"]["output"] == answer["usage"]["output_tokens"] > 20
