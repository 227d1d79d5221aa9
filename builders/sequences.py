"""The bank of sequences: three or more things whose order from left to right a standard fixes."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

from ..schema import Struct
from .bank import BankError, by_name, read_entries
from .constrained import Standard
from .layouts import LayoutError, verify_check
from .phrases import side_word


class Sequence(Struct):
    """Things in a row, from the viewer's left to the viewer's right."""

    id: str
    """Slug; never changes."""
    phrase: str
    """How one is named in a prompt, with ``{}`` for the item: `the {} key`."""
    tell: str
    """How a judge recognizes one, with ``{}`` for the item."""
    context: str
    """Where they are, and from where one looks; follows the names in the prompt."""
    items: list[str]
    """From left to right, at least three."""
    standards: list[str]
    """Ids in the standards registry, at least one."""
    layout: str
    """Layout from whose coordinates code recomputes the order (`layouts`)."""
    values: list[str]
    """The key of each item in that layout; empty if the items are the keys."""
    axis: str
    """For layout `ascending`, what grows to the right; for a flag, its country; else empty."""
    review: tuple[str, ...] = ()
    """Who else checked it: `reviewer-model`, `human`."""


def read_sequences(bank: Path, standards: dict[str, Standard]) -> list[Sequence]:
    """Every sequence, with its order checked by code. Raises BankError naming the entry."""
    file = bank / "sequences.yaml"
    sequences = read_entries(file, Sequence)
    by_name(sequences, "id", str(file))
    for sequence in sequences:
        where = f"{file}, {sequence.id}"
        if len(sequence.items) < 3 or len(set(sequence.items)) != len(sequence.items):
            raise BankError(f"{where}: items: at least three, all different")
        for unknown in (s for s in sequence.standards if s not in standards):
            raise BankError(f"{where}: standards: {unknown!r} is not in the registry")
        for text in (sequence.phrase, sequence.context):
            if (word := side_word(text)) is not None:
                raise BankError(f"{where}: gives the answer away with {word!r}")
        _verify_order(sequence, where)
    return sequences


def _verify_order(sequence: Sequence, where: str) -> None:
    keys = sequence.values or sequence.items
    if len(keys) != len(sequence.items):
        raise BankError(f"{where}: values: one for each item")
    for left, right in pairwise(keys):
        check: dict[str, object] = {"layout": sequence.layout, "left": left, "right": right}
        if sequence.layout == "ascending":
            check |= {"value": [left, right], "axis": sequence.axis}
        if sequence.layout == "world_map":
            check |= {"lon": [left, right]}
        if sequence.layout == "calendar_week":
            check |= {"start": keys[0]}
        if sequence.layout == "flag_vertical_bands":
            check |= {"flag": sequence.axis}
        try:
            verify_check(check)
        except LayoutError as error:
            raise BankError(f"{where}: {error}") from None
