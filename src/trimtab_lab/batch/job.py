"""One batch run over a corpus: plans shards, resumes after a kill, and writes the manifest.

Progress is on disk only.  ``unfinished/00000.done.json`` marks a finished shard, ``manifest.json``
a finished run.  To resume a killed run, start it again with the same arguments.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack

from trimtab.errors import InvalidSetting, expect
from trimtab.settings import FitKeywords, Settings, check_names, with_keywords
from trimtab_lab.batch import engines, files, manifest, sources
from trimtab_lab.batch.records import RecordOptions
from trimtab_lab.batch.shard import WORK, BatchJob, ShardDone, check_settings, done_name
from trimtab_lab.batch.sources import Shard

SHARD_BYTES = 32_000_000
"""Bytes of input per shard.  One core processes some 3 MB a second, so a kill loses seconds."""
JOB = f"{WORK}/job.json"


@dataclass(frozen=True)
class Finished:
    """A finished run: the content of ``manifest.json`` and the number of shards.

    ``taken_up``: how many of the shards an earlier run had already finished.
    """

    manifest: dict[str, Any]
    shards: int
    taken_up: int


def run(
    src: str | os.PathLike[str],
    dst: str | os.PathLike[str],
    *,
    key: str | None = None,
    originals: bool = False,
    jobs: int | None = None,
    engine: str = "local",
    shard_bytes: int = SHARD_BYTES,
    progress: Callable[[int, int, int], None] = lambda done, total, fresh: None,
    **keywords: Unpack[FitKeywords],
) -> Finished:
    """Fit every record of ``src`` (a file, a folder, an address) into the folder ``dst``.

    Takes the keywords of ``trimtab.fit``; unless a preset is given, ``trigger`` and ``target`` are
    1, as no turn follows that room would be left for.  ``key``: the key of a record that has the
    request.  ``originals``: whether to write what edits replaced, by handle.  ``jobs``: processes
    (None: one per core; 1: this process).  ``engine``: "local" or "ray".  ``shard_bytes``: bytes of
    input per output file.  ``progress`` is called with (bytes done, bytes in all, bytes this run
    did).

    The output depends on the input and the settings alone.  Raises InvalidSetting if ``dst``
    contains anything but this run, ``src`` has no record, or its first records show that a setting
    is wrong; MissingExtra, OSError.
    """
    check_names(keywords, FitKeywords.__annotations__.keys(), "run")
    expect(type(shard_bytes) is int and shard_bytes > 0, "shard_bytes", shard_bytes, "bytes")
    expect(jobs is None or (type(jobs) is int and jobs > 0), "jobs", jobs, "a number of processes")
    work = engines.engine(engine)
    source, out = _absolute("src", src), _absolute("dst", dst)
    _expect_folder(out, source)
    wanted = RecordOptions(_with_defaults(with_keywords(Settings(), keywords)), key, originals)
    source_files = files.found(source, tuple(sources.KINDS))
    facts = _facts(source, source_files, wanted, shard_bytes)
    identity = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:32]
    folder = files.folder(out)
    if (known := _earlier_run(folder, facts, identity)) is not None:
        return Finished(known, known["shards"], known["shards"])
    shards = sources.shards(source_files, shard_bytes)
    check_settings(shards, wanted)
    with folder.write(JOB) as file:
        file.write(json.dumps({"job": identity, **facts}, indent=1).encode())
    done = _done_before(folder, shards, identity)
    taken_up = len(done)
    job, processes = BatchJob(source, out, wanted, identity), jobs or os.cpu_count() or 1
    done |= _fit_missing(work, job, shards, done, processes, progress)
    return Finished(_finish(folder, source, facts, identity, done.values()), len(shards), taken_up)


def _fit_missing(
    work: engines.Engine,
    job: BatchJob,
    shards: Sequence[Shard],
    done: Mapping[int, ShardDone],
    processes: int,
    progress: Callable[[int, int, int], None],
) -> dict[int, ShardDone]:
    """Fit the shards that are not among ``done``; ``progress`` as for ``run``."""
    missing = [shard for shard in shards if shard.number not in done]
    total = sum(shard.size for shard in shards)
    before = bytes_done = total - sum(shard.size for shard in missing)
    progress(before, total, 0)

    def tell(size: int) -> None:
        nonlocal bytes_done
        bytes_done += size
        progress(min(bytes_done, total), total, bytes_done - before)

    return {shard.number: shard for shard in work(job, missing, processes, tell)}


def _absolute(which: str, name: str | os.PathLike[str]) -> str:
    one = "one file, folder or address" if which == "src" else "the folder of the output"
    expect(isinstance(name, (str, os.PathLike)), which, name, one)
    text = os.fspath(name)
    return text.rstrip("/") if files.is_address(text) else os.path.abspath(text)


def _expect_folder(out: str, source: str) -> None:
    """Raise InvalidSetting for an output that cannot be a separate folder."""
    if out == source:
        raise InvalidSetting(f"{out} is what is read: give another folder for the output")
    if f"{out}/".startswith(f"{source}/"):
        raise InvalidSetting(f"{out} is in {source}, which is read: give another folder")
    if ends := [end for end in sources.KINDS if out.endswith(end)]:
        raise InvalidSetting(
            f"{out}: the output is a folder of several files; give its name, without {ends[-1]}"
        )
    if not files.is_address(out) and os.path.isfile(out):
        raise InvalidSetting(f"{out} is a file: give a folder for the output")


def _with_defaults(given: Settings) -> Settings:
    """The settings with those that suit a record: it is cut only if it must be, and to the limit.
    A preset that is given decides both."""
    if "preset" in given.given:
        return given
    if "window_trigger" in given.given:
        return Settings(target=1.0) | given
    return Settings(trigger=1.0, target=1.0) | given


def _facts(
    source: str, source_files: Sequence[files.SourceFile], wanted: RecordOptions, shard_bytes: int
) -> dict[str, Any]:
    """Everything the output depends on, as JSON."""
    listed = [[files.relative(file.name, source), file.size, file.state] for file in source_files]
    parquet = any(sources.kind_of(file.name) == "parquet" for file in source_files)
    return {
        "versions": manifest.versions(parquet=parquet),
        "settings": {name: _as_json(value) for name, value in wanted.settings.given.items()},
        "key": wanted.key, "originals": wanted.originals, "shard_bytes": shard_bytes,
        "source": {
            "files": len(listed), "bytes": sum(file.size for file in source_files),
            "digest": hashlib.sha256(json.dumps(listed).encode()).hexdigest()[:32],
        },
    }  # fmt: skip


def _as_json(value: Any) -> Any:
    """A setting as JSON; a function by its name."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, Mapping):
        return {str(key): _as_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_as_json(item) for item in value]
    if callable(value):
        named = value if hasattr(value, "__qualname__") else type(value)
        return f"{named.__module__}.{named.__qualname__}"
    return repr(value)


