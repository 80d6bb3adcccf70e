"""``cached_property`` without a lock: what it shares with that of functools, and what not."""

from __future__ import annotations

import threading

import pytest

from trimtab.lazy import cached_property

SECONDS = 5.0


class Counted:
    def __init__(self) -> None:
        self.times = 0
        self.entered, self.go_on = threading.Event(), threading.Event()

    @cached_property
    def value(self) -> list[int]:
        """The number of the call."""
        self.times += 1
        return [self.times]

    @cached_property
    def slow(self) -> object:
        self.entered.set()
        assert self.go_on.wait(SECONDS)
        return object()


def test_a_value_is_computed_once_and_can_be_set_and_deleted() -> None:
    one, other = Counted(), Counted()
    assert one.value is one.value == [1]
    assert other.value == [1]
    one.value = [7]
    assert one.value == [7]
    del one.value
    assert one.value == [2]


def test_the_class_has_the_descriptor_with_its_words() -> None:
    assert isinstance(Counted.value, cached_property)
    assert vars(Counted)["value"].__doc__ == "The number of the call."


def test_an_error_is_raised_again_each_time() -> None:
    class Failing:
        @cached_property
        def value(self) -> int:
            raise ValueError

    one = Failing()
    for _ in range(2):
        with pytest.raises(ValueError):  # noqa: PT011
            one.value  # noqa: B018


def test_no_instance_waits_for_another_s_value() -> None:
    """That of functools has one lock for all of them, up to Python 3.11."""
    slow, quick = Counted(), Counted()
    computing = threading.Thread(target=lambda: slow.slow, daemon=True)
    computing.start()
    assert slow.entered.wait(SECONDS)
    quick.go_on.set()
    asking = threading.Thread(target=lambda: quick.slow, daemon=True)
    asking.start()
    asking.join(SECONDS / 2)
    waited = asking.is_alive()
    slow.go_on.set()
    computing.join(SECONDS)
    assert not waited


def test_two_threads_that_compute_one_value_get_the_same_object() -> None:
    one = Counted()
    found: list[object] = []
    threads = [threading.Thread(target=lambda: found.append(one.slow)) for _ in range(2)]
    for thread in threads:
        thread.start()
    one.go_on.set()
    for thread in threads:
        thread.join(SECONDS)
    assert found[0] is found[1] is one.slow
