"""conpact: fifteen side constraints of a user, planted in recorded sessions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random
from typing import Any

from conpact import SCS, render_sc
from conpact.generate import inject

from kits.sessions import Message, Session, fits, texts, tokens
from kits.tables import share, table

POSITIONS = {"top": "early", "middle": "middle", "bottom": "late"}
"""The kit's: the first, the median and the last message of the user."""
GROUPS = 3
"""Each session is planted three times, so that each constraint comes at each place once."""
RANDOM = Random(0)
"""Of the kit's signature; these positions draw nothing."""


def planted(session: Session, turn: int) -> tuple[list[Message], dict[str, list[str]]]:
    """The session with five constraints at each place, and which."""
    messages, put = session.messages, dict[str, list[str]]()
    for number, position in enumerate(POSITIONS):
        group = [
            render_sc(row["sc"], strict=False, direct=True)
            for row in SCS
            if (int(row["id"]) + turn) % GROUPS == number
        ]
        messages, _ = inject(messages, "\n".join(group), position, 1, RANDOM)
        put[position] = group
    return messages, put


def kept(library: Any, found: Sequence[Session]) -> Sequence[object]:
    """A row: word for word in a message of the user, by place; and whether it could be sent."""
    by_place: dict[str, list[bool]] = {position: [] for position in POSITIONS}
    within, accepted, moved, sizes = list[bool](), list[bool](), 0, list[float]()
    for session in found:
        for turn in range(GROUPS):
            messages, put = planted(session, turn)
            sent, is_accepted = library(messages)
            own, other = _said(sent, users=True), _said(sent, users=False)
            for position, group in put.items():
                held = [text in own for text in group]
                by_place[position] += held
                moved += sum(
                    text in other for text, there in zip(group, held, strict=True) if not there
                )
            sizes.append(tokens(sent) / tokens(messages))
            within.append(fits(sent))
            accepted.append(is_accepted)
    every = [held for own_place in by_place.values() for held in own_place]
    return [
        library.name, *(share(own_place) for own_place in by_place.values()),
        f"{sum(every)} of {len(every)}", moved, f"{sum(within)} of {len(within)}",
        f"{sum(accepted)} of {len(accepted)}", f"{100 * sum(sizes) / len(sizes):.0f} %",
    ]  # fmt: skip


def _said(messages: Iterable[Message], *, users: bool) -> str:
    return "\n".join(
        text
        for message in messages
        if (message["role"] == "user") is users
        for text in texts(message)
    )


def measured(libraries: Sequence[Any], found: Sequence[Session]) -> str:
    """The table."""
    head = ("library", *POSITIONS.values(), "of all", "only in another's name",
            "within the window", "accepted", "sent")  # fmt: skip
    return table(head, [kept(library, found) for library in libraries])
