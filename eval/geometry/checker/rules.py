"""The settings of the checker, as `checker.yaml` holds them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from ....parsing import RowError, parse, read_yaml
from ....schema import Struct
from ....specs import Share

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Thresholds(Struct):
    """Limits that a detection must meet to count."""

    detection_score: Share = 0.2
    min_area_fraction: Share = 0.005
    """Least area, as a share of the image."""
    ambiguity_delta: Share = 0.1
    """Two best scores of one label closer than this are ambiguous."""
    max_overlap_iou: Share = 0.5
    """Two boxes that overlap more are beside each other in no useful sense; left and right only."""


class Geometry(Struct):
    """Where a relation begins."""

    margin: Share = 0.1
    """Centers closer than this share of the image's side decide nothing."""


class Perturbation(Struct):
    """A change of the image that no verdict should depend on."""

    type: Literal["brightness", "gaussian_blur", "resize"]
    factor: Positive | None = None
    """Factor of the brightness."""
    sigma: Positive | None = None
    """Radius of the blur, pixels."""
    scale: Annotated[float, Field(gt=0, le=1)] | None = None
    """Size it is brought to before it is brought back."""


class Stability(Struct):
    """How a verdict must hold under perturbations."""

    enabled: bool = True
    consistency_threshold: Share = 0.5
    """A verdict less stable than this is withdrawn."""
    perturbations: tuple[Perturbation, ...] = (
        Perturbation(type="brightness", factor=1.1),
        Perturbation(type="brightness", factor=0.9),
        Perturbation(type="gaussian_blur", sigma=1.0),
        Perturbation(type="resize", scale=0.9),
    )


class Weights(Struct):
    """Exponents of the four parts of the confidence; used as they are, never re-normalized."""

    detection: Share = 0.4
    geometry: Share = 0.3
    stability: Share = 0.2
    agreement: Share = 0.1


class Confidence(Struct):
    """How sure a verdict is."""

    weights: Weights = Weights()
    geom_slope: Positive = 0.15
    """Distance beyond the margin at which geometry is certain."""


class CheckerRules(Struct):
    """Everything the checker can be set to; the defaults are the published, calibrated ones."""

    thresholds: Thresholds = Thresholds()
    geometry: Geometry = Geometry()
    stability: Stability = Stability()
    confidence: Confidence = Confidence()
    detector: dict[str, Any] = Field(default_factory=dict)
    """The detectors that were run. Only whether there is a `secondary` is read; the rest is kept so
    that published files are rules as they are."""
    output: dict[str, Any] = Field(default_factory=dict)
    """Output settings of the authors' program; not read."""

    @classmethod
    def load(cls, path: Path | None) -> CheckerRules:
        """From YAML, or the published ones. Raises DataError, naming the field, for a file that
        holds no rules."""
        if path is None:
            return cls()
        data = read_yaml(path)
        if not isinstance(data, dict):
            raise RowError(
                f"{path}: holds no settings: write thresholds:, geometry: …", code="bad-format"
            )
        return parse(cls, data, path, 1)

    def moved(self, margin: float, detection_score: float) -> CheckerRules:
        """The same rules with the two settings that calibration moves."""
        limits = self.thresholds.model_copy(update={"detection_score": detection_score})
        geometry = Geometry(margin=margin)
        return self.model_copy(update={"geometry": geometry, "thresholds": limits})
