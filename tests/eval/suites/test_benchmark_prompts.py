"""Lists of prompts of other benchmarks, in their authors' formats."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from refusals import assert_refused, raises

from counterprior.errors import DataError
from counterprior.eval.engine.data import read_rows
from counterprior.eval.judges import as_judge
from counterprior.eval.questions.benchmark_files import BENCHMARKS
from counterprior.eval.suites.relations import PromptFile
from counterprior.schema import OwnPrompt

Cli = Callable[..., subprocess.CompletedProcess[str]]
HRS = """synthetic_prompt,obj1,obj2,obj3,obj4,rel1,rel2
"a dog, left of a cat",dog,cat,,,on the left of,
A dog above a cat and below a cup.,dog,cat,cup,,above,below
A dog and a cup right of a cat and on a car.,dog,cup,cat,car,on the right of,on
A dog between a cat and a cup.,dog,cat,cup,,between,
A dog and a cup in the middle of a cat and a car.,dog,cup,cat,car,in the middle of,
A dog between cats.,dog,cat,,,between,
"""
COMPBENCH = """a dog next to a cell phone
a cup on the left of a cat
a chair on the bottom of a boy

a girl on side of a bee
a book near a fire hydrant
a cow hidden by a barn
a sunset
"""
GENEVAL: list[dict[str, Any]] = [
    {"tag": "two_object", "include": [{"class": "cat"}, {"class": "dog"}], "prompt": "both"},
    {
        "tag": "position",
        "include": [
            {"class": "dog", "count": 1},
            {"class": "cup", "count": 1, "position": ["right of", 0]},
        ],
        "prompt": "a photo of a cup right of a dog",
    },
]
VISOR: list[dict[str, Any]] = [
    {
        "unique_id": 3,
        "num_objects": 2,
        "obj_1_attributes": ["cat"],
        "obj_2_attributes": ["dog"],
        "rel_type": "to the left of",
        "text": "a cat to the left of a dog",
    },
    {
        "unique_id": 8,
        "num_objects": 2,
        "obj_1_attributes": ["cat"],
        "obj_2_attributes": ["dog"],
        "rel_type": "and",
        "text": "a cat and a dog",
    },
    {"unique_id": 9, "num_objects": 1, "obj_1_attributes": ["cat"], "text": "a cat"},
]
WHATSUP: list[Any] = [
    {"image_path": "data/mug_on_table.jpeg", "caption_options": ["A mug on a table", "A mug"]},
    [724, "A photo of a bench to the left of a dog", "A photo of a bench to the right of a dog"],
]
NAMES = {"compbench": "c.txt", "geneval": "g.jsonl", "hrs": "h.csv", "whatsup": "w.json"}


@pytest.fixture
def lists(tmp_path: Path) -> Path:
    """A folder with a list in each format."""
    (tmp_path / "h.csv").write_text(HRS)
    (tmp_path / "c.txt").write_text(COMPBENCH)
    (tmp_path / "g.jsonl").write_text("".join(json.dumps(line) + "\n" for line in GENEVAL))
    (tmp_path / "v.json").write_text(json.dumps(VISOR))
    (tmp_path / "w.json").write_text(json.dumps(WHATSUP))
    return tmp_path


def stated(row: OwnPrompt) -> list[str]:
    triples = zip(row.subjects, row.relations, row.references, strict=True)
    return [" ".join(triple) for triple in triples]


RELATIONS = {
    "hrs": [
        ["dog left_of cat"],
        ["dog above cat", "dog below cup"],
        ["dog right_of cat", "cup right_of cat", "dog above car", "cup above car"],
        ["dog between cat|cup"],
        ["dog between cat|car", "cup between cat|car"],
    ],
    "compbench": [
        ["dog near cell phone"],
        ["cup left_of cat"],
        ["chair below boy"],
        ["girl near bee"],
        ["book near fire hydrant"],
        ["cow hidden_by barn"],
    ],
    "geneval": [["cup right_of dog"]],
    "whatsup": [["mug above table"], ["bench left_of dog"]],
}
SILENT = {
    "hrs": ["A dog between cats."],
    "compbench": ["a sunset"],
    "geneval": ["both"],
    "whatsup": [],
}


@pytest.mark.parametrize("name", RELATIONS)
def test_reads_the_relations_that_a_benchmarks_list_states(name: str, lists: Path) -> None:
    source = PromptFile.parse(f"{lists / NAMES[name]}?benchmark={name}")
    assert source is not None and source.silent() == SILENT[name]
    rows = source.rows()
    assert [stated(row) for row in rows] == RELATIONS[name]
    assert {row.provenance.author for row in rows} == {BENCHMARKS[name].title}
    assert read_rows(str(source), "own_prompts").rows == rows
    of_hrs = ["easy", "medium", "hard", "medium", "hard"]
    levels = of_hrs if name == "hrs" else [""] * len(rows)
    assert [row.difficulty for row in rows] == levels
    # Rows without a level have the digest that they had before there were levels.
    assert all(("difficulty" in row.model_dump()) == (name == "hrs") for row in rows)
    assert [OwnPrompt.model_validate(row.model_dump()) for row in rows] == rows


def test_visors_own_list_becomes_rows_of_its_suite(lists: Path) -> None:
    (row,) = read_rows(f"{lists / 'v.json'}?benchmark=visor", "spatial_visor").rows
    assert row.model_dump(include={"visor_id", "relation", "object_a", "object_b", "prompt"}) == {
        "visor_id": 3,
        "relation": "left_of",
        "object_a": "cat",
        "object_b": "dog",
        "prompt": "a cat to the left of a dog",
    }


def boxed(*things: tuple[int, int, list[int]], crowd: int = 0) -> dict[str, Any]:
    """COCO's instances: image, class and box of each thing, images of 100 x 100."""
    annotations = [
        {"image_id": image, "category_id": kind, "bbox": box, "iscrowd": int(kind == crowd)}
        for image, kind, box in things
    ]
    names = {1: "cat", 2: "dog", 3: "orange"}
    size = {"width": 100, "height": 100}
    return {
        "images": [{"id": n, "file_name": f"{n}.jpg", **size} for n in (1, 2, 3, 4)],
        "categories": [{"id": number, "name": name} for number, name in names.items()],
        "annotations": annotations,
    }


