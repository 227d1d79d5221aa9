"""The flip set, and the judge that knows boxes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image
from refusals import raises

from counterprior.corpus_analysis.alignment.flips import (
    balanced,
    excluded,
    make_flips,
    read_handed,
)
from counterprior.corpus_analysis.alignment.layout_judge import PROBES
from counterprior.corpus_analysis.captions.ontology import Ontology, OntologyError
from counterprior.corpus_analysis.errors import CorpusError
from counterprior.corpus_analysis.images.retrieve import image_path, url_key
from counterprior.errors import UsageError
from counterprior.eval.core import Question, Verdict
from counterprior.eval.judges import open_judge
from counterprior.progress import silent

HANDED = read_handed()


def row(number: int, aligned: bool | None = True, **fields: Any) -> dict[str, Any]:
    label = {True: "first_left", False: "first_right", None: "invalid"}[aligned]
    return {
        "id": f"pair-{number:04d}",
        "image": None,
        "url": f"http://x/{number}.jpg",
        "text": "a cat and a dog",
        "spatial_words": [],
        "valid": True,
        "aligned": aligned,
        "first": {"name": "cat", "category": "animals"},
        "second": {"name": "dog", "category": "animals"},
        **{f"order_{probe}": label for probe in PROBES},
        **fields,
    }


def thing(name: str, category: str = "everyday") -> dict[str, str]:
    return {"name": name, "category": category}


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({}, ""),
        ({"valid": None}, "not_verified"),
        ({"valid": False}, "not_verified"),
        ({"aligned": None}, "inconsistent"),
        ({"order_mirror": "first_right"}, "inconsistent"),
        ({"order_swap": "unparsed"}, "inconsistent"),
        ({"spatial_words": ["left"]}, "sides_in_caption"),
        ({"spatial_words": ["behind"]}, ""),
        ({"text": "a left-handed man and a dog"}, "handed"),
        ({"text": "a cat and a dog on a poster"}, "text"),
        ({"text": "the signal cat and a dog"}, ""),
        ({"second": thing("book")}, "text"),
        ({"first": thing("clock")}, "handed"),
        ({"first": thing("clock"), "second": thing("book")}, "text"),
        ({"second": thing("umbrella")}, ""),
    ],
)
def test_excludes_pairs_that_mirroring_makes_wrong(fields: dict[str, Any], reason: str) -> None:
    assert excluded(row(1, **fields), HANDED) == reason


def test_handed_things_are_entities(tmp_path: Path) -> None:
    assert set(HANDED) <= set(Ontology.read().entities)
    assert {HANDED["guitar"], HANDED["newspaper"]} == {"handed", "text"}
    bad = tmp_path / "handed.yaml"
    bad.write_text("- {name: cat, reason: fur}\n")
    with raises("unknown-name", "fur", error=OntologyError):
        read_handed(bad)


def test_every_prefix_is_balanced_over_categories() -> None:
    kinds = {"animals": 60, "people": 20, "vehicles": 5}
    rows = [
        row(number, aligned=number % 3 > 0, second=thing("x", kind))
        for kind, count in kinds.items()
        for number in range(1000 * len(kind), 1000 * len(kind) + count)
    ]
    order = list(balanced(rows, 0))
    first = Counter(r["second"]["category"] for r in order[:12])
    assert set(first.values()) == {4}
    assert Counter(r["aligned"] for r in order[:12]) == {True: 6, False: 6}
    assert sorted(r["id"] for r in order) == sorted(r["id"] for r in rows)
    assert list(balanced(rows[::-1], 0)) == order != list(balanced(rows, 1))
    same = [row(1), row(2, url="http://x/1.jpg")]
    assert [r["id"] for r in balanced(same, 0)] == ["pair-0001"]


@pytest.fixture
def mined(tmp_path: Path) -> Path:
    """A run's folder: 12 usable pairs, one of a clock, one unreadable; red is the first thing."""
    rows = [row(n, aligned=n % 2 == 0) for n in range(12)]
    rows += [row(12, second=thing("clock")), row(13), row(14, url="http://x/0.jpg")]
    folder = tmp_path / "mined"
    (folder / "dataset" / "pairs").mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(rows), folder / "dataset" / "pairs" / "test-0.parquet")
    for number, pair in enumerate(rows[:13]):
        image = Image.new("RGB", (160, 120 + number), "blue")
        image.paste("red", (0 if pair["aligned"] else 80, 0, 80 if pair["aligned"] else 160, 140))
        path = image_path(folder / "images", url_key(pair["url"]))
        path.parent.mkdir(parents=True, exist_ok=True)
        image.save(path, "JPEG", quality=95)
    return folder


