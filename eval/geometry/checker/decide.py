"""The rules in their order: missing, ambiguous, high overlap, near the boundary, unstable."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from ..boxes import FORWARD, SIDEWAYS, Relation, Size, iou, offset
from ..detections import Measurement
from .recorded import CheckerSample, Found
from .rules import CheckerRules, Thresholds, Weights

CheckVerdict = Literal["PASS", "FAIL", "UNDECIDABLE"]
REASONS = ("missing", "ambiguous", "high_overlap", "near_boundary", "unstable")
"""Why an image is UNDECIDABLE; the first that applies."""

SECONDARY_FAILED = "the second detector failed"
"""Words of a verdict that was reached without the second detector."""
_TINY = 1e-10
"""Added to every part of the confidence, so that one zero does not hide the others."""

StabilityMeasure = Callable[[CheckVerdict, Found, Found], float | None]
"""Measures the stability of a verdict on two detections; None if it was not measured."""


@dataclass(frozen=True)
class Parts:
    """The four factors of a confidence, each in [0, 1]."""

    detection: float = 0.0
    geometry: float = 0.0
    stability: float = 0.0
    agreement: float = 0.0


@dataclass(frozen=True)
class CheckedImage:
    """Verdict, reason and confidence of the checker for an image."""

    sample: CheckerSample
    margin: float
    """The margin it was decided with."""
    verdict: CheckVerdict = "UNDECIDABLE"
    """UNDECIDABLE if a rule abstains."""
    reason: str | None = None
    """Why it abstains, starting with one of `REASONS`; None if it decides."""
    confidence: float = 0.0
    """In [0, 1]; 0 where it abstains before the geometry."""
    parts: Parts = Parts()
    a: Found | None = None
    """The chosen detection of object a; None where either is missing."""
    b: Found | None = None
    delta: float | None = None
    """Signed distance of the centers, share of the image's side."""
    overlap: float | None = None
    """Intersection over union of the two boxes."""
    assumed: tuple[str, ...] = ()
    """Factors that were not measured and count as 1: `stability`, `agreement`."""

    @property
    def secondary_error(self) -> str:
        """Why the second detector failed; empty if it looked or was not asked."""
        secondary = self.sample.detectors.secondary
        return (secondary.error or "") if secondary else ""

    def measurement(self, digits: int = 4) -> Measurement:
        """The verdict as that of a judge; digits: decimals of the recorded confidence."""
        why = f"{self.verdict} {self.reason or ''}".strip()
        why += f", confidence {self.confidence:.{digits}f}"
        if self.secondary_error:
            why += f"; {SECONDARY_FAILED}, agreement 0.5: {self.secondary_error}"
        if self.verdict == "UNDECIDABLE":
            return Measurement(None, 0.0, why)
        passed = self.verdict == "PASS"
        # What is added to each part takes a perfect image a last digit beyond 1.
        return Measurement(passed, min(1.0, self.confidence) if passed else 0.0, why)

    def to_row(self) -> dict[str, Any]:
        """As the published `per_sample.jsonl` writes it, without the detections."""
        fields = ("sample_id", "prompt_id", "relation", "object_a", "object_b")
        return {
            **{name: getattr(self.sample, name) for name in fields},
            "verdict_raw": self.verdict,
            "verdict_reason": self.reason,
            "conf": self.confidence,
            "conf_components": asdict(self.parts),
            "selected": {
                "box_a_xyxy": list(self.a.box_xyxy) if self.a else None,
                "box_b_xyxy": list(self.b.box_xyxy) if self.b else None,
                "score_a": self.a.score if self.a else None,
                "score_b": self.b.score if self.b else None,
            },
            "geometry": {"delta": self.delta, "margin": self.margin, "iou_ab": self.overlap},
            "assumed": list(self.assumed),
        }


def best(detections: Sequence[Found], label: str, limits: Thresholds, size: Size) -> Found | None:
    """The surest detection of a label that is sure and large enough; of equals the first."""
    area = limits.min_area_fraction * (size.width * size.height)
    candidates = [d for d in _sure(detections, label, limits) if d.box_xyxy.area >= area]
    return max(candidates, key=lambda d: d.score, default=None)


def _sure(detections: Sequence[Found], label: str, limits: Thresholds) -> list[Found]:
    return [d for d in detections if d.names(label) and d.score >= limits.detection_score]


def _is_ambiguous(detections: Sequence[Found], label: str, limits: Thresholds) -> bool:
    """Whether the two surest detections of a label are close; here small ones count too."""
    scores = sorted((d.score for d in _sure(detections, label, limits)), reverse=True)
    return len(scores) > 1 and scores[0] - scores[1] < limits.ambiguity_delta


