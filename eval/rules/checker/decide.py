"""The rules in their order: missing, ambiguous, high overlap, near the boundary, unstable."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from .boxes import SIDEWAYS, Box, Relation, Size, iou, offset
from .recorded import Found, Sample
from .rules import Confidence, Rules, Thresholds

Verdict = Literal["PASS", "FAIL", "UNDECIDABLE"]
REASONS = ("missing", "ambiguous", "high_overlap", "near_boundary", "unstable")
"""Why a picture is UNDECIDABLE; the first that applies."""

_TINY = 1e-10
"""Added to every part of the confidence, so that one zero does not hide the others."""

Stability = Callable[[Verdict, Found, Found], float | None]
"""Measures how a verdict on two detections holds; None where nobody measured it."""


@dataclass(frozen=True)
class Parts:
    """The four factors of a confidence, each in [0, 1]."""

    detection: float = 0.0
    geometry: float = 0.0
    stability: float = 0.0
    agreement: float = 0.0


@dataclass(frozen=True)
class Checked:
    """What the checker says of one picture."""

    sample: Sample
    """The picture."""
    verdict: Verdict
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
    """Signed distance of the centres, share of the picture's side."""
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


def holds(delta: float, relation: Relation, margin: float) -> Verdict:
    """Whether a signed distance fulfils a relation; at the margin it decides nothing."""
    if abs(delta) <= margin:
        return "UNDECIDABLE"
    return "PASS" if (delta < 0) == (relation in ("left_of", "above")) else "FAIL"


def check(sample: Sample, size: Size, rules: Rules, stability: Stability | None = None) -> Checked:
    """Applies the rules to one picture.

    stability: measures it on the picture (see `stability.measure`); where None, what the sample
        recorded counts, and 1 where it recorded nothing, named in `assumed`. Agreement likewise;
        it is 1 without ado where the rules name no second detector.
    """
    limits, margin = rules.thresholds, rules.geometry.margin
    primary = sample.detectors.primary.detections
    a, b = (best(primary, label, limits, size) for label in (sample.object_a, sample.object_b))
    if a is None or b is None:
        pairs = ((sample.object_a, a), (sample.object_b, b))
        absent = ", ".join(label for label, found in pairs if found is None)
        return Checked(sample, "UNDECIDABLE", f"missing: {absent}", 0.0, Parts(), margin)
    for label in (sample.object_a, sample.object_b):
        if is_ambiguous(primary, label, limits):
            reason = f"ambiguous: multiple {label}"
            return Checked(sample, "UNDECIDABLE", reason, 0.0, Parts(), margin, a, b)
    delta = offset(a.box_xyxy, b.box_xyxy, sample.relation, size)
    overlap = iou(a.box_xyxy, b.box_xyxy)
    if sample.relation in SIDEWAYS and overlap > limits.max_overlap_iou:
        reason = f"high_overlap: IoU={overlap:.2f} > {limits.max_overlap_iou}"
        return Checked(sample, "UNDECIDABLE", reason, 0.0, Parts(), margin, a, b, delta, overlap)
    verdict, reason_or_none, steady, assumed = _steadied(sample, a, b, delta, rules, stability)
    agreed = _agreement(sample, a.box_xyxy, b.box_xyxy, delta, verdict, rules, size)
    if agreed is None and rules.detector.get("secondary"):
        assumed += ("agreement",)
    parts = Parts(
        detection=_clipped(math.sqrt(a.score * b.score)),
        geometry=_clipped((abs(delta) - margin) / rules.confidence.geom_slope),
        stability=_clipped(steady),
        agreement=1.0 if agreed is None else _clipped(agreed),
    )
    sure = confidence(parts, rules.confidence)
    return Checked(
        sample, verdict, reason_or_none, sure, parts, margin, a, b, delta, overlap, assumed
    )


def _steadied(
    sample: Sample, a: Found, b: Found, delta: float, rules: Rules, stability: Stability | None
) -> tuple[Verdict, str | None, float, tuple[str, ...]]:
    """Verdict, reason, stability and what was assumed; a verdict that wavers is withdrawn."""
    margin, wanted = rules.geometry.margin, rules.stability
    verdict = holds(delta, sample.relation, margin)
    if verdict == "UNDECIDABLE":
        return verdict, f"near_boundary (|delta|={abs(delta):.3f} <= margin={margin})", 1.0, ()
    if not wanted.enabled:
        return verdict, None, 1.0, ()
    steady = stability(verdict, a, b) if stability else sample.measured_stability
    if steady is None:
        return verdict, None, 1.0, ("stability",)
    if steady < wanted.consistency_threshold:
        reason = f"unstable: stability={steady:.2f} < {wanted.consistency_threshold}"
        return "UNDECIDABLE", reason, steady, ()
    return verdict, None, steady, ()


def _agreement(
    sample: Sample, a: Box, b: Box, delta: float, verdict: Verdict, rules: Rules, size: Size
) -> float | None:
    """How far the second detector agrees: verdict, side, and both boxes; None if it wasn't asked.

    Without its detections, what was recorded counts: where it failed that is 0.5, as published.
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
    same_side = delta * other >= 0
    agreed = 0.5 * same_verdict + 0.5 * same_side
    return 0.5 * agreed + 0.25 * iou(a, other_a.box_xyxy) + 0.25 * iou(b, other_b.box_xyxy)


def confidence(parts: Parts, settings: Confidence) -> float:
    """Product of the parts, each to its weight; about 0.001 where the geometry says 0."""
    weights = settings.weights
    return float(
        (parts.detection + _TINY) ** weights.detection
        * (parts.geometry + _TINY) ** weights.geometry
        * (parts.stability + _TINY) ** weights.stability
        * (parts.agreement + _TINY) ** weights.agreement
    )


def _clipped(value: float) -> float:
    return max(0.0, min(1.0, value))
