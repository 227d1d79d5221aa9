"""`t2i_correctness_gold`: drawn images of constrained pairs, whose layout is known (gold)."""

from __future__ import annotations

import hashlib
import random
from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import combinations

from ...scenes.vector import VectorImage, VectorStyle
from ...schema import EncodedImage, GoldLayout, Provenance, T2ICorrectness, T2ICorrectnessGold
from ..build_result import Composition
from ..checks import equal_fault, images_apart
from ..depictions import LAYOUTS, Drawable
from ..gold import LEAST_DIFFERENCE, LICENSE, LOOKED, STYLES_EACH, draw_gold, style_of
from ..suite import Banks, Fault, SuiteRecipe
from . import t2i_correctness

GoldVersion = tuple[GoldLayout, VectorStyle, int]


def images_of(drawable: Drawable) -> Iterator[GoldVersion]:
    """Layout, style and seed of every image of a pair.

    Right and swapped come in the same styles and seeds; which styles those are is drawn per pair.
    """
    name, styles = drawable.pair.id, drawable.depiction.styles
    for seed in range(STYLES_EACH):
        for layout in LAYOUTS[:2]:
            yield layout, style_of(name, styles, seed), seed
    for seed, layout in enumerate(LAYOUTS[2:], STYLES_EACH):
        yield layout, style_of(name, styles, seed), seed


def build(banks: Banks, rng: random.Random) -> list[T2ICorrectnessGold]:
    """The images of every released pair that a depiction draws."""
    return [
        _row(source, drawable, version, banks.gold_looks)
        for source, drawable, version in _versions(banks, rng)
    ]


def images(banks: Banks, rng: random.Random) -> Iterator[VectorImage]:
    """What `build` draws."""
    for _, drawable, version in _versions(banks, rng):
        yield drawable.image(*version)


def _versions(
    banks: Banks, rng: random.Random
) -> Iterator[tuple[T2ICorrectness, Drawable, GoldVersion]]:
    for source in t2i_correctness.build(banks, rng):
        drawable = banks.drawables.get(source.provenance.entry)
        if drawable is not None:
            for version in images_of(drawable):
                yield source, drawable, version


def _row(
    source: T2ICorrectness, drawable: Drawable, version: GoldVersion, looks: Mapping[str, str]
) -> T2ICorrectnessGold:
    layout, style, seed = version
    data = draw_gold(drawable.image(layout, style, seed))
    digest = hashlib.sha256(data).hexdigest()
    name = f"{source.provenance.entry}-{layout}-{style}-{seed}"
    return T2ICorrectnessGold(
        source_id=source.id,
        domain=source.domain,
        family=source.family,
        cluster=source.cluster,
        left=source.left,
        right=source.right,
        context=source.context,
        prompt=source.aligned_prompt,
        frame=source.frame,
        fact=source.fact,
        tell_left=source.tell_left,
        tell_right=source.tell_right,
        layout=layout,
        style=style,
        drawn_seed=seed,
        image=EncodedImage(bytes=data, path=f"{name}.png"),
        image_sha256=digest,
        review=["code", LOOKED] if looks.get(digest) == layout else ["code"],
        license=LICENSE,
        provenance=Provenance(
            bank=f"{source.provenance.bank} {drawable.entry}",
            entry=source.provenance.entry,
            author=source.provenance.author,
            calls=source.provenance.calls,
        ),
    )


def faults(rows: list[T2ICorrectnessGold], banks: Banks) -> Iterator[Fault]:
    entries = {pair.id: pair for pairs in banks.pairs.values() for pair in pairs}
    alike: defaultdict[tuple[str, str, int], list[T2ICorrectnessGold]] = defaultdict(list)
    for row in rows:
        alike[row.provenance.entry, row.style, row.drawn_seed].append(row)
        # A release made from another bank has entries that this one lacks.
        if row.provenance.entry in entries:
            layout_seen = banks.gold_looks.get(row.image_sha256, row.layout)
            if layout_seen not in (row.layout, "unsure"):
                yield Fault(
                    row.id, "image", f"was taken for {layout_seen} by a model that looked at it"
                )
            pair = entries[row.provenance.entry]
            for name in ("left", "right", "context", "frame", "fact"):
                yield from equal_fault(row, name, getattr(pair, name))
            yield from equal_fault(row, "cluster", banks.clusters.get(row.family, ""))
    pairs = [pair for same in alike.values() for pair in combinations(same, 2)]
    apart, undecodable = images_apart(pairs)
    yield from undecodable
    for first, second, share in apart:
        if share < LEAST_DIFFERENCE:
            reason = f"looks like the layout {first.layout}: {share:.2%} of the pixels differ"
            yield Fault(second.id, "image", reason)


SUITE = SuiteRecipe(
    name="t2i_correctness_gold",
    rows=None,
    source="OTS-Bench, T2I correctness",
    summary="Drawn images of constrained pairs whose layout is known, right and wrong: can a judge "
    "of t2i_correctness be believed?",
    build=build,
    images=images,
    faults=faults,
    group=lambda row: ("family", row.family),  # twins name each other
    breakdown=("layout", "style"),
    composition=Composition(by="domain", counts=("layout",), distinct=("source_id",)),
    license=None,
    seeded_as="t2i_correctness",
    optional=True,
)
