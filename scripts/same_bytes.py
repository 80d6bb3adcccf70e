"""Whether two states of the package send the same bytes.

    git worktree add ../baseline COMMIT
    python scripts/same_bytes.py artefacts ../artefacts --src ../baseline/src
    python scripts/same_bytes.py record a.json --src ../baseline/src --continue-from ../artefacts
    python scripts/same_bytes.py record b.json --continue-from ../artefacts
    python scripts/same_bytes.py compare a.json b.json

``record`` runs a package over recorded conversations and writes digests of what it sends;
``compare`` names the keys that differ, with the first turn, and ends with 1 where there are any.
``--sample`` takes a few of each part: three minutes of one core, where all takes more than an hour.
A sample may be compared with a full recording by ``--common``.  ``artefacts`` leaves journals and
store files from the middle of conversations, for ``--continue-from``.  ``--part`` names parts:

  session     each recording in its own format, turn by turn, at four windows
  variant     some recordings in five formats and with three presets
  option      settings, pins, undone and pruned edits, learned factors
  single      fit, check, repair and convert on each recording's last request
  store       sessions on SQLite files, several on one file, and begun by another release
  proxy       growing bodies through ``trimtab proxy``, with refusals, recall and streams
  flow        refusals in the words of providers
  wrap        clients of five SDKs, with refusals, recall, notes and streams; nothing is sent away
  langchain   agents of LangChain with our middleware, and ``pre_model_hook``
  search      what ``Session`` and the tools say of what was taken out
  rounds      a model behind the proxy that recalls, notes and prunes, unseen by its client

A value has ``digest`` (all turns), ``each`` (4 hex of every turn) and ``journal`` (edits at the
end).  Data is read from TRIMTAB_DATA, or ../../shared/data beside this clone.  Only what trimtab
exports is used, and the few names in digests/chain.py: tell there where they have gone.
"""

from __future__ import annotations

import argparse
import json
import logging
import multiprocessing
import os
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from digests import agents, conversations, kept, lookups, proxied, refused, rounds, single, wrapped
from digests.chain import Told
from digests.corpus import Record, number, records, some
from digests.upstream import PATHS

ROOT = Path(__file__).resolve().parents[1]
PARTS = (
    "session", "variant", "option", "single", "store", "proxy", "flow", "wrap", "langchain",
    "search", "rounds",
)  # fmt: skip
OPTION_RECORDS, VARIANT_RECORDS, STORE_RECORDS = 5, 40, 20


class Task(NamedTuple):
    """A function that yields keys and digests, what it is given, and roughly how long it takes."""

    part: str
    act: Callable[..., Iterator[tuple[str, Told]]]
    given: tuple[Any, ...]
    size: int