def holds(delta: float, relation: Relation, margin: float) -> CheckVerdict:
    """Whether a signed distance fulfils a relation; at the margin it decides nothing."""
    if abs(delta) <= margin:
        return "UNDECIDABLE"
    return "PASS" if (delta < 0) == (relation in FORWARD) else "FAIL"


def check(
    sample: CheckerSample,
    size: Size,
    rules: CheckerRules,
    stability: StabilityMeasure | None = None,
) -> CheckedImage:
    """Applies the rules to one image.

    stability: measures it on the image (see `judges.checker.run.measure`). Without it, the
        recorded stability counts, and 1 where none was recorded; `assumed` then says so. The same
        holds for agreement, which is 1 by definition where the rules name no second detector.
    """
    limits, margin = rules.thresholds, rules.geometry.margin
    primary = sample.detectors.primary.detections
    objects = (sample.object_a, sample.object_b)
    image = CheckedImage(sample, margin)
    a, b = (best(primary, label, limits, size) for label in objects)
    if a is None or b is None:
        absent = [label for label, chosen in zip(objects, (a, b), strict=True) if chosen is None]
        return replace(image, reason=f"missing: {', '.join(absent)}")
    image = replace(image, a=a, b=b)
    for label in objects:
        if _is_ambiguous(primary, label, limits):
            return replace(image, reason=f"ambiguous: multiple {label}")
    delta = offset(a.box_xyxy, b.box_xyxy, sample.relation, size)
    overlap = iou(a.box_xyxy, b.box_xyxy)
    image = replace(image, delta=delta, overlap=overlap)
    if sample.relation in SIDEWAYS and overlap > limits.max_overlap_iou:
        reason = f"high_overlap: IoU={overlap:.2f} > {limits.max_overlap_iou}"
        return replace(image, reason=reason)
    image = replace(image, verdict=holds(delta, sample.relation, margin))
    steady: float | None = 1.0
    if image.verdict == "UNDECIDABLE":
        reason = f"near_boundary (|delta|={abs(delta):.3f} <= margin={margin})"
        image = replace(image, reason=reason)
    elif rules.stability.enabled:
        steady = stability(image.verdict, a, b) if stability else sample.measured_stability
        least = rules.stability.consistency_threshold
        if steady is not None and steady < least:
            reason = f"unstable: stability={steady:.2f} < {least}"
            image = replace(image, verdict="UNDECIDABLE", reason=reason)
    agreed = _agreement(image, a, b=b, delta=delta, rules=rules, size=size)
    assumed = ["stability"] if steady is None else []
    if agreed is None and rules.detector.get("secondary"):
        assumed.append("agreement")
    raw = Parts(
        detection=math.sqrt(a.score * b.score),
        geometry=(abs(delta) - margin) / rules.confidence.geom_slope,
        stability=1.0 if steady is None else steady,
        agreement=1.0 if agreed is None else agreed,
    )
    parts = Parts(*(max(0.0, min(1.0, factor)) for factor in vars(raw).values()))
    return replace(
        image,
        confidence=_confidence(parts, rules.confidence.weights),
        parts=parts,
        assumed=tuple(assumed),
    )


def _agreement(
    image: CheckedImage, a: Found, b: Found, delta: float, rules: CheckerRules, size: Size
) -> float | None:
    """Agreement of the second detector, in [0, 1]: verdict, side, boxes; None if it was not run.

    Without its detections, the recorded agreement counts. Where it fails or misses an object,
    agreement is 0.5, as published.
    """
    sample = image.sample
    secondary = sample.detectors.secondary
    if secondary is None:
        return sample.measured_agreement
    other_a, other_b = (
        best(secondary.detections, label, rules.thresholds, size)
        for label in (sample.object_a, sample.object_b)
    )
    if other_a is None or other_b is None:
        return 0.5
    other_delta = offset(other_a.box_xyxy, other_b.box_xyxy, sample.relation, size)
    same_verdict = holds(other_delta, sample.relation, image.margin) == image.verdict
    agreed = 0.5 * same_verdict + 0.5 * (delta * other_delta >= 0)
    boxes = [iou(a.box_xyxy, other_a.box_xyxy), iou(b.box_xyxy, other_b.box_xyxy)]
    return 0.5 * agreed + 0.25 * boxes[0] + 0.25 * boxes[1]


def _confidence(parts: Parts, weights: Weights) -> float:
    """Product of the parts, each raised to its weight; about 0.001 where the geometry is 0."""
    powers = ((factor + _TINY) ** getattr(weights, name) for name, factor in vars(parts).items())
    return float(math.prod(powers))
