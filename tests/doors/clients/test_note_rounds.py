"""``wrap(client, notes=True)`` and ``trimtab proxy --notes``: what the model notes down is in every
later request, word for word, and no client sees it.

Knows what the provider receives and what a caller is told.
"""

from __future__ import annotations

import json

import pytest
import sdk_clients
from proxies import proxied
from recalled_files import EVERY, file
from sdk_clients import PROMPT

from trimtab_lab.testing import Answer, Call, StrictProvider

WINDOW = 12_000
TEXT = "Decided: port 7443 stays closed. Open: the parser's third case."


class Writer:
    """Notes something down after the second file, and reads on until much was cut."""

    def __init__(self):
        self.step = 0

    def __call__(self, record):
        self.step += 1
        if self.step == 3:
            return Answer("", [Call("note", {"name": "plan", "text": TEXT})])
        if self.step > 14:
            return Answer("All read.")
        return Answer(f"Reading {self.step}.", [Call("read", {"path": f"{self.step}.txt"})])


def history(client):
    own = getattr(client, "messages", None) or getattr(client, "input", None)
    return repr(own if own is not None else client.contents)


def read_all(client, stream):
    client.ask(PROMPT)
    said, seen, number = client.send(stream), [], 0
    while said.calls:
        seen += [name for _, name, _ in said.calls]
        number += 1
        client.give({call_id: file(number) for call_id, _, _ in said.calls})
        said = client.send(stream)
    return said, seen


def checked(provider, client, said, seen):
    assert provider.crashes == []
    assert said.text == "All read."
    assert set(seen) == {"read"}
    assert TEXT not in history(client)
    assert {record.status for record in provider.requests} == {200}
    assert all(record.violations == () for record in provider.requests)
    bodies = [json.dumps(record.body) for record in provider.requests]
    behind = next(n for n, body in enumerate(bodies) if TEXT in body)
    assert all(TEXT in body for body in bodies[behind:])
    assert json.dumps(file(1))[1:-1] not in bodies[-1]  # much was cut meanwhile


@EVERY
@pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
def test_a_wrapped_client_keeps_what_the_model_notes_down(sdk, stream):
    with StrictProvider(Writer(), window=WINDOW) as provider:
        client = sdk(provider.url)
        sdk_clients.wrap(client, window=WINDOW, notes=True)
        checked(provider, client, *read_all(client, stream))


@EVERY
def test_the_proxy_keeps_what_the_model_notes_down(sdk):
    with (
        StrictProvider(Writer(), window=WINDOW) as provider,
        proxied(provider.url, window=WINDOW, notes=True) as server,
    ):
        client = sdk(server.url)
        checked(provider, client, *read_all(client, True))


def test_without_the_setting_nobody_gets_the_tool():
    with StrictProvider(lambda record: Answer("Hi."), window=WINDOW) as provider:
        client = sdk_clients.Claude(provider.url)
        sdk_clients.wrap(client, window=WINDOW, recall=True)
        client.ask(PROMPT)
        client.send(False)
        assert '"note"' not in json.dumps(provider.requests[0].body)
