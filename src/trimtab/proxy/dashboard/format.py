"""How the pages write figures: times, shares, money, durations."""

from __future__ import annotations


def ago(seconds: float) -> str:
    """``75`` → ``1 min ago``."""
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{int(seconds // size)} {unit} ago"
    return "now" if seconds < 2 else f"{int(seconds)} s ago"


def dollars(amount: float) -> str:
    """``-1.5`` → ``−$1.50``, ``0.25`` → ``$0.2500``, ``1234.5`` → ``$1,234``."""
    if not amount:
        return "$0"
    digits = 4 if abs(amount) < 1 else 2 if abs(amount) < 1_000 else 0
    return f"{'−' if amount < 0 else ''}${abs(amount):,.{digits}f}"


def share(part: int, whole: int) -> str:
    """``1, 4`` → ``25%``."""
    return f"{part / whole:.0%}" if whole else "–"


def duration(seconds: float) -> str:
    """``0.084`` → ``84 ms``."""
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"
