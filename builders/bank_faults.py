"""Faults of a bank that reading it does not raise: characters in its texts, and what its gold
images show."""

from __future__ import annotations

from collections.abc import Iterator

from ..agents.counterfactual.writer import TEXTS
from ..agents.hygiene import text_fault
from ..scenes.people import Point
from ..schema import GoldLayout
from .depictions import Drawable
from .suite import Banks

PROMPT_TEXTS = {"left": 160, "right": 160, "context": 160}
"""Texts of a constrained pair that stand in prompts, and their longest length in characters."""
EXPLANATIONS = {"rationale": 300, "tell_left": 300, "tell_right": 300, "scope": 300}
"""Its other texts, which may quote letters of any script."""
APART = 0.04
"""Smallest distance of the two things from left to right, as a share of the image's width."""


def bank_faults(banks: Banks) -> Iterator[str]:
    """Yields every fault as file, entry and what is wrong. Raises BankError for a bank that can't
    be read."""
    for domain, pairs in banks.pairs.items():
        for pair in pairs:
            for latin, limits in ((True, PROMPT_TEXTS), (False, EXPLANATIONS)):
                for name, limit in limits.items():
                    if fault := text_fault(getattr(pair, name), limit, latin=latin):
                        yield f"constrained/{domain}.yaml, {pair.id}, {name}: {fault}"
    for file, laws in banks.laws.items():
        for scene in (scene for law in laws for scene in law.scenes):
            for name, limit in TEXTS.items():
                if fault := text_fault(getattr(scene, name), limit):
                    yield f"counterfactual/{file}.yaml, {scene.id}, {name}: {fault}"
    for pair_id, drawable in sorted(banks.drawables.items()):
        for fault in layout_faults(drawable):
            yield f"{drawable.entry}, {pair_id}: {fault}"


def layout_faults(drawable: Drawable) -> Iterator[str]:
    """Yields each layout of a pair whose image does not place the two things as its name says."""
    two = drawable.left, drawable.right
    ordered: dict[GoldLayout, tuple[str, str]] = {"right": two, "swapped": (two[1], two[0])}
    for layout, (first, second) in ordered.items():
        places = seen_places(drawable, layout)
        if [len(places[name]) for name in (first, second)] != [1, 1]:
            yield f"{layout}: must show each thing once"
        elif places[second][0][0] - places[first][0][0] <= APART:
            yield f"{layout}: {first!r} must be left of {second!r}"
    counted: dict[GoldLayout, list[int]] = {"missing": [0, 1], "doubled": [1, 2]}
    for layout, counts in counted.items():
        shown = sorted(map(len, seen_places(drawable, layout).values()))
        if shown != counts:
            yield f"{layout}: shows the two things {shown} times, not {counts}"
    above = seen_places(drawable, "above").values()
    if [*map(len, above)] != [1, 1]:
        yield "above: must show each thing once"
    else:
        ((left,), (right,)) = above
        if abs(left[1] - right[1]) <= 2 * abs(left[0] - right[0]):
            yield "above: one thing must be above the other"


def seen_places(drawable: Drawable, layout: GoldLayout) -> dict[str, list[Point]]:
    """Returns where the viewer sees each copy of the two things, left one first: shares of the
    image's width and height."""
    image = drawable.image(layout, "flat", 0)
    places: dict[str, list[Point]] = {drawable.left: [], drawable.right: []}
    for part in image.parts:
        if part.name in places:
            places[part.name].append(image.turn(part.center))
    return places
