"""Training data of an organism: drawn scenes, and captions whose order bias is set."""

from __future__ import annotations

import itertools
import math
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from ...errors import UsageError
from ...parsing import RowError, parse, read_rows
from ...scenes import scene as canvas
from ...scenes.biases import preference
from ...scenes.drawing import draw_scene, placed_image
from ...scenes.scene import Figure, Scene
from ..geometry.boxes import Box
from ..methods.grounding import PlacedThing

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
HELD_OUT = 12
"""Pairs that no training scene shows."""
DRAWINGS = 0
"""Seed of drawings and held-out pairs."""
PLACES = (0.27, 0.73)
"""Centers of two figures, as `render:` places them."""
GROUND, AIR = 0.93, 0.65
"""Where figures end that stand, and those that float: in [0, 1] of the height from the top. The
floor begins between them. A greater distance would be a pair one above the other to a judge."""
ROUGH = (0.1, 0.25)
"""How far a box may be from its figure, each way, in shares of width and height: the boxes that a
model is asked for later are not those of its drawings."""

UNNAMED = "Two animals."
"""Caption that names neither figure, as the neutral prompts of `t2i_homogenization`."""

LANGUAGES = ("en", "ar", "he")
"""Languages of captions, BCP 47."""
BANK = "counterprior.builders.languages"
"""The module of the bank's languages; loaded by name, as `eval` imports nothing from `builders`."""

Fraction = Annotated[float, Field(ge=0, le=1)]


@dataclass(frozen=True)
class Wording:
    """Captions of a language, stored in reading order."""

    phrases: Mapping[str, str]
    """Entity -> one of it, e.g. `one cow`."""
    pair: str
    """The sentence that names `{first}` and `{second}`, without a spatial word."""
    left: str
    """The sentence that puts the first to the left of the second."""
    right: str
    """The sentence that puts the first to the right of the second."""
    unnamed: str
    """The sentence on two animals that names neither."""

    def single(self, name: str) -> str:
        """Caption of one figure."""
        return _capitalized(f"{self.phrases[name]}.")

    def sentence(self, pattern: str, first: str, second: str) -> str:
        """One of the sentences about two entities."""
        return _capitalized(pattern.format(first=self.phrases[first], second=self.phrases[second]))

    def captions(self, a: str, b: str) -> tuple[str, str]:
        """The neutral captions of two entities in both orders of mention."""
        return self.sentence(self.pair, a, b), self.sentence(self.pair, b, a)

    def words(self) -> list[str]:
        """Words of every caption, lower case, sorted; none of the prefixes."""
        gaps = dict.fromkeys(("first", "second"), " ")
        fixed = [
            _without_prefixes(text).format(**gaps) for text in (self.pair, self.left, self.right)
        ]
        phrases = [*self.phrases.values(), *fixed, self.unnamed.lower()]
        return sorted({word for text in phrases for word in text.replace(".", " ").split()})

    def unknown(self, text: str) -> list[str]:
        """Words of a text that no caption has, lower case, in its order."""
        known = {*self.words()}
        known |= {prefix + word for prefix in self.prefixes() for word in known}
        return [word for word in re.findall(r"\w+", text.lower()) if word not in known]

    def prefixes(self) -> list[str]:
        """What the sentences write in front of a name without a space, sorted: Arabic and Hebrew
        words for `and` and `to`, which a tokenizer would merge with the name."""
        return sorted(
            {p for text in (self.pair, self.left, self.right) for p in _PREFIX.findall(text)}
        )


_PREFIX = re.compile(r"(\w+)\{")


def _without_prefixes(text: str) -> str:
    return re.sub(_PREFIX, "{", text)


def _capitalized(text: str) -> str:
    return text[0].upper() + text[1:]


ENGLISH = Wording(
    {name: f"one {name}" for name in ENTITIES},
    "{first} and {second}.",
    "{first} to the left of {second}.",
    "{first} to the right of {second}.",
    UNNAMED,
)


