"""The table of metrics: each row is a judge by rule, ``NAME:DETECTOR``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from . import compbench, depth_centers, geneval, hrs, pse, visor
from .boxes import BETWEEN, RELATIONS, Convention
from .detections import Measurement, Sighting

DEEP = ("in_front_of", "behind", "hidden_by")
"""Relations in depth, for which an estimator must be named."""


@dataclass(frozen=True)
class Metric:
    """A metric of two subjects' detections in one image."""

    name: str
    """Kind of the judge's spec and of its identity."""
    function: Callable[[Sighting, Any, Convention], Measurement]
    """Measures one relation, which is among `relations`."""
    needs: Literal["boxes", "masks"]
    """Shape that the detections must have; boxes stand in for missing masks."""
    unit: str
    """Meaning of its number, which is in [0, 1]."""
    relations: tuple[str, ...] = RELATIONS
    """The relations that it measures; those of `DEEP` also need a depth map."""
    detector: str = ""
    """Spec of the detector if none is named; empty if one must be."""
    version: str = "1"
    """Raised whenever the same detections get another verdict."""


METRICS = {
    metric.name: metric
    for metric in (
        Metric(
            "compbench",
            compbench.measure,
            needs="boxes",
            unit="T2I-CompBench's score",
            relations=(*compbench.COMPBENCH_RELATIONS, *DEEP),
        ),
        Metric(
            "depth-centers",
            depth_centers.measure,
            needs="masks",
            unit="1 or 0",
            relations=DEEP,
            detector="grounded-sam:",
        ),
        Metric(
            "depth-centers-apart",
            depth_centers.measure_apart,
            needs="masks",
            unit="1 or 0",
            relations=DEEP,
            detector="grounded-sam:",
        ),
        Metric("geneval", geneval.measure, needs="boxes", unit="1 or 0"),
        Metric("hrs", hrs.measure, needs="boxes", unit="1 or 0", relations=(*RELATIONS, BETWEEN)),
        Metric(
            "pse",
            pse.measure,
            needs="masks",
            unit="PSE",
            relations=(*pse.PLANE, *DEEP),
            detector="grounded-sam:",
        ),
        Metric("visor", visor.measure, needs="boxes", unit="1 or 0"),
    )
}
"""Name -> metric, one row for each judge by rule."""
