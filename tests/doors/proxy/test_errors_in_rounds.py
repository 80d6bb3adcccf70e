"""A provider that fails while the proxy answers a recall: clients see an error, never an empty
success.

Knows what each SDK raises.
"""

from __future__ import annotations

import anthropic
import botocore.exceptions
import openai
import pytest
from google.genai import errors as genai_errors
from proxies import proxied, settled
from recalled_files import EVERY
from sdk_clients import PROMPT

from trimtab_lab.testing import Answer, Call, Cut, Refuse, StrictProvider

RAISED = (
    openai.APIError, anthropic.APIError, genai_errors.APIError, botocore.exceptions.ClientError,
    botocore.exceptions.BotoCoreError, ConnectionError,
)  # fmt: skip
RECALL = Call("recall", {"handle": "none", "end": 400})


def status_of(error: BaseException) -> int | None:
    """What an SDK says was the HTTP status."""
    if isinstance(error, botocore.exceptions.ClientError):
        return error.response["ResponseMetadata"].get("HTTPStatusCode")
    return getattr(error, "status_code", None) or getattr(error, "code", None)


@EVERY
@pytest.mark.parametrize(
    ("stream", "when", "status"),
    [(False, "rate", 429), (True, "server_error", 500), (True, "overloaded", 529)],
)
def test_a_refusal_of_the_second_round_reaches_the_client_as_it_came(sdk, stream, when, status):
    script = [Answer("", [RECALL]), Refuse(when, status=status, retry_after=0), "and here I am"]
    with (
        StrictProvider(script) as provider,
        proxied(provider.url, window=50_000, recall=True) as server,
    ):
        client = sdk(server.url)
        client.ask(PROMPT)
        with pytest.raises(RAISED) as raised:
            client.send(stream)
        assert status_of(raised.value) == status
        assert len(provider.requests) == 2
        records = settled(server).proxy.addons.records
        assert records.activity.totals["survived"] == 0
        assert client.send(stream).text == "and here I am", "its own retry goes through"


@EVERY
def test_behind_the_first_words_of_a_stream_an_error_breaks_it_in_the_client_s_own_format(sdk):
    barn = {"error": {"message": "the barn burns", "type": "x", "status": "UNAVAILABLE"}}
    script = [Answer("Let me look.", [RECALL]), Refuse("opaque", status=503, body=barn)]
    with (
        StrictProvider(script) as provider,
        proxied(provider.url, window=50_000, recall=True) as server,
    ):
        client = sdk(server.url)
        client.ask(PROMPT)
        with pytest.raises(Exception) as raised:  # noqa: PT011 (the SDKs share no class)
            client.send(True)
        assert "the barn burns" in str(raised.value)
        assert settled(server).proxy.addons.records.activity.totals["survived"] == 0


@EVERY
def test_a_provider_that_hangs_up_in_the_second_round_is_no_end_of_the_answer(sdk):
    script = [Answer("", [RECALL]), Cut(0)]
    with (
        StrictProvider(script) as provider,
        proxied(provider.url, window=50_000, recall=True) as server,
    ):
        client = sdk(server.url)
        client.ask(PROMPT)
        with pytest.raises(Exception) as raised:  # noqa: PT011
            client.send(True)
        assert status_of(raised.value) == 502, repr(raised.value)
