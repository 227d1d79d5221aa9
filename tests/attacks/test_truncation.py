"""Files of a run that were cut off, as by a sync that did not end: no number is of a part."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from refusals import raises
from scored import cases, image_run, judged_as

from counterprior.errors import DataError
from counterprior.eval.engine.run import Run
from counterprior.eval.results.scoring import ScoreSettings, score_run


@pytest.fixture
def run(tmp_path: Path) -> Path:
    asked = cases(6)
    ids = [case.id for case in asked]
    return judged_as(
        image_run(tmp_path / "run", asked, dict.fromkeys(ids, 7)), dict.fromkeys(ids, "correct")
    )


def numbers(run: Path, partial: bool) -> list[tuple[str, int]]:
    (judged,) = score_run(run, ScoreSettings(partial=partial))
    return [(f"{score.value}", score.n) for score in judged.whole.values()]


@pytest.mark.parametrize("file", ["cases.jsonl", "run.json", "verdicts/*/judge.json"])
@pytest.mark.parametrize("partial", [False, True], ids=["whole", "partial"])
def test_a_file_that_is_written_whole_is_never_read_in_part(
    file: str, partial: bool, run: Path, survived: Callable[[str, bool], None]
) -> None:
    (path,) = run.glob(file)
    whole, right = path.read_bytes(), numbers(run, partial)
    lines = [at + 1 for at, byte in enumerate(whole) if byte == 10]
    places = {*range(0, len(whole), 97), *lines, *(at - 1 for at in lines), len(whole) - 1}
    for place in sorted(places - {len(whole)}):
        path.write_bytes(whole[:place])
        try:
            found = numbers(run, partial)
        except (DataError, RuntimeError) as error:
            assert path.name in str(error) or str(run) in str(error), place
            found = right
        survived(f"truncated {path.name}", found == right)
        assert found == right, place


def test_an_older_run_without_a_digest_is_read(run: Path) -> None:
    header = json.loads((run / "run.json").read_text())
    assert header.pop("case_count") == 6 and len(header.pop("cases_sha256")) == 64
    (run / "run.json").write_text(json.dumps(header))
    assert len(Run.open(run).cases()) == 6
    path = run / "cases.jsonl"
    path.write_bytes(path.read_bytes()[:-9])
    with raises("damaged-log", ":6:", "cut off", error=DataError):
        Run.open(run).cases()


def test_the_command_that_made_a_run_mends_its_cases(run: Path) -> None:
    path, asked = run / "cases.jsonl", cases(6)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    header = Run.open(run).header
    assert len(Run.start(run, header, asked).cases()) == 6 and path.read_bytes() == whole
    path.unlink()
    with raises("changed-file", str(path), error=Exception):
        Run.start(run, header, cases(5))
