"""Results that a model or user may have removed on request, and the edits that remove them or
replace them by the model's own words.

Each such result has a name.  Pure: the caller stores the edits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b

from trimtab.errors import expect, expect_text
from trimtab.planning.edits import handle
from trimtab.planning.planner import witness
from trimtab.reducers.base import (
    MARKER_LOSS,
    Config,
    marker,
    recall_call,
    smaller,
    with_handle,
)
from trimtab.reducers.redundant import replace_long_strings
from trimtab.request.measured import MeasuredRequest
from trimtab.request.planned import planner_for, reduce
from trimtab.summarizers.articles import CALL_SYNTAX
from trimtab.transcript.model import Block, Edit, Place

MIN_TOKENS = 200
"""Least tokens of a result that may be removed; a shorter one is not worth a change."""
_LABEL_CHARS = 80


@dataclass(frozen=True, slots=True)
class Prunable:
    """One result that may be removed: its name (the same on every turn), description, size."""

    name: str
    ref: str
    about: str
    tokens: int


@dataclass(frozen=True, slots=True)
class Pruned:
    """The outcome: edits and originals to store; for each refused name, the reason."""

    edits: tuple[Edit, ...]
    originals: Mapping[str, str]
    done: tuple[Prunable, ...]
    why_not: Mapping[str, str]


def prunable(measured: MeasuredRequest) -> list[Prunable]:
    """The results that may be removed: those of closed groups not reduced yet, oldest first."""
    transcript, results = measured.transcript, list[Prunable]()
    edited = {ref for edit in measured.active for ref in edit.targets}
    protected = reduce(measured).protected
    for group in transcript.groups:
        for place in group.places if group.closed else ():
            block = place.block
            if block.kind != "result" or block.sealed or (place.message, place.index) in protected:
                continue
            ref, tokens = transcript.ref(place), measured.sizes.block(transcript, place)
            if ref not in edited and tokens >= MIN_TOKENS:
                results.append(Prunable(name_of(ref), ref, _about(measured, place), tokens))
    return results


def name_of(ref: str) -> str:
    """A short name for a block, the same as long as its ref is."""
    return "p" + blake2b(ref.encode(), digest_size=3).hexdigest()


def _about(measured: MeasuredRequest, place: Place) -> str:
    tool = measured.transcript.tool(place) or "tool"
    first = place.block.text.strip().split("\n", 1)[0]
    text = "".join(c if c.isprintable() else " " for c in first[:_LABEL_CHARS])
    return f"{tool}: {text}"


def prune(measured: MeasuredRequest, names: Sequence[str]) -> Pruned:
    """Remove the named results; names that cannot be removed are reported with the reason."""
    listed = isinstance(names, (list, tuple, set, frozenset))
    holds = listed and all(isinstance(name, str) for name in names)
    expect(holds, "names", names, "a list of texts")
    choice = _Choice(measured, "pruned", "the model asked for it")
    return choice.replace(dict.fromkeys(names))


def distill(measured: MeasuredRequest, words: Mapping[str, str]) -> Pruned:
    """Replace named results by the model's own words, labelled as such."""
    holds = isinstance(words, Mapping) and all(
        isinstance(text, str) for pair in words.items() for text in pair
    )
    expect(holds, "words", words, "a mapping from names to texts")
    return _Choice(measured, "distilled", "said in the model's own words").replace(words)


def compress(measured: MeasuredRequest, first: str, last: str, words: str) -> Pruned:
    """Replace all results between two named ones by the model's own words, and the long inputs of
    their calls by notes.  All calls are kept, and protected results are not changed."""
    for argument, value in (("first", first), ("last", last), ("words", words)):
        expect_text(argument, value)
    choice = _Choice(measured, "compressed", "said in the model's own words")
    ends = [choice.place(name) for name in dict.fromkeys((first, last))]
    begin, end = ends[0], ends[-1]
    if begin is None or end is None:
        return choice.done()
    refs = measured.transcript.refs
    removable = [(refs[result.ref], result) for result in choice.free.values()]
    chosen = [(p, result) for p, result in removable if _at(begin) <= _at(p) <= _at(end)]
    if not chosen:
        return choice.refused(first, f"comes after {last}: name the older result first")
    largest, host = max(chosen, key=lambda row: row[1].tokens)
    if problem := choice.problem(largest, words, len(chosen)):
        return choice.refused(first, problem)
    shown = {result.name: words if result is host else None for _, result in chosen}
    choice.replace(shown, len(chosen))
    for place in _calls(measured, [place for place, _ in chosen]):
        note = replace_long_strings(place.block, "[{:,} chars, of steps said in few words]".format)
        if note is not None and smaller(note, place.block.text, choice.config.count):
            choice.show(place, note, "of steps said in the model's own words")
    return choice.done()