def test_cocos_captions_get_the_plainest_relation_of_their_boxes(tmp_path: Path) -> None:
    path, boxes = tmp_path / "captions_val.json", tmp_path / "instances_val.json"
    captions = [
        {"image_id": n, "caption": f"Caption {n}.{more}"}
        for n in (1, 2, 3, 4)
        for more in ("", "b")
    ]
    path.write_text(json.dumps({"annotations": captions}))
    things = [
        (1, 1, [0, 0, 40, 40]),  # left of the dog; the orange is apart, too, but smaller
        (1, 2, [60, 10, 40, 40]),
        (1, 3, [0, 90, 5, 5]),
        (2, 1, [0, 0, 60, 60]),  # overlap in columns and rows
        (2, 2, [40, 40, 60, 60]),
        (3, 1, [10, 0, 80, 30]),  # two cats: nobody knows which is meant
        (3, 1, [10, 30, 80, 10]),
        (3, 2, [10, 60, 80, 30]),
        (4, 3, [10, 0, 80, 30]),
        (4, 2, [10, 40, 80, 50]),
    ]
    boxes.write_text(json.dumps(boxed(*things)))
    rows = read_rows(f"{path}?benchmark=coco", "own_prompts").rows
    stories = {
        "Caption 1. A cat is to the left of a dog.": "cat left_of dog",
        "Caption 1. A dog is to the right of a cat.": "dog right_of cat",
        "Caption 4. An orange is above a dog.": "orange above dog",
        "Caption 4. A dog is below an orange.": "dog below orange",
    }
    assert [row.provenance.entry for row in rows] == ["1", "4"]
    for row in rows:
        assert isinstance(row, OwnPrompt) and stated(row) == [stories[row.prompt]]
    boxes.write_text(json.dumps(boxed(*things, crowd=1)))
    row = read_rows(f"{path}?benchmark=coco", "own_prompts").rows[0]
    assert isinstance(row, OwnPrompt) and sorted(row.objects) == ["dog", "orange"]
    path.write_text(json.dumps({"annotations": [{"image_id": 1}]}))
    with raises("missing-field", "captions_val.json:1:", "caption", error=DataError):
        PromptFile(path, benchmark="coco").rows()
    boxes.unlink()
    with raises("no-such-file", "instances_SPLIT.json", error=DataError):
        PromptFile(path, benchmark="coco").rows()


