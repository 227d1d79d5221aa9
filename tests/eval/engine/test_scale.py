"""Many processes on one run: the same images and verdicts, none twice, none lost."""

from __future__ import annotations

import io
import json
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from forking import ForkedProcess, ForkingCommand
from piecework import Changing, Telling
from PIL import Image
from refusals import assert_refused, raises

from counterprior.eval.checkpoints.placement import LoadError
from counterprior.eval.core import GeneratorError, ImageRequest
from counterprior.eval.engine import making
from counterprior.eval.engine.evaluation import RunSettings
from counterprior.eval.engine.run import Run, RunError
from counterprior.eval.engine.steps import JudgeSettings, evaluate_run, generate, judge_run
from counterprior.eval.results.scoring import ScoreSettings, score_run
from counterprior.eval.workers.farm import Scale
from counterprior.storage import read_records

Cli = ForkingCommand


def settings_of(data: Path, out: Path, limit: int = 4) -> RunSettings:
    return RunSettings("t2i_homogenization", str(data), out, limit=limit)


def made(run: Path) -> dict[str, tuple[str, str]]:
    return {i.case: (i.status, i.sha256) for i in Run.open(run).images().values()}


def said(run: Path) -> list[str]:
    """Every verdict, whoever wrote it down."""
    logs = run.glob("verdicts/*/verdicts*.jsonl")
    records = [{**r, "session": 0} for log in logs for r in read_records(log)]
    return sorted(json.dumps(record, sort_keys=True) for record in records)


def words(data: Path, out: Path, *more: object) -> list[str]:
    command = ["--suite", "t2i_homogenization", "--data", data, "--limit", 4, "--out", out, *more]
    return [str(word) for word in command]


def ended(*processes: ForkedProcess) -> None:
    for process in processes:
        _, told = process.communicate(timeout=120)
        assert process.returncode == 0, told


