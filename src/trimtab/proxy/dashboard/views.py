"""The pages: all sessions, one session, one edit, the token form.

Each function works out what its template shows.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256
from typing import Any
from urllib.parse import quote

from trimtab.journal.folded_steps import CONTENTS_CHARS, folded_steps, steps_of
from trimtab.proxy.activity_log import ActivityLog, EditRecord, RefusalRecord, SessionRecord
from trimtab.proxy.dashboard import chart
from trimtab.reporting.axis import short_number
from trimtab.reporting.pages import stylesheet, templates

HOME = "/_trimtab/"
LIVE_SECONDS = 5
SHOWN_SESSIONS, SHOWN_EDITS = 100, 200
SHOWN_CHARS = 60_000
Trail = Sequence[tuple[str, str]]
SESSIONS: Trail = (("Sessions", HOME),)


def style_hash() -> str:
    """Lets the policy of the pages name the one style there is."""
    return b64encode(sha256(stylesheet(__package__).encode()).digest()).decode()


def page_templates() -> Any:
    """The templates.  Raises MissingExtra without jinja2."""
    return templates(__package__, "proxy")


def _page(
    name: str, title: str, *, trail: Trail = (), live: int = 0, problem: str = "", **shown: Any
) -> bytes:
    """A whole page.  ``live``: seconds after which the browser loads it again; ``problem``: a line
    at its top."""
    from markupsafe import Markup

    template = page_templates().get_template(name)
    text: str = template.render(
        title=title, trail=trail, live=live, problem=problem, home=HOME,
        style=Markup(stylesheet(__package__)), **shown,
    )  # fmt: skip
    return text.encode("utf-8", "replace")


def home(
    activity: ActivityLog, now: float, url: str, wanted: str, *, live: bool, problem: str = ""
) -> bytes:
    """All sessions, newest first; ``wanted`` is searched for in them.

    ``problem``: of the store.
    """
    found = [one for one in reversed(activity.sessions.values()) if _matches(one, wanted)]
    return _page(
        "home.html", "Sessions", live=LIVE_SECONDS if live else 0, any=bool(activity.sessions),
        url=url, wanted=wanted, figures=_totals(activity), problem=problem,
        sessions=[_session_row(one, now) for one in found[:SHOWN_SESSIONS]],
        more=len(found) - SHOWN_SESSIONS,
    )  # fmt: skip


def _totals(activity: ActivityLog) -> list[tuple[str, str, str]]:
    """Figures over all sessions: (name, figure, what it means)."""
    totals = activity.totals
    share = totals["tokens_saved"] / max(totals["tokens_arrived"], 1)
    rows = [
        ("Tokens saved", short_number(totals["tokens_saved"]),
         "not sent, summed over all requests"),
        ("of all that arrived", f"{share:.0%}", "saved / arrived"),
        ("Requests", f"{totals['turns']:,}", "made to fit since the proxy was started"),
        ("Edits", f"{totals['edits']:,}", "each is made once and then stays"),
        ("Refusals survived", f"{totals['refusals_survived']:,}", "the client never saw them"),
        ("Read from cache", _share(totals["cached_tokens"], totals["prompt_tokens"]),
         "of the prompt tokens the providers counted"),
    ]  # fmt: skip
    if activity.warm.pings:
        net = activity.warm.saved - activity.warm.spent
        rows.append(("Kept warm", f"{net:+.2f} $", str(activity.warm)))
    if activity.money:
        rows.append(
            ("Money saved", _dollars(activity.dollars), "US dollars, about, at list prices")
        )
    return rows


def _matches(one: SessionRecord, wanted: str) -> bool:
    words = wanted.casefold().split()
    named = " ".join((one.id, one.hint, one.client, one.model, one.upstream, one.format)).casefold()
    return all(word in named for word in words)


def _session_row(one: SessionRecord, now: float) -> dict[str, Any]:
    return {
        "id": one.id, "title": one.title, "upstream": one.upstream, "model": one.model,
        "client": one.client.partition("/")[0].partition(" ")[0][:24] or "–",
        "last": ago(now - one.last),
        "numbers": (
            one.count, short_number(one.turns[-1].sent if one.turns else 0),
            short_number(one.saved), len(one.edits), len(one.refusals),
        ),
    }  # fmt: skip


def session(one: SessionRecord, now: float, wanted: str, *, live: bool, problem: str = "") -> bytes:
    """One session: its context over the turns, its edits, its refusals."""
    words = wanted.casefold().split()
    found = [
        edit for edit in reversed(one.edits.values())
        if all(w in f"{edit.kind} {edit.tool} {edit.why} {edit.handle}".casefold() for w in words)
    ]  # fmt: skip
    client = one.client or "a client that gives no name"
    about = f"{client} to {one.upstream}, {one.format}, {one.model or 'model unknown'}; "
    about += f"begun {ago(now - one.began)}, last {ago(now - one.last)}"
    if one.arm:
        about += f"; of the experiment: {one.arm}"
    return _page(
        "session.html", one.title, trail=SESSIONS, live=LIVE_SECONDS if live else 0,
        about=about, figures=_figures(one), problem=problem, chart=chart.context(list(one.turns)),
        any=bool(one.edits), wanted=wanted, address=f"{HOME}s/{one.id}",
        edits=[_edit_row(edit, one.ratio) for edit in found[:SHOWN_EDITS]],
        more=len(found) - SHOWN_EDITS,
        refusals=[_refusal_row(refusal, now) for refusal in reversed(one.refusals)],
    )  # fmt: skip


def _figures(one: SessionRecord) -> list[tuple[str, str, str]]:
    last = one.turns[-1] if one.turns else None
    full = last.sent / last.window if last and last.window else None
    prompt = sum(turn.prompt for turn in one.turns)
    cached = sum(turn.cached for turn in one.turns)
    return [
        ("Sent now", short_number(last.sent) if last else "–", "tokens of the last request"),
        ("of the window", f"{full:.0%}" if full is not None else "–", "less the output reserve"),
        ("Would be", short_number(last.arrived) if last else "–", "tokens, had nothing been cut"),
        ("Saved", short_number(one.saved), "tokens not sent, over all turns"),
        ("Read from cache", _share(cached, prompt), "of the tokens the provider counted"),
        ("Turns", f"{one.count:,}", "requests of this session"),
    ]


def _edit_row(edit: EditRecord, ratio: float) -> dict[str, Any]:
    sizes = (edit.tokens_before, edit.tokens_after, edit.saved)
    return {
        "path": quote(edit.handle, safe=""), "handle": edit.handle, "kind": edit.kind,
        "of": edit.tool or "–", "why": edit.why,
        "numbers": (edit.turn, *(short_number(size * ratio) for size in sizes)),
    }  # fmt: skip


def _refusal_row(refusal: RefusalRecord, now: float) -> dict[str, Any]:
    return {
        "when": ago(now - refusal.when), "turn": refusal.turn, "status": refusal.status,
        "kind": refusal.kind.replace("_", " "), "action": refusal.action,
    }  # fmt: skip


def edit(
    one: SessionRecord, found: EditRecord, before: str | None, after: str, *, token: str, said: str,
    actions: Sequence[tuple[str, str, str]], step: str = "",
) -> bytes:  # fmt: skip
    """One edit: the original beside what is sent; of steps that were folded together their table
    of contents, and the one that is asked for (``step``, its number).  ``actions``: (name, label,
    what it does)."""
    steps = folded_steps(before) if before and len(before) > CONTENTS_CHARS else []
    steps = steps if len(steps) > 1 else []
    chosen = int(step) if steps and step.isdecimal() and len(step) < 7 else 0
    if before is not None and 0 < chosen <= len(steps):
        before = steps_of(before, chosen, chosen)
    return _page(
        "edit.html", found.handle, trail=(*SESSIONS, (one.title, f"{HOME}s/{one.id}")),
        about=f"{found.kind} of {found.tool or 'text'}, turn {found.turn}: {found.why}",
        said=said, actions=actions, token=token, session=one.id,
        before=None if before is None else _cut(before), after=_cut(after),
        steps=steps, chosen=chosen,
        before_tokens=f"{round(found.tokens_before * one.ratio):,}",
        after_tokens=f"{round(found.tokens_after * one.ratio):,}",
    )  # fmt: skip


def _cut(value: str) -> str:
    if len(value) <= SHOWN_CHARS:
        return value
    cut = f"\n… {len(value) - SHOWN_CHARS:,} more characters: trimtab recall has them all"
    return value[:SHOWN_CHARS] + cut


def sign_in(failed: bool) -> bytes:
    """Asks for the token."""
    return _page("sign_in.html", "Token", failed=failed)


def message(title: str, about: str) -> bytes:
    """A page with one line."""
    return _page("message.html", title, trail=SESSIONS, about=about)


def ago(seconds: float) -> str:
    """``75`` → ``1 min ago``."""
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{int(seconds // size)} {unit} ago"
    return "now" if seconds < 2 else f"{int(seconds)} s ago"


def _dollars(amount: float) -> str:
    """``-1.5`` → ``−$1.50``."""
    return f"{'−' if amount < 0 else ''}${abs(amount):,.{2 if abs(amount) >= 1 else 4}f}"


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.0%}" if whole else "–"
