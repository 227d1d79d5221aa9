"""`counterfactual`, `counterfactual_denominalized`: premise, or the world as known? (CF-World)

Weighted score, gate and ratios are those of section 3.3, named and described outcomes of 5.3.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, TypeVar, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from PIL.Image import Image

from ...scenes.scene import Scene
from ...schema import Counterfactual, CounterfactualDenominalized, EvaluationQuestion
from ..core import ALL, ORIGINAL, Case, Outcome, Question, Score
from ..questions import read_prompt
from ..questions.asking import ask_yes_no
from ..questions.truth import WorldAspect
from ..stats.bootstrap import Array
from .base import Headline, Item, Items, Measure, Suite, by_variant
from .scoring import in_groups, statistics
from .worths import YES_NO, degree

GATE = 0.5
"""S of L1 from which the group counts: a generator that can't draw the scene says nothing."""
ACCEPTED = "accept"
"""Question for human annotators only, about a plain scene: does the image show it?"""
ACCEPTANCE = ("yes", "no", "unsure", "missing")
"""Answers to it; the first two count, the others are excluded and counted."""
QUESTIONS = ("visual_integrity", "assessment", "logic_consistency")
LEVELS: tuple[str, ...] = get_args(Counterfactual.model_fields["level"].annotation)
W = TypeVar("W", Counterfactual, CounterfactualDenominalized)


def weighted_score(weights: Sequence[float], answers: Sequence[float]) -> float:
    """S = sum w s / sum w over the three questions, each s in [0, 1]; NaN if one has no answer."""
    total = float(sum(weights))
    if total <= 0 or len(weights) != len(answers):
        raise ValueError(f"{len(weights)} weights for {len(answers)} answers")
    return float(sum(w * s for w, s in zip(weights, answers, strict=True)) / total)


def gated(scores: ArrayLike, gate: float = GATE) -> NDArray[np.float64]:
    """S of the plain scene and of altered ones, shape (n, k), with the altered ones 0 where the
    plain one is below the gate.

    A group without a score for the plain scene can't be gated: its others become NaN.
    """
    result = np.array(scores, dtype=float)
    failed = result[:, 0] < gate
    result[failed, 1:] = np.where(np.isnan(result[failed, 1:]), np.nan, 0.0)
    result[np.isnan(result[:, 0]), 1:] = np.nan
    return result


def premise_ratio(l1: ArrayLike, l2: ArrayLike) -> NDArray[np.float64]:
    """Prior Resistance Rate: E[S_L2] / sqrt(E[S_L1]) of mean gated scores, any shape; can exceed 1.

    RRR is the same one level up. NaN where the level below scores 0.
    """
    below = np.asarray(l1, dtype=float)
    root = np.sqrt(np.where(below > 0, below, np.nan))
    ratio: NDArray[np.float64] = np.asarray(l2, dtype=float) / root
    return ratio


def image_score(outcome: Outcome) -> float:
    """S of one image in [0, 1]; NaN unless all of its questions have an answer.

    s_i is the `degree` to which the judge says yes.
    """
    answers = [degree(outcome.verdict(name)) for name in QUESTIONS]
    return weighted_score([outcome.case.weights[name] for name in QUESTIONS], answers)


def score_table(
    outcomes: Sequence[Outcome], variants: Sequence[str]
) -> tuple[list[tuple[str, int]], Array, NDArray[np.str_]]:
    """(Group, seed place) of every line; its S in each variant, shape (g, k); its law.

    The first variant is the plain scene. Clusters of a case are its law and its group.
    """
    rows: dict[tuple[str, int], list[float]] = {}
    laws: dict[tuple[str, int], str] = {}
    place: dict[tuple[str, str], int] = {}
    for outcome in sorted(outcomes, key=lambda o: o.case.id):
        law, group = outcome.case.clusters[0], outcome.case.clusters[-1]
        # Rows of a group have seeds of their own: the first of L1 goes with the first of L2.
        key = group, outcome.case.variant
        number = place[key] = place.get(key, -1) + 1
        scores = rows.setdefault((group, number), [math.nan] * len(variants))
        scores[variants.index(outcome.case.variant)] = image_score(outcome)
        laws[group, number] = law
    table = np.array(list(rows.values())).reshape(-1, len(variants))
    return list(rows), table, np.array(list(laws.values()))


