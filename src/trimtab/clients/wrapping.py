"""``wrap(client)``: the client of any SDK with fitted requests, in one line.

An SDK is imported only to copy its client.  The original client is not changed; the copy sends
through it, by its public methods.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from types import ModuleType
from typing import Any, TypeVar, Unpack

from trimtab.clients.guard import Guard, WrapKeywords, guard_of
from trimtab.clients.httpx_clients import guarded, library_of
from trimtab.clients.httpx_transport import classes
from trimtab.clients.onward import sdk_classes
from trimtab.clients.wrapped_clients import is_registered, register
from trimtab.errors import InvalidSetting, NotAClient

Client = TypeVar("Client")
_CLIENTS_HAVE = {"openai": "with_options", "anthropic": "with_options", "mistralai": "chat"}
"""An attribute that a client of each SDK has and its parts (``client.chat``) don't have."""
_SIGN = ("Bedrock", "AWS")
"""Words in the names of Anthropic's clients that sign requests, where a transport is too late."""


def wrap(
    client: Client, window: int | str | None = None, /, **keywords: Unpack[WrapKeywords]
) -> Client:
    """The client of an SDK, or ``litellm.completion``, whose requests fit.

        client = trimtab.wrap(OpenAI(), window=32_000)
        ...
        print(trimtab.of(client).report)

    OpenAI and compatible, Anthropic and Mistral clients, sync and async; google-genai's class
    (``wrap(genai.Client)(api_key=…)``); boto3's ``bedrock-runtime`` clients (the very client comes
    back); HTTP clients of httpx and httpx2; ``litellm.completion`` and ``litellm.acompletion``.

    ``window``: tokens the model takes, output included; also as a keyword.  Keywords are those of
    ``Session``, or ``session=`` itself, which several clients may share;
    ``learned``: limits learned from refusals, to share or keep them (None: the session's);
    ``retry_result_chars``: chars to which each tool result is cut after a refusal without a reason
    (a bare "ERROR"), 0: no such retry; ``strict``: raise our errors instead of sending the request
    unchanged; ``notes``: the model gets a tool to keep its own texts word for word, and the recall
    tool.
    Raises NotAClient for anything else, and for a client that is wrapped already; InvalidSetting
    for ``recall`` and ``notes`` where the client cannot answer look-ups (LiteLLM's functions).
    """
    if window is not None:
        if "window" in keywords:
            raise InvalidSetting("window is given twice: give it once, as wrap(client, 32_000)")
        keywords["window"] = window
    root = _root(client)
    _refuse_what_is_no_client(client, root)
    guard = guard_of("wrap", keywords, _name(client, root), answers=root != "litellm")
    wrapped: Client = register(_WRAPPERS[root](client, guard), guard.fits)
    return wrapped


def _name(client: Any, root: str) -> str:
    """``openai.OpenAI``, ``litellm.completion``."""
    own = getattr(client, "__name__", None) or type(client).__name__
    return f"{'boto3' if root == 'botocore' else root}.{own}"


def _refuse_what_is_no_client(client: Any, root: str) -> None:
    """Raise NotAClient, saying what to wrap instead."""
    if isinstance(client, ModuleType):
        raise NotAClient(
            f"{client.__name__} is a module and cannot be wrapped: make a client of it, as "
            "wrap(openai.OpenAI())"
        )
    is_class = isinstance(client, type)
    name = client.__name__ if is_class else type(client).__name__
    if root not in _WRAPPERS:
        raise NotAClient(
            f"{name} of {root or 'nowhere'} cannot be wrapped: give a client of "
            f"{', '.join(sorted(_WRAPPERS))}"
        )
    if is_registered(client):
        raise NotAClient(f"this {name} is wrapped already: use it, or wrap a new client")
    if is_class and root != "google.genai":
        raise NotAClient(f"{name} is a class and cannot be wrapped: make a client, wrap({name}(…))")
    needed = _CLIENTS_HAVE.get(root)
    if needed is not None and not hasattr(client, needed):
        raise NotAClient(
            f"{name} is a part of {root}'s client and cannot be wrapped: wrap the client itself, "
            "and take the part from what wrap returns"
        )


def litellm_callback(**keywords: Unpack[WrapKeywords]) -> Any:
    """For ``litellm.callbacks``: fits what a Router, LiteLLM's proxy or ``acompletion`` sends.

    Keywords are those of ``wrap``.  Raises MissingExtra.
    """
    from trimtab.clients.litellm_hooks import callback

    return callback(**keywords)


def _root(client: Any) -> str:
    kind = client if isinstance(client, type) else type(client)
    names = [base.__module__ for base in kind.__mro__]
    names.append(getattr(client, "__module__", "") or "")
    if any(name.startswith("google.genai") for name in names):
        return "google.genai"
    roots = [name.partition(".")[0] for name in names]
    return next((root for root in roots if root in _WRAPPERS), roots[0])


def _with_options(client: Any, guard: Guard) -> Any:
    """A copy of an OpenAI or Anthropic client whose HTTP client sends through ``client``."""
    sdk = importlib.import_module(_root(client))
    sync = not inspect.iscoroutinefunction(client.post)
    kind = sdk.DefaultHttpxClient if sync else sdk.DefaultAsyncHttpxClient
    module = library_of(kind)
    inner = sdk_classes(module, sdk)[0 if sync else 1](client)
    transport = classes(module)[0 if sync else 1](guard, inner)
    return client.with_options(http_client=register(kind(transport=transport), guard.fits))


def _anthropic(client: Any, guard: Guard) -> Any:
    """Clients that sign requests get the middleware, which runs before signing."""
    if not any(word in type(client).__name__ for word in _SIGN):
        return _with_options(client, guard)
    from trimtab.clients.middleware import middleware_of

    ours = middleware_of(guard)
    return client.with_options(middleware=[*client.middleware, ours])


def _genai(client: Any, guard: Guard) -> Any:
    from trimtab.clients.google_genai import guarded_class

    if not isinstance(client, type):
        raise InvalidSetting(
            "google-genai has no public way to the HTTP client of a client that is made: "
            "wrap its class, trimtab.wrap(genai.Client)(api_key=…)"
        )
    return guarded_class(client, guard)


def _mistral(client: Any, guard: Guard) -> Any:
    config = client.sdk_configuration
    security = config.security
    key = (lambda: security().api_key) if callable(security) else getattr(security, "api_key", None)
    return type(client)(
        api_key=key, server=config.server, server_url=config.server_url,
        client=guarded(config.client, guard, client),
        async_client=guarded(config.async_client, guard, client),
        retry_config=config.retry_config, timeout_ms=config.timeout_ms,
        debug_logger=config.debug_logger,
    )  # fmt: skip


def _boto3(client: Any, guard: Guard) -> Any:
    from trimtab.clients.aws import hooked

    return hooked(client, guard)


def _litellm(function: Any, guard: Guard) -> Any:
    from trimtab.clients.litellm import guarded_call

    return guarded_call(function, guard)


def _http(client: Any, guard: Guard) -> Any:
    return guarded(client, guard)


_WRAPPERS: dict[str, Callable[[Any, Guard], Any]] = {
    "openai": _with_options,
    "anthropic": _anthropic,
    "google.genai": _genai,
    "mistralai": _mistral,
    "botocore": _boto3,
    "litellm": _litellm,
    "httpx": _http,
    "httpx2": _http,
}
