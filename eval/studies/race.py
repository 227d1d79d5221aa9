"""Race of generators: finds the best one with as few images as it takes.

`eliminate` compares all generators on the same items and drops one as soon as the evidence that
another is better is beyond doubt: it may look at every moment, and the best is dropped with
probability at most alpha. The best is the one with the largest mean over items of further clusters
like these (other laws, other pairs), so that items of a cluster are no independent evidence: first
a single item of each cluster is drawn, and only then all of them. `ucb` is OPSE's bandit as
published, which gives no such promise.
"""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...errors import UsageError
from ...progress import Progress, silent
from ..geometry.boxes import Convention, check_convention
from ..stats.intervals import NOTHING, Interval
from ..stats.sequential import Wealth, confidence_sequence

ItemScorer = Callable[[str, str], float | None]
"""From generator and item to a score in [0, 1], or None without an image or a verdict."""
Policy = Literal["eliminate", "ucb"]
POLICIES = ("eliminate", "ucb")

LEAST_SHARE = 0.4
"""Chance of the least informative item to be drawn, as a share of that of the most informative one:
a model of items may be wrong, and no item may weigh much more than others."""

PULL = 5
"""Images of one pull of the bandit, drawn with replacement."""
_FIRST_LOOK = 32


@dataclass(frozen=True)
class RaceSettings:
    """How to race."""

    policy: Policy = "eliminate"
    """Rule that decides which generator is drawn next."""
    alpha: float = 0.05
    """Probability with which the best may be dropped."""
    delta: float = 0.0
    """Difference of means below which generators count as tied; 0: never."""
    seed: int = 0
    """Order of the items, and the bandit's draws."""
    rounds: int = 100
    """Pulls of the bandit."""
    exploration: float = 2.0
    """Weight of the bandit's bonus; sqrt(2) is the textbook's for scores in [0, 1]."""
    convention: Convention = "authors"
    """The bandit's clock: it starts at the authors' 5 M + 1, or at the pulls made (`paper`)."""

    def __post_init__(self) -> None:
        check_convention(self.convention)
        if self.policy not in POLICIES:
            raise UsageError(
                f"no policy {self.policy!r}: choose from {', '.join(POLICIES)}", code="unknown-name"
            )
        if not 0 < self.alpha < 1:
            raise UsageError(f"alpha {self.alpha} is not between 0 and 1", code="out-of-range")
        if not 0 <= self.delta < 1:
            raise UsageError(f"delta {self.delta} is not in [0, 1)", code="out-of-range")
        if not 0 <= self.exploration < math.inf:
            raise UsageError(
                f"exploration {self.exploration} is not a number from 0 on", code="out-of-range"
            )


@dataclass(frozen=True)
class Dropped:
    """A generator that is not the best."""

    name: str
    by: str
    items: int
    """Items that it took, all images of it."""


@dataclass(frozen=True)
class Difference:
    """Mean of one generator less that of another, over the items that both have."""

    first: str
    second: str
    mean: float | None
    """In [-1, 1]; None if they share no item with a score."""
    interval: tuple[float, float] | None
    """All intervals of a race hold together, at all times, with probability 1 - alpha."""
    items: int
    """Items with a score of both."""


@dataclass(frozen=True)
class RaceResult:
    """How a race ended."""

    policy: str
    leaders: tuple[str, ...]
    """Generators that may still be the best: a single one if it is decided, several if the items
    ran out or the remaining ones are tied within delta."""
    ending: Literal["decided", "tied", "exhausted", "rounds"]
    means: dict[str, float | None]
    """Mean score of each generator over its own images."""
    images: dict[str, int]
    missing: dict[str, int]
    items: int
    clusters: int
    """Clusters that these items belong to; as many as there are items where all are independent."""
    saved: int
    """Images that scoring every generator on every item would have taken besides."""
    dropped: tuple[Dropped, ...] = ()
    differences: tuple[Difference, ...] = ()
    pulls: dict[str, int] = field(default_factory=dict)
    """Pulls of each generator; empty unless the policy pulls."""
    choices: tuple[str, ...] = ()
    """Generator of each pull after everybody's first one, in order."""
    regret: tuple[float, ...] = ()
    """After each of these, how much lower the means of those pulled were than the best, summed
    (PSE, Fig. 6). The means are those at the end, because nobody knows the true ones."""


