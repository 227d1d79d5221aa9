"""`altered_worlds_gold`: drawn images of altered worlds, whose world is known (gold)."""

from __future__ import annotations

import hashlib
import random
from collections import defaultdict
from collections.abc import Collection, Iterator
from typing import Any

from ...scenes.vector import VectorImage, VectorStyle
from ...schema import AlteredWorldGold, EncodedImage, Provenance, World
from ..build_result import Composition
from ..checks import equal_fault, images_apart
from ..gold import LEAST_DIFFERENCE, LICENSE, LOOKED, draw_gold
from ..suite import Banks, Fault, SuiteRecipe
from ..world_drawings import DRAWN, DrawnGroup
from ..world_looks import recognized, undecided
from ..worlds import KEYED
from .altered_worlds import group_rows
from .counterfactual import groups

SHARED_COLUMNS = (
    *("prompt", "altered_prompt", "law", "discipline", "depth", "presence", *KEYED, "source_ids"),
)
"""Columns that the rows of `altered_worlds` decide."""


def build(banks: Banks, rng: random.Random) -> list[AlteredWorldGold]:
    """The images of every released group that is drawn, in the order of the bank."""
    return list(drawn_rows(banks))


def images(banks: Banks, rng: random.Random) -> Iterator[VectorImage]:
    """What `build` draws."""
    for _, _, scene in groups(banks):
        if scene.id in banks.world_drawings:
            drawing = banks.world_drawings[scene.id].drawing
            yield from (drawing.image(*version) for version in drawing.versions())


def drawn_rows(banks: Banks, only: Collection[str] | None = None) -> Iterator[AlteredWorldGold]:
    """The images of released groups, drawn one by one; of those named where `only` is given."""
    for file, law, scene in groups(banks):
        if scene.id in banks.world_drawings and (only is None or scene.id in only):
            yield from _rows(banks, file, law, scene)


def _rows(banks: Banks, file: str, law: Any, scene: Any) -> Iterator[AlteredWorldGold]:
    drawn = banks.world_drawings[scene.id]
    columns = _shared_columns(banks, file, law, scene)
    for world, style, seed in drawn.drawing.versions():
        row = _row(drawn, columns, world, style, seed)
        review = ["code", LOOKED] if recognized(row, banks.world_looks) else ["code"]
        yield row.model_copy(update={"review": review})


def _shared_columns(banks: Banks, file: str, law: Any, scene: Any) -> dict[str, Any]:
    """Returns the columns of a group's images that its rows of `altered_worlds` decide."""
    levels = group_rows(banks, file, law, scene)
    plain, deduced = (next(r for r in levels if r.level == level) for level in ("L1", "L3"))
    shared = ("group", "law", "discipline", "depth", "presence", *KEYED, "provenance")
    return {
        **{name: getattr(plain, name) for name in shared},
        "prompt": plain.prompt,
        "altered_prompt": deduced.prompt,
        "source_ids": [row.id for row in levels],
    }


def _row(
    drawn: DrawnGroup, columns: dict[str, Any], world: World, style: VectorStyle, seed: int
) -> AlteredWorldGold:
    source: Provenance = columns["provenance"]
    data = draw_gold(drawn.drawing.image(world, style, seed))
    return AlteredWorldGold(
        **columns
        | {"provenance": source.model_copy(update={"bank": f"{source.bank} {drawn.entry}"})},
        world=world,
        style=style,
        drawn_seed=seed,
        image=EncodedImage(bytes=data, path=f"{columns['group']}-{world}-{style}-{seed}.png"),
        image_sha256=hashlib.sha256(data).hexdigest(),
        review=["code"],
        license=LICENSE,
    )


def faults(rows: list[AlteredWorldGold], banks: Banks) -> Iterator[Fault]:
    alike: defaultdict[tuple[str, str, int], dict[str, AlteredWorldGold]] = defaultdict(dict)
    for row in rows:
        alike[row.group, row.style, row.drawn_seed][row.world] = row
    both = [worlds for worlds in alike.values() if set(worlds) == set(DRAWN)]
    for worlds in alike.values():
        if set(worlds) != set(DRAWN):
            first = next(iter(worlds.values()))
            yield Fault(first.id, "world", f"{first.group} has no image of the other world")
    apart, undecodable = images_apart([(worlds["real"], worlds["altered"]) for worlds in both])
    yield from undecodable
    for real, _, share in apart:
        if share < LEAST_DIFFERENCE:
            first = next(iter(alike[real.group, real.style, real.drawn_seed].values()))
            reason = f"{first.group}, {first.style}: the two worlds look alike"
            yield Fault(first.id, "image", f"{reason}: {share:.2%} of the pixels differ")
    bank_groups = {scene.id: (file, law, scene) for file, law, scene in groups(banks)}
    columns_by_group: dict[str, dict[str, Any]] = {}
    for row in rows:
        # A release made from another bank has groups that this one lacks.
        if row.group in bank_groups and row.group in banks.worlds:
            if row.group not in columns_by_group:
                columns_by_group[row.group] = _shared_columns(banks, *bank_groups[row.group])
            for name in SHARED_COLUMNS:
                yield from equal_fault(row, name, columns_by_group[row.group][name])
    for unresolved in undecided(rows, banks.world_looks):
        yield Fault(unresolved.row.id, unresolved.question, str(unresolved))


SUITE = SuiteRecipe(
    name="altered_worlds_gold",
    rows=None,
    source="CF-World (drawn images ours)",
    summary="Drawn images of both worlds of a group, and questions whose answers are known: can a "
    "judge of altered_worlds be believed?",
    build=build,
    images=images,
    faults=faults,
    group=lambda row: ("scene", row.group),  # as all levels of it
    breakdown=("world", "style"),
    composition=Composition(by="discipline", counts=("world",), distinct=("law", "group")),
    license=None,
    optional=True,
)
