"""Distances between the images of two runs, as sets: FID, KID, CMMD, precision and recall; RKE."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import UsageError
from ...progress import Progress, silent
from ..core import describe, without_nan
from ..engine.features import image_features
from ..engine.run import Run
from ..scorers.features import EXTRACTORS, FeatureExtractor
from ..stats.bootstrap import Array
from ..stats.distances import (
    NEIGHBORS,
    cmmd,
    frechet_distance,
    kernel_distance,
    precision_and_recall,
    renyi_kernel_entropy,
)
from ..stats.estimate import Estimate
from .changes import check_alike
from .names import short_names


@dataclass(frozen=True, kw_only=True)
class SetDistance(Estimate):
    """A distance between the images of two runs on the same cases, or the RKE of one run's images.

    NaN for fewer than two shared cases, precision and recall for no more than `NEIGHBORS`. Only
    `kid` has an interval, over clusters; the others are biased. `n` counts the images of each run.
    """

    run: str
    """Name of the run."""
    base: str
    """Name of the run that it is compared with; RKE compares with none."""
    name: str
    """`fid`, `fd` (Frechet's distance of features that are not Inception's), `kid`, `cmmd`,
    `precision` (share of the run's images among the base's), `recall` (of the base's among the
    run's), or `rke` (soft number of modes of the run's images)."""
    extractor: str
    """Short description of the feature extractor."""
    dimensions: int
    """Number of dimensions of the features."""
    bandwidth: float = math.nan
    """Standard deviation of the kernel of `rke`; NaN for the others."""

    def to_json(self) -> dict[str, Any]:
        """Plain values; NaN as None."""
        plain: dict[str, Any] = without_nan(
            {
                "run": self.run,
                "base": self.base,
                "name": self.name,
                "extractor": self.extractor,
                "value": self.value,
                "interval": self.interval,
                "n": self.n,
                "dimensions": self.dimensions,
                "bandwidth": self.bandwidth,
                "warning": self.warning,
            }
        )
        return plain


def set_distances(
    roots: Sequence[Path], specs: Sequence[str | FeatureExtractor], progress: Progress = silent
) -> list[SetDistance]:
    """Returns the distances of every run to the first, by each extractor.

    Raises UsageError for fewer than two runs, RunError for runs of different rows.
    """
    if len(roots) < 2:
        raise UsageError("a distance needs at least two runs", code="too-few-items")
    runs = {
        name: Run.open(root)
        for name, root in zip(short_names([r.resolve() for r in roots]), roots, strict=True)
    }
    check_alike(runs)
    base, *compared_runs = runs
    clusters = {case.id: case.clusters[0] for case in runs[base].cases()}
    distances = []
    for spec in specs:
        extractor = EXTRACTORS.adapt(spec)
        features = {n: image_features(run.root, extractor, progress) for n, run in runs.items()}
        for compared in compared_runs:
            distances += _between(base, compared, features, clusters, extractor)
        if "rke" in extractor.distances:
            distances += [_modes(name, base, features[name], extractor) for name in runs]
    return distances


def _between(
    base: str,
    compared: str,
    features: Mapping[str, Mapping[str, Array]],
    clusters: Mapping[str, str],
    extractor: FeatureExtractor,
) -> list[SetDistance]:
    shared = [case for case in features[base] if case in features[compared]]
    first, second = (np.array([features[n][case] for case in shared]) for n in (base, compared))
    n, d = first.shape if shared else (0, 0)
    distances = []
    shares = precision_and_recall(first, second) if n else (math.nan, math.nan)
    for name in extractor.distances:
        if name == "rke":
            continue
        distance = Estimate(math.nan)
        if name in ("precision", "recall"):
            few = (
                f"precision and recall need more than {NEIGHBORS} images" if n <= NEIGHBORS else ""
            )
            distance = Estimate(shares[name == "recall"], warning=few)
        elif n > 1 and name == "kid":
            distance = kernel_distance(first, second, [clusters[case] for case in shared])
        elif n > 1 and name == "cmmd":
            distance = Estimate(cmmd(first, second))
        elif n > 1:
            warning = (
                f"{n:,} images in {d:,} dimensions: far above the distance of many images; "
                f"compare it only with distances of as many"
            )
            distance = Estimate(frechet_distance(first, second), warning=warning if n <= d else "")
        distances.append(
            SetDistance.of(
                distance,
                n=n,
                run=compared,
                base=base,
                name=name,
                extractor=describe(extractor.identity()),
                dimensions=d,
            )
        )
    return distances


def _modes(
    run: str, base: str, features: Mapping[str, Array], extractor: FeatureExtractor
) -> SetDistance:
    """RKE of all images of a run."""
    bandwidth: float = extractor.bandwidth  # type: ignore[attr-defined]
    n, values = len(features), np.array([*features.values()])
    value = renyi_kernel_entropy(values, bandwidth) if n else math.nan
    saturated = (
        f"RKE above half the number of images: a larger bandwidth than {bandwidth:g} or more images"
    )
    return SetDistance.of(
        Estimate(value, warning=saturated if value > n / 2 else ""),
        n=n,
        run=run,
        base=base,
        name="rke",
        extractor=describe(extractor.identity()),
        dimensions=values.shape[1] if n else 0,
        bandwidth=bandwidth,
    )
