"""A run folder: who may write into it, and what happens to images that lie elsewhere."""

from __future__ import annotations

import hashlib
import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from forking import ForkingCommand
from PIL import Image
from refusals import assert_refused, raises

from counterprior.errors import DataError
from counterprior.eval.core import Case, Question
from counterprior.eval.engine.data import Rows
from counterprior.eval.engine.evaluation import Evaluation, RunSettings
from counterprior.eval.engine.run import CHECKED, CaseResult, Run, RunError, RunHeader
from counterprior.eval.engine.steps import Done, evaluate_run, generate, judge_run
from counterprior.eval.generators import as_generator
from counterprior.eval.judges import as_judge
from counterprior.eval.report.site import write_report
from counterprior.eval.results.scoring import JudgedRun, ScoreSettings, score_run
from counterprior.eval.selftest import rows
from counterprior.eval.studies.sample_size import PlanSettings, plan

Cli = Callable[..., subprocess.CompletedProcess[str]]
SLOW_JUDGE = """
import time
from pathlib import Path
from counterprior.eval.generators import as_generator
from counterprior.eval.judges import as_judge

def answer(question):
    while not Path(__file__).with_name("go").exists():
        time.sleep(0.01)
    return question.labels[0]

def judge():
    return as_judge(answer, identity="1")
"""


def settings_of(data: Path, out: Path) -> RunSettings:
    return RunSettings("t2i_correctness", str(data), out, limit=3)


def one_color(prompt: str, seed: int) -> Image.Image:
    return Image.new("RGB", (64, 64), (seed % 256, len(prompt) % 256, 0))


def says_first(question: Question) -> str:
    return question.labels[0]


def contents(folder: Path) -> dict[str, str]:
    """File -> SHA-256 of everything that a folder holds."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
    }


def test_a_run_without_an_image_asks_for_no_judge(text_release: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    asked = settings_of(text_release, tmp_path / "run")
    evaluate_run(asked, as_generator(f"folder:{tmp_path}/empty"), [as_judge(says_first, "1")])
    with raises("nothing-judged", "has no", error=RunError):
        score_run(tmp_path / "run", ScoreSettings())


@pytest.mark.slow
def test_looking_at_runs_writes_nothing_into_them(text_release: Path, tmp_path: Path) -> None:
    runs = [tmp_path / "first", tmp_path / "second"]
    for run, label in zip(runs, ("correct", "wrong"), strict=True):
        judge = as_judge(lambda q, label=label: label, identity="1")
        evaluate_run(settings_of(text_release, run), one_color, [judge])
    labels = tmp_path / "labels.csv"
    case = next(iter(Run.open(runs[0]).present()))
    labels.write_text(f"case,question,label\n{case},arrangement,wrong\n")
    before = [contents(run) for run in runs]
    score = ScoreSettings(labels=labels)
    write_report([runs[0]], tmp_path / "site", score, exports=["inspect"])
    plan(runs, (), None, PlanSettings())
    (judged,) = score_run(runs[0], score)
    assert judged.result.card.agreement["arrangement"].n == 1
    assert [contents(run) for run in runs] == before


def test_score_writes_only_its_scores(text_release: Path, tmp_path: Path, cli: Cli) -> None:
    run = tmp_path / "run"
    evaluate_run(settings_of(text_release, run), one_color, [as_judge(says_first)])
    labels = tmp_path / "labels.csv"
    case = next(iter(Run.open(run).present()))
    labels.write_text(f"case,question,label\n{case},arrangement,correct\n")
    before = contents(run)
    done = cli("score", run, "--labels", labels)
    assert done.returncode == 0, done.stderr
    after = contents(run)
    assert after.pop("scores.json") and after == before
    (result,) = json.loads((run / "scores.json").read_text())
    assert result["card"]["agreement"]["arrangement"]["n"] == 1


@pytest.mark.slow
def test_refuses_second_process_in_run_folder(
    text_release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: ForkingCommand
) -> None:
    (tmp_path / "slow.py").write_text(SLOW_JUDGE)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")
    run = tmp_path / "run"
    generate(RunSettings("t2i_homogenization", str(text_release), run, limit=3), "render:")
    words = ["judge", str(run), "--judge", "python:slow:judge"]
    first = cli.start(*words)
    deadline = time.monotonic() + 60
    while not list(run.glob("verdicts/*/judge.json")) and time.monotonic() < deadline:
        time.sleep(0.01)
    second = cli(*words)
    assert_refused(second, "in-use", f"the run {run}", exit_code=1)
    (tmp_path / "go").touch()
    assert first.wait(60) == 0
    (log,) = run.glob("verdicts/*/verdicts.jsonl")
    keys = [json.loads(line)["key"] for line in log.read_text().splitlines()]
    assert len(keys) == len(set(keys)) == len(Run.open(run).cases()) == 6


# Images that lie elsewhere.


class Counting:
    """A judge that remembers which cases it was asked about."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, question: Question) -> str:
        self.asked.append(question.case)
        return question.labels[0]


@pytest.fixture
def elsewhere(text_release: Path, tmp_path: Path) -> Callable[[Counting], Done]:
    """Evaluates a folder of six images, all of different colors."""
    folder = tmp_path / "images"
    folder.mkdir()
    cases = generate(settings_of(text_release, tmp_path / "plan"), f"folder:{folder}").run.cases()
    for number, case in enumerate(cases):
        paint(folder, case, (40 * number, 0, 0))

    def evaluate(judge: Counting) -> Done:
        settings = settings_of(text_release, tmp_path / "run")
        return evaluate_run(settings, f"folder:{folder}", [as_judge(judge, identity="1")])

    return evaluate