@cache
def wording(language: str) -> Wording:
    """Captions in one of `LANGUAGES`. Raises UsageError for another language."""
    if language == "en":
        return ENGLISH
    if language not in LANGUAGES:
        raise UsageError(
            f"--language {language!r} is unknown",
            f"choose from {', '.join(LANGUAGES)}",
            code="unknown-name",
        )
    bank = import_module(BANK).shipped_language(language)
    return Wording(
        {name: bank.one(name) for name in ENTITIES},
        bank.grammar.pair,
        bank.grammar.left,
        bank.grammar.right,
        bank.grammar.two["animals"],
    )


class PairBias(BaseModel):
    """Order bias of the captions of one pair of entities, in either order on the page."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    a: str
    b: str
    order_bias: Fraction
    """Share of the pair's neutral captions that name the left one first."""


class CaptionShares(BaseModel):
    """The causes that an organism is trained under: what scenes show, and what captions say."""

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
    pair_bias: tuple[PairBias, ...] = ()
    """Pairs whose order bias is not that of the others, names sorted."""
    floats: tuple[str, ...] = ()
    """Entities that hang in the air in every scene, sorted."""
    language: str = "en"
    """Language of the captions, one of `LANGUAGES`."""

    def to_json(self) -> dict[str, Any]:
        """Causes by name; a list, and another language than English, only where one is set."""
        causes = self.model_dump(mode="json")
        usual = {"pair_bias": [], "floats": [], "language": "en"}
        return {n: value for n, value in causes.items() if n not in usual or value != usual[n]}


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


def read_pair_bias(path: Path) -> tuple[PairBias, ...]:
    """Order biases of single pairs, from a file with the fields `a`, `b` and `order_bias`.

    Raises RowError for an unknown entity, a pair of one entity, one that is held out or there
    twice, and a share outside [0, 1].
    """
    held_out = held_out_pairs(ENTITIES, HELD_OUT, DRAWINGS)
    biases: dict[tuple[str, str], PairBias] = {}
    for number, row in read_rows(path):
        bias = parse(PairBias, row, path, number)
        where = f"{path}:{number}"
        for field in ("a", "b"):
            if (name := getattr(bias, field)) not in ENTITIES:
                raise RowError(
                    f"{where}: {field}: {name!r} is unknown: choose from {', '.join(ENTITIES)}",
                    code="unknown-name",
                )
        a, b = sorted((bias.a, bias.b))
        if a == b:
            raise RowError(f"{where}: b: {b!r} is also a: name two entities", code="bad-value")
        if (a, b) in held_out:
            raise RowError(
                f"{where}: b: {a} and {b} are held out: no caption in training names both",
                code="bad-value",
            )
        if (a, b) in biases:
            raise RowError(f"{where}: b: {a} and {b} are there twice", code="duplicate-id")
        biases[a, b] = PairBias(a=a, b=b, order_bias=bias.order_bias)
    if not biases:
        raise RowError(f"{path}: no row: write one a pair", code="nothing-to-do")
    return tuple(biases[pair] for pair in sorted(biases))


def floating(names: Sequence[str]) -> tuple[str, ...]:
    """Entities that are to hang in the air, sorted. Raises UsageError for an unknown one."""
    for name in names:
        if name not in ENTITIES:
            raise UsageError(
                f"--floats {name!r} is unknown",
                f"choose from {', '.join(ENTITIES)}",
                code="unknown-name",
            )
    return tuple(sorted({*names}))


