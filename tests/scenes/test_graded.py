"""Drawn images of rising difficulty."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from counterprior.scenes.graded import LEVELS, SHOWN, GradedScene
from counterprior.scenes.matching import SMALL, SearchedImage

SCENE = GradedScene(3, 0, "dog", "bus", "cow", "A left")


@pytest.mark.parametrize("shown", SHOWN)
def test_the_easiest_level_shows_what_it_says(shown: str) -> None:
    scene = replace(SCENE, shown=shown)
    sizes = SMALL if shown.endswith("above") else (0.95,)
    image = SearchedImage(scene.draw())
    a, b, other = (image.find(name, scales=sizes) for name in ("dog", "bus", "cow"))
    there = {"dog": a.score > 0.8, "bus": b.score > 0.8, "cow": other.score > 0.8}
    both = shown.endswith(("left", "above"))
    if shown != "merged":
        assert there == {
            "dog": both or "A" in shown,
            "bus": both or "B" in shown,
            "cow": "other" in shown,
        }
    if both:
        gap = a.x - b.x if shown.endswith("left") else a.y - b.y
        level = a.y - b.y if shown.endswith("left") else a.x - b.x
        assert (gap < -0.3) if shown.startswith("A") else (gap > 0.3)
        assert abs(level) < 0.1


def test_a_scene_is_drawn_alike_again_and_differs_at_every_level() -> None:
    images = [np.asarray(replace(SCENE, level=level).draw(), float) for level in range(LEVELS)]
    again = np.asarray(replace(SCENE, level=LEVELS - 1).draw(), float)
    assert (again == images[-1]).all()
    for easier, harder in pairwise(images):
        assert np.abs(easier - harder).mean() > 3


@pytest.mark.slow
def test_less_of_a_figure_is_like_the_atlas_where_it_is_harder() -> None:
    easy, harder, hardest = (
        np.mean(
            [
                SearchedImage(replace(SCENE, number=n, level=level).draw()).find("dog").score
                for n in range(4)
            ]
        )
        for level in (0, 1, LEVELS - 1)
    )
    assert easy > 0.9 and easy > harder + 0.05 and harder > hardest + 0.05 and hardest < 0.6