def paint(folder: Path, case: Case, color: tuple[int, int, int]) -> None:
    Image.new("RGB", (32, 32), color).save(folder / case.file)


def scored(run: Path, **options: Any) -> JudgedRun:
    (judged,) = score_run(run, ScoreSettings(**options))
    return judged


@pytest.mark.slow
@pytest.mark.parametrize("again", ["eval", "judge"])
def test_a_replaced_image_is_judged_anew_and_never_scored_as_the_old_one(
    elsewhere: Callable[[Counting], Done], tmp_path: Path, again: str
) -> None:
    first, second = Counting(), Counting()
    run = elsewhere(first).run
    cases = run.cases()
    assert sorted(first.asked) == sorted(case.id for case in cases)
    assert not any(o.verdict("arrangement").failed for o in scored(run.root).outcomes)
    paint(tmp_path / "images", cases[2], (0, 255, 0))
    with raises("incomplete-run", "1", error=RunError):
        scored(run.root)
    left_out = scored(run.root, partial=True)
    states = {o.case.id: o.image for o in left_out.outcomes}
    assert [case for case, state in states.items() if state == "missing"] == [cases[2].id]
    whole = {s.name: s for s in left_out.result.scores if s.group == "all"}
    assert sum(s.excluded.get("missing", 0) for n, s in whole.items() if "accuracy" in n) == 1
    assert left_out.result.card.asked == len(cases) - 1
    if again == "eval":
        elsewhere(second)
    else:
        judge_run(run.root, [as_judge(second, identity="1")])
    assert second.asked == [cases[2].id]
    assert {o.image for o in scored(run.root).outcomes} == {"made"}


def test_a_run_that_can_not_be_opened_is_left_to_others(text_release: Path, tmp_path: Path) -> None:
    settings = settings_of(text_release, tmp_path / "run")
    run = generate(settings, as_generator(one_color, "1")).run
    image = run.image_path(next(iter(run.images().values())))
    image.rename(tmp_path / "away.png")
    image.symlink_to(tmp_path / "away.png")
    (run.root / "checked.txt").unlink()
    with pytest.raises(DataError, match="leads out") as refused:
        judge_run(run.root, [as_judge(says_first, "1")])
    image.unlink()
    (tmp_path / "away.png").rename(image)
    judge_run(run.root, [as_judge(says_first, "1")])  # the error and its frames are still there
    assert refused.value and scored(run.root)


@pytest.mark.parametrize("content", [b"", b"\xff\n", b"{\n", b" \n\n"])
def test_damaged_notes_of_what_was_read_change_nothing(
    text_release: Path, tmp_path: Path, content: bytes
) -> None:
    run = generate(settings_of(text_release, tmp_path / "run"), as_generator(one_color, "1")).run
    notes = run.root / CHECKED
    before = notes.read_bytes()
    images = run.images()
    files = [line.split()[1] for line in before.decode().splitlines()]
    assert files == sorted(image.file for image in images.values())
    notes.write_bytes(content)
    assert {*run.present()} == {*images} and notes.read_bytes() == before
    replaced = next(iter(images.values()))
    run.image_path(replaced).write_bytes(b"other")
    notes.write_bytes(content)
    assert {*run.present()} == {*images} - {replaced.case}


def test_an_image_that_is_removed_is_missing(
    elsewhere: Callable[[Counting], Done], tmp_path: Path, cli: Cli
) -> None:
    run = elsewhere(Counting()).run
    (tmp_path / "images" / run.cases()[0].file).unlink()
    refused = cli("score", run.root)
    assert_refused(refused, "incomplete-run", run.root, "1 images", "--partial", exit_code=1)
    done = elsewhere(Counting())
    assert done.run.images()[run.cases()[0].id].status == "missing"
    assert scored(run.root).result.card.asked == len(run.cases()) - 1


def test_frames_per_second_of_a_clip_are_its_rate_on_disk(tmp_path: Path) -> None:
    clip = CaseResult("a", "made", "images/a.mp4", frames=3, fps=7.5)
    run = Run(tmp_path, RunHeader("s", "d", "0", 1, 1, None, {"kind": "k"}))
    run.results.append(clip)
    record = json.loads((tmp_path / "images.jsonl").read_text())
    assert (record["frames"], record["rate"]) == (3, 7.5) and "fps" not in record
    assert Run(tmp_path, run.header).results["a"] == clip


def test_an_editor_blind_to_mention_order_is_not_blamed(tmp_path: Path) -> None:
    """Both instructions of a row ask for one edit: the same bytes are right."""
    edited = rows.bound("cat", "dog"), rows.bound("horse", "cow")
    settings = RunSettings("i2i_correctness", "rows", tmp_path / "run")
    turned = as_generator(lambda prompt, seed, source: source.rotate(180))
    with Evaluation.start(settings, turned.identity(), Rows.of(edited)) as evaluation:
        evaluation.make(turned)
        digests = [image.sha256 for image in evaluation.run.images().values()]
        notes = evaluation.run.notes()
    assert len(set(digests)) == 2 < len(digests)
    assert not [note for note in notes if "another prompt" in note]
    # One image for edits of two sources is another matter.
    settings = RunSettings("i2i_correctness", "rows", tmp_path / "same")
    blank = as_generator(lambda prompt, seed, source: Image.new("RGB", (64, 64), "red"))
    with Evaluation.start(settings, blank.identity(), Rows.of(edited)) as evaluation:
        evaluation.make(blank)
        (note,) = (n for n in evaluation.run.notes() if "another prompt" in n)
    assert note.startswith(f"{len(digests)} of {len(digests)} images")