def test_writes_image_and_mirror_image_under_the_same_caption(mined: Path, tmp_path: Path) -> None:
    import datasets

    out = tmp_path / "flips"
    found = make_flips(mined, out, None, silent)
    assert found.pairs == 12
    assert {k: v for k, v in found.dropped.items() if v} == {
        "handed": 1,
        "unreadable": 1,
        "same_image": 1,
    }
    loaded = datasets.load_dataset(str(out), split="train")
    assert len(loaded) == 24 and {"image", "text"} <= set(loaded.column_names)
    by_pair: dict[str, dict[bool, Any]] = {}
    for example in loaded:
        by_pair.setdefault(example["pair"], {})[example["mirrored"]] = example
        left = example["image"].getpixel((20, 60))
        assert (left[0] > 180) == (example["left"] == "cat"), example
        assert {example["left"], example["right"]} == {"cat", "dog"}
    assert len(by_pair) == 12
    for two in by_pair.values():
        assert two[True]["text"] == two[False]["text"]
        assert two[True]["left"] == two[False]["right"]
    assert Counter(e["left"] for e in loaded) == {"cat": 12, "dog": 12}
    assert not list(tmp_path.glob(".*.partial"))


def test_set_is_reproducible_and_limited_by_count(mined: Path, tmp_path: Path) -> None:
    (tmp_path / ".a.partial" / "train").mkdir(parents=True)  # what kill -9 leaves
    for name in ("a", "b"):
        make_flips(mined, tmp_path / name, None, silent, count=5, seed=2)
    files = [
        {p.name: p.read_bytes() for p in (tmp_path / name).rglob("*") if p.is_file()}
        for name in ("a", "b")
    ]
    assert files[0] == files[1]
    lines = (tmp_path / "a" / "train" / "metadata.jsonl").read_text().splitlines()
    assert not list(tmp_path.glob(".*.partial"))
    assert len(lines) == 10 and json.loads(lines[0])["file_name"].endswith(".jpg")


class Reader:
    """Sees writing in every third image and can't tell for every fifth."""

    def identity(self) -> dict[str, str]:
        return {"kind": "reader"}

    def judge(self, questions: list[Question]) -> Iterator[tuple[Question, Verdict]]:
        for question in questions:
            assert question.task == "yes_no" and question.answers == {"1": "yes", "2": "no"}
            number = int(question.id.split("/")[0][-4:])
            label = "yes" if number % 3 == 0 else "unparsed" if number % 5 == 0 else "no"
            yield question, Verdict(label, "")


def test_judge_excludes_images_with_text(mined: Path, tmp_path: Path) -> None:
    found = make_flips(mined, tmp_path / "flips", Reader(), silent)
    assert found.dropped["text_seen"] == 4 and found.dropped["not_judged"] == 2
    assert found.pairs == 6


def test_empty_set_is_an_error_with_reasons(mined: Path, tmp_path: Path) -> None:
    class Blind(Reader):
        def judge(self, questions: list[Question]) -> Iterator[tuple[Question, Verdict]]:
            yield from ((question, Verdict("missing", "")) for question in questions)

    with raises("nothing-to-do", "handed 1", "not_judged 12", error=CorpusError):
        make_flips(mined, tmp_path / "flips", Blind(), silent)
    assert not (tmp_path / "flips").exists() and not list(tmp_path.glob(".*.partial"))


