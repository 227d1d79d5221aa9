"""The bank of sequences: three or more things whose order from left to right a standard fixes."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

from ..schema import Frame, Struct
from .bank import BankError, by_name, read_entries
from .constrained import Standard
from .facts import FactError, FactTables
from .frames import frame_fault
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
    """Place and viewpoint; follows the names in the prompt."""
    items: list[str]
    """From left to right, at least three."""
    standards: list[str]
    """Ids in the standards registry, at least one."""
    frame: Frame
    """Viewpoint from which left and right hold (`frames`)."""
    fact: str
    """Fact table from which code derives the order (`facts`)."""
    review: tuple[str, ...] = ()
    """Reviewers besides the author: `reviewer-model`, `human`."""


def read_sequences(bank: Path, standards: dict[str, Standard], facts: FactTables) -> list[Sequence]:
    """Every sequence, with its order checked by code. Raises BankError naming the entry."""
    file = bank / "sequences.yaml"
    sequences = read_entries(file, Sequence)
    by_name(sequences, "id", str(file))
    for sequence in sequences:
        where = f"{file}, {sequence.id}"
        if len(sequence.items) < 3 or len(set(sequence.items)) != len(sequence.items):
            raise BankError(f"{where}: items: at least three, all different", code="bad-entry")
        for unknown in (s for s in sequence.standards if s not in standards):
            raise BankError(
                f"{where}: standards: {unknown!r} is not in the registry", code="unknown-reference"
            )
        for text in (sequence.phrase, sequence.context):
            if (word := side_word(text)) is not None:
                raise BankError(f"{where}: gives the answer away with {word!r}", code="bad-entry")
        _verify_order(sequence, facts, where)
    return sequences


def _verify_order(sequence: Sequence, facts: FactTables, where: str) -> None:
    phrases = [sequence.phrase.format(item) for item in sequence.items]
    fact, frame = sequence.fact, sequence.frame
    try:
        for pair in pairwise(phrases):
            if facts.order(fact, frame, "", pair) != pair:
                raise BankError(
                    f"{where}: {pair[0]} is not left of {pair[1]} by fact {fact}", code="bad-entry"
                )
    except FactError as error:
        raise BankError(f"{where}: {error}", code="bad-entry") from None
    if fault := frame_fault(sequence.context, frame, facts.facts[fact].frames):
        raise BankError(f"{where}: frame: {fault}", code="bad-entry")
