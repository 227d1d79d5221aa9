"""`boxes:`: which of two things is drawn at all (PSE, Figure 13), how much layouts vary (Table 18),
and how far apart things are (Figure 20), by the boxes of a judge by rule.

A rule's verdict lists the boxes of both things, the first-mentioned first. Where the first one is
found more often, order of mention decides what is drawn, before it decides where.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from ....images import ImageError, opened
from ...core import FAILURES, Outcome, Score, Verdict, count_excluded
from ...engine.run import Run
from ...geometry.boxes import DISTANCES, Box, intersection
from ...stats.estimate import PIXELS
from ...suites import open_suite
from ...suites.scoring import mean_score
from .scope import LabeledRun, ScoreInputs

ORIENTATION = 0x0112
"""EXIF's tag of how an image is turned."""
DISTANCE = "distance"
NAMES = (
    *("first", "second", "gap"),
    *("center:first", "center:second", "size:first", "size:second"),
    *(DISTANCE, *(f"{DISTANCE}:{relation}" for relation in DISTANCES)),
)


def find(name: str, scope: ScoreInputs) -> Score | None:
    """Computes the percentage of images in which the first-mentioned thing was found, the second
    one, or the first less the second; of `center:` and `size:`, a variance of its best boxes; or of
    `distance`, the pixels between the centers of both best boxes.

    None if no verdict lists boxes, for a variance no prompt has two images with one, and for a
    distance no image has both.
    """
    (cell,) = scope.cells
    if name.startswith(DISTANCE):
        return _mean_distance(name, cell)
    if ":" in name:
        return _mean_variance(name, cell)
    verdicts = [outcome.verdict(question_of(cell)) for outcome in cell.outcomes]
    values = np.array([_value(name, verdict) for verdict in verdicts], dtype=float)
    if np.isnan(values).all():
        return None
    labels = [verdict.label for verdict in verdicts]
    excluded = count_excluded(labels, set(labels) - set(FAILURES))
    ends = (-1, 1) if name == "gap" else (0, 1)
    return mean_score(f"boxes:{name}", values, cell.outcomes, ends=ends, excluded=excluded)


def question_of(cell: LabeledRun) -> str:
    """The question whose verdicts list boxes."""
    return next(iter(open_suite(cell.suite).worths))


def boxes_of(verdict: Verdict) -> list[list[Box]] | None:
    """Boxes of both things of a verdict by rule, best first; None for any other verdict."""
    if verdict.failed:
        return None
    try:
        found: dict[str, Any] = json.loads(verdict.raw)["found"]
        groups = [[Box(*row[1:5]) for row in rows] for rows in found.values()]
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    return groups if len(groups) == 2 else None


def overlaps(verdict: Verdict) -> bool:
    """Whether the best boxes of both things overlap."""
    groups = boxes_of(verdict)
    return bool(groups and all(groups) and intersection(groups[0][0], groups[1][0]) > 0)


def _value(name: str, verdict: Verdict) -> float:
    groups = boxes_of(verdict)
    if groups is None:
        return math.nan
    first, second = (float(bool(group)) for group in groups)
    return {"first": first, "second": second, "gap": first - second}[name]


def _mean_distance(name: str, cell: LabeledRun) -> Score | None:
    """Mean Euclidean distance of the centers of both best boxes, in pixels, of all images or of
    those that state `near` or `far`."""
    _, _, relation = name.partition(":")
    stated = [o for o in cell.outcomes if not relation or o.case.groups.get("relation") == relation]
    question, sizes = question_of(cell), _image_sizes(cell)
    values = np.full(len(stated), math.nan)
    excluded: Counter[str] = Counter()
    for number, outcome in enumerate(stated):
        verdict = outcome.verdict(question)
        groups = boxes_of(verdict)
        if groups and all(groups) and outcome.case.id in sizes:
            values[number] = math.dist(groups[0][0].center, groups[1][0].center)
        elif groups and not all(groups):
            excluded["fewer than 2 boxes"] += 1
        else:
            excluded[verdict.label if verdict.failed else "no boxes"] += 1
    if np.isnan(values).all():
        return None
    longest = max(math.hypot(*sizes[o.case.id]) for o in stated if o.case.id in sizes)
    ends = (0, longest)
    return mean_score(f"boxes:{name}", values, stated, ends=ends, unit=PIXELS, excluded=excluded)


def _mean_variance(name: str, cell: LabeledRun) -> Score | None:
    """Mean over prompts of the variance over a prompt's images, in shares of their sides.

    A variance is the unbiased one of x plus that of y, of a box's center or of its width and
    height.
    """
    quantity, _, thing = name.partition(":")
    which, question = ("first", "second").index(thing), question_of(cell)
    outcomes_by_prompt: dict[str, list[Outcome]] = {}
    for outcome in cell.outcomes:
        outcomes_by_prompt.setdefault(outcome.case.item, []).append(outcome)
    sizes = _image_sizes(cell)
    values = []
    for outcomes in outcomes_by_prompt.values():
        places = [
            _place(quantity, groups[which][0], sizes[outcome.case.id])
            for outcome in outcomes
            if (groups := boxes_of(outcome.verdict(question)))
            and groups[which]
            and outcome.case.id in sizes
        ]
        values.append(np.var(places, axis=0, ddof=1).sum() if len(places) > 1 else math.nan)
    variances = np.array(values, dtype=float)
    if np.isnan(variances).all():
        return None
    few = int(np.isnan(variances).sum())
    firsts = [outcomes[0] for outcomes in outcomes_by_prompt.values()]
    excluded = {"fewer than 2 boxes": few} if few else {}
    return mean_score(f"boxes:{name}", variances, firsts, unit="1", excluded=excluded)


def _place(quantity: str, box: Box, size: tuple[int, int]) -> tuple[float, float]:
    """Center of a box, or its width and height, as shares of an image's width and height."""
    if quantity == "center":
        x, y = box.center
    else:
        x, y = box.x2 - box.x1, box.y2 - box.y1
    return x / size[0], y / size[1]


def _image_sizes(cell: LabeledRun) -> dict[str, tuple[int, int]]:
    """Case -> width and height of its image in pixels; without images that can't be read."""
    run = Run.open(Path(cell.judged.result.folder))
    sizes = {}
    for outcome in cell.outcomes:
        image = run.images().get(outcome.case.id)
        if image is None or image.status != "made":
            continue
        try:
            with opened(run.image_path(image)) as picture:
                turned = picture.getexif().get(ORIENTATION, 1) >= 5  # by 90 degrees
                sizes[outcome.case.id] = picture.size[::-1] if turned else picture.size
        except ImageError:
            continue
    return sizes
