"""One false signal of each kind that can be learned, then ordinary requests; and true limits.

    python -m tests.soak.newest.signals
    python -m tests.soak.newest.signals --doors wrap --only window,bare-error

A *false* signal: the provider takes everything, and once says otherwise.  The requests behind it
are compared with those of a run in which it kept silent: what differs, in the conversation that
was told so and in the others.
A *true* limit: the provider always says so.  How many sends until it answers, how often it refuses
afterwards: in this conversation, in a second and a third, after a restart on the same store, on
another replica; and whether those two send the same bytes.
*Unasked* are second sends in the run without any signal.
Ends with 1 where there are such, where another conversation is changed by a false signal, where
a true limit is not met within its sends, or where a restart or a replica meets a refusal or sends
other bytes.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TESTS), str(TESTS.parent / "src")]

import httpx2  # noqa: E402

import trimtab  # noqa: E402
from soak.newest.formats import answer_of  # noqa: E402
from soak.newest.ordinary import Ordinary, requests  # noqa: E402
from soak.newest.said import SIGNALS, Body, Signal, tokens_of  # noqa: E402
from soak.newest.upstream import Upstream  # noqa: E402
from trimtab.proxy import Proxy, ProxySettings, Server  # noqa: E402
from trimtab.proxy import Upstream as ProxyUpstream  # noqa: E402

DOORS = ("wrap", "proxy")
CONVERSATIONS = 12
BEFORE, AFTER = 25, 100
"""Ordinary requests at least before the signal, and behind it; the conversations take turns."""

# --- the provider ---


@dataclass
class Provider:
    """Answers.  ``armed``: it says the signal to the next send, once; ``true``: it always does
    where the signal holds.  Answers have a usage only where the signal is about counts."""

    signal: Signal
    armed: bool = False
    true: bool = False
    seen: list[tuple[Body, int, bytes]] = field(default_factory=list)

    def reply(self, _: str, data: bytes) -> tuple[int, Any]:
        """The answer to one send."""
        body, signal = json.loads(data), self.signal
        now, self.armed = self.armed, False
        says = signal.says is not None and (
            now or (self.true and signal.holds is not None and signal.holds(body))
        )
        status, answer = 200, answer_of(signal.format, self._count(body, now))
        if says and signal.says is not None:
            status, answer = signal.says(body)
        self.seen.append((body, status, data))
        return status, answer

    def _count(self, body: Body, now: bool) -> int | None:
        if self.signal.counts is None:
            return None
        return self.signal.counts(tokens_of(body)) if now else tokens_of(body)


Sender = Callable[[Body], int]


@contextmanager
def door(name: str, provider: Provider, store: str) -> Iterator[Sender]:
    """Sends bodies; returns the status of the last answer."""
    signal = provider.signal
    headers = {"content-type": "application/json", "authorization": "Bearer x",
               "anthropic-version": "2023-06-01"}  # fmt: skip
    if name == "wrap":

        def handle(request: httpx2.Request) -> httpx2.Response:
            status, answer = provider.reply(request.url.path, request.content)
            return httpx2.Response(status, json=answer)

        session = trimtab.Session(window=signal.window, store=store)
        with httpx2.Client(transport=httpx2.MockTransport(handle)) as inner:
            client = trimtab.wrap(inner, session=session)
            yield (
                lambda body: (
                    client.post(
                        signal.host, content=json.dumps(body).encode(), headers=headers
                    ).status_code
                )
            )
        session.close()
        return
    path = re.sub(r"https?://[^/]+", "", signal.host)
    with Upstream(provider.reply) as upstream:
        settings = ProxySettings(
            fit=trimtab.Settings(window=signal.window), listen=":0", drain_seconds=0.5, store=store,
            upstreams=(ProxyUpstream("provider", upstream.url),),
        )  # fmt: skip
        with Server(Proxy(settings)) as server, httpx2.Client() as client:
            url = f"http://127.0.0.1:{server.port}{path}"
            yield (
                lambda body: (
                    client.post(
                        url, content=json.dumps(body).encode(), headers=headers, timeout=60
                    ).status_code
                )
            )


# --- the two runs ---


@dataclass
class FalseRun:
    """What one false signal did.  ``unasked``: sends beyond one a request in the run without it."""

    sends: int = 0
    saved: bool = True
    unasked: int = 0
    own: int = 0
    own_of: int = 0
    others: int = 0
    others_of: int = 0
    first: str = ""


def _last_bodies(name: str, signal: Signal, asked: list[Ordinary], at: int) -> tuple[
    list[Body], list[int], list[int]
]:  # fmt: skip
    """Of each request: the body that was sent last, how many sends, the status."""
    provider = Provider(signal)
    bodies, sends, statuses = list[Body](), list[int](), list[int]()
    with (
        tempfile.TemporaryDirectory() as folder,
        door(name, provider, f"sqlite:///{folder}/a.db") as send,
    ):
        for n, one in enumerate(asked):
            before, provider.armed = len(provider.seen), n == at
            statuses.append(send(one.body))
            sends.append(len(provider.seen) - before)
            bodies.append(provider.seen[-1][0])
    return bodies, sends, statuses


def false_signal(name: str, signal: Signal) -> FalseRun:
    """Compare a run with one false signal, and one without."""
    asked = list(requests(signal.format, CONVERSATIONS, signal.model))
    at = next(n for n, one in enumerate(asked) if one.conversation == 0 and n >= BEFORE)
    asked = asked[: at + 1 + AFTER]
    undisturbed, quiet, _ = _last_bodies(name, signal, asked, -1)
    told, sends, statuses = _last_bodies(name, signal, asked, at)
    run = FalseRun(sends[at], statuses[at] == 200, sum(quiet) - len(quiet))
    for n in range(at + 1, len(asked)):
        own = asked[n].conversation == 0
        differs = told[n] != undisturbed[n] or sends[n] != 1
        run.own_of, run.others_of = run.own_of + own, run.others_of + (not own)
        run.own, run.others = run.own + (own and differs), run.others + (not own and differs)
        if differs and not own and not run.first:
            run.first = f"request {n - at} behind it: {difference(undisturbed[n], told[n])}"
    return run


def difference(before: Body, after: Body) -> str:
    """In a few words."""
    if before == after:
        return "sent twice"
    parts = list[str]()
    for key in before.keys() | after.keys():
        old, new = before.get(key), after.get(key)
        if old == new:
            continue
        if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
            changed = [n for n, (a, b) in enumerate(zip(old, new, strict=True)) if a != b]
            parts.append(f"{len(changed)} of {len(old)} {key}, "
                         f"{len(json.dumps(old)):,} → {len(json.dumps(new)):,} chars")  # fmt: skip
        elif isinstance(old, list) and isinstance(new, list):
            parts.append(f"{len(old)} → {len(new)} {key}, "
                         f"{len(json.dumps(old)):,} → {len(json.dumps(new)):,} chars")  # fmt: skip
        else:
            parts.append(f"{key}: {old!r} → {new!r}"[:60])
    return "; ".join(sorted(parts))


@dataclass
class TrueRun:
    """What became of a true limit.  Refusals are counted after it was met once.

    ``second``, ``third``: in two other conversations, one after the other; the second may confirm
    what one refusal alone does not prove.
    """

    sends: int = 0
    met: bool = False
    own: int = 0
    second: int = 0
    third: int = 0
    restart: int = 0
    restart_same: bool = True
    replica: int = 0
    replica_same: bool = True


def true_limit(name: str, signal: Signal) -> TrueRun:
    """Meet the limit, go on, restart on the same store, and ask a second replica."""
    every = list(requests(signal.format, 3, signal.model))
    own, second, third = ([one.body for one in every if one.conversation == n] for n in range(3))
    holds = signal.holds
    assert holds is not None
    first = next(n for n, body in enumerate(own) if holds(body) and n >= 3)
    run = TrueRun()
    assert first + 3 < len(own)

    def refused(provider: Provider, send: Sender, body: Body) -> tuple[int, bytes]:
        before = len(provider.seen)
        send(body)
        new = provider.seen[before:]
        return sum(status >= 400 for _, status, _ in new), new[-1][2]

    with tempfile.TemporaryDirectory() as folder:
        store, copied = f"{folder}/a.db", f"{folder}/b.db"
        one = Provider(signal, true=True)
        with door(name, one, f"sqlite:///{store}") as send:
            run.met = send(own[first]) == 200
            run.sends = len(one.seen)
            run.own = refused(one, send, own[first + 1])[0]
            two = Provider(signal, true=True)
            with door(name, two, f"sqlite:///{store}") as replica:
                run.replica, theirs = refused(two, replica, own[first + 2])
            again, ours = refused(one, send, own[first + 2])
            run.own, run.replica_same = run.own + again, theirs == ours
            run.second = refused(one, send, second[-2])[0]
            run.third = refused(one, send, third[-2])[0]
            _copy(store, copied)  # as it is when the process is killed
            again, ours = refused(one, send, own[first + 3])
            run.own += again
        three = Provider(signal, true=True)
        with door(name, three, f"sqlite:///{copied}") as send:
            run.restart, theirs = refused(three, send, own[first + 3])
            run.restart_same = theirs == ours
    return run


def _copy(store: str, copied: str) -> None:
    import sqlite3

    with sqlite3.connect(store) as source, sqlite3.connect(copied) as target:
        source.backup(target)


# --- the table ---


def main() -> int:
    """The command line."""
    arguments = argparse.ArgumentParser(description="what one false signal does")
    arguments.add_argument("--doors", default=",".join(DOORS), help="some of them, with commas")
    arguments.add_argument("--only", default="", help="names of signals, with commas")
    asked = arguments.parse_args()
    names = asked.only.split(",") if asked.only else [signal.name for signal in SIGNALS]
    chosen = [signal for signal in SIGNALS if signal.name in names]
    wrong = 0
    print(f"{'false signal':<22}{'door':<7}{'sends':>6}{'saved':>7}{'this conv. differs':>20}"
          f"{'others differ':>15}{'unasked':>9}  first difference")  # fmt: skip
    for signal in chosen:
        for name in asked.doors.split(","):
            run = false_signal(name, signal)
            wrong += run.others > 0 or run.unasked > 0
            print(f"{signal.name:<22}{name:<7}{run.sends:>6}{run.saved!s:>7}"
                  f"{f'{run.own} of {run.own_of}':>20}{f'{run.others} of {run.others_of}':>15}"
                  f"{run.unasked:>9}"
                  f"  {run.first}", flush=True)  # fmt: skip
    print(f"\n{'true limit':<22}{'door':<7}{'sends':>6}{'met':>7}{'refused: this conv.':>20}"
          f"{'second':>9}{'third':>9}{'restart':>9}{'replica':>9}"
          "  same bytes: restart, replica")  # fmt: skip
    for signal in chosen:
        if signal.holds is None:
            continue
        for name in asked.doors.split(","):
            met = true_limit(name, signal)
            wrong += not true_is_right(signal, met)
            print(f"{signal.name:<22}{name:<7}{met.sends:>6}{met.met!s:>7}{met.own:>20}"
                  f"{met.second:>9}{met.third:>9}{met.restart:>9}{met.replica:>9}"
                  f"  {met.restart_same}, "
                  f"{met.replica_same}", flush=True)  # fmt: skip
    return int(wrong > 0)


def true_is_right(signal: Signal, met: TrueRun) -> bool:
    """Met within its sends, remembered, and the same on a restart and a second replica."""
    # One refusal of a request with images tells little of what a token is to the provider.
    remembered = met.own == met.restart == 0 and met.replica <= 1
    known = (met.second <= 1 and met.third == 0) or not signal.everywhere
    return (
        met.met and met.sends <= signal.sends and remembered and known
        and met.restart_same and met.replica_same
    )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
