"""Fits a record that ends with the model's answer: the prompt is fitted, the answer is kept.

``trimtab.fit`` takes a request, and providers refuse one that ends with the model.  In a corpus the
final answer is what a model is trained or judged on: it stays verbatim, and prompt and answer fit
the window together.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from trimtab import api, formats
from trimtab.errors import CannotFit
from trimtab.formats import Format
from trimtab.formats.body import RequestBody
from trimtab.request.fitted import Fitted
from trimtab.settings import Settings
from trimtab.transcript.token_sizes import TokenSizes
from trimtab.transcript.tokens import counter_for


class FittedRecord(NamedTuple):
    """A record after ``fit``."""

    fitted: Fitted
    """The fit of the prompt."""
    request: Any
    """Prompt and answer: the very object given if nothing changed, a tree if a conversation with
    an answer was changed, else of the type given."""
    answer_tokens: int


def fit(request: Any, settings: Settings) -> FittedRecord:
    """Fit a request, or a conversation with its last answer.  Raises what ``trimtab.fit`` does."""
    body = RequestBody.of(request)
    format, _ = formats.find(body.tree, settings.format)
    messages = _messages(body.tree, format)
    end = len(messages)
    while end and _is_answer(messages[end - 1], format):
        end -= 1
    if not 0 < end < len(messages):
        fitted = api.fit(body, settings=settings)
        return FittedRecord(fitted, fitted.request, 0)
    answer = messages[end:]
    tokens = _tokens(_with(body.tree, answer, format), format, settings)
    fitted = api.fit(_with(body.tree, messages[:end], format), settings=_leaving(tokens, settings))
    if not fitted.changed:
        return FittedRecord(fitted, request, tokens)
    sent = fitted.request
    return FittedRecord(fitted, _with(sent, [*_messages(sent, format), *answer], format), tokens)


def _messages(tree: Any, format: Format) -> list[Any]:
    base = format.base(tree)
    messages = tree if not base else tree.get(base[0])
    return messages if isinstance(messages, list) else []


def _with(tree: Any, messages: list[Any], format: Format) -> Any:
    base = format.base(tree)
    return {**tree, base[0]: messages} if base else messages


def _is_answer(message: Any, format: Format) -> bool:
    """Whether the model wrote the message; False if unreadable, as ``fit`` reports that."""
    try:
        return format.read_message(message).role == "assistant"
    except (TypeError, AttributeError, KeyError, IndexError):
        return False


def _tokens(tree: Any, format: Format, settings: Settings) -> int:
    """Tokens of a request's messages, without system text and tools."""
    model = format.read_facts(tree, settings.model).model
    sizes = TokenSizes(counter_for(settings.counter, model=model, format=format.name))
    transcript = formats.read(tree, format, model=model)
    return sum(sizes.message(message) for message in transcript.messages)


def _leaving(tokens: int, settings: Settings) -> Settings:
    """The settings with ``tokens`` reserved for the answer.  Raises CannotFit."""
    reserve = max(tokens, settings.reserve or 0)
    if settings.window is not None and reserve >= settings.window:
        raise CannotFit(
            limit="window", allowed=settings.window, minimum=tokens, projected=tokens,
            hint="The model's last answer alone fills the window: give a larger one.",
        )  # fmt: skip
    return settings | Settings(reserve=reserve)