def test_missing_layout_and_nonempty_folder_are_errors(mined: Path, tmp_path: Path) -> None:
    with raises("stage-missing", "--stage layout", error=CorpusError):
        make_flips(tmp_path, tmp_path / "flips", None, silent)
    with raises("folder-not-empty", "--out", error=UsageError):
        make_flips(mined, mined, None, silent)

    def stop(stage: str, done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make_flips(mined, tmp_path / "flips", None, stop)
    assert not (tmp_path / "flips").exists() and not list(tmp_path.glob(".*.partial"))


# --- the judge that knows boxes ----------------------------------------------------------------

COCO = {
    "images": [
        {"id": 7, "file_name": "7.jpg", "coco_url": "http://c/7.jpg", "width": 200, "height": 100}
    ],
    "categories": [
        {"id": 1, "name": "cat"},
        {"id": 2, "name": "dog"},
        {"id": 3, "name": "person"},
        {"id": 4, "name": "bird"},
    ],
    "annotations": [
        {"image_id": 7, "category_id": 1, "bbox": [10, 20, 40, 60]},
        {"image_id": 7, "category_id": 1, "bbox": [180, 20, 5, 5]},
        {"image_id": 7, "category_id": 2, "bbox": [120, 20, 40, 60]},
        {"image_id": 7, "category_id": 3, "bbox": [10, 20, 42, 62]},
        {"image_id": 7, "category_id": 4, "bbox": [15, 0, 30, 15]},
        {"image_id": 7, "category_id": 2, "bbox": [0, 0, 199, 99], "iscrowd": 1},
    ],
}


@pytest.fixture
def boxes(tmp_path: Path) -> str:
    path = tmp_path / "boxes.json"
    path.write_text(json.dumps(COCO))
    return f"boxes:{path}"


def ask(spec: str, task: str, subjects: tuple[str, str], **facts: str) -> str:
    labels = ("yes", "no") if task == "gate" else ("first", "second", "neither")
    question = Question(
        case="case",
        name="name",
        probe="original",
        task=task,  # type: ignore[arg-type]
        subjects=subjects,
        labels=labels,
        prompt="",
        answers={},
        images=(Image.new("RGB", (2, 2)),),
        facts={"url": "http://other/7.jpg", **facts},
    )
    ((_, verdict),) = open_judge(spec).judge([question])
    return verdict.label


@pytest.mark.parametrize(
    ("subjects", "facts", "label"),
    [
        (("cat", "dog"), {}, "first"),
        (("dog", "cat"), {}, "second"),
        (("cat", "dog"), {"mirrored": "yes"}, "second"),
        (("cat", "dog"), {"url": "http://c/7.jpg"}, "first"),
        (("cat", "horse"), {}, "neither"),
        (("cat", "bird"), {}, "neither"),
        (("nurse", "dog"), {"first_kinds": "person"}, "first"),
        (("nurse", "woman"), {"first_kinds": "person", "second_kinds": "adult|person"}, "error"),
        (("cat", "dog"), {"url": "http://c/8.jpg"}, "missing"),
    ],
)
def test_boxes_judge_reports_the_order(
    boxes: str, subjects: tuple[str, str], facts: dict[str, str], label: str
) -> None:
    assert ask(boxes, "order", subjects, **facts) == label


@pytest.mark.parametrize(
    ("subjects", "aspect", "label"),
    [
        (("cat", "dog"), "existence", "yes"),
        (("cat", "dog"), "separation", "yes"),
        (("cat", "dog"), "topology", "yes"),
        (("cat", "horse"), "existence", "no"),
        (("cat", "person"), "separation", "no"),
        (("cat", "bird"), "topology", "no"),
    ],
)
def test_boxes_judge_passes_the_gate(
    boxes: str, subjects: tuple[str, str], aspect: str, label: str
) -> None:
    assert ask(boxes, "gate", subjects, aspect=aspect) == label


def test_boxes_judge_rejects_unusable_files(boxes: str, tmp_path: Path) -> None:
    assert ask(boxes, "yes_no", ("cat", "dog")) == "error"
    (tmp_path / "bad.json").write_text("{}")
    for spec, message in (
        ("boxes:", ("missing-option", "boxes:INSTANCES.json")),
        (f"boxes:{tmp_path / 'none.json'}", ("no-such-file", "none.json")),
        (f"boxes:{tmp_path / 'bad.json'}", ("bad-format", "bad.json", "'categories'")),
    ):
        with raises(*message):
            open_judge(spec)
