"""Converts a request: read into a neutral request, then write for the target."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import wraps
from importlib import import_module
from typing import Any, ParamSpec, TypeVar, cast

from trimtab import formats
from trimtab.conversion.converted import Converted
from trimtab.errors import (
    InvalidRequest,
    InvalidSetting,
    NotAccepted,
    TrimtabError,
    expect_text,
)
from trimtab.formats import rules
from trimtab.formats.body import RequestBody
from trimtab.formats.engine.base import Format
from trimtab.formats.misnamed import no_format
from trimtab.formats.neutral.conversion import Conversion
from trimtab.formats.neutral.ids import given_id
from trimtab.formats.neutral.request import (
    CallPart,
    ConversionLog,
    Loss,
    NeutralRequest,
    Part,
    ResultPart,
    Setting,
)
from trimtab.formats.registry import FORMATS
from trimtab.formats.repair.provenance import Provenance
from trimtab.jsontext import paths
from trimtab.settings import Settings

P = ParamSpec("P")
R = TypeVar("R")


def _conversion(format: str) -> Conversion:
    """What the format's folder says of conversions."""
    room = import_module(f"trimtab.formats.{format.replace('-', '_')}.conversion")
    return cast(Conversion, room.CONVERSION)


def _with_target(function: Callable[P, R]) -> Callable[P, R]:
    """Wrap ``convert`` so that a call without a target says which there are."""

    @wraps(function)
    def call(*args: P.args, **keywords: P.kwargs) -> R:
        if keywords.get("to", args[1] if len(args) > 1 else None) is None:
            raise InvalidSetting(
                f"convert() needs its target: give to= one of {', '.join(FORMATS)}"
            )
        return function(*args, **keywords)

    return call


_SAME_MODELS = (
    frozenset(("openai-chat", "openai-responses")),
    frozenset(("gemini", "gemini-interactions")),
)
"""Formats of one provider, whose models have the same names in both."""


@_with_target
def convert(
    request: Any,
    to: str,
    *,
    format: str | None = None,
    model: str | None = None,
    open_tail: bool = False,
) -> Converted:
    """The same conversation in another provider's format.

    ``request``: a body (dict), a bare list of messages, or JSON as str or bytes; never changed.
    ``to``: "openai-chat", "openai-responses", "anthropic", "bedrock", "gemini"
    or "gemini-interactions".  For Anthropic the newest version of its API is meant, which takes no
    sampling parameters: "anthropic:2023-06-01" keeps them.
    ``format``: what the request is in; None: detected.
    ``model``: the model it is for.  None: the request's own between formats of one provider, else
    no model is written.

    ``open_tail``: the last calls are just being run and have no results yet.

    What comes out is acceptable: roles are joined, results put behind their calls, and ids and
    names respelled where the target forbids them.  An id is respelled so that a conversion back
    finds it again, where there is room.  What source or target would refuse is repaired as
    ``repair`` does, and listed among notes and losses.  Payloads of images and documents stay
    base64 text.

    Raises InvalidRequest, InvalidSetting; NotAccepted for what cannot be repaired.
    """
    expect_text("to", to)
    Settings(
        format=cast(Any, format), model=model, open_tail=open_tail
    )  # checked as those of fit are
    to, _, version = to.partition(":")
    versions = FORMATS[to].versions if to in FORMATS else ()
    if to not in FORMATS or (version and version not in versions):
        raise no_format(to, dialects=False)
    spoken_by = f"{to}:{version or versions[-1]}" if versions else to
    given = RequestBody.of(request).tree
    spoken = formats.find(given, format)[0]
    source, log = spoken.name, ConversionLog(to)
    with _documented_shapes(source):
        tree, provenance = _legal(given, spoken, model if source == to else None, open_tail, log)
    repaired = len(log.losses)
    losses_and_notes = tuple(log.losses), tuple(_note_lines(log))
    origin, wanted = _conversion(source), _conversion(to)
    with _documented_shapes(source):
        neutral = _for_model(origin.read(tree, log), source, to, model, log)
        if source == to:
            return _unchanged(tree, neutral, to, model, *losses_and_notes)
        neutral, spelled = _with_given_ids(neutral)
        target = wanted.table.name_rules.target(model or _setting(neutral, "model"))
        body = wanted.write(neutral, target, log)
    if neutral.bare and body.keys() == {wanted.table.parts.messages}:
        body = body[wanted.table.parts.messages]
    if provenance is not None:
        log.losses[repaired:] = [_as_given(loss, provenance) for loss in log.losses[repaired:]]
    body, _ = _legal(body, formats.find(body, spoken_by)[0], model, open_tail, log, ours=True)
    changed = target.ids.changed
    if changed:
        log.notes["call ids respelled"] += len(changed)
    if target.names.changed:
        log.notes["tools renamed"] += len(target.names.changed)
    before = {**spelled, **{new: spelled.get(old, old) for new, old in log.repeated.items()}}
    original_ids = {new: before.get(old, old) for new, old in target.ids.back.items()}
    ids = {spelled.get(old, old): new for old, new in target.ids.forward.items()
           if old not in log.repeated}  # fmt: skip
    return Converted(
        body, source, to, ids, original_ids, target.names.changed,
        tuple(log.losses), tuple(_note_lines(log)),
    )  # fmt: skip


