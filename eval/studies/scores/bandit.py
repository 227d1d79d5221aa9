"""`ucb:`: where a bandit's pulls go among the generators of a study (PSE, Fig. 6).

The bandit is that of `counterprior study race --policy ucb`, on scores that the study has: it costs
nothing, and no judge is asked again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from ...core import Score
from ...suites import open_suite
from ..race import RaceResult, RaceSettings, course_figure, race
from .scope import LabeledRun, ScoreInputs

NAMES = ("pulls", "mean", "regret")


def find(name: str, scope: ScoreInputs) -> Score | None:
    """Computes a generator's ``pulls``, the ``mean`` score of its pulled images, in [0, 1], or the
    ``regret`` that its pulls added.

    An image scores what the judge measured, or else how right its labels make it. None with fewer
    than two generators.
    """
    course = play(scope.rivals)
    if course is None:
        return None
    means = {n: mean for n, mean in course.means.items() if mean is not None}
    mean = means.get(scope.name, math.nan)
    pulls = course.pulls[scope.name]
    value, unit = {
        "pulls": (float(pulls), "pulls"),
        "mean": (mean, "1"),
        "regret": (course.choices.count(scope.name) * (max(means.values()) - mean), "1"),
    }[name]
    missing = course.missing[scope.name]
    excluded = {"not scored": missing} if missing else {}
    n = course.images[scope.name] - missing
    return Score(value, n=n, excluded=excluded, name=f"ucb:{name}", unit=unit)


def play(rivals: Mapping[str, LabeledRun]) -> RaceResult | None:
    """Plays the bandit on recorded scores; None with fewer than two generators, or if no image has
    a score."""
    tables = {name: _scores(cell) for name, cell in rivals.items()}
    scores = (value for table in tables.values() for value in table.values())
    if len(tables) < 2 or all(map(math.isnan, scores)):
        return None
    items = sorted(set().union(*tables.values()))

    def score(name: str, item: str) -> float | None:
        value = tables[name].get(item, math.nan)
        return None if math.isnan(value) else value

    return race(list(tables), items, score, RaceSettings(policy="ucb"))


def figure(rivals: Mapping[str, LabeledRun]) -> str:
    """Draws the bandit's course as SVG; empty without one."""
    course = play(rivals)
    return "" if course is None else course_figure(course)


def _scores(cell: LabeledRun) -> dict[str, float]:
    """Case -> score of its image in [0, 1], NaN without a score."""
    suite = open_suite(cell.suite)
    scores = {}
    for outcome in cell.outcomes:
        numbers = [outcome.verdict(question).number for question in suite.worths]
        measured = [number for number in numbers if number is not None]
        if measured and not any(outcome.verdict(question).failed for question in suite.worths):
            scores[outcome.case.id] = sum(measured) / len(measured)
        else:
            scores[outcome.case.id] = suite.correctness(outcome)
    return scores