def tasks(args: argparse.Namespace, found: list[Record]) -> Iterator[Task]:
    """All tasks, or a part of them for a sample."""
    sample = args.sample
    busy = [record for record in found if record.busy]
    rest = [record for record in found if not record.busy]
    part = [*some(busy, 28, "session"), *some(rest, 24, "session")] if sample else found
    for record in _bounded(part, sample, 700_000):
        windows: Sequence[int] = conversations.WINDOWS
        if sample and record.size > 150_000:  # the longest at one window only
            windows = windows[number(record.name, 3) :][:1]
        yield Task("session", conversations.sessions, (record, windows), record.size)
    long = some(busy, VARIANT_RECORDS, "variant")
    share = 3 if sample else 1
    for record in _bounded(long, sample, 300_000)[: 6 if sample else None]:
        yield Task("variant", conversations.variants, (record, share), 3 * record.size // share)
    yield from _option_tasks(found, sample)
    part = some(busy, 20, "single") + some(rest, 36, "single")
    part = list({record.name: record for record in part}.values()) if sample else found
    for record in _bounded(part, sample, 600_000):
        yield Task("single", single.calls, (record,), record.size)
    yield from _store_tasks(args, found)
    yield from _proxy_tasks(found, args)
    for task in _flow_tasks(args, found):
        if not sample or number(str(task.given[0].name), 16) == 0:
            yield task
    yield from _door_tasks(found, args)


def _bounded(part: Sequence[Record], sample: bool, most: int) -> list[Record]:
    """The records; a sample leaves out those of at least ``most``."""
    return [record for record in part if not sample or record.size < most]


def _option_tasks(found: list[Record], sample: bool) -> Iterator[Task]:
    for at, name in enumerate(OPTIONS):
        long = [record for record in found if record.busy and record.size < 400_000]
        picked = some(long, OPTION_RECORDS, name)
        if name == "images":
            picked += [record for record in found if b'"image' in record.line][:OPTION_RECORDS]
        if name.startswith("articles") or name == "summarizer":
            picked += some([r for r in found if r.source.startswith("rag-")], 3, name)
        own = picked[-1:] if len(picked) > OPTION_RECORDS else picked[at % OPTION_RECORDS :][:1]
        for record in own if sample else picked:
            yield Task("option", conversations.with_option, (record, name), record.size)


def _store_tasks(args: argparse.Namespace, found: list[Record]) -> Iterator[Task]:
    some_ = begun(found)
    for at, record in enumerate(some_):
        if args.sample and (at % 4 or record.size > 800_000):
            continue
        yield Task("store", kept.stored, (record,), record.size)
        if at % 8 == 0:
            other = some_[(at + 1) % len(some_)]
            yield Task("store", kept.two, (record, other), record.size + other.size)
        if args.continue_from:
            place = Path(args.continue_from).absolute()
            yield Task("store", kept.go_on, (record, place), record.size)


def begun(found: list[Record]) -> list[Record]:
    """The records used for stores that one release begins and another continues."""
    return some((record for record in found if record.busy), STORE_RECORDS, "store")


def _proxy_tasks(found: list[Record], args: argparse.Namespace) -> Iterator[Task]:
    whole = [r for r in found if r.busy and r.size < 600_000 and not r.broken]
    for at, scene in enumerate(proxied.SCENES):
        for on, format in enumerate(PATHS):
            own = [record for record in whole if record.format == format] or whole
            given = (scene, format, some(own, 2, scene), args.src)
            if not args.sample or at % len(PATHS) == on:
                yield Task("proxy", proxied.scene, given, 2_000_000)


def _door_tasks(found: list[Record], args: argparse.Namespace) -> Iterator[Task]:
    """What speaks for a client, an agent or a model."""
    sample = args.sample
    most = 250_000 if sample else 500_000
    whole = [r for r in found if r.busy and r.size < most and not r.broken]
    for format in wrapped.FORMATS:
        own = [record for record in whole if record.format == format] or whole
        for at, scene in enumerate(wrapped.SCENES):
            for record in some(own, 1 if sample else 8, f"wrap {format} {at}"):
                yield Task("wrap", wrapped.scene, (scene, record, format), 2 * record.size)
    for at, model in enumerate(agents.MODELS):
        for on, scene in enumerate(agents.SCENES):
            for record in some(whole, 1 if sample else 12, f"agent {model} {scene}"):
                if not sample or at == on or scene == "notes":
                    yield Task("langchain", agents.agent, (scene, record, model), 2 * record.size)
    for record in some(whole, 2 if sample else 16, "hook"):
        yield Task("langchain", agents.hook, (record,), 2 * record.size)
    for record in some(whole, 6 if sample else 40, "search"):
        yield Task("search", lookups.lookups, (record, 3 if sample else 1), 5 * record.size)
    for at, scene in enumerate(rounds.SCENES):
        for on, format in enumerate(PATHS):
            own = [record for record in whole if record.format == format] or whole
            given = (scene, format, some(own, 1 if sample else 4, f"rounds {scene}"), args.src)
            if not sample or (at + on) % 2 == 0:
                yield Task("rounds", rounds.scene, given, 3_000_000)


def _flow_tasks(args: argparse.Namespace, found: list[Record]) -> Iterator[Task]:
    fair = [r for r in found if r.busy and 120_000 <= r.size < 400_000 and not r.broken]
    picked = some(fair, 6, "flow")
    for error in refused.errors(args.data.parent / "provider_errors.jsonl"):
        yield Task("flow", refused.refusals, (error, picked), 500_000)


OPTIONS = (
    "prices", "protected", "duplicates", "failed-inputs",
    "result-chars", "request-bytes", "images", "target", "drop-block", "quote", "articles",
    "articles-keep", "summarizer", "estimate", "own-counter", "calls-left", "strict", "open-tail",
    "pins", "no-strategies", "observed", "said", "pruned",
)  # fmt: skip
"""Names in ``conversations.options``, repeated here as the package is not loaded yet."""


# --- running ---

_TASKS: list[Task] = []
"""The tasks, passed to other processes by forking."""


def _done(at: int) -> tuple[int, float, list[tuple[str, Told]]]:
    since, task = time.process_time(), _TASKS[at]
    rows = list[tuple[str, Told]]()
    try:
        for row in task.act(*task.given):
            rows.append(row)
    except Exception as error:  # what is no error of the package's own is told, too
        text = "".join(traceback.format_exception(error))
        name = "/".join(_name(one) for one in task.given)
        print(f"failed: {task.part}, {name}\n{text}", file=sys.stderr)
        failed: Told = {"digest": type(error).__name__, "turns": len(rows), "each": ""}
        rows.append((f"failed/{task.part}/{name}", failed))
    return at, time.process_time() - since, rows


def _name(given: Any) -> str:
    """Of one of the things that a task is given; none of a folder."""
    if isinstance(given, str) and not given.startswith("/"):
        return given
    return str(getattr(given, "name", "")) if isinstance(given, Record | refused.Error) else ""


def _load(src: str) -> None:
    """Load the package from this folder, and from no other."""
    sys.path.insert(0, src)
    import trimtab

    if not Path(str(trimtab.__file__)).is_relative_to(src):
        raise SystemExit(f"trimtab was loaded from {trimtab.__file__}, not from {src}")
    logging.getLogger("trimtab").setLevel(logging.CRITICAL + 1)


def record(args: argparse.Namespace) -> int:
    """Write digests of all that the package sends."""
    _load(args.src)
    since = time.monotonic()
    wanted = set(args.part or PARTS)
    _TASKS[:] = [t for t in tasks(args, records(args.data)) if t.part in wanted]
    order = sorted(range(len(_TASKS)), key=lambda at: -_TASKS[at].size)
    told, spent = dict[str, Told](), Counter[str]()
    for at, seconds, rows in _mapped(order, args.jobs):
        spent[_TASKS[at].part] += seconds  # type: ignore[assignment]
        for key, value in rows:
            assert key not in told, key
            told[key] = value
        if args.verbose:
            print(f"{seconds:6.1f} s  {rows[0][0] if rows else '-'}", file=sys.stderr)
    Path(args.out).write_text(json.dumps(dict(sorted(told.items())), indent=0), encoding="utf-8")
    counts = Counter(key.partition("/")[0] for key in told)
    print(f"{args.out}: {len(told)} keys in {time.monotonic() - since:.0f} s, {args.jobs} job(s)")
    print("  keys: " + ", ".join(f"{part} {count}" for part, count in sorted(counts.items())))
    print("  CPU s: " + ", ".join(f"{part} {round(s)}" for part, s in spent.items()))
    return 0


def _mapped(order: list[int], jobs: int) -> Iterator[tuple[int, float, list[tuple[str, Told]]]]:
    if jobs == 1:
        yield from map(_done, order)
        return
    with multiprocessing.get_context("fork").Pool(jobs) as pool:
        yield from pool.imap_unordered(_done, order)


def artefacts(args: argparse.Namespace) -> int:
    """Leave conversations that another state of the package goes on with."""
    _load(args.src)
    place = Path(args.out).absolute()
    place.mkdir(parents=True, exist_ok=True)
    found = begun(records(args.data))
    for one in found:
        kept.begin(one, place)
    print(f"{place}: {len(found)} conversations")
    return 0


def compare(args: argparse.Namespace) -> int:
    """Name what differs."""
    a, b = (json.loads(Path(name).read_text(encoding="utf-8")) for name in (args.a, args.b))
    keys = sorted(a.keys() & b.keys() if args.common else a.keys() | b.keys())
    differing = [(key, said) for key in keys if (said := _differs(a.get(key), b.get(key), args))]
    total = Counter(key.partition("/")[0] for key in keys)
    wrong = Counter(key.partition("/")[0] for key, _ in differing)
    if not args.quiet or differing:
        for part, count in sorted(total.items()):
            print(f"{part:20} {count:6} keys {wrong[part]:6} differ")
    for key, said in differing[: args.most]:
        print(f"  {key}: {said}")
    if len(differing) > args.most:
        print(f"  and {len(differing) - args.most} more")
    if not keys:
        print("nothing to compare")
    return 1 if differing or not keys else 0


def _differs(a: Told | None, b: Told | None, args: argparse.Namespace) -> str:
    """What differs, in a few words; "" where nothing does."""
    if a is None or b is None:
        return "only in the second" if a is None else "only in the first"
    said = list[str]()
    if a["digest"] != b["digest"]:
        steps = zip(range(10**9), _each(a), _each(b), strict=False)
        first = next((at for at, x, y in steps if x != y), None)
        many = f"{a['turns']}" if a["turns"] == b["turns"] else f"{a['turns']} or {b['turns']}"
        said.append(f"bytes, first at step {first} of {many}")
    if a.get("journal") != b.get("journal") and not args.bytes_only:
        said.append(f"journal ({a.get('edits')} and {b.get('edits')} edits)")
    return "; ".join(said)


def _each(told: Told) -> list[str]:
    text = told["each"]
    return [text[at : at + 4] for at in range(0, len(text), 4)]


def _data() -> Path:
    given = os.environ.get("TRIMTAB_DATA")
    places = [Path(given)] if given else [p / "shared" / "data" for p in ROOT.parents]
    return next((place for place in places if place.is_dir()), places[0])


def main() -> int:
    """Read the arguments and do what they say."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    commands = parser.add_subparsers(required=True)
    for act in (record, artefacts):
        one = commands.add_parser(act.__name__, help=act.__doc__)
        one.add_argument("out")
        one.add_argument("--src", default=str(ROOT / "src"), type=lambda s: str(Path(s).resolve()))
        one.add_argument("--data", default=_data(), type=Path)
        one.set_defaults(act=act)
        if act is record:
            one.add_argument("--sample", action="store_true")
            one.add_argument("--jobs", type=int, default=1)
            one.add_argument("--part", action="append", choices=PARTS)
            one.add_argument("--continue-from", metavar="FOLDER")
            one.add_argument("--verbose", action="store_true")
    one = commands.add_parser("compare", help=compare.__doc__)
    one.add_argument("a")
    one.add_argument("b")
    one.add_argument("--common", action="store_true", help="only keys that both have")
    one.add_argument("--bytes-only", action="store_true", help="pass over the journals")
    one.add_argument("--quiet", action="store_true", help="say nothing where nothing differs")
    one.add_argument("--most", type=int, default=40, help="name so many keys")
    one.set_defaults(act=compare)
    args = parser.parse_args()
    return int(args.act(args))


if __name__ == "__main__":
    raise SystemExit(main())
