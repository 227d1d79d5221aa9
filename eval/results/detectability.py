"""Detectors on composed images of known truth, and scores corrected for what they miss."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from ...errors import DataError
from ...images import ImageError, opened
from ...parsing import parse_as, read_json
from ...storage import write_whole
from ..core import ALL, FAILURES, Outcome, Score, Verdict, count_excluded
from ..engine.run import Run
from ..geometry.boxes import Box
from ..stats.bounds import bounded_interval
from ..stats.clusters import cluster_interval
from ..stats.detectability import (
    DetectionRates,
    Looks,
    SeenPairs,
    corrected_rates,
    detection_rates,
)
from ..stats.estimate import Estimate
from ..stats.intervals import Interval
from ..suites.columns import cluster_numbers
from ..suites.scoring import in_groups
from ..suites.spatial import HOLDS, IF_SEEN, QUESTION

DETECTABILITY = "detectability.json"
"""File of what judges saw on composed images, in the folder of their run on them."""
SIZES = (0.01, 0.04, 0.16)
"""Areas, shares of the image's, at which rates are printed: sides of a tenth, a fifth and two
fifths of the image's."""


@dataclass(frozen=True)
class DetectorCheck:
    """One judge that detects, on composed images; the lists have an entry for each look."""

    judge: str
    """Short name of the judge."""
    comparable: dict[str, str]
    """Identity and prompts, which identify the judge in other runs."""
    images: int
    """Composed images that it judged."""
    failed: int
    """Composed images on which it failed."""
    classes: list[str]
    """Class that it looked for."""
    cutouts: list[str]
    """What shows it; empty if the class is not there."""
    sizes: list[float | None]
    """Area of the box, share of the image's: of the thing, else of its false detection; None
    without one."""
    seen: list[bool]
    """Whether it was detected."""

    @property
    def looks(self) -> Looks:
        """The same as arrays."""
        return Looks(
            np.array(self.classes, dtype=str),
            np.array(self.cutouts, dtype=str),
            np.array([math.nan if size is None else size for size in self.sizes]),
            np.array([bool(cutout) for cutout in self.cutouts]),
            np.array(self.seen, dtype=bool),
        )


@dataclass(frozen=True)
class ClassRate:
    """Detection of one class, or of all."""

    name: str
    """Class; `all` for all."""
    there: int
    """Looks at images that show it."""
    cutouts: int
    """Cut-outs that show it."""
    missed: int
    """Looks at these images in which it was not seen."""
    absent: int
    """Looks at images that don't show it."""
    invented: int
    """Looks at these images in which it was seen."""
    missing_at: tuple[Estimate, ...]
    """P(missed | there) at each area of `SIZES`, in percent."""


def class_rates(check: DetectorCheck) -> list[ClassRate]:
    """The rates of all classes together, then of each, the most missed first.

    Raises DataError for a check in which nothing was there.
    """
    rates, looks = fitted(check), check.looks
    lines = []
    for name in (ALL, *sorted(set(check.classes))):
        of_class = np.full(len(looks.there), True) if name == ALL else looks.classes == name
        there = of_class & looks.there
        names = {*zip(looks.classes[there].tolist(), looks.cutouts[there].tolist(), strict=True)}
        classes = rates.classes if name == ALL else [name]
        lines.append(
            ClassRate(
                name=name,
                there=int(there.sum()),
                cutouts=len(names),
                missed=int((there & ~looks.seen).sum()),
                absent=int((of_class & ~looks.there).sum()),
                invented=int((of_class & ~looks.there & looks.seen).sum()),
                missing_at=tuple(_missing(rates, classes, size) for size in SIZES),
            )
        )
    return [lines[0], *sorted(lines[1:], key=lambda line: -line.missing_at[1].value)]


def _missing(rates: DetectionRates, classes: Sequence[str], size: float) -> Estimate:
    rate = rates.rate(classes, size)
    low, high = rate.interval
    return Estimate(1 - rate.value, Interval(1 - high, 1 - low)).scaled(100)


