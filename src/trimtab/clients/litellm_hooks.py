"""LiteLLM's hooks: a callback for a Router or ``acompletion``, and one for its proxy server.

A hook sees a request once its deployment is chosen, so with the model's own name and with each
attempt.  It cannot send a first round: LiteLLM does, and sends a refused request again where its
``retry_policy`` says so.  Then the hook is called again, and the retry flow gives the next attempt.
Later rounds, with what the model has looked up, are sent by ``litellm_rounds``.
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
from trimtab.clients.guard import Guard, Started, WrapKeywords, guard_of
from trimtab.clients.litellm_bodies import (
    DECISIVE,
    KINDS,
    CallKind,
    as_dict,
    body_of,
    request_target,
    with_body,
)
from trimtab.clients.litellm_rounds import OWN, LiteLLMRounds
from trimtab.clients.request_target import RequestTarget
from trimtab.clients.wrapped_clients import register
from trimtab.config import load_settings
from trimtab.errors import MissingExtra, TrimtabError
from trimtab.forking import Lock
from trimtab.retry.effects import Send
from trimtab.retry.flow import Accepted, Done, Flow, Refused
from trimtab.retry.refusals import exceptions
from trimtab.retry.refusals.response_errors import prompt_tokens
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
    started: Started
    flow: Flow
    again: Send | None = None


class Requests:
    """The requests that LiteLLM is sending, by its id of the call; ``guard``: whose each is;
    ``calls``: LiteLLM's functions, by which later rounds are sent, if there may be any."""

    def __init__(
        self, guard: Callable[[Arguments], Guard], calls: Mapping[str, Any] | None = None
    ) -> None:
        self._guard, self._lock, self._calls = guard, Lock(), calls or {}
        self._running: OrderedDict[str, _Request] = OrderedDict()
        self._rounds: OrderedDict[str, LiteLLMRounds] = OrderedDict()

    def fitted(self, arguments: Any, call: str) -> Any:
        """The arguments with a request that fits; the very same object if nothing changed."""
        kind, id = KINDS.get(call), str(arguments.get("litellm_call_id") or "")
        known = self._running.get(id)
        if kind is None or (known is not None and known.again is None and known.kind is not kind):
            return arguments  # of no model's answer, or LiteLLM's translation of a fitted request
        if id.startswith(OWN):
            return arguments
        body = body_of(arguments, kind)
        if not isinstance(body.get(kind.messages), list):
            return arguments
        target = request_target(arguments, kind)
        if known is not None and known.again is not None and known.target.key == target.key:
            step, known.again = known.again, None
        else:
            guard = self._guard(arguments)
            started = self._started(guard, body, target, arguments, call)
            request = _Request(kind, target, guard, started, started.flow)
            step = next(request.flow)
            self._keep(id, request)
            if started.rounds is not None:
                self._put(id, LiteLLMRounds(
                    guard, started, started.rounds, kind, arguments, self._calls[call]
                ))  # fmt: skip
        return arguments if step.request is body else with_body(arguments, step.request, kind)

    def refused(self, arguments: Arguments, error: Any, call: str) -> None:
        """Learn from a refusal, and have the next attempt ready, should LiteLLM send again."""
        id = str(arguments.get("litellm_call_id") or "")
        request = self._running.get(id)
        if request is None or KINDS.get(call) is not request.kind:
            return
        status, body, headers = exceptions.error_parts(error)
        try:
            request.again = request.flow.send(Refused(status, body, headers))
        except StopIteration as stop:
            without = request.guard.without_recall(request.started, stop.value, body)
            if without is None:
                self._running.pop(id, None)
                return
            self._rounds.pop(id, None)
            request.started, request.flow = Started(without, request.target), without
            request.again = next(without)

    def rounds_of(self, id: Any) -> LiteLLMRounds | None:
        """The rounds of a request that offers the recall tool, once it is answered."""
        return self._rounds.pop(str(id or ""), None)

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

    def _started(
        self, guard: Guard, body: dict[str, Any], target: RequestTarget, arguments: Arguments,
        call: str,
    ) -> Started:  # fmt: skip
        """How a request is sent; with the recall tool where its calls can be answered.

        Responses that the provider stores go without: LiteLLM replaces their ids.
        """
        stored = target.format == "openai-responses" and arguments.get("store") is not False
        if call not in self._calls or not arguments.get("litellm_call_id") or stored:
            return Started(guard.flow(body, target), target)
        more = {name: arguments[name] for name in DECISIVE if arguments.get(name) is not None}
        return guard.start_parsed(body | more, "", {}, target, streams_rewritten=True)

    def _put(self, id: str, rounds: LiteLLMRounds) -> None:
        with self._lock:
            self._rounds[id] = rounds
            while len(self._rounds) > MAX_RUNNING:
                self._rounds.popitem(last=False)

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
    return register(_logger(Requests(lambda arguments: guard))(), guard.fits)


def proxy_hook() -> Any:
    """The callback for LiteLLM's proxy server, each virtual key a separate tenant.

    Settings are those of ``trimtab.toml`` and the environment.  Raises InvalidSetting,
    MissingExtra.
    """
    settings = load_settings()
    store = stores.open_store(os.environ.get(STORE) or "memory:")  # one pool for all tenants
    guards, lock = OrderedDict[str, Guard](), Lock()

    def guard_for(arguments: Arguments) -> Guard:
        tenant = tenant_of(arguments)
        with lock:
            guard = guards.pop(tenant, None)
            if guard is None:
                given: WrapKeywords = {"settings": settings, "store": store, "tenant": tenant}
                guard = Guard("proxy_hook", gateway=True, **given)
            guards[tenant] = guard
            if len(guards) > MAX_TENANTS:
                guards.popitem(last=False)
        return guard

    guard_for({})  # a wrong setting shows when the server starts
    if not settings.recall:
        return _logger(Requests(guard_for))()
    return _answering(guard_for)()


def tenant_of(arguments: Arguments) -> str:
    """``litellm/`` and LiteLLM's digest of the virtual key; its own name for the master key."""
    for name in ("litellm_metadata", "metadata"):
        metadata = arguments.get(name)
        if isinstance(metadata, Mapping) and (key := metadata.get("user_api_key_hash")):
            return f"litellm/{key}"
    return "litellm/local"


def _logger(requests: Requests) -> Any:
    """The class of a callback.  Raises MissingExtra."""
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

    return TrimtabCallback


def _answering(guard: Callable[[Arguments], Guard]) -> Any:
    """The class of a callback of the server that answers the model's look-ups too.

    Only it has these hooks: LiteLLM hands every item of every stream to a class that has.
    """
    try:
        import litellm
    except ImportError:
        raise MissingExtra("LiteLLM is not installed: pip install litellm") from None

    names = ("acompletion", "anthropic_messages", "aresponses")
    requests = Requests(guard, {name: getattr(litellm, name) for name in names})

    class AnsweringCallback(_logger(requests)):  # type: ignore[misc]
        """Answers the calls of the recall tool before the client has the answer."""

        async def async_post_call_success_hook(
            self, data: Any, user_api_key_dict: Any, response: Any
        ) -> Any:
            rounds = requests.rounds_of(data.get("litellm_call_id"))
            return None if rounds is None else await run_async(rounds.whole(response))

        async def async_post_call_streaming_iterator_hook(
            self, user_api_key_dict: Any, response: Any, request_data: Any
        ) -> Any:
            rounds = requests.rounds_of(request_data.get("litellm_call_id"))
            items = response if rounds is None else rounds.streamed(response)
            async for item in items:
                yield item

    return AnsweringCallback


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