def sweep(measured: MeasuredRequest, most: int | None = None) -> Pruned:
    """Remove the newest ``most`` results; None: all since the user's last text."""
    expect(
        most is None or (type(most) is int and most >= 0), "most", most, "a whole number or None"
    )
    transcript, candidates = measured.transcript, prunable(measured)
    if most is None:
        spoke = [p.message for p in planner_for(measured, reduce(measured)).eligibility.user_texts]
        since = max(spoke, default=-1)
        if since == len(transcript.messages) - 1:  # the request asks something: sweep before that
            since = max((n for n in spoke if n < since), default=-1)
        candidates = [
            result for result in candidates if transcript.refs[result.ref].message > since
        ]
    elif most < len(candidates):
        candidates = candidates[len(candidates) - most :]
    return prune(measured, [result.name for result in candidates])


class _Choice:
    """Collects edits of one ``kind``, which replace named results by markers or words."""

    def __init__(self, measured: MeasuredRequest, kind: str, why: str) -> None:
        self._measured, self._seen = measured, witness(measured.transcript)
        self._kind, self._why = kind, why
        self._key = measured.inputs.handle_key
        self.config = Config(measured.sizes.counter, recall=measured.settings.recall)
        self.free = {result.name: result for result in prunable(measured)}
        self._why_not = dict[str, str]()
        self._edits, self._originals = list[Edit](), dict[str, str]()
        self._done = list[Prunable]()

    def replace(self, words: Mapping[str, str | None], steps: int = 1) -> Pruned:
        """Replace each named result by the words for it, which stand for so many ``steps``; None:
        by a marker.  Gives the outcome so far."""
        for name, said in words.items():
            place = self.place(name)
            if place is None:
                continue
            if said is None:
                text = marker(self._named(place), self.config)
            elif problem := self.problem(place, said, steps):
                self._why_not[name] = problem
                continue
            else:
                text = _label(self._named(place), self.config, said, steps)
            self.show(place, text, self._why)
            self._done.append(self.free[name])
        return self.done()

    def place(self, name: str) -> Place | None:
        """The place of the result ``name``; None if it is refused, which the outcome tells."""
        if name in self.free:
            return self._measured.transcript.refs[self.free[name].ref]
        names = {name_of(ref) for ref in self._measured.transcript.refs}
        shortened = {name_of(ref) for edit in self._measured.active for ref in edit.targets}
        self._why_not[name] = _reason(name, names, shortened)
        return None

    def problem(self, place: Place, words: str, steps: int) -> str:
        """Why the model's words cannot be shown for a result; "" if they can."""
        if not words.strip():
            return "is needed until something is said in its place"
        if CALL_SYNTAX.search(words):
            return "cannot be said so: the words look like a call"
        text = _label(self._named(place), self.config, words, steps)
        if not smaller(text, place.block.text, self.config.count):
            return "takes more than it saves: say it in fewer words"
        return ""

    def show(self, place: Place, text: str, why: str) -> None:
        """Replace a block by ``text``."""
        ref = self._measured.transcript.ref(place)
        own_handle = handle((ref,), self._key)
        text = with_handle(text, place.block.text, own_handle)
        edit = Edit("replace", (ref,), text, self._kind, why, MARKER_LOSS, self._seen, own_handle)
        self._edits.append(edit)
        self._originals[own_handle] = place.block.text

    def refused(self, name: str, why: str) -> Pruned:
        """The outcome if a named result keeps everything as it is."""
        self._why_not[name] = why
        return self.done()

    def done(self) -> Pruned:
        """The collected outcome."""
        return Pruned(tuple(self._edits), self._originals, tuple(self._done), self._why_not)

    def _named(self, place: Place) -> Block:
        """The block with its tool filled in."""
        tool = place.block.tool or self._measured.transcript.tool(place)
        return replace(place.block, tool=tool)


def _label(block: Block, config: Config, words: str, steps: int) -> str:
    """``[read result, 3,130 chars, in the model's own words; recall("…") has it]`` and the words;
    if they replace several results (``steps``), it gives their number."""
    name = block.tool if block.tool and block.tool.isprintable() else "tool"
    what = f"{name} result, {len(block.text):,} chars,"
    if steps > 1:
        what = f"{steps} results, this one of {len(block.text):,} chars,"
    fetch = recall_call(block.text, config)
    return (
        f"[{what} in the model's own words{f'; {fetch} has it' if fetch else ''}]\n{words.strip()}"
    )


def _at(place: Place) -> tuple[int, int]:
    return place.message, place.index


def _calls(measured: MeasuredRequest, results: Sequence[Place]) -> list[Place]:
    """The calls answered by these results that may be changed."""
    transcript, places = measured.transcript, list[Place]()
    protected = reduce(measured).protected
    for number in dict.fromkeys(transcript.group_number(p.message, p.index) for p in results):
        if number is None:
            continue
        group = transcript.groups[number]
        answered = {p.block.call_id for p in group.places if p.block.kind == "result"}
        pruned = {p.block.call_id for p in results if p in group.places}
        for place in group.places:
            block = place.block
            free = not block.sealed and (place.message, place.index) not in protected
            if block.kind == "call" and free and (block.call_id in pruned or answered <= pruned):
                places.append(place)
    return places


def _reason(name: str, names: set[str], taken: set[str]) -> str:
    if name in taken:
        return "was shortened or taken out before"
    if name in names:
        return "may not be taken out: it is protected, short, or of the step that is going on"
    return "is no name in this conversation: it has changed since, or never had one"
