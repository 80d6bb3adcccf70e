"""What LiteLLM's hooks do with a request, its refusals and its answer.

Knows the arguments that LiteLLM hands over; LiteLLM's own server is in world/test_litellm_proxy.py.
"""

from __future__ import annotations

from typing import Any

import pytest
from litellm_calls import CALLS, KINDS, arguments
from litellm_errors import BadRequestError

import trimtab
from trimtab.clients.guard import Guard
from trimtab.clients.litellm_hooks import Requests, tenant_of

REFUSED = "This model's maximum context length is 6000 tokens. However, you requested 9000 tokens."


def tokens(call: str, given: dict[str, Any]) -> int:
    format, key = CALLS[call]
    names = (key, "system", "tools", "instructions")
    body = {name: given[name] for name in names if given.get(name)}
    return trimtab.count_tokens({"model": "gpt-4o", **body}, format=format)


@KINDS
def test_a_request_is_fitted_whole_and_no_other_argument_changes(call):
    given = arguments(call)
    requests = Requests(lambda arguments: Guard(window=8_000))
    sent = requests.fitted(given, call)
    assert tokens(call, sent) <= 8_000 < tokens(call, given)
    key = CALLS[call][1]
    assert {name: sent[name] for name in sent if name != key} == {
        name: given[name] for name in given if name != key
    }
    assert given == arguments(call)


@KINDS
def test_what_fits_is_the_very_same_object(call):
    given = arguments(call)
    assert Requests(lambda arguments: Guard(window=100_000)).fitted(given, call) is given


@KINDS
def test_a_second_attempt_after_a_refusal_is_smaller_and_the_limit_is_known_from_then_on(call):
    guard = Guard(window=100_000)
    requests, given = Requests(lambda arguments: guard), arguments(call)
    first = requests.fitted(given, call)
    requests.refused(first, BadRequestError(REFUSED), call)
    second = requests.fitted(given, call)
    assert tokens(call, second) <= 6_000 < tokens(call, first)
    requests.answered(second, {"usage": {"prompt_tokens": 5_000}})
    assert guard.stats.recovered == 1
    later = requests.fitted(arguments(call, "call-2"), call)
    assert tokens(call, later) <= 6_000


@KINDS
def test_what_by_our_count_cannot_fit_goes_again_smaller_after_a_refusal(call):
    guard = Guard(window=60)
    requests, given = Requests(lambda arguments: guard), arguments(call)
    first = requests.fitted(given, call)
    assert first is given
    requests.refused(first, BadRequestError(REFUSED), call)
    second = requests.fitted(given, call)
    assert tokens(call, second) <= 6_000 < tokens(call, first)


@KINDS
def test_an_answer_to_what_by_our_count_cannot_fit_teaches_the_count(call):
    guard = Guard(window=60)
    requests, first = Requests(lambda arguments: guard), arguments(call)
    assert requests.fitted(first, call) is first
    requests.answered(first, {"usage": {"prompt_tokens": 9_000}})
    assert len(guard.session._observed.calibrations) == 1


def test_a_fallback_to_another_model_keeps_that_models_name():
    guard = Guard(window=100_000)
    requests, given = Requests(lambda arguments: guard), arguments("acompletion")
    requests.refused(requests.fitted(given, "acompletion"), BadRequestError(REFUSED), "acompletion")
    other = arguments("acompletion", model="another-model")
    assert requests.fitted(other, "acompletion")["model"] == "another-model"


def test_litellms_own_translation_of_a_request_is_not_fitted_again():
    made = list[Guard]()

    def guard(arguments: Any) -> Guard:
        made.append(Guard(window=8_000))
        return made[-1]

    requests = Requests(guard)
    requests.fitted(arguments("anthropic_messages"), "anthropic_messages")
    inner = arguments("aresponses")
    assert requests.fitted(inner, "aresponses") is inner
    requests.refused(inner, BadRequestError(REFUSED), "aresponses")
    assert len(made) == 1


@pytest.mark.parametrize("call", ["aembedding", "aimage_generation", "arerank", ""])
def test_what_asks_for_no_answer_of_a_model_is_left_alone(call):
    given = {"model": "m", "input": ["text " * 9_000], "litellm_call_id": "1"}
    assert Requests(lambda arguments: Guard(window=100)).fitted(given, call) is given


def test_requests_whose_answer_never_comes_are_forgotten_in_the_end(monkeypatch):
    monkeypatch.setattr("trimtab.clients.litellm_hooks.MAX_RUNNING", 3)
    guard = Guard(window=8_000)
    requests = Requests(lambda arguments: guard)
    for n in range(9):
        requests.fitted(arguments("acompletion", str(n)), "acompletion")
    assert len(requests._running) == 3


@pytest.mark.parametrize("where", ["metadata", "litellm_metadata"])
def test_a_virtual_key_is_a_tenant(where):
    assert tenant_of({where: {"user_api_key_hash": "abc"}}) == "litellm/abc"
    assert tenant_of({where: {}}) == tenant_of({}) == "litellm/local"
