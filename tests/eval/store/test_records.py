"""Logs of several processes, read as one."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counterprior.errors import DataError, InUseError, UsageError
from counterprior.eval.core import Case
from counterprior.eval.engine.run import Run, RunHeader
from counterprior.eval.store.records import (
    CaseFile,
    CaseRecords,
    RunLock,
    RunShard,
    owned,
    parse_shard,
)
from counterprior.storage import RecordLog

shards = st.one_of(
    st.none(), st.integers(1, 3).flatmap(lambda n: st.tuples(st.integers(1, n), st.just(n)))
)
ROWS = 4


@settings(max_examples=40)
@given(st.lists(st.tuples(shards, st.lists(st.integers(0, ROWS - 1), max_size=4)), max_size=7))
def test_the_newest_record_is_the_last_whoever_wrote_it(
    processes: list[tuple[RunShard | None, list[int]]],
) -> None:
    """One process after the other adds records to rows that it owns."""
    with tempfile.TemporaryDirectory() as name:
        written: dict[str, list[int]] = {}
        for number, (shard, rows) in enumerate(processes):
            records = CaseRecords(Path(name), "images", shard)
            with RecordLog(records.path) as log:
                for row in rows:
                    if owned(shard, row):
                        said = {"case": f"row{row}", "value": 100 * number + len(written)}
                        records.append(log, said)
                        written.setdefault(said["case"], []).append(said["value"])
                        assert records.newest(said["case"]) == said
        found = CaseRecords(Path(name), "images")
        assert {c: [r["value"] for r in found.of(c)] for c in found.cases()} == written
        assert all(found.newest(case)["value"] == values[-1] for case, values in written.items())
        assert sorted(r["value"] for r in found) == sorted(v for vs in written.values() for v in vs)
        assert len(found) == len(written)


def test_one_process_alone_stamps_nothing(tmp_path: Path) -> None:
    for _ in range(2):
        records = CaseRecords(tmp_path, "images")
        with RecordLog(records.path) as log:
            records.append(log, {"case": "a"})
    assert records.path.read_text() == '{"case":"a"}\n' * 2


def test_a_record_of_no_case_is_named(tmp_path: Path) -> None:
    (tmp_path / "images.1-of-2.jsonl").write_text('{"case":"a"}\n{"cass":"b"}\n')
    with pytest.raises(DataError, match=r"images\.1-of-2\.jsonl:2: a record of no case"):
        CaseRecords(tmp_path, "images")


def case_of(row: int, seed: int) -> Case:
    return Case(f"row{row}", "plain", seed, seed, "ein Ühu", ("a", "b"), {"pair_type": "x"})


@settings(max_examples=40)
@given(rows=st.integers(0, 9), seeds=st.integers(1, 3), count=st.integers(1, 5))
def test_shards_share_the_cases_and_keep_rows_whole(rows: int, seeds: int, count: int) -> None:
    cases = [case_of(row, seed) for row in range(rows) for seed in range(seeds)]
    with tempfile.TemporaryDirectory() as name:
        header = RunHeader("s", "d", "0", rows, seeds, None, {"kind": "k"})
        run = Run.start(Path(name), header, cases)
        assert list(run.cases()) == cases and run.cases()[1:4] == cases[1:4]
        parts = [CaseFile(run.root / "cases.jsonl", (i, count)) for i in range(1, count + 1)]
        assert sorted(c.id for part in parts for c in part) == sorted(case.id for case in cases)
        sizes = [len({case.row for case in part}) for part in parts]
        assert sum(sizes) == rows and max(sizes) - min(sizes) <= 1


def test_who_may_add_at_the_same_time(tmp_path: Path) -> None:
    first, second = RunLock(tmp_path, (1, 2)), RunLock(tmp_path, (2, 2))
    for other, reason in [
        (None, f"the run {tmp_path} is in use"),
        ((1, 2), f"shard 1/2 of the run {tmp_path} is in use"),
        ((3, 3), "in use by shards of 2; wait for their end, or run shards of 2"),
    ]:
        with pytest.raises(InUseError, match=reason):
            RunLock(tmp_path, other)
    first.release()
    with pytest.raises(InUseError):
        RunLock(tmp_path)
    RunLock(tmp_path, (1, 2)).release()
    second.release()
    whole = RunLock(tmp_path)
    for shard in (None, (1, 2), (3, 3)):
        with pytest.raises(InUseError, match=f"the run {tmp_path} is in use by another process"):
            RunLock(tmp_path, shard)
    whole.release()
    RunLock(tmp_path, (3, 3)).release()


@pytest.mark.parametrize("text", ["", "2", "0/2", "3/2", "a/b", "-1/2", "1/2/3"])
def test_what_is_no_shard(text: str) -> None:
    with pytest.raises(UsageError, match="write I/N"):
        parse_shard(text)
