"""Row B22: the model itself takes out what it no longer needs, through a tool run in the proxy.

Knows what the provider receives and what a client is told.
"""

from __future__ import annotations

import json
import re

import pytest
from proxies import proxied
from recalled_files import EVERY, file
from sdk_clients import CLIENTS, PROMPT

import trimtab
from trimtab_lab.testing import Answer, Call, StrictProvider

WINDOW = 60_000
NAME = re.compile(r"p[0-9a-f]{6}(?=  [\d,]+ tokens)")


class Pruner:
    """Reads three files, lists what can go, takes the oldest out, asks for it once more, ends."""

    def __init__(self):
        self.number, self.listed, self.told = 0, [], []

    def __call__(self, record):
        text = json.dumps(record.body)
        self.number += 1
        if self.number <= 3:
            return Answer("", [Call("read", {"path": f"{self.number}.txt"})])
        if self.number == 4:
            return Answer("", [Call("prune", {})])
        self.told.append(text)
        if self.number == 5:
            self.listed = NAME.findall(text)
            if not self.listed:
                return Answer("Done.")
            return Answer("", [Call("prune", {"names": [self.listed[0]]})])
        if self.number == 6:
            return Answer("", [Call("prune", {"names": [self.listed[0], "p000000"]})])
        return Answer("Done.")


def conversation(sdk, server, pruner, *, stream=True):
    client = sdk(server.url)
    client.ask(PROMPT)
    said, number, seen = client.send(stream), 0, []
    while said.calls:
        seen += [name for _, name, _ in said.calls]
        number += 1
        client.give({call_id: file(number) for call_id, _, _ in said.calls})
        said = client.send(stream)
    return client, said, seen


@pytest.mark.row("B22")
@EVERY
def test_the_model_lists_results_and_takes_one_out_and_the_client_sees_nothing(sdk):
    pruner = Pruner()
    with (
        StrictProvider(pruner, window=WINDOW) as provider,
        proxied(provider.url, window=WINDOW, prune=True) as server,
    ):
        client, said, seen = conversation(sdk, server, pruner)
        assert provider.crashes == []
        assert said.text == "Done."
        assert seen == ["read"] * 3
        assert {record.status for record in provider.requests} == {200}
        assert all(record.violations == () for record in provider.requests)
        # Two closed steps can be named; the newest, which is going on, cannot.
        assert len(pruner.listed) >= 2
        before, after = provider.requests[4], provider.requests[5]
        assert "line 299 of file 1 " in json.dumps(before.body)
        assert "line 299 of file 1 " not in json.dumps(after.body)
        assert after.tokens < before.tokens - 2_000
        own = getattr(client, "messages", None) or getattr(client, "input", None)
        shown = repr(own if own is not None else client.contents)
        assert "prune" not in shown
        assert pruner.listed[0] not in shown


class Distiller(Pruner):
    """Reads four files, lists them, says the first in its own words and then the next two."""

    def __call__(self, record):
        text = json.dumps(record.body)
        self.number += 1
        if self.number <= 4:
            return Answer("", [Call("read", {"path": f"{self.number}.txt"})])
        if self.number == 5:
            return Answer("", [Call("prune", {})])
        self.told.append(text)
        if self.number == 6:
            self.listed = NAME.findall(text)
            words = {"name": self.listed[0], "words": "File 1 is dull."}
            return Answer("", [Call("distill", words)])
        if self.number == 7:
            first, last = self.listed[1:3]
            words = {"first": first, "last": last, "words": "Files 2 and 3 are alike."}
            return Answer("", [Call("compress", words)])
        return Answer("Done.")


@pytest.mark.row("B22")
@EVERY
def test_the_model_says_results_in_its_own_words_and_the_client_sees_nothing(sdk):
    model = Distiller()
    with (
        StrictProvider(model, window=WINDOW) as provider,
        proxied(provider.url, window=WINDOW, prune=True) as server,
    ):
        client, said, seen = conversation(sdk, server, model)
        assert provider.crashes == []
        assert (said.text, seen) == ("Done.", ["read"] * 4)
        assert {record.status for record in provider.requests} == {200}
        last = json.dumps(provider.requests[-1].body)
        assert "in the model's own words" in last
        for number, words in ((1, "File 1 is dull."), (2, "Files 2 and 3"), (3, "")):
            assert f"line 299 of file {number} " not in last
            assert words in last
        own = getattr(client, "messages", None) or getattr(client, "input", None)
        assert "distill" not in repr(own if own is not None else client.contents)


@pytest.mark.row("B22")
def test_a_stale_name_is_told_why_and_the_valid_ones_are_listed():
    pruner = Pruner()
    with (
        StrictProvider(pruner, window=WINDOW) as provider,
        proxied(provider.url, window=WINDOW, prune=True) as server,
    ):
        conversation(CLIENTS[0], server, pruner)
        told = pruner.told[-1]
        assert f"{pruner.listed[0]} stays: it was shortened or taken out before" in told
        assert "p000000 stays: it is no name in this conversation" in told
        assert pruner.listed[1] in told.rpartition("What can be taken out, oldest first:")[2]


@pytest.mark.row("B22")
def test_nothing_is_put_into_messages_so_that_no_nudge_can_pile_up():
    """No ids, tags or reminders stand in any message: only the tool's own results name anything."""
    with (
        StrictProvider(["one", "two", "three"]) as provider,
        proxied(provider.url, window=WINDOW, prune=True) as server,
    ):
        client = CLIENTS[0](server.url)
        for text in (PROMPT, "And?", "And then?"):
            client.ask(text)
            client.send(False)
        first, *_, last = provider.requests
        assert last.body["messages"][: len(first.body["messages"])] == first.body["messages"]
        assert [m["role"] for m in last.body["messages"]].count("user") == 3
        names = [tool["function"]["name"] for tool in last.body["tools"]]
        assert names == ["read", "recall", "prune", "distill", "compress"]
        assert last.body["tools"] == first.body["tools"]


@pytest.mark.row("B22")
@pytest.mark.parametrize("setting", [{}, {"recall": True}], ids=["neither", "recall alone"])
def test_the_tool_is_offered_only_where_it_was_asked_for(setting):
    with StrictProvider() as provider, proxied(provider.url, window=WINDOW, **setting) as server:
        client = CLIENTS[0](server.url)
        client.ask(PROMPT)
        client.send(False)
        assert "prune" not in json.dumps(provider.requests[0].body["tools"])


@pytest.mark.row("B22")
def test_a_protected_tool_s_results_cannot_be_taken_out():
    pruner = Pruner()
    with (
        StrictProvider(pruner, window=WINDOW) as provider,
        proxied(
            provider.url, window=WINDOW, prune=True, fit=trimtab.Settings(protected_tools=["read"])
        ) as it,
    ):
        client = CLIENTS[0](it.url)
        client.ask(PROMPT)
        said, number = client.send(True), 0
        while said.calls and number < 3:
            number += 1
            client.give({call_id: file(number) for call_id, _, _ in said.calls})
            said = client.send(True)
        assert "There is nothing that could be taken out." in json.dumps(provider.requests[4].body)
