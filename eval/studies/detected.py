"""What a detector says of labeled real images, as published scores count it, and what is left of it
when its errors are taken out.

`counterprior spatial detect` records the detections; no image is needed here. Of each generator
the errors are those on the images of all others, so that its own labels are not used, and the
readers' number, which stands beside it, tells whether a correction from elsewhere can be believed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from PIL import Image

from ...errors import DataError
from ...parsing import RowError, read_rows
from ...readings import UNSETTLED
from ...schema import RealGold
from ..core import ALL, INVALID, Case, Outcome, Score
from ..geometry import pse, visor
from ..geometry.boxes import Size, offset
from ..geometry.checker.decide import CheckedImage, best, check
from ..geometry.checker.recorded import CheckerSample, Found, read_samples
from ..geometry.checker.rules import CheckerRules
from ..geometry.detections import Detection, Measurement, Sighting
from ..judges.checker.run import PUBLISHED_SIZE
from ..stats.comparison import sign_flip
from ..stats.correction import by_error_rates, confusion_of
from ..stats.estimate import Estimate
from ..suites.columns import cluster_numbers, pair_numbers
from ..suites.real import BOTH, RealGoldSuite, condition_of
from ..suites.scoring import mean_score, paired_difference
from .recipes import find_layout

VERTICAL, HORIZONTAL = ("above", "below"), ("left_of", "right_of")
"""Relations of prompts that say nothing of the other axis."""
CORRECTED = "_by_gold"
"""Ends the name of a score that is corrected by labels, as in `score --gold`."""
PAPER = "pse-4"
"""Recipe with the published numbers of these generators."""
PRINTED: Mapping[str, str] = {
    "glide": "GLIDE",
    "dallemini": "DALLE-mini",
    "dallev2": "DALLE-v2",
    "stable_diffusion": "SD 1.4",
}
"""Generator of the published images -> its line there."""
PUBLISHED: Mapping[str, str] = {
    "published_both": "OA",
    "published_uncond": "uncond",
    "published_cond": "cond",
}
"""Score -> its column there."""
_PSE_PAPER = "PSE's Table 4, of all 25,280 prompts, by OWL-ViT"
MEANINGS = {
    "published_both": f"OA in {_PSE_PAPER}.",
    "detected_both": "Share of images in which the detector finds both things: VISOR's OA.",
    "detected_both_by_gold": "The same, corrected by the readers' labels of the other generators' "
    "images; compare `both_there`.",
    "found_if_both": "`detected_both` of images that show both things, by the readers.",
    "found_if_not_both": "`detected_both` of all other images.",
    "published_uncond": f"uncond in {_PSE_PAPER}.",
    "visor_uncond": "Share of all images in which the stated relation holds by VISOR's rule, its "
    "uncond.",
    "visor_uncond_by_gold": "The same, corrected; compare `holds_unconditional`.",
    "published_cond": f"cond in {_PSE_PAPER}.",
    "visor_cond": "The same of images in which the detector finds both things: VISOR's cond.",
    "visor_cond_best": "The same by the best box of each thing alone, one of which is always on "
    "the asked side or the other: 50 is chance.",
    "several_boxes": "Share of these images with more than one box of a thing.",
    "visor_cond_by_gold": "`visor_cond`, corrected; compare `holds_if_clear`.",
    "pse": "Mean PSE of the boxes, in percent; 0 where a thing is missing, as published.",
    "pse_half": "Share of images with a PSE of at least 0.5, the paper's PSE(0.5).",
    "pse_half_by_gold": "The same, corrected; compare `holds_unconditional`.",
    "checker_decides": "Share of images that SpatialBench-UC's checker decides: its coverage.",
    "checker_pass": "Share of all images that it passes.",
    "checker_pass_by_gold": "The same, corrected; compare `holds_unconditional`.",
    "checker_pass_decided": "Share that it passes of those that it decides.",
    "detected_first": "Share of images in which the detector finds what the prompt mentions first.",
    "detected_second": "Share in which it finds the other one.",
    "detected_more_often": "Difference of these two, in points of percent; p by flipping the signs "
    "of pairs of objects.",
    "detected_more_often_by_gold": "The same, corrected; compare `first_more_often`.",
    "detected_left": "Of prompts that say only above or below: share of images in which the box of "
    "the first-mentioned is further left, of those in which one is by a tenth of the width. 50 "
    "without an effect; p by flipping the signs of pairs.",
    "detected_left_by_gold": "The same, corrected; compare `first_left`.",
}
"""Score -> what it is."""
TABLES = {
    "by a detector: presence": (
        "published_both",
        "detected_both",
        "detected_both_by_gold",
        "found_if_both",
        "found_if_not_both",
    ),
    "by a detector: VISOR": tuple(
        name for name in MEANINGS if "_uncond" in name or "_cond" in name or name == "several_boxes"
    ),
    "by a detector: PSE and checker": tuple(
        name for name in MEANINGS if name.startswith(("pse", "checker"))
    ),
    "by a detector: order": tuple(
        name
        for name in MEANINGS
        if name.startswith("detected_") and not name.startswith("detected_both")
    ),
}
"""Title of a table -> its scores."""
_ORDER = {"A": 1.0, "B": 0.0, "none": math.nan}
_HOLDS = {"holds": 1.0, "opposite": 0.0, INVALID: 0.0}
_HOLDS_IF_VALID = _HOLDS | {INVALID: math.nan}
_THERE = {"yes": 1.0, "no": 0.0}
_MORE_OFTEN = {"first": 1.0, "second": -1.0, "both": 0.0, "none": 0.0}


@dataclass(frozen=True)
class ImageDetections:
    """A labeled image with what a detector found in it."""

    row: RealGold
    sample: CheckerSample
    size: Size
    rules: CheckerRules

    @cached_property
    def visor(self) -> Measurement:
        """The stated relation by VISOR's rule."""
        return visor.measure(self._sighting, self.sample.relation, "paper")

    @property
    def visor_best(self) -> float:
        """1 or 0, by the best box of each thing alone; NaN without both."""
        if not all(self.there):
            return math.nan
        a, b = (found[:1] for found in (self._sighting.a, self._sighting.b))
        sighting = replace(self._sighting, a=a, b=b)
        return float(visor.measure(sighting, self.sample.relation, "paper").holds is True)

    @property
    def has_several(self) -> float:
        """1 for more than one box of a thing, else 0; NaN without both."""
        if not all(self.there):
            return math.nan
        return float(len(self._sighting.a) > 1 or len(self._sighting.b) > 1)

    @cached_property
    def pse(self) -> Measurement:
        """The same by PSE; boxes stand for masks that the detector lacks."""
        return pse.measure(self._sighting, self.sample.relation, "paper")

    @cached_property
    def checked(self) -> CheckedImage:
        """The same by the checker."""
        return check(self.sample, self.size, self.rules)

    @property
    def further_left(self) -> str:
        """A, B, or none: by the checker's choice of boxes and its margin."""
        limits = self.rules.thresholds
        a, b = (best(self._found, name, limits, self.size) for name in self._names)
        if a is None or b is None:
            return "none"
        across = offset(a.box_xyxy, b.box_xyxy, "left_of", self.size)
        if abs(across) <= self.rules.geometry.margin:
            return "none"
        return "A" if across < 0 else "B"

    @property
    def there(self) -> tuple[bool, bool]:
        """Whether each thing was found."""
        return bool(self._sighting.a), bool(self._sighting.b)

    @property
    def _found(self) -> tuple[Found, ...]:
        return self.sample.detectors.primary.detections

    @property
    def _names(self) -> tuple[str, str]:
        return self.sample.object_a, self.sample.object_b

    @cached_property
    def _sighting(self) -> Sighting:
        a, b = (
            [
                Detection(found.label, found.score, found.box_xyxy)
                for found in self._found
                if found.names(name)
            ]
            for name in self._names
        )
        return Sighting(Image.new("1", self.size), a, b, names=self._names)


