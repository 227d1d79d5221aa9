"""All faults of a bank: what reading it raises, characters in its texts, and what its gold images
show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path

from ..agents.counterfactual.writer import TEXTS
from ..agents.hygiene import text_fault
from ..progress import Progress, silent
from ..scenes.people import Point
from ..schema import GoldLayout
from .bank import BankError, BankFaults, begin_bank
from .build import bank_digest
from .constrained import ConstrainedPair
from .counterfactual import Law
from .depictions import Drawable
from .suite import Banks
from .suites.rule_decoupling import RULES
from .suites.t2i_correctness import FAMILY_ROWS, additions, select_released
from .taxonomy import ACTIONS, FILES

PROMPT_TEXTS = {"left": 160, "right": 160, "context": 160}
"""Texts of a constrained pair that stand in prompts, and their longest length in characters."""
EXPLANATIONS = {"rationale": 300, "tell_left": 300, "tell_right": 300, "scope": 300}
"""Its other texts, which may quote letters of any script."""
APART = 0.04
"""Smallest distance of the two things from left to right, as a share of the image's width."""


PARTS = [name for name, part in vars(Banks).items() if isinstance(part, cached_property)]
"""What a bank is read into."""


def bank_faults(banks: Banks, progress: Progress = silent) -> Iterator[str]:
    """Yields every fault as file, entry and what is wrong.

    Files that are not there are none, unless the bank has others of the same table: it may hold
    what some configs need. Raises BankError for a folder without any file.
    """
    bank_digest(banks.root)
    begin_bank(banks.root)
    unreadable, names = BankFaults(), set[str]()
    for number, name in enumerate(PARTS):
        progress("read the bank", number, len(PARTS))
        try:
            getattr(banks, name)
        except BankError as error:
            names.add(name)
            if error.code != "no-such-file":
                unreadable.add(str(error))
    progress("read the bank", len(PARTS), len(PARTS))
    yield from _missing_files(banks.root)
    yield from unreadable.lines
    yield from _text_faults(
        {} if "pairs" in names else banks.pairs, {} if "laws" in names else banks.laws
    )
    yield from _size_faults(banks, names)
    drawables = {} if "drawables" in names else banks.drawables
    for number, (pair_id, drawable) in enumerate(sorted(drawables.items())):
        progress("layouts of gold images", number, len(drawables))
        for fault in layout_faults(drawable):
            yield f"{drawable.entry}, {pair_id}: {fault}"
    progress("layouts of gold images", len(drawables), len(drawables))


def _missing_files(bank: Path) -> Iterator[str]:
    """Yields each file of the taxonomy that a bank lacks, though it has others."""
    files = (*FILES.values(), ACTIONS)
    present = [file for file in files if (bank / file).exists()]
    for file in files:
        if present and file not in present:
            yield (
                f"{bank / file}: no such file, and {', '.join(present)} can't be used without it: "
                f"copy it from the bank that this one was made from"
            )


def _size_faults(banks: Banks, unread: Collection[str]) -> Iterator[str]:
    """Yields pairs and rules for which a release, as `build` makes it, has no room.

    unread: parts of the bank that could not be read.
    """
    if not {"pairs", "frozen"} & set(unread):
        released = select_released(banks.pairs, banks.frozen)
        families = Counter(pair.family for pairs in released.values() for pair in pairs)
        for domain, pairs in additions(banks.pairs, banks.frozen).items():
            for pair in pairs:
                families[pair.family] += 1
                if families[pair.family] > FAMILY_ROWS:
                    yield (
                        f"constrained/{domain}.yaml, {pair.id}: family: {pair.family} has "
                        f"{FAMILY_ROWS} rows already, and more would say the same again: choose "
                        f"another pair"
                    )
    if not {"rules", "frozen"} & set(unread):
        frozen = sum(banks.frozen.holds("rules", rule.id) for rule in banks.rules)
        if frozen > RULES:
            yield f"rules.yaml: has {frozen} rules in the frozen draw, and a release takes {RULES}"


def _text_faults(
    domains: Mapping[str, Sequence[ConstrainedPair]], files: Mapping[str, Sequence[Law]]
) -> Iterator[str]:
    for domain, pairs in domains.items():
        for pair in pairs:
            for latin, limits in ((True, PROMPT_TEXTS), (False, EXPLANATIONS)):
                for name, limit in limits.items():
                    if fault := text_fault(getattr(pair, name), limit, latin=latin):
                        yield f"constrained/{domain}.yaml, {pair.id}, {name}: {fault}"
    for file, laws in files.items():
        for scene in (scene for law in laws for scene in law.scenes):
            for name, limit in TEXTS.items():
                if fault := text_fault(getattr(scene, name), limit):
                    yield f"counterfactual/{file}.yaml, {scene.id}, {name}: {fault}"


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
