"""Reads from captions which of two things comes first, by the miner's extraction."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from ...eval.core import Caption
from ..captions.extract import CaptionMention, Extractor, spatial_words
from ..captions.ontology import CaptionEntity, Ontology
from ..captions.parser import Parser, load_parser
from ..captions.text import normalize, readable

ReadingLabel = Literal[
    "left_first",
    "right_first",
    "one_named",
    "none_named",
    "unparsed",
    "refused",
    "error",
    "missing",
]
"""The two sides are those of the image as it was shown. `one_named`, `none_named`: the caption
doesn't name both things; `unparsed`: it is empty, or the parser failed; `refused`, `error`: the
captioner; `missing`: no caption, as the image could not be read."""
SIDED: dict[str, float] = {"left_first": 1.0, "right_first": 0.0}
"""Labels that count -> their value."""
SIDES = frozenset(("left", "right"))


@dataclass(frozen=True)
class Reading:
    """Order in which a caption names two things."""

    label: ReadingLabel
    """Side that it names first, or the reason that there is none."""
    first: str = ""
    """The thing that it names first, or alone."""
    sides: bool = False
    """Whether it says "left" or "right"."""
    alone: float = math.nan
    """1 if it names only the left thing, 0 if only the right one; NaN otherwise."""


@dataclass(frozen=True)
class ToRead:
    """A caption and the two things that its image shows."""

    caption: Caption | None
    """None for an unreadable image."""
    left: CaptionEntity
    """Thing on the left of the image as shown."""
    right: CaptionEntity
    """Thing on the right of the image as shown."""


def read(captions: Sequence[ToRead]) -> list[Reading]:
    """Reads every caption, in order. Raises ModelMissing if spaCy is not installed."""
    parser, extractor = _tools()
    written = [item for item in captions if _failure(item.caption) is None]
    texts = [normalize(item.caption.text) for item in written if item.caption]
    parsed = zip(written, texts, _parse(parser, texts), strict=True)
    readings = []
    for item in captions:
        reading = _failure(item.caption)
        if reading is None:
            _, text, doc = next(parsed)
            reading = Reading("unparsed")
            if doc is not None:
                reading = _reading(extractor.mentions(doc, text), item.left, item.right, text)
        readings.append(reading)
    return readings


def _failure(caption: Caption | None) -> Reading | None:
    if caption is None:
        return Reading("missing")
    if caption.status != "ok":
        return Reading(caption.status)
    return None if caption.text.strip() else Reading("unparsed")


def _reading(
    mentions: Iterable[CaptionMention], left: CaptionEntity, right: CaptionEntity, text: str
) -> Reading:
    order: list[CaptionEntity] = []
    for mention in mentions:
        named = [t for t, o in ((left, right), (right, left)) if means_only(mention.name, t, o)]
        order += [thing for thing in named if thing not in order]
    sides = not SIDES.isdisjoint(spatial_words(text))
    if not order:
        return Reading("none_named", sides=sides)
    if len(order) == 1:
        return Reading("one_named", order[0].name, sides, alone=float(order[0] == left))
    return Reading("left_first" if order[0] == left else "right_first", order[0].name, sides)


def means_only(name: str, thing: CaptionEntity, other: CaptionEntity) -> bool:
    """Whether an entity's name, as a caption has it, means one thing and not the other.

    It may be the thing's name, that of a kind of it ("kitten" for a cat) or of a broader kind
    ("animal"), unless that fits the other thing as well.
    """
    return _fits(name, thing) and not _fits(name, other)


def _fits(name: str, thing: CaptionEntity) -> bool:
    named = Ontology.read().entities[name]
    return name == thing.name or thing.name in named.kinds or name in thing.kinds


@cache
def _tools() -> tuple[Parser, Extractor]:
    """Loads parser and extractor, which takes seconds, once for all captions."""
    return load_parser(), Extractor(Ontology.read())


def _parse(parser: Parser, texts: Sequence[str]) -> list[Any]:
    """Parses every text into a document; None for texts that the parser fails on."""
    try:
        return list(parser.nlp.pipe(map(readable, texts)))
    except Exception:  # third-party code: one caption must not end a run
        return [_parse_alone(parser, text) for text in texts]


def _parse_alone(parser: Parser, text: str) -> Any:
    try:
        return parser.nlp(readable(text))
    except Exception:
        return None
