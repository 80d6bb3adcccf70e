"""Read requests that hold objects of a provider's SDK as the JSON that the SDK would send.

Tutorials append response objects: ``messages.append(response.choices[0].message)``.  Such an object
is read by its ``model_dump`` with the options its SDK uses; LangChain's messages are converted to
Chat Completions.  An unchanged value is returned as the same object; a changed one as an object of
the same class, or as a dict if its class does not accept the change.
"""

from __future__ import annotations

import importlib
import json
import marshal
from collections.abc import Mapping
from typing import Any

from trimtab.errors import InvalidRequest
from trimtab.jsontext.parsing import too_deep

_PLAIN = frozenset((str, int, float, bool, type(None)))
_DUMP_OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "google": {"exclude_none": True, "by_alias": True},
    "mistralai": {"exclude_none": True, "by_alias": True},
}
"""SDK package → its ``model_dump`` options in google-genai 3.4 and mistralai 3; openai and
anthropic leave out unset fields (their ``_transform``)."""
_OTHER_DUMP: Mapping[str, Any] = {"exclude_unset": True, "by_alias": True}


def as_json(original: Any) -> Any:
    """The same value in dicts, lists and plain values; the same object if it already is.

    Raises InvalidRequest, with the path, for an object that is not from an SDK.
    """
    try:
        marshal.dumps(original, 2)  # a fast check in C: it accepts only builtin types
    except ValueError:
        try:
            return _as_json(original, ())
        except RecursionError:
            raise too_deep() from None
    return original


def _as_json(value: Any, path: tuple[str | int, ...]) -> Any:
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is dict:
        made: dict[Any, Any] | None = None
        for key, inner in value.items():
            if type(inner) in _PLAIN:
                continue
            plain = _as_json(inner, (*path, key))
            if plain is not inner:
                made = dict(value) if made is None else made
                made[key] = plain
        return value if made is None else made
    if kind is list:
        items = [item if type(item) in _PLAIN else _as_json(item, (*path, index))
                 for index, item in enumerate(value)]  # fmt: skip
        same = all(map(_is, items, value))
        return value if same else items
    if isinstance(value, (dict, list, str, int, float)):  # subclasses: defaultdict, IntEnum …
        return value
    return _dumped(value, path)


def _is(one: Any, other: Any) -> bool:
    return one is other


def _dumped(value: Any, path: tuple[str | int, ...]) -> Any:
    package = type(value).__module__.partition(".")[0]
    if package.startswith("langchain"):
        return _chat_message(value, path)
    dump = getattr(value, "model_dump", None)
    if dump is None or isinstance(value, type):
        if path and isinstance(value, tuple):
            return [_as_json(item, (*path, index)) for index, item in enumerate(value)]
        raise InvalidRequest(
            f"{_place(path)} is an object of {type(value).__module__}.{type(value).__name__}: "
            "give dicts, JSON, or objects of the provider's SDK"
        )
    options = dict(_DUMP_OPTIONS.get(package, _OTHER_DUMP))
    if hidden := getattr(value, "__api_exclude__", None):  # what openai and anthropic do not send
        options["exclude"] = hidden
    return dump(mode="json", warnings=False, **options)


def _place(path: tuple[str | int, ...]) -> str:
    if not path:
        return "the request"
    number = next((step for step in path if isinstance(step, int)), None)
    where = ".".join(str(step) for step in path)
    return where if number is None else f"message {number} ({where})"


def _chat_message(value: Any, path: tuple[str | int, ...]) -> Any:
    try:
        messages = importlib.import_module("langchain_core.messages")
        return messages.convert_to_openai_messages(value)
    except (ImportError, ValueError, TypeError) as error:
        raise InvalidRequest(
            f"{_place(path)}, a {type(value).__name__} of LangChain, cannot be read ({error}); "
            "use trimtab.clients.langchain, or give dicts"
        ) from error


# --- the way back ----------------------------------------------------------------------------


