"""`t2i_correctness`, `i2i_correctness`: right in both mention orders, or in one? (OTS-Bench)"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from PIL.Image import Image

from ...scenes.poses import find_pose
from ...scenes.scene import Scene
from ...schema import I2ICorrectness, T2ICorrectness, T2ICorrectnessGold
from ..core import INVALID, Case, Outcome, Question, Score, is_mirrored
from ..prompts.asking import Alternative, Subject, ask_binding, ask_which
from ..stats.comparison import mcnemar
from ..trials.rows import ACTIONS
from ..trials.trials import Trial, binding_trials, choice_trials, grounding_trials
from .base import (
    Headline,
    Measure,
    R,
    Suite,
    Worth,
    about_pair,
    by_variant,
    case_items,
)
from .scores import cluster_labels, in_groups, mean_worth, statistics, valid_score, variant_scores

RIGHT = Worth({"correct": 1.0, "wrong": 0.0}, prior="correct", others=(INVALID,))


def correctness_headline(question: str) -> Headline:
    """Ranks by accuracy where mention order misleads."""
    return Headline(
        score="accuracy_reverse",
        better="higher",
        meaning="Share of right images where the order of mention speaks against the right one.",
        items=case_items(question, RIGHT, "reverse"),
        broken_down=("accuracy_aligned", "accuracy_reverse"),
        slope=("accuracy_aligned", "accuracy_reverse"),
    )


def ask_arrangement(
    row: T2ICorrectness | T2ICorrectnessGold, case: Case, probe: str, images: Sequence[Image]
) -> Question:
    """Does the pair stand as it must? Of a gold image it is the very question of the suite."""
    asked = Alternative(
        "arrangement",
        Subject(row.left, row.tell_left),
        Subject(row.right, row.tell_right),
        ("correct", "wrong"),
        prior=RIGHT.prior,
        values={"context": row.context},
    )
    return ask_which(asked, case, probe, images)


class Correctness(Suite[R]):
    """One question, right or wrong, asked of both mention orders."""

    has_right_images = True
    variants = ("aligned", "reverse")
    meanings = {
        "accuracy_aligned": "Share of right images where mention order helps (Ali).",
        "accuracy_reverse": "Share of right images where mention order misleads (Rev).",
        "valid_aligned": "Share of judged images, mention order helping, that show the pair as "
        "asked.",
        "valid_reverse": "Share of judged images, mention order misleading, that show the pair as "
        "asked.",
        "delta": "Ali - Rev, as the paper prints it: each accuracy over its own valid images.",
        "delta_paired": "Mean of right aligned - right reverse over the pairs and seeds that are "
        "valid in both orders; p by McNemar's exact test.",
    }

    def measures(self, outcomes: Sequence[Outcome]) -> Iterator[tuple[frozenset[str], Measure]]:
        for question in self.worths:
            for variant, part in by_variant(outcomes, self.variants):
                yield self.measure(f"accuracy_{variant}", part, question)

    def correctness(self, outcome: Outcome) -> float:
        (question,) = self.worths
        return RIGHT.of(outcome.verdict(question))

    def score(self, outcomes: Sequence[Outcome]) -> list[Score]:
        return in_groups(outcomes, self._scores)

    def _scores(self, outcomes: list[Outcome], group: str) -> Iterator[Score]:
        (question,) = self.worths
        for variant, part in by_variant(outcomes, self.variants):
            yield mean_worth(f"accuracy_{variant}", part, question, RIGHT, group=group)
            yield valid_score(f"valid_{variant}", part, question, RIGHT, group)
        yield from variant_scores(("delta",), outcomes, question, RIGHT, self.variants, group=group)
        yield self._paired(outcomes, group)

    def _paired(self, outcomes: Sequence[Outcome], group: str) -> Score:
        """Ali - Rev over the rows and seeds that are valid in both orders."""
        pairs: dict[tuple[str, int], list[float]] = {}
        first: dict[tuple[str, int], Outcome] = {}
        for outcome in outcomes:
            key = outcome.case.row, outcome.case.seed
            place = self.variants.index(outcome.case.variant)
            pairs.setdefault(key, [math.nan, math.nan])[place] = self.correctness(outcome)
            first.setdefault(key, outcome)
        both = np.array(list(pairs.values())).reshape(-1, 2)
        difference = both[:, 0] - both[:, 1]
        n = int((~np.isnan(difference)).sum())
        only = int((difference > 0).sum()), int((difference < 0).sum())
        (score,) = statistics(
            ("delta_paired",),
            difference[:, None],
            cluster_labels(list(first.values())),
            ends=(-1, 1),
            counts=(n,),
            group=group,
            excluded={"not_valid_in_both": len(both) - n},
            p_value=mcnemar(*only) if n else math.nan,
        )
        return score


class T2ICorrectnessSuite(Correctness[T2ICorrectness]):
    """Does the image follow the world or the order of mention? The right layout is the same."""

    name = "t2i_correctness"
    gold = "t2i_correctness_gold"
    prompts = ("arrangement",)
    worths = {"arrangement": RIGHT}
    headline = correctness_headline("arrangement")

    def cases(self, row: T2ICorrectness, seeds: int) -> Iterator[Case]:
        prompts = {"aligned": row.aligned_prompt, "reverse": row.reverse_prompt}
        words = "text" if row.text_bound else "looks"
        groups = {"domain": row.domain, "basis": row.basis, "recognized_by": words}
        return self.seeded(row, seeds, prompts, (row.family,), groups)

    def questions(
        self, row: T2ICorrectness, case: Case, images: Sequence[Image], probe: str
    ) -> list[Question]:
        if is_mirrored(probe) and not row.mirror_safe:
            return []
        return [ask_arrangement(row, case, probe, images)]

    def truth(self, row: T2ICorrectness, case: Case, scene: Scene) -> Mapping[str, str]:
        order = scene.left_to_right()
        right_way = order.index(row.left) < order.index(row.right)
        return {"arrangement": "correct" if right_way else "wrong"}

    def trials(self) -> Iterator[Trial]:
        yield from grounding_trials()
        yield from choice_trials()


class I2ICorrectnessSuite(Correctness[I2ICorrectness]):
    """Do the actions go to whom they were given? Who does what is the same in both orders."""

    name = "i2i_correctness"
    prompts = ("binding",)
    worths = {"binding": RIGHT}
    headline = correctness_headline("binding")

    def cases(self, row: I2ICorrectness, seeds: int) -> Iterator[Case]:
        prompts = {"aligned": row.aligned_instruction, "reverse": row.reverse_instruction}
        (pair, *_), groups = about_pair(row.pair_type, row.left, row.right)
        return self.seeded(row, seeds, prompts, (pair,), {**groups, "relation": row.relation})

    def questions(
        self, row: I2ICorrectness, case: Case, images: Sequence[Image], probe: str
    ) -> list[Question]:
        asked = Alternative(
            "binding",
            Subject(row.left.name, row.left.look, row.left_expected),
            Subject(row.right.name, row.right.look, row.right_expected),
            ("correct", "wrong"),
            prior=RIGHT.prior,
        )
        return [ask_binding(asked, case, probe, images)]

    def truth(self, row: I2ICorrectness, case: Case, scene: Scene) -> Mapping[str, str]:
        right = scene.pose_of(row.left.name) == find_pose(ACTIONS[0])
        return {"binding": "correct" if right else "wrong"}

    trials = staticmethod(binding_trials)
