"""`spatial_uc`: the 200 prompts of SpatialBench-UC v1.0.1, rebuilt byte for byte."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

from ...schema import Provenance, SpatialUC
from ..checks import duplicate_faults
from ..suite import Banks, Fault, SuiteRecipe
from ..votes import voted

PlaneRelation = Literal["left_of", "right_of", "above", "below"]

VERSION = "v1.0.1"
PAIRS = 50
PUBLISHED_SEED = 1234
PUBLISHED_SHA256 = "e13c0ed8f962acb7fed702c689e384184759f17317373bce0ef633667c244d8d"
"""SHA-256 of the published prompts.jsonl (arXiv 2601.13462, release v1.0.1, CC BY 4.0)."""

PHRASES: dict[PlaneRelation, str] = {
    "left_of": "to the left of",
    "right_of": "to the right of",
    "above": "above",
    "below": "below",
}
COUNTERPARTS: tuple[tuple[PlaneRelation, PlaneRelation], ...] = (
    ("left_of", "right_of"),
    ("above", "below"),
)


class _Prompt(NamedTuple):
    relation: PlaneRelation
    a: str
    b: str

    @property
    def text(self) -> str:
        # The published texts never say "an": "a apple" is part of the benchmark.
        return f"A photo of a {self.a} {PHRASES[self.relation]} a {self.b}."


def build(banks: Banks, rng: random.Random) -> list[SpatialUC]:
    """The rows of the published sample, which does not depend on our seed."""
    objects = banks.spatial_uc_objects
    ordered = [(a, b) for a in objects for b in objects if a != b]
    sample = random.Random(PUBLISHED_SEED).sample(ordered, PAIRS)
    prompts = [
        prompt
        for a, b in sample
        for base, counter in COUNTERPARTS
        for prompt in (_Prompt(base, a, b), _Prompt(counter, b, a))
    ]
    return [
        SpatialUC(
            prompt_id=_prompt_id(number),
            pair_id=f"pair_{number // 2:06d}",
            relation=prompt.relation,
            object_a=prompt.a,
            object_b=prompt.b,
            prompt=prompt.text,
            counterfactual_id=_prompt_id(number ^ 1),
            review=["code"],
            provenance=Provenance(
                bank="spatial_uc.yaml",
                entry=f"{prompt.a}, {prompt.b}",
                author=f"SpatialBench-UC {VERSION}",
                calls=[],
            ),
        )
        for number, prompt in enumerate(prompts)
    ]


def _prompt_id(number: int) -> str:
    return f"v1_{number:06d}"


def published_jsonl(rows: Iterable[SpatialUC]) -> bytes:
    """The rows as the published prompts.jsonl; its SHA-256 is `PUBLISHED_SHA256`."""
    table = {row.prompt_id: row for row in rows}
    lines = []
    for _, row in sorted(table.items()):
        counterpart = table[row.counterfactual_id]
        tags = ["two_objects", "spatial"]
        if " " in row.object_a + row.object_b:
            tags.append("multi_word_object")
        record = {
            "prompt_id": row.prompt_id,
            "pair_id": row.pair_id,
            "version": VERSION,
            "language": "en",
            "relation": row.relation,
            "object_a": {"name": row.object_a, "coco_label": row.object_a},
            "object_b": {"name": row.object_b, "coco_label": row.object_b},
            "prompt": row.prompt,
            "counterfactual": {
                "prompt_id": counterpart.prompt_id,
                "relation": counterpart.relation,
                "prompt": counterpart.prompt,
            },
            "template": "photo_simple_v1",
            "difficulty_tags": tags,
        }
        lines.append(json.dumps(record) + "\n")
    return "".join(lines).encode()


def faults(rows: list[SpatialUC], banks: Banks) -> Iterator[Fault]:
    built = build(banks, random.Random())
    published = {row.prompt_id: voted(row, banks.votes) for row in built}
    for row in rows:
        original = published.get(row.prompt_id)
        if original is None:
            yield Fault(row.id, "prompt_id", f"{row.prompt_id!r} was never published")
            continue
        for field in SpatialUC.model_fields:
            if field in ("status", "seeds", "canary"):
                continue
            if getattr(row, field) != getattr(original, field):
                yield Fault(row.id, field, f"differs from the published {row.prompt_id}")
    yield from duplicate_faults(rows, "prompt", lambda row: row.prompt)
    try:
        digest = hashlib.sha256(published_jsonl(rows)).hexdigest()
    except KeyError as missing:
        yield Fault("", "counterfactual_id", f"prompt {missing} is missing")
    else:
        if digest != PUBLISHED_SHA256:
            yield Fault("", "prompt", "the rows do not give the published file, byte by byte")


SUITE = SuiteRecipe(
    name="spatial_uc",
    rows=4 * PAIRS,
    source="SpatialBench-UC v1.0.1 (arXiv 2601.13462)",
    summary="The 200 published prompts in 100 counterfactual pairs: the same scene said both ways "
    "round.",
    build=build,
    faults=faults,
    group=None,
    breakdown=("relation",),
)
