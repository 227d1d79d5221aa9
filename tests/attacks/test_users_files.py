"""Malformed files of the other kinds that a user or an earlier run gives: read, or one line.

`test_readers` has the files of releases, runs and corpora. Here are studies, tables, boxes,
captions, samples to label, clips, and what one command leaves for another.
"""

from __future__ import annotations

import io
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import settings as how_many
from hypothesis import strategies as st
from malformed import check, few, jsonl, malformed
from PIL import Image
from published import CC, publish, published_run

from counterprior.agents.budget import PriceTable
from counterprior.agents.spending import Charge, SpendingLog
from counterprior.cards.manifest import read_manifest
from counterprior.clip_files import read_clip
from counterprior.corpus_analysis.captioning.people import read_people
from counterprior.eval.detectors.recorded import _json as read_recorded
from counterprior.eval.engine.image_scores import ScoreLog
from counterprior.eval.generators.image_folders.known import _object as read_prompts_of_images
from counterprior.eval.geometry.checker.rules import CheckerRules
from counterprior.eval.geometry.instances import Instances
from counterprior.eval.methods.candidates import read_candidates
from counterprior.eval.methods.tuning.pairs import read_flips
from counterprior.eval.people.clicks import read_clicks
from counterprior.eval.people.forms import open_form, read_tasks
from counterprior.eval.people.sampling import LabelingSample
from counterprior.eval.publishing.publication import read_publication
from counterprior.eval.results.corrected import read_cards
from counterprior.eval.results.judge_check import read_checks
from counterprior.eval.roundtrips.log import StepLog
from counterprior.eval.studies.scores.corpora import SHARES, read_corpus
from counterprior.eval.studies.spec import read_study
from counterprior.eval.suites.caption_order import read_images

Survived = Callable[[str, bool], None]


def gif() -> bytes:
    buffer = io.BytesIO()
    frames = [Image.new("RGB", (32, 32), color) for color in ("red", "lime")]
    frames[0].save(buffer, "GIF", save_all=True, append_images=frames[1:], duration=100)
    return buffer.getvalue()


def spending(path: Path) -> None:
    log = SpendingLog(path, lambda charge: charge.usd or 0)  # type: ignore[arg-type, return-value]
    with log.turn():
        pass
    log.finish()


def spent() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        log = SpendingLog(Path(folder) / "s.jsonl", lambda charge: charge.usd)  # type: ignore[arg-type, return-value]
        with log.turn():
            first = log.intend("l", "c", Charge(usd=1))  # type: ignore[arg-type]
            log.close([first.id], "l", Charge(usd=1))  # type: ignore[arg-type]
        log.finish()
        return (Path(folder) / "s.jsonl").read_bytes()


COCO = {
    "categories": [{"id": 1, "name": "cat"}],
    "images": [{"id": 7, "file_name": "a.png", "width": 9, "height": 9}],
    "annotations": [{"image_id": 7, "category_id": 1, "bbox": [1, 1, 2, 2]}],
}
STUDY = {
    "data": "d",
    "suites": {"t2i_homogenization": {"limit": 2}},
    "generators": {"a": "render:"},
    "judges": {"b": "pixels"},
}
SHARE = {"rate": 0.5, "by_pair": [0.4, 0.6], "n": 9}
CHECK = {
    "judge": "j",
    "comparable": {"model": "m"},
    "checked": {"row": "entry"},
    "misled": {"row": "entry"},
    "unchecked": {},
    "confusion": {"swapped": {"correct": 1}},
}
SAMPLE = {
    "kind": "judge",
    "runs": [["a", "b"]],
    "n": 1,
    "seed": 0,
    "items": [
        {"id": "1", "case": "c", "cluster": "k", "prompt": "p"}
        | {"runs": ["a"], "images": ["5"], "files": ["f"], "answers": [["1", "left"]]}
    ],
}


def plain(value: Any) -> bytes:
    return json.dumps(value).encode()


def published() -> bytes:
    """The manifest of a publication."""
    with tempfile.TemporaryDirectory() as folder:
        run = published_run(Path(folder) / "run", "t2i_homogenization", "g", rows=1)
        publish(run, Path(folder) / "p", CC)
        return (Path(folder) / "p" / "publication.json").read_bytes()


def a_score(path: Path) -> None:
    len(ScoreLog(path.parent, {"kind": "k"}).answers)


def a_header(path: Path) -> None:
    ScoreLog.open(path.parent)


def steps(path: Path) -> None:
    (path.parent / "steps").mkdir(exist_ok=True)
    (path.parent / "steps" / "steps.jsonl").write_bytes(path.read_bytes())
    for taken in StepLog(path.parent):
        _ = taken.digest


