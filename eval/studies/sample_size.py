"""`counterprior study power`: how many items it takes to tell one generator from another."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ...errors import UsageError
from ..core import without_nan
from ..results.contents import read_contents
from ..results.leaderboard import paired
from ..results.scoring import JudgedRun, ScoreSettings
from ..stats.comparison import ALPHA, paired_items
from ..stats.intervals import normal_quantile
from ..suites.base import Headline


@dataclass(frozen=True)
class PlanSettings:
    """Difference to detect, and the error rates of the test."""

    difference: float | None = None
    """Share in (0, 1] to detect; None for the difference of the runs or rates."""
    alpha: float = ALPHA
    """Significance level, two-sided."""
    power: float = 0.8
    """Probability to detect the difference if it exists."""

    def __post_init__(self) -> None:
        """Raises UsageError for a value out of range."""
        if self.difference is not None and not 0 < self.difference <= 1:
            raise UsageError(
                f"difference {self.difference} must be above 0 and at most 1", code="out-of-range"
            )
        if not 0 < self.alpha < 1 or not 0.5 <= self.power < 1:
            raise UsageError(
                f"alpha {self.alpha} must be in (0, 1), power {self.power} in [0.5, 1)",
                code="out-of-range",
            )


def plan(
    runs: Sequence[Path],
    rates: Sequence[float],
    discordance: float | None,
    settings: PlanSettings,
    judges: Sequence[str] = (),
) -> dict[str, Any]:
    """Computes the items needed: judge -> plan from two judged runs of a suite, or one from rates.

    rates: shares of the items, in [0, 1], on which each is right; discordance: share on which just
    one is. Runs are planned by the suite's headline score: the standard error is that of the paired
    bootstrap over clusters, so items that share a pair count for less, and it shrinks as the root
    of the number of clusters. Raises UsageError unless either runs or rates are passed, for runs of
    two suites, and for rates that are equal, outside [0, 1], or beyond the discordance; RunError
    for runs that can't be compared.
    """
    if len(runs) == 2 and not rates and discordance is None:
        return _from_runs(runs, settings, judges)
    if len(rates) == 2 and not runs:
        return _from_rates(rates[0], rates[1], discordance, settings)
    raise UsageError(
        "give two judged runs, or two rates: --rate 0.70 --rate 0.75", code="missing-option"
    )


def _from_rates(
    first: float, second: float, discordance: float | None, settings: PlanSettings
) -> dict[str, Any]:
    """Plans from two rates; without a discordance, as if the two were right independently.

    Generators mostly fail on the same items, so this is cautious.
    """
    if not (0 <= first <= 1 and 0 <= second <= 1) or first == second:
        raise UsageError(
            f"rates {first} and {second} must be two different shares from 0 to 1",
            code="out-of-range",
        )
    apart = first * (1 - second) + second * (1 - first) if discordance is None else discordance
    difference = settings.difference or abs(first - second)
    items = paired_items(difference, apart, settings.alpha, settings.power)
    return {**asdict(settings), "difference": difference, "discordance": apart, "items": items}


def _from_runs(
    runs: Sequence[Path], settings: PlanSettings, judges: Sequence[str]
) -> dict[str, Any]:
    first, second = read_contents(runs, ScoreSettings(judges=tuple(judges)))
    if first.suite.name != second.suite.name:
        raise UsageError(
            f"{runs[0]} is of {first.suite.name}, {runs[1]} of {second.suite.name}",
            code="different-rows",
        )
    theirs = {judged.result.judge: judged for judged in second.judged}
    plain: dict[str, Any] = without_nan(
        {
            ours.result.judge: _between(
                first.suite.headline, ours, theirs[ours.result.judge], settings
            )
            for ours in first.judged
        }
    )
    return plain


def _between(
    headline: Headline, first: JudgedRun, second: JudgedRun, settings: PlanSettings
) -> dict[str, Any]:
    ours, theirs = headline.items(first.outcomes), headline.items(second.outcomes)
    difference_estimate = paired(ours, theirs, headline)
    n = difference_estimate.n
    clusters = len({ours[key].cluster for key in ours.keys() & theirs.keys()})
    difference = settings.difference or abs(difference_estimate.value)
    reach = normal_quantile(1 - settings.alpha) + normal_quantile(2 * settings.power - 1)
    many = (reach * difference_estimate.error / difference) ** 2 if difference else math.nan
    warnings = []
    if not n:
        warnings = ["the runs share no item with a value: nothing can be said"]
    elif settings.difference is None and 0.0 in difference_estimate.interval:
        warnings = ["what the runs show may be chance: name the --difference that matters to you"]
    return {
        **asdict(settings),
        "difference": difference,
        "score": headline.score,
        "shown": difference_estimate.value,
        "shown_95": list(difference_estimate.interval),
        "items_now": n,
        "clusters_now": clusters,
        "detectable_now": reach * difference_estimate.error,
        "items": _whole(n * many),
        "clusters": _whole(clusters * many),
        "warnings": warnings,
    }


def _whole(number: float) -> int | None:
    return math.ceil(number) if math.isfinite(number) else None
