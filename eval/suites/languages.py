"""`t2i_homogenization_multilingual`, `order_beyond_multilingual`: the same entities in several
languages, some read from the right.

Prompts differ, entities and seeds don't, so the effect of a language is measured on its images
against the same in English. The judge is asked in English, with the English names.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, TypeVar

import numpy as np
from PIL.Image import Image

from ...scenes.scene import Scene
from ...schema import (
    OrderBeyond,
    OrderBeyondMultilingual,
    Row,
    T2IHomogenization,
    T2IHomogenizationMultilingual,
    TranslatedRow,
)
from ..core import ALL, Case, Outcome, Question, Score
from .base import Measure, Suite
from .beyond import OrderBeyondSuite, tau
from .columns import cluster_numbers
from .homogenization import T2IHomogenizationSuite
from .scoring import grouped, paired_difference
from .worths import Worth

ENGLISH = "en"
LEFT = Worth({"first_left": 1.0, "first_right": 0.0})
"""Its mean is the share of images with the first-mentioned on the left."""

OF_FACTS = ("accuracy_aligned", "accuracy_reverse", "delta")
"""Scores of settings in which one order is right, which no translation has."""

T = TypeVar("T", bound=TranslatedRow)
Place = tuple[str, str, int]
"""Cluster, variant and seed number, shared by images of the same entities in all languages."""


class TranslatedSuite(Suite[T]):
    """A suite whose rows are those of an English one in several languages."""

    english: ClassVar[Suite[Any]]
    """The English suite, which asks the questions, knows the truth, and scores a language."""
    source_groups: ClassVar[tuple[str, ...]] = ()
    """Groups of the English suite that translations are broken down by as well."""

    @abstractmethod
    def source(self, row: T) -> Row:
        """The English row that a row translates."""

    @abstractmethod
    def share(self, outcome: Outcome) -> float:
        """Degree to which an image shows the order of mention from left to right, in [0, 1]; NaN if
        undecided."""

    @abstractmethod
    def english_scores(self, outcomes: Sequence[Outcome], group: str) -> list[Score]:
        """The English suite's scores of some images."""

    def cases(self, row: T, seeds: int) -> Iterator[Case]:
        prompts = {"plain": row.prompt, "swapped": row.swapped_prompt}
        for case in self.english.cases(self.source(row), seeds):
            groups = {"direction": row.direction, "language": row.language}
            groups |= {name: case.groups[name] for name in self.source_groups}
            yield replace(case, row=row.id, prompt=prompts[case.variant], groups=groups)

    def together(self, row: T) -> str:
        return row.source_id

    def questions(
        self, row: T, case: Case, images: Sequence[Image], probe: str
    ) -> Sequence[Question]:
        return self.english.questions(self.source(row), case, images, probe)

    def truth(self, row: T, case: Case, scene: Scene) -> Mapping[str, str]:
        return self.english.truth(self.source(row), case, scene)

    def measures(self, outcomes: Sequence[Outcome]) -> Iterator[tuple[frozenset[str], Measure]]:
        return self.english.measures(outcomes)

    def score(self, outcomes: Sequence[Outcome]) -> list[Score]:
        scores: list[Score] = []
        for group, members in grouped(outcomes):
            scores += self.english_scores(members, group)
            if group == ALL:
                sides = [
                    [o for o in members if _group(o, "direction") == d] for d in ("rtl", "ltr")
                ]
                scores += self._paired("direction_effect", *sides, group=group)
            elif group.startswith("language=") and group != f"language={ENGLISH}":
                english = [o for o in outcomes if _group(o, "language") == ENGLISH]
                scores += self._paired("language_effect", members, english, group=group)
        return scores

    def _paired(
        self, name: str, outcomes: Sequence[Outcome], reference: Sequence[Outcome], *, group: str
    ) -> Iterator[Score]:
        """Mean share in some languages less that in reference ones; empty if either lacks images.

        Images of the same entities, in one order of mention and with one number of seed, are
        compared with each other. The interval is over sets of entities.
        """
        shares, reference_shares = self._shares(outcomes), self._shares(reference)
        places = sorted(shares.keys() & reference_shares.keys())
        if not places:
            return
        by_place = {_place(outcome): outcome for outcome in outcomes}
        pairs = np.array(
            [[_mean(shares[place]), _mean(reference_shares[place])] for place in places]
        )
        lost = int(np.isnan(pairs).any(axis=1).sum())
        yield paired_difference(
            name,
            pairs,
            cluster_numbers([by_place[place] for place in places]),
            group=group,
            excluded={"not_valid_in_both": lost} if lost else {},
        )

    def _shares(self, outcomes: Iterable[Outcome]) -> dict[Place, list[float]]:
        """Shares by place, one for each language."""
        shares: dict[Place, list[float]] = {}
        for outcome in sorted(outcomes, key=lambda o: o.case.id):
            shares.setdefault(_place(outcome), []).append(self.share(outcome))
        return shares


