"""Distances between the images of two runs, as sets: FID, KID, CMMD."""

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
from ..stats.distances import cmmd, frechet_distance, kernel_distance
from ..stats.estimate import Estimate
from .changes import check_alike
from .names import short_names


@dataclass(frozen=True, kw_only=True)
class SetDistance(Estimate):
    """A distance between the images of two runs on the same cases.

    NaN for fewer than two shared cases. Only `kid` has an interval, over clusters; the others are
    biased. `n` counts the images of each run.
    """

    run: str
    """Name of the run."""
    base: str
    """Name of the run that it is compared with."""
    name: str
    """`fid`, `fd` (Frechet's distance of features that are not Inception's), `kid` or `cmmd`."""
    extractor: str
    """Short description of the feature extractor."""
    dimensions: int
    """Number of dimensions of the features."""

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
    for name in extractor.distances:
        distance = Estimate(math.nan)
        if n > 1 and name == "kid":
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
