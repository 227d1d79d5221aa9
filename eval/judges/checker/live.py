"""The checker on images: detect, perturb, ask the second detector, decide."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from PIL import ImageEnhance, ImageFilter
from PIL.Image import Image, Resampling

from ...detectors import Detection, Detector, Request
from ...rules.boxes import Relation, Size, iou, offset
from ...rules.checker.decide import CheckedImage, CheckVerdict, StabilityMeasure, best, check, holds
from ...rules.checker.recorded import CheckerSample, Detected, Detectors, Found
from ...rules.checker.rules import CheckerRules, Perturbation


@dataclass(frozen=True)
class ImageToCheck:
    """An image and what its prompt says."""

    sample_id: str
    prompt_id: str
    relation: Relation
    object_a: str
    object_b: str
    image: Image
    """RGB."""


def check_images(
    images: Iterable[ImageToCheck],
    rules: CheckerRules,
    primary: Detector,
    secondary: Detector | None = None,
) -> Iterator[CheckedImage]:
    """One verdict per image; its sample holds what was detected and measured.

    The second detector is asked only where the first found both objects, as published.
    """
    for one in images:
        request = Request(one.image, (one.object_a, one.object_b), one.sample_id)
        size = Size(*one.image.size)
        said = {name: value for name, value in vars(one).items() if name != "image"}
        first = Detectors(primary=_detected(primary, request))
        sample = CheckerSample(**said, **size._asdict(), detectors=first)
        found = check(sample, size, rules, measure(one.image, sample, primary, rules))
        if secondary is not None and found.delta is not None and found.parts.detection > 0:
            both = first.model_copy(update={"secondary": _detected(secondary, request)})
            again = sample.model_copy(update={"detectors": both})
            stability = found.parts.stability
            found = check(again, size, rules, lambda *_, known=stability: known)
        yield found


def _detected(detector: Detector, request: Request) -> Detected:
    (found,) = detector.detect([request])
    return Detected(type=detector.identity()["kind"], detections=_as_found(found))


def _as_found(detections: list[Detection]) -> tuple[Found, ...]:
    return tuple(Found(label=d.label, score=d.score, box_xyxy=d.box) for d in detections)


def recorded_row(found: CheckedImage) -> dict[str, Any]:
    """A verdict with everything that `counterprior check` needs to give it again."""
    sample = found.sample
    return found.to_row() | {
        "detectors": sample.detectors.model_dump(mode="json", exclude_none=True),
        "width": sample.width,
        "height": sample.height,
    }


def perturbed(image: Image, how: Perturbation) -> Image:
    """The image changed, of the same size. A parameter that is not set is the published one."""
    if how.type == "brightness":
        return ImageEnhance.Brightness(image).enhance(how.factor or 1.0)
    if how.type == "gaussian_blur":
        return image.filter(ImageFilter.GaussianBlur(radius=how.sigma or 1.0))
    scale = how.scale or 0.9
    small = (max(1, int(image.width * scale)), max(1, int(image.height * scale)))
    return image.resize(small, Resampling.LANCZOS).resize(image.size, Resampling.LANCZOS)


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
        for look in map(_as_found, looks):
            again_a, again_b = (best(look, label, rules.thresholds, size) for label in labels)
            if again_a is None or again_b is None:
                continue
            delta = offset(again_a.box_xyxy, again_b.box_xyxy, sample.relation, size)
            kept += holds(delta, sample.relation, rules.geometry.margin) == verdict
            overlaps += [iou(a.box_xyxy, again_a.box_xyxy), iou(b.box_xyxy, again_b.box_xyxy)]
        if not overlaps:
            return 0.0
        return 0.5 * kept / len(tried) + 0.5 * sum(overlaps) / len(overlaps)

    return stability