@dataclass
class _Table:
    """Scores so far, each computed once."""

    generators: Sequence[str]
    score: ItemScorer
    scores: dict[tuple[str, str], float] = field(default_factory=dict)

    def get(self, name: str, item: str) -> float:
        """Returns the score; NaN without one. Raises UsageError for a score outside [0, 1]."""
        key = name, item
        if key not in self.scores:
            value = self.score(name, item)
            if value is not None and not 0 <= value <= 1:
                raise UsageError(
                    f"{name}, item {item}: score {value} is not in [0, 1]", code="out-of-range"
                )
            self.scores[key] = math.nan if value is None else float(value)
        return self.scores[key]


class _End(NamedTuple):
    """Result of a policy."""

    leaders: tuple[str, ...]
    ending: Any
    dropped: tuple[Dropped, ...] = ()
    differences: tuple[Difference, ...] = ()
    pulls: Mapping[str, int] = MappingProxyType({})
    choices: tuple[str, ...] = ()
    regret: tuple[float, ...] = ()


def race(
    generators: Sequence[str],
    items: Sequence[str],
    score: ItemScorer,
    settings: RaceSettings | None = None,
    progress: Progress = silent,
    clusters: Mapping[str, str] | None = None,
    information: Mapping[str, float] | None = None,
) -> RaceResult:
    """Races generators over items.

    clusters: item -> name of the cluster that it shares with others; None where all items are
    independent. information: item -> probability that two like generators differ on it, see
    `passes_over`; without one an item counts as the most informative. Raises UsageError for fewer
    than two generators, names that repeat, and scores outside [0, 1].
    """
    settings = settings or RaceSettings()
    if len(generators) < 2 or len(set(generators)) < len(generators):
        raise UsageError("a race needs two or more generators, each once", code="too-few-items")
    if not items or len(set(items)) < len(items):
        raise UsageError("a race needs items, each once", code="too-few-items")
    table = _Table(generators, score)
    if settings.policy == "eliminate":
        of_items = {item: (clusters or {}).get(item, item) for item in items}
        passes = passes_over(of_items, settings, information)
        end = _eliminate(table, passes, settings, progress)
    else:
        end = _ucb(table, sorted(items), settings, progress)
    drawn = {item for _, item in table.scores}
    values_by_generator = {
        name: [v for (n, _), v in table.scores.items() if n == name] for name in generators
    }
    scored = {
        name: [v for v in values if not math.isnan(v)]
        for name, values in values_by_generator.items()
    }
    return RaceResult(
        policy=settings.policy,
        means={n: float(np.mean(v)) if v else None for n, v in scored.items()},
        images={name: len(values) for name, values in values_by_generator.items()},
        missing={name: len(values_by_generator[name]) - len(scored[name]) for name in generators},
        items=len(drawn),
        clusters=len({(clusters or {}).get(item, item) for item in drawn}),
        saved=len(generators) * len(items) - len(table.scores),
        **end._asdict() | {"pulls": dict(end.pulls)},
    )


class Look(NamedTuple):
    """Items that are drawn together, before the evidence is looked at again."""

    items: tuple[str, ...]
    """Items of one cluster."""
    weight: float
    """Weight of the mean of their scores, in (0, 1]: over all looks of a pass, the weighted mean
    is that over all items, whatever the clusters' sizes."""


def passes_over(
    clusters: Mapping[str, str],
    settings: RaceSettings,
    information: Mapping[str, float] | None = None,
) -> list[Pass]:
    """The passes of a race: at most one item of each cluster, then all items of each; clusters in
    the same random order. A single pass where every item is its own cluster, and all tell alike.

    clusters: item -> cluster. Items are drawn in the first pass with known probabilities, and the
    look's weight is in inverse proportion to them (Horvitz, Thompson 1952), so that every item
    counts alike and the race stays valid. The probabilities are alike, or in proportion to the
    square root of the `information`, which gives the least variance for the images; then this pass
    has most of alpha.
    """
    members: dict[str, list[str]] = {}
    for item in sorted(clusters):
        members.setdefault(clusters[item], []).append(item)
    rng = random.Random(settings.seed)
    order = rng.sample(sorted(members), len(members))
    largest = max(map(len, members.values()))
    whole = [Look(tuple(members[name]), len(members[name]) / largest) for name in order]
    if largest == 1 and not information:
        return [Pass(whole, settings.alpha)]
    most = max((information or {}).values(), default=0.0)
    shares = {
        item: max(LEAST_SHARE, math.sqrt(information.get(item, most) / most))
        if information and most > 0
        else 1.0
        for item in clusters
    }
    total = max(sum(shares[item] for item in of_cluster) for of_cluster in members.values())
    least = min(shares.values())
    single = []
    for name in order:
        place = rng.random() * total
        for item in members[name]:
            place -= shares[item]
            if place < 0:
                single.append(Look((item,), least / shares[item]))
                break
    first = (0.8 if information else 0.5) * settings.alpha
    return [Pass(single, first), Pass(whole, settings.alpha - first)]


