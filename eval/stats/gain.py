"""From a share of captions to a share of images: one gain on the log odds.

Where the share a of captions names the left thing first, and a model trained on them draws the
first-mentioned thing on the left in the share s of images: logit(s) = gain * logit(a). A gain of 1
copies the share and a larger one sharpens it; with any, even captions give even images. Guidance of
scale w would multiply the gain by w, if images drawn without a prompt had no side (from
p(x|c)^w p(x)^(1 - w), Ho and Salimans 2022).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...errors import UsageError
from .bootstrap import Array
from .clusters import Statistic, jackknife_interval
from .estimate import Estimate
from .intervals import Interval
from .replicates import over_replicates

LEAST, MOST = 0.05, 20.0
"""Smallest and largest gain that is told: 0.05 is as good as none, and with 20 captions of 60 %
make images of 99.97 %."""


def with_gain(gain: ArrayLike, captions: ArrayLike) -> Array:
    """Share of images for a share of captions, both in [0, 1].

    >>> with_gain([1, 2], 0.75).round(3).tolist(), float(with_gain(3, 0.5))
    ([0.75, 0.9], 0.5)
    """
    from scipy.special import expit, logit

    return np.asarray(expit(np.asarray(gain) * logit(np.asarray(captions, dtype=float))))


def fitted_log_gain(images: ArrayLike, captions: ArrayLike) -> Array:
    """The logarithm of the gain that is most likely, each condition weighing the same.

    images: shape (..., c), shares of images; captions: shape (c,), each in (0, 1), not all 0.5.
    Shape (...), from the logarithm of `LEAST` to that of `MOST`.

    >>> np.exp(fitted_log_gain([[0.9], [0.25]], [0.75])).round(2).tolist()
    [2.0, 0.05]
    """
    from scipy.special import expit, logit

    shares, x = np.asarray(images, dtype=float), logit(np.asarray(captions, dtype=float))
    low, high = (np.full(shares.shape[:-1], math.log(end)) for end in (LEAST, MOST))
    for _ in range(40):  # to 1e-11
        middle = (low + high) / 2
        rises = ((shares - expit(np.exp(middle)[..., None] * x)) * x).sum(axis=-1) > 0
        low, high = np.where(rises, middle, low), np.where(rises, high, middle)
    return np.asarray((low + high) / 2)


@dataclass(frozen=True)
class Doses:
    """Images of several shares of captions, each share in the same trainings.

    Every number has a 95 % interval for other trainings and other entities (`over_replicates`).
    """

    captions: Sequence[float]
    """Shape (c,): share of captions of each condition, in (0, 1) and not 0.5."""
    signs: Array
    """Shape (n, c * v), one row an image: 1 if it follows its order of mention and -1 if not, in
    the column of its condition and order; NaN elsewhere, and for images that don't count. The
    columns of a condition are neighbors, and its orders weigh the same."""
    members: NDArray[np.intp]
    """Shape (n, 2): both entities of each image."""
    trainings: NDArray[np.intp]
    """Shape (n,): number of the training seed of each image."""

    def __post_init__(self) -> None:
        for share in self.captions:
            _check(share)

    def gain(self) -> Estimate:
        """The gain over all conditions, from `LEAST` to `MOST`."""
        return _unlogged(self._estimate(self._log_gain(self.captions), _LOGS))

    def predicted(self, share: float) -> Estimate:
        """The order effect that one more training would have on this share of captions, in [-1, 1].

        A condition of this very share has no say. Raises UsageError for a share outside (0, 1) or
        of 0.5, and where no other condition is left.
        """
        log_gain = self._log_gain(self._others(share))
        gain = _unlogged(self._estimate(log_gain, _LOGS, one_more=True))
        value, *ends = (float(2 * with_gain(g, share) - 1) for g in (gain.value, *gain.interval))
        return replace(gain, value=value, interval=Interval(*sorted(ends)))

    def error(self, share: float) -> Estimate:
        """The order effect of a condition, less what the others predict, in [-2, 2].

        Raises UsageError for a share that no condition has, and without another condition.
        """
        if share not in self.captions:
            shares = ", ".join(f"{100 * known:g}" for known in self.captions)
            raise UsageError(
                f"no condition has {100 * share:g} %: choose from {shares}", code="unknown-name"
            )
        log_gain = self._log_gain(self._others(share))
        place = list(self.captions).index(share)

        def error(means: Array) -> Array:
            seen = self._shares(means)[..., [place]]
            return np.asarray(2 * (seen - with_gain(np.exp(log_gain(means)), share)))

        return self._estimate(error, (-2.0, 2.0))

    def _others(self, share: float) -> list[float]:
        _check(share)
        others = [known for known in self.captions if known != share]
        if not others:
            problem = "a share is predicted from other shares, and there is none"
            raise UsageError(problem, code="nothing-to-do")
        return others

    def _shares(self, means: Array) -> Array:
        """Shares of images, shape (..., c), of mean signs, shape (..., c * v)."""
        by_order = means.reshape(*means.shape[:-1], len(self.captions), -1)
        return np.asarray((1 + by_order.mean(axis=-1)) / 2)

    def _log_gain(self, captions: Sequence[float]) -> Statistic:
        places = [place for place, share in enumerate(self.captions) if share in captions]

        def log_gain(means: Array) -> Array:
            return fitted_log_gain(self._shares(means)[..., places], captions)[..., None]

        return log_gain

    def _estimate(
        self, statistic: Statistic, ends: tuple[float, float], one_more: bool = False
    ) -> Estimate:
        pooled = jackknife_interval(self.signs, self.members, (-1.0, 1.0), statistic)
        own = []
        for training in np.unique(self.trainings):
            signs = self.signs[self.trainings == training]
            counts = (~np.isnan(signs)).sum(axis=0)
            means = np.nansum(signs, axis=0) / np.maximum(counts, 1)
            own.append(float(statistic(means)[0]) if counts.all() else math.nan)
        return over_replicates(pooled, own, ends, one_more)


_LOGS = (math.log(LEAST), math.log(MOST))


def _unlogged(estimate: Estimate) -> Estimate:
    value, low, high = (math.exp(x) for x in (estimate.value, *estimate.interval))
    return replace(estimate, value=value, interval=Interval(low, high), error=math.nan)


def _check(share: float) -> None:
    if not 0 < share < 1 or share == 0.5:
        raise UsageError(
            f"a share of captions of {100 * share:g} % says nothing about a gain",
            "name one between 0 and 100 % that is not 50 %",
            code="out-of-range",
        )
