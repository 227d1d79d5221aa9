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
        first = _detected(primary, request)
        sample = CheckerSample(
            sample_id=one.sample_id,
            prompt_id=one.prompt_id,
            relation=one.relation,
            object_a=one.object_a,
            object_b=one.object_b,
            width=size.width,
            height=size.height,
            detectors=Detectors(primary=first),
        )
        found = check(sample, size, rules, measure(one.image, sample, primary, rules))
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