def gated_items(outcomes: Sequence[Outcome], variants: Sequence[str]) -> Items:
    """Gated scores of the variants of every group."""
    keys, table, laws = score_table(outcomes, variants)
    return {
        key: Item(tuple(float(value) for value in row), str(law))
        for key, row, law in zip(keys, gated(table), laws, strict=True)
    }


def world_scores(
    outcomes: Sequence[Outcome],
    variants: Sequence[str],
    ratios: Mapping[str, tuple[str, str]],
    group: str,
    gap: str = "",
) -> list[Score]:
    """Mean gated S of each variant, ratios of two variants, and how many groups pass the gate.

    ratios: score -> variants under the root and above; gap: name of the last variant's mean less
    the one before.
    """
    _, table, laws = score_table(outcomes, variants)
    incomplete = np.asarray(np.isnan(table).any(axis=1))
    # A group without an answer at one level leaves with all of its levels: hard groups that lack
    # only the altered ones would lower the plain mean alone.
    lines = gated(np.where(incomplete[:, None], np.nan, table))
    excluded = {"group_incomplete": int(incomplete.sum())} if incomplete.any() else {}
    place = {name: number for number, name in enumerate(variants)}

    def statistic(means: Array) -> Array:
        columns = [means]
        for low, high in ratios.values():
            columns.append(
                premise_ratio(means[..., place[low]], means[..., place[high]])[..., None]
            )
        if gap:
            columns.append(means[..., -1:] - means[..., -2:-1])
        return np.concatenate(columns, axis=-1)

    counts = [int((~np.isnan(column)).sum()) for column in lines.T]
    common: dict[str, Any] = {"ends": (0, 1), "unit": "1", "group": group}
    score_names = (*(f"score_{name}" for name in variants), *ratios, *([gap] if gap else []))
    of_all = [*counts, *(counts[place[high]] for _, high in ratios.values()), counts[-1]]
    plain = table[:, :1]
    passed = np.where(np.isnan(plain), np.nan, plain >= GATE)
    unknown = int(np.isnan(plain).sum())
    return [
        *statistics(
            score_names,
            lines,
            laws,
            statistic=statistic,
            counts=of_all,
            missing=np.isnan(lines),
            excluded=excluded,
            **common,
        ),
        *statistics(
            ("gate_passed",),
            passed,
            laws,
            counts=[int((~np.isnan(passed)).sum())],
            missing=np.isnan(passed),
            excluded={"group_incomplete": unknown} if unknown else {},
            **common,
        ),
    ]


class Worlds(Suite[W]):
    """Three weighted yes/no questions an image, gated by the plain scene of its group."""

    has_right_images = True
    population = "laws"
    worths = dict.fromkeys(QUESTIONS, YES_NO)

    def evaluation_questions(self, row: W, variant: str) -> dict[str, EvaluationQuestion]:
        """Name -> question about an image."""
        return {name: getattr(row, name) for name in QUESTIONS}

    def world_cases(
        self, row: W, seeds: int, prompts: Mapping[str, str], groups: Mapping[str, str]
    ) -> Iterator[Case]:
        """The cases of a row's prompts, by variant."""
        for variant, prompt in prompts.items():
            weights = {
                name: question.weight
                for name, question in self.evaluation_questions(row, variant).items()
            }
            clusters = (row.altered_law, row.group)
            yield from self.seeded(
                row,
                seeds,
                prompts={variant: prompt},
                clusters=clusters,
                groups=groups,
                weights=weights,
            )

    def questions(self, row: W, case: Case, images: Sequence[Image], probe: str) -> list[Question]:
        if probe != ORIGINAL:
            return []
        prompt = read_prompt(*self.prompts)
        return [
            ask_yes_no(case, name, prompt, question.text, images[-1], facts=aspect._asdict())
            for (name, question), aspect in zip(
                self.evaluation_questions(row, case.variant).items(),
                self.aspects(case.variant).values(),
                strict=True,
            )
        ]

    def aspects(self, variant: str) -> dict[str, WorldAspect]:
        """Question about an image of a variant -> what it asks, of the world that it must show."""
        world = "real" if variant == self.variants[0] else "altered"
        aspects = (
            WorldAspect("presence"),
            WorldAspect("point", world),
            WorldAspect("logic", world),
        )
        return dict(zip(QUESTIONS, aspects, strict=True))

    def truth(self, row: W, case: Case, scene: Scene) -> Mapping[str, str]:
        aspects = self.aspects(case.variant).items()
        return {name: aspect.answer(scene) for name, aspect in aspects} if scene.world else {}

    def correctness(self, outcome: Outcome) -> float:
        return image_score(outcome)

    def measures(self, outcomes: Sequence[Outcome]) -> Iterator[tuple[frozenset[str], Measure]]:
        for variant, of_variant in by_variant(outcomes, self.variants):
            name = f"ungated_{variant}"
            yield frozenset(QUESTIONS), Measure(name, of_variant, image_score, YES_NO, "1")


