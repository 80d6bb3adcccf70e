"""What leaves a process: results, reports and errors do; a session says why not."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import pytest
from shapes import session

import trimtab
from trimtab import CannotFit, Settings, errors
from trimtab.request.fitted import facts_of
from trimtab.stores.memory import MemoryStore

TOO_LONG = session("openai-chat", steps=16)
STRICT = Settings(strict=True)
WAYS: dict[str, Callable[[Any], Any]] = {
    "pickle": lambda value: pickle.loads(pickle.dumps(value)),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
}


def raised(kind: type[BaseException], *args: Any, **keywords: Any) -> Any:
    with pytest.raises(kind) as caught:
        trimtab.fit(*args, **keywords)
    return caught.value


def test_every_error_keeps_its_text_and_its_facts() -> None:
    orphan = {"messages": [{"role": "tool", "tool_call_id": "x", "content": "y"}]}
    kinds = [k for k in vars(errors).values() if isinstance(k, type)
             and issubclass(k, errors.TrimtabError) and k is not CannotFit]  # fmt: skip
    made = [raised(CannotFit, TOO_LONG, window=2),
            raised(errors.NotAccepted, orphan, window=4000, settings=STRICT)]  # fmt: skip
    for error in [*made, *(kind("what to do") for kind in kinds)]:
        for way in WAYS.values():
            again = way(error)
            assert type(again) is type(error)
            assert str(again) == str(error)
            assert vars(again) == vars(error)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("source", ["fit", "session", "repair"])
def test_a_result_keeps_all_that_it_tells(source: str, way: str) -> None:
    make: dict[str, Callable[[], Any]] = {
        "fit": lambda: trimtab.fit(
            TOO_LONG, window=4000, settings=Settings(pins=[lambda block: False])
        ),
        "session": lambda: trimtab.Session(
            window=4000, settings=Settings(on_event=lambda e: None)
        ).fit(TOO_LONG),
        "repair": lambda: trimtab.repair(TOO_LONG),
    }
    fitted = make[source]()
    for one in (fitted, WAYS[way](fitted)):
        again = WAYS[way](one)
        assert again.request == fitted.request
        assert again.report == fitted.report
        assert again.report.as_dict() == fitted.report.as_dict()
        assert again.messages == fitted.messages
        assert vars(facts_of(again)) == vars(facts_of(again))
        for edit in fitted.report.edits:
            assert again.recall(edit.handle) == fitted.recall(edit.handle)


@pytest.mark.parametrize("way", WAYS)
def test_a_copy_recalls_what_earlier_turns_took_out_without_their_session(way: str) -> None:
    session = trimtab.Session(window=4000, store="memory:")
    session.fit(TOO_LONG)
    longer = {**TOO_LONG, "messages": [
        *TOO_LONG["messages"], {"role": "assistant", "content": "Done."},
        {"role": "user", "content": "Thanks."},
    ]}  # fmt: skip
    fitted = session.fit(longer)
    earlier = [edit.handle for edit in fitted.report.edits if not edit.new]
    assert earlier
    again = WAYS[way](WAYS[way](fitted))
    assert [again.recall(handle) for handle in earlier] == [*map(fitted.recall, earlier)]
    with pytest.raises(errors.UnknownHandle, match="here"):
        again.recall("r_never_given")


class SilentStore(MemoryStore):
    """Answers no question for an original while ``silent``."""

    silent = False

    def original(self, tenant: str, handle: str) -> bytes | None:
        if self.silent:
            raise errors.StoreError("the store is down: plug it in")
        return super().original(tenant, handle)


@pytest.mark.parametrize("way", WAYS)
def test_a_result_is_copied_where_its_store_does_not_answer(way: str) -> None:
    store = SilentStore()
    session = trimtab.Session(window=4000, store=store)
    session.fit(TOO_LONG)
    fitted = session.fit(TOO_LONG)
    store.silent = True
    again = WAYS[way](fitted)
    assert again.request == fitted.request
    with pytest.raises(errors.UnknownHandle, match="session that made the edit"):
        again.recall(fitted.report.edits[0].handle)


@pytest.mark.parametrize("way", WAYS)
def test_a_copy_says_in_which_arm_it_is(way: str) -> None:
    assert WAYS[way](trimtab.fit(TOO_LONG, window=4000)).arm == ""
    session = trimtab.Session(window=4000, settings=Settings(control=1.0))
    assert WAYS[way](session.fit(TOO_LONG)).arm == session.fit(TOO_LONG).arm != ""


def fit_in_a_pool(window: int) -> Any:
    return trimtab.fit(TOO_LONG, window=window)


def test_one_request_that_cannot_fit_does_not_break_a_process_pool() -> None:
    with ProcessPoolExecutor(1, mp_context=get_context("fork")) as pool:
        with pytest.raises(CannotFit, match="cannot fit"):
            pool.submit(fit_in_a_pool, 2).result(60)
        assert pool.submit(fit_in_a_pool, 4000).result(60).report.tokens_after <= 4000


@pytest.mark.parametrize("way", WAYS)
def test_a_session_says_why_not_and_what_to_do(way: str) -> None:
    with pytest.raises(errors.TrimtabError, match=r"Session\(journal=session\.journal\)"):
        WAYS[way](trimtab.Session(window=4000))
