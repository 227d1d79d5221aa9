"""A score: a number that carries its n, its interval and what was left out."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core import BOTH, Outcome
from ..stats.bootstrap import Array
from ..stats.clusters import cluster_interval
from ..stats.intervals import NOTHING, Interval, bounds

ALL = "all"
MANY = 0.1
"""Share of excluded items from which a score shows its bounds."""


@dataclass(frozen=True)
class Score:
    """One number about one generator under one judge."""

    name: str
    """Metric, e.g. `hom`."""
    value: float
    """In `unit`; NaN where it is undefined, never 0 instead."""
    interval: Interval
    """95 %, over clusters of items that belong together."""
    n: int
    """Items that count."""
    unit: str
    """`%` (0 to 100, or -100 to 100 where signed), or `1` (0 to 1)."""
    excluded: Mapping[str, int] = field(default_factory=dict)
    """Items that don't count, by label."""
    group: str = ALL
    """`all`, or `column=value`."""
    wide: Interval = NOTHING
    """95 % over both members of a pair at once (conservative), where members recur."""
    null: float = math.nan
    """What would be expected without any effect, where that isn't 0."""
    bounds: Interval = NOTHING
    """If all that was left out were for, or against; only where more than a tenth was."""
    p_value: float = math.nan
    """Of the test that the metric names, where it names one."""

    def to_json(self) -> dict[str, Any]:
        """Plain values; NaN as None."""
        return {name: _plain(value) for name, value in asdict(self).items()}

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Score:
        """The inverse of `to_json`."""
        values: dict[str, Any] = {
            name: math.nan if value is None else value for name, value in record.items()
        }
        for name in ("interval", "wide", "bounds"):
            values[name] = Interval(*(math.nan if end is None else end for end in record[name]))
        return cls(**values)


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return None if math.isnan(value) else value
    if isinstance(value, (tuple, list)):
        return [_plain(item) for item in value]
    return value


def grouped(outcomes: Sequence[Outcome]) -> Iterable[tuple[str, list[Outcome]]]:
    """All outcomes, and then those of each value of each of their groups, sorted."""
    yield ALL, list(outcomes)
    parts: dict[tuple[str, str], list[Outcome]] = {}
    for outcome in outcomes:
        for column, values in outcome.case.groups.items():
            for value in values.split(BOTH):
                parts.setdefault((column, value), []).append(outcome)
    for (column, value), part in sorted(parts.items(), key=lambda item: item[0]):
        yield f"{column}={value}", part


def in_groups(
    outcomes: Sequence[Outcome], score: Callable[[list[Outcome], str], Iterable[Score]]
) -> list[Score]:
    """The scores of all outcomes and of each of their groups."""
    return [s for group, part in grouped(outcomes) for s in score(part, group)]


def mean_score(
    name: str, values: Array, outcomes: Sequence[Outcome], excluded: Mapping[str, int], unit: str,
    group: str,
) -> Score:  # fmt: skip
    """The mean of a value in [0, 1] of each outcome, shape (n,); NaN is left out.

    Where more than a tenth is, it has bounds.
    """
    n = int((~np.isnan(values)).sum())
    factor = 100 if unit == "%" else 1
    left_out = len(values) - n
    limits = bounds(float(np.nansum(values)), n, left_out, 0, 1).scaled(factor)
    return Score(
        name,
        factor * float(np.nanmean(values)) if n else math.nan,
        cluster_interval(values, cluster_labels(outcomes), (0, 1))[0].interval.scaled(factor),
        n,
        unit,
        excluded,
        group,
        bounds=limits if left_out > MANY * len(values) else NOTHING,
    )


def cluster_labels(outcomes: Sequence[Outcome]) -> NDArray[np.str_]:
    """Shape (n,): the narrowest cluster of each outcome."""
    return np.array([outcome.case.clusters[0] for outcome in outcomes])


def member_labels(outcomes: Sequence[Outcome]) -> NDArray[np.str_] | None:
    """Shape (n, 2): both members of each outcome's pair; None where members don't recur."""
    if not outcomes or any(len(outcome.case.clusters) != 3 for outcome in outcomes):
        return None
    return np.array([outcome.case.clusters[1:] for outcome in outcomes])
