"""Libraries with one function over messages: distil, ctxfit, contextgc, leantokens, headroom."""

from __future__ import annotations

import copy
from importlib import import_module
from types import SimpleNamespace
from typing import Any

from common import Body, nulled, room


def distil(request: Body, window: int) -> Body:
    """``distil.compress_messages``; it promises savings, not a fit."""
    done = import_module("distil").compress_messages(request["messages"])
    return {**request, "messages": done.messages}


def ctxfit(request: Body, window: int) -> Body:
    """``ctxfit.fit`` with its aggressive strategies, at 85 % of the window as it advises."""
    budget = int(0.85 * room(request, window))
    kept, _ = import_module("ctxfit").fit(
        request["messages"], total_budget=budget, strategies="aggressive", aggressive=True
    )
    return {**request, "messages": nulled(kept)}


def contextgc(request: Body, window: int) -> Body:
    """``contextgc.compile_messages``; it takes no budget."""
    kept, _ = import_module("contextgc").compile_messages(request["messages"])
    return {**request, "messages": kept}


def leantokens(request: Body, window: int) -> Body:
    """``leantokens.compress_request(smart=True)``, what its proxy does; no fit is promised."""
    body = copy.deepcopy(request)
    import_module("leantokens").compress_request(body, smart=True)
    return body


def headroom(request: Body, window: int) -> Any:
    """``headroom.compress`` with the window as ``model_limit``; no fit is promised."""
    done = import_module("headroom").compress(
        request["messages"], model="gpt-4o", model_limit=window
    )
    return SimpleNamespace(request={**request, "messages": done.messages}, handles=[])
