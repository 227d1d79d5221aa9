"""Rows of an English config in other languages: what they share with it, and must satisfy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ..schema import Provenance, Row, TranslatedRow, item_id, item_seeds
from .checks import equal_fault
from .languages import ENGLISH, Language
from .suite import Fault

LANGUAGES = ("ar", "he", "zh", "ja", "hi", "es", "de", "fr", ENGLISH)
"""Languages of every translated config, in the order of its rows."""


def translated(source: Row, language: Language, entities: Sequence[str]) -> dict[str, Any]:
    """The fields that every translation of an English row has.

    entities: English names in order of mention.
    """
    code = language.grammar.language
    used = "occupations.yaml animals.yaml objects.yaml languages.yaml"
    english = code == ENGLISH
    return {
        "source_id": source.id,
        "language": code,
        "direction": language.grammar.direction,
        "prompt": language.prompt(*entities),
        "swapped_prompt": language.prompt(*entities[::-1]),
        "review": ["code"] if english else ["code", "reviewer-model"],
        "seeds": source.seeds,
        "provenance": Provenance(
            bank=used if english else f"{used} languages/{code}.yaml",
            entry=", ".join(entities),
            author="rules",
            calls=[],
        ),
    }


def source_faults(
    row: TranslatedRow, prompt: str, swapped_prompt: str, config: str, *key: str
) -> Iterator[Fault]:
    """The English row is the one named, whose prompts these are and whose id hashes the key."""
    yield from equal_fault(row, "english_prompt", prompt)
    yield from equal_fault(row, "english_swapped_prompt", swapped_prompt)
    yield from equal_fault(row, "source_id", item_id(config, *key, prompt))
    yield from equal_fault(row, "seeds", item_seeds(row.source_id))
    if row.language == ENGLISH:
        yield from equal_fault(row, "prompt", row.english_prompt)


def language_faults(
    row: TranslatedRow,
    language: Language,
    entities: Sequence[str],
    named: Sequence[str],
    *texts: str,
) -> Iterator[Fault]:
    """Letters, grammar, and the order in which the prompts are read.

    entities: their English names in order of mention; named: as the prompts name them; texts:
    further columns in the language.
    """
    yield from equal_fault(row, "direction", language.grammar.direction)
    for field in ("prompt", "swapped_prompt", *texts):
        for message in language.text_faults(getattr(row, field)):
            yield Fault(row.id, field, f"{message}: {getattr(row, field)!r}")
    yield from _reading_faults(row, named)
    if not set(entities) <= set(language.names):
        return  # the entities themselves are at fault
    if confused(language, entities):
        yield Fault(row.id, "prompt", f"one name contains the other: {row.prompt!r}")
    yield from equal_fault(row, "prompt", language.prompt(*entities))
    yield from equal_fault(row, "swapped_prompt", language.prompt(*entities[::-1]))


def confused(language: Language, entities: Sequence[str]) -> bool:
    """Whether one of the names could be found within another."""
    return any(language.confusing(a, b) for n, a in enumerate(entities) for b in entities[n + 1 :])


def _reading_faults(row: TranslatedRow, named: Sequence[str]) -> Iterator[Fault]:
    """The entity mentioned first is read first, and both prompts differ in the names alone."""
    between = []
    for field, ordered in (("prompt", named), ("swapped_prompt", named[::-1])):
        text: str = getattr(row, field).casefold()
        gaps: list[str] = []
        for name in (name.casefold() for name in ordered):
            before, match, text = text.partition(name)
            if not match or (before and not gaps):
                yield Fault(row.id, field, f"does not name {', then '.join(map(repr, ordered))}")
                return
            gaps.append(before)
        between.append((*gaps, text))
    if between[0] != between[1]:
        yield Fault(row.id, "swapped_prompt", "differs from prompt in more than the names")
