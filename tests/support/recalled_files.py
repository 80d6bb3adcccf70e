"""Files for a model that recalls what was cut, and every SDK that carries its calls."""

from __future__ import annotations

import pytest
from sdk_clients import CLIENTS

EVERY = pytest.mark.parametrize("sdk", CLIENTS, ids=lambda sdk: sdk.format)


def file(number):
    rows = (f"line {n} of file {number} holds value_{n * 7919 % 10007 + number}\n"
            for n in range(300))  # fmt: skip
    return "".join(rows)
