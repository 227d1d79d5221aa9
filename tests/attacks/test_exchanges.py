"""Files of runs that were replaced, edited or exchanged: each is named, and no number is of others.

What is judged or scored is read by its recorded digest, and records say who made them.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import trip_doubles
from PIL import Image
from refusals import raises
from scored import cases, image_run, judged_as

from counterprior.errors import DataError
from counterprior.eval.captioners import as_captioner
from counterprior.eval.clips.frames import USUAL, FrameChoice
from counterprior.eval.core import Question, Verdict
from counterprior.eval.engine import run as runs
from counterprior.eval.engine.data import Rows
from counterprior.eval.engine.evaluation import Evaluation, RunSettings
from counterprior.eval.engine.frames import shown_frames
from counterprior.eval.engine.image_scores import PairToScore, ScoredPair, ScoreLog, score_images
from counterprior.eval.engine.run import CaseResult, Run, RunError, differs
from counterprior.eval.engine.steps import evaluate_run, judge_run
from counterprior.eval.generators.render import RenderGenerator
from counterprior.eval.judges import as_judge
from counterprior.eval.judges.pixels import PixelJudge
from counterprior.eval.report.site import write_report
from counterprior.eval.results.scoring import ScoreSettings, score_run
from counterprior.eval.selftest import rows as trials
from counterprior.eval.store.verdicts import OpenQuestion, Tally
from counterprior.eval.studies import runner as studies
from counterprior.eval.studies.folder import Study
from counterprior.eval.studies.runner import run_study
from counterprior.eval.studies.status import judged_runs
from counterprior.eval.suites.caption_order import UNPUBLISHED, write_images
from counterprior.images import ImageError, encode_png
from counterprior.schema import CaptionOrder

OTHER = encode_png(Image.new("RGB", (80, 16), (9, 9, 9)))
"""An image that nobody made in any run."""
TRIP = "image~teller~hand"


class Says:
    """A judge that answers alike, and notes what it was asked about."""

    def __init__(self, label: int) -> None:
        self.label = label
        self.asked: list[str] = []

    def identity(self) -> dict[str, str]:
        return {"kind": "says", "label": str(self.label)}

    def judge(self, questions: Iterable[Question]) -> Iterator[tuple[Question, Verdict]]:
        for question in questions:
            self.asked.append(question.case)
            yield question, Verdict(question.labels[self.label])


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """A study of round trips, and the rows that stand in for its release."""
    trip_doubles.reset()
    found = {"rows": trip_doubles.rows(2)}
    monkeypatch.setattr(studies, "read_rows", lambda *_: Rows.of(found["rows"]))
    yield found
    trip_doubles.reset()


def trip_study(reader: str = "reader") -> dict[str, Any]:
    here = "python:trip_doubles:"
    return {
        "data": "the world",
        "suites": {"consistency": {}},
        "captioners": {"teller": f"{here}teller"},
        "generators": {"hand": f"{here}hand"},
        "editors": {"image": f"{here}hand", "text": f"{here}teller"},
        "judges": {"reader": f"{here}{reader}"},
    }


def judge_clips(run: Path, judge: Any = None) -> Run:
    """A run of two clips, made and judged where it is not."""
    found = Rows.of([trials.neutral(a, b) for a, b in trials.pairs(trials.STOUT)[:2]])
    generator = RenderGenerator(video=3)
    settings = RunSettings("t2i_homogenization", "memory", run)
    with Evaluation.start(settings, generator.identity(), found) as evaluation:
        evaluation.make(generator)
    judge_run(run, [judge or PixelJudge()], rows=found)
    return Run.open(run)


def values(root: Path) -> dict[str, tuple[float, int]]:
    (judged,) = score_run(root, ScoreSettings(groups=False, judges=("pixels",)))
    return {name: (score.value, score.n) for name, score in judged.whole.items()}


# --- what was judged is replaced ---------------------------------------------------------------


@pytest.mark.lane
@pytest.mark.parametrize("how", ["written", "moved there, with an old time"])
def test_a_replaced_clip_is_neither_scored_nor_judged_nor_shown(how: str, tmp_path: Path) -> None:
    run = judge_clips(tmp_path / "run")
    first, *others = run.cases()
    file = run.image_path(run.images()[first.id])
    other = run.image_path(run.images()[others[0].id]).read_bytes()
    replace_file(file, other, how)
    with raises("incomplete-run", run.root, "1 images", "--partial", error=RunError):
        values(run.root)
    left = {case.id for case in others}
    assert Run.open(run.root).present().keys() == left
    write_report([run.root], tmp_path / "site", ScoreSettings(partial=True))
    shown = {run.images()[case].sha256[:24] for case in left}
    assert {path.stem for path in (tmp_path / "site" / "clips").iterdir()} == shown
    found = Rows.of([trials.neutral(a, b) for a, b in trials.pairs(trials.STOUT)[:2]])
    judge = Says(0)
    judge_run(run.root, [judge], rows=found)
    assert {*judge.asked} == left
    lost = Run.open(run.root).images()[first.id]
    said = "is not the recorded one any more: make it again by what made the run"
    assert (lost.status, lost.message) == ("error", f"{run.images()[first.id].file} {said}")
    assert max(n for _, n in values(run.root).values()) == len(others)
    whole = judge_clips(run.root)  # made again, as it was
    assert whole.images()[first.id].sha256 == run.images()[first.id].sha256
    assert values(run.root) == values(judge_clips(tmp_path / "other").root)


@pytest.mark.lane
def test_a_replaced_frame_is_extracted_again(tmp_path: Path) -> None:
    run = judge_clips(tmp_path / "run")
    frames = sorted(run.root.glob("frames/*/*.png"))
    kept = [path.read_bytes() for path in frames]
    for path in frames:
        path.write_bytes(OTHER)
    shown: list[bytes] = []

    class Looks(Says):
        def judge(self, questions: Iterable[Question]) -> Iterator[tuple[Question, Verdict]]:
            def noted() -> Iterator[Question]:
                for question in questions:
                    shown.append(encode_png(question.images[-1]))
                    yield question

            return super().judge(noted())

    judge_clips(run.root, Looks(1))
    assert sorted({*shown}) == sorted({*kept})


def test_a_copied_run_is_read_through_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = cases(3)
    made = image_run(tmp_path / "made", asked, {case.id: 9 for case in asked})
    copied = Run.open(Path(shutil.copytree(made, tmp_path / "copied")))
    for file in (copied.root / "images").iterdir():
        file.touch()  # after the log, as some copies are
    read: list[str] = []

    def noted(root: Path, image: CaseResult) -> bool:
        read.append(image.case)
        return differs(root, image)

    monkeypatch.setattr(runs, "differs", noted)
    for _ in range(3):
        assert len(copied.present()) == 3
    assert sorted(read) == [case.id for case in asked]
    first = copied.image_path(copied.images()[asked[0].id])
    first.write_bytes(OTHER)
    for _ in range(2):  # what differs is looked at again each time
        assert set(copied.present()) == {case.id for case in asked[1:]}
    assert len(read) == 5


@pytest.mark.lane
def test_a_run_that_was_copied_is_scored_as_it_was(tmp_path: Path) -> None:
    """Times of a copy are new: then bytes are compared, and are the same."""
    run = judge_clips(tmp_path / "run")
    copied = Path(shutil.copytree(run.root, tmp_path / "copy", copy_function=shutil.copy))
    for path in copied.rglob("*.mp4"):
        os.utime(path)
    assert values(copied) == values(run.root)
    next(copied.rglob("images/*")).unlink()  # what was recorded of it stands
    assert values(copied) == values(run.root)


@pytest.mark.lane
@pytest.mark.parametrize(
    ("file", "told"),
    [
        ("runs/consistency/image/sources/*", "is not the recorded one any more: remove it"),
        ("steps/images/*", "is not the recorded one any more; remove it"),
    ],
)
def test_a_replaced_input_of_a_round_trip_is_named(
    world: dict[str, Any], file: str, told: str, tmp_path: Path
) -> None:
    run_study(trip_study(), tmp_path)
    for path in tmp_path.glob(file):
        path.write_bytes(OTHER)
    for path in tmp_path.glob("runs/*/*/images*"):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    done = run_study(trip_study(), tmp_path)
    assert done.failures and all(told in failure.cause for failure in done.failures), done.failures


@pytest.mark.lane
def test_an_edited_text_of_a_round_trip_is_neither_scored_nor_judged(
    world: dict[str, Any], tmp_path: Path
) -> None:
    done = run_study(trip_study(), tmp_path)
    assert not done.failures
    run = Run.open(next(tmp_path.glob("runs/*/text~*")))
    text = next(image for image in run.images().values() if image.is_text)
    before = run.image_path(text).read_bytes()
    run.image_path(text).write_bytes(before.replace(b"red", b"blue"))
    with raises("incomplete-run", run.root, "1 images", "--partial", error=RunError):
        score_run(run.root, ScoreSettings())
    judge = Says(0)
    judge_run(run.root, [judge], rows=Rows.of(world["rows"]))
    assert judge.asked and text.case not in judge.asked
    assert Run.open(run.root).images()[text.case].status == "error"
    again = run_study(trip_study(), tmp_path)  # made again from its steps; nothing is asked twice
    assert not again.failures and run.image_path(text).read_bytes() == before
    assert set(trip_doubles.DID.values()) == {1}


@pytest.mark.parametrize("how", ["written", "moved there, with an old time"])
def test_a_replaced_image_is_neither_scored_nor_judged(how: str, tmp_path: Path) -> None:
    asked = cases(3)
    root = image_run(tmp_path / "run", asked, dict.fromkeys([case.id for case in asked], 7))
    judged_as(root, dict.fromkeys([case.id for case in asked], "correct"))
    replace_file(root / "images" / asked[0].file, OTHER, how)

    class Scorer:
        batch = 1

        def identity(self) -> dict[str, str]:
            return {"kind": "seven"}

        def score(self, pairs: Any) -> list[float]:
            return [image.getpixel((0, 0))[0] for _, image in pairs]

    with raises("incomplete-run", "1", error=RunError):
        score_run(root, ScoreSettings())
    (judged,) = score_run(root, ScoreSettings(partial=True))
    assert [o.image for o in judged.outcomes] == ["missing", "made", "made"]
    with raises("changed-file", "1", error=RunError):
        score_images(root, [Scorer()])
    with raises("changed-file", error=ImageError):
        shown_frames(root, Run.open(root).images()[asked[0].id], FrameChoice(USUAL))
    os.utime(root / "images.jsonl")  # as if it was replaced while others were made
    with raises("incomplete-run", "1", error=RunError):
        score_run(root, ScoreSettings())
    with raises("changed-file", "1", error=RunError):
        score_images(root, [Scorer()])
    (root / "images" / asked[0].file).unlink()
    (root / "images" / asked[0].file).write_bytes(OTHER)
    shutil.copytree(root, root.with_name("copy"))
    root = root.with_name("copy")
    with raises("incomplete-run", "1", error=RunError):
        score_run(root, ScoreSettings())


def test_a_second_log_makes_no_replaced_image_the_recorded_one(tmp_path: Path) -> None:
    """A shard that ran later has a newer log: times say nothing of who replaced what."""
    asked = cases(3)
    root = image_run(tmp_path / "run", asked, dict.fromkeys([case.id for case in asked], 7))
    assert len(Run.open(root).present()) == 3
    file = root / "images" / asked[0].file
    before = file.stat()
    file.write_bytes(OTHER)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    (root / "images.2-of-2.jsonl").write_bytes(b"")
    assert set(Run.open(root).present()) == {case.id for case in asked[1:]}


def replace_file(file: Path, data: bytes, how: str) -> None:
    if how == "written":
        file.write_bytes(data)
        return
    other = file.with_name("old")
    other.write_bytes(data)
    os.utime(other, (0, 0))
    other.replace(file)


# --- records of others -------------------------------------------------------------------------


def exchanged(first: Path, second: Path) -> None:
    between = first.with_name("between")
    first.rename(between)
    second.rename(first)
    between.rename(second)


@pytest.mark.parametrize("file", ["verdicts.jsonl", "judge.json"])
def test_verdicts_of_another_judge_are_not_his(file: str, tmp_path: Path) -> None:
    root = image_run(tmp_path / "run", cases(1), {cases(1)[0].id: 3})
    run, asked = Run.open(root), Question("c", "order", "original", "order", (), ("a",), "", {}, ())
    for label in (0, 1):
        for _ in run.judge(Says(label).identity()).ask(
            Says(0), [OpenQuestion(asked, "5" * 64)], Tally()
        ):
            pass
    first, second = sorted(root.glob(f"verdicts/*/{file}"))
    exchanged(first, second)
    for log in Run.open(root).judges():
        with raises("another-run", ":1:", "verdicts.jsonl:1", "by '", error=DataError):
            list(log)


@pytest.mark.lane
def test_verdicts_of_another_run_are_of_other_images(world: dict[str, Any], tmp_path: Path) -> None:
    run_study(trip_study(), tmp_path / "one")
    run_study(trip_study("reader?yes=1"), tmp_path / "two")
    (tmp_path / "two" / "study.json").unlink()
    given = "runs/consistency/{}/verdicts"
    mine = tmp_path / "one" / given.format(TRIP)
    shutil.rmtree(mine)
    shutil.copytree(tmp_path / "two" / given.format("text"), mine)
    with raises("incomplete-run", mine.parent, error=RunError):
        score_run(mine.parent, ScoreSettings())


def test_scores_of_another_scorer_are_not_its_own(tmp_path: Path) -> None:
    root = image_run(tmp_path / "run", cases(1), {cases(1)[0].id: 3})
    logs = [ScoreLog.start(Run.open(root), {"kind": kind}) for kind in ("a", "b")]
    for log in logs:
        log.add(PairToScore("c", "p", "i"), ScoredPair(1.0))
    exchanged(*(log.root / "scores.jsonl" for log in logs))
    with raises("another-run", ":1:", "scores.jsonl:1", error=DataError):
        len(ScoreLog.open(logs[0].root).answers)


def test_a_caption_of_another_captioner_is_not_judged(tmp_path: Path) -> None:
    data, runs = image_to_caption(tmp_path), []
    for text in ("a cat", "a dog"):
        captioner = as_captioner(lambda image, instruction, text=text: text, identity=text)
        judge = as_judge(lambda question: "none_named", identity="1")
        settings = RunSettings("caption_order", str(data), tmp_path / text)
        runs.append(evaluate_run(settings, captioner, [judge]).run)  # type: ignore[arg-type]
    case = runs[0].cases()[0].id
    exchanged(*(run.root / f"texts/{case}.txt" for run in runs))
    with raises("incomplete-run", "1 images were replaced", error=RunError):
        score_run(runs[0].root, ScoreSettings())
    judge_run(runs[0].root, [as_judge(lambda question: "none_named", identity="1")])
    (judged,) = score_run(runs[0].root, ScoreSettings())
    assert [o.image for o in judged.outcomes if o.case.id == case] == ["error"]


def image_to_caption(folder: Path) -> Path:
    """The rows of one image, whose file lies beside them."""
    Image.new("RGB", (48, 32)).save(folder / "i.png")
    digest = hashlib.sha256((folder / "i.png").read_bytes()).hexdigest()
    sides = {"left": "cat", "right": "dog", "left_category": "", "right_category": ""}
    file = {"file": str(folder / "i.png"), "image_sha256": digest}
    row = CaptionOrder(image="i", place=0, **sides, **file, **UNPUBLISHED)
    write_images(folder / "images.jsonl", [row])
    return folder / "images.jsonl"


# --- studies of other data ---------------------------------------------------------------------


@pytest.mark.lane
def test_a_study_of_another_release_is_named(world: dict[str, Any], tmp_path: Path) -> None:
    done = run_study(trip_study(), tmp_path)
    table = done.table()
    # Another release, or settings, than those of the runs.
    changes: dict[str, Callable[[dict[str, Any]], Any]] = {
        "data": lambda plain: plain.update(data="another world"),
        "limit": lambda plain: plain.update(suites={"consistency": {"limit": 1}}),
    }
    kept = (tmp_path / "study.yaml").read_text()
    for name, change in changes.items():
        plain = trip_study()
        change(plain)
        with raises("another-run", f" {name} "):
            run_study(plain, tmp_path)
        (tmp_path / "study.yaml").write_text(json.dumps(plain))
        with raises("another-run", f" {name} ", error=RunError):
            Study.open(tmp_path)
    (tmp_path / "study.yaml").write_text(kept)
    # The same name, and other rows behind it.
    world["rows"] = [row.model_copy(update={"caption": "Else."}) for row in world["rows"]]
    with raises("different-rows", "rows of consistency", error=RunError):
        run_study(trip_study(), tmp_path)
    assert judged_runs(Study.open(tmp_path)) and table
