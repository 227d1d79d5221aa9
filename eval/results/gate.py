"""Do two builds draw alike? Equivalence of two runs of the same prompts and seeds, within a margin.

A serving change (another kernel, precision, batch or release of a server) should leave a model's
answers as they were. A bare threshold on a score, or on PSNR, flickers with the sample; here the
difference is paired by prompt and seed and tested against a margin that was stated before.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import DataError, UsageError
from ...images import ImageError, open_image
from ...progress import Progress, silent
from ..core import without_nan
from ..engine.run import Run
from ..stats.clusters import cluster_interval
from ..stats.comparison import Comparison
from ..stats.equivalence import EQUIVALENT, LOST, UNDECIDED, LossClaim, claims
from ..stats.estimate import Estimate
from ..stats.intervals import Interval
from ..stats.means import cluster_mean
from ..suites import open_suite
from ..suites.base import Headline, Items
from .changes import check_alike
from .names import short_names
from .scoring import JudgedRun, ScoreSettings, score_runs

DIFFERENT = "different"
VALID = "valid"
"""The share of items that a judge could score."""
MOST_PIXELS_COMPARED = 400
"""Pairs of images whose pixels are compared, drawn at random with seed 0; SSIM takes a third of a
second for a pair of 1,024 x 1,024."""


@dataclass(frozen=True, kw_only=True)
class Drift(Comparison):
    """A number of the second run less that of the first, in percentage points, paired."""

    judge: str
    score: str
    before: float
    """The first run's, on the compared items."""
    after: float
    """The second run's, on the compared items."""
    claim: LossClaim
    """`equivalent`: the difference is within the margin; `different`: beyond it, on either side;
    `undecided`: neither is shown."""

    def to_json(self) -> dict[str, Any]:
        """Plain values; NaN as None."""
        return {
            **super().to_json(),
            **{"judge": self.judge, "score": self.score},
            **{"before": self.before, "after": self.after},
            **{"verdict": self.claim.verdict, "verdict_p": self.claim.p_value},
        }


@dataclass(frozen=True)
class ImagePairs:
    """How alike the images of the same prompt and seed are; no part of the decision."""

    both: int
    """Cases of which both runs have an image."""
    same_bytes: int
    """Of these, pairs of files with one SHA-256."""
    compared: int
    """Pairs of images whose pixels were compared."""
    same_pixels: int
    psnr: Estimate
    """Mean peak signal-to-noise ratio over RGB in dB, over compared pairs that differ."""
    ssim: Estimate
    """Mean structural similarity of luminance (Wang et al. 2004: Gaussian window, sigma 1.5), over
    all compared pairs; NaN where scikit-image isn't installed."""
    least_ssim: float
    excluded: dict[str, int]
    """Reason -> pairs that couldn't be compared: missing in one run, of two sizes, unreadable,
    clips or texts."""


@dataclass(frozen=True)
class Gate:
    """The decision about two builds."""

    suite: str
    base: str
    run: str
    margin: float
    """Largest difference that doesn't matter, in percentage points."""
    drifts: Sequence[Drift]
    images: ImagePairs

    @property
    def decision(self) -> str:
        """`different` if any number is, `equivalent` if all are, else `undecided`."""
        verdicts = {drift.claim.verdict for drift in self.drifts}
        if DIFFERENT in verdicts:
            return DIFFERENT
        return EQUIVALENT if verdicts == {EQUIVALENT} else UNDECIDED

    @property
    def factor(self) -> float:
        """How many times the rows would be needed to decide if the differences stayed as they are:
        an interval's width falls with the root of the number of clusters. Infinite where a
        difference stands at the margin; NaN if all is decided."""
        factors = []
        for drift in self.drifts:
            if drift.claim.verdict == UNDECIDED:
                reach = max(drift.interval.high - drift.value, drift.value - drift.interval.low)
                room = abs(self.margin - abs(drift.value))
                factors.append((reach / room) ** 2 if room > 0 else math.inf)
        return max(factors, default=math.nan)

    def to_json(self) -> dict[str, Any]:
        """Plain values; NaN as None."""
        plain: dict[str, Any] = without_nan({"decision": self.decision, **vars(self)})
        return plain