def read_detections(path: Path, labeled: Sequence[RealGold]) -> list[ImageDetections]:
    """The detections of all labeled images, in their order.

    Raises RowError for a row that does not fit, that has another relation or other things than the
    labels, or is of another file of that name; DataError for an image without detections.
    """
    rows = {row.image_file: row for row in labeled}
    digests = {row.get("sample_id"): row.get("image_sha256", "") for _, row in read_rows(path)}
    rules = CheckerRules()
    searched = {}
    for sample, size in read_samples(path, PUBLISHED_SIZE):
        row = rows.get(sample.sample_id)
        if row is None:
            continue
        place = f"{path}: sample {sample.sample_id}"
        stated = sample.object_a, sample.relation, sample.object_b
        if stated != (row.object_a, row.relation, row.object_b):
            raise RowError(
                f"{place}: relation: {' '.join(stated)!r} is not what the prompt says, "
                f"{row.prompt!r}",
                code="different-rows",
            )
        if digests[sample.sample_id] not in ("", row.image_sha256):
            raise RowError(
                f"{place}: image_sha256: the labels are of another file of this name",
                code="changed-file",
            )
        searched[sample.sample_id] = ImageDetections(row, sample, size, rules)
    if lacking := [name for name in rows if name not in searched]:
        raise DataError(
            f"{path}: has no detections of {len(lacking):,} of {len(rows):,} labeled images, e.g. "
            f"{lacking[0]}",
            "record them with `counterprior spatial detect`, with the image's file as sample_id",
            code="different-rows",
        )
    return [searched[name] for name in rows]


