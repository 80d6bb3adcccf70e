"""LiteLLM's hooks: a callback for a Router or ``acompletion``, and one for its proxy server.

A hook sees a request once its deployment is chosen, so with the model's own name and with each
attempt.  It cannot send: LiteLLM does, and sends a refused request again where its
``retry_policy`` says so.  Then the hook is called again, and the retry flow gives the next attempt.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Unpack

from trimtab import stores
from trimtab.clients.effects import Effects, InThread, run_async
from trimtab.clients.guard import Guard, WrapKeywords, guard_of
from trimtab.clients.litellm_bodies import (
    KINDS,
    CallKind,
    as_dict,
    body_of,
    request_target,
    with_body,
)
from trimtab.clients.request_target import RequestTarget
from trimtab.clients.wrapped_clients import register
from trimtab.config import load_settings
from trimtab.errors import MissingExtra, TrimtabError
from trimtab.forking import Lock
from trimtab.retry.effects import Send
from trimtab.retry.flow import Accepted, Done, Flow, Refused
from trimtab.retry.refusals import exceptions
from trimtab.retry.refusals.response_errors import prompt_tokens
from trimtab.settings import Settings
from trimtab.telemetry import fault

STORE = "TRIMTAB_STORE"
"""The variable with the URL of the store that LiteLLM's workers share."""
MAX_TENANTS = 200
"""Virtual keys whose session is in memory; the store has the others."""
MAX_RUNNING = 1_000
"""Requests whose answer is awaited; of older ones nothing more is learned."""
Arguments = Mapping[str, Any]


@dataclass(slots=True)
class _Request:
    """One request of a client, over its attempts.  ``again``: the next one, after a refusal."""

    kind: CallKind
    target: RequestTarget
    guard: Guard
    flow: Flow
    again: Send | None = None


class Requests:
    """The requests that LiteLLM is sending, by its id of the call; ``guard``: whose each is."""

    def __init__(self, guard: Callable[[Arguments], Guard]) -> None:
        self._guard, self._lock = guard, Lock()
        self._running: OrderedDict[str, _Request] = OrderedDict()

    def fitted(self, arguments: Any, call: str) -> Any:
        """The arguments with a request that fits; the very same object if nothing changed."""
        kind, id = KINDS.get(call), str(arguments.get("litellm_call_id") or "")
        known = self._running.get(id)
        if kind is None or (known is not None and known.again is None and known.kind is not kind):
            return arguments  # of no model's answer, or LiteLLM's translation of a fitted request
        body = body_of(arguments, kind)
        if not isinstance(body.get(kind.messages), list):
            return arguments
        target = request_target(arguments, kind)
        if known is not None and known.again is not None and known.target.key == target.key:
            step, known.again = known.again, None
        else:
            guard = self._guard(arguments)
            request = _Request(kind, target, guard, guard.flow(body, target))
            step = next(request.flow)
            self._keep(id, request)
        return arguments if step.request is body else with_body(arguments, step.request, kind)

    def refused(self, arguments: Arguments, error: Any, call: str) -> None:
        """Learn from a refusal, and have the next attempt ready, should LiteLLM send again."""
        id = str(arguments.get("litellm_call_id") or "")
        request = self._running.get(id)
        if request is None or KINDS.get(call) is not request.kind:
            return
        try:
            request.again = request.flow.send(Refused(*exceptions.error_parts(error)))
        except StopIteration:
            self._running.pop(id, None)

    def answered(self, arguments: Arguments, answer: Any) -> None:
        """Learn from an answer."""
        request = self._running.pop(str(arguments.get("litellm_call_id") or ""), None)
        if request is None or request.again is not None:
            return
        given = as_dict(answer)
        try:
            request.flow.send(Accepted(prompt_tokens(given)))
        except StopIteration as stop:
            if isinstance(stop.value, Done):
                request.guard.observe(given, stop.value)

    def _keep(self, id: str, request: _Request) -> None:
        with self._lock:
            if (former := self._running.pop(id, None)) is not None:
                former.flow.close()
            if id:
                self._running[id] = request
            while len(self._running) > MAX_RUNNING:
                self._running.popitem(last=False)[1].flow.close()


def callback(**keywords: Unpack[WrapKeywords]) -> Any:
    """A ``CustomLogger`` for ``litellm.callbacks``.  Keywords are those of ``wrap``.

    Raises MissingExtra.
    """
    guard = guard_of("litellm_callback", keywords, answers=False)
    return register(_logger(Requests(lambda arguments: guard)), guard.fits)


def proxy_hook() -> Any:
    """The callback for LiteLLM's proxy server, each virtual key a separate tenant.

    Settings are those of ``trimtab.toml`` and the environment.  Raises InvalidSetting,
    MissingExtra.
    """
    settings = load_settings() | Settings(recall=False)  # nobody here answers the model's calls
    store = stores.open_store(os.environ.get(STORE) or "memory:")  # one pool for all tenants
    guards, lock = OrderedDict[str, Guard](), Lock()

    def guard_for(arguments: Arguments) -> Guard:
        tenant = tenant_of(arguments)
        with lock:
            guard = guards.pop(tenant, None)
            if guard is None:
                given: WrapKeywords = {"settings": settings, "store": store, "tenant": tenant}
                guard = guard_of("proxy_hook", given, answers=False)
            guards[tenant] = guard
            if len(guards) > MAX_TENANTS:
                guards.popitem(last=False)
        return guard

    guard_for({})  # a wrong setting shows when the server starts
    return _logger(Requests(guard_for))


def tenant_of(arguments: Arguments) -> str:
    """``litellm/`` and LiteLLM's digest of the virtual key; its own name for the master key."""
    for name in ("litellm_metadata", "metadata"):
        metadata = arguments.get(name)
        if isinstance(metadata, Mapping) and (key := metadata.get("user_api_key_hash")):
            return f"litellm/{key}"
    return "litellm/local"


def _logger(requests: Requests) -> Any:
    try:
        from litellm.integrations.custom_logger import CustomLogger
    except ImportError:
        raise MissingExtra("LiteLLM is not installed: pip install litellm") from None

    class TrimtabCallback(CustomLogger):  # type: ignore[misc]  # the package may not be installed
        """Fits what LiteLLM is about to send, and learns from what comes back."""

        async def async_pre_call_deployment_hook(self, kwargs: Any, call_type: Any) -> Any:
            fitted = await _done(partial(requests.fitted, kwargs, _name(call_type)))
            return kwargs if fitted is None else fitted

        async def async_post_call_failure_deployment_hook(
            self, request_data: Any, exception: Any, call_type: Any, fallback_depth: Any = None
        ) -> None:
            await _done(partial(requests.refused, request_data, exception, _name(call_type)))

        async def async_log_success_event(
            self, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any
        ) -> None:
            await _done(partial(requests.answered, kwargs, response_obj))

    return TrimtabCallback()


def _name(call: Any) -> str:
    return str(getattr(call, "value", call) or "")


async def _done(work: Callable[[], Any]) -> Any:
    """The result of the work, done in a thread; None after an error of ours, which never stops a
    request.  Raises TrimtabError: ``strict``."""

    def in_thread() -> Effects[Any]:
        return (yield InThread(work))

    try:
        return await run_async(in_thread())
    except TrimtabError:
        raise
    except Exception as error:
        fault("litellm", error)
        return None
