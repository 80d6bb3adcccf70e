"""A bill as plain text, JSON, CSV and a page.  Missing figures are listed, never filled in."""

from __future__ import annotations

import csv
import io
import json
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from trimtab.amounts import many
from trimtab.pricing.arms import Savings
from trimtab.pricing.call_usage import KINDS
from trimtab.pricing.outcome import difference, dollars
from trimtab.pricing.paid import Paid, PaidCall, grouped, total
from trimtab.reporting.columns import aligned
from trimtab.reporting.pages import stylesheet, templates
from trimtab_lab.replay.bill import answers
from trimtab_lab.replay.bill.policies import MethodError, PolicyBill

SHOWN = 20
"""How many groups the terminal shows; files have all."""
WIDTH = 100
"""Columns of the first lines."""
NAMES = {
    "uncached": "input, not cached",
    "read": "read from the cache",
    "written": "written to the cache",
    "written_1h": "written for an hour",
    "output": "output",
}


@dataclass
class Bill:
    """The whole report.  ``unmeasured``: model calls without usage; ``again``: calls logged twice,
    but counted once; ``compactions``: by the client; ``error`` and ``policies``: None and empty if
    the bill has no policies."""

    calls: Sequence[PaidCall]
    by: str = "session"
    unmeasured: int = 0
    again: int = 0
    compactions: int = 0
    window: int | None = None
    error: MethodError | None = None
    policies: Sequence[PolicyBill] = ()
    savings: Savings | None = None
    of_store: bool = False
    notes: Sequence[str] = field(default_factory=tuple)

    @property
    def paid(self) -> Paid:
        """The sum over all calls."""
        return total(self.calls)

    @property
    def groups(self) -> list[Paid]:
        """The sums by the grouping ``by``."""
        return grouped(self.calls, self.by)

    @property
    def answers(self) -> list[tuple[str, str]]:
        """(question, answer): refused, paid, saved, how sure, what trimtab itself cost."""
        if self.of_store:
            return answers.of_store(self.calls, self.savings)
        return answers.of_logs(self.calls, self.policies, self.error)

    @property
    def not_measured(self) -> list[str]:
        """A line for each missing figure: what is missing, and why."""
        paid, said = self.paid, list[str]()
        if self.unmeasured:
            said.append(f"{many(self.unmeasured, 'call')}: the log has no usage for them")
        if paid.cut_output:
            said.append(
                f"output of {many(paid.cut_output, 'call')}: the client logged their usage before "
                "the answer had ended"
            )
        for model, count in paid.unpriced.most_common():
            said.append(f"money of {many(count, 'call')} of {model}: no price in our table")
        if self.compactions:
            said.append(
                f"what {many(self.compactions, 'compaction')} cost: clients do not log these calls"
            )
        if not any(call.day for call in self.calls):
            said.append("days, and what expired: the log has no times")
        for bill in self.policies:
            for reason, count in bill.not_measured.items():
                said.append(f"{bill.name}, {many(count, 'conversation')}: {reason}")
        return [*said, *self.notes]

    def as_dict(self) -> dict[str, Any]:
        """JSON-able."""
        return {
            "answers": dict(self.answers),
            "savings": None if self.savings is None else self.savings.as_dict(),
            "paid": self.paid.as_dict(), "by": self.by,
            "groups": [paid.as_dict() for paid in self.groups],
            "conversations": len({call.session for call in self.calls}),
            "logged_twice": self.again, "compactions": self.compactions, "window": self.window,
            "policies": [bill.as_dict() for bill in self.policies],
            "method_error": None if self.error is None else self.error.as_dict(),
            "not_measured": self.not_measured,
        }  # fmt: skip


# --- plain text ----------------------------------------------------------------------------------


def as_text(bill: Bill) -> str:
    """The bill as text for a terminal."""
    paid = bill.paid
    days = f", {paid.first_day} to {paid.last_day}" if paid.first_day else ""
    head = f"Paid, as the providers reported it{days}, at list prices:"
    width = max(len(question) for question, _ in bill.answers)
    parts = [
        line
        for question, answer in bill.answers
        for line in textwrap.wrap(
            answer, WIDTH, initial_indent=f"{question.ljust(width)}  ",
            subsequent_indent=" " * (width + 2),
        )
    ]  # fmt: skip
    parts += ["", head, "", *aligned([["", "tokens", "dollars"], *_kinds(paid)]), ""]
    groups = bill.groups
    if len(groups) > 1:
        rows = [[bill.by, "calls", "prompt tokens", "from cache", "dollars"]]
        rows += [group_cells(one) for one in groups[:SHOWN]]
        parts += [*aligned(rows)]
        if len(groups) > SHOWN:
            parts.append(f"and {len(groups) - SHOWN:,} more (--csv and --json have all)")
        parts.append("")
    if bill.policies:
        where = f"a window of {bill.window:,} tokens" if bill.window else "the window each one had"
        parts += [
            f"Their prompts, without output, under {where}; each line has the conversations that "
            "can be estimated:",
            "",
        ]
        heads = ["", "conversations", "cut", "paid", "would cost", "difference"]
        parts += [*aligned([heads, *(policy_cells(one) for one in bill.policies)]), ""]
    if bill.error is not None:
        parts += [method_line(bill.error), ""]
    if bill.not_measured:
        parts += ["Not measured:", *(f"  {line}" for line in bill.not_measured)]
    return "\n".join(parts).rstrip()