def flips(path: Path) -> None:
    (path.parent / "train").mkdir(exist_ok=True)
    (path.parent / "train" / "metadata.jsonl").write_bytes(path.read_bytes())
    read_flips(path.parent, mirrored=True, held_out=0, seed=0)


FLIP = {"file_name": "a.png", "text": "a dog", "mirrored": False, "pair": "p"}
READERS: dict[str, tuple[str, bytes, Callable[[Path], Any]]] = {
    "study": ("s.yaml", yaml.safe_dump(STUDY).encode(), read_study),
    "prices": ("p.yaml", b"openai:m: {input: 0.1, output: 1}\n", PriceTable.read),
    "spending": ("spending.jsonl", spent(), spending),
    "boxes": ("b.json", plain(COCO), Instances.read),
    "people's captions": (
        "c.jsonl",
        jsonl({"image": "7", "caption": "a cat"}),
        lambda p: read_people(p, {"7": "7"}),
    ),
    "people's captions, COCO": (
        "c.json",
        plain({"images": [], "annotations": [{"image_id": 7, "caption": "a cat"}]}),
        lambda p: read_people(p, {"7": "7"}),
    ),
    "detections, VISOR": ("d.json", plain({"1": {}}), lambda p: read_recorded(p, None)),
    "layout of images": ("prompts.json", plain({"a": "p"}), read_prompts_of_images),
    "corpus": (
        "alignment.json",
        plain(dict.fromkeys(SHARES.values(), SHARE) | {"judge": {"kind": "k"}}),
        lambda p: read_corpus(p.parent),
    ),
    "judge check": ("judge_check.json", plain([CHECK]), lambda p: read_checks(p.parent)),
    "judge card": (
        "scores.json",
        plain([{"card": {}}]),
        lambda p: list(read_cards(p)),
    ),
    "sample of runs": ("sample.json", plain(SAMPLE), LabelingSample.read),
    "rows to label": (
        "t.yaml",
        b"- {sample_id: a, prompt: p}\n",
        lambda p: read_tasks(p, open_form("verdict")),
    ),
    "clicks": (
        "c.jsonl",
        jsonl({"sample_id": "a", "human_verdict": "correct"}),
        lambda p: read_clicks(p, open_form("verdict")),
    ),
    "checker's rules": ("r.yaml", b"thresholds: {detection_score: 0.3}\n", CheckerRules.load),
    "images to caption": (
        "i.jsonl",
        jsonl(
            {"image": "7", "place": 0, "left": "cat", "right": "dog"}
            | {"left_category": "animals", "right_category": "animals"}
        ),
        read_images,
    ),
    "scores of a scorer": ("scores.jsonl", jsonl({"key": "k", "case": "c", "value": 1.5}), a_score),
    "scorer": ("scorer.json", plain({"kind": "k"}), a_header),
    "steps of round trips": (
        "s.jsonl",
        jsonl({"key": "k", "step": "caption", "text": "a \ud83d"}),
        steps,
    ),
    "candidates": (
        "candidates.jsonl",
        jsonl({"case": "c", "number": 0, "seed": 1, "score": None}),
        lambda p: read_candidates(p.parent),
    ),
    "flip set": ("m.jsonl", jsonl(FLIP | {"first": "a", "second": "b"}), flips),
    "clip": ("a.gif", gif(), lambda p: read_clip(p.read_bytes())),
    "manifest of a release": (
        "manifest.json",
        plain({"repo_id": "a/b"}),
        lambda p: read_manifest(p.parent),
    ),
    "publication": (
        "publication.json",
        published(),
        lambda p: read_publication(p.parent),
    ),
}


def attack(kind: str, path: Path, survived: Survived, data: st.DataObject) -> None:
    name, good, read = READERS[kind]
    (path / name).write_bytes(data.draw(malformed(good)))
    check(kind, lambda: read(path / name), survived)


@pytest.mark.parametrize("kind", READERS)
@how_many(few, max_examples=8)
@given(data=st.data())
def test_a_malformed_file_is_read_or_named(
    kind: str, tmp_path: Path, survived: Survived, data: st.DataObject
) -> None:
    attack(kind, tmp_path, survived, data)


@pytest.mark.lane
@pytest.mark.parametrize("kind", READERS)
@how_many(few, max_examples=300)
@given(data=st.data())
def test_three_hundred_malformed_files_are_read_or_named(
    kind: str, tmp_path: Path, survived: Survived, data: st.DataObject
) -> None:
    attack(kind, tmp_path, survived, data)