def _earlier_run(
    folder: files.OutputFolder, facts: dict[str, Any], identity: str
) -> dict[str, Any] | None:
    """The manifest of this job if it is finished.  A run that wrote no record is removed.

    Raises InvalidSetting if the folder contains another run or other files.
    """
    names = set(folder.names())
    partial = {name for name in names if Path(name).name.startswith(files.PARTIAL)}
    for name in partial:
        folder.remove(name)
    if (data := folder.read(manifest.NAME)) is not None:
        finished: dict[str, Any] = json.loads(data)
        if finished.get("job") == identity:
            _clean(folder)
            return finished
        if finished["records"]["written"]:
            raise _another_run(finished, facts)
        for name in (*finished["files"], manifest.NAME):
            folder.remove(name)
    elif (data := folder.read(JOB)) is not None:
        begun = json.loads(data)
        if begun.get("job") != identity:
            raise _another_run(begun, facts)
    elif names - partial:
        raise InvalidSetting(
            "the output folder holds files that are not from a batch run: give a new or empty one"
        )
    return None


def _another_run(before: dict[str, Any], facts: dict[str, Any]) -> InvalidSetting:
    other = [key for key in facts if key != "settings" and before.get(key) != facts[key]]
    theirs, ours = before.get("settings", {}), facts["settings"]
    other += [
        f"{name} ({_shown(theirs, name)}, now {_shown(ours, name)})"
        for name in sorted({*theirs, *ours})
        if theirs.get(name) != ours.get(name)
    ]
    return InvalidSetting(
        f"the output folder holds a run with other {', '.join(other)}: use the same arguments, "
        "or give another folder"
    )


def _shown(settings: Mapping[str, Any], name: str) -> str:
    return json.dumps(settings[name], ensure_ascii=False) if name in settings else "not given"


def _done_before(
    folder: files.OutputFolder, shards: Sequence[Shard], identity: str
) -> dict[int, ShardDone]:
    """Finished shards: their done file belongs to this job and their files have its sizes."""
    names, done_shards = set(folder.names()), dict[int, ShardDone]()
    for shard in shards:
        if (name := done_name(shard.number)) not in names:
            continue
        done = ShardDone.of(folder.read(name), identity)
        if done and all(folder.size(own) == file[0] for own, file in done.files.items()):
            done_shards[shard.number] = done
    return done_shards


def _finish(
    folder: files.OutputFolder,
    source: str,
    facts: dict[str, Any],
    identity: str,
    shards_done: Iterable[ShardDone],
) -> dict[str, Any]:
    """Write the manifest, then remove the files of the unfinished run."""
    done = sorted(shards_done, key=lambda one: one.number)
    written = {
        name: file for one in done for name, file in sorted(one.files.items())
        if not name.startswith(f"{WORK}/")
    }  # fmt: skip
    summed = dict(manifest.summed(folder, done))
    firsts = summed["first_errors"]
    summed["first_errors"] = {kind: _with_line(first, source) for kind, first in firsts.items()}
    tree = {
        "manifest": 1, "job": identity, **facts, **summed,
        "shards": len(done),
        "files": {name: {"bytes": size, "sha256": sum_} for name, (size, sum_) in written.items()},
    }  # fmt: skip
    with folder.write(manifest.NAME) as file:
        file.write(json.dumps(tree, indent=1, ensure_ascii=False).encode())
    _clean(folder)
    return tree


def _with_line(first: dict[str, Any], source: str) -> dict[str, Any]:
    if first["kind"] not in sources.BY_LINE:
        return first
    return {**first, "line": sources.line_at(files.named(first["file"], source), first["at"])}


def _clean(folder: files.OutputFolder) -> None:
    for name in folder.names():
        if name.startswith(f"{WORK}/"):
            folder.remove(name)
