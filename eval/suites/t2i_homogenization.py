"""`t2i_homogenization`: does the first-mentioned entity stand on the left? (OTS-Bench)"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from PIL.Image import Image

from ...scenes.scene import Scene
from ...schema import T2IHomogenization
from ..core import Case, Outcome, Question, Score, count_excluded
from ..prompts import read_prompt
from .asking import Alternative, Subject, ask_which
from .base import INVALID, Trial, Worth, values_of
from .homogenization import MEANINGS, SIGNED, Homogenization, homogenization_headline
from .order import order_and_entity_effect
from .scores import cluster_labels, in_groups, statistics
from .trials import both, homogenization_trials

QUESTION = "order"
SIGNS = Worth({"first_left": 1.0, "first_right": -1.0}, prior="first_left", others=(INVALID,))


class T2IHomogenizationSuite(Homogenization[T2IHomogenization]):
    """Both mention orders of every prompt, so that order and entities come apart."""

    name = "t2i_homogenization"
    variants = ("plain", "swapped")
    prompts = ("order",)
    worths = {QUESTION: SIGNS}
    headline = homogenization_headline(
        QUESTION, SIGNS, "How far the first-mentioned entity always stands on the same side"
    )
    meanings = {
        **MEANINGS,
        "order_effect": "What mention order does, whatever is mentioned: the mean signed index of "
        "a pair's two orders.",
        "entity_effect": "What the entities do, in whatever order they are mentioned: half the "
        "difference of a pair's two orders.",
    }

    def cases(self, row: T2IHomogenization, seeds: int) -> Iterator[Case]:
        names = sorted((row.first.name, row.second.name))
        groups = {
            "pair_type": row.pair_type,
            "category": both(row.first.category, row.second.category),
        }
        prompts = (row.prompt, row.swapped_prompt)
        for variant, prompt in zip(self.variants, prompts, strict=True):
            for number, seed in enumerate(row.seeds[:seeds]):
                yield Case(
                    row=row.id,
                    variant=variant,
                    seed=seed,
                    number=number,
                    prompt=prompt,
                    clusters=("/".join(names), *names),
                    groups=groups,
                )

    def questions(
        self, row: T2IHomogenization, case: Case, images: Sequence[Image], probe: str
    ) -> list[Question]:
        # Labels speak of the order of mention, which the variant decides.
        labels = ("first_left", "first_right")
        asked = Alternative(
            task="order",
            prompt=read_prompt("order"),
            subjects=(
                Subject(row.first.name, row.first.look, row.first_action),
                Subject(row.second.name, row.second.look, row.second_action),
            ),
            labels=labels if case.variant == "plain" else labels[::-1],
            prior="first_left",
        )
        return [ask_which(asked, case, probe, images)]

    def score(self, outcomes: Sequence[Outcome]) -> list[Score]:
        return in_groups(
            outcomes, lambda part, group: [*self.bias_scores(part, group), *_effects(part, group)]
        )

    def truth(self, row: T2IHomogenization, case: Case, scene: Scene) -> Mapping[str, str]:
        names = (row.first.name, row.second.name)
        first, second = names if case.variant == "plain" else names[::-1]
        if scene.faults:
            return {QUESTION: INVALID}
        left = scene.left_to_right()
        ahead = left.index(first) < left.index(second)
        return {QUESTION: "first_left" if ahead else "first_right"}

    def trials(self) -> Iterator[Trial]:
        return homogenization_trials()


def _effects(outcomes: Sequence[Outcome], group: str) -> list[Score]:
    """What mention order does and what the entities do, from prompts in both orders."""
    signs = values_of(outcomes, QUESTION, SIGNS)
    columns = np.full((len(outcomes), 2), np.nan)
    for place, outcome in enumerate(outcomes):
        variant = T2IHomogenizationSuite.variants.index(outcome.case.variant)
        columns[place, variant] = signs[place]
    n = int((~np.isnan(signs)).sum())
    return statistics(
        ("order_effect", "entity_effect"),
        columns,
        cluster_labels(outcomes),
        ends=SIGNED,
        statistic=order_and_entity_effect,
        counts=(n, n),
        group=group,
        excluded=count_excluded([o.label(QUESTION) for o in outcomes], SIGNS.values),
    )
