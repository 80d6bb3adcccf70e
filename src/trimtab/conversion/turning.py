"""The order of a conversion: read into neutral turns, write for the target.

Knows which file reads and writes which format.  Does not know any provider's keys, nor any rule
of order (shape.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

from trimtab import formats
from trimtab.conversion import Converted, anthropic, bedrock, gemini, openai_chat, openai_responses
from trimtab.conversion.neutral import Account, Neutral, Setting
from trimtab.conversion.target import Alphabet, Target
from trimtab.errors import InvalidRequest, InvalidSetting
from trimtab.reading.source import Source


class _Format(NamedTuple):
    read: Callable[[Any, Account], Neutral]
    write: Callable[[Neutral, Target, Account], Any]
    alphabet: Alphabet
    messages: str
    model: str


_FORMATS = {
    "openai-chat": _Format(
        openai_chat.read, openai_chat.write, openai_chat.alphabet, "messages", "model"
    ),
    "openai-responses": _Format(
        openai_responses.read, openai_responses.write, openai_responses.alphabet, "input", "model"
    ),
    "anthropic": _Format(anthropic.read, anthropic.write, anthropic.alphabet, "messages", "model"),
    "bedrock": _Format(bedrock.read, bedrock.write, bedrock.alphabet, "messages", "modelId"),
    "gemini": _Format(gemini.read, gemini.write, gemini.alphabet, "contents", ""),
}
_SAME_MODELS = frozenset(("openai-chat", "openai-responses"))
"""Formats of one provider, whose models have the same names in both."""


def turned(request: Any, to: str, format: str | None, model: str | None) -> Converted:
    """See ``trimtab.convert.convert``."""
    if to not in _FORMATS:
        raise InvalidSetting(f"no format {to!r}; choose one of {', '.join(_FORMATS)}")
    tree = Source.of(request).tree
    source = format if format in _FORMATS else formats.find(tree, format)[0].name
    reader, writer = _FORMATS[source], _FORMATS[to]
    account = Account(to)
    neutral = _for_model(_read(reader, tree, source, account), source, to, model, account)
    if source == to:
        return _unchanged(tree, neutral, to, model)
    target = writer.alphabet.target(model or _setting(neutral, "model"))
    body = writer.write(neutral, target, account)
    if neutral.bare and body.keys() == {writer.messages}:
        body = body[writer.messages]
    changed = target.ids.changed
    if changed:
        account.notes["call ids respelled"] += len(changed)
    if target.names.changed:
        account.notes["tools renamed"] += len(target.names.changed)
    given = {new: account.repeated.get(old, old) for new, old in target.ids.back.items()}
    ids = {old: new for old, new in target.ids.forward.items() if old not in account.repeated}
    return Converted(
        body, source, to, ids, given, target.names.changed,
        tuple(account.losses), tuple(_told(account)),
    )  # fmt: skip


def _read(reader: _Format, tree: Any, source: str, account: Account) -> Neutral:
    try:
        return reader.read(tree, account)
    except (AttributeError, KeyError, TypeError) as error:
        # Readers take the documented shapes for granted; anything else fails on the first look.
        raise InvalidRequest(
            f"a value of this {source} request has a shape the format does not have ({error}); "
            "name the right format, or mend the request"
        ) from error


def _told(account: Account) -> list[str]:
    return [f"{note} ({count:,}×)" if count > 1 else note for note, count in account.notes.items()]


def _setting(neutral: Neutral, name: str) -> Any:
    setting = neutral.settings.get(name)
    return setting.value if setting else None


def _for_model(
    neutral: Neutral, source: str, to: str, model: str | None, account: Account
) -> Neutral:
    """The settings with the model the target knows, if any; another provider's is listed."""
    settings = dict(neutral.settings)
    same = source == to or {source, to} <= _SAME_MODELS
    if model is not None and not neutral.bare:
        settings["model"] = Setting(model, ("model",))
    elif not same and (own := settings.pop("model", None)):
        why = "each provider has its own names; give model=… for the target"
        account.lose(own.path, f"model {own.value}", why)
    return replace(neutral, settings=settings)


def _unchanged(tree: Any, neutral: Neutral, to: str, model: str | None) -> Converted:
    """The request is in this format already: itself, or itself with another model."""
    key = _FORMATS[to].model
    if model is not None and key and isinstance(tree, dict) and tree.get(key) != model:
        tree = {**tree, key: model}
    ids = {call.id: call.id for call in neutral.calls}
    return Converted(tree, to, to, ids, ids, {}, (), ())
