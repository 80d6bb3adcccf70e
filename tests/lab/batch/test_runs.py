"""A corpus from end to end: complete, the same however it is done, and taken up after a kill.

TRIMTAB_KILLS: how often the command is killed (default 2).
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from corpora import contents, lines_of, record, written

import trimtab
from trimtab.cli import main
from trimtab.errors import InvalidSetting
from trimtab_lab import batch
from trimtab_lab.batch import manifest

KILLS = int(os.environ.get("TRIMTAB_KILLS", "2"))
WINDOW = 3_000
CHAT = {"messages": [{"role": "user", "content": "hello"}]}


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """A folder: two files of lines, one in gzip, one document, and what is not read."""
    source = tmp_path / "in"
    written(source / "a.jsonl", [record(n) for n in range(5)] + ["", "nope", CHAT])
    written(source / "deep" / "b.jsonl", [record(n) for n in range(3, 8)])
    lines = b"".join(json.dumps(record(n)).encode() + b"\n" for n in range(8, 11))
    (source / "c.jsonl.gz").write_bytes(gzip.compress(lines))
    (source / "d.json").write_text(json.dumps(record(11), indent=1))
    (source / "notes.txt").write_text("no record")
    return source


def run(source: Path, out: Path, **options: Any) -> batch.Finished:
    options = {"window": WINDOW, "jobs": 1, "shard_bytes": 20_000, **options}
    return batch.run(source, out, **options)


def alone(request: Any) -> trimtab.Fitted[str]:
    """What a run makes of one record."""
    return trimtab.fit(
        json.dumps(request), settings=trimtab.Settings(trigger=1, target=1), window=WINDOW
    )


def test_each_record_is_written_once_in_order_or_named_with_its_error(
    corpus: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    told = run(corpus, out).manifest
    numbers = [*range(5), None, *range(8, 11), 11, *range(3, 8)]  # files by their names
    given = [CHAT if n is None else record(n) for n in numbers]
    wanted = [json.loads(alone(one).request) for one in given]
    found = [
        json.loads(row)
        for part in sorted(out.glob("part-*"))
        for row in (gzip.decompress if part.suffix == ".gz" else bytes)(
            part.read_bytes()
        ).splitlines()
    ]
    assert found == wanted
    (error,) = lines_of(out, "errors/*.jsonl")
    at = (corpus / "a.jsonl").read_bytes().index(b"nope")
    assert (error["file"], error["at"]) == ("a.jsonl", at)
    assert (error["error"], error["record"]) == ("InvalidRequest", "nope")
    assert told == json.loads((out / "manifest.json").read_text())
    assert told["records"] == {"read": 16, "written": 15, "failed": 1, "repeated": 2}
    assert told["errors"] == {"InvalidRequest: not JSON": 1}


def test_what_stands_twice_is_written_twice_and_counted_once(tmp_path: Path) -> None:
    same = [record(0), record(1), record(0)]
    once, twice = ({}, {})
    for own, records in ((once, same[:2]), (twice, same * 3)):
        source = written(tmp_path / f"{len(records)}.jsonl", records)
        own |= run(source, tmp_path / f"out{len(records)}").manifest
    assert twice["distinct"] == once["distinct"]
    assert twice["records"]["repeated"] == 7
    assert len(lines_of(tmp_path / "out9")) == 9
    fitted = [alone(one) for one in same[:2]]
    assert once["distinct"]["tokens_before"] == sum(one.tokens_before for one in fitted)
    assert once["distinct"]["tokens_after"] == sum(one.tokens_after for one in fitted)
    edits = [edit for one in fitted for edit in one.report.edits]
    for kind, sums in once["distinct"]["edits"].items():
        mine = [edit for edit in edits if edit.kind == kind]
        assert sums["count"] == len(mine)
        assert sums["tokens_before"] == sum(edit.tokens_before for edit in mine)


def test_counting_in_several_passes_gives_the_same(corpus: Path, tmp_path: Path) -> None:
    from trimtab_lab.batch import files, job
    from trimtab_lab.batch.shard import ShardDone, done_name

    kept: list[dict[str, Any]] = []

    def both(folder: files.OutputFolder, done: list[ShardDone]) -> dict[str, Any]:
        assert folder.read(done_name(0))
        kept.extend(summed(folder, done, most) for most in (500_000, 2, 1))
        return kept[0]

    summed, job.manifest.summed = manifest.summed, both  # type: ignore[attr-defined]
    try:
        run(corpus, tmp_path / "out")
    finally:
        job.manifest.summed = summed  # type: ignore[attr-defined]
    assert kept[0] == kept[1] == kept[2]
    assert kept[0]["records"]["repeated"] == 2


@pytest.mark.parametrize("size", [700, 5_000, 1_000_000])
def test_lines_are_cut_into_shards_without_loss(tmp_path: Path, size: int) -> None:
    draw = random.Random(size)
    texts = ["x" * draw.choice([1, 10, 600, 900]) for _ in range(80)]
    bodies = [{"messages": [{"role": "user", "content": f"{n} {text}"}]}
              for n, text in enumerate(texts)]  # fmt: skip
    source = written(tmp_path / "in.jsonl", bodies)
    done = run(source, tmp_path / "out", shard_bytes=size)
    assert lines_of(tmp_path / "out") == bodies
    assert done.shards == -(-source.stat().st_size // size)


def test_the_number_of_processes_changes_no_byte(corpus: Path, tmp_path: Path) -> None:
    run(corpus, tmp_path / "one")
    run(corpus, tmp_path / "two", jobs=2)
    assert contents(tmp_path / "one") == contents(tmp_path / "two")
    told = json.loads((tmp_path / "one" / "manifest.json").read_text())["files"]
    files = contents(tmp_path / "one")
    del files["manifest.json"]
    assert told == {
        name: {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        for name, data in files.items()
    }


def test_a_run_that_is_done_is_not_done_again(corpus: Path, tmp_path: Path) -> None:
    first = run(corpus, tmp_path / "out")
    before = {name: (tmp_path / "out" / name).stat().st_mtime_ns for name in contents(
        tmp_path / "out")}  # fmt: skip
    again = run(corpus, tmp_path / "out")
    assert again.manifest == first.manifest
    assert again.taken_up == again.shards == first.shards
    assert before == {name: (tmp_path / "out" / name).stat().st_mtime_ns for name in before}


def test_a_run_that_failed_half_way_goes_on_where_it_was(corpus: Path, tmp_path: Path) -> None:
    run(corpus, tmp_path / "whole")
    seen = 0

    def stop(done: int, total: int, fresh: int) -> None:
        nonlocal seen
        seen += 1
        if fresh > total * 0.5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(corpus, tmp_path / "out", progress=stop)
    assert not (tmp_path / "out" / "manifest.json").exists()
    went_on = run(corpus, tmp_path / "out")
    assert 0 < went_on.taken_up < went_on.shards
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")


def test_a_shard_whose_output_was_lost_is_done_again(corpus: Path, tmp_path: Path) -> None:
    run(corpus, tmp_path / "whole")
    calls = []

    def stop(done: int, total: int, fresh: int) -> None:
        calls.append(done)
        if fresh > total * 0.5:
            raise KeyboardInterrupt

    out = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        run(corpus, out, progress=stop)
    (out / "part-00000.jsonl").unlink()
    (out / "part-00001.jsonl").write_bytes(b"half")
    (out / "unfinished" / "00002.done.json").write_bytes(b'{"shard": 2, "job"')
    run(corpus, out)
    assert contents(out) == contents(tmp_path / "whole")


@pytest.mark.parametrize("change", [{"window": 3_100}, {"shard_bytes": 9_000}, {"key": "x"}])
def test_a_folder_of_another_run_is_left_alone(
    corpus: Path, tmp_path: Path, change: dict[str, Any]
) -> None:
    out = tmp_path / "out"
    run(corpus, out)
    before = contents(out)
    with pytest.raises(InvalidSetting, match="holds a run with other"):
        run(corpus, out, **change)
    written(corpus / "e.jsonl", [CHAT])
    with pytest.raises(InvalidSetting, match="other source"):
        run(corpus, out)
    assert contents(out) == before


@pytest.mark.parametrize(
    "options", [{"window": None}, {"window": None, "model": "gpt4o"}, {"format": "openai"}]
)
def test_a_wrong_setting_ends_the_run_before_anything_is_written(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    source = written(tmp_path / "in.jsonl", ["nope", CHAT, CHAT])
    with pytest.raises(InvalidSetting):
        run(source, tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


def test_a_record_whose_own_model_is_unknown_fails_alone(tmp_path: Path) -> None:
    records = [CHAT | {"model": "of-our-house"}, CHAT | {"model": "gpt-4.1"}]
    source = written(tmp_path / "in.jsonl", records)
    assert run(source, tmp_path / "out", window=None).manifest["errors"] == {"InvalidSetting": 1}


def test_the_setting_that_differs_is_named(corpus: Path, tmp_path: Path) -> None:
    run(corpus, tmp_path / "out")
    with pytest.raises(InvalidSetting, match=r"other reserve \(not given, now 10\), window \(3000"):
        run(corpus, tmp_path / "out", window=3_100, reserve=10)


def test_a_run_that_wrote_no_record_does_not_block_the_folder(tmp_path: Path) -> None:
    source, out = written(tmp_path / "in.jsonl", [{"talk": CHAT}]), tmp_path / "out"
    assert run(source, out).manifest["records"]["failed"] == 1
    assert run(source, out, key="talk").manifest["records"]["written"] == 1
    assert not lines_of(out, "errors/*.jsonl")


def test_a_record_is_cut_only_where_it_must_be_and_keeps_what_fits(tmp_path: Path) -> None:
    source = written(tmp_path / "in.jsonl", [record(0)])
    kept = {
        name: run(source, tmp_path / name, **options).manifest["distinct"]["tokens_after"]
        for name, options in {"plain": {}, "preset": {"preset": "balanced"}}.items()
    }
    assert kept["preset"] < 0.8 * WINDOW < 0.9 * WINDOW < kept["plain"] <= WINDOW


def test_causes_are_counted_apart_and_the_first_of_each_is_named_by_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = json.dumps(CHAT)
    lines = [CHAT, "", whole[:-3], "null", "nope", {"messages": "hello"}]
    source = written(tmp_path / "in.jsonl", lines)
    for shard_bytes in ("32m", "20"):
        out = str(tmp_path / f"out{shard_bytes}")
        argv = ["batch", str(source), out, "--window", "3k", "--jobs", "1"]
        assert main([*argv, "--shard-bytes", shard_bytes]) == 1
        said = capsys.readouterr().err
        first = f"first in.jsonl, line 3 (byte {len(whole) + 2}): not JSON: cut off after "
        assert f"\n  2 × InvalidRequest: not JSON, {first}{len(whole) - 3} characters" in said
        assert "\n  2 × InvalidRequest: no request, first in.jsonl, line 4 (byte " in said


def test_repairs_are_told_with_the_option_that_refuses_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    broken = {"messages": [
        *CHAT["messages"], {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "user", "content": "and?"},
    ]}  # fmt: skip
    source = written(tmp_path / "in.jsonl", [broken, CHAT])
    argv = ["batch", str(source), str(tmp_path / "out"), "--window", "3k", "--jobs", "1"]
    assert main(argv) == 0
    said = capsys.readouterr().err
    assert "\n  1 repair: 1 × call_unanswered; --strict makes errors of them" in said
    argv[2] = str(tmp_path / "strict")
    assert main([*argv, "--strict"]) == 1


@pytest.mark.parametrize(
    ("line", "advice"),
    [('{"talk": 1}', "; --key names where"), ("import sys", "; give JSON lines (.jsonl)")],
)
def test_where_no_record_was_fitted_the_advice_is_of_the_cause(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], line: str, advice: str
) -> None:
    source = written(tmp_path / "in.py", [line])
    assert main(["batch", str(source), str(tmp_path / "out"), "--window", "3k"]) == 1
    assert f"none of 1 record could be fitted{advice}" in capsys.readouterr().err


def test_what_is_no_corpus_and_what_is_no_folder_is_refused(tmp_path: Path) -> None:
    source = written(tmp_path / "in.jsonl", [CHAT])
    (tmp_path / "empty.jsonl").write_text("\n")
    (tmp_path / "mine.txt").write_text("mine")
    for src, dst, text in (
        (tmp_path / "empty.jsonl", tmp_path / "out", "no record"),
        (source, tmp_path / "out.jsonl", "folder of several files"),
        (source, tmp_path / "mine.txt", "is a file"),
        (source, source, "is what is read"),
        ([source], tmp_path / "out", "one file, folder or address"),
    ):
        with pytest.raises(InvalidSetting, match=text):
            run(src, dst)  # type: ignore[arg-type]
    assert not (tmp_path / "out").exists()


def test_a_folder_with_other_files_or_within_the_source_is_refused(
    corpus: Path, tmp_path: Path
) -> None:
    with pytest.raises(InvalidSetting, match="is in"):
        run(corpus, corpus / "out")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("mine")
    with pytest.raises(InvalidSetting, match="not from a batch run"):
        run(corpus, tmp_path / "out")
    with pytest.raises(InvalidSetting, match="nothing to read"):
        run(tmp_path / "none", tmp_path / "other")
    assert contents(tmp_path / "out") == {"mine.txt": b"mine"}


def test_a_damaged_gzip_gives_what_stands_before_the_damage_and_an_error(tmp_path: Path) -> None:
    lines = b"".join(json.dumps(record(n)).encode() + b"\n" for n in range(40))
    source = tmp_path / "a.jsonl.gz"
    source.write_bytes(gzip.compress(lines)[:-5_000])
    told = run(source, tmp_path / "out").manifest
    assert 0 < told["records"]["written"] < 40
    *_, error = lines_of(tmp_path / "out", "errors/*.jsonl")
    assert "cannot be unpacked" in error["message"]


def test_originals_are_written_beside_and_read_by_recall(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = written(tmp_path / "in.jsonl", ["nope", CHAT, record(0), record(1)])
    run(source, tmp_path / "out", originals=True)
    kept, other = lines_of(tmp_path / "out", "originals/*.jsonl")
    assert kept["at"] == len("nope") + len(json.dumps(CHAT)) + 2
    assert (kept["output"], kept["number"]) == ("part-00000.jsonl", 2)
    fitted = alone(record(0))
    edits = fitted.report.edits
    assert kept["originals"] == {edit.handle: fitted.recall(edit.handle) for edit in edits}
    assert list(kept["places"]) == list(kept["originals"])
    assert all(place.startswith("messages.") for ends in kept["places"].values() for place in ends)
    file = str(tmp_path / "out" / "originals" / "00000.jsonl")
    for handle, text in (kept["originals"] | other["originals"]).items():
        assert main(["recall", handle, "--journal", file, "--whole"]) == 0
        assert capsys.readouterr().out == text
    assert main(["recall", "--journal", file]) == 0
    assert next(iter(kept["originals"])) in capsys.readouterr().out
    assert main(["search", "0.0 value", "--journal", file]) == 0


def test_the_command_says_what_it_came_to(
    corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = ["batch", str(corpus), str(tmp_path / "out"), "--window", "3k", "--jobs", "1"]
    assert main(argv) == 1
    said = capsys.readouterr().err
    assert "15 of 16 records written to" in said
    assert "2 the same as an earlier one, counted once" in said
    assert "1 could not be fitted: see " in said
    assert "\n  1 × InvalidRequest: not JSON, first a.jsonl, line 7 (byte " in said
    assert "fold" in said
    assert main(argv) == 1
    said = capsys.readouterr().err
    assert "shards were done already" in said
    assert "\n  1 × InvalidRequest: not JSON, first a.jsonl, line 7 (byte " in said
    assert main([*argv, "--allow-failures"]) == 0
    capsys.readouterr()
    assert main([*argv, "--window", "4k"]) == 2
    assert main(["batch", str(tmp_path / "none"), str(tmp_path / "o"), "--window", "3k"]) == 2


def test_killed_at_any_moment_and_started_again_nothing_is_lost_and_nothing_is_there_twice(
    tmp_path: Path,
) -> None:
    source = written(tmp_path / "in.jsonl", [record(n, 14) for n in range(30)])
    command = [sys.executable, "-m", "trimtab", "batch", str(source), "", "--window", "3k"]
    command += ["--jobs", "2", "--shard-bytes", "30k", "--no-config"]

    def start(out: Path) -> subprocess.Popen[bytes]:
        command[5] = str(out)
        return subprocess.Popen(command, stderr=subprocess.PIPE)

    def ended(process: subprocess.Popen[bytes]) -> int:
        process.communicate(timeout=300)
        return process.returncode

    began = time.monotonic()
    assert ended(start(tmp_path / "whole")) == 0
    seconds = time.monotonic() - began
    draw, landed = random.Random(KILLS), 0
    while landed < KILLS:
        process = start(tmp_path / "out")
        time.sleep(draw.uniform(0, seconds / 2))  # the rest has less to do
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=40)  # to the end: no worker lives on and holds the pipe
        if process.returncode == -signal.SIGKILL:
            landed += 1
        else:  # it was done before; once more from the beginning
            shutil.rmtree(tmp_path / "out")
    assert ended(start(tmp_path / "out")) == 0
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")
    assert len(lines_of(tmp_path / "out")) == 30
