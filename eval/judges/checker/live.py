"""The checker on images: detect, perturb, ask the second detector, decide."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from PIL.Image import Image

from ...detectors import Detector, Request
from ...rules.boxes import Relation, Size
from ...rules.checker.decide import CheckedImage, CheckVerdict, check
from ...rules.checker.recorded import CheckerSample, Components, Detected, Detectors, Found
from ...rules.checker.rules import CheckerRules
from .stability import as_found, measure


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


def check_pictures(
    pictures: Iterable[ImageToCheck],
    rules: CheckerRules,
    primary: Detector,
    secondary: Detector | None = None,
) -> Iterator[CheckedImage]:
    """One verdict an image; its sample holds what was detected and measured.

    The second detector is asked only where the first found both objects, as published.
    """
    for picture in pictures:
        request = Request(picture.image, (picture.object_a, picture.object_b), picture.sample_id)
        first = _detected(primary, request)
        sample = CheckerSample(
            sample_id=picture.sample_id, prompt_id=picture.prompt_id, relation=picture.relation,
            object_a=picture.object_a, object_b=picture.object_b,
            width=picture.image.width, height=picture.image.height,
            detectors=Detectors(primary=first),
        )  # fmt: skip
        size = Size(*picture.image.size)
        stability = measure(picture.image, sample, primary, rules)
        found = check(sample, size, rules, stability)
        if secondary is not None and found.delta is not None and found.parts.detection > 0:
            both = Detectors(primary=first, secondary=_detected(secondary, request))
            again = sample.model_copy(update={"detectors": both})
            found = check(again, size, rules, partial(_known, found.parts.stability))
        yield found


def _known(stability: float, verdict: CheckVerdict, a: Found, b: Found) -> float:
    return stability


def _detected(detector: Detector, request: Request) -> Detected:
    (found,) = detector.detect([request])
    return Detected(type=detector.identity()["kind"], detections=as_found(found))


def recorded_row(found: CheckedImage) -> dict[str, Any]:
    """A verdict with everything that `counterprior check` needs to give it again."""
    sample = found.sample.model_copy(
        update={
            "verdict_raw": found.verdict,
            "verdict_reason": found.reason,
            "conf_components": Components(
                stability=found.parts.stability, agreement=found.parts.agreement
            ),
        }
    )
    return found.to_row() | {
        "detectors": sample.detectors.model_dump(mode="json", exclude_none=True),
        "width": sample.width,
        "height": sample.height,
    }
