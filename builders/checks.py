"""Checks on the texts of rows that several suites share; each yields faults."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from io import BytesIO
from typing import Any, TypeVar

from ..images import ImageError, opened
from ..schema import Entity, GoldRow, Row, SeededRow
from .gold import differences
from .phrases import side_word, spatial_word, wrong_article
from .seeds import as_drawn
from .suite import Fault
from .taxonomy import Taxonomy

R = TypeVar("R", bound=Row)
G = TypeVar("G", bound=GoldRow)


def text_faults(row: Row, *fields: str) -> Iterator[Fault]:
    """Shape and grammar of a prompt: one line, upper-case start, full stop, fitting articles."""
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
    """No spatial word in a neutral prompt, but for the one phrase `allowed`."""
    for field in fields:
        text: str = getattr(row, field)
        if (word := spatial_word(text.replace(allowed, "") if allowed else text)) is not None:
            yield Fault(row.id, field, f"holds the spatial word {word!r}")


def side_faults(row: Row, *fields: str) -> Iterator[Fault]:
    """No word that names a side."""
    for field in fields:
        if (word := side_word(getattr(row, field))) is not None:
            yield Fault(row.id, field, f"gives the answer away with {word!r}")


def entity_faults(row: Row, taxonomy: Taxonomy, *fields: str) -> Iterator[Fault]:
    """Entities are those of the taxonomy, with the look that the row's seed image gives them."""
    source = row.seed_source if isinstance(row, SeededRow) else ""
    for field in fields:
        entity: Entity = getattr(row, field)
        listed = taxonomy.entities.get(entity.name)
        if listed is None:
            yield Fault(row.id, field, f"{entity.name!r} is not an entity of the taxonomy")
        elif as_drawn(listed.row, source) != entity:
            yield Fault(row.id, field, f"{entity.name!r} differs from the taxonomy")


def mention_faults(row: Row, field: str, *phrases: str) -> Iterator[Fault]:
    """The text names the phrases, in this order."""
    text: str = getattr(row, field)
    start = 0
    for phrase in phrases:
        position = text.lower().find(phrase.lower(), start)
        if position < 0:
            yield Fault(row.id, field, f"does not mention {phrase!r} in its place: {text!r}")
            return
        start = position + len(phrase)


def images_apart(pairs: Sequence[tuple[G, G]]) -> tuple[list[tuple[G, G, float]], list[Fault]]:
    """Share of the pixels that visibly differ between the images of two rows, in [0, 1], and a
    fault for each image that can't be decoded, whose pairs are excluded."""
    try:
        shares = differences((first.image.bytes, second.image.bytes) for first, second in pairs)
    except ImageError:
        faults = {row.id: fault for pair in pairs for row in pair for fault in _undecodable(row)}
        if not faults:
            raise
        sound = [pair for pair in pairs if not any(row.id in faults for row in pair)]
        return images_apart(sound)[0], list(faults.values())
    return [(*pair, share) for pair, share in zip(pairs, shares, strict=True)], []


def _undecodable(row: GoldRow) -> Iterator[Fault]:
    try:
        with opened(BytesIO(row.image.bytes)) as image:
            image.load()
    except ImageError as error:
        yield Fault(row.id, "image", str(error))


def equal_fault(row: Row, field: str, expected: Any) -> Iterator[Fault]:
    """The field has the expected value."""
    value = getattr(row, field)
    if value != expected:
        yield Fault(row.id, field, f"is {value!r}, expected {expected!r} from the rest of the row")


def duplicate_faults(
    rows: Iterable[R], field: str, key: Callable[[R], Hashable]
) -> Iterator[Fault]:
    """No two rows have the same key; choose one that does not depend on the order of mention."""
    ids_by_key: dict[Hashable, str] = {}
    for row in rows:
        value = key(row)
        if value in ids_by_key:
            yield Fault(row.id, field, f"duplicates {ids_by_key[value]}: {getattr(row, field)!r}")
        ids_by_key[value] = row.id


def count_faults(rows: Iterable[Row], field: str, counts: Mapping[Any, int]) -> Iterator[Fault]:
    """Exactly `counts[value]` rows have `value` in `field`."""
    actual = Counter(getattr(row, field) for row in rows)
    for value in sorted({*counts, *actual}):
        if actual[value] != counts.get(value, 0):
            message = f"{value} has {actual[value]} rows, must have {counts.get(value, 0)}"
            yield Fault("", field, message)
