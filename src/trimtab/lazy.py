"""A ``cached_property`` without a lock.

That of ``functools`` has, up to Python 3.11, one lock a descriptor: all instances wait for each
other, and a child that is forked while any thread computes such a value waits for ever.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from functools import cached_property
else:

    class cached_property:  # noqa: N801
        """As ``functools.cached_property``.  Two threads may both compute a value; both get the
        one that was there first."""

        def __init__(self, compute):
            self._compute, self.__doc__ = compute, compute.__doc__

        def __set_name__(self, owner, name):
            self._name = name

        def __get__(self, instance, owner=None):
            if instance is None:
                return self
            # What is in the instance's dictionary is found before this descriptor is asked.
            return vars(instance).setdefault(self._name, self._compute(instance))


__all__ = ["cached_property"]