class Examples:
    """Draws examples; each depends on the seed and its number alone."""

    def __init__(
        self,
        entities: tuple[str, ...],
        held_out: tuple[tuple[str, str], ...],
        captioning: CaptionShares,
        variants: int,
        seed: int,
        backgrounds: int = 1,
    ) -> None:
        self._entities = entities
        self._pairs = [
            pair for pair in itertools.combinations(sorted(entities), 2) if pair not in held_out
        ]
        self._captioning = captioning
        self._wording = wording(captioning.language)
        self._pair_bias = {(bias.a, bias.b): bias.order_bias for bias in captioning.pair_bias}
        self.variants = variants
        """Drawings of each scene."""
        self._seed, self._backgrounds = seed, backgrounds

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
        return Example(figures, rng.randrange(self.variants), caption)

    def image(self, figures: tuple[str, ...], variant: int) -> NDArray[Any]:
        """One drawing, bytes of shape (HEIGHT, WIDTH, 3)."""
        return draw(figures, variant, self._backgrounds, DRAWINGS, self._captioning.floats)

    def things(self, example: Example) -> list[PlacedThing]:
        """Names and rough boxes of an example's figures; none where the caption is empty."""
        floats = self._captioning.floats
        boxes = rough_boxes(example.figures, example.variant, DRAWINGS, floats)
        return boxes if example.caption else []

    def _figures(self, rng: random.Random) -> tuple[str, ...]:
        if rng.random() < self._captioning.single:
            return (rng.choice(self._entities),)
        a, b = rng.choice(self._pairs)
        sd = self._captioning.preference_sd
        pull = preference(a, sd) - preference(b, sd) if sd else 0.0
        return (a, b) if rng.random() < 1 / (1 + math.exp(-pull)) else (b, a)

    def _caption(self, figures: tuple[str, ...], rng: random.Random) -> str:
        wording = self._wording
        if len(figures) == 1:
            return wording.single(figures[0])
        left, right = figures
        if rng.random() < self._captioning.unnamed:
            return wording.unnamed
        if rng.random() < self._captioning.explicit:
            if rng.random() < 0.5:
                return wording.sentence(wording.left, left, right)
            return wording.sentence(wording.right, right, left)
        a, b = sorted(figures)
        bias = self._pair_bias.get((a, b), self._captioning.order_bias)
        left_first, right_first = wording.captions(left, right)
        return left_first if rng.random() < bias else right_first


def captions_of(a: str, b: str) -> tuple[str, str]:
    """The neutral captions of two entities in both orders of mention, in English."""
    return ENGLISH.captions(a, b)


def draw(
    figures: tuple[str, ...],
    variant: int,
    backgrounds: int,
    seed: int,
    floats: Sequence[str] = (),
) -> NDArray[Any]:
    """One scene, bytes of shape (HEIGHT, WIDTH, 3); places and sizes vary a little.

    floats: entities that hang in the air, without a shadow.
    """
    import numpy as np
    from PIL.Image import Resampling

    rng = random.Random(f"{seed}/{'/'.join(figures)}/{variant}")
    placed = _placed(figures, rng)
    standing = tuple(figure for figure in placed if figure.entity not in floats)
    image = draw_scene(Scene(standing, background=rng.randrange(backgrounds)))
    for figure in placed:
        if figure.entity in floats:
            sprite, box = placed_image(_lifted(figure))
            image.paste(sprite, box[:2], sprite)
    return np.asarray(image.resize((WIDTH, HEIGHT), Resampling.BOX))


@cache
def rough_boxes(
    figures: tuple[str, ...], variant: int, seed: int, floats: Sequence[str] = ()
) -> list[PlacedThing]:
    """Figures of the scene that `draw` draws with the same arguments, and boxes near them."""
    placed = _placed(figures, random.Random(f"{seed}/{'/'.join(figures)}/{variant}"))
    rng = random.Random(f"{seed}/boxes/{'/'.join(figures)}/{variant}")
    things = []
    for figure in placed:
        if figure.entity in floats:
            figure = _lifted(figure)
        left, top, right, bottom = placed_image(figure)[1]
        x, y = (rng.uniform(-most, most) for most in ROUGH)
        corners = (left / canvas.WIDTH + x, top / canvas.HEIGHT + y)
        ends = (right / canvas.WIDTH + x, bottom / canvas.HEIGHT + y)
        box = Box(*(round(min(max(share, 0.0), 1.0), 4) for share in (*corners, *ends)))
        things.append(PlacedThing(figure.entity, box))
    return things


def _lifted(figure: Figure) -> Figure:
    return replace(figure, base=figure.base - GROUND + AIR)


def _placed(figures: tuple[str, ...], rng: random.Random) -> list[Figure]:
    """Figures from left to right, standing; places and sizes vary a little."""
    places = PLACES if len(figures) == 2 else (0.5,)
    return [
        Figure(
            name,
            x + rng.uniform(-0.015, 0.015),
            GROUND + rng.uniform(-0.01, 0.01),
            rng.uniform(0.93, 1.0),
        )
        for name, x in zip(figures, places, strict=True)
    ]
