"""`order_beyond_multilingual`: three entities side by side in nine languages.

Of the settings of `order_beyond`, the one whose axis has a reading direction and whose names are
those of the taxonomy.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from ...schema import OrderBeyond, OrderBeyondMultilingual
from ..checks import count_faults, duplicate_faults, equal_fault
from ..languages import Language
from ..suite import Banks, Fault, SuiteRecipe, entities_group
from ..translations import LANGUAGES, confused, language_faults, source_faults, translated
from . import order_beyond

TRIPLES = 60
"""Rows in each language."""
SETTING: order_beyond.OrderSetting = "three_homogenization"
SOURCE = order_beyond.SUITE.name


def build(banks: Banks, rng: random.Random) -> list[OrderBeyondMultilingual]:
    rows = [row for row in order_beyond.build(banks, rng) if row.setting == SETTING]
    clear = [
        row
        for row in rows
        if not any(confused(language, row.entities) for language in banks.languages.values())
    ]
    taken = {row.id for row in rng.sample(clear, TRIPLES)}
    return [
        _row(row, banks.languages[code]) for row in clear if row.id in taken for code in LANGUAGES
    ]


def _row(source: OrderBeyond, language: Language) -> OrderBeyondMultilingual:
    return OrderBeyondMultilingual(
        **translated(source, language, source.entities),
        english_prompt=source.prompt,
        english_swapped_prompt=source.swapped_prompt,
        entities=source.entities,
        looks=source.looks,
        named=[language.one(name) for name in source.entities],
    )


def faults(rows: list[OrderBeyondMultilingual], banks: Banks) -> Iterator[Fault]:
    listed = banks.taxonomy.entities
    for row in rows:
        if unknown := [name for name in row.entities if name not in listed]:
            yield Fault(row.id, "entities", f"{unknown[0]!r} is not an entity of the taxonomy")
        else:
            yield from equal_fault(row, "looks", [listed[name].row.look for name in row.entities])
        english = (
            order_beyond.neutral_prompt(row.entities),
            order_beyond.neutral_prompt(row.entities[::-1]),
        )
        yield from source_faults(row, *english, SOURCE, SETTING)
        language = banks.languages.get(row.language)
        if language is None:
            yield Fault(row.id, "language", f"{row.language!r} is not a language of the bank")
            continue
        yield from language_faults(row, language, row.entities, row.named)
        if not unknown:
            yield from equal_fault(row, "named", [language.one(name) for name in row.entities])
    yield from duplicate_faults(rows, "prompt", lambda row: (row.language, frozenset(row.entities)))
    yield from count_faults(rows, "language", dict.fromkeys(LANGUAGES, TRIPLES))


SUITE = SuiteRecipe(
    name="order_beyond_multilingual",
    rows=TRIPLES * len(LANGUAGES),
    source="Triples of OTS-Bench, rebuttal; languages ours",
    summary="Three entities in a row in the same nine languages.",
    build=build,
    faults=faults,
    group=lambda row: entities_group(*row.entities),
    breakdown=("language", "direction"),
    seeded_as=SOURCE,
)
