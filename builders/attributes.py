"""The bank of attribute pairs: a concept with a rare and a common attribute (CF-World 5.2)."""

from __future__ import annotations

from pathlib import Path

from ..schema import Struct
from .bank import BankError, by_name, read_entries

PLACE = "{}"
"""Placeholder of the attribute in prompt and assessment point."""


class AttributePair(Struct):
    """One concept, two attributes."""

    id: str
    """Slug; never changes."""
    concept: str
    """What the attribute belongs to."""
    rare: str
    """Attribute, place, partner or content that it rarely has."""
    common: str
    """The one that it usually has."""
    prompt: str
    """Sentence with ``{}`` for the attribute."""
    shows: str
    """What the image must show, with ``{}`` for the attribute."""
    review: tuple[str, ...] = ()
    """Who else checked it: `reviewer-model`, `human`."""


def read_attributes(bank: Path) -> list[AttributePair]:
    """Every pair, checked. Raises BankError naming the entry."""
    file = bank / "attributes.yaml"
    pairs = read_entries(file, AttributePair)
    by_name(pairs, "id", str(file))
    for pair in pairs:
        if pair.prompt.count(PLACE) != 1 or pair.shows.count(PLACE) != 1:
            raise BankError(f"{file}, {pair.id}: prompt and shows each hold {PLACE} once")
        if pair.rare == pair.common:
            raise BankError(f"{file}, {pair.id}: rare and common are the same")
    return pairs
