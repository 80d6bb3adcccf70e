"""Time zones as the logs spell them, and which hour a moment belongs to."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone


def parse_zone(text: str) -> timezone:
    """Return the zone of an offset such as ``+0545``, ``-03:30`` or ``Z``."""
    if text in ("Z", "UTC"):
        return UTC
    digits = text.replace(":", "")
    hours, minutes = int(digits[:3]), int(digits[3:5])
    return timezone(timedelta(hours=hours, minutes=minutes))


def hour_of(when: datetime, zone: timezone) -> datetime:
    """Return the start of the hour that ``when`` belongs to, as read off a clock in ``zone``."""
    local = when.astimezone(zone)
    return local.replace(minute=0, second=0, microsecond=0)


def spell_zone(zone: timezone) -> str:
    """Return ``+05:45`` for a zone; the inverse of parse_zone."""
    seconds = int(zone.utcoffset(None).total_seconds())
    sign = "-" if seconds < 0 else "+"
    hours, rest = divmod(abs(seconds), 3600)
    return f"{sign}{hours:02d}:{rest // 60:02d}"
