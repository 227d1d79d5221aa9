"""Configs of gold images, whose truth is known: can a judge of another suite be believed?

(No paper.) Images of the unusual expose a judge that knows the usual answer and does not look.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import ClassVar, TypeVar

from PIL.Image import Image

from ...schema import AlteredWorldGold, GoldRow, T2ICorrectnessGold
from ..core import FAILURES, INVALID, Case, Outcome, Question, Score
from .altered import (
    KEYED,
    PRESENCE,
    ask_worlds,
    failure,
    lean,
    world_shown,
)
from .base import Headline, Item, Items, PaperSuite, Suite
from .correctness import RIGHT, ask_arrangement
from .scoring import in_groups, mean_value
from .worths import YES_NO

G = TypeVar("G", bound=GoldRow)
TRUE_LABELS = {"right": "correct", "swapped": "wrong", "real": "real", "altered": "altered"}
"""Content of an image, its variant -> label by a judge that sees it; `invalid` for any other."""
ARRANGEMENT = "arrangement"


class GoldSuite(Suite[G]):
    """The questions of another suite, asked of images whose truth is known.

    The variant of a case is what its image shows.
    """

    items: ClassVar[str]
    """Name of the items that are checked, e.g. `pairs`; a judge may be misled on some of them."""
    misled: ClassVar[Mapping[str, str]]
    """Content of an image -> label by a misled judge. A judge is checked on an item once it has
    answered about an image of each."""
    misled_how: ClassVar[str]
    """Behaviour of a misled judge, completing `since it ...`."""
    question: ClassVar[str] = ""
    """The question whose labels are the readings; empty if several questions make a reading."""
    breakdown: ClassVar[str]
    """Group of a case by which the check is broken down, e.g. `domain`."""
    table_groups: ClassVar[tuple[str, ...]]
    """Groups that have lines in the table of a check."""
    columns: ClassVar[Mapping[str, str]]
    """Score -> its title in the table of a check, the most important first."""
    captions: ClassVar[Mapping[str, str]] = {}
    """Content of the images that people see beside a row when they vote on it -> caption."""

    @abstractmethod
    def sources(self, row: G) -> Sequence[str]:
        """Ids of the rows whose judges it checks."""

    @abstractmethod
    def reading(self, outcome: Outcome) -> str:
        """The judge's label of the content, a value of `TRUE_LABELS` or another; or a failure."""


class T2ICorrectnessGoldSuite(PaperSuite[T2ICorrectnessGold], GoldSuite[T2ICorrectnessGold]):
    """The judge's question about a pair, asked of images that code drew right or wrong."""

    name = "t2i_correctness_gold"
    population = "families of pairs"
    prompts = (ARRANGEMENT,)
    variants = ("right", "swapped", "missing", "doubled", "above")
    worths = {ARRANGEMENT: RIGHT}
    headline = Headline(
        score="recognized",
        better="higher",
        meaning="Share of right and swapped images that the judge tells apart.",
        items=lambda outcomes: _items(outcomes, _arrangement),
        broken_down=("recognized",),
    )
    meanings = {
        "recognized": "Share of right and swapped images of which the judge says what they are.",
        "right_recognized": "Share of right images that the judge calls correct.",
        "swapped_recognized": "Share of images with the two things exchanged that it calls wrong.",
        "swapped_called_correct": "Share of them that it calls correct: it knows the answer, "
        "and does not look.",
        "controls_recognized": "Share of images with one thing missing, one twice or one above "
        "the other of which it says that neither holds.",
    }
    items = "pairs"
    misled = {"swapped": "correct", "right": "wrong"}
    misled_how = "takes a gold image of theirs for its opposite"
    question = ARRANGEMENT
    breakdown = "domain"
    table_groups = ("domain",)
    columns = {
        "recognized": "right and swapped",
        "swapped_called_correct": "swapped called correct",
        "controls_recognized": "controls",
    }
    captions = {"right": "as it should be", "swapped": "exchanged"}

    def cases(self, row: T2ICorrectnessGold, seeds: int) -> Iterator[Case]:
        groups = {"domain": row.domain, "layout": row.layout, "style": row.style}
        return self.seeded(row, seeds, {row.layout: row.prompt}, (row.cluster,), groups)

    def questions(
        self, row: T2ICorrectnessGold, case: Case, images: Sequence[Image], probe: str
    ) -> list[Question]:
        return [ask_arrangement(row, case, probe, images, by_paper=self.by_paper)]

    def together(self, row: T2ICorrectnessGold) -> str:
        return row.source_id

    def sources(self, row: T2ICorrectnessGold) -> Sequence[str]:
        return (row.source_id,)

    def reading(self, outcome: Outcome) -> str:
        return _arrangement(outcome)

    def score(self, outcomes: Sequence[Outcome]) -> list[Score]:
        return in_groups(outcomes, _pair_scores)