@pytest.fixture(scope="module")
def alone(text_release: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made and judged by one process; read only."""
    out = tmp_path_factory.mktemp("alone") / "run"
    generate(settings_of(text_release, out), "render:")
    judge_run(out, ["pixels"], JudgeSettings(("mirror",)))
    return out


@pytest.mark.slow
def test_workers_make_and_judge_what_one_process_does(
    alone: Path, text_release: Path, tmp_path: Path, cli: Cli
) -> None:
    asked = words(text_release, tmp_path / "run", "--generator", "render:", "--judge", "pixels")
    done = cli("eval", *asked, "--probes", "mirror", "--workers", 2, "--json")
    assert done.returncode == 0, done.stderr
    assert made(tmp_path / "run") == made(alone) and len(made(alone)) == 8
    assert said(tmp_path / "run") == said(alone) and len(said(alone)) == 16


def red(body: dict[str, Any]) -> bytes:
    buffer = io.BytesIO()
    color = random.Random(body["prompt"]).randbytes(3)
    Image.new("RGB", (32, 32), tuple(color)).save(buffer, "PNG")
    return buffer.getvalue()


@pytest.mark.slow
def test_two_shards_are_one_run_and_pay_for_nothing_twice(
    text_release: Path, tmp_path: Path, server: Any, cli: Cli
) -> None:
    server.draw, server.answer = red, lambda body: "1"
    painter = f"openai-image:img-1@{server.url}/v1?attempts=2&timeout=5"
    judges = [server.spec("openai")]
    asked = ["--generator", painter, "--judge", *judges]
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    evaluate_run(settings_of(text_release, whole), painter, judges)
    before = Counter(json.dumps(a.body, sort_keys=True) for a in server.asked)
    server.asked.clear()
    command = ("eval", *words(text_release, parts, *asked))
    ended(cli.start(*command, "--shard", "1/2"), cli.start(*command, "--shard", "2/2"))
    assert Counter(json.dumps(a.body, sort_keys=True) for a in server.asked) == before
    assert before.total() == 16 and max(before.values()) == 1
    assert made(parts) == made(whole) and said(parts) == said(whole)
    scores = [score_run(run, ScoreSettings())[0].result.scores for run in (whole, parts)]
    assert repr(scores[0]) == repr(scores[1])
    again = evaluate_run(settings_of(text_release, parts), painter, judges)  # all is there
    assert [tally.recorded for _, tally in again.judged] == [8]
    assert len(server.asked) == 16 and not (parts / "images.jsonl").read_text()


@pytest.mark.slow
def test_a_lost_shard_is_visible_and_another_number_of_processes_goes_on(
    alone: Path, text_release: Path, tmp_path: Path, cli: Cli
) -> None:
    run = tmp_path / "run"
    controls = JudgeSettings(("mirror",))
    generate(settings_of(text_release, run), "render:", scale=Scale(shard=(2, 3)))
    assert len(made(run)) == 2
    judge_run(run, ["pixels"], controls, scale=Scale(shard=(2, 3)))
    assert len(said(run)) == 4
    refused = cli("score", run)
    gaps = ("6 of 8 images", "shard 1/3 lacks 4, shard 3/3 lacks 2")
    assert_refused(refused, "incomplete-run", run, *gaps, exit_code=1)
    with raises("incomplete-run", "of 2", error=RunError):
        judge_run(run, ["pixels"], scale=Scale(shard=(3, 3)))
    first = (run / "images.2-of-3.jsonl").read_text()
    generate(settings_of(text_release, run), "render:", scale=Scale(shard=(1, 2)))
    generate(settings_of(text_release, run), "render:")
    assert made(run) == made(alone) and (run / "images.2-of-3.jsonl").read_text() == first
    logged = [r["case"] for log in run.glob("images*.jsonl") for r in read_records(log)]
    assert sorted(logged) == sorted(made(alone))
    with raises("incomplete-run", "6", "8", error=RunError):
        score_run(run, ScoreSettings())
    judge_run(run, ["pixels"], controls)
    assert said(run) == said(alone)


@pytest.mark.slow
def test_run_goes_on_when_a_worker_is_killed(
    text_release: Path, tmp_path: Path, server: Any, cli: Cli
) -> None:
    server.draw = red
    seen, run = tmp_path / "seen", tmp_path / "run"
    seen.mkdir()

    spec = f"python:piecework:Telling?url={server.url}&folder={seen}&seconds="
    process = cli.start(
        "generate", *words(text_release, run, "--generator", f"{spec}0.3"), "--workers", 2
    )
    deadline = time.monotonic() + 60
    log = run / "images.jsonl"
    while (not log.exists() or not log.read_bytes()) and time.monotonic() < deadline:
        time.sleep(0.01)
    pids = [int(path.stem) for path in seen.glob("*.worker")]
    os.kill(pids[0], signal.SIGKILL)
    ended(process)
    counts = Counter(asked.body["prompt"] for asked in server.asked)
    expected = tmp_path / "expected"
    generate(settings_of(text_release, expected), Telling(server.url, str(seen)))
    assert made(run) == made(expected) and len(counts) == 8
    # Two bundles of one image and those that wait to be written are under way in a worker.
    assert counts.total() - 8 <= 3


# Images in batches, and written beside the generator.


class Batching:
    """Draws by prompt and seed, several at a time; fails as told."""

    batch_size = 3

    def __init__(self, fails: Iterable[int] = (), breaks: bool = False, short: bool = False):
        self.fails, self.breaks, self.short = set(fails), breaks, short
        self.calls: list[int] = []

    def identity(self) -> dict[str, str]:
        return {"kind": "batching"}

    def generate(self, request: ImageRequest) -> Image.Image:
        self.calls.append(1)
        return self._draw(request)

    def _draw(self, request: ImageRequest) -> Image.Image:
        if request.seed in self.fails:
            raise GeneratorError(f"no {request.seed}", "refused")
        return Image.new("RGB", (32, 32), (request.seed % 256, len(request.prompt), 0))

    def generate_batch(
        self, requests: Sequence[ImageRequest]
    ) -> list[Image.Image | Path | GeneratorError]:
        self.calls.append(len(requests))
        if self.breaks:
            raise GeneratorError("the batch failed")
        found: list[Image.Image | Path | GeneratorError] = []
        for request in requests:
            try:
                found.append(self._draw(request))
            except GeneratorError as error:
                found.append(error)
        return found[: 1 if self.short else None]


@pytest.mark.parametrize("how", [{}, {"breaks": True}, {"short": True}])
def test_a_batch_gives_the_images_of_single_calls(
    how: dict[str, bool], text_release: Path, tmp_path: Path
) -> None:
    plain = Batching()
    plain.batch_size = 1
    settings = settings_of(text_release, tmp_path / "plain")
    cases = generate(settings, plain).run.cases()
    fails = {cases[1].seed}
    plain.fails = fails
    assert plain.calls == [1] * 8
    generate(settings_of(text_release, tmp_path / "single"), plain)
    batching = Batching(fails, **how)
    generate(settings_of(text_release, tmp_path / "batch"), batching)
    assert made(tmp_path / "batch") == made(tmp_path / "single")
    refused = [i for i in Run.open(tmp_path / "batch").images().values() if i.status == "refused"]
    assert {i.message for i in refused} == {f"no {cases[1].seed}"}
    assert batching.calls == ([3, 1, 1, 1, 3, 1, 1, 1, 2, 1, 1] if how else [3, 3, 2])


def test_the_generator_goes_on_while_images_are_written(
    text_release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = []
    real = making.encode_png

    def slow(image: Image.Image) -> bytes:
        deadline = time.monotonic() + 10
        while len(drawn) < 6 and time.monotonic() < deadline:
            time.sleep(0.005)
        assert len(drawn) >= 6, "the generator waits for the encoder"
        return real(image)

    class Drawing(Batching):
        batch_size = 1

        def generate(self, request: ImageRequest) -> Image.Image:
            drawn.append(request.seed)
            return super().generate(request)

    monkeypatch.setattr(making, "encode_png", slow)
    run = generate(settings_of(text_release, tmp_path / "run"), Drawing()).run
    assert [image.status for image in run.images().values()] == ["made"] * 8


def test_records_images_before_error_ends_run(text_release: Path, tmp_path: Path) -> None:
    class Ending(Batching):
        batch_size = 1

        def generate(self, request: ImageRequest) -> Image.Image:
            if len(self.calls) == 5:
                raise LoadError("the device is gone")
            return super().generate(request)

    with raises("run-failed", "the device is gone", error=LoadError):
        generate(settings_of(text_release, tmp_path / "run"), Ending())
    assert [status for status, _ in made(tmp_path / "run").values()] == ["made"] * 5


@pytest.mark.slow
def test_a_worker_that_opens_another_generator_is_noticed(
    text_release: Path, tmp_path: Path
) -> None:
    with raises("different-workers", "generator", "pid"):
        generate(settings_of(text_release, tmp_path / "run"), Changing(), scale=Scale(2))
