"""`counterprior plan`: how many items it takes to tell one generator from another."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ...errors import UsageError
from ..core import without_nan
from ..results.contents import JudgedRun, read_contents
from ..results.leaderboard import paired
from ..results.scoring import ScoreSettings
from ..stats.comparison import ALPHA, paired_items
from ..stats.intervals import normal_quantile
from ..suites.base import Headline


@dataclass(frozen=True)
class PlanSettings:
    """What is planned for."""

    difference: float | None = None
    """Share in (0, 1] to be found; None for the one that is shown or assumed."""
    alpha: float = ALPHA
    """Significance level, two-sided."""
    power: float = 0.8
    """Chance to find the difference if it is there."""

    def __post_init__(self) -> None:
        """Raises UsageError for what is no share."""
        if self.difference is not None and not 0 < self.difference <= 1:
            raise UsageError(f"difference {self.difference} is no share above 0, up to 1")
        if not 0 < self.alpha < 1 or not 0.5 <= self.power < 1:
            raise UsageError(f"alpha {self.alpha} is in (0, 1), power {self.power} in [0.5, 1)")


def plan(
    runs: Sequence[Path],
    rates: Sequence[float],
    discordance: float | None,
    settings: PlanSettings,
    judges: Sequence[str] = (),
) -> dict[str, Any]:
    """From two judged runs of one suite, or from two assumed rates.

    Raises UsageError unless it is exactly one of the two.
    """
    if len(runs) == 2 and not rates and discordance is None:
        return plan_from_runs(runs, settings, judges)
    if len(rates) == 2 and not runs:
        return plan_from_rates(rates[0], rates[1], discordance, settings)
    raise UsageError("give two judged runs, or two rates: --rate 0.70 --rate 0.75")


def plan_from_rates(
    first: float, second: float, discordance: float | None, settings: PlanSettings
) -> dict[str, Any]:
    """Items for two generators that are right on these shares of them, in [0, 1].

    discordance: share of items on which just one is right; where None, as if they were right
    independently of each other. Two generators mostly fail on the same items, so that is cautious.
    Raises UsageError for rates that are alike, outside [0, 1], or beyond the discordance.
    """
    if not (0 <= first <= 1 and 0 <= second <= 1) or first == second:
        raise UsageError(f"rates {first} and {second} are no two different shares from 0 to 1")
    apart = first * (1 - second) + second * (1 - first) if discordance is None else discordance
    difference = settings.difference or abs(first - second)
    items = paired_items(difference, apart, settings.alpha, settings.power)
    return {**_aims(settings, difference), "discordance": apart, "items": items}


def plan_from_runs(
    runs: Sequence[Path], settings: PlanSettings, judges: Sequence[str] = ()
) -> dict[str, Any]:
    """Judge -> items for the suite's headline score, from how the two runs differ per item.

    The standard error is that of the paired bootstrap over clusters, so items that share a pair
    count for less, and it shrinks as the root of the number of clusters. Raises RunError for runs
    that can't be compared, UsageError for runs of two suites.
    """
    first, second = read_contents(runs, ScoreSettings(judges=tuple(judges)))
    if first.suite.name != second.suite.name:
        raise UsageError(f"{runs[0]} is of {first.suite.name}, {runs[1]} of {second.suite.name}")
    by_judge = {judged.result.judge: judged for judged in second.judged}
    found = {
        judged.result.judge: _between(
            first.suite.headline, judged, by_judge[judged.result.judge], settings
        )
        for judged in first.judged
    }
    plain: dict[str, Any] = without_nan(found)
    return plain


def _between(
    headline: Headline, first: JudgedRun, second: JudgedRun, settings: PlanSettings
) -> dict[str, Any]:
    ours, theirs = headline.items(first.outcomes), headline.items(second.outcomes)
    found, n = paired(ours, theirs, headline)
    shown, interval, error = found.value, found.interval, found.error
    clusters = len({ours[key].cluster for key in ours.keys() & theirs.keys()})
    difference = settings.difference or abs(shown)
    reach = normal_quantile(1 - settings.alpha) + normal_quantile(2 * settings.power - 1)
    many = (reach * error / difference) ** 2 if difference else math.nan
    return {
        **_aims(settings, difference),
        "score": headline.score,
        "shown": shown,
        "shown_95": list(interval),
        "items_now": n,
        "clusters_now": clusters,
        "detectable_now": reach * error,
        "items": _whole(n * many),
        "clusters": _whole(clusters * many),
        "warnings": _warnings(settings, 0.0 in interval, n),
    }


def _warnings(settings: PlanSettings, by_chance: bool, n: int) -> list[str]:
    if not n:
        return ["the runs share no item with a value: nothing can be said"]
    if settings.difference is None and by_chance:
        return ["what the runs show may be chance: name the --difference that matters to you"]
    return []


def _aims(settings: PlanSettings, difference: float) -> dict[str, Any]:
    return asdict(settings) | {"difference": difference}


def _whole(number: float) -> int | None:
    return math.ceil(number) if math.isfinite(number) else None
