"""compaction-conformance-kit: typed canaries in chats, five rounds, budgets in characters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from compaction_kit.benchmark import run_budget_benchmark
from compaction_kit.canaries import Canary, CanaryType, seeded_canaries
from compaction_kit.cli import COMPACTORS
from compaction_kit.compacted import CompactedContext
from compaction_kit.corpus import position_bucket
from compaction_kit.generated import build_generated_session
from compaction_kit.probes import BehaviorProbe
from compaction_kit.report import build_report
from compaction_kit.runner import run_conformance
from compaction_kit.session import SeededSession, Turn, build_seeded_session

import trimtab
from kits.tables import share, table

Message = dict[str, Any]
MODEL = "gpt-5"
"""Its vocabulary is public (o200k)."""
BUDGETS = (0.10, 0.20, 0.30)
"""The kit's own: shares of the characters of a session."""
ROUNDS = 5
SEEDS = range(1, 13)
"""Those of its command ``corpus``."""
HITS = 5
"""Lines of one search."""
BENCHMARK_SEEDS = (1, 2, 3, 4)
"""Those of its command ``benchmark``."""


def text_of(messages: Sequence[Message]) -> str:
    """Messages as the kit writes a session."""
    return "\n".join(f"[{message['role']}] {message['content']}" for message in messages)


class Trimtab:
    """trimtab as the kit's compactor: turns become messages of their roles, and the text is what
    the model would be sent.

    The window is the budget, in tokens of this session.  Round 2 compacts the messages that round
    1 sent, and so on: the kit hands back their text, which is looked up here.
    """

    name = "trimtab"

    def __init__(self) -> None:
        self._sent: dict[str, list[Message]] = {}
        self._tokens_per_char = 0.0
        self.session: trimtab.Session | None = None
        """Of the last cut."""

    def compact(
        self, turns: list[Turn], round_num: int = 1, budget_chars: int | None = None
    ) -> CompactedContext:
        """One round; without a budget nothing presses, and everything is sent."""
        messages = self._messages(turns)
        request = {"model": MODEL, "messages": messages}
        text = text_of(messages)
        if round_num == 1:
            self._tokens_per_char = trimtab.count_tokens(request) / len(text)
            self.session = None
        if budget_chars is not None and len(text) > budget_chars:
            messages = self._within(request, budget_chars)
            text = text_of(messages)
        self._sent[text] = messages
        return CompactedContext(text, self.name, round_num)

    def _messages(self, turns: Sequence[Turn]) -> list[Message]:
        if len(turns) == 1 and turns[0].text in self._sent:
            return self._sent[turns[0].text]
        return [{"role": turn.role, "content": turn.text} for turn in turns]

    def _within(self, request: dict[str, Any], chars: int) -> list[Message]:
        """Fitted to the budget; a smaller window where it is over in characters, not in tokens."""
        window = int(chars * self._tokens_per_char)
        while len(text_of(messages := self._fit(request, window))) > chars:
            window = int(0.98 * window)
        return messages

    def _fit(self, request: dict[str, Any], window: int) -> list[Message]:
        """Defaults, without an output reserve: the budget is for what is sent."""
        self.session = trimtab.Session(window=window, reserve=0)
        fitted: list[Message] = self.session.fit(request).request["messages"]
        return fitted