class Pass(NamedTuple):
    """One way through the clusters."""

    looks: Sequence[Look]
    alpha: float
    """Probability with which the best may be dropped in it."""


class _Course:
    """Scores of one pass, look by look."""

    def __init__(self, generators: Sequence[str], alpha: float) -> None:
        self.alpha = alpha
        self.wealth = Wealth((len(generators), len(generators)))
        self._scores: list[NDArray[np.float64]] = []
        self._weights: list[float] = []

    def add(self, scores: NDArray[np.float64], alive: Sequence[int], weight: float) -> None:
        """Adds a look: scores of shape (items, generators), NaN without one."""
        # What an image without a score might have been counts against the generator that is ahead.
        lost = np.isin(range(scores.shape[1]), alive) & np.isnan(scores)
        least = np.where(lost, 0.0, scores).mean(axis=0)
        most = np.where(lost, 1.0, scores).mean(axis=0)
        self.wealth.add(weight * (least[:, None] - most[None, :]))
        self._scores.append(scores)
        self._weights.append(weight)

    def difference(self, pair: tuple[int, int], level: float) -> tuple[float, Interval]:
        """Weighted mean of the first less the second, over the items that both have, with its
        interval; NaN and NOTHING without any."""
        if not self._scores:
            return math.nan, NOTHING
        sizes = np.array([len(scores) for scores in self._scores])
        rows = np.concatenate(self._scores)
        differences = rows[:, pair[0]] - rows[:, pair[1]]
        shared = ~np.isnan(differences)
        look = np.repeat(np.arange(len(sizes)), sizes)[shared]
        counts = np.bincount(look, minlength=len(sizes))
        sums = np.bincount(look, weights=differences[shared], minlength=len(sizes))
        weights = np.array(self._weights) * counts / sizes
        if not weights.any():
            return math.nan, NOTHING
        means = np.divide(sums, counts, out=np.full(len(sizes), np.nan), where=counts > 0)
        mean = float(np.nansum(weights * means) / weights.sum())
        return mean, confidence_sequence(np.clip(means, -1, 1), level, weights)


def _eliminate(
    table: _Table, passes: Sequence[Pass], settings: RaceSettings, progress: Progress
) -> _End:
    """Successive elimination on paired differences, in each pass with its share of alpha.

    The best is compared with M - 1 others, so each comparison may err with alpha / (M - 1). An
    image without a score counts as 0 for the generator that is ahead and as 1 for the other one.
    """
    generators = table.generators
    alive = list(range(len(generators)))
    dropped: list[Dropped] = []
    drawn: set[str] = set()
    courses: list[_Course] = []
    ending, next_check = "exhausted", _FIRST_LOOK
    total, done = sum(len(looks) for looks, _ in passes), 0
    for looks, alpha in passes:
        limit = math.log((len(generators) - 1) / alpha)
        course = _Course(generators, alpha)
        courses.append(course)
        for look in looks:
            progress("looks", done, total)
            done += 1
            drawn.update(look.items)
            scores = np.full((len(look.items), len(generators)), np.nan)
            for index in alive:
                scores[:, index] = [table.get(generators[index], item) for item in look.items]
            course.add(scores, alive, look.weight)
            evidence = course.wealth.evidence
            for loser in list(alive):
                winner = max((i for i in alive if i != loser), key=lambda i: evidence[i, loser])
                if evidence[winner, loser] >= limit:
                    dropped.append(Dropped(generators[loser], generators[winner], len(drawn)))
                    alive.remove(loser)
                    if len(alive) == 1:
                        break
            if len(alive) == 1:
                ending = "decided"
                break
            if settings.delta and done >= next_check:
                next_check = next_check * 5 // 4
                open_differences = [
                    _difference(table, courses, pair) for pair in itertools.combinations(alive, 2)
                ]
                if all(_is_tied(difference, settings.delta) for difference in open_differences):
                    ending = "tied"
                    break
        if ending != "exhausted":
            break
    progress("looks", total, total)
    differences = [
        _difference(table, courses, pair)
        for pair in itertools.combinations(range(len(generators)), 2)
    ]
    leaders = [generators[index] for index in alive]
    return _End(tuple(leaders), ending, tuple(dropped), tuple(differences))


