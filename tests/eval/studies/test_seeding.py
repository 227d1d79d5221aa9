"""Seed images are kept where a judge affirms them, and nothing is paid for twice."""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageOps
from refusals import raises

from counterprior.agents.budget import BudgetError
from counterprior.errors import RunFailed, UsageError
from counterprior.eval.core import Case, ImageRequest, Outcome, Question, Verdict
from counterprior.eval.engine.costs import Cost
from counterprior.eval.generators.render import RenderGenerator
from counterprior.eval.studies.seeding import (
    CONTRADICTED,
    SeedResults,
    SeedScene,
    SeedSettings,
    _refusal,
    find_seeds,
)
from counterprior.images import encode_png, pixels_digest
from counterprior.scenes.scene import Scene
from counterprior.schema import Entity

NAMES = [("cat", "owl"), ("dog", "fox"), ("horse", "cow"), ("lizard", "snake"), ("bear", "goat")]


def scene(left: str, right: str) -> SeedScene:
    a, b = (Entity(name=n, kind="animal", category="", look=f"a drawn {n}") for n in (left, right))
    return SeedScene(f"A {left} on the left and a {right} on the right.", a, b, "A-A")


SCENES = [scene(*names) for names in NAMES]


def shown(found: SeedResults) -> dict[str, tuple[str, ...]]:
    """Prompt -> who stands in the kept image from left to right, by what its PNG tells."""
    scenes = {p: Scene.of(Image.open(BytesIO(data))) for p, data in found.images.items()}
    return {prompt: () if one.faults else one.left_to_right() for prompt, one in scenes.items()}


def intended(found: SeedResults) -> dict[str, tuple[str, ...]]:
    return {s.prompt: (s.left.name, s.right.name) for s in SCENES if s.prompt in found.images}


@pytest.mark.lane
def test_every_kept_image_is_right_and_every_refusal_is_counted(tmp_path: Path) -> None:
    faulty = "render:?grounding=0.4&missing=0.25&overlap=0.1&vertical=0.1&wrong=0.1"
    asked = SeedSettings(faulty, "pixels", tmp_path, tries=2)
    found = find_seeds(SCENES, asked)
    assert shown(found) == intended(found)
    tries = [sorted((tmp_path / f"try-{n}" / "images").glob("*.png")) for n in (1, 2)]
    assert found.drawn == sum(map(len, tries)) > len(found.images) > 0
    assert sum(found.refused.values()) == found.drawn - len(found.images) > 0
    assert len(tries[0]) == 5 > len(tries[1])  # a scene with an image is not drawn again
    assert find_seeds(SCENES, asked) == found
    with raises("another-run", "pixels", "--seeds-out", error=UsageError):
        find_seeds(SCENES, replace(asked, judge="pse:pixels"))


class PaidStudio:
    """Draws and judges behind one server that bills for both; half of its images are wrong."""

    def __init__(self, server: Any) -> None:
        self.server = server
        self.drawn = 0
        self.left: dict[str, str] = {}
        server.draw, server.answer = self.draw, self.answer

    def draw(self, body: dict[str, Any]) -> bytes:
        self.drawn += 1
        renderer = RenderGenerator(grounding=0.0)
        image = renderer.generate(ImageRequest(body["prompt"], self.drawn))
        assert isinstance(image, Image.Image)
        left, right = Scene.of(image).left_to_right()
        self.left |= {pixels_digest(image): left, pixels_digest(ImageOps.mirror(image)): right}
        return encode_png(image)

    def answer(self, body: dict[str, Any]) -> str:
        text, url = "", ""
        for part in body["messages"][-1]["content"]:
            text += part.get("text", "")
            url = part["image_url"]["url"] if "image_url" in part else url
        image = Image.open(BytesIO(base64.b64decode(url.partition(",")[2])))
        a_left = f"\nA: {self.left[pixels_digest(image)]} (a drawn" in text
        told = "A is to the left of B" if a_left else "B is to the left of A"
        return next(line[0] for line in text.splitlines() if line[1:].startswith(f": {told}"))

    def settings(self, out: Path, cap: float | None = None) -> SeedSettings:
        prices = out.parent / "prices.yaml"
        prices.write_text(
            "openai-image:img-1: {image: 0.04, edit: 0.06}\nopenai:m-1: {input: 1, output: 1}\n"
        )
        drawer = f"openai-image:img-1@{self.server.url}/v1?attempts=1&timeout=5"
        judge = self.server.spec("openai", "attempts=1&timeout=5")
        return SeedSettings(drawer, judge, out, tries=4, cost=Cost(1, cap, prices))


def stop_at(stage: str, count: int) -> Callable[[str, int, int], None]:
    """A progress that is killed at a point."""

    def progress(name: str, done: int, _: int) -> None:
        if (name, done) == (stage, count):
            raise KeyboardInterrupt

    return progress


@pytest.mark.slow
def test_no_image_and_no_answer_is_paid_for_twice(server: Any, tmp_path: Path) -> None:
    whole = PaidStudio(server)
    found = find_seeds(SCENES, whole.settings(tmp_path / "whole"))
    paid = server.paid
    assert found.refused["the wrong one left"] == found.drawn - len(found.images) > 0
    assert paid == 3 * found.drawn  # an image, and two answers

    killed = PaidStudio(server)
    asked = killed.settings(tmp_path / "killed")
    for stage, count in (("images", 2), ("verdicts", 3)):
        with pytest.raises(KeyboardInterrupt):
            find_seeds(SCENES, asked, stop_at(stage, count))
    with raises("over-budget", error=BudgetError):
        find_seeds(SCENES, killed.settings(tmp_path / "killed", cap=0.21))
    assert find_seeds(SCENES, asked) == found
    assert server.paid == 2 * paid
    assert find_seeds(SCENES, asked) == found and server.paid == 2 * paid


def broken(question: Question) -> Verdict:
    down = question.probe == "mirror" and "cat" in question.subjects
    return Verdict("error", "the judge is down") if down else Verdict("first_left")


def test_a_failure_is_no_refusal(tmp_path: Path) -> None:
    asked = SeedSettings("render:", f"python:{__name__}:broken_judge", tmp_path)
    with raises("all-failed", "1", "of 2", error=RunFailed):
        find_seeds(SCENES[:2], asked)
    assert not (tmp_path / "try-2").exists()


def broken_judge() -> Any:
    return broken


LABELS = st.sampled_from(["first_left", "first_right", "invalid", "unparsed", "refused"])


@given(LABELS, LABELS)
@settings(max_examples=25, deadline=None)
def test_only_an_image_that_both_answers_affirm_is_kept(seen: str, mirrored: str) -> None:
    said = {("order", "original"): Verdict(seen), ("order", "mirror"): Verdict(mirrored)}
    why = _refusal(Outcome(Case("r", "plain", 0, 0, "", ("c",)), said))
    assert (why == "") == (seen == mirrored == "first_left")
    assert (why == CONTRADICTED) == (seen == "first_left" != mirrored)
