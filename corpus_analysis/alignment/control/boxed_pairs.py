"""Pairs of people's captions, matched to people's boxes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from ....eval.geometry.boxes import Box, intersection, is_apart, is_beside
from ....eval.geometry.instances import BoxedImage
from ...captions.extract import CaptionMention, CaptionPair
from ...captions.ontology import CaptionEntity, Ontology

How = Literal["single", "group", "touching", "largest"]
"""`single`: the image has one box of the class; `group`: the words are plural and mean all of them;
`touching`: of several, the only one that touches the other thing, as "on" or "with" says;
`largest`: of several, the largest one, which is a guess."""

Unboxed = Literal["no_class", "no_box", "one_class", "crowd"]
"""Why a pair has no boxes: no class of the file means one of its things; this image has no box of
it; both are of one class; one box holds many."""
UNBOXED: tuple[Unboxed, ...] = ("no_class", "no_box", "one_class", "crowd")

TOUCHING = frozenset("on with in inside atop over under beneath underneath against".split())
"""Prepositions of things that mostly touch, or overlap as seen."""
NUMBERS = {"two": 2, "both": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8}
PLURALS = frozenset(
    "men women people children mice geese sheep knives police skis scissors".split()
)
"""Plurals without an s, or that may be plural."""


@dataclass(frozen=True)
class MatchedBox:
    """The box of one half of a pair."""

    box: Box
    """Shares of width and height; of a group, around all of it."""
    largest: Box
    """The largest box of the class, whatever the words say."""
    instances: int
    """Boxes of the class in the image."""
    how: How
    """How the box was chosen."""


@dataclass(frozen=True)
class ImagePair:
    """A pair of one caption of an image, which may have no boxes."""

    image: str
    """Id of the image; of one without boxes, its file name."""
    caption: int
    """Number of the caption in its file."""
    pair: CaptionPair
    """The two things and how the caption links them."""

    @property
    def id(self) -> str:
        """Unique in a run."""
        return f"{self.image}-{self.caption}-{self.pair.first.start}-{self.pair.second.start}"


@dataclass(frozen=True)
class BoxedPair(ImagePair):
    """A pair with both boxes."""

    words: tuple[str, ...]
    """The caption's layout words."""
    first: MatchedBox
    second: MatchedBox

    @property
    def entities(self) -> str:
        """The names of both, independent of mention order."""
        return " / ".join(sorted((self.pair.first.name, self.pair.second.name)))

    @property
    def guessed(self) -> bool:
        """Whether a box is merely the largest of several."""
        return "largest" in (self.first.how, self.second.how)

    @property
    def single(self) -> bool:
        """Whether the image has one box of each class."""
        return self.first.how == self.second.how == "single"

    @property
    def disjoint(self) -> bool:
        """Whether no column of pixels is in both boxes."""
        a, b = self.first.box, self.second.box
        return a.x2 <= b.x1 or b.x2 <= a.x1

    @property
    def beside(self) -> bool:
        """Whether the boxes are apart and side by side, as the layout stage asks."""
        return is_beside(self.first.box, self.second.box) and is_apart(
            self.first.box, self.second.box
        )


def side(first: Box, second: Box) -> float:
    """1 if the center of the first is left of the second's, 0 if right, 0.5 if level."""
    across = first.center[0] - second.center[0]
    return 0.5 if across == 0 else float(across < 0)


def match(
    pair: CaptionPair, image: BoxedImage, classes: Collection[str]
) -> tuple[MatchedBox, MatchedBox] | Unboxed:
    """Returns the boxes that a pair's words mean, or the reason that it has none.

    classes: all of the file.
    """
    matched: list[str] = []
    for mention in (pair.first, pair.second):
        mentioned = _classes(mention, classes)
        if not mentioned:
            return "no_class"
        if mentioned & image.crowds:
            return "crowd"
        in_image = mentioned & set(image.boxes)
        if not in_image:
            return "no_box"
        matched.append(min(in_image))
        if len(in_image) > 1:
            return "no_class"  # "animal", where the image has two kinds of them
    if matched[0] == matched[1]:
        return "one_class"
    boxes = [image.boxes[name] for name in matched]
    near = pair.pattern == "preposition" and pair.relation.split()[0] in TOUCHING
    return (
        _choose(pair.first, boxes[0], boxes[1] if near else ()),
        _choose(pair.second, boxes[1], boxes[0] if near else ()),
    )


def _classes(mention: CaptionMention, classes: Collection[str]) -> set[str]:
    """Returns the classes that a mention means: its own, else broader ones, else narrower ones."""
    ontology = Ontology.read()
    thing = ontology.entities[mention.name]
    entities = {name: ontology.surface.get(name.lower()) for name in classes}
    same = {name for name, entity in entities.items() if entity and entity.name == thing.name}
    broader = {name for name, entity in entities.items() if entity and entity.name in thing.kinds}
    narrower = {name for name, entity in entities.items() if entity and _is_kind(entity, thing)}
    return same or broader or narrower


def _is_kind(entity: CaptionEntity, thing: CaptionEntity) -> bool:
    return thing.name in entity.kinds


def _choose(
    mention: CaptionMention, boxes: Sequence[Box], other_boxes: Sequence[Box]
) -> MatchedBox:
    # Rounded, so that boxes of one size stay equal wherever they are: the left one counts.
    largest = max(boxes, key=lambda box: (round(box.area, 9), -box.x1))
    if len(boxes) == 1:
        return MatchedBox(largest, largest, 1, "single")
    if _is_plural(mention):
        if _number(mention) in (None, len(boxes)):
            return MatchedBox(_around(boxes), largest, len(boxes), "group")
    else:
        in_contact = [
            box for box in boxes if any(intersection(box, neighbor) for neighbor in other_boxes)
        ]
        if len(in_contact) == 1:
            return MatchedBox(in_contact[0], largest, len(boxes), "touching")
    return MatchedBox(largest, largest, len(boxes), "largest")


def _is_plural(mention: CaptionMention) -> bool:
    head = mention.head.lower()
    if head in PLURALS:
        return True
    return head != mention.name.split(" ")[-1] and head.endswith("s") and not head.endswith("ss")


def _number(mention: CaptionMention) -> int | None:
    """Number that a plural mention states; None if it states none."""
    words = mention.quantifier.lower().split()
    if "couple" in words or "pair" in words:
        return 2
    return next((NUMBERS[word] for word in words if word in NUMBERS), None)


def _around(boxes: Sequence[Box]) -> Box:
    x1, y1, x2, y2 = zip(*boxes, strict=True)
    return Box(min(x1), min(y1), max(x2), max(y2))
