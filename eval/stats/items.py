"""Difficulty and discrimination of items, from few generators and many items.

Each generator p has an ability, each item i a difficulty b and a discrimination a:

    P(right) = 1 / (1 + exp(-(a ability - b))),    a = 1 for all items in the Rasch model.

So b is the log odds that a generator of average ability is wrong, whichever way the item
discriminates.

Tests of people have many persons and few items; here it is the other way round. So the abilities
are parameters, each known from hundreds of items, and the items are the random sample: their
difficulties and discriminations have normal distributions, whose mean and spread are estimated
with the abilities by marginal maximum likelihood (EM over a grid; Bock and Aitkin 1981 with the
roles exchanged). A few items may discriminate in any way, or the wrong way: their share is
estimated, too. An item's own values are the mean and standard deviation of its posterior (empirical
Bayes), which are finite also where every generator is right, and don't pick the luckiest of
hundreds. What has no answer is missing, never wrong.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from .bootstrap import Array
from .intervals import LEVEL, NOTHING, Interval

_STEPS, _CLOSE = 200, 1e-3
_ABILITY = 3.0
"""Standard deviation of a normal prior of abilities, which keeps them finite where all is right."""
_NODES: Array = np.linspace(-4, 4, 41)
"""Standard deviations of the intercepts at which the grid has nodes."""
_SLOPES: Array = np.linspace(-3, 4, 29)
_LEAST_SPREAD, _MOST_SPREAD = 0.1, 1.5
"""Limits of the spread of discriminations: with few generators of like ability nothing says it."""
_ODD_SPREAD, _ODD_ITEMS = 1.5, (1.0, 20.0)
"""Standard deviation, around 0, of the discriminations of items that follow no rule; and such items
and all items that the estimate of their share begins with."""


@dataclass(frozen=True)
class ItemModel:
    """A fitted model of k items: logit P(right) = slope ability + intercept."""

    abilities: Array
    """Shape (p,), logits, of mean 0."""
    slopes: Array
    """Shape (k,): posterior means of the discriminations, 1 for the average item."""
    slope_errors: Array
    """Shape (k,): posterior standard deviations."""
    intercepts: Array
    """Shape (k,): log odds that a generator of average ability is right."""
    intercept_errors: Array
    slope_intervals: Array
    """Shape (k, 2): 95 % posterior intervals of the discriminations."""
    spread: float
    """Standard deviation of the usual discriminations over items; 0 in the Rasch model."""
    odd: float = 0.0
    """Share of items whose discrimination follows no rule."""

    @cached_property
    def difficulties(self) -> Array:
        """Shape (k,): log odds that a generator of average ability is wrong."""
        return -self.intercepts

    def chance(self, ability: ArrayLike) -> Array:
        """Probability of being right, shape (..., k), for abilities of shape (...).

        It allows for the uncertainty of each item (MacKay's approximation of a logistic of a normal
        variable).
        """
        theta = np.asarray(ability, dtype=float)[..., None]
        variance = self.intercept_errors**2 + theta**2 * self.slope_errors**2
        logits = theta * self.slopes + self.intercepts
        return _logistic(logits / np.sqrt(1 + math.pi / 8 * variance))

    def information(self, ability: ArrayLike) -> Array:
        """Fisher information of each item about an ability, shape (..., k); 0 for items that don't
        discriminate."""
        chance = self.chance(ability)
        return np.asarray(np.maximum(self.slopes, 0.0) ** 2 * chance * (1 - chance))


def fit_items(
    answers: ArrayLike, discriminations: bool = True, start: ItemModel | None = None
) -> ItemModel:
    """Fits the model to answers in [0, 1], shape (p, k); NaN where there is none.

    discriminations: whether items may differ in them (2PL), or all have 1 (Rasch). The priors:
    abilities are normal around 0 with a standard deviation of 3, intercepts normal with an
    estimated mean and spread, discriminations normal around 1 with an estimated spread, and an
    estimated share of them normal around 0 with a standard deviation of 1.5. An answer between 0
    and 1 counts as such a share of a right answer. start: a model of nearly the same answers, to
    begin with. Raises ValueError for fewer than two generators or two items, and for answers
    outside [0, 1].
    """
    y = np.asarray(answers, dtype=float)
    if y.ndim != 2 or min(y.shape) < 2:
        raise ValueError(f"answers of shape {y.shape}: two generators and two items are needed")
    present = ~np.isnan(y)
    right = np.where(present, y, 0.0)
    if ((right < 0) | (right > 1)).any():
        raise ValueError("answers are in [0, 1]")
    wrong = np.where(present, 1.0 - right, 0.0)
    rates = (right.sum(axis=1) + 0.5) / (present.sum(axis=1) + 1)
    abilities = np.log(rates / (1 - rates))
    center, width = float(abilities.mean()), 1.5
    abilities = abilities - center
    prior = _SlopePrior(0.3, 0.05) if discriminations else None
    if start is not None:
        center, width = float(start.intercepts.mean()), float(start.intercepts.std()) + 0.1
        prior = _SlopePrior(start.spread, start.odd) if prior else None
    slope_nodes = _SLOPES if prior else np.ones(1)
    slopes = np.tile(slope_nodes, len(_NODES))
    posterior = intercepts = np.empty(0)
    for _ in range(_STEPS):
        intercepts = np.repeat(center + width * _NODES, len(slope_nodes))
        logits = abilities[:, None] * slopes + intercepts  # (p, nodes)
        logs = right.T @ -np.logaddexp(0, -logits) + wrong.T @ -np.logaddexp(0, logits)
        logs += np.repeat(-0.5 * _NODES**2, len(slope_nodes))
        if prior:
            logs += np.tile(np.log(prior.density), len(_NODES))
        posterior = np.exp(logs - logs.max(axis=1, keepdims=True))
        posterior /= posterior.sum(axis=1, keepdims=True)
        before, prior_before = abilities, prior
        abilities = _next_abilities(abilities, slopes, intercepts, right, present, posterior)
        shift = float(abilities.mean())
        abilities = abilities - shift
        center = float((posterior @ intercepts).mean()) + shift
        width = max(math.sqrt(float((posterior @ (intercepts + shift - center) ** 2).mean())), 0.1)
        if prior:
            mass = (posterior @ np.tile(np.eye(len(_SLOPES)), (len(_NODES), 1))).sum(axis=0)
            prior, scale = prior.updated(mass)
            # The usual discrimination is 1, so that abilities and difficulties are in logits.
            abilities = abilities * scale
        if np.abs(abilities - before).max() < _CLOSE and (
            not prior or not prior_before or prior.moved(prior_before) < _CLOSE
        ):
            break
    slope_means, intercept_means = posterior @ slopes, posterior @ intercepts
    return ItemModel(
        abilities=abilities,
        slopes=slope_means,
        slope_errors=_errors(posterior, slopes, slope_means),
        intercepts=intercept_means,
        intercept_errors=_errors(posterior, intercepts, intercept_means),
        slope_intervals=_intervals(posterior, slopes),
        spread=prior.spread if prior else 0.0,
        odd=prior.odd if prior else 0.0,
    )


class _SlopePrior:
    """Distribution of discriminations over `_SLOPES`: most around 1, a share `odd` around 0."""

    def __init__(self, spread: float, odd: float) -> None:
        self.spread, self.odd = spread, odd
        usual = np.exp(-0.5 * ((_SLOPES - 1) / spread) ** 2)
        others = np.exp(-0.5 * (_SLOPES / _ODD_SPREAD) ** 2)
        self._usual = (1 - odd) * usual / usual.sum()
        self.density: Array = self._usual + odd * others / others.sum() + 1e-12
        """Shape (slopes,)."""

    def moved(self, before: _SlopePrior) -> float:
        """Largest change of a parameter."""
        return max(abs(self.spread - before.spread), abs(self.odd - before.odd))

    def updated(self, mass: Array) -> tuple[_SlopePrior, float]:
        """The distribution after items of this posterior mass at each slope, and the mean of the
        usual ones, in units of which it is."""
        usual = mass * self._usual / self.density
        scale = float(np.clip(usual @ _SLOPES / usual.sum(), 0.5, 2.0))
        spread = math.sqrt(float(usual @ (_SLOPES - scale) ** 2 / usual.sum())) / scale
        odd = (float(mass.sum() - usual.sum()) + _ODD_ITEMS[0]) / (
            float(mass.sum()) + _ODD_ITEMS[1]
        )
        return _SlopePrior(min(max(spread, _LEAST_SPREAD), _MOST_SPREAD), odd), scale


def _next_abilities(
    abilities: Array,
    slopes: Array,
    intercepts: Array,
    right: Array,
    present: Array,
    posterior: Array,
) -> Array:
    """One Newton step of each ability toward the largest expected likelihood."""
    counts = present.astype(float) @ posterior  # (p, nodes)
    rights = right @ posterior
    chance = _logistic(abilities[:, None] * slopes + intercepts)
    slope = (rights - counts * chance) @ slopes - abilities / _ABILITY**2
    curve = (counts * chance * (1 - chance)) @ slopes**2 + 1 / _ABILITY**2
    return abilities + np.clip(slope / curve, -1, 1)


def _errors(posterior: Array, values: Array, means: Array) -> Array:
    return np.sqrt(np.maximum(posterior @ values**2 - means**2, 0.0))


def _intervals(posterior: Array, values: Array) -> Array:
    """Shape (k, 2): posterior quantiles, linear between the values of the grid."""
    distinct, place = np.unique(values, return_inverse=True)
    mass = np.zeros((len(posterior), len(distinct)))
    np.add.at(mass.T, place, posterior.T)
    below = np.cumsum(mass, axis=1) - mass / 2
    tail = (1 - LEVEL) / 2
    return np.array([np.interp([tail, 1 - tail], row, distinct) for row in below])


def _logistic(logits: Array) -> Array:
    return np.asarray(np.exp(-np.logaddexp(0, -logits)))


@dataclass(frozen=True)
class Fit:
    """How well items follow a model: means of squared residuals, about 1 each."""

    infit: Array
    """Shape (k,): weighted by what the model expects; above 1 is noise, below 1 too regular."""
    outfit: Array
    """Shape (k,): unweighted, so that a single surprise counts much."""
    p_values: Array
    """Shape (k,): of an infit this far above what the model gives."""


def item_fit(answers: ArrayLike, model: ItemModel, draws: int = 300, seed: int = 0) -> Fit:
    """Infit and outfit of answers of shape (p, k), against draws of answers from the model.

    The p-values are posterior predictive ones, by a normal approximation of the cube root: too
    large rather than too small. NaN for items without answers.
    """
    y = np.asarray(answers, dtype=float)
    present = ~np.isnan(y)
    rng = np.random.default_rng(seed)
    observed, expected = [], []
    outfits = []
    for _ in range(draws):
        slopes = model.slopes + model.slope_errors * rng.standard_normal(len(model.slopes))
        noise = rng.standard_normal(len(model.slopes))
        intercepts = model.intercepts + model.intercept_errors * noise
        chance = np.clip(_logistic(model.abilities[:, None] * slopes + intercepts), 1e-6, 1 - 1e-6)
        variance = np.where(present, chance * (1 - chance), 0.0)
        total = np.maximum(variance.sum(axis=0), 1e-9)
        squares = np.where(present, (y - chance) ** 2, 0.0)
        drawn = rng.random(y.shape) < chance
        observed.append(squares.sum(axis=0) / total)
        expected.append((np.where(present, (drawn - chance) ** 2, 0.0)).sum(axis=0) / total)
        ratio = np.where(present, squares / (chance * (1 - chance)), 0.0)
        outfits.append(ratio.sum(axis=0) / np.maximum(present.sum(axis=0), 1))
    seen = present.any(axis=0)
    infit = np.where(seen, np.mean(observed, axis=0), np.nan)
    roots = np.cbrt(np.array(expected))
    gap = np.mean(np.cbrt(np.array(observed)), axis=0) - roots.mean(axis=0)
    spread = np.sqrt(roots.var(axis=0) + np.cbrt(np.array(observed)).var(axis=0))
    from scipy.special import ndtr

    p_values = np.where(seen, ndtr(-gap / np.maximum(spread, 1e-9)), np.nan)
    return Fit(infit, np.where(seen, np.mean(outfits, axis=0), np.nan), p_values)


@dataclass(frozen=True)
class JudgeShift:
    """How much harder an item is under a second judge of the same images, beyond how much stricter
    that judge is on all other items."""

    value: float
    """Logits, conditional on the images of which the judges differ; positive: harder under the
    second. NaN without any."""
    interval: Interval
    p_value: float
    n: int
    """Images, or generators where each has several, on which the judges differ."""


def judge_shifts(first: ArrayLike, second: ArrayLike) -> list[JudgeShift]:
    """Differential functioning of each item between two judges of the same images.

    first, second: answers of shape (p, k), NaN where there is none. Where the two differ, the odds
    of who says right are exp(shift) times the same for all images of an item, however hard each
    image is; Clopper-Pearson intervals and exact binomial tests of each item against all others.
    """
    from scipy.special import bdtr, bdtrc, betaincinv

    difference = np.asarray(first, dtype=float) - np.asarray(second, dtype=float)
    harder = np.nansum(difference > 0, axis=0)
    easier = np.nansum(difference < 0, axis=0)
    shifts = []
    for up, down in zip(harder.tolist(), easier.tolist(), strict=True):
        others = (harder.sum() - up + 0.5, easier.sum() - down + 0.5)
        n = int(up + down)
        if not n:
            shifts.append(JudgeShift(math.nan, NOTHING, math.nan, 0))
            continue
        severity = math.log(others[0] / others[1])
        usual = others[0] / sum(others)
        tail = (1 - LEVEL) / 2
        low = betaincinv(up, down + 1, tail) if up else 0.0
        high = betaincinv(up + 1, down, 1 - tail) if down else 1.0
        least, most = (_logit(float(end)) - severity for end in (low, high))
        below, above = float(bdtr(up, n, usual)), float(bdtrc(up - 1, n, usual)) if up else 1.0
        value = math.log((up + 0.5) / (down + 0.5)) - severity
        shifts.append(JudgeShift(value, Interval(least, most), min(1.0, 2 * min(below, above)), n))
    return shifts


def _logit(share: float) -> float:
    if share in (0.0, 1.0):
        return math.inf if share else -math.inf
    return math.log(share / (1 - share))


def choose_items(model: ItemModel, count: int, clusters: ArrayLike) -> list[int]:
    """The items of a short form: those that leave the least error of the full score.

    One after the other, whichever takes most from the variance of the full score, on average over
    abilities as the generators have. clusters: shape (k,), what items share; as few as possible are
    taken of each, as they are less than independent. Raises ValueError for more than there are.
    """
    groups = np.unique(np.asarray(clusters), return_inverse=True)[1]
    if not 0 < count <= len(groups):
        raise ValueError(f"{count} of {len(groups)} items")
    spread = max(float(model.abilities.std()), 0.5)
    abilities = spread * np.array([-1.5, -0.75, 0.0, 0.75, 1.5])
    weights = np.exp(-0.5 * np.array([-1.5, -0.75, 0.0, 0.75, 1.5]) ** 2)
    information = model.information(abilities)  # (nodes, k)
    chance = model.chance(abilities)
    steepness = (model.slopes * chance * (1 - chance)).mean(axis=1)
    total = np.full(len(abilities), 1 / spread**2)
    limit, used = 1, np.zeros(groups.max() + 1, dtype=int)
    free = np.ones(len(groups), dtype=bool)
    chosen: list[int] = []
    for _ in range(count):
        open_items = free & (used[groups] < limit)
        while not open_items.any():
            limit += 1
            open_items = free & (used[groups] < limit)
        variance = (steepness**2 * weights) @ (1 / (total[:, None] + information))
        best = int(np.where(open_items, variance, np.inf).argmin())
        chosen.append(best)
        free[best] = False
        used[groups[best]] += 1
        total = total + information[:, best]
    return chosen


def linked_score(answers: ArrayLike, model: ItemModel) -> tuple[float, float]:
    """Share right over all items, from answers to some of them, and its standard error.

    answers: shape (k,), NaN for items without one. An ability is estimated from those that are
    there (with a normal prior as wide as the generators of the model differ, at least 1), and gives
    the chance of each of the others. NaN and NaN without any answer.
    """
    y = np.asarray(answers, dtype=float)
    present = ~np.isnan(y)
    if not present.any():
        return math.nan, math.nan
    spread = max(float(model.abilities.std()), 1.0)
    grid = spread * np.linspace(-5, 5, 401)
    chance = np.clip(model.chance(grid), 1e-9, 1 - 1e-9)
    logs = np.log(chance[:, present]) @ y[present] + np.log1p(-chance[:, present]) @ (
        1 - y[present]
    )
    logs -= 0.5 * (grid / spread) ** 2
    posterior = np.exp(logs - logs.max())
    posterior /= posterior.sum()
    others = chance[:, ~present]
    totals = y[present].sum() + others.sum(axis=1)
    mean = float(posterior @ totals)
    noise = float(posterior @ (others * (1 - others)).sum(axis=1))
    variance = float(posterior @ (totals - mean) ** 2) + noise
    return mean / len(y), math.sqrt(variance) / len(y)


def expected_discordance(model: ItemModel) -> Array:
    """Shape (k,): probability that two generators of like ability differ on an item, on average
    over abilities as the generators of the model have."""
    spread = max(float(model.abilities.std()), 0.5)
    nodes = np.linspace(-2.5, 2.5, 21)
    weights = np.exp(-0.5 * nodes**2)
    chance = model.chance(spread * nodes)
    return np.asarray((weights / weights.sum()) @ (2 * chance * (1 - chance)))
