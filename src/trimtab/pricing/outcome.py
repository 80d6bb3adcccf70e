"""The first words of every report: how many requests would have been refused, then the money.

Every command and page that has these figures says them in these words.
"""

from __future__ import annotations

from trimtab.amounts import many

CHEAP = 0.10
"""Sums below this many dollars are written with four digits."""
SAME = "the same"


def refusals(refused: int, calls: int, still_refused: int = 0, *, played: bool = False) -> str:
    """A sentence about requests that were larger than the window, or invalid.

    ``refused``: without trimtab; ``still_refused``: with it.  ``played``: a recording was played,
    so nothing was answered anew.

    >>> refusals(22, 41)
    '22 of 41 requests would have been refused; all were answered.'
    >>> refusals(22, 41, 1, played=True)
    '22 of 41 requests would have been refused; with trimtab, 1.'
    """
    if not refused and not still_refused:
        return f"None of {many(calls, 'request')} would have been refused."
    if played:
        after = f"with trimtab, {f'{still_refused:,}' if still_refused else 'none'}"
    else:
        were = "was" if still_refused == 1 else "were"
        after = f"{still_refused:,} still {were}" if still_refused else "all were answered"
    return f"{refused:,} of {many(calls, 'request')} would have been refused; {after}."


def within_budget(larger: int, calls: int) -> str:
    """The same sentence where the window is a budget: smaller than the model's own.

    >>> within_budget(11, 21)
    '11 of 21 requests were larger than your window and were cut; the model would have taken them.'
    """
    were, them = ("was", "it") if larger == 1 else ("were", "them")
    return (
        f"{larger:,} of {many(calls, 'request')} {were} larger than your window and {were} cut; "
        f"the model would have taken {them}."
    )


def money(spent: float, otherwise: float, other: str = "with everything sent") -> str:
    """A sentence that compares two sums in US dollars.

    >>> money(0.394, 0.357)
    'trimtab costs $0.03 more: $0.39 for the prompts, $0.36 with everything sent.'
    """
    apart, digits = difference(spent, otherwise), _digits(spent, otherwise)
    if apart == SAME:
        return f"trimtab costs the same: {dollars(spent)} for the prompts, as {other}."
    return (
        f"trimtab costs {apart}: ${spent:,.{digits}f} for the prompts, "
        f"${otherwise:,.{digits}f} {other}."
    )


def difference(spent: float, otherwise: float) -> str:
    """``$0.03 more``, ``$0.08 less``: of the sums as they are written; SAME if they look equal."""
    digits = _digits(spent, otherwise)
    apart = round(round(spent, digits) - round(otherwise, digits), digits)
    return f"${abs(apart):,.{digits}f} {'more' if apart > 0 else 'less'}" if apart else SAME


def _digits(*amounts: float) -> int:
    return 2 if max(map(abs, amounts)) >= CHEAP or not any(amounts) else 4


def dollars(amount: float) -> str:
    """``$12.30``, ``$0.0268``; two digits from ten cents on."""
    return f"{'−' if amount < 0 else ''}${abs(amount):,.{_digits(amount)}f}"


def compared(part: float, other: str) -> str:
    """A sentence about a difference as a share of another sum.

    >>> compared(-0.06, "sending everything")
    'trimtab costs 6.0 % less than sending everything.'
    """
    words = share(part)
    return f"trimtab costs {words} {'as' if words == SAME else 'than'} {other}."


def share(part: float) -> str:
    """``6.0 % more``, ``12 % less``; SAME below 0.05 %."""
    percent = abs(part) * 100
    if percent < 0.05:
        return SAME
    return f"{percent:.{0 if percent >= 9.95 else 1}f} % {'more' if part > 0 else 'less'}"
