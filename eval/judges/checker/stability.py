"""The four perturbations, and how far a verdict holds under them."""

from __future__ import annotations

from PIL import ImageEnhance, ImageFilter
from PIL.Image import Image, Resampling

from ...detectors import Detection, Detector, Request
from ...rules.boxes import Size, iou, offset
from ...rules.checker.decide import CheckVerdict, StabilityMeasure, best, holds
from ...rules.checker.recorded import CheckerSample, Found
from ...rules.checker.rules import CheckerRules, Perturbation


def perturbed(image: Image, how: Perturbation) -> Image:
    """The image changed, of the same size. A parameter that is not set is the published one."""
    if how.type == "brightness":
        return ImageEnhance.Brightness(image).enhance(how.factor or 1.0)
    if how.type == "gaussian_blur":
        return image.filter(ImageFilter.GaussianBlur(radius=how.sigma or 1.0))
    scale = how.scale or 0.9
    small = (max(1, int(image.width * scale)), max(1, int(image.height * scale)))
    return image.resize(small, Resampling.LANCZOS).resize(image.size, Resampling.LANCZOS)


def as_found(detections: list[Detection]) -> tuple[Found, ...]:
    """Detections as the checker reads them."""
    return tuple(Found(label=d.label, score=d.score, box_xyxy=d.box) for d in detections)


def measure(
    image: Image, sample: CheckerSample, detector: Detector, rules: CheckerRules
) -> StabilityMeasure:
    """A function that measures the stability of a verdict on this image.

    Half of it is the share of perturbations under which the verdict stays (one that loses an object
    does not keep it), half the mean overlap of the boxes with those of the unchanged image, over
    the perturbations that find both. 0 where none does, 1 where nothing is tried.
    """
    size = Size(*image.size)
    labels = (sample.object_a, sample.object_b)

    def stability(verdict: CheckVerdict, a: Found, b: Found) -> float:
        tried = rules.stability.perturbations
        if not tried:
            return 1.0
        kept = 0
        overlaps: list[float] = []
        looks = detector.detect(
            [Request(perturbed(image, how), labels, sample.sample_id) for how in tried]
        )
        for look in map(as_found, looks):
            again = [best(look, label, rules.thresholds, size) for label in labels]
            if again[0] is None or again[1] is None:
                continue
            delta = offset(again[0].box_xyxy, again[1].box_xyxy, sample.relation, size)
            kept += holds(delta, sample.relation, rules.geometry.margin) == verdict
            overlaps += [iou(a.box_xyxy, again[0].box_xyxy), iou(b.box_xyxy, again[1].box_xyxy)]
        if not overlaps:
            return 0.0
        return 0.5 * kept / len(tried) + 0.5 * sum(overlaps) / len(overlaps)

    return stability