def fitted(check: DetectorCheck) -> DetectionRates:
    """The detection rates of a judge. Raises DataError for a check in which nothing was there."""
    if not any(check.cutouts):
        raise DataError(
            f"{check.judge}: no composed image that it judged shows anything", code="too-few-items"
        )
    return detection_rates(check.looks)


def detector_check(
    judge: str,
    comparable: Mapping[str, str],
    outcomes: Sequence[Outcome],
    things: Mapping[str, Mapping[str, tuple[str, float]]],
    run: Run,
) -> DetectorCheck:
    """What a judge saw on the composed images of a run.

    things: case -> class that is there -> its cut-out and area. Raises DataError for a judge that
    records no detections.
    """
    check = DetectorCheck(judge, dict(comparable), 0, 0, [], [], [], [])
    failed = images = 0
    for outcome in outcomes:
        if outcome.image != "made":
            continue
        verdict = outcome.verdict(QUESTION)
        if verdict.failed:
            failed += 1
            continue
        images += 1
        for name, box in seen_boxes(verdict).items():
            cutout, size = things[outcome.case.id].get(name, ("", None))
            if not cutout and box is not None:
                size = _area(run, outcome, box)
            check.classes.append(name)
            check.cutouts.append(cutout)
            check.sizes.append(size)
            check.seen.append(box is not None)
    return DetectorCheck(**vars(check) | {"images": images, "failed": failed})


def seen_boxes(verdict: Verdict) -> dict[str, Box | None]:
    """Thing that was looked for -> its best detection, None if the judge missed it.

    Raises DataError for a verdict of a judge that records no detections.
    """
    try:
        evidence = json.loads(verdict.raw)
        boxes = {
            name: [Box(*(float(side) for side in row[1:5])) for row in rows]
            for name, rows in evidence["found"].items()
        }
        reason = str(evidence.get("why", ""))
    except (KeyError, TypeError, ValueError, AttributeError):
        raise DataError(
            "the judge records no detections: only judges by rule do, e.g. `checker:DETECTOR`",
            code="unsupported",
        ) from None
    # The checker also takes things for missing that are unsure or small.
    _, is_missing, listed = reason.rpartition(", confidence")[0].partition("UNDECIDABLE missing: ")
    absent = listed.split(", ") if is_missing else []
    return {
        name: of_name[0] if of_name and name not in absent else None
        for name, of_name in boxes.items()
    }


def _area(run: Run, outcome: Outcome, box: Box) -> float:
    """Area of a box in the image of an outcome, share of the image's.

    Raises DataError for an image that is gone.
    """
    path = run.image_path(run.images()[outcome.case.id])
    try:
        with opened(path) as image:
            width, height = image.size
    except ImageError as error:
        raise DataError(f"{path} {error}", code=error.code) from None
    return min(1.0, max(box.area, 1.0) / (width * height))


def write_detector_checks(root: Path, checks: Sequence[DetectorCheck]) -> None:
    """Writes the checks of all judges of a run on composed images into its folder."""
    write_whole(root / DETECTABILITY, json.dumps([asdict(check) for check in checks]) + "\n")


def read_detector_check(root: Path, comparable: Mapping[str, str]) -> DetectorCheck:
    """The check of a judge in a folder of `judge-check`.

    Raises DataError for a folder without checks, a file that can't be used, and a judge that was
    not checked.
    """
    path = root / DETECTABILITY
    if not path.exists():
        raise DataError(
            f"{path} does not exist",
            f"create it with `counterprior judge-check --suite {root.name}`",
            code="no-such-file",
        )
    records = read_json(path)
    if not isinstance(records, list):
        raise DataError(f"{path}: is not a list of checked judges", code="bad-format")
    checks = [
        parse_as(DetectorCheck, record, f"{path}, judge {number}")
        for number, record in enumerate(records, 1)
    ]
    for check in checks:
        lengths = {len(check.classes), len(check.cutouts), len(check.sizes), len(check.seen)}
        if len(lengths) > 1:
            raise DataError(f"{path}: lists of {check.judge} differ in length", code="wrong-count")
    if match := next((c for c in checks if c.comparable == dict(comparable)), None):
        return match
    listed = ", ".join(check.judge for check in checks) or "none"
    raise DataError(
        f"{path}: the judge was not checked on composed images with these settings (checked: "
        f"{listed})",
        "run `counterprior judge-check` with it",
        code="judge-unchecked",
    )


