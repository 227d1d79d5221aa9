"""Places in an image by which the judge `pixels` answers."""

from __future__ import annotations

import pytest
from PIL import Image

from counterprior.scenes.matching import Match, SearchedImage
from counterprior.scenes.scene import HEIGHT, WIDTH


@pytest.mark.parametrize("x", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("y", [0.25, 0.8])
def test_a_change_is_measured_where_the_match_is(x: float, y: float) -> None:
    plain = Image.new("RGB", (WIDTH, HEIGHT), "white")
    edited = plain.copy()
    size = (round(0.125 * WIDTH), round(0.25 * HEIGHT))
    corner = (round((x - 0.0625) * WIDTH), round((y - 0.125) * HEIGHT))
    edited.paste("black", (*corner, corner[0] + size[0], corner[1] + size[1]))
    match = Match(1, x, y, 0.125, 0.25)
    assert SearchedImage(plain).change(SearchedImage(edited), match) > 0.9
    elsewhere = Match(1, 1 - x if x != 0.5 else 0.8, y, 0.125, 0.25)
    assert SearchedImage(plain).change(SearchedImage(edited), elsewhere) < 0.02
