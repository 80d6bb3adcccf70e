"""``trimtab batch`` with what stands outside of it: Ray Data, Parquet, object storage.

Everything here belongs to the world tier.
"""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import pytest
import world_needs
from corpora import contents, lines_of, record, written

import trimtab
from trimtab_lab import batch

pytestmark = pytest.mark.world
WINDOW = 3_000


def run(source: Any, out: Any, **options: Any) -> dict[str, Any]:
    options = {"window": WINDOW, "jobs": 1, "shard_bytes": 40_000, **options}
    return batch.run(source, out, **options).manifest


def fitted(body: Any) -> Any:
    return trimtab.fit(body, window=WINDOW).request


def test_ray_gives_the_same_bytes(tmp_path: Path) -> None:
    world_needs.module("ray", extra="ray")
    world_needs.module("pandas", extra="ray")
    records = [*(record(n) for n in range(12)), "nope", record(0)]
    source = written(tmp_path / "in.jsonl", records)
    run(source, tmp_path / "here")
    run(source, tmp_path / "there", engine="ray", jobs=2)
    assert contents(tmp_path / "here") == contents(tmp_path / "there")
    assert len(lines_of(tmp_path / "there")) == 13


def test_object_storage_is_read_and_written(tmp_path: Path) -> None:
    world_needs.module("fsspec", extra="batch")
    import fsspec

    records = [record(n) for n in range(6)]
    memory = fsspec.filesystem("memory")
    for name in ("corpus/a.jsonl", "corpus/deep/b.jsonl"):
        text = "".join(json.dumps(one) + "\n" for one in records)
        memory.pipe(f"/{name}", text.encode())
        written(tmp_path / "in" / name.partition("/")[2], records)
    told = run("memory://corpus", "memory://out")
    here = run(tmp_path / "in", tmp_path / "out")
    assert {**told, "job": 0, "source": 0} == {**here, "job": 0, "source": 0}
    found = {name.removeprefix("/out/"): memory.cat(name) for name in memory.find("/out")}
    mine = contents(tmp_path / "out")
    for one in (found, mine):
        del one["manifest.json"]
    assert found == mine
    assert run("memory://corpus", "memory://out") == told


@pytest.mark.parametrize("nested", [False, True])
def test_parquet_goes_in_and_out_in_the_types_it_had(tmp_path: Path, nested: bool) -> None:
    world_needs.module("pyarrow", extra="batch")
    import pyarrow
    from pyarrow import parquet

    bodies = [record(n) for n in range(0, 60, 3)] + [{"messages": [{"role": "user"}]}]
    bodies[-1]["messages"][0]["content"] = "hello"
    rows = [
        {"id": n, "messages": body["messages"] if nested else json.dumps(body["messages"])}
        for n, body in enumerate(bodies)
    ]
    source = tmp_path / "in" / "a.parquet"
    source.parent.mkdir()
    parquet.write_table(pyarrow.Table.from_pylist(rows), source, row_group_size=4)
    told = run(tmp_path / "in", tmp_path / "out")
    assert told["records"] == {"read": 21, "written": 21, "failed": 0, "repeated": 0}
    assert told["distinct"]["changed"] == 20
    parts = [parquet.read_table(one) for one in sorted((tmp_path / "out").glob("*.parquet"))]
    assert len(parts) > 1
    assert all(part.schema == parquet.read_schema(source) for part in parts)
    found = [row for part in parts for row in part.to_pylist()]
    assert [row["id"] for row in found] == list(range(21))
    for row, body in zip(found, bodies, strict=True):
        wanted = fitted({"messages": body["messages"]})["messages"]
        messages = row["messages"] if nested else json.loads(row["messages"])
        assert without_nulls(messages) == without_nulls(wanted)
    again = run(tmp_path / "in", tmp_path / "again", jobs=2)
    assert again["files"] == told["files"]


def test_a_request_under_a_named_column_is_fitted(tmp_path: Path) -> None:
    world_needs.module("pyarrow", extra="batch")
    import pyarrow
    from pyarrow import parquet

    day = datetime.date(2026, 1, 2)
    rows = [{"prompt": json.dumps(record(n)), "day": day} for n in range(3)]
    rows.append({"prompt": None, "day": day})
    parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "a.parquet")
    told = run(tmp_path / "a.parquet", tmp_path / "out", key="prompt")
    assert told["errors"] == {"InvalidRequest": 1}
    (part,) = (tmp_path / "out").glob("*.parquet")
    found = parquet.read_table(part).to_pylist()
    assert [row["day"] for row in found] == [day] * 3
    assert [json.loads(row["prompt"]) for row in found] == [fitted(record(n)) for n in range(3)]
    (error,) = lines_of(tmp_path / "out", "errors/*.jsonl")
    assert (error["at"], error["record"]) == (3, {"prompt": None, "day": "2026-01-02"})


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_nulls(one) for key, one in value.items() if one is not None}
    return [without_nulls(one) for one in value] if isinstance(value, list) else value
