"""`checker`: SpatialBench-UC's abstaining checker on each image, perturbations included."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ...detectors import open_detector
from ...detectors.cache import Cached
from ...geometry.boxes import RELATIONS
from ...geometry.checker.rules import CheckerRules
from ..by_rule import Measured, RuleJudge, Sighting
from .run import ImageToCheck, check_images


class CheckerJudge(RuleJudge):
    """PASS, FAIL, or UNDECIDABLE with its reason; the number is the confidence of a PASS, else 0.

    ``rule.rules=checker.yaml`` for other rules than the published, calibrated ones;
    ``rule.secondary=SPEC`` for a second detector that has to agree.
    """

    KIND = "checker"
    RELATIONS = frozenset(RELATIONS)
    OWN = ("rules", "secondary")

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        more = self.settings.more
        self.rules = CheckerRules.load(Path(more["rules"]) if "rules" in more else None)
        second = more.get("secondary")
        self.secondary = Cached(open_detector(second), self.cache) if second else None

    def identity(self) -> dict[str, str]:
        """With the rules themselves, not the file that they were read from."""
        found = super().identity()
        found.pop("secondary", None)
        second = self.secondary.identity().items() if self.secondary else ()
        rules = self.rules.model_dump_json(exclude={"detector", "output"})
        return found | {"rules": rules, **{f"secondary_{name}": value for name, value in second}}

    def measure(self, seen: Sighting, relation: str) -> Measured:
        a, b = seen.names
        image = ImageToCheck(
            sample_id=seen.case,
            prompt_id=seen.case,
            relation=relation,  # type: ignore[arg-type]
            object_a=a,
            object_b=b,
            image=seen.image,
            digest=seen.digest,
        )
        (found,) = check_images([image], self.rules, self.detector, self.secondary)
        why = f"{found.verdict} {found.reason or ''}".strip()
        why += f", confidence {found.confidence:.4f}"
        if found.verdict == "UNDECIDABLE":
            return Measured(None, 0.0, why)
        passed = found.verdict == "PASS"
        return Measured(passed, found.confidence if passed else 0.0, why)