def _legal(
    tree: Any,
    format: Format,
    model: str | None,
    open_tail: bool,
    log: ConversionLog,
    *,
    ours: bool = False,
) -> tuple[Any, Provenance | None]:
    """The request with what its provider would refuse repaired, and where it stood before: each
    repair is a note, each value taken out a loss.  ``ours``: we wrote it, so that no row is left to
    doubt.  Raises NotAccepted for what cannot be repaired."""
    transcript = formats.read(tree, format, model=model)
    if not rules.check(transcript, open_tail=open_tail, doubtful=ours):
        return tree, None
    repaired = rules.repair(tree, format, transcript, open_tail=open_tail, doubtful=ours)
    for rule, repair in repaired.repairs:
        log.notes[f"{format.name}: {rule}: {repair.message}"] += 1
    for index, path, _ in repaired.taken:
        log.lose(path, repaired.repairs[index][0], repaired.repairs[index][1].message)
    if violations := rules.check(repaired.transcript, open_tail=open_tail, doubtful=ours):
        raise NotAccepted(
            f"{format.name} would refuse this, and repair does not fix it: "
            f"{paths.escape(violations[0].path)}: {violations[0].message}; correct the request",
            violations,
        )
    return repaired.tree, Provenance(repaired.trees, repaired.passes, repaired.transcript.base)


def _as_given(loss: Loss, provenance: Provenance) -> Loss:
    """A loss at its place in the request as it was given, before repair."""
    return loss._replace(path=provenance.given(loss.path) or loss.path)


def _with_given_ids(neutral: NeutralRequest) -> tuple[NeutralRequest, dict[str, str]]:
    """The request under the ids that an earlier conversion spelled otherwise; id → as it came.

    One that would then be the same as another's stays.
    """
    given = {
        part.id: given_id(part.id)
        for turn in neutral.turns
        for part in turn.parts
        if isinstance(part, (CallPart, ResultPart))
    }
    often = Counter(given.values())
    new = {old: id for old, id in given.items() if old != id and often[id] == 1}

    def renamed(part: Part) -> Part:
        if isinstance(part, (CallPart, ResultPart)) and part.id in new:
            return part._replace(id=new[part.id])
        return part

    if not new:
        return neutral, {}
    turns = [turn._replace(parts=tuple(map(renamed, turn.parts))) for turn in neutral.turns]
    return replace(neutral, turns=tuple(turns)), {id: old for old, id in new.items()}


@contextmanager
def _documented_shapes(source: str) -> Iterator[None]:
    """Raise InvalidRequest where a value has no documented shape: readers and writers expect it."""
    try:
        yield
    except (AttributeError, LookupError, TypeError, ValueError, RecursionError) as error:
        if isinstance(error, TrimtabError):
            raise
        raise InvalidRequest(
            f"a value of this {source} request has a shape the format does not have ({error}); "
            "name the right format, or correct the request"
        ) from error


def _note_lines(log: ConversionLog) -> list[str]:
    return [f"{note} ({count:,}×)" if count > 1 else note for note, count in log.notes.items()]


def _setting(neutral: NeutralRequest, name: str) -> Any:
    setting = neutral.settings.get(name)
    return setting.value if setting else None


def _for_model(
    neutral: NeutralRequest, source: str, to: str, model: str | None, log: ConversionLog
) -> NeutralRequest:
    """The settings with the model the target knows, if any; another provider's is listed."""
    settings = dict(neutral.settings)
    same = source == to or any({source, to} <= formats for formats in _SAME_MODELS)
    if model is not None and not neutral.bare:
        settings["model"] = Setting(model, ("model",))
    elif not same and (model_setting := settings.pop("model", None)):
        why = "each provider has its own names; give model=… for the target"
        log.lose(model_setting.path, f"model {model_setting.value}", why)
    return replace(neutral, settings=settings)


def _unchanged(
    tree: Any,
    neutral: NeutralRequest,
    to: str,
    model: str | None,
    losses: tuple[Loss, ...],
    notes: tuple[str, ...],
) -> Converted:
    """The request is in this format already: itself, or itself with another model."""
    [key] = _conversion(to).table.written.get("model", ("",))
    if model is not None and key and isinstance(tree, dict) and tree.get(key) != model:
        tree = {**tree, key: model}
    ids = {call.id: call.id for call in neutral.calls}
    return Converted(tree, to, to, ids, ids, {}, losses, notes)
