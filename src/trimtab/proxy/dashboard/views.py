"""The pages: all sessions, one session, one edit, the token.

Knows what is shown where.  Does not know HTTP; texts of edits are handed in.
"""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

from trimtab.proxy.dashboard import chart
from trimtab.proxy.dashboard.html import Html, ago, joined, page, short, table, tag, text, tiles
from trimtab.proxy.ledger import Edit, Ledger, Session

HOME = "/_trimtab/"
LIVE_SECONDS = 5
SHOWN_SESSIONS, SHOWN_EDITS = 100, 200
SHOWN_CHARS = 60_000


def home(ledger: Ledger, now: float, url: str, wanted: str, *, live: bool) -> bytes:
    """All sessions, newest first; ``wanted`` is searched for in them."""
    totals = ledger.totals
    found = [one for one in reversed(ledger.sessions.values()) if _matches(one, wanted)]
    if not ledger.sessions:
        return page("Sessions", tag("h1", "No sessions yet"), _welcome(url), live=LIVE_SECONDS)
    share = totals["tokens_saved"] / max(totals["tokens_arrived"], 1)
    figures = tiles([
        ("Tokens saved", short(totals["tokens_saved"]), "not sent, summed over all requests"),
        ("of all that arrived", f"{share:.0%}", "saved / arrived"),
        ("Requests", f"{totals['turns']:,}", "made to fit since the proxy was started"),
        ("Edits", f"{totals['edits']:,}", "each is made once and then stays"),
        ("Refusals survived", f"{totals['refusals_survived']:,}", "the client never saw them"),
        ("Read from cache", _share(totals["cached_tokens"], totals["prompt_tokens"]),
         "of the prompt tokens the providers counted"),
        *([("Money saved", _dollars(ledger.dollars), "US dollars, about, at list prices")]
          if ledger.money else []),
    ])  # fmt: skip
    rows = [
        (
            tag("a", one.title, href=f"{HOME}s/{one.id}"),
            _client(one), one.model or tag("span", "–", class_="soft"), ago(now - one.last),
            one.count, short(one.turns[-1].sent if one.turns else 0),
            short(one.saved), len(one.edits), len(one.refusals),
        )
        for one in found[:SHOWN_SESSIONS]
    ]  # fmt: skip
    heads = ("Session", "Client", "Model", "Last", "Turns", "Now", "Saved", "Edits", "Refusals")
    listing = table(heads, rows, wide=4) if rows else tag("p", "None matches.", class_="soft")
    return page(
        "Sessions", tag("h1", "Sessions"), figures, _search(HOME, wanted, "client, model, name …"),
        listing, _more(len(found), SHOWN_SESSIONS), live=LIVE_SECONDS if live else 0,
    )  # fmt: skip


def _welcome(url: str) -> Html:
    return tag(
        "div",
        tag("p", "Start an agent behind this proxy, or give any client this address as its base."),
        tag("p", tag("code", f"ANTHROPIC_BASE_URL={url} claude")),
        tag("p", tag("code", f"OPENAI_BASE_URL={url}/v1 your-agent")),
        class_="card empty",
    )


def _matches(one: Session, wanted: str) -> bool:
    words = wanted.casefold().split()
    told = " ".join((one.id, one.hint, one.client, one.model, one.upstream, one.format)).casefold()
    return all(word in told for word in words)


def _client(one: Session) -> Html:
    name = one.client.partition("/")[0].partition(" ")[0][:24] or "–"
    return joined([name, tag("span", f" → {one.upstream}", class_="soft")])


def session(one: Session, now: float, wanted: str, *, live: bool) -> bytes:
    """One session: its context over the turns, its edits, its refusals."""
    last = one.turns[-1] if one.turns else None
    full = last.sent / last.window if last and last.window else None
    prompt = sum(turn.prompt for turn in one.turns)
    cached = sum(turn.cached for turn in one.turns)
    figures = tiles([
        ("Sent now", short(last.sent) if last else "–", "tokens of the last request"),
        ("of the window", f"{full:.0%}" if full is not None else "–", "less the output reserve"),
        ("Would be", short(last.arrived) if last else "–", "tokens, had nothing been cut"),
        ("Saved", short(one.saved), "tokens not sent, over all turns"),
        ("Read from cache", _share(cached, prompt), "of the tokens the provider counted"),
        ("Turns", f"{one.count:,}", "requests of this session"),
    ])  # fmt: skip
    about = (
        f"{_plain_client(one)} to {one.upstream}, {one.format}, {one.model or 'model unknown'}; "
    )
    about += f"begun {ago(now - one.began)}, last {ago(now - one.last)}"
    return page(
        one.title, tag("h1", one.title), tag("p", about, class_="soft"), figures,
        tag("div", chart.context(list(one.turns)), chart.key(), class_="card"),
        tag("h2", "Edits"), _edits(one, wanted), tag("h2", "Refusals"), _refusals(one, now),
        trail=[("Sessions", HOME)], live=LIVE_SECONDS if live else 0,
    )  # fmt: skip


