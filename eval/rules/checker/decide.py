"""The rules in their order: missing, ambiguous, high overlap, near the boundary, unstable."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Literal, NamedTuple

from ..boxes import SIDEWAYS, Relation, Size, iou, offset
from .recorded import CheckerSample, Found
from .rules import CheckerRules, Confidence, Thresholds

CheckVerdict = Literal["PASS", "FAIL", "UNDECIDABLE"]
REASONS = ("missing", "ambiguous", "high_overlap", "near_boundary", "unstable")
"""Why an image is UNDECIDABLE; the first that applies."""

_TINY = 1e-10
"""Added to every part of the confidence, so that one zero does not hide the others."""

StabilityMeasure = Callable[[CheckVerdict, Found, Found], float | None]
"""Measures how a verdict on two detections holds; None where nobody measured it."""


@dataclass(frozen=True)
class Parts:
    """The four factors of a confidence, each in [0, 1]."""

    detection: float = 0.0
    geometry: float = 0.0
    stability: float = 0.0
    agreement: float = 0.0


@dataclass(frozen=True)
class CheckedImage:
    """What the checker says of one image."""

    sample: CheckerSample
    """The image."""
    verdict: CheckVerdict
    """UNDECIDABLE where a rule abstains."""
    reason: str | None
    """Why it abstains, starting with one of `REASONS`; None where it decides."""
    confidence: float
    """In [0, 1]; 0 where it abstains before the geometry."""
    parts: Parts
    """Factors of the confidence."""
    margin: float
    """The margin it was decided with."""
    a: Found | None = None
    """The chosen detection of object a; None where either is missing."""
    b: Found | None = None
    """The chosen detection of object b."""
    delta: float | None = None
    """Signed distance of the centers, share of the image's side."""
    overlap: float | None = None
    """Intersection over union of the two boxes."""
    assumed: tuple[str, ...] = ()
    """What nobody had measured and was taken as 1: `stability`, `agreement`."""

    def to_row(self) -> dict[str, Any]:
        """As the published `per_sample.jsonl` writes it, without the detections."""
        return {
            "sample_id": self.sample.sample_id,
            "prompt_id": self.sample.prompt_id,
            "relation": self.sample.relation,
            "object_a": self.sample.object_a,
            "object_b": self.sample.object_b,
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


def best(found: Sequence[Found], label: str, limits: Thresholds, size: Size) -> Found | None:
    """The surest detection of a label that is sure and large enough; of equals the first."""
    area = limits.min_area_fraction * (size.width * size.height)
    fit = [
        one
        for one in found
        if one.names(label) and one.score >= limits.detection_score and one.box_xyxy.area >= area
    ]
    return max(fit, key=lambda one: one.score, default=None)


def is_ambiguous(found: Sequence[Found], label: str, limits: Thresholds) -> bool:
    """Whether the two surest detections of a label are close; here small ones count too."""
    scores = sorted(
        (f.score for f in found if f.names(label) and f.score >= limits.detection_score),
        reverse=True,
    )
    return len(scores) > 1 and scores[0] - scores[1] < limits.ambiguity_delta


def holds(delta: float, relation: Relation, margin: float) -> CheckVerdict:
    """Whether a signed distance fulfils a relation; at the margin it decides nothing."""
    if abs(delta) <= margin:
        return "UNDECIDABLE"
    return "PASS" if (delta < 0) == (relation in ("left_of", "above")) else "FAIL"


def check(
    sample: CheckerSample,
    size: Size,
    rules: CheckerRules,
    stability: StabilityMeasure | None = None,
) -> CheckedImage:
    """Applies the rules to one image.

    stability: measures it on the image (see `judges.checker.stability.measure`). Without it, the
        recorded stability counts, and 1 where none was recorded; `assumed` then says so. The same
        holds for agreement, which is 1 by definition where the rules name no second detector.
    """
    limits = rules.thresholds
    primary = sample.detectors.primary.detections
    objects = (sample.object_a, sample.object_b)
    a, b = (best(primary, label, limits, size) for label in objects)
    abstain = partial(_abstain, sample, rules)
    if a is None or b is None:
        absent = [label for label, one in zip(objects, (a, b), strict=True) if one is None]
        return abstain(f"missing: {', '.join(absent)}")
    for label in objects:
        if is_ambiguous(primary, label, limits):
            return abstain(f"ambiguous: multiple {label}", a=a, b=b)
    delta = offset(a.box_xyxy, b.box_xyxy, sample.relation, size)
    pair = _Pair(a, b, delta, iou(a.box_xyxy, b.box_xyxy))
    if sample.relation in SIDEWAYS and pair.overlap > limits.max_overlap_iou:
        reason = f"high_overlap: IoU={pair.overlap:.2f} > {limits.max_overlap_iou}"
        return abstain(reason, a=a, b=b, delta=delta, overlap=pair.overlap)
    return _decide(sample, pair, size, rules, stability)


class _Pair(NamedTuple):
    """The chosen detections of both objects, and how they lie."""

    a: Found
    b: Found
    delta: float
    overlap: float


def _abstain(
    sample: CheckerSample, rules: CheckerRules, reason: str, **measured: Any
) -> CheckedImage:
    """UNDECIDABLE before any confidence is known."""
    return CheckedImage(
        sample=sample,
        verdict="UNDECIDABLE",
        reason=reason,
        confidence=0.0,
        parts=Parts(),
        margin=rules.geometry.margin,
        **measured,
    )


def _decide(
    sample: CheckerSample,
    pair: _Pair,
    size: Size,
    rules: CheckerRules,
    stability: StabilityMeasure | None,
) -> CheckedImage:
    """The verdict on two usable detections; a verdict that wavers is withdrawn."""
    margin = rules.geometry.margin
    verdict, reason, steady, assumed = _steadied(sample, pair, rules, stability)
    agreed = _agreement(sample, pair, verdict, rules, size)
    if agreed is None and rules.detector.get("secondary"):
        assumed += ("agreement",)
    parts = Parts(
        detection=_clipped(math.sqrt(pair.a.score * pair.b.score)),
        geometry=_clipped((abs(pair.delta) - margin) / rules.confidence.geom_slope),
        stability=_clipped(steady),
        agreement=1.0 if agreed is None else _clipped(agreed),
    )
    return CheckedImage(
        sample=sample,
        verdict=verdict,
        reason=reason,
        confidence=confidence(parts, rules.confidence),
        parts=parts,
        margin=margin,
        assumed=assumed,
        **pair._asdict(),
    )


def _steadied(
    sample: CheckerSample, pair: _Pair, rules: CheckerRules, stability: StabilityMeasure | None
) -> tuple[CheckVerdict, str | None, float, tuple[str, ...]]:
    """Verdict, reason, stability and what was assumed."""
    margin, wanted = rules.geometry.margin, rules.stability
    verdict = holds(pair.delta, sample.relation, margin)
    if verdict == "UNDECIDABLE":
        reason = f"near_boundary (|delta|={abs(pair.delta):.3f} <= margin={margin})"
        return verdict, reason, 1.0, ()
    if not wanted.enabled:
        return verdict, None, 1.0, ()
    steady = stability(verdict, pair.a, pair.b) if stability else sample.measured_stability
    if steady is None:
        return verdict, None, 1.0, ("stability",)
    if steady < wanted.consistency_threshold:
        reason = f"unstable: stability={steady:.2f} < {wanted.consistency_threshold}"
        return "UNDECIDABLE", reason, steady, ()
    return verdict, None, steady, ()


def _agreement(
    sample: CheckerSample, pair: _Pair, verdict: CheckVerdict, rules: CheckerRules, size: Size
) -> float | None:
    """How far the second detector agrees: verdict, side, and both boxes; None if it wasn't asked.

    Without its detections, the recorded agreement counts. Where it misses an object, agreement is
    0.5, as published.
    """
    secondary = sample.detectors.secondary
    if secondary is None:
        return sample.measured_agreement
    other_a, other_b = (
        best(secondary.detections, label, rules.thresholds, size)
        for label in (sample.object_a, sample.object_b)
    )
    if other_a is None or other_b is None:
        return 0.5
    other = offset(other_a.box_xyxy, other_b.box_xyxy, sample.relation, size)
    same_verdict = holds(other, sample.relation, rules.geometry.margin) == verdict
    agreed = 0.5 * same_verdict + 0.5 * (pair.delta * other >= 0)
    boxes = [
        iou(mine.box_xyxy, theirs.box_xyxy)
        for mine, theirs in ((pair.a, other_a), (pair.b, other_b))
    ]
    return 0.5 * agreed + 0.25 * boxes[0] + 0.25 * boxes[1]


def confidence(parts: Parts, settings: Confidence) -> float:
    """Product of the parts, each raised to its weight; about 0.001 where the geometry is 0."""
    weights = settings.weights
    return float(
        (parts.detection + _TINY) ** weights.detection
        * (parts.geometry + _TINY) ** weights.geometry
        * (parts.stability + _TINY) ** weights.stability
        * (parts.agreement + _TINY) ** weights.agreement
    )


def _clipped(value: float) -> float:
    return max(0.0, min(1.0, value))
