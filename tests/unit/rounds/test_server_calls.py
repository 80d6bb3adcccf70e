"""A recall beside a call that the provider ran itself.  Knows OpenAI Responses' items."""

from __future__ import annotations

from trimtab.formats import FORMATS
from trimtab.rounds.hidden_exchanges import ExchangeMemory, hidden_exchange
from trimtab.rounds.request_layouts import runs

FORMAT = "openai-responses"
ASKED = [{"type": "message", "role": "user", "content": "go"}]
SEARCH = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {}}
RECALL = {"type": "function_call", "call_id": "c1", "name": "recall", "arguments": "{}"}
SAID = {"type": "message", "role": "assistant",
        "content": [{"type": "output_text", "text": "done", "annotations": []}]}  # fmt: skip


def taken(*items):
    """A rewriter that took one whole answer with these items."""
    rewriter = FORMATS[FORMAT].rewriter()
    rewriter.ours = frozenset(("recall",))
    rewriter.begin()
    rewriter.take_full_response({"id": "resp_1", "output": list(items)})
    return rewriter


def test_a_search_of_the_provider_s_own_does_not_keep_a_recall_from_being_answered():
    rewriter = taken(SEARCH, RECALL)
    assert rewriter.recalls == [RECALL]
    assert not rewriter.has_client_calls


def test_a_call_of_the_client_s_does():
    assert taken(RECALL, {**RECALL, "name": "read"}).has_client_calls
    assert taken(RECALL, {"type": "shell_call", "call_id": "s1", "action": {}}).has_client_calls


def test_a_turn_with_a_search_in_it_gets_back_what_the_client_did_not_see():
    shown = [SEARCH, SAID]
    assert list(runs(FORMAT, [*ASKED, *shown])) == [(1, 3)]
    memory = ExchangeMemory().of("provider", "a")
    real = [SEARCH, RECALL, {"type": "function_call_output", "call_id": "c1", "output": "x"}, SAID]
    key, hidden = hidden_exchange(FORMAT, ASKED, shown, real, [])
    memory.put("c", key, hidden, None)
    body = {"input": [*ASKED, *shown, *ASKED]}
    assert memory.restored(FORMAT, "c", body, None)["input"] == [*ASKED, *real, *ASKED]