def scores_of(searched: Sequence[ImageDetections]) -> Iterator[Score]:
    """The scores of `MEANINGS` over all images and for each generator.

    Over all images nothing is corrected: no images are left from which to know the errors.
    """
    yield from _plain(searched, ALL)
    for model in sorted({image.row.model for image in searched} - {""}):
        group = f"model={model}"
        own = [image for image in searched if image.row.model == model]
        others = [image for image in searched if image.row.model != model]
        yield from _published(model, group)
        yield from _plain(own, group)
        if others:
            yield from _corrected(own, others, group)


def outcomes_of(rows: Sequence[RealGold]) -> list[Outcome]:
    """An outcome without verdicts of each row, for the clusters of its scores."""
    suite = RealGoldSuite()
    cases: list[Case] = [next(suite.cases(row, 1)) for row in rows]
    return [Outcome(case) for case in cases]


def stated_label(row: RealGold) -> str:
    """Whether the stated relation holds, its opposite, or neither, by the readers."""
    first = row.further_left if row.relation in HORIZONTAL else row.higher
    if first == UNSETTLED:
        return UNSETTLED
    if first not in ("A", "B"):
        return INVALID
    return "holds" if (first == "A") == (row.relation in ("left_of", "above")) else "opposite"


def _published(model: str, group: str) -> Iterator[Score]:
    layout = find_layout(PAPER)
    if layout.paper is None or model not in PRINTED:
        return
    values = layout.paper.lines[PRINTED[model]].values
    assert isinstance(values, tuple)
    by_label = dict(zip((column.label for column in layout.columns), values, strict=True))
    for name, label in PUBLISHED.items():
        value = by_label[label]
        yield Score(math.nan if value is None else value, name=name, unit="%", group=group)


def _plain(images: Sequence[ImageDetections], group: str) -> Iterator[Score]:
    outcomes = outcomes_of([image.row for image in images])

    def share(name: str, value: Callable[[ImageDetections], float], reason: str = "") -> Score:
        values = np.array([value(image) for image in images], dtype=float)
        left_out = int(np.isnan(values).sum())
        excluded = {reason: left_out} if left_out else {}
        return mean_score(name, values, outcomes, group=group, excluded=excluded)

    yield share("detected_both", lambda image: float(all(image.there)))
    yield share("found_if_both", lambda i: _found(i, "yes"), "other_images")
    yield share("found_if_not_both", lambda i: _found(i, "no"), "other_images")
    yield share("visor_uncond", lambda image: float(image.visor.holds is True))
    yield share("visor_cond", lambda image: _worth(image.visor), "not_both_found")
    yield share("visor_cond_best", lambda image: image.visor_best, "not_both_found")
    yield share("several_boxes", lambda image: image.has_several, "not_both_found")
    yield share("pse", lambda image: image.pse.number)
    yield share("pse_half", lambda image: float(image.pse.holds is True))
    yield share("checker_decides", lambda i: float(i.checked.verdict != "UNDECIDABLE"))
    yield share("checker_pass", lambda image: float(image.checked.verdict == "PASS"))
    yield share(
        "checker_pass_decided", lambda image: _worth(image.checked.measurement()), "undecided"
    )
    yield share("detected_first", lambda image: float(image.there[0]))
    yield share("detected_second", lambda image: float(image.there[1]))
    there = np.array([image.there for image in images], dtype=float)
    score = paired_difference("detected_more_often", there, cluster_numbers(outcomes), group=group)
    test = sign_flip(there[:, 0] - there[:, 1], pair_numbers(outcomes))
    yield replace(score, p_value=test.p_value)
    yield _left(images, group)