def _kinds(paid: Paid) -> Iterator[list[str]]:
    cost = paid.cost.as_dict()
    for kind in KINDS:
        if paid.tokens[kind]:
            yield [NAMES[kind], f"{paid.tokens[kind]:,}", dollars(cost[kind])]
    yield ["sum", f"{sum(paid.tokens.values()):,}", dollars(paid.cost.total)]


def group_cells(one: Paid) -> list[str]:
    """A line of the table by session, agent, day …"""
    prompt = sum(tokens for kind, tokens in one.tokens.items() if kind != "output")
    share = f"{100 * one.tokens['read'] / prompt:.0f} %" if prompt else "–"
    priced = one.calls > one.unpriced.total()
    return [
        one.name, f"{one.calls:,}", f"{prompt:,}", share,
        dollars(one.cost.total) if priced else "not measured",
    ]  # fmt: skip


def policy_cells(one: PolicyBill) -> list[str]:
    """A line of the table of policies."""
    if not one.conversations:
        return [one.name, "0", "–", "–", "not measured", "–"]
    return [
        one.name, f"{one.conversations:,}", f"{one.compacted:,}", dollars(one.paid),
        dollars(one.estimate), difference(one.estimate, one.paid) if one.paid else "–",
    ]  # fmt: skip


def method_line(error: MethodError) -> str:
    """A sentence about the error of the estimates on what was really sent."""
    if error.in_sum is None:
        return "The method's error: not measured, no call has both a usage and a price."
    low, mid, high = (100 * (error.quantile(q) or 0.0) for q in (0.05, 0.5, 0.95))
    return (
        f"The method's error, on what was really sent: {100 * error.in_sum:+.1f} % in sum "
        f"({error.calls:,} calls); by conversation (n = {len(error.by_conversation):,}): median "
        f"{mid:+.1f} %, nine of ten between {low:+.1f} % and {high:+.1f} %."
    )


# --- files ---------------------------------------------------------------------------------------


def as_json(bill: Bill) -> str:
    """All figures."""
    return json.dumps(bill.as_dict(), indent=2) + "\n"


def as_csv(bill: Bill) -> str:
    """One line for each session, day and model; a cell is empty if there is no figure."""
    text = io.StringIO()
    write = csv.writer(text, lineterminator="\n").writerow
    write(["session", "agent", "source", "day", "model", "calls", *KINDS,
           *(f"{kind}_dollars" for kind in KINDS), "calls_without_price",
           "calls_without_whole_output"])  # fmt: skip
    rows: dict[tuple[str, ...], Paid] = {}
    for call in bill.calls:
        key = (call.session, call.agent, call.source, call.day, call.usage.model)
        rows.setdefault(key, Paid()).add(call)
    for names, paid in rows.items():
        cost = paid.cost.as_dict()
        missing = paid.unpriced.total()
        dollars = ["" if missing == paid.calls else cost[kind] for kind in KINDS]
        tokens = [paid.tokens[kind] for kind in KINDS]
        write([*map(_no_formula, names), paid.calls, *tokens, *dollars, missing, paid.cut_output])
    return text.getvalue()


def _no_formula(text: str) -> str:
    """``text``, quoted if a spreadsheet would run it as a formula."""
    return f"'{text}" if text[:1] in ("=", "+", "-", "@") else text


def template() -> Any:
    """The page's template.  Raises MissingExtra without jinja2."""
    return templates("trimtab_lab.replay", "html").get_template("bill.html")


def as_html(bill: Bill) -> str:
    """A whole page; nothing in it is loaded from elsewhere.  Raises MissingExtra."""
    page = template()
    from markupsafe import Markup

    text: str = page.render(
        style=Markup(stylesheet("trimtab_lab.replay")), paid=bill.paid,
        kinds=list(_kinds(bill.paid)),
        conversations=len({call.session for call in bill.calls}), by=bill.by,
        groups=[group_cells(one) for one in bill.groups], window=bill.window,
        policies=[policy_cells(one) for one in bill.policies],
        method="" if bill.error is None else method_line(bill.error),
        not_measured=bill.not_measured, savings=bill.savings, answers=bill.answers,
    )  # fmt: skip
    return text


WRITERS: Mapping[str, Callable[[Bill], str]] = {"json": as_json, "csv": as_csv, "html": as_html}