def _difference(
    table: _Table,
    courses: Sequence[_Course],
    pair: tuple[int, int],
) -> Difference:
    """The difference of two generators in the pass that says most; its interval is what all passes
    agree on."""
    generators = table.generators
    pairs = len(generators) * (len(generators) - 1) / 2
    estimates = [course.difference(pair, 1 - course.alpha / pairs) for course in courses]
    estimates = [estimate for estimate in estimates if not math.isnan(estimate[0])]
    first, second = (generators[index] for index in pair)
    if not estimates:
        return Difference(first, second, mean=None, interval=None, items=0)
    mean, narrowest = min(estimates, key=lambda estimate: estimate[1].high - estimate[1].low)
    low = max(interval.low for _, interval in estimates)
    high = min(interval.high for _, interval in estimates)
    if low > high:  # with probability alpha at most
        low, high = narrowest
    scored = (
        {
            item
            for (name, item), value in table.scores.items()
            if name == n and not math.isnan(value)
        }
        for n in (first, second)
    )
    shared = set.intersection(*scored)
    return Difference(first, second, mean=mean, interval=(low, high), items=len(shared))


def _is_tied(difference: Difference, delta: float) -> bool:
    return difference.interval is not None and max(map(abs, difference.interval)) <= delta


def ucb_index(mean: float, pulls: int, clock: float, exploration: float = 2.0) -> float:
    """mean + exploration * sqrt(ln(clock) / pulls): OPSE's Eq. 7."""
    return mean + exploration * math.sqrt(math.log(clock) / pulls)


def _ucb(table: _Table, items: Sequence[str], settings: RaceSettings, progress: Progress) -> _End:
    """Pulls whoever has the largest index; a pull is the mean of `PULL` items with replacement.

    No error guarantee: where means are close it is as good as a coin.
    """
    rng = random.Random(settings.seed)
    pulls: dict[str, list[float]] = {name: [] for name in table.generators}

    def pull(name: str) -> None:
        drawn = [table.get(name, item) for item in rng.choices(items, k=PULL)]
        scored = [value for value in drawn if not math.isnan(value)]
        if scored:  # a pull without any score tells nothing
            pulls[name].append(sum(scored) / len(scored))

    def index(name: str, clock: int) -> float:
        if not pulls[name]:
            return math.inf
        mean = sum(pulls[name]) / len(pulls[name])
        return ucb_index(mean, len(pulls[name]), clock, settings.exploration)

    for name in table.generators:
        pull(name)
    choices: list[str] = []
    start = (
        PULL * len(table.generators) if settings.convention == "authors" else len(table.generators)
    )
    for number in range(settings.rounds):
        progress("pulls", number, settings.rounds)
        clock = start + 1 + number
        shuffled = rng.sample(table.generators, len(table.generators))  # ties fall at random
        choices.append(max(shuffled, key=partial(index, clock=clock)))
        pull(choices[-1])
    progress("pulls", settings.rounds, settings.rounds)
    means = {name: sum(values) / len(values) for name, values in pulls.items() if values}
    best = sorted(means, key=lambda name: -means[name])[:1]
    counts = Counter([*table.generators, *choices])
    return _End(
        tuple(best),
        "rounds",
        pulls={name: counts[name] for name in table.generators},
        choices=tuple(choices),
        regret=cumulative_regret(choices, means),
    )


def cumulative_regret(choices: Sequence[str], means: Mapping[str, float]) -> tuple[float, ...]:
    """Regret after each choice: sum of the gaps between the best mean and those chosen so far.

    A choice without a mean, because none of its images could be scored, adds nothing.

    >>> cumulative_regret(["a", "b", "a"], {"a": 0.25, "b": 0.75})
    (0.5, 0.5, 1.0)
    """
    best = max(means.values(), default=0.0)
    return tuple(itertools.accumulate(best - means.get(name, best) for name in choices))


def course_figure(result: RaceResult) -> str:
    """Returns the course of a bandit as an SVG file; empty if nothing was pulled."""
    from ..report.plots import as_file, course_plot

    if not result.choices:
        return ""
    figure = course_plot(result.choices, result.regret, result.pulls)
    return as_file(figure, "Pulls of each generator, and regret")
