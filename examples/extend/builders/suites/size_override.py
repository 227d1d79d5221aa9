"""`size_override`: are sizes drawn as stated, or as usual?"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Literal

from ...schema import Provenance, SizeOverride
from ..checks import duplicate_faults, text_faults
from ..suite import Banks, Fault, SuiteRecipe

PAIRS = (("mouse", "horse"), ("ant", "cat"), ("key", "car"), ("apple", "house"))
"""Smaller thing, larger thing."""
SIZES: tuple[Literal["usual", "exchanged"], ...] = ("usual", "exchanged")


def build(banks: Banks, rng: random.Random) -> list[SizeOverride]:
    rows = []
    for small, large in PAIRS:
        for sizes in SIZES:
            tiny, huge = (small, large) if sizes == "usual" else (large, small)
            rows.append(
                SizeOverride(
                    pair=f"{small}/{large}",
                    sizes=sizes,
                    prompt=f"A tiny {tiny} beside a huge {huge}.",
                    assessment_point=f"The {huge} is much larger than the {tiny}.",
                    review=["code"],
                    provenance=Provenance(
                        bank="", entry=f"{small}/{large}", author="rules", calls=[]
                    ),
                )
            )
    return rows


def faults(rows: list[SizeOverride], banks: Banks) -> Iterator[Fault]:
    for row in rows:
        yield from text_faults(row, "prompt", "assessment_point")
    yield from duplicate_faults(rows, "prompt", lambda row: row.prompt)


SUITE = SuiteRecipe(
    name="size_override",
    rows=2 * len(PAIRS),
    source="ours",
    summary="Two things with usual or with exchanged sizes: is the prompt drawn, or the habit?",
    build=build,
    faults=faults,
    group=lambda row: ("size_override", row.pair),
)
