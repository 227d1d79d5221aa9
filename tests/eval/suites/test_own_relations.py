"""Own prompts about distances, diagonals and what is between: read, drawn, judged and guided."""

from __future__ import annotations

import itertools
import json
import subprocess
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from counterprior.eval.core import INVALID, Case, ImageRequest
from counterprior.eval.generators.render import RenderGenerator
from counterprior.eval.geometry import hrs
from counterprior.eval.judges import open_judge
from counterprior.eval.questions.asking import Stated, ask_stated
from counterprior.eval.questions.truth import scene_label
from counterprior.eval.suites.relations import MOST, OwnPromptsSuite, PromptFile, own_prompts
from counterprior.scenes.scene import Figure, Scene

Cli = Callable[..., "subprocess.CompletedProcess[str]"]
STATED = {
    "a cat near a dog": ["cat near dog"],
    "A photo of a cat sitting far away from a dog": ["cat far dog"],
    "a cat to the top left of a dog": ["cat upper_left dog"],
    "A cat below and to the right of a dog.": ["cat lower_right dog"],
    "a cat to the right of and above a dog": ["cat upper_right dog"],
    "a cat inside a box": ["cat inside box"],
    "a fence surrounding a house": ["fence surrounding house"],
    "A cup between a cat and a dog, above a car.": ["cup between cat|dog", "cup above car"],
    "a cup in the middle of two cats": [],
}


def test_the_rules_read_all_relations_that_judges_measure(tmp_path: Path) -> None:
    for text, relations in STATED.items():
        file = tmp_path / "prompts.txt"
        file.write_text(f"a cat above a dog\n{text}\n")
        rows = {row.prompt: row for row in PromptFile(file).rows()}
        row = rows.get(text)
        stated = (
            [" ".join(t) for t in zip(row.subjects, row.relations, row.references, strict=True)]
            if row
            else []
        )
        assert stated == relations, text
    row = PromptFile(file).rows()[0]
    assert row.objects == ["cat", "dog"]


def test_a_last_line_without_its_end_is_a_prompt_too(tmp_path: Path) -> None:
    lines = [
        json.dumps(
            {
                "prompt": f"A {a} to the left of a {b}.",
                "by_rules": [{"first": a, "relation": "left", "second": b}],
                "by_model": None,
            }
        )
        for a, b in (("cat", "dog"), ("bird", "bus"))
    ]
    (tmp_path / "relations.jsonl").write_text("\n".join(lines))
    rows = PromptFile(tmp_path / "relations.jsonl").rows()
    assert [row.objects for row in rows] == [["cat", "dog"], ["bird", "bus"]]


def test_relations_beyond_the_most_of_a_prompt_are_said_to_be_left_out(tmp_path: Path) -> None:
    names = "cat dog owl fox bus car cup hat pen key".split()
    stated = [{"first": a, "relation": "left", "second": b} for a, b in pairwise(names)]
    file = tmp_path / "relations.jsonl"
    line = json.dumps({"prompt": "A long row.", "by_rules": stated, "by_model": None})
    file.write_text(f"{line}\n{line}\n")
    (row,) = PromptFile(file, implied=True).rows()
    assert (len(row.relations), row.implied) == (MOST, MOST - 9)
    note = own_prompts(file, implied=True)[2]
    assert "30 relations, 21 of them implied, and 15 left out" in note
    assert "left out" not in own_prompts(file, implied=False)[2]


def test_what_is_between_names_three_things(tmp_path: Path) -> None:
    file = tmp_path / "prompts.txt"
    file.write_text("A cup between a cat and a dog.\n")
    (row,) = PromptFile(file, implied=True).rows()
    assert row.objects == ["cup", "cat", "dog"] and row.implied == 0
    (case,) = OwnPromptsSuite().cases(row, 1)
    assert case.clusters == ("cat/cup/dog",)


PROMPTS = """a cat near a dog
a cat far from a dog
a cat to the top left of a dog
a dog below and to the left of a cat
a cup between a cat and a dog
a cat to the left of a dog and the dog above a cup
"""


@pytest.mark.parametrize("grounding", ["1", "0"])
def test_drawn_relations_are_measured(grounding: str, cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "prompts.txt").write_text(PROMPTS)
    drawer = f"render:?grounding={grounding}&order_bias=-9&preference_sd=0"
    right = {}
    for judge in ("scene", "pse:scene"):
        done = cli(
            *("eval", "--prompts", "prompts.txt", "--generator", drawer, "--judge", judge),
            *("--unchecked", "--out", judge.replace(":", "-"), "--json"),
            cwd=tmp_path,
        )
        assert done.returncode == 0, done.stderr
        (result,) = json.loads(done.stdout)
        (right[judge],) = (
            score["value"]
            for score in result["scores"]
            if (score["name"], score["group"]) == ("all_right", "all")
        )
    # PSE of boxes is an independent measure of what the renderer says that it drew.
    if grounding == "1":
        assert right == {"scene": 100, "pse:scene": 100}
    else:
        # The last-mentioned thing comes first: every order is wrong, and one distance by chance.
        assert right["scene"] == right["pse:scene"] <= 100 * 2 / 6


