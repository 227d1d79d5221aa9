"""Shards of a run: their cases and their locks."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import raises

from counterprior.errors import InUseError, UsageError
from counterprior.eval.core import Case
from counterprior.eval.engine.run import Run, RunHeader
from counterprior.eval.store.cases import CaseFile
from counterprior.eval.store.shards import RunLock, parse_shard


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
    for other, facts in [
        (None, ("run",)),
        ((1, 2), ("shard 1/2 of the run",)),
        ((3, 3), ("run", "shards of 2")),
    ]:
        with raises("in-use", tmp_path, *facts, error=InUseError):
            RunLock(tmp_path, other)
    first.release()
    with pytest.raises(InUseError):
        RunLock(tmp_path)
    RunLock(tmp_path, (1, 2)).release()
    second.release()
    whole = RunLock(tmp_path)
    for shard in (None, (1, 2), (3, 3)):
        with raises("in-use", f"the run {tmp_path}", error=InUseError):
            RunLock(tmp_path, shard)
    whole.release()
    RunLock(tmp_path, (3, 3)).release()


@pytest.mark.parametrize("text", ["", "2", "0/2", "3/2", "a/b", "-1/2", "1/2/3"])
def test_what_is_no_shard(text: str) -> None:
    with raises("bad-option", repr(text), "I/N", error=UsageError):
        parse_shard(text)
