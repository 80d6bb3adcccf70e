"""The tables, in Markdown, each cell a count."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from own_prose.judge import Fate, Verdict
from own_prose.rules import CONPACT, KINDS, Written
from own_prose.worlds import AFTER_PROSE, NEWEST, OLDER

Group = dict[str, list[Verdict]]
SHARES = {0.5: "½", 0.25: "¼", 0.125: "⅛"}
RULES = (*KINDS, CONPACT)
PAIRS = "corrections"
"""How the situations begin that judge pairs: they have a table of their own."""


def grouped(found: Iterable[Verdict], key: Callable[[Verdict], str]) -> Group:
    """By a word for each, in the order of their coming."""
    groups: Group = {}
    for one in found:
        groups.setdefault(key(one), []).append(one)
    return groups


def situation(one: Verdict) -> str:
    """Its name and the share of its size that is the window."""
    return f"{one.trial.situation}, {SHARES[one.trial.share]}"


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    return "\n".join([*lines, *(f"| {' | '.join(map(str, row))} |" for row in rows)])


def _used(own: Sequence[Verdict]) -> str:
    shares = sorted(one.used for one in own if not one.refused)
    return f"{sum(shares) / len(shares):.0%} ({shares[0]:.0%})" if shares else "–"


def situations(found: Sequence[Verdict]) -> str:
    """What became of all that the user wrote, by situation."""
    head = ("situation, window", "trials", "texts", "room for", "kept", "torn", "lost",
            "kept by head and tail", "in another's name", "older one kept instead", "cannot fit",
            "above the window", "sent of the target (least)")  # fmt: skip
    rows = list[Sequence[object]]()
    for name, own in grouped(found, situation).items():
        fates = [fate for one in own for fate in one.fates]
        rows.append((
            name, len(own), len(fates), sum(sum(one.possible) for one in own),
            *(fates.count(fate) for fate in ("kept", "torn", "lost")),
            sum(one.rival for one in own), sum(one.moved for one in own),
            sum(one.outlived for one in own), sum(one.refused for one in own),
            sum(one.over for one in own), _used(own),
        ))  # fmt: skip
    return _table(head, rows)


def _rules(one: Verdict) -> Iterable[tuple[Written, Fate]]:
    pairs = zip(one.trial.written, one.fates, strict=True)
    return ((written, fate) for written, fate in pairs if written.kind in RULES)


def by_rule(found: Sequence[Verdict], word: Callable[[Written], str], title: str) -> str:
    """How many rules are kept, of how many, by a word for them and by situation."""
    own = [one for one in found if not one.trial.situation.startswith((PAIRS, "specification"))]
    columns = grouped(own, situation)
    counts: dict[str, dict[str, list[bool]]] = {}
    for column, verdicts in columns.items():
        for one in verdicts:
            for written, fate in _rules(one):
                cells = counts.setdefault(word(written), {})
                cells.setdefault(column, []).append(fate == "kept")
    order = sorted(counts, key=lambda name: (RULES.index(name) if name in RULES else -1, name))
    rows = [
        (name, *(_of(counts[name].get(column, [])) for column in columns)) for name in order
    ]  # fmt: skip
    return _table((title, *columns), rows)


def _of(kept: Sequence[bool]) -> str:
    return f"{sum(kept)} of {len(kept)}" if kept else "–"


def _in(found: Sequence[Verdict], *names: str) -> list[Verdict]:
    return [one for one in found if one.trial.situation in names]


def errors(own: Sequence[Verdict], key: Callable[[Verdict], str], title: str) -> str:
    """Whether the paste gave way and what was written did not."""
    head = (title, "trials", "right: all written kept, every paste cut", "a paste kept whole",
            "written shortened", "of these taken for pasted", "taken for written",
            "little pasted left")  # fmt: skip
    rows = list[Sequence[object]]()
    for name, some in grouped(own, key).items():
        short = [one for one in some if one.unkept]
        pasted = sum(one.taken_for_pasted for one in short)
        written = sum(one.taken_for_written for one in short)
        right = sum(not one.unkept and not one.whole for one in some)
        rows.append((
            name, len(some), right, sum(one.whole > 0 for one in some), len(short), pasted,
            written, len(short) - pasted - written,
        ))  # fmt: skip
    return _table(head, rows)


def paste_kind(one: Verdict) -> str:
    """What was pasted, and whether in a fence."""
    pasted = one.trial.pasted[0]
    return f"{pasted.kind}{', fenced' if pasted.fenced else ''}"


def shapes(found: Sequence[Verdict]) -> str:
    """Of long messages: what else the user wrote in them, by its shape."""
    columns = grouped(_in(found, NEWEST, OLDER), situation)
    counts: dict[str, dict[str, list[bool]]] = {}
    for column, own in columns.items():
        for one in own:
            for written, fate in zip(one.trial.written, one.fates, strict=True):
                name = "rules" if written.kind in RULES else written.kind
                counts.setdefault(name, {}).setdefault(column, []).append(fate == "kept")
    rows = [(name, *(_of(cells[column]) for column in columns)) for name, cells in counts.items()]
    return _table(("written", *columns), rows)


def specifications(found: Sequence[Verdict]) -> str:
    """How much of the room is used, and whether the request is kept."""
    own = [one for one in found if one.trial.situation.startswith("specification")]
    head = ("pasted", "trials", "cannot fit", "request kept at the beginning", "at the end",
            "sent of the target (least)", "below 90 %")  # fmt: skip
    rows = list[Sequence[object]]()
    for name, some in grouped(own, paste_kind).items():
        ends = [
            _of([one.fates[0] == "kept" for one in some if one.trial.label == label])
            for label in ("at the beginning", "at the end")
        ]
        sent = [one for one in some if not one.refused]
        rows.append((name, len(some), len(some) - len(sent), *ends, _used(some),
                     sum(one.used < 0.9 for one in sent)))  # fmt: skip
    return _table(head, rows)


def corrections(found: Sequence[Verdict]) -> str:
    """What is left of a rule and its correction: the original alone is the error."""
    own = [one for one in found if one.trial.situation.startswith(PAIRS)]
    head = ("situation, window", "the correction comes", "pairs", "both kept",
            "only the correction", "neither", "only the original")  # fmt: skip
    rows = list[Sequence[object]]()
    for name, some in grouped(own, lambda one: f"{situation(one)}\t{one.trial.label}").items():
        told = [pair for one in some for pair in pairs(one)]
        counts = [told.count(pair) for pair in
                  ((True, True), (False, True), (False, False), (True, False))]  # fmt: skip
        rows.append((*name.split("\t"), len(told), *counts))
    return _table(head, rows)


def pairs(one: Verdict) -> list[tuple[bool, bool]]:
    """Of each pair: whether the original is kept, and whether its correction is."""
    fates = {w.text: fate == "kept" for w, fate in zip(one.trial.written, one.fates, strict=True)}
    return [(fates[w.corrects], fates[w.text]) for w in one.trial.written if w.corrects]


def everything(found: Sequence[Verdict]) -> str:
    """All tables."""
    parts = {
        "What the user wrote": situations(found),
        "Rules kept, by kind": by_rule(found, lambda rule: rule.kind, "kind"),
        "Rules kept, by language": by_rule(found, lambda rule: rule.language, "language"),
        "The newest message is long: what is pasted": errors(
            _in(found, NEWEST), paste_kind, "pasted"
        ),
        "An older message is long: what is pasted": errors(_in(found, OLDER), paste_kind, "pasted"),
        "A paste after prose": errors(_in(found, AFTER_PROSE), paste_kind, "pasted"),
        "Long messages: where the rule is": errors(
            _in(found, NEWEST, OLDER), lambda one: f"{situation(one)}, {one.trial.label}", "rule"
        ),
        "Long messages: what is written": shapes(found),
        "A specification of twice the window": specifications(found),
        "Corrections": corrections(found),
    }
    return "\n\n".join(f"### {title}\n\n{table}" for title, table in parts.items())