def figure(name: str, x: float, base: float) -> Figure:
    return Figure(name, x, base, 0.5)


@pytest.mark.parametrize(
    ("relation", "at", "label"),
    [
        ("upper_left", (0.2, 0.4), "holds"),
        ("lower_right", (0.2, 0.4), "opposite"),
        ("lower_left", (0.2, 0.4), INVALID),  # left, but not lower: neither diagonal
        ("upper_right", (0.2, 0.95), "opposite"),
        ("near", (0.4, 0.8), "holds"),
        ("far", (0.4, 0.8), "opposite"),
        ("far", (0.05, 0.8), "holds"),
        ("inside", (0.6, 0.8), INVALID),  # nothing is drawn inside of another
        ("in_front_of", (0.2, 0.9), "holds"),
        ("hidden_by", (0.2, 0.9), "opposite"),
    ],
)
def test_labels_of_scenes(relation: str, at: tuple[float, float], label: str) -> None:
    scene = Scene((figure("cat", *at), figure("dog", 0.6, 0.8)), 0)
    assert scene_label(scene, Stated("cat", relation, "dog")) == label


def test_between_is_the_same_from_both_ends() -> None:
    claims = [Stated("cup", "between", "cat|dog"), Stated("cup", "between", "dog|cat")]
    for place, label in ((0.5, "holds"), (0.1, "opposite"), (0.95, "opposite")):
        scene = Scene(
            (figure("cat", 0.2, 0.9), figure("cup", place, 0.9), figure("dog", 0.8, 0.9)), 0
        )
        assert {scene_label(scene, claim) for claim in claims} == {label}
    assert scene_label(Scene(scene.figures[:2], 0), claims[0]) == INVALID
    request = ImageRequest("A cup between a cat and a dog.", 3)
    assert RenderGenerator(grounding=1).scene(request).left_to_right() == ("cat", "cup", "dog")


def test_the_question_about_the_middle_exchanges_the_ends_alone() -> None:
    image, claim = Image.new("RGB", (9, 9)), Stated("cup", "between", "cat|dog")
    seen = set()
    for row, probe in itertools.product(range(12), ("original", "swap")):
        case = Case(f"r{row}", "plain", 0, 0, "", ("c",))
        (question,) = ask_stated(claim, case, probe, [image], objects=("cup", "cat", "dog"))
        a, b, c = (question.prompt.split(f"\n{letter}: ")[1].split("\n")[0] for letter in "ABC")
        assert a == "cup (cup)" and {b, c} == {"cat", "dog"}
        digit = next(d for d, label in question.answers.items() if label == "holds")
        assert f"{digit}: A is between B and C" in question.prompt
        seen.add((b, digit))
    assert len(seen) == 6
    assert ask_stated(claim, case, "mirror", [image]) == []


def test_hrs_s_rule_of_between_by_its_definition() -> None:
    """Right of one and left of the other, or above and below, by the edges of HRS's program."""
    rng = np.random.default_rng(5)
    corners = np.sort(rng.uniform(0, 100, (3, 4000, 2, 2)), axis=2)
    boxes = corners.transpose(0, 1, 2, 3).reshape(3, 4000, 4)
    expected = []
    for (ax1, ay1, ax2, ay2), (bx1, by1, bx2, by2), (cx1, cy1, cx2, cy2) in zip(
        *boxes, strict=True
    ):
        expected.append(
            (ax2 > bx2 and ax1 < cx1)
            or (ax1 < bx1 and ax2 > cx2)
            or ((ay2 > by2 or ay1 > by1) and (ay1 < cy1 or ay2 < cy2))
            or ((ay1 < by1 or ay2 < by2) and (ay2 > cy2 or ay1 > cy1))
        )
    found = hrs.between_holds(*boxes, "authors")
    assert found.tolist() == expected and 0.2 < found.mean() < 0.98
    strict = hrs.between_holds(*boxes)
    assert (strict <= found).all() and strict.mean() < found.mean()


def test_a_missing_end_is_missing() -> None:
    scene = RenderGenerator(grounding=1).generate(ImageRequest("A cup between a cat and a dog.", 1))
    case = Case("r", "plain", 0, 0, "", ("c",))
    for claim, label in (
        (Stated("cup", "between", "cat|dog"), "holds"),
        (Stated("cat", "between", "cup|dog"), "opposite"),
        (Stated("cup", "between", "cat|horse"), INVALID),
    ):
        questions = ask_stated(claim, case, "original", [scene])
        for judge in ("hrs:scene", "pse:scene", "scene"):
            ((_, verdict),) = open_judge(judge).judge(questions)
            assert verdict.label == label, (judge, claim, verdict)
    ((_, verdict),) = open_judge("visor:scene").judge(questions)
    assert verdict.label == "error" and "no rule for 'between'" in verdict.raw