def gate(
    roots: tuple[Path, Path], margin: float, settings: ScoreSettings, progress: Progress = silent
) -> Gate:
    """Decides whether the second run draws as the first one does.

    For every judge: the headline score with its sign, on the items that both runs have a value
    for, and the share of items with a value (`valid`), so that images that can't be scored don't
    hide a change. Equivalence takes two one-sided tests at 5 % of each number (Schuirmann 1987):
    all must pass, so that these need no adjustment (Berger 1982). `different` is adjusted by Holm
    over all numbers and both sides.

    margin: in percentage points. Raises UsageError for a margin that isn't positive and for runs
    without a common judge, RunError for runs of different rows or judged differently.
    """
    if not 0 < margin < math.inf:
        raise UsageError(
            f"--margin {margin:g} is no positive number of percentage points",
            "state the largest difference that doesn't matter, e.g. 3",
            code="bad-option",
        )
    if roots[0].resolve() == roots[1].resolve():
        raise UsageError("a run is given twice", code="duplicate-id")
    names = short_names([root.resolve() for root in roots])
    runs = {name: Run.open(root) for name, root in zip(names, roots, strict=True)}
    check_alike(runs)
    first, second = runs.values()
    headline = open_suite(first.header.suite).headline
    # Scores of groups take most of the time of scoring, and none of them is read here.
    results = score_runs(list(roots), replace(settings, groups=False))
    judged = _by_judge(results, first, second)
    if not judged:
        raise UsageError(
            f"{names[0]} and {names[1]} have no judge in common",
            "judge both with the same judge first",
            code="different-judges",
        )
    drifts = [
        drift
        for judge, (before, after) in judged.items()
        for drift in _drifts(judge, names, headline, before, after)
    ]
    pairs = compare_images(first, second, progress)
    return Gate(first.header.suite, names[0], names[1], margin, decide(drifts, margin), pairs)


def _by_judge(
    results: Sequence[JudgedRun], first: Run, second: Run
) -> dict[str, tuple[JudgedRun, JudgedRun]]:
    """Judge -> its results on both runs, where it judged both."""
    by_run: dict[str, dict[str, JudgedRun]] = {str(first.root): {}, str(second.root): {}}
    for judged in results:
        by_run[judged.result.folder][judged.result.judge] = judged
    before, after = by_run.values()
    return {judge: (before[judge], after[judge]) for judge in before if judge in after}


def _drifts(
    judge: str, names: Sequence[str], headline: Headline, before: JudgedRun, after: JudgedRun
) -> list[Drift]:
    """The drift of the headline score and of the share of valid items."""
    first, second = (headline.items(judged.outcomes) for judged in (before, after))
    keys = sorted(first.keys() & second.keys(), key=str)
    if not keys:
        raise DataError(f"{names[0]} and {names[1]} share no item", code="different-rows")
    clusters = [first[key].cluster for key in keys]
    a, b = _values(first, keys), _values(second, keys)
    whole = ~np.isnan(np.hstack([a, b])).any(axis=1)
    drifts = []
    if whole.any():
        kept = [clusters[i] for i in np.flatnonzero(whole)]
        drifts.append((headline.score, a[whole], b[whole], kept, headline))
    valid = [np.mean(~np.isnan(values), axis=1, keepdims=True) for values in (a, b)]
    drifts.append((VALID, *valid, clusters, None))
    return [paired_drift(judge, names, *drift) for drift in drifts]


def _values(items: Items, keys: Sequence[Any]) -> NDArray[np.float64]:
    return np.array([items[key].values for key in keys], dtype=float).reshape(len(keys), -1)


