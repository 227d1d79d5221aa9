"""Full disks and moved folders under Arrow's writers, the labeling page and a run at work."""

from __future__ import annotations

import errno
import http.client
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from refusals import raises

from counterprior.errors import InUseError, RunFailed
from counterprior.eval.core import Question
from counterprior.eval.engine import evaluation, steps
from counterprior.eval.engine.data import Rows
from counterprior.eval.engine.evaluation import RunSettings
from counterprior.eval.engine.steps import generate, judge_run
from counterprior.eval.people.forms import ReviewTask, open_form
from counterprior.eval.people.serve import Audit, AuditServer
from counterprior.eval.selftest import rows as trials
from counterprior.storage import RecordLog

SIZES = [0, 10, 5_000, 60_000, 130_000, 170_000]
"""Bytes that a file may have, where a whole one has more."""

WRITE = """
import os, resource, sys
from pathlib import Path
import pyarrow as pa
from counterprior.corpus_analysis.mining.mine_shard import write_parquet
from counterprior.eval.publishing.shards import Shards

out = Path(sys.argv[1])
bytes_ = [os.urandom(50_000) for _ in range(4)]
table = pa.table({"x": bytes_})

def publish():
    shards = Shards(out, "images", [4])
    try:
        for data in bytes_:
            shards.add({"image": {"bytes": data, "path": "x.png"}}, "run")
        shards.end()
    except BaseException:
        shards.abandon()
        raise

writers = {"mine": lambda: write_parquet(table, out / "t.parquet"), "publish": publish}
for size in map(int, sys.argv[2:]):
    for name, write in writers.items():
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, -1))
        try:
            write()
            end = "written"
        except OSError as error:
            end = error.strerror
        resource.setrlimit(resource.RLIMIT_FSIZE, (-1, -1))
        print(name, size, end, flush=True)
"""


@pytest.mark.slow
def test_arrow_never_ends_the_process(
    tmp_path: Path, survived: Callable[[str, bool], None]
) -> None:
    command = [sys.executable, "-c", WRITE, str(tmp_path), *map(str, SIZES), "9999999"]
    done = subprocess.run(command, capture_output=True, text=True)
    ends = [line.split(maxsplit=2) for line in done.stdout.splitlines()]
    expected = [
        [name, str(size), "written" if size > 999_999 else os.strerror(errno.EFBIG)]
        for size in (*SIZES, 9_999_999)
        for name in ("mine", "publish")
    ]
    for number in range(len(expected)):
        survived("full disk under Arrow", ends[number : number + 1] == expected[number:][:1])
    assert (ends, done.returncode, done.stderr) == (expected, 0, "")


@pytest.fixture
def page(tmp_path: Path) -> Iterator[AuditServer]:
    form = open_form("judge")
    tasks = [
        ReviewTask((("case", "c"), ("question", "q")), (), (), options=(("yes", "1"), ("no", "2")))
    ]
    with AuditServer(Audit.of(form, tasks, tmp_path / "labels")) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.shutdown()


def click(page: AuditServer, body: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", page.server_port, timeout=20)
    connection.request("POST", "/click", body, {"X-Token": page.token})
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text


def said(annotator: str = "ann", value: str = "yes") -> str:
    return json.dumps({"annotator": annotator, "task": "c/q", "values": {"label": value}})


def test_two_servers_of_one_folder_are_refused(page: AuditServer) -> None:
    with raises("in-use", page.audit.folder, error=InUseError):
        AuditServer(page.audit)
    assert click(page, said())[0] == 200


def test_a_click_on_a_full_disk_is_answered_and_said_in_one_line(
    page: AuditServer, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(RecordLog, "append", full)
        status, text = click(page, said())
    assert status == 507 and "No space left" in text
    assert capfd.readouterr().err == "counterprior: not saved: No space left on device\n"
    assert click(page, said())[0] == 200


def test_a_deep_body_is_a_bad_request(page: AuditServer, capfd: pytest.CaptureFixture[str]) -> None:
    status, text = click(page, "[" * 15_000)
    assert status == 400 and "deep" in text and not capfd.readouterr().err


def test_one_annotator_has_one_way_of_writing(page: AuditServer) -> None:
    assert click(page, said("ann"))[0] == 200
    status, text = click(page, said("ANN"))
    assert status == 400 and "'ann'" in text
    assert [path.name for path in page.audit.folder.glob("*.jsonl")] == ["ann.jsonl"]


def test_a_run_that_is_moved_at_work_ends_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = Rows.of([trials.neutral(a, b) for a, b in trials.pairs(trials.STOUT)[:4]])
    for module in (evaluation, steps):
        monkeypatch.setattr(module, "read_rows", lambda *_: rows)
    here, there = tmp_path / "run", tmp_path / "moved"
    generate(RunSettings("t2i_homogenization", "memory", here), "render:")
    asked: list[str] = []

    def judge(question: Question) -> Any:
        asked.append(question.id)
        if len(asked) == 2:
            here.rename(there)
        return question.labels[0]

    with raises("changed-file", here, "moved", error=RunFailed):
        judge_run(here, [judge])
    assert not here.exists()
    (log,) = there.glob("verdicts/*/verdicts.jsonl")
    assert len(log.read_text().splitlines()) == len(asked)  # nothing is lost
    judge_run(there, [judge])
    assert len(set(asked)) == len(asked) == 8


def test_a_run_that_is_moved_while_it_draws_ends_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = Rows.of([trials.neutral(a, b) for a, b in trials.pairs(trials.STOUT)[:4]])
    monkeypatch.setattr(steps, "read_rows", lambda *_: rows)
    here, there = tmp_path / "run", tmp_path / "moved"
    drawn: list[int] = []

    def draw(prompt: str, seed: int) -> Image.Image:
        drawn.append(seed)
        if len(drawn) == 3 and here.exists():
            here.rename(there)
        return Image.new("RGB", (32, 32), (len(drawn), 0, 0))

    settings = RunSettings("t2i_homogenization", "memory", here)
    with raises("changed-file", here, "moved", error=RunFailed):
        generate(settings, draw, rows=rows)
    assert not (here / "images.jsonl").exists()
    moved = RunSettings("t2i_homogenization", "memory", there)
    done = generate(moved, draw, rows=rows)
    assert all((there / image.file).exists() for image in done.run.images().values())
