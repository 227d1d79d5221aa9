"""`t2i_homogenization_multilingual`: the same pairs in nine languages, two of them read from the
right (OTS-Bench asks in English alone).

Rows without actions: a name has one translation in a prompt, an action may have many.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping

from ...schema import PairType, T2IHomogenization, T2IHomogenizationMultilingual
from ..checks import count_faults, duplicate_faults, entity_faults, equal_fault
from ..languages import Language
from ..neutral import COLLECTIVE
from ..suite import Banks, Fault, SuiteRecipe, entities_group
from ..taxonomy import Taxonomy
from ..translations import LANGUAGES, confused, language_faults, source_faults, translated
from . import t2i_homogenization

PAIR_COUNTS: dict[PairType, int] = {
    "H-H": 60,
    "A-A": 35,
    "O-O": 35,
    "H-A": 24,
    "H-O": 23,
    "A-O": 23,
}
"""Pairs of each type, each in every language: as near to their shares in the source as 200 pairs
allow."""
SOURCE = t2i_homogenization.SUITE.name


def build(banks: Banks, rng: random.Random) -> list[T2IHomogenizationMultilingual]:
    sources = chosen(t2i_homogenization.frozen_rows(banks, rng), banks.languages, rng)
    return [
        _row(source, banks.languages[code], banks.taxonomy)
        for source in sources
        for code in LANGUAGES
    ]


def chosen(
    rows: list[T2IHomogenization], languages: Mapping[str, Language], rng: random.Random
) -> list[T2IHomogenization]:
    """A sample of the rows without actions, in their order; no name is part of the other's."""
    taken: set[str] = set()
    for pair_type, count in PAIR_COUNTS.items():
        ids = [
            row.id
            for row in rows
            if row.pair_type == pair_type
            and not row.first_action
            and not any(confused(language, _names(row)) for language in languages.values())
        ]
        taken.update(rng.sample(ids, count))
    return [row for row in rows if row.id in taken]


def _names(row: T2IHomogenization | T2IHomogenizationMultilingual) -> list[str]:
    return [row.first.name, row.second.name]


def _row(
    source: T2IHomogenization, language: Language, taxonomy: Taxonomy
) -> T2IHomogenizationMultilingual:
    first, second = entities = _names(source)
    return T2IHomogenizationMultilingual(
        **translated(source, language, entities),
        english_prompt=source.prompt,
        english_swapped_prompt=source.swapped_prompt,
        pair_type=source.pair_type,
        first=source.first,
        second=source.second,
        first_named=language.one(first),
        second_named=language.one(second),
        neutral_prompt=neutral_prompt(language, taxonomy, first, second),
    )


def neutral_prompt(language: Language, taxonomy: Taxonomy, first: str, second: str) -> str:
    """Two of their kind, without names."""
    kinds = frozenset(taxonomy.entities[name].kind for name in (first, second))
    return language.grammar.two[COLLECTIVE[kinds]]


def faults(rows: list[T2IHomogenizationMultilingual], banks: Banks) -> Iterator[Fault]:
    for row in rows:
        a, b = entities = _names(row)
        yield from entity_faults(row, banks.taxonomy, "first", "second")
        english = (
            t2i_homogenization.prompt(a, "", b, ""),
            t2i_homogenization.prompt(b, "", a, ""),
        )
        yield from source_faults(row, *english, SOURCE)
        language = banks.languages.get(row.language)
        if language is None:
            yield Fault(row.id, "language", f"{row.language!r} is not a language of the bank")
            continue
        named = [row.first_named, row.second_named]
        yield from language_faults(row, language, entities, named, "neutral_prompt")
        if set(entities) <= set(language.names):
            yield from equal_fault(row, "first_named", language.one(a))
            yield from equal_fault(row, "second_named", language.one(b))
            scene = neutral_prompt(language, banks.taxonomy, a, b)
            yield from equal_fault(row, "neutral_prompt", scene)
    yield from duplicate_faults(
        rows, "prompt", lambda row: (row.language, frozenset((row.prompt, row.swapped_prompt)))
    )
    pairs = sum(PAIR_COUNTS.values())
    yield from count_faults(rows, "language", dict.fromkeys(LANGUAGES, pairs))
    counts = {pair_type: count * len(LANGUAGES) for pair_type, count in PAIR_COUNTS.items()}
    yield from count_faults(rows, "pair_type", counts)


SUITE = SuiteRecipe(
    name="t2i_homogenization_multilingual",
    rows=sum(PAIR_COUNTS.values()) * len(LANGUAGES),
    source="Pairs of OTS-Bench, T2I homogenization; languages ours",
    summary="The same neutral prompts in Arabic, Hebrew, Chinese, Japanese, Hindi, Spanish, "
    "German, French and English: does the first-mentioned go left where people read from the "
    "right?",
    build=build,
    faults=faults,
    group=lambda row: entities_group(row.first.name, row.second.name),
    breakdown=("language", "direction", "pair_type"),
    seeded_as=SOURCE,
)
