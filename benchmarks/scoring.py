"""Speed of scoring, each figure as a ratio against a peer in the same run.

    python benchmarks/scoring.py

1. The cluster bootstrap, 10,000 resamples of 9 models x 4,300 items in 430 clusters, against the
   plain Python loop (which is run on 20 resamples and scaled).
2. Finding and hashing 10,000 images of a folder, against `sha256sum` on the same files.
"""

from __future__ import annotations

import hashlib
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np

from counterprior.eval.core import Case, ImageRequest
from counterprior.eval.generators.folder import ImageFolder
from counterprior.eval.stats.bootstrap import cluster_bootstrap

MODELS, ITEMS, CLUSTERS, RESAMPLES = 9, 4_300, 430, 10_000
IMAGES, BYTES = 10_000, 60_000


def bootstrap() -> None:
    rng = np.random.default_rng(0)
    values = (rng.random((ITEMS, MODELS)) < 0.7).astype(float)
    values[rng.random((ITEMS, MODELS)) < 0.1] = np.nan
    clusters = rng.integers(0, CLUSTERS, ITEMS)
    start = time.perf_counter()
    cluster_bootstrap(values, clusters, resamples=RESAMPLES)
    ours = time.perf_counter() - start
    members: list[list[int]] = [[] for _ in range(CLUSTERS)]
    for item, cluster in enumerate(clusters):
        members[cluster].append(item)
    rows = values.tolist()
    start = time.perf_counter()
    for _ in range(20):
        totals, counts = [0.0] * MODELS, [0] * MODELS
        for cluster in rng.integers(0, CLUSTERS, CLUSTERS):
            for item in members[cluster]:
                for model, value in enumerate(rows[item]):
                    if value == value:
                        totals[model] += value
                        counts[model] += 1
        [total / count for total, count in zip(totals, counts, strict=True)]
    plain = (time.perf_counter() - start) * RESAMPLES / 20
    print(f"bootstrap: {ours:.2f} s, plain loop {plain:.0f} s: {plain / ours:.0f}x")


def hashing() -> None:
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        cases = [Case(f"row{n}", "plain", n, 0, "", ("c",)) for n in range(IMAGES)]
        for case in cases:
            (folder / f"{case.id}.png").write_bytes(rng.bytes(BYTES))
        ours, theirs = [], []
        for _ in range(3):
            start = time.perf_counter()
            found = ImageFolder(folder)
            for case in cases:
                with found.generate(ImageRequest(case.prompt, case.seed, case=case)).open(
                    "rb"
                ) as file:
                    hashlib.file_digest(file, "sha256").hexdigest()
            ours.append(time.perf_counter() - start)
            start = time.perf_counter()
            subprocess.run(
                "ls -U | xargs -n 2000 sha256sum > /dev/null", shell=True, cwd=folder, check=True
            )
            theirs.append(time.perf_counter() - start)
    print(
        f"scan and hash: {min(ours):.2f} s, sha256sum {min(theirs):.2f} s: "
        f"{min(theirs) / min(ours):.0%} of its speed"
    )


if __name__ == "__main__":
    bootstrap()
    hashing()
