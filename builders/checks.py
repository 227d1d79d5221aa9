"""Checks of row texts that several suites share; each yields what is wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from ..schema import Entity, Row
from .phrases import side_word, spatial_word, wrong_article
from .suite import Fault
from .taxonomy import Taxonomy

R = TypeVar("R", bound=Row)


def text_faults(row: Row, *fields: str) -> Iterator[Fault]:
    """A prompt is one line with an upper-case start, a period at its end and correct articles."""
    for field in fields:
        text: str = getattr(row, field)
        if text != " ".join(text.split()) or not text:
            yield Fault(row.id, field, f"is not one line of words: {text!r}")
            continue
        if not (text[0].isupper() or text[0].isdigit()) or not text.endswith("."):
            yield Fault(row.id, field, f"is not a sentence: {text!r}")
        if (wrong := wrong_article(text)) is not None:
            yield Fault(row.id, field, f"has the wrong article in {wrong!r}")


def neutral_faults(row: Row, *fields: str, allowed: str = "") -> Iterator[Fault]:
    """A neutral prompt holds no spatial word, except for the phrase `allowed`."""
    for field in fields:
        text: str = getattr(row, field)
        if (word := spatial_word(text.replace(allowed, "") if allowed else text)) is not None:
            yield Fault(row.id, field, f"holds the spatial word {word!r}")


def side_faults(row: Row, *fields: str) -> Iterator[Fault]:
    """The text holds no word that names a side."""
    for field in fields:
        if (word := side_word(getattr(row, field))) is not None:
            yield Fault(row.id, field, f"gives the answer away with {word!r}")


def entity_faults(row: Row, taxonomy: Taxonomy, *fields: str) -> Iterator[Fault]:
    """Entities are equal to those of the taxonomy."""
    for field in fields:
        entity: Entity = getattr(row, field)
        known = taxonomy.entities.get(entity.name)
        if known is None:
            yield Fault(row.id, field, f"{entity.name!r} is no entity of the taxonomy")
        elif known.row != entity:
            yield Fault(row.id, field, f"{entity.name!r} differs from the taxonomy")


def mention_faults(row: Row, field: str, *phrases: str) -> Iterator[Fault]:
    """The text names the phrases, in this order."""
    text: str = getattr(row, field)
    start = 0
    for phrase in phrases:
        found = text.lower().find(phrase.lower(), start)
        if found < 0:
            yield Fault(row.id, field, f"does not mention {phrase!r} in its place: {text!r}")
            return
        start = found + len(phrase)


def equal_fault(row: Row, field: str, expected: Any) -> Iterator[Fault]:
    """The field has the value that follows from the row's other fields."""
    found = getattr(row, field)
    if found != expected:
        yield Fault(
            row.id, field, f"is {found!r}; by the row's other fields it must be {expected!r}"
        )


def duplicate_faults(
    rows: Iterable[R], field: str, key: Callable[[R], Hashable]
) -> Iterator[Fault]:
    """No two rows have the same key; it should not depend on the order of mention."""
    seen: dict[Hashable, str] = {}
    for row in rows:
        value = key(row)
        if value in seen:
            yield Fault(row.id, field, f"duplicates {seen[value]}: {getattr(row, field)!r}")
        seen[value] = row.id


def count_faults(rows: Iterable[Row], field: str, counts: Mapping[Any, int]) -> Iterator[Fault]:
    """Exactly `counts[value]` rows have `value` in `field`."""
    found = Counter(getattr(row, field) for row in rows)
    for value in sorted({*counts, *found}):
        if found[value] != counts.get(value, 0):
            message = f"{value} has {found[value]} rows, must have {counts.get(value, 0)}"
            yield Fault("", field, message)
