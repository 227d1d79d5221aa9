"""Prompts that a model rewrites: checked, paid once, and with them the order's effect is gone."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from refusals import raises
from wire import KEY, Fault, WireServer, user_text

from counterprior.eval.core import ImageRequest
from counterprior.eval.engine.costs import Cost
from counterprior.eval.engine.data import Rows
from counterprior.eval.engine.evaluation import RunSettings
from counterprior.eval.engine.steps import generate
from counterprior.eval.methods import apply_methods
from counterprior.eval.methods.rephrase import DrawnLayout
from counterprior.eval.selftest.trials import homogenization_trials
from counterprior.scenes.scene import Scene

SUITE = "t2i_homogenization"


def obedient(body: dict[str, Any]) -> str:
    """What a model answers that does as it is told."""
    asked = user_text(body)
    told = re.search(
        r'mention "(.+)" before .* that "(.+)" is on the left .* and "(.+)" on the right', asked
    )
    assert told is not None, asked
    first, left, right = told.groups()
    sides = {left: "left", right: "right"}
    second = right if first == left else left
    return f"A {first} on the {sides[first]} and a {second} on the {sides[second]}."


def rows(count: int) -> Rows:
    return Rows.of(next(homogenization_trials()).rows[:count])


def method(server: WireServer, options: str = "") -> str:
    return f"rephrase:{server.spec('openai')}{options}"


@pytest.mark.slow
def test_the_order_of_mention_has_no_effect_any_more(server: WireServer, tmp_path: Path) -> None:
    server.answer = obedient
    settings = RunSettings(SUITE, "trial", tmp_path / "run")
    changed = apply_methods("render:?order_bias=4", [method(server)])
    run = generate(settings, changed, rows=rows(30)).run
    prompts = {case.id: case.prompt.lower() for case in run.cases()}
    ahead, left_first = [], []
    for made in run.images().values():
        told = json.loads(made.report)["rephrased"]
        assert set(told) == {"prompt", "left", "first"}
        with Image.open(run.image_path(made)) as image:
            left, right = Scene.of(image).left_to_right()
        assert left == told["left"]  # the renderer obeys
        ahead.append(prompts[made.case].index(left) < prompts[made.case].index(right))
        left_first.append(told["left"] == told["first"])
    assert len(ahead) == 60  # of which nearly all would be ahead without the method
    assert 18 < sum(ahead) < 42 and 18 < sum(left_first) < 42


def test_nothing_is_paid_twice_and_no_key_is_written(server: WireServer, tmp_path: Path) -> None:
    server.answer = obedient
    settings = RunSettings(SUITE, "trial", tmp_path / "run")
    for _ in range(2):
        done = generate(settings, apply_methods("render:", [method(server)]), rows=rows(2))
        assert server.paid == 4
        (tmp_path / "run" / "images.jsonl").unlink()  # killed after the last call
    assert done.run.header.generator["method"].startswith("rephrase:openai:m-1@127.0.0.1")
    for path in (tmp_path / "run").rglob("*"):
        assert not path.is_file() or KEY.encode() not in path.read_bytes()


def test_answers_that_cant_be_used_are_errors_and_refusals_refused(
    server: WireServer, tmp_path: Path
) -> None:
    said = iter(["A picture.", "A picture.", *["never"] * 20])
    server.answer = lambda body: next(said)
    server.faults.extend([None, None, Fault(finish="refusal")])
    settings = RunSettings(SUITE, "trial", tmp_path / "run")
    run = generate(settings, apply_methods("render:", [method(server)]), rows=rows(1)).run
    one, other = run.images().values()
    assert one.status == "error" and "was not rewritten (invalid): use the name" in one.message
    assert other.status == "refused"


def test_the_cap_covers_rewriting(server: WireServer, tmp_path: Path) -> None:
    server.answer = obedient
    prices = tmp_path / "prices.yaml"
    prices.write_text("openai:m-1: {input: 1000, output: 1000}\n")
    settings = RunSettings(SUITE, "trial", tmp_path / "run")
    changed = apply_methods("render:", [method(server)])
    with raises("over-budget", "rephrase", "cap of 0.01 USD"):
        generate(settings, changed, Cost(max_usd=0.01, prices=prices), rows=rows(2))
    assert server.paid == 0


def test_layouts_are_drawn_fairly_and_by_the_seed() -> None:
    def drawn(seed: int, number: int) -> DrawnLayout:
        return DrawnLayout.of("cat", "dog", seed, ImageRequest("A cat and a dog.", number))

    found = Counter((drawn(0, n).mentioned[0], drawn(0, n).left) for n in range(400))
    assert len(found) == 4 and min(found.values()) > 70
    assert [drawn(0, n) for n in range(20)] == [drawn(0, n) for n in range(20)]
    assert [drawn(0, n) for n in range(20)] != [drawn(1, n) for n in range(20)]


LAYOUT = DrawnLayout(("dog", "cat"), left="dog", right="cat")


@pytest.mark.parametrize(
    ("answer", "prompt"),
    [
        ("A dog on the left, a cat on the right.", "A dog on the left, a cat on the right."),
        ("One dog to the left of one cat.", "One dog to the left of one cat."),
        ('<think>cat left?</think> "Dog left and cat right."', "Dog left and cat right."),
    ],
)
def test_a_good_answer_is_taken(answer: str, prompt: str) -> None:
    assert LAYOUT.read(answer) == prompt


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("", "one line"),
        ("A dog on the left\nand a cat on the right.", "one line"),
        ("A cat on the right and a dog on the left.", "mention 'dog' before 'cat'"),
        ("A dog on the left and a kitten on the right.", "use the name 'cat' unchanged"),
        ("A hotdog on the left and a cat on the right.", "use the name 'dog' unchanged"),
        ("A dog and a cat on the right.", "on the left"),
        ("A dog to the right of a cat.", "'dog' is on the left"),
        ("A dog at the left of the image and a cat.", "on the right"),
    ],
)
def test_reports_reason_of_bad_answer(answer: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        LAYOUT.read(answer)


def test_rows_with_a_right_layout_are_refused(
    server: WireServer, text_release: Path, tmp_path: Path
) -> None:
    changed = apply_methods("render:", [method(server)])
    settings = RunSettings("t2i_correctness", str(text_release), tmp_path / "run", limit=2)
    with raises("unsupported", "rephrase", "two entities", "'first'"):
        generate(settings, changed)
    with raises("unknown-name", "'nobody'", "rephrase:KIND:MODEL"):
        apply_methods("render:", ["rephrase:nobody"])
    with raises("bad-option", "seed", "'x'"):
        apply_methods("render:", [method(server, "&seed=x")])