def restored(tree: Any, plain: Any, original: Any) -> Any:
    """``tree``, changed from ``plain``, with the caller's objects from ``original`` put back.

    ``plain`` is the JSON that ``original`` was read as.
    """
    if tree is plain:
        return original
    if isinstance(original, dict) and isinstance(tree, dict) and isinstance(plain, dict):
        return {
            key: restored(value, plain[key], original[key]) if key in plain else value
            for key, value in tree.items()
        }
    if isinstance(original, list) and isinstance(tree, list) and isinstance(plain, list):
        return _restored_list(tree, plain, original)
    if isinstance(original, (dict, list, tuple)) or type(original) in _PLAIN:
        return tree
    return _rebuilt(tree, original)


def _restored_list(tree: list[Any], plain: list[Any], original: list[Any]) -> list[Any]:
    """Unchanged items as the caller's objects; changed ones paired with the originals at the same
    position between unchanged ones."""
    places = {id(item): index for index, item in enumerate(plain) if type(item) not in _PLAIN}
    given_back: list[Any] = []
    behind = 0  # the index in ``plain`` after the last unchanged item
    changed: list[Any] = []

    def settle(before: int) -> None:
        between = range(behind, before)
        if len(between) == len(changed):
            given_back.extend(
                restored(item, plain[n], original[n])
                for item, n in zip(changed, between, strict=True)
            )
        else:
            given_back.extend(_like_its_neighbours(item, original) for item in changed)
        changed.clear()

    for item in tree:
        index = places.get(id(item))
        if index is None or index < behind:
            changed.append(item)
            continue
        settle(index)
        given_back.append(original[index])
        behind = index + 1
    settle(len(plain))
    return given_back


def _like_its_neighbours(item: Any, original: list[Any]) -> Any:
    """A new item in the class of the other items of its list, if they share one."""
    if original and all(_of_langchain(other) for other in original):
        return _rebuilt(item, original[0])
    kind = _shared_class(original)
    return item if kind is None else _made(kind, item)


def _shared_class(original: list[Any]) -> Any:
    """The narrowest model class that all items share (google-genai mixes ``ModelContent`` with
    ``Content``); None if there is none."""
    kinds = {type(other): None for other in original}
    if not kinds or any(kind in _PLAIN or kind in (dict, list) for kind in kinds):
        return None
    shared = (kind for kind in next(iter(kinds)).__mro__ if all(issubclass(k, kind) for k in kinds))
    cls = next(shared, None)
    return cls if len(kinds) == 1 or getattr(cls, "model_fields", None) else None


def _of_langchain(value: Any) -> bool:
    return type(value).__module__.partition(".")[0].startswith("langchain")


def _rebuilt(tree: Any, like: Any) -> Any:
    """``tree`` as an object of the class of ``like``; ``tree`` itself if that class rejects it."""
    try:
        if _of_langchain(like):
            messages = importlib.import_module("langchain_core.messages")
            [made] = messages.convert_to_messages([tree])
            return made.model_copy(update={"id": like.id}) if type(made) is type(like) else made
    except (AttributeError, ImportError, TypeError, ValueError, NotImplementedError):
        return tree
    return _made(type(like), tree)


def _made(kind: Any, tree: Any) -> Any:
    """``tree`` as an object of ``kind`` or of a base class (``UserContent`` takes no role,
    ``Content`` does); ``tree`` itself if all reject it."""
    for one in kind.__mro__:
        if one is kind or getattr(one, "model_fields", None):
            try:
                return one.model_validate(tree)
            except (AttributeError, TypeError, ValueError, NotImplementedError):
                continue
    return tree


def as_mapping(value: Any) -> Any:
    """An SDK's object, or JSON as text, as a mapping."""
    if isinstance(value, (str, bytes, bytearray)):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return None
    if value is None or isinstance(value, Mapping):
        return value
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        return dump(warnings=False) if _takes_warnings(value) else dump()
    return vars(value) if hasattr(value, "__dict__") else None


def _takes_warnings(value: Any) -> bool:
    """Whether ``value`` is a pydantic model, which warns of values outside its schema."""
    return hasattr(value, "__pydantic_validator__")
