"""Shards of a study: each with its own logs, read as one; a lost one is named, none pays twice."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import study_doubles as doubles
import yaml
from refusals import raises

from counterprior.errors import InUseError
from counterprior.eval.engine.run import Run
from counterprior.eval.store.shards import RunLock
from counterprior.eval.studies.folder import Study
from counterprior.eval.studies.formats import format_table
from counterprior.eval.studies.runner import StudyDone, run_study
from counterprior.eval.studies.status import judged_runs, study_status
from counterprior.eval.studies.table import study_table
from counterprior.eval.workers.farm import Scale
from counterprior.storage import read_records

HOM, UC = "t2i_homogenization", "spatial_uc"


def study_of(data: Path, **changes: Any) -> dict[str, Any]:
    return doubles.study_file(data, {UC: {"limit": 4}}, graders=["eva"]) | changes


def shard(part: int, count: int) -> Scale:
    return Scale(shard=(part, count))


def table_of(study: Study) -> str:
    return format_table(study_table(study), "json")


def states(done: StudyDone) -> Counter[str]:
    return Counter(status.state for status in study_status(done.study))


def test_shards_are_one_study_and_a_lost_one_is_named(text_release: Path, tmp_path: Path) -> None:
    plain, out = study_of(text_release), tmp_path / "parts"
    run_study(plain, tmp_path / "whole")
    once = Counter(doubles.DID)
    doubles.reset()
    part = run_study(plain, out, scale=shard(1, 2))
    assert not part.failures and states(part) == {"images": 2}
    gap = "2 of 4 images were never made (shard 2/2 lacks 2)"
    assert {status.gap for status in study_status(part.study)} == {gap}
    table = study_table(part.study)
    assert not table.complete and format_table(table, "csv").count(gap) >= 2
    with raises("incomplete-run", "2 of its cells", "shard 2/2 lacks 2"):
        judged_runs(part.study)
    assert doubles.DID["loaded red"] == doubles.DID["loaded ann"] == doubles.DID["loaded eva"] == 1
    other = run_study(plain, out, scale=shard(2, 2))
    assert not other.failures and states(other) == {"done": 2}
    found = study_status(other.study)
    assert [(status.verdicts, status.questions) for status in found] == [({"answered": 4}, 4)] * 2
    twice = ("opened", "loaded")  # each model once a shard
    assert {n: c * (2 if n.startswith(twice) else 1) for n, c in once.items()} == doubles.DID
    # A process that has all of it finds nothing to do, and writes no line.
    doubles.reset()
    assert states(run_study(plain, out)) == {"done": 2} and not doubles.DID
    assert not (out / "cells.jsonl").read_bytes()


def test_another_division_of_the_work_goes_on(text_release: Path, tmp_path: Path) -> None:
    plain = study_of(text_release)
    run_study(plain, tmp_path, scale=shard(2, 3))
    # It ended while its judge had answered nothing yet.
    log = tmp_path / "cells.2-of-3.jsonl"
    log.write_text("".join(x for x in log.read_text().splitlines(True) if "ann" not in x))
    first = run_study(plain, tmp_path, scale=shard(1, 2))
    gap = "1 of 4 images were never made (shard 2/2 not done)"
    assert [status.gap for status in study_status(first.study)] == [gap] * 2
    assert states(run_study(plain, tmp_path, scale=shard(2, 2))) == {"done": 2}
    made = Counter(n for n, c in doubles.DID.items() if n.startswith("red ") for _ in range(c))
    assert made.total() == 4 and max(made.values()) == 1


def test_a_shard_that_failed_is_named_until_it_went_well(
    text_release: Path, tmp_path: Path
) -> None:
    plain = study_of(text_release, scorers={})
    run_study(plain, tmp_path, scale=shard(1, 2))
    doubles.SHUT.add("ann")
    failed = run_study(plain, tmp_path, scale=shard(2, 2))
    (status,) = study_status(failed.study)
    assert status.gap == "failed: shard 2/2: ann is shut" and status.verdicts == {"answered": 2}
    doubles.SHUT.clear()
    assert states(run_study(plain, tmp_path, scale=shard(2, 2))) == {"done": 1}


def test_a_judge_that_fails_in_one_shard_alone_has_errors_there(
    text_release: Path, tmp_path: Path
) -> None:
    plain = study_of(text_release, scorers={})
    doubles.BLIND.add("ann")
    blind = run_study(plain, tmp_path, scale=shard(1, 2))
    (status,) = study_status(blind.study)
    assert blind.failures and status.cause.startswith("shard 1/2: double:ann: all 2 calls failed")
    doubles.BLIND.clear()
    run_study(plain, tmp_path, scale=shard(2, 2))
    (status,) = study_status(blind.study)
    assert status.state == "done" and status.verdicts == {"answered": 2, "error": 2}
    # As in one process, errors are asked again by whoever goes on.
    (status,) = study_status(run_study(plain, tmp_path).study)
    assert status.state == "done" and status.verdicts == {"answered": 4}


def test_a_cell_of_mostly_errors_failed_until_they_are_answered(
    text_release: Path, tmp_path: Path
) -> None:
    """A cell whose judge answered once, and then was down, was done."""
    plain = study_of(text_release, scorers={})

    def blind_after_one() -> None:
        if sum(count for key, count in doubles.DID.items() if key.startswith("ann ")):
            doubles.BLIND.add("ann")

    doubles.BEFORE.append(blind_after_one)
    down = run_study(plain, tmp_path)
    assert [f.cause.partition(":")[0] for f in down.failures] == ["3 of 4 answers are errors"]
    doubles.reset()
    assert not run_study(plain, tmp_path).failures


def test_who_may_work_on_a_study_at_the_same_time(text_release: Path, tmp_path: Path) -> None:
    plain, held = study_of(text_release), RunLock(tmp_path, (1, 2), kind="study")
    for scale, facts in [
        (shard(1, 2), (f"shard 1/2 of the study {tmp_path}",)),
        (shard(2, 3), (f"the study {tmp_path}", "shards of 2")),
        (Scale(), (f"the study {tmp_path}",)),
    ]:
        with raises("in-use", *facts, error=InUseError):
            run_study(plain, tmp_path, scale=scale)
    assert not doubles.DID
    held.release()


def test_shards_with_another_file_are_refused_while_one_works(
    text_release: Path, tmp_path: Path
) -> None:
    plain = study_of(text_release)
    other = plain | {"generators": {"blue": "python:study_doubles:painter?name=blue"}}
    causes = []

    def second() -> None:
        doubles.BEFORE.clear()
        before = (tmp_path / "study.yaml").read_bytes()
        with raises("another-run", "(other generators)", "give all shards") as error:
            run_study(other, tmp_path, scale=shard(2, 2))
        causes.append(error)
        assert (tmp_path / "study.yaml").read_bytes() == before
        # The same study in other words is the same; only its part is done by another process.
        with raises("in-use", "1/2", error=InUseError):
            run_study(dict(reversed(plain.items())), tmp_path, scale=shard(1, 2))

    doubles.BEFORE[:] = [second]
    assert not run_study(plain, tmp_path, scale=shard(1, 2)).failures
    assert causes and not any(name.startswith("blue ") for name in doubles.DID)
    # Later, when nobody works there, the file may change as ever: here blue is one more.
    more = plain | {"generators": {**plain["generators"], **other["generators"]}}
    assert not run_study(more, tmp_path, scale=shard(2, 2)).failures


def paid_study(data: Path, server: Any, folder: Path, **changes: Any) -> dict[str, Any]:
    prices = folder / "prices.yaml"
    prices.write_text(yaml.safe_dump({"openai:m-1": {"input": 1000, "output": 1000}}))
    server.answer = lambda body: "1"
    judges = {"one": server.spec("openai")}
    asked = study_of(data, judges=judges, scorers={}, prices=str(prices), concurrency=1)
    return asked | changes


@pytest.mark.lane
def test_one_cap_holds_over_all_shards(text_release: Path, tmp_path: Path, server: Any) -> None:
    plain = paid_study(text_release, server, tmp_path, suites={HOM: {"limit": 6}})
    alone = run_study(plain, tmp_path / "alone", max_usd=8.75)
    paid = server.paid
    assert alone.failures and 0 < paid < 6
    for part in (1, 2):
        done = run_study(plain, tmp_path / "parts", max_usd=8.75, scale=shard(part, 2))
    assert "the cap of 8.75 USD" in done.failures[0].cause
    assert server.paid == 2 * paid, "two shards spend what one process may"


# In processes of their own.


def started(file: Path, out: Path, part: str) -> subprocess.Popen[str]:
    words = [sys.executable, "-m", "counterprior", "study", "run", str(file), "--out", str(out)]
    words.append("--trust")
    path = os.pathsep.join(filter(None, sys.path))
    return subprocess.Popen(
        [*words, "--shard", part],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
    )


@pytest.mark.lane
def test_two_processes_killed_as_it_comes_end_in_the_table_of_one(
    text_release: Path, tmp_path: Path, server: Any
) -> None:
    generators = {"fair": "render:", "biased": "render:?order_bias=3"}
    plain = paid_study(
        text_release, server, tmp_path, suites={HOM: {"limit": 8}}, generators=generators
    )
    plain |= {"scorers": {"eva": "python:study_doubles:grader"}, "max_usd": 10_000}
    whole = run_study(plain, tmp_path / "whole")
    assert not whole.failures
    paid = server.paid
    file, out = tmp_path / "s.yaml", tmp_path / "parts"
    file.write_text(yaml.safe_dump(plain, sort_keys=False))
    rng, kills = random.Random(5), 0

    def work() -> int:
        logs = [*out.glob("runs/*/*/images.*.jsonl"), *out.glob("runs/*/*/*/*/*.*-of-*.jsonl")]
        return sum(log.read_bytes().count(b"\n") for log in logs)

    running = {part: started(file, out, part) for part in ("1/2", "2/2")}
    while running:
        enough = work() + rng.randrange(2, 12)
        while work() < enough and any(p.poll() is None for p in running.values()):
            time.sleep(0.02)
        victim = rng.choice(sorted(running))
        if running[victim].poll() is None and kills < 5:
            running[victim].send_signal(signal.SIGKILL)
            running[victim].communicate()
            kills += 1
            running[victim] = started(file, out, victim)
        for part, process in list(running.items()):
            if process.poll() is not None:
                told = process.communicate()[1]
                assert process.returncode == 0, told
                del running[part]
    assert kills >= 2
    assert table_of(Study.open(out)) == table_of(whole.study)
    lost = kills  # one call at a time is under way in a shard
    assert paid <= server.paid - paid <= paid + lost
    for one in tmp_path.glob("whole/runs/*/*"):
        parts = out / one.relative_to(tmp_path / "whole")
        digests = [{i.case: i.sha256 for i in Run.open(r).images().values()} for r in (one, parts)]
        assert digests[0] == digests[1]
        said = [
            sorted(
                json.dumps({**r, "session": 0, "usd": ""}, sort_keys=True)
                for log in root.glob("verdicts/*/verdicts*.jsonl")
                for r in read_records(log)
            )
            for root in (one, parts)
        ]
        assert said[0] == said[1]