class Filled(Trimtab):
    """The same with the largest window of which the result is within the budget: a cut leaves room
    for the next turns, and the kit has none."""

    name = "trimtab, budget filled"

    def _within(self, request: dict[str, Any], chars: int) -> list[Message]:
        best, window = super()._within(request, chars), int(chars * self._tokens_per_char)
        for percent in range(110, 180, 10):
            before = self.session
            messages = self._fit(request, window * percent // 100)
            if len(text_of(best)) < len(text_of(messages)) <= chars:
                best = messages
            else:
                self.session = before
        return best


OURS: tuple[type[Trimtab], ...] = (Trimtab, Filled)
FACTORIES: dict[str, Callable[[], Any]] = {**COMPACTORS, **{one.name: one for one in OURS}}


def leaderboard() -> str:
    """The kit's ``benchmark``, all compactors together."""
    found = run_budget_benchmark(FACTORIES, budgets=BUDGETS, seeds=BENCHMARK_SEEDS, rounds=ROUNDS)
    head = ("budget", "rank", "compactor", "within the budget", "survival", "updates resolved",
            "old value present", "near-duplicates both kept", "sent")  # fmt: skip
    rows = list[Sequence[object]]()
    for one in found["entries"]:
        semantic = one["semantic"]
        conflicts = semantic["conflicts"]
        rows.append((
            f"{one['budget_fraction']:.0%}", one["rank"], one["compactor"],
            "yes" if one["budget_compliant"] else "no",
            f"{one['randomized']['overall_final_survival']:.1%}",
            f"{semantic['resolved_rate']:.1%}", f"{conflicts['stale']} of {conflicts['n']}",
            f"{semantic['distinct_pair_rate']:.1%}", f"{one['mean_final_output_ratio']:.1%}",
        ))  # fmt: skip
    return table(head, rows)


def checked() -> str:
    """The kit's ``check`` on its seeded session: the canaries of each type after each round."""
    head = ("budget", "compactor", *(one.value for one in CanaryType), "flagged", "cliffs")
    rows = list[Sequence[object]]()
    session = build_seeded_session()
    for budget in BUDGETS:
        for name, made in FACTORIES.items():
            run = run_conformance(session, made(), rounds=ROUNDS, budget_fraction=budget)
            report = build_report(run, canaries=seeded_canaries(), session=session)
            rows.append((
                f"{budget:.0%}", name,
                *(f"{one.round1_survival:.0%} → {one.final_survival:.0%}"
                  for one in report.findings),
                len(report.flagged_types), len(report.late_cliff_types),
            ))  # fmt: skip
    return table(head, rows)


def rotating() -> str:
    """The kit's generated sessions: survival by place, values that were updated, and what one
    search for the kit's question adds to ours."""
    head = ("budget", "compactor", "early", "middle", "late", "all", "newest value there",
            "old value there too", "old value alone", "with one search")  # fmt: skip
    rows = list[Sequence[object]]()
    for budget in BUDGETS:
        for name, made in FACTORIES.items():
            rows.append((f"{budget:.0%}", name, *_generated(made, budget)))
    return table(head, rows)


def _generated(made: Callable[[], Any], budget: float) -> list[str]:
    """One row over all seeds."""
    by_place: dict[str, list[bool]] = {"early": [], "middle": [], "late": []}
    searched, updated = list[bool](), list[tuple[bool, bool]]()
    for seed in SEEDS:
        session, canaries = build_generated_session(seed)
        compactor = made()
        run = run_conformance(
            session, compactor, rounds=ROUNDS, canaries=canaries, budget_fraction=budget
        )
        text = run.rounds[-1].context.text.lower()
        for one in canaries:
            held = run.rounds[-1].survived[one.id]
            by_place[_place(session, one)].append(held)
            if one.superseded_tokens:
                updated.append((held, any(old in text for old in one.superseded_tokens)))
            if isinstance(compactor, Trimtab):
                searched.append(held or _found(compactor, one, text))
    every = [held for own in by_place.values() for held in own]
    counts = [updated.count(pair) for pair in ((True, True), (False, True))]
    newest = sum(held for held, _ in updated)
    of = len(updated)
    return [
        *(share(own) for own in by_place.values()), share(every), f"{newest} of {of}",
        *(f"{count} of {of}" for count in counts), share(searched),
    ]  # fmt: skip


def _place(session: SeededSession, canary: Canary) -> str:
    return str(position_bucket(session, canary.id))


def _found(compactor: Trimtab, canary: Canary, text: str) -> bool:
    """Whether the canary is there once a search for the kit's own question is answered."""
    if compactor.session is None:
        return False
    found = compactor.session.search(canary.direct_question, most=HITS)
    hits = "\n".join(hit.text for hit in found)
    return bool(BehaviorProbe().probe(canary, f"{text}\n{hits}").survived)
