"""`counterfactual`: does the picture follow the premise, or the world it knows? (CF-World)"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import get_args

import numpy as np
from PIL.Image import Image

from ...schema import Counterfactual, Row
from ..core import Case, Outcome
from ..judges import Question
from ..prompts import read_prompt
from ..stats.bootstrap import Array, cluster_bootstrap
from .asking import ask_yes_no
from .scores import Score, in_groups
from .worlds import gated, premise_ratio, reasoning_ratio, weighted_score

LEVELS: tuple[str, ...] = get_args(Counterfactual.model_fields["level"].annotation)
QUESTIONS = ("visual_integrity", "assessment", "logic_consistency")
ANSWERS = {"yes": 1.0, "no": 0.0}


class CounterfactualSuite:
    """Three levels of every group, three weighted questions each."""

    def __init__(self, persona: str) -> None:
        self.prompts = (f"assess_{persona}",)

    def cases(self, row: Row, seeds: int) -> Iterator[Case]:
        assert isinstance(row, Counterfactual)
        for number, seed in enumerate(row.seeds[:seeds]):
            yield Case(
                row.id, row.level, seed, number, row.prompt, (row.altered_law, row.group),
                {"discipline": row.discipline},
                {name: getattr(row, name).weight for name in QUESTIONS},
            )  # fmt: skip

    def questions(
        self, row: Row, case: Case, images: Sequence[Image], probe: str
    ) -> list[Question]:
        assert isinstance(row, Counterfactual)
        if probe != "original":
            return []
        prompt = read_prompt(*self.prompts)
        return [
            ask_yes_no(case, name, prompt, getattr(row, name).text, images[-1])
            for name in QUESTIONS
        ]

    def score(self, outcomes: Sequence[Outcome]) -> list[Score]:
        return in_groups(outcomes, _scores)


def picture_score(outcome: Outcome) -> float:
    """S of one picture in [0, 1]; NaN unless all of its questions have an answer."""
    answers = [ANSWERS.get(outcome.label(name), np.nan) for name in QUESTIONS]
    return weighted_score([outcome.case.weights[name] for name in QUESTIONS], answers)


def _scores(outcomes: list[Outcome], group: str) -> list[Score]:
    _, table, clusters = score_table(outcomes)
    whole = ~np.isnan(table).any(axis=1)
    gated_table = gated(table)
    found = cluster_bootstrap(gated_table, clusters, _means_and_ratios)
    excluded = {"group_incomplete": int((~whole).sum())} if (~whole).any() else {}
    names = (*(f"score_{level}" for level in LEVELS), "prr", "rrr")
    counts = [int((~np.isnan(gated_table[:, i])).sum()) for i in range(3)]
    scores = [
        Score(name, float(found.estimate[i]), found.interval(i), counts[min(i, 2)], "1", excluded,
              group)
        for i, name in enumerate(names)
    ]  # fmt: skip
    passed = float(np.nanmean(table[:, 0] >= 0.5)) if counts[0] else np.nan
    gate = cluster_bootstrap(
        np.where(np.isnan(table[:, 0]), np.nan, table[:, 0] >= 0.5), clusters
    ).interval()
    return [*scores, Score("gate_passed", passed, gate, counts[0], "1", excluded, group)]


def _means_and_ratios(means: Array) -> Array:
    ratios = [
        premise_ratio(means[..., 0], means[..., 1]),
        reasoning_ratio(means[..., 1], means[..., 2]),
    ]
    return np.concatenate([means, np.stack(ratios, axis=-1)], axis=-1)


def score_table(outcomes: Sequence[Outcome]) -> tuple[list[tuple[str, int]], Array, Array]:
    """(Group, seed place) of every row; its S at the three levels, shape (g, 3); its law."""
    rows: dict[tuple[str, int], list[float]] = {}
    laws: dict[tuple[str, int], str] = {}
    place: dict[tuple[str, str], int] = {}
    for outcome in sorted(outcomes, key=lambda o: o.case.id):
        law, group = outcome.case.clusters
        # Rows of a group have seeds of their own: the first of L1 goes with the first of L2.
        number = place[group, outcome.case.variant] = (
            place.get((group, outcome.case.variant), -1) + 1
        )
        scores = rows.setdefault((group, number), [np.nan] * len(LEVELS))
        scores[LEVELS.index(outcome.case.variant)] = picture_score(outcome)
        laws[group, number] = law
    table = np.array(list(rows.values())).reshape(-1, len(LEVELS))
    return list(rows), table, np.array(list(laws.values()))
