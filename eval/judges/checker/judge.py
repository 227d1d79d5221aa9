"""`checker`: SpatialBench-UC's abstaining checker on each image, perturbations included."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field

from ...detectors import Detector, open_detector
from ...detectors.cache import Cached
from ...detectors.depth import DepthEstimator
from ...geometry.boxes import RELATIONS
from ...geometry.checker.rules import CheckerRules
from ...geometry.detections import Measurement, Sighting
from ..by_rule import RuleJudge, RuleOptions
from .run import ImageToCheck, check_images


class CheckerOptions(RuleOptions):
    """Options of `checker`; all others are the detector's."""

    rules: Annotated[Path | None, Field(alias="rule.rules")] = None
    """YAML file of rules that replace the published, calibrated rules."""
    secondary: Annotated[str, Field(alias="rule.secondary")] = ""
    """Spec of a second detector that must agree."""


class CheckerJudge(RuleJudge):
    """PASS, FAIL, or UNDECIDABLE with its reason; the number is a PASS's confidence, else 0."""

    kind = "checker"
    relations = RELATIONS
    options = CheckerOptions

    def __init__(
        self,
        detector: Detector,
        settings: RuleOptions | None = None,
        depth: DepthEstimator | None = None,
        cache: Path | None = None,
    ) -> None:
        super().__init__(detector, settings, depth, cache)
        self.rules = CheckerRules.load(self.settings.rules)
        second = self.settings.secondary
        self.secondary = Cached(open_detector(second), self.cache) if second else None

    def identity(self) -> dict[str, str]:
        """With the rules themselves, not the file that they were read from."""
        second = self.secondary.identity().items() if self.secondary else ()
        rules = self.rules.model_dump_json(exclude={"detector", "output"})
        return super().identity() | {
            "rules": rules,
            **{f"secondary_{name}": value for name, value in second},
        }

    def measure(self, sighting: Sighting, relation: str) -> Measurement:
        a, b = sighting.names
        image = ImageToCheck(
            sample_id=sighting.case,
            prompt_id=sighting.case,
            relation=relation,  # type: ignore[arg-type]
            object_a=a,
            object_b=b,
            image=sighting.image,
            digest=sighting.digest,
        )
        (checked,) = check_images([image], self.rules, self.detector, self.secondary)
        return checked.measurement()