class CounterfactualSuite(Worlds[Counterfactual]):
    """Three levels of every group, three weighted questions each."""

    name = "counterfactual"
    offline_rows = 40
    offline_judge = "scene"
    variants = LEVELS
    has_gate = True
    human_questions: ClassVar[Mapping[str, tuple[str, ...]]] = {ACCEPTED: ACCEPTANCE}
    meanings = {
        "score_L1": "Mean score of the plain scene, 0 to 1.",
        "score_L2": "Mean score of the scene whose altered law and outcome are told; 0 where the "
        "plain scene failed.",
        "score_L3": "Mean score of the scene whose altered law alone is told; 0 where the plain "
        "scene failed.",
        "prr": "Prior Resistance Rate: E[S_L2] / sqrt(E[S_L1]) (CF-World 3.3). Can exceed 1.",
        "rrr": "Reasoning retention: E[S_L3] / sqrt(E[S_L2]) (CF-World 3.3). Can exceed 1.",
        "gate_passed": "Share of groups whose plain scene scores at least 0.5; groups without such "
        "a score are excluded.",
    }
    headline = Headline(
        score="prr",
        better="higher",
        meaning="What is left of the score of the plain scene under an altered law.",
        items=lambda outcomes: gated_items(outcomes, LEVELS),
        statistic=lambda means: premise_ratio(means[..., 0], means[..., 1])[..., None],
        broken_down=("prr",),
    )

    def cases(self, row: Counterfactual, seeds: int) -> Iterator[Case]:
        groups = {"discipline": row.discipline}
        return self.world_cases(row, seeds, {row.level: row.prompt}, groups)

    def together(self, row: Counterfactual) -> str:
        return row.group

    def score(self, outcomes: Sequence[Outcome]) -> list[Score]:
        ratios = {"prr": ("L1", "L2"), "rrr": ("L2", "L3")}
        return in_groups(
            outcomes, lambda members, group: world_scores(members, LEVELS, ratios, group)
        )


class CounterfactualDenominalizedSuite(Worlds[CounterfactualDenominalized]):
    """Each group's L1, its L2, and its L2 with the outcome described: scored as CF-Eval, gated."""

    name = "counterfactual_denominalized"
    offline_rows = 40
    offline_judge = "scene"
    variants = ("plain", "named", "described")
    meanings = {
        "score_plain": "Mean score of the plain scene (L1), 0 to 1.",
        "score_named": "Mean gated score of L2 as written.",
        "score_described": "Mean gated score of L2 whose outcome is described, not named.",
        "prr_named": "Prior Resistance Rate of L2 as written.",
        "prr_described": "Prior Resistance Rate of L2 whose outcome is described.",
        "denominalization_gain": "Described less named: what the noun alone costs.",
        "gate_passed": "Share of groups whose plain scene scores at least 0.5.",
    }
    headline = Headline(
        score="prr_described",
        better="higher",
        meaning="What is left of the plain scene's score where the outcome is described, not "
        "named.",
        items=lambda outcomes: gated_items(outcomes, CounterfactualDenominalizedSuite.variants),
        statistic=lambda means: premise_ratio(means[..., 0], means[..., 2])[..., None],
    )

    def evaluation_questions(
        self, row: CounterfactualDenominalized, variant: str
    ) -> dict[str, EvaluationQuestion]:
        prefix = "plain_" if variant == "plain" else ""
        return {name: getattr(row, prefix + name) for name in QUESTIONS}

    def cases(self, row: CounterfactualDenominalized, seeds: int) -> Iterator[Case]:
        prompts = (row.plain_prompt, row.original_prompt, row.prompt)
        return self.world_cases(row, seeds, dict(zip(self.variants, prompts, strict=True)), {})

    def score(self, outcomes: Sequence[Outcome]) -> list[Score]:
        ratios = {"prr_named": ("plain", "named"), "prr_described": ("plain", "described")}
        return world_scores(outcomes, self.variants, ratios, ALL, gap="denominalization_gain")
