"""What is hidden is read from a store once for each turn.  Knows what a store is asked."""

from __future__ import annotations

import pytest

from trimtab.rounds.hidden_exchanges import ExchangeMemory, hidden_exchange

USER = {"role": "user", "content": "go"}
REAL = [{"role": "assistant", "content": "looked"}, {"role": "assistant", "content": "gone"}]


def talk(turns):
    said = ({"role": "assistant", "content": f"gone {n}"} for n in range(turns))
    return {"messages": [USER, *(message for one in said for message in (one, USER))]}


class Store:
    """Counts what it is asked."""

    def __init__(self):
        self.rows, self.reads, self.singles, self.answers = {}, 0, [], True

    def read(self, conversation):
        self.reads += 1
        return dict(self.rows) if self.answers else {}

    def exchange(self, conversation, key):
        self.singles.append(key)
        return self.rows.get(key) if self.answers else None

    def keep(self, conversation, key, value):
        self.rows[key] = value

    def hide(self, body, at):
        """What another process stored of the turn at ``at``."""
        messages = body["messages"]
        key, _ = hidden_exchange("openai-chat", messages[:at], messages[at : at + 1], [], [])
        self.rows[key] = {"real": REAL, "results": []}


def restored(memory, body, store):
    hidden = memory.of("", "").restored("openai-chat", "c", body, store)
    return sum(message["content"] == "looked" for message in hidden["messages"])


def test_a_long_history_is_read_at_once_and_later_turns_one_by_one():
    memory, store = ExchangeMemory(), Store()
    store.hide(talk(20), 3)
    assert restored(memory, talk(20), store) == 1
    assert (store.reads, store.singles) == (1, [])
    assert restored(memory, talk(20), store) == 1
    assert (store.reads, store.singles) == (1, [])
    store.hide(talk(21), 41)
    assert restored(memory, talk(21), store) == 2
    assert (store.reads, len(store.singles)) == (1, 1)


@pytest.mark.parametrize("turns", [1, 20])
def test_a_store_that_does_not_answer_is_asked_again(turns):
    memory, store = ExchangeMemory(), Store()
    store.hide(talk(turns), 1)
    store.answers = False
    assert restored(memory, talk(turns), store) == 0
    store.answers = True
    assert restored(memory, talk(turns), store) == 1