def _plain_client(one: Session) -> str:
    return one.client or "a client that gives no name"


def _edits(one: Session, wanted: str) -> Html:
    if not one.edits:
        return tag("p", "Nothing has been cut: all of it still fits.", class_="soft")
    words = wanted.casefold().split()
    found = [
        edit for edit in reversed(one.edits.values())
        if all(w in f"{edit.kind} {edit.tool} {edit.why} {edit.handle}".casefold() for w in words)
    ]  # fmt: skip
    rows = [
        (
            tag("a", edit.handle, href=f"{HOME}s/{one.id}/e/{quote(edit.handle, safe='')}"),
            edit.kind, edit.tool or "–", edit.why, edit.turn,
            *(short(n * one.ratio) for n in (edit.tokens_before, edit.tokens_after, edit.saved)),
        )
        for edit in found[:SHOWN_EDITS]
    ]  # fmt: skip
    heads = ("Original", "Kind", "Of", "Why", "Turn", "Before", "After", "Saves a turn")
    return joined([
        _search(f"{HOME}s/{one.id}", wanted, "kind, tool, reason …"), table(heads, rows, wide=4),
        _more(len(found), SHOWN_EDITS),
    ])  # fmt: skip


def _refusals(one: Session, now: float) -> Html:
    if not one.refusals:
        return tag("p", "None.", class_="soft")
    rows = [
        (
            ago(now - r.when), r.turn, r.status, r.kind.replace("_", " "),
            tag("span", r.action, class_="good" if r.action == "recovered" else "bad"),
        )
        for r in reversed(one.refusals)
    ]  # fmt: skip
    return table(("When", "Turn", "Status", "What the provider meant", "What was done"), rows)


def edit(
    one: Session, found: Edit, before: str | None, after: str, *, token: str, said: str,
    actions: Sequence[tuple[str, str, str]],
) -> bytes:  # fmt: skip
    """One edit: the original beside what is sent.  ``actions``: (name, label, what it does)."""
    forms = joined(
        tag(
            "form",
            tag("input", type="hidden", name="token", value=token),
            tag("input", type="hidden", name="session", value=one.id),
            tag("input", type="hidden", name="handle", value=found.handle),
            tag("button", label, title=about),
            method="post", action=f"{HOME}{name}",
        )
        for name, label, about in actions
    )  # fmt: skip
    original: object = tag("p", "No longer kept: run the tool again.", class_="soft")
    if before is not None:
        original = _shown(before)
    shown = _shown(after) if after else tag("p", "Nothing: it was taken out.", class_="soft")
    before_tokens = round(found.tokens_before * one.ratio)
    after_tokens = round(found.tokens_after * one.ratio)
    pair = tag(
        "div",
        tag("section", tag("h3", f"Original, {before_tokens:,} tokens"), original,
            class_="card before"),
        tag("section", tag("h3", f"Sent instead, {after_tokens:,} tokens"), shown,
            class_="card after"),
        class_="pair",
    )  # fmt: skip
    about = f"{found.kind} of {found.tool or 'text'}, turn {found.turn}: {found.why}"
    return page(
        found.handle, tag("h1", found.handle), tag("p", about, class_="soft"),
        tag("p", said, class_="good") if said else "",
        tag("div", forms, class_="row"), pair,
        trail=[("Sessions", HOME), (one.title, f"{HOME}s/{one.id}")],
    )  # fmt: skip


def _shown(value: str) -> Html:
    if len(value) <= SHOWN_CHARS:
        return tag("pre", value)
    cut = f"\n… {len(value) - SHOWN_CHARS:,} more characters: trimtab recall has them all"
    return tag("pre", value[:SHOWN_CHARS] + cut)


def sign_in(failed: bool) -> bytes:
    """Asks for the token."""
    return page(
        "Token", tag("h1", "This dashboard asks for a token"),
        tag("p", "The one that the proxy was started with (TRIMTAB_PROXY_TOKEN).", class_="soft"),
        tag("p", "That is not it.", class_="bad") if failed else "",
        tag("form", tag("input", type="password", name="token", autocomplete="off"),
            tag("button", "Open"), method="post", action=f"{HOME}token", class_="row"),
    )  # fmt: skip


def message(title: str, about: str) -> bytes:
    """A page with one line."""
    return page(title, tag("h1", title), tag("p", about, class_="soft"), trail=[("Sessions", HOME)])


def _search(action: str, wanted: str, hint: str) -> Html:
    return tag(
        "form", tag("input", type="search", name="q", value=wanted, placeholder=hint),
        tag("button", "Search"), method="get", action=action, class_="row", role="search",
    )  # fmt: skip


def _more(found: int, shown: int) -> Html:
    return tag("p", f"{found - shown:,} more", class_="soft") if found > shown else text("")


def _dollars(amount: float) -> str:
    """``-1.5`` → ``−$1.50``."""
    return f"{'−' if amount < 0 else ''}${abs(amount):,.{2 if abs(amount) >= 1 else 4}f}"


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.0%}" if whole else "–"