def test_the_rule_of_each_benchmark_is_a_judge() -> None:
    for name, benchmark in BENCHMARKS.items():
        if benchmark.judge:
            identity = as_judge(benchmark.judge.replace("grounded-sam:", "pixels")).identity()
            assert (identity["kind"], identity["convention"]) == (name, "authors")


@pytest.mark.parametrize(
    ("name", "before", "after", "code", "facts"),
    [
        ("hrs", "obj4", "thing4", "missing-field", ("h.csv:2:", "obj4")),
        ("hrs", "above,below", "inside,below", "bad-value", ("h.csv:3:", "rel1", "'inside'")),
        ("geneval", '"right of", 0', '"right of", 7', "out-of-range", (":2:", "position", "7")),
        ("geneval", '"include"', '"exclude"', "missing-field", ("g.jsonl:1:", "include")),
        ("whatsup", "caption_options", "captions", "missing-field", (":1:", "caption_options")),
        ("whatsup", '[724, "A', '[724, 7, "A', "missing-field", ("w.json:2:",)),
    ],
)
def test_a_fault_is_named_by_file_line_and_field(
    name: str, before: str, after: str, code: str, facts: tuple[str, ...], lists: Path
) -> None:
    path = lists / NAMES[name]
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after))
    with raises(code, *facts, error=DataError):
        PromptFile(path, benchmark=name).rows()


@pytest.mark.slow
def test_levels_of_hrs_are_scored_apart_by_its_own_rule(lists: Path, cli: Cli) -> None:
    done = cli(
        *("eval", "--prompts", lists / "h.csv", "--benchmark", "hrs", "--generator", "render:"),
        *("--judge", "hrs:pixels?rule.convention=authors", "--unchecked"),
        *("--out", lists / "run", "--json"),
    )
    assert done.returncode == 0, done.stderr
    assert "5 prompts with 10 relations (1 easy, 2 medium, 2 hard)" in done.stderr
    assert "its own rule is hrs:grounded-sam:?rule.convention=authors" in done.stderr
    scores = json.loads(done.stdout)[0]["scores"]
    groups = {score["group"] for score in scores if score["name"] == "all_right"}
    assert {"difficulty=easy", "difficulty=medium"} <= groups


def test_refuses_a_benchmark_that_cannot_be_judged(lists: Path, cli: Cli) -> None:
    maker = ("--generator", "render:", "--out", lists / "run")
    unknown = cli("eval", "--prompts", lists / "h.csv", "--benchmark", "hr", *maker)
    assert_refused(unknown, "unknown-name", "'hr'", "coco, compbench, geneval, hrs, visor, whatsup")
    without_rule = cli("eval", "--prompts", lists / "w.json", "--benchmark", "whatsup", *maker)
    assert_refused(without_rule, "missing-option", "--judge")
    without_file = cli("eval", "--suite", "spatial_uc", "--benchmark", "hrs", *maker)
    assert_refused(without_file, "missing-option", "--prompts")