def _found(image: ImageDetections, both_there: str) -> float:
    """Whether both things were found, of images of which the readers say `both_there`."""
    return float(all(image.there)) if _both(image) == both_there else math.nan


def _worth(measured: Measurement) -> float:
    return math.nan if measured.holds is None else float(measured.holds)


def _left(images: Sequence[ImageDetections], group: str) -> Score:
    asked = [image for image in images if image.row.relation in VERTICAL]
    labels = [image.further_left for image in asked]
    clear = [image.row for image, label in zip(asked, labels, strict=True) if label != "none"]
    values = np.array([_ORDER[label] for label in labels if label != "none"])
    kept = outcomes_of(clear)
    excluded = {"no_clear_order": len(asked) - len(clear)}
    score = mean_score("detected_left", values, kept, group=group, excluded=excluded)
    p_value = sign_flip(2 * values - 1, pair_numbers(kept)).p_value if clear else math.nan
    return replace(score, null=50.0, p_value=p_value)


_Labels = Callable[[ImageDetections], str]


def _corrected(
    own: Sequence[ImageDetections], others: Sequence[ImageDetections], group: str
) -> Iterator[Score]:
    """Scores by the detector's error rates on the images of other generators.

    For each: its name, what the detector says, what the readers say, and the worth of each label.
    """
    vertical = ([i for i in images if i.row.relation in VERTICAL] for images in (own, others))
    everywhere, undirected = (own, others), tuple(vertical)

    def stated(image: ImageDetections) -> str:
        return stated_label(image.row)

    def by_visor(image: ImageDetections) -> str:
        return _label(image.visor)

    rows: tuple[tuple[str, _Labels, _Labels, Mapping[str, float]], ...] = (
        ("detected_both", lambda i: _yes(all(i.there)), _both, _THERE),
        ("visor_uncond", by_visor, stated, _HOLDS),
        ("visor_cond", by_visor, stated, _HOLDS_IF_VALID),
        ("pse_half", lambda i: _label(i.pse), stated, _HOLDS),
        ("checker_pass", lambda i: _label(i.checked.measurement()), stated, _HOLDS),
        ("detected_more_often", lambda i: _which(*i.there), _which_by_readers, _MORE_OFTEN),
        ("detected_left", lambda i: i.further_left, _left_by_readers, _ORDER),
    )
    for name, says, truth, values in rows:
        asked, labeled = undirected if name == "detected_left" else everywhere
        classes = list(values)
        confusion = confusion_of(classes, ((says(i), truth(i), _things(i)) for i in labeled))
        estimate: Estimate = by_error_rates(
            [classes.index(says(image)) for image in asked],
            [_things(image) for image in asked],
            confusion,
            list(values.values()),
        ).scaled(100)
        null = 50.0 if name == "detected_left" else math.nan
        yield Score.of(estimate, name=f"{name}{CORRECTED}", unit="%", group=group, null=null)


def _things(image: ImageDetections) -> tuple[str, str]:
    """Both things, which come again in other pairs."""
    return image.row.object_a, image.row.object_b


def _label(measured: Measurement) -> str:
    return {True: "holds", False: "opposite", None: INVALID}[measured.holds]


def _yes(holds: bool) -> str:
    return "yes" if holds else "no"


def _both(image: ImageDetections) -> str:
    condition = condition_of(image.row)
    return UNSETTLED if condition == UNSETTLED else _yes(condition == BOTH)


def _which(first: bool, second: bool) -> str:
    return ("both" if second else "first") if first else ("second" if second else "none")


def _which_by_readers(image: ImageDetections) -> str:
    shown = (image.row.a_shown, image.row.b_shown)
    return UNSETTLED if UNSETTLED in shown else _which(*(seen == "there" for seen in shown))


def _left_by_readers(image: ImageDetections) -> str:
    left = image.row.further_left
    return "none" if left == "same" else left