def _group(outcome: Outcome, column: str) -> str:
    return outcome.case.groups.get(column, "")


def _place(outcome: Outcome) -> Place:
    return outcome.case.clusters[0], outcome.case.variant, outcome.case.number


def _mean(values: Sequence[float]) -> float:
    """Mean of the values that are not NaN; NaN without any."""
    valid = [value for value in values if not math.isnan(value)]
    return sum(valid) / len(valid) if valid else math.nan


DIRECTION = (
    "Does the first-mentioned go left where people read from the right? {share} in languages read "
    "from the right, less the share in the others, over the same entities and seeds: 0 where "
    "reading direction changes nothing, -100 where the order always runs as people read."
)
LANGUAGE = (
    "{share} in a language, less the share in English, over the same entities and seeds: half the "
    "difference of the {index}."
)


class T2IHomogenizationMultilingualSuite(TranslatedSuite[T2IHomogenizationMultilingual]):
    """Does the first-mentioned entity stand on the left in every language?"""

    name = "t2i_homogenization_multilingual"
    population = "entities"
    english = T2IHomogenizationSuite()
    source_groups = ("pair_type",)
    variants = english.variants
    prompts = english.prompts
    worths = english.worths
    headline = replace(
        english.headline,
        meaning="How far mention order decides which entity stands on the left, in all languages "
        "together; 0 without a prior. The tick is what chance alone gives.",
        broken_down=("signed_index", "language_effect"),
        checks=(*english.headline.checks, "direction_effect"),
    )
    meanings = {
        **english.meanings,
        "direction_effect": DIRECTION.format(share="Share of images with it on the left"),
        "language_effect": LANGUAGE.format(
            share="Share of images with the first-mentioned on the left", index="signed indices"
        ),
    }

    def source(self, row: T2IHomogenizationMultilingual) -> T2IHomogenization:
        return T2IHomogenization(
            pair_type=row.pair_type,
            first=row.first,
            second=row.second,
            first_action="",
            second_action="",
            prompt=row.english_prompt,
            swapped_prompt=row.english_swapped_prompt,
            neutral_prompt="",
            seeds=row.seeds,
            review=[],
            provenance=row.provenance,
        )

    def share(self, outcome: Outcome) -> float:
        return LEFT.of(outcome.verdict("order"))

    def english_scores(self, outcomes: Sequence[Outcome], group: str) -> list[Score]:
        return self.english.bias_scores(outcomes, group)


class OrderBeyondMultilingualSuite(TranslatedSuite[OrderBeyondMultilingual]):
    """Do three entities stand in the order of mention in every language?"""

    name = "order_beyond_multilingual"
    population = "sets of entities"
    english = OrderBeyondSuite()
    variants = english.variants
    prompts = english.prompts[:1]
    worths = english.worths
    headline = replace(
        english.headline,
        meaning="How far the order of mention always becomes the order in the image, in all "
        "languages together; 0 without a prior.",
        broken_down=("order_index", "language_effect"),
    )
    meanings = {
        **{k: v for k, v in english.meanings.items() if k not in OF_FACTS},
        "direction_effect": DIRECTION.format(share="Share of an image's pairs in that order"),
        "language_effect": LANGUAGE.format(
            share="Share of an image's pairs in the order of mention", index="order indices"
        ),
    }

    def source(self, row: OrderBeyondMultilingual) -> OrderBeyond:
        return OrderBeyond(
            setting="three_homogenization",
            axis="horizontal",
            entities=row.entities,
            looks=row.looks,
            prompt=row.english_prompt,
            swapped_prompt=row.english_swapped_prompt,
            expected=[],
            standards=[],
            seeds=row.seeds,
            review=[],
            provenance=row.provenance,
        )

    def share(self, outcome: Outcome) -> float:
        return (1 + tau(outcome)) / 2

    def english_scores(self, outcomes: Sequence[Outcome], group: str) -> list[Score]:
        return self.english.order_scores(outcomes, group)
