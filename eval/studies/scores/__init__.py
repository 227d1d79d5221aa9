"""Scores of a table that no suite has: one kind, one prefix, one line in `KINDS`.

A suite scores one run under one judge. These need more: human labels, the run without a method,
every generator, or the reason of a rule.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from ....errors import UsageError
from ...core import Score
from . import (
    bandit,
    boxes,
    categories,
    checker,
    dose,
    forward,
    gate,
    own_errors,
    people,
    replicates,
    switched,
)
from .scope import ScoreInputs

Needs = Literal["own", "base", "rivals"]


@dataclass(frozen=True)
class ScoreKind:
    """Scores that share a prefix."""

    find: Callable[[str, ScoreInputs], Score | None]
    """Computes the score of a name without the prefix; None without any item to score."""
    patterns: Sequence[str]
    """Names that may follow the prefix; a `*` stands for anything."""
    needs: Needs = "own"
    """Other cells that it reads: that without a method, or those of all generators."""
    reads: Callable[[str, str], Sequence[str]] | None = None
    """From name and generator to patterns of the rivals that it reads; all of them where None."""
    pools: bool = False
    """Whether it may be of several suites or generators together."""
    lacking: str = "not computed"
    """Reason for a missing score."""


KINDS = {
    "people": ScoreKind(people.find, people.NAMES, pools=True, lacking="no labels of people"),
    "gate": ScoreKind(gate.find, gate.NAMES, pools=True, lacking="no label `accept` of people"),
    "switched": ScoreKind(switched.find, switched.NAMES, needs="base", lacking="no biased case"),
    "boxes": ScoreKind(boxes.find, boxes.NAMES, lacking="no boxes, or no prompt with two"),
    "category": ScoreKind(
        categories.find, categories.NAMES, lacking="no such pair, or no rule that names both things"
    ),
    "checker": ScoreKind(checker.find, checker.NAMES, lacking="the judge is no checker"),
    "forward": ScoreKind(
        forward.find, forward.NAMES, "rivals", forward.reads, lacking="no such pair of models"
    ),
    "own_errors": ScoreKind(
        own_errors.find,
        own_errors.NAMES,
        "rivals",
        own_errors.reads,
        lacking="the start itself is not judged",
    ),
    "replicates": ScoreKind(
        replicates.find,
        replicates.NAMES,
        "rivals",
        replicates.reads,
        pools=True,
        lacking="no image that counts, or no pair of trainings",
    ),
    "dose": ScoreKind(
        dose.find, dose.NAMES, pools=True, lacking="not the same trainings of each share"
    ),
    "ucb": ScoreKind(bandit.find, bandit.NAMES, needs="rivals", lacking="fewer than 2 to choose"),
}
"""Prefix -> kind; a score is written ``PREFIX:NAME``."""


P_VALUE = "p:"
"""Before the name of a score: the p-value of its test in place of its value."""


def kind_of(score: str) -> ScoreKind | None:
    """The kind of a score by its prefix; None for a suite's own."""
    score = score.removeprefix(P_VALUE)
    return KINDS.get(score.partition(":")[0]) if ":" in score else None


def name_problem(score: str) -> str:
    """Message for an unknown name of a kind; empty for a known one."""
    prefix, _, name = score.removeprefix(P_VALUE).partition(":")
    patterns = KINDS[prefix].patterns
    if any(_fits(name, pattern) for pattern in patterns):
        return ""
    return f"no score {score!r}: choose from {', '.join(f'{prefix}:{n}' for n in patterns)}"


def find_score(name: str, group: str, scope: ScoreInputs) -> Score | None:
    """Finds a score of a suite in a group, or computes one of a kind; None without either.

    Raises UsageError for a name that no kind has.
    """
    if name.startswith(P_VALUE):
        tested = find_score(name.removeprefix(P_VALUE), group, scope)
        if tested is None or math.isnan(tested.p_value):
            return None
        return Score(tested.p_value, n=tested.n, name=name, unit="p", group=group)
    kind = kind_of(name)
    if kind is None:
        (cell,) = scope.cells
        return next(
            (s for s in cell.judged.result.scores if s.name == name and s.group == group), None
        )
    if problem := name_problem(name):
        raise UsageError(problem, code="unknown-name")
    return kind.find(name.partition(":")[2], scope)


def _fits(name: str, pattern: str) -> bool:
    start, star, _ = pattern.partition("*")
    return name.startswith(start) and len(name) > len(start) if star else name == pattern
