"""What people label straight from judged runs, of clips too: the judge's own questions."""

from __future__ import annotations

import json
import struct
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from urllib.request import urlopen

import pytest
from refusals import raises

from counterprior.clip_files import clip_frames, encode_mp4, read_clip
from counterprior.errors import DataError
from counterprior.eval.engine.evaluation import RunSettings, outcomes
from counterprior.eval.engine.run import Run
from counterprior.eval.engine.steps import JudgeSettings, evaluate_run
from counterprior.eval.people.page_media import media_for_page
from counterprior.eval.people.sampling import CLIP_PREAMBLE, SAMPLE, LabelingSample, open_audit
from counterprior.eval.people.serve import AuditServer
from counterprior.eval.results.judge_card import labels_of
from counterprior.eval.results.scoring import ScoreSettings, score_run, score_runs
from counterprior.human_labels import read_labels
from counterprior.images import ImageError

SUITE = "t2i_homogenization"


@pytest.fixture(scope="module")
def runs(text_release: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two generators of different bias, judged by pixels; read only."""
    found = []
    for name, bias in (("weak", 0), ("strong", 2)):
        out = tmp_path_factory.mktemp("drawn") / name
        settings = RunSettings(SUITE, str(text_release), out, limit=12)
        evaluate_run(settings, f"render:?order_bias={bias}", ["pixels"], JudgeSettings())
        found.append(out)
    return found


def test_a_judges_questions_are_drawn_with_its_words_and_answers(
    runs: list[Path], tmp_path: Path
) -> None:
    audit = open_audit(runs, "judge", tmp_path / "labels", n=16)
    sample = LabelingSample.read(tmp_path / "labels" / SAMPLE)
    assert len(audit.tasks) == len(sample.items) == 16
    assert set(Counter(item.runs[0] for item in sample.items)) == {"weak", "strong"}
    keys = {(item.case, item.images[0]) for item in sample.items}
    assert len(keys) == 16  # an image that both runs have is asked about once
    task, item = audit.tasks[0], sample.items[0]
    assert dict(task.texts)["prompt"] == item.prompt and "left" in dict(task.texts)["asked"]
    labels = {label for label, _ in task.options}
    assert labels == {"first_left", "first_right", "invalid"}
    for label, digit in task.options:
        assert digit in dict(task.texts)["asked"] and label
    assert "pixels" not in str(audit.state("ann")) and "weak" not in str(audit.state("ann"))


def test_its_labels_are_read_by_score(
    runs: list[Path], tmp_path: Path, cli: Callable[..., object]
) -> None:
    folder = tmp_path / "labels"
    audit = open_audit(runs, "judge", folder, n=40)
    for task in audit.tasks:
        audit.click("ann", task.id, {"label": task.options[0][0]})
    labels = read_labels(folder / "ann.jsonl")
    assert len(labels) == len(audit.tasks) > 30 and all(len(label.image) == 64 for label in labels)
    assert audit.agreement()["done"] == {"ann": len(labels)}
    judged = score_runs(runs, ScoreSettings(labels=folder / "ann.jsonl"))
    counted = [one.result.card.agreement["order"].n for one in judged]
    # A label of an image that both have counts for both.
    assert sum(counted) >= len(labels) and min(counted) > 10


@pytest.mark.slow
def test_every_image_is_as_likely_to_be_labeled_whatever_the_judge_answered(
    runs: list[Path], tmp_path: Path
) -> None:
    """Equal shares of the judge's answers made a judge's rare answers look common."""
    strong = Run.open(runs[1])
    answers = labels_of(strong.chosen_judges(())[0].present(strong.present()))
    expected = sum(label == "first_left" for label in answers.values()) / len(answers)
    drawn = []
    for seed in range(40):
        folder = tmp_path / str(seed)
        open_audit(runs[1:], "judge", folder, n=6, seed=seed)
        sample = LabelingSample.read(folder / SAMPLE)
        drawn += [answers[item.case, "order"] == "first_left" for item in sample.items]
    assert expected > 0.7 and sum(drawn) / len(drawn) == pytest.approx(expected, abs=0.08)


def test_labels_drawn_in_equal_shares_are_refused(runs: list[Path], tmp_path: Path) -> None:
    folder = tmp_path / "labels"
    audit = open_audit(runs, "judge", folder, n=4)
    for task in audit.tasks:
        audit.click("ann", task.id, {"label": task.options[0][0]})
    sample = json.loads((folder / SAMPLE).read_text())
    for weight, item in enumerate(sample["items"], 1):
        item["weight"] = float(weight)
    (folder / SAMPLE).write_text(json.dumps(sample))
    assert len(LabelingSample.read(folder / SAMPLE).items) == 4  # the annotators may go on
    with raises("unequal-draw", str(folder / SAMPLE), "4 items", error=DataError):
        score_runs(runs, ScoreSettings(labels=folder / "ann.jsonl"))


def test_images_for_verdicts_come_from_every_run(runs: list[Path], tmp_path: Path) -> None:
    audit = open_audit(runs, "verdict", tmp_path / "labels", n=20)
    sample = LabelingSample.read(tmp_path / "labels" / SAMPLE)
    assert set(Counter(item.runs[0] for item in sample.items)) == {"strong", "weak"}
    audit.click("ann", audit.tasks[0].id, {"human_verdict": "PASS"})
    (label,) = read_labels(tmp_path / "labels" / "ann.jsonl")
    assert label.label == "PASS" and label.image == sample.items[0].images[0]


@pytest.fixture(scope="module")
def clips(text_release: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two clips, judged by pixels; read only."""
    out = tmp_path_factory.mktemp("clips") / "run"
    settings = RunSettings(SUITE, str(text_release), out, limit=1)
    spec = "render:?order_bias=1&video=3&swaps_at=0.25"
    evaluate_run(settings, spec, ["pixels"], JudgeSettings())
    return out


def test_clips_are_drawn_played_and_labeled(clips: Path, tmp_path: Path) -> None:
    folder = tmp_path / "labels"
    audit = open_audit([clips], "judge", folder, n=2)
    shown = audit.state("ann")["tasks"]
    assert len(shown) == 2 and all(task["clips"] == (0,) for task in shown)
    asked = dict(shown[0]["texts"])["asked"]
    assert asked.startswith(CLIP_PREAMBLE) and "left" in asked and "write" in asked.lower()
    with AuditServer(audit) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        answers = []
        for _ in range(2):
            where = f"/image?token={server.token}&task={audit.tasks[0].id}&index=0"
            with urlopen(f"http://127.0.0.1:{server.server_port}{where}") as answer:
                answers.append((answer.headers["Content-Type"], answer.read()))
        server.shutdown()
        thread.join()
    (kind, data), again = answers
    assert kind == "video/mp4" and again == (kind, data)
    played = read_clip(data)  # browsers play no animated WebP: it is encoded anew, once
    assert (played.ending, played.frames, played.fps) == (".mp4", 3, 8)
    assert len([*(folder / "clips").iterdir()]) == 1
    # A label stands beside the verdict of most frames, and comes back to `score`.
    run = Run.open(clips)
    most = {o.case.id: o.label("order") for o in outcomes(run, run.judges()[0])}
    for task, item in zip(audit.tasks, LabelingSample.read(folder / SAMPLE).items, strict=True):
        audit.click("ann", task.id, {"label": most[item.case]})
    (judged,) = score_run(clips, ScoreSettings(labels=folder / "ann.jsonl"))
    agreement = judged.result.card.agreement["order"]
    assert agreement.n == 2
    assert [row[n] for n, row in enumerate(agreement.matrix)] == [*map(sum, agreement.matrix)]


def test_a_blind_page_tells_nothing_of_a_clip_but_its_frames(clips: Path, tmp_path: Path) -> None:
    (task, *_) = open_audit([clips], "quality", tmp_path / "labels", n=1).tasks
    assert task.clips == (0,)
    frames = [*clip_frames(task.images[0].read_bytes())]
    secret = b"made by secret-model"
    made = encode_mp4(frames, 8).data + struct.pack(">I4s", 8 + len(secret), b"free") + secret
    film = tmp_path / "film.mp4"
    film.write_bytes(made)
    assert media_for_page(film, False, tmp_path) == (made, "video/mp4")
    kinds = set()
    for file in (film, task.images[0]):
        data, kind = media_for_page(file, True, tmp_path)
        kinds.add(kind)
        assert secret not in data and read_clip(data).frames == 3
    assert kinds == {"video/mp4"}
    film.write_bytes(made[:900])
    with raises("unreadable-image", error=ImageError):
        media_for_page(film, True, tmp_path)