def corrected_if_seen(
    outcomes: Sequence[Outcome], check: DetectorCheck, run: Run
) -> tuple[list[Score], str]:
    """Coverage, pass rate and accuracy as a detector without misses would see them, and a note.

    Bounds are those without any assumption about what was missed.
    Raises DataError as `seen_boxes`, and for an image that is gone.
    """
    rates = fitted(check)
    judged = [o for o in outcomes if o.label(QUESTION) not in FAILURES]
    areas = {
        o.case.id: {
            name: math.nan if box is None else _area(run, o, box)
            for name, box in seen_boxes(o.verdict(QUESTION)).items()
        }
        for o in judged
    }

    def scores(members: Sequence[Outcome], group: str) -> Iterator[Score]:
        answered = [o for o in members if o.case.id in areas]
        if not answered:
            return
        failed = count_excluded((o.label(QUESTION) for o in members if o.case.id not in areas), ())
        first, second = zip(*(areas[o.case.id].items() for o in answered), strict=True)
        labels = [o.label(QUESTION) for o in answered]
        pairs = SeenPairs(
            classes=([name for name, _ in first], [name for name, _ in second]),
            sizes=(np.array([area for _, area in first]), np.array([area for _, area in second])),
            decided=np.array([label in HOLDS.values for label in labels]),
            passed=np.array([label == "holds" for label in labels]),
            clusters=cluster_numbers(answered),
        )
        estimates = corrected_rates(pairs, rates)
        for name, estimate, limits in zip(IF_SEEN, estimates, _bounds(pairs), strict=True):
            missed = int((~pairs.both).sum())
            yield Score.of(
                estimate.scaled(100),
                name=name,
                unit="%",
                group=group,
                excluded=failed | ({"not_seen": missed} if missed else {}),
                bounds=limits.scaled(100),
            )

    known = set(rates.classes)
    unknown = sorted({name for of_image in areas.values() for name in of_image} - known)
    note = (
        f"scores `..._if_seen`: detection rates of {check.judge} on {check.images:,} composed "
        f"images of {len(known):,} classes"
    )
    if unknown:
        listed = ", ".join(unknown[:3]) + (", ..." if len(unknown) > 3 else "")
        note += f"; {len(unknown):,} classes without any ({listed}) have the rate of all others"
    return in_groups(outcomes, scores), note


def _bounds(pairs: SeenPairs) -> tuple[Interval, Interval, Interval]:
    """Intervals of the shares decided, passed, and passed of the decided, from nothing was there in
    the images in which a thing was not seen, to both were and the relation held."""
    missed, decided, passed = ~pairs.both, pairs.decided, pairs.passed
    could_be_decided = np.where(decided | missed, 0.0, np.nan)
    ends = [
        (decided, decided | missed),
        (passed, passed | missed),
        (passed + could_be_decided, (passed | missed) + could_be_decided),
    ]
    worst_and_best = [
        [cluster_interval(values.astype(float), pairs.clusters, (0, 1))[0] for values in of_score]
        for of_score in ends
    ]
    decided_bounds, passed_bounds, accuracy_bounds = (
        bounded_interval(worst, best) for worst, best in worst_and_best
    )
    return decided_bounds, passed_bounds, accuracy_bounds