def paired_drift(
    judge: str,
    names: Sequence[str],
    score: str,
    a: NDArray[np.float64],
    b: NDArray[np.float64],
    clusters: Sequence[Any],
    headline: Headline | None,
) -> Drift:
    """The drift of a score from values `a` of the first run to `b` of the second, not decided yet.

    a, b: shape (n, k), a row for each item, without NaN. headline: whose statistic is taken of
    their means; None for the means of one column.
    """
    width = a.shape[1]

    def statistic(means: NDArray[np.float64]) -> NDArray[np.float64]:
        return means if headline is None else headline.statistic(means)

    def difference(means: NDArray[np.float64]) -> NDArray[np.float64]:
        return statistic(means[..., width:]) - statistic(means[..., :width])

    ends = (0.0, 1.0) if headline is None else headline.ends
    estimate = cluster_interval(np.hstack([a, b]), clusters, ends, difference)[0].scaled(100)
    before, after = (100 * float(statistic(values.mean(axis=0))[0]) for values in (a, b))
    return Drift.of(
        replace(estimate, n=len(a)),
        first=names[1],
        second=names[0],
        judge=judge,
        score=score,
        before=before,
        after=after,
        claim=LossClaim(UNDECIDED, math.nan),
    )


def decide(drifts: Sequence[Drift], margin: float) -> list[Drift]:
    """The drifts of one gate with their claims, see `gate`."""
    mirrored = [
        replace(
            drift, value=-drift.value, interval=Interval(-drift.interval[1], -drift.interval[0])
        )
        for drift in drifts
    ]
    beyond = claims([*drifts, *mirrored], margin)
    decided = []
    for number, drift in enumerate(drifts):
        alike = claims([drift], margin)[0]
        sides = beyond[number], beyond[number + len(drifts)]
        exceeds = [side for side in sides if side.verdict == LOST]
        if exceeds:
            claim = LossClaim(DIFFERENT, exceeds[0].p_value)
        elif alike.verdict == EQUIVALENT:
            claim = alike
        else:
            claim = LossClaim(UNDECIDED, math.nan)
        decided.append(replace(drift, claim=claim))
    return decided


def compare_images(first: Run, second: Run, progress: Progress = silent) -> ImagePairs:
    """Compares the images of the same prompt and seed of two runs of the same rows."""
    before, after = first.present(), second.present()
    excluded = Counter({"missing in one run": len(before.keys() ^ after.keys())})
    both = sorted(before.keys() & after.keys())
    clusters = {case.id: case.clusters[0] for case in first.cases()}
    drawn = sorted(random.Random(0).sample(both, min(MOST_PIXELS_COMPARED, len(both))))
    psnr, ssim = {}, {}
    same_pixels = 0
    for number, case in enumerate(drawn, 1):
        progress("compare", number, len(drawn))
        records = [run.images()[case] for run in (first, second)]
        if any(record.frames or record.is_text for record in records):
            excluded["no still image"] += 1
            continue
        try:
            a, b = (
                np.asarray(open_image(run.image_path(record)))
                for run, record in zip((first, second), records, strict=True)
            )
        except ImageError:
            excluded["unreadable"] += 1
            continue
        if a.shape != b.shape:
            excluded["of two sizes"] += 1
            continue
        error = float(np.mean((a.astype(float) - b.astype(float)) ** 2))
        if error:
            psnr[case] = 10 * math.log10(255**2 / error)
        else:
            same_pixels += 1
        ssim[case] = structural_similarity(a, b) if error else 1.0
    means = [
        cluster_mean([*values.values()], [clusters[case] for case in values])
        for values in (psnr, ssim)
    ]
    return ImagePairs(
        both=len(both),
        same_bytes=sum(before[case] == after[case] for case in both),
        compared=len(ssim),
        same_pixels=same_pixels,
        psnr=means[0],
        ssim=means[1],
        least_ssim=min(ssim.values(), default=math.nan),
        excluded={reason: n for reason, n in excluded.items() if n},
    )


def structural_similarity(a: NDArray[np.uint8], b: NDArray[np.uint8]) -> float:
    """SSIM of the luminance (ITU-R 601-2) of two RGB images of one shape.

    NaN where scikit-image isn't installed.
    """
    from PIL import Image

    try:
        from skimage.metrics import structural_similarity as ssim
    except ModuleNotFoundError:
        return math.nan
    a_gray, b_gray = (np.asarray(Image.fromarray(image).convert("L")) for image in (a, b))
    return float(
        ssim(
            a_gray,
            b_gray,
            data_range=255,
            gaussian_weights=True,
            sigma=1.5,
            use_sample_covariance=False,
        )
    )