class AlteredWorldsGoldSuite(GoldSuite[AlteredWorldGold]):
    """The judge's questions about a group, asked of images of both worlds."""

    name = "altered_worlds_gold"
    population = "laws"
    variants = ("real", "altered")
    worths = dict.fromkeys((PRESENCE, *KEYED), YES_NO)
    headline = Headline(
        score="recognized",
        better="higher",
        meaning="Share of images whose world the judge tells.",
        items=lambda outcomes: _items(outcomes, world_shown),
        broken_down=("recognized",),
    )
    meanings = {
        "recognized": "Share of images of which the judge says, by presence and the point "
        "questions, which world they show. Who guesses gets 12.5 or 25, who always says yes 0.",
        "taken_for_other": "Share of images that it takes for the other world.",
        "as_keyed": "Share of the four keyed questions that it answers as their key does. Who "
        "guesses, or always says the same, gets 50.",
        PRESENCE: "Share of images whose things it says are there. They always are.",
        **{
            name: f"Share of images of which it answers `{name}` as its key does." for name in KEYED
        },
        "yes_bias": "Share of yes among the four keyed answers of an image, less the half that is "
        "right, -0.5 to 0.5.",
    }
    items = "groups"
    misled = {"real": "altered", "altered": "real"}
    misled_how = "takes a gold image of one of their worlds for the other"
    breakdown = "discipline"
    table_groups = ("discipline", "world")
    captions = {"real": "our world", "altered": "the altered world"}
    columns = {
        "recognized": "world told",
        "taken_for_other": "other world",
        "as_keyed": "as keyed",
        PRESENCE: "presence",
    }

    def cases(self, row: AlteredWorldGold, seeds: int) -> Iterator[Case]:
        groups = {"discipline": row.discipline, "world": row.world, "style": row.style}
        return self.seeded(row, seeds, {row.world: row.prompt}, (row.law, row.group), groups)

    def questions(
        self, row: AlteredWorldGold, case: Case, images: Sequence[Image], probe: str
    ) -> list[Question]:
        return ask_worlds(row, case, images, probe, *self.prompts)

    def together(self, row: AlteredWorldGold) -> str:
        return row.group

    def sources(self, row: AlteredWorldGold) -> Sequence[str]:
        return row.source_ids

    def reading(self, outcome: Outcome) -> str:
        return world_shown(outcome)

    def score(self, outcomes: Sequence[Outcome]) -> list[Score]:
        return in_groups(outcomes, _world_scores)


def _arrangement(outcome: Outcome) -> str:
    return outcome.label(ARRANGEMENT)


def _items(outcomes: Sequence[Outcome], read: Callable[[Outcome], str]) -> Items:
    return {
        o.case.id: Item((_says(read, o),), o.case.cluster)
        for o in outcomes
        if o.case.variant in TRUE_LABELS
    }


def _says(read: Callable[[Outcome], str], outcome: Outcome, expected: str = "") -> float:
    """1 where the judge gives the expected label, by default the true one; NaN for a failure."""
    label = read(outcome)
    if label in FAILURES:
        return math.nan
    return float(label == (expected or TRUE_LABELS.get(outcome.case.variant, INVALID)))


def _pair_scores(outcomes: Sequence[Outcome], group: str) -> Iterator[Score]:
    layouts = {
        "recognized": ("right", "swapped"),
        "right_recognized": ("right",),
        "swapped_recognized": ("swapped",),
        "swapped_called_correct": ("swapped",),
        "controls_recognized": ("missing", "doubled", "above"),
    }
    for name, contents in layouts.items():
        drawn = [o for o in outcomes if o.case.variant in contents]
        expected = "correct" if name == "swapped_called_correct" else ""
        value = partial(_says, _arrangement, expected=expected)
        yield mean_value(name, drawn, value, _arrangement, group, unit="%")


def _world_scores(outcomes: Sequence[Outcome], group: str) -> Iterator[Score]:
    def taken_for_other(outcome: Outcome) -> float:
        return _says(world_shown, outcome, AlteredWorldsGoldSuite.misled[outcome.case.variant])

    recognized = partial(_says, world_shown)
    yield mean_value("recognized", outcomes, recognized, world_shown, group, unit="%")
    yield mean_value("taken_for_other", outcomes, taken_for_other, world_shown, group, unit="%")
    about: dict[str, tuple[str, ...]] = {"as_keyed": KEYED, PRESENCE: (PRESENCE,)}
    for name, questions in (about | {name: (name,) for name in KEYED}).items():
        value, reason = partial(_as_keyed, questions), partial(failure, questions=questions)
        yield mean_value(name, outcomes, value, reason, group, unit="%")
    yield mean_value(
        "yes_bias", outcomes, lean, partial(failure, questions=KEYED), group, ends=(-0.5, 0.5)
    )


def _as_keyed(questions: Sequence[str], outcome: Outcome) -> float:
    """Share of some questions about an image that are answered as keyed; NaN unless all are."""
    right = []
    for name in questions:
        world = "altered" if name.endswith("_counterfactual") else "real"
        says = YES_NO.of(outcome.verdict(name))
        right.append(says if name == PRESENCE or world == outcome.case.variant else 1 - says)
    return sum(right) / len(right)
