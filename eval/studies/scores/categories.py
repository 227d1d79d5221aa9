"""`category:`: a rule's numbers by the super-categories of the two COCO things of a prompt (PSE,
Figure 14)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache

import numpy as np

from ...core import ORIGINAL, Outcome, Score, Verdict
from ...suites.scoring import mean_score
from .scope import ScoreInputs

SUPERCATEGORIES = {
    "person": "person",
    "vehicle": "bicycle car motorcycle airplane bus train truck boat",
    "outdoor": "traffic_light fire_hydrant stop_sign parking_meter bench",
    "animal": "bird cat dog horse sheep cow elephant bear zebra giraffe",
    "accessory": "backpack umbrella handbag tie suitcase",
    "sports": "frisbee skis snowboard sports_ball kite baseball_bat baseball_glove skateboard "
    "surfboard tennis_racket",
    "kitchen": "bottle wine_glass cup fork knife spoon bowl",
    "food": "banana apple sandwich orange broccoli carrot hot_dog pizza donut cake",
    "furniture": "chair couch potted_plant bed dining_table toilet",
    "electronic": "tv laptop mouse remote keyboard cell_phone",
    "appliance": "microwave oven toaster sink refrigerator",
    "indoor": "book clock vase scissors teddy_bear hair_drier toothbrush",
}
"""Super-category of COCO 2017 -> its classes, `_` for a space."""
NAMES = tuple(f"{first}/{second}" for first in SUPERCATEGORIES for second in SUPERCATEGORIES)


@cache
def supercategory(name: str) -> str:
    """The super-category of a COCO class; empty for any other name.

    >>> supercategory("hot dog"), supercategory("unicorn")
    ('food', '')
    """
    wanted = name.lower().replace(" ", "_")
    return next((kind for kind, names in SUPERCATEGORIES.items() if wanted in names.split()), "")


def category_pairs(outcomes: Sequence[Outcome]) -> dict[tuple[str, str], list[float]]:
    """Super-categories of the first and second thing -> the judge's numbers, in [0, 1].

    Without a number, an image counts 1 where the stated relation holds and else 0; one that can't
    be judged is left out, as is one of things that COCO doesn't have.
    """
    numbers: dict[tuple[str, str], list[float]] = {}
    for outcome in outcomes:
        pair, number = _pair(outcome), _number(outcome)
        if pair is not None and number is not None:
            numbers.setdefault(pair, []).append(number)
    return numbers


def find(name: str, scope: ScoreInputs) -> Score | None:
    """Computes the mean of one of `NAMES`, the super-categories of the first and second thing; None
    without any image."""
    (cell,) = scope.cells
    first, _, second = name.partition("/")
    kept = [outcome for outcome in cell.outcomes if _pair(outcome) == (first, second)]
    values = [(outcome, _number(outcome)) for outcome in kept]
    judged = [(outcome, value) for outcome, value in values if value is not None]
    if not judged:
        return None
    return mean_score(
        name,
        np.array([value for _, value in judged]),
        [outcome for outcome, _ in judged],
        excluded={"error": len(values) - len(judged)} if len(values) > len(judged) else {},
    )


def _pair(outcome: Outcome) -> tuple[str, str] | None:
    """Super-categories of the two things of a verdict by rule, in the order of its relation."""
    try:
        (things,) = (json.loads(verdict.raw)["found"] for verdict in _verdicts(outcome))
        first, second = map(supercategory, things)
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    return (first, second) if first and second else None


def _number(outcome: Outcome) -> float | None:
    """The number of the outcome's verdict; None where it failed, and for an image that could not be
    made, which has none."""
    verdict = next(iter(_verdicts(outcome)), None)
    if verdict is None or verdict.failed:
        return None
    return float(verdict.label == "holds") if verdict.number is None else verdict.number


def _verdicts(outcome: Outcome) -> list[Verdict]:
    return [verdict for (_, probe), verdict in outcome.verdicts.items() if probe == ORIGINAL]
