"""Training data of an organism: drawn scenes, and captions whose order bias is set."""

from __future__ import annotations

import itertools
import math
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from ...scenes.biases import preference
from ...scenes.drawing import draw_scene
from ...scenes.scene import Figure, Scene

if TYPE_CHECKING:
    from numpy.typing import NDArray

ENTITIES = (
    "chicken",
    "cow",
    "dog",
    "eagle",
    "fox",
    "frog",
    "guinea pig",
    "hamster",
    "hedgehog",
    "parrot",
    "penguin",
    "sheep",
)
"""Animals that the judge `pixels` finds in scenes shrunk to 40 x 32 pixels."""
WIDTH, HEIGHT = 40, 32
"""Size of an organism's image, pixels: multiples of 8, as pipelines want them, about 4 to 3."""
PLACES = (0.27, 0.73)
"""Centers of two figures, as `render:` places them."""

UNNAMED = "Two animals."
"""Caption that names neither figure, as the neutral prompts of `t2i_homogenization`."""

Fraction = Annotated[float, Field(ge=0, le=1)]


class CaptionShares(BaseModel):
    """What the captions say about the scenes: the causes that an organism is trained under."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)

    order_bias: Fraction = 0.5
    """Share of neutral captions of two figures that name the left one first."""
    preference_sd: Annotated[float, Field(ge=0, le=10)] = 0
    """Standard deviation of each entity's own bias of standing left, in logits."""
    single: Fraction = 0.1
    """Share of scenes with one figure."""
    explicit: Fraction = 0.1
    """Share of captions of two figures that say who stands left or right, truly."""
    unnamed: Fraction = 0.05
    """Share of captions of two figures that name neither: `Two animals.`"""
    dropout: Fraction = 0.1
    """Share of captions that are empty, which guidance needs."""
    noise: Fraction = 0
    """Share of captions that belong to another scene."""


@dataclass(frozen=True)
class Example:
    """One scene and the caption that it is trained with."""

    figures: tuple[str, ...]
    """Entities from left to right."""
    variant: int
    """Number of the drawing of these figures."""
    caption: str
    """Empty if dropped."""


def held_out_pairs(entities: tuple[str, ...], count: int, seed: int) -> tuple[tuple[str, str], ...]:
    """Pairs that no training scene shows, sorted; no entity is in two more than another."""
    rng = random.Random(f"{seed}/held out")
    pairs = list(itertools.combinations(sorted(entities), 2))
    rng.shuffle(pairs)
    uses = dict.fromkeys(entities, 0)
    chosen: list[tuple[str, str]] = []
    while len(chosen) < count:
        pair = min((p for p in pairs if p not in chosen), key=lambda p: uses[p[0]] + uses[p[1]])
        chosen.append(pair)
        for name in pair:
            uses[name] += 1
    return tuple(sorted(chosen))


class Examples:
    """Draws examples; each depends on the seed and its number alone."""

    def __init__(
        self,
        entities: tuple[str, ...],
        held_out: tuple[tuple[str, str], ...],
        captioning: CaptionShares,
        variants: int,
        seed: int,
    ) -> None:
        self._entities = entities
        self._pairs = [
            pair for pair in itertools.combinations(sorted(entities), 2) if pair not in held_out
        ]
        self._captioning = captioning
        self._variants = variants
        self._seed = seed

    def scenes(self) -> list[tuple[str, ...]]:
        """Figures of every scene that may be drawn, from left to right."""
        ordered = [(a, b) for pair in self._pairs for a, b in (pair, pair[::-1])]
        return [*ordered, *((name,) for name in self._entities)]

    def __getitem__(self, number: int) -> Example:
        rng = random.Random(f"{self._seed}/example {number}")
        figures = self._figures(rng)
        captioned = self._figures(rng) if rng.random() < self._captioning.noise else figures
        caption = self._caption(captioned, rng)
        if rng.random() < self._captioning.dropout:
            caption = ""
        return Example(figures, rng.randrange(self._variants), caption)

    def _figures(self, rng: random.Random) -> tuple[str, ...]:
        if rng.random() < self._captioning.single:
            return (rng.choice(self._entities),)
        a, b = rng.choice(self._pairs)
        sd = self._captioning.preference_sd
        pull = preference(a, sd) - preference(b, sd) if sd else 0.0
        return (a, b) if rng.random() < 1 / (1 + math.exp(-pull)) else (b, a)

    def _caption(self, figures: tuple[str, ...], rng: random.Random) -> str:
        if len(figures) == 1:
            return f"One {figures[0]}."
        left, right = figures
        if rng.random() < self._captioning.unnamed:
            return UNNAMED
        if rng.random() < self._captioning.explicit:
            if rng.random() < 0.5:
                return f"One {left} to the left of one {right}."
            return f"One {right} to the right of one {left}."
        left_first, right_first = captions_of(left, right)
        return left_first if rng.random() < self._captioning.order_bias else right_first


def captions_of(a: str, b: str) -> tuple[str, str]:
    """The neutral captions of two entities in both orders of mention."""
    return f"One {a} and one {b}.", f"One {b} and one {a}."


def words(entities: tuple[str, ...]) -> list[str]:
    """Words of every caption, lower case, sorted."""
    phrases = [*entities, "one and to the left right of", UNNAMED.lower()[:-1]]
    return sorted({word for phrase in phrases for word in phrase.split()})


def draw(figures: tuple[str, ...], variant: int, backgrounds: int, seed: int) -> NDArray[Any]:
    """One scene, bytes of shape (HEIGHT, WIDTH, 3); places and sizes vary a little."""
    import numpy as np
    from PIL.Image import Resampling

    rng = random.Random(f"{seed}/{'/'.join(figures)}/{variant}")
    places = PLACES if len(figures) == 2 else (0.5,)
    scene = Scene(
        tuple(
            Figure(
                name,
                x + rng.uniform(-0.015, 0.015),
                0.93 + rng.uniform(-0.01, 0.01),
                rng.uniform(0.93, 1.0),
            )
            for name, x in zip(figures, places, strict=True)
        ),
        background=rng.randrange(backgrounds),
    )
    return np.asarray(draw_scene(scene).resize((WIDTH, HEIGHT), Resampling.BOX))
