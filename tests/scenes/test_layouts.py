"""Layouts that prompts state: distances, several relations of one thing, clauses side by side."""

from __future__ import annotations

import pytest

from counterprior.eval.core import ImageRequest
from counterprior.eval.generators.render import RenderGenerator
from counterprior.scenes.language import layout, mentions


def axis_and_steps(text: str) -> tuple[str, tuple[tuple[int, int], ...]]:
    stated = layout(text, mentions(text))
    return stated.axis, stated.steps


@pytest.mark.parametrize(
    ("text", "axis", "steps"),
    [
        ("A cat near a dog.", "near", ()),
        ("A cat far from a dog.", "far", ()),
        ("A cat on the left and a dog far from home.", "horizontal", ()),
        ("A cat and a dog and a horse.", "horizontal", ()),
        ("A cat above a dog and a horse.", "horizontal", ()),
        ("A cat to the left of a dog and the dog above a horse.", "chain", ((1, 0), (0, 1))),
        ("A cat on the bottom of a dog and on the left of a horse.", "chain", ((0, -1), (1, 1))),
        (
            "A cat on the right of a dog and a horse on the top of a cow.",
            "chain",
            ((-1, 0), (0, 0), (0, 1)),
        ),
    ],
)
def test_the_stated_layout(text: str, axis: str, steps: tuple[tuple[int, int], ...]) -> None:
    assert axis_and_steps(text) == (axis, steps)


@pytest.mark.parametrize("grounding", [1.0, 0.0])
def test_stated_distances_are_drawn_as_far_as_they_are_obeyed(grounding: float) -> None:
    renderer = RenderGenerator(grounding=grounding)

    def apart(phrase: str) -> list[float]:
        scenes = [renderer.scene(ImageRequest(f"A cat {phrase} a dog.", n)) for n in range(20)]
        return [abs(a.x - b.x) for a, b in (scene.figures for scene in scenes)]

    near, far = apart("near"), apart("far from")
    if grounding:
        assert max(near) < 0.3 and min(far) > 0.7
    else:  # as often as not
        assert min(near) < 0.3 < 0.7 < max(near) and min(far) < 0.3 < 0.7 < max(far)


def test_clauses_are_drawn_as_stated() -> None:
    for seed in range(10):
        scene = RenderGenerator().scene(
            ImageRequest("A cat on the bottom of a dog and on the left of a horse.", seed)
        )
        cat, dog, horse = (
            next(f for f in scene.figures if f.entity == name) for name in ("cat", "dog", "horse")
        )
        assert cat.base > dog.base and cat.x < horse.x
