"""What rows say of a drawn entity is what the drawing shows."""

import itertools
import re
from typing import Any

import numpy as np
import pytest
from PIL import Image

from counterprior.builders.phrases import side_word
from counterprior.scenes.drawing import figure_image
from counterprior.scenes.looks import look
from counterprior.scenes.scene import Figure
from counterprior.scenes.sprites import TONES, art, clothes, entity_names, read_json


def test_every_entity_has_a_look_and_no_word_for_a_side() -> None:
    for name in entity_names():
        assert side_word(look(name)) is None, name  # an image may be mirrored
    with pytest.raises(KeyError):
        look("unicorn")


def test_the_file_describes_what_is_drawn_and_nothing_else() -> None:
    people = {name: worn for name in entity_names() if (worn := clothes(name)) is not None}
    colors = {color for worn in people.values() for color in (worn.body, worn.trousers)}
    assert {part: set(words) for part, words in read_json("atlas/looks.json").items()} == {
        "things": set(entity_names()) - set(people),
        "heads": {art(name) for name in people},
        "props": {worn.prop for worn in people.values()},
        "colors": colors,
    }


def test_a_guard_is_described_as_drawn_and_not_as_the_bank_dresses_one() -> None:
    assert look("male security guard") == (
        "man in a tall dark gray bearskin hat, red top, black trousers, holding a teal flashlight"
    )


def words(text: str) -> set[str]:
    return set(re.findall(r"[a-z]+", text))


def test_entities_of_one_scene_look_different() -> None:
    # Rows pair any two of a kind, so every pair must differ: by four words, some on each side.
    for a, b in itertools.combinations(entity_names(), 2):
        ours, theirs = words(look(a)), words(look(b))
        assert len(ours ^ theirs) >= 4, (look(a), look(b))
        assert ours - theirs and theirs - ours, (look(a), look(b))


HUES = {
    # word: hues in degrees, least saturation, values; white, gray and black by value alone
    "red": ((-22, 20), 0.5, (0.4, 1.01)),
    "orange": ((8, 45), 0.3, (0.6, 1.01)),
    "peach": ((12, 40), 0.15, (0.8, 1.01)),
    "brown": ((-10, 45), 0.2, (0.2, 0.82)),
    "cream": ((15, 65), 0.03, (0.85, 1.01)),
    "yellow": ((35, 75), 0.4, (0.55, 1.01)),
    "golden": ((30, 60), 0.4, (0.6, 1.01)),
    "gold": ((30, 60), 0.4, (0.6, 1.01)),
    "green": ((60, 175), 0.15, (0.2, 1.01)),
    "teal": ((165, 200), 0.2, (0.25, 1.01)),
    "blue": ((185, 265), 0.1, (0.2, 1.01)),
    "purple": ((235, 310), 0.3, (0.3, 1.01)),
    "pink": ((290, 375), 0.15, (0.6, 1.01)),
}
GRAYS = {"black": (0, 0.4), "gray": (0.2, 0.92), "silver": (0.55, 0.95), "white": (0.86, 1.01)}


def share(figure: Any, color: str) -> float:
    """Share of a figure's pixels, HSV in [0, 1], that one may call by a color."""
    hue, saturation, value = figure[:, 0] * 360, figure[:, 1], figure[:, 2]
    if color in GRAYS:
        low, high = GRAYS[color]
        # Dark pixels look gray or black even where they are saturated.
        called = (value >= low) & (value < high) & ((saturation < 0.35) | (value < 0.4))
    else:
        (first, last), least, (low, high) = HUES[color]
        near = (hue - first) % 360 <= last - first
        called = near & (saturation >= least) & (value >= low) & (value < high)
    return float(called.mean())


def drawn_pixels(entity: str, tone: str = "") -> Any:
    image = figure_image(Figure(entity, 0.5, 0.9, 1.0, tone=tone))
    opaque = np.asarray(image.getchannel("A")) > 200
    return np.asarray(image.convert("RGB").convert("HSV"), dtype=float)[opaque] / 255


def unseen_colors(entity: str, text: str, tone: str = "", least: float = 0.003) -> list[str]:
    """Colors that a text names, and that less than this share of the figure shows."""
    figure = drawn_pixels(entity, tone)
    named = [color for color in (*HUES, *GRAYS) if color in words(text)]
    return [color for color in named if share(figure, color) < least]


def test_every_color_that_a_look_names_is_in_the_drawing() -> None:
    unseen = {entity: unseen_colors(entity, look(entity)) for entity in entity_names()}
    assert {entity: colors for entity, colors in unseen.items() if colors} == {}


@pytest.mark.parametrize("part", [0, *(pytest.param(n, marks=pytest.mark.lane) for n in (1, 2, 3))])
@pytest.mark.parametrize("tone", TONES)
def test_a_person_is_described_alike_and_truly_in_every_tone(tone: str, part: int) -> None:
    """A quarter of the people at a time, another one in each tone: all of them in some tone."""
    people = [name for name in entity_names() if clothes(name) is not None]
    people = people[(part + list(TONES).index(tone)) % 4 :: 4]
    # The red book in a librarian's hand is 0.297 % without the red in the shade of yellow skin.
    unseen = {entity: unseen_colors(entity, look(entity), tone, 0.0029) for entity in people}
    assert {entity: colors for entity, colors in unseen.items() if colors} == {}


def test_a_color_that_is_not_drawn_is_noticed() -> None:
    assert unseen_colors("cup", "green mug with one handle") == ["green"]
    assert unseen_colors("owl", "purple owl with teal wings") == ["teal", "purple"]


def test_clothes_are_named_by_their_color() -> None:
    for color, name in read_json("atlas/looks.json")["colors"].items():
        patch = np.asarray(Image.new("RGB", (1, 1), color).convert("HSV"), dtype=float)[0] / 255
        assert share(patch, re.split(r"[ -]", name)[-1]) == 1, (color, name)
