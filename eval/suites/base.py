"""Base class of suites: everything about one config's evaluation, in one class.

A new suite is one class and one line in `SUITES`; no other module knows its name.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, NamedTuple, TypeVar

from ...errors import UsageError
from ...parsing import RowError
from ...schema import Entity, Row
from ..core import BOTH, Case, Cluster, Outcome, Question, Score
from ..stats.bootstrap import Array
from .worths import Worth

if TYPE_CHECKING:
    from PIL.Image import Image

    from ...scenes.scene import Scene

R = TypeVar("R", bound=Row)

PAPER = "paper"
"""The judge's instrument as a paper describes it, with its rules and without counterbalance."""

PERSONAS = ("standard", "strict", PAPER)
"""How a judge is asked: free questions as a fair analyst or as an adversarial examiner (CF-World),
or everything as in the suite's paper."""


def each_once(rows: Iterable[tuple[int, R]], path: Path) -> list[R]:
    """The rows of a user's own file, from lines and rows. Raises RowError for an id that an
    earlier line has: it would be drawn twice and counted once."""
    lines = dict[str, int]()
    read = list[R]()
    for line, row in rows:
        if (first := lines.setdefault(row.id, line)) != line:
            raise RowError(
                f"{path}:{line}: id: {row.id!r} is that of line {first}: remove one of them",
                code="duplicate-id",
            )
        read.append(row)
    return read


class Item(NamedTuple):
    """Values of one generator on one item."""

    values: tuple[float, ...]
    """Values that the statistic takes the means of; NaN for a missing value."""
    cluster: Cluster


Items = Mapping[Hashable, Item]
"""Key, the same for every generator -> item."""


@dataclass(frozen=True)
class Headline:
    """The score that a suite's leaderboard ranks by."""

    score: str
    better: Literal["higher", "lower"]
    """Direction of better values."""
    meaning: str
    items: Callable[[Sequence[Outcome]], Items]
    """The values per item."""
    ends: tuple[float, float] = (0.0, 1.0)
    """Least and largest value of an item."""
    statistic: Callable[[Array], Array] = lambda means: means
    """From their means, shape (..., k), to the score, shape (..., 1), up to a constant factor; with
    its sign where the score is a size."""
    is_size: bool = False
    """Whether the score is the size of the statistic, without its sign."""
    broken_down: tuple[str, ...] = ()
    """Scores that are drawn for every group."""
    slope: tuple[str, str] | None = None
    """Two scores that are drawn as ends of a line."""
    checks: tuple[str, ...] = ()
    """Scores that say whether to believe it, printed beside it; all of the suite's if empty."""

    def score_of(self, means: Array) -> Array:
        """The score, shape (..., 1), of means of the values, shape (..., k)."""
        values = self.statistic(means)
        return abs(values) if self.is_size else values

    def leads(self, name: str) -> bool:
        """Whether a score of the suite is this one, or is read beside it."""
        return not self.checks or name in (self.score, *self.checks, *self.broken_down)


@dataclass(frozen=True)
class Measure:
    """A mean over images that people's labels of some of them can correct."""

    name: str
    outcomes: Sequence[Outcome]
    value: Callable[[Outcome], float]
    """Value of one image; NaN if it has none."""
    worth: Worth
    """Least and largest value, and whether there are only two."""
    unit: str = "%"


class Suite(ABC, Generic[R]):
    """How one config is evaluated."""

    name: ClassVar[str]
    variants: ClassVar[tuple[str, ...]] = ()
    """Names of a row's prompts, if few and fixed."""
    optional: ClassVar[tuple[str, ...]] = ()
    """Those of them that only a run that names its variants has."""
    worths: ClassVar[Mapping[str, Worth]]
    """Question -> what its labels count."""
    headline: ClassVar[Headline]
    """Score that generators are ranked by."""
    meanings: ClassVar[Mapping[str, str]]
    """Score -> one sentence for the reader."""
    population: ClassVar[str] = "items"
    """What an interval is for others of: what the clusters of its cases are, in the plural."""
    has_right_images: ClassVar[bool] = False
    """Whether images are right or wrong, so that generators can be raced on them."""
    has_gate: ClassVar[bool] = False
    """Whether the first variant gates the others, and `audit calibrate` can say by how much."""
    offline_rows: ClassVar[int] = 4
    """Rows of which the renderer draws some, and `offline_judge` judges them; 0 if they can't."""
    offline_judge: ClassVar[str] = "pixels"
    """Spec of a judge that needs no weights."""

    takes_trips: ClassVar[bool] = False
    """Whether its cases are made by round trips of captioners and generators."""

    gold: ClassVar[str] = ""
    """Config of images with known labels on which its judges are checked; empty for none."""
    real_gold: ClassVar[str] = ""
    """Config of labels of real images that ask the same question; empty for none."""
    scores_by_group: ClassVar[bool] = False
    """Whether the groups of a case decide what it counts in, beyond a breakdown."""
    human_questions: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """Further questions for human annotators only -> possible answers."""

    personas: ClassVar[tuple[str, ...]] = PERSONAS[:2]
    """Personas that its judges may have."""

    @classmethod
    def check_variants(cls, chosen: Sequence[str]) -> None:
        """Raises UsageError for the name of a variant that it lacks."""
        if unknown := [name for name in chosen if name not in cls.variants]:
            raise UsageError(
                f"--variants {','.join(unknown)}: {cls.name} has no such variant",
                f"choose from {', '.join(cls.variants)}" if cls.variants else "",
                code="unknown-name",
            )

    @classmethod
    def draws(cls, variant: str, chosen: Sequence[str]) -> bool:
        """Whether a variant is drawn: if it is chosen, or, where none is, if it isn't optional."""
        return variant in chosen if chosen else variant not in cls.optional

    def __init__(self, persona: str = PERSONAS[0]) -> None:
        """Raises UsageError for an unknown persona; only suites with free questions differ between
        the first two."""
        if persona not in self.personas:
            raise UsageError(
                f"{self.name} has no persona {persona!r}: choose from {', '.join(self.personas)}",
                code="unknown-name",
            )
        self.persona = persona

    @property
    def prompts(self) -> tuple[str, ...]:
        """Names of the prompt files that its questions are made from; here for free questions."""
        return (f"assess_{self.persona}",)

    @abstractmethod
    def cases(self, row: R, seeds: int) -> Iterator[Case]:
        """The images to make for a row, with its first `seeds` seeds."""

    @abstractmethod
    def questions(
        self, row: R, case: Case, images: Sequence[Image], probe: str
    ) -> Sequence[Question]:
        """Questions for a judge about a case's image; empty if the probe does not apply.

        `images` holds the image, after its source where it is an edit. The texts must not depend on
        the pixels.
        """

    @abstractmethod
    def score(self, outcomes: Sequence[Outcome]) -> list[Score]:
        """Every score of one generator under one judge; the outcomes' order does not matter."""

    def seeded(
        self,
        row: R,
        seeds: int,
        prompts: Mapping[str, str],
        clusters: tuple[str, ...],
        groups: Mapping[str, str] | None = None,
        weights: Mapping[str, float] | None = None,
    ) -> Iterator[Case]:
        """A case for each of a row's prompts, by variant, and each of its first `seeds` seeds."""
        for variant, prompt in prompts.items():
            for number, seed in enumerate(row.seeds[:seeds]):
                about = (clusters, groups or {}, weights or {})
                yield Case(row.id, variant, seed, number, prompt, *about)

    def together(self, row: R) -> str:
        """Id shared by the rows that must be sampled together."""
        return row.id

    def asked_of_real_gold(self, outcomes: Sequence[Outcome]) -> list[Outcome]:
        """The outcomes whose one question is that of `real_gold`: all, unless some state more."""
        return list(outcomes)

    def measures(self, outcomes: Sequence[Outcome]) -> Iterator[tuple[frozenset[str], Measure]]:
        """Means that labels can correct, each with the questions whose labels it needs."""
        return iter(())

    def correctness(self, outcome: Outcome) -> float:
        """Correctness of one image, in [0, 1]; NaN where it can't be judged."""
        return math.nan

    @classmethod
    def read_file(cls, text: str) -> Sequence[R] | None:
        """Rows of a user's own file; None where the text names none that this suite reads.

        Raises UsageError or DataError for a file that can't be used.
        """
        return None

    @classmethod
    def at_place(cls, row: R) -> R:
        """The row with its scene at a place that decides nothing.

        Raises UsageError for a suite whose prompts are kept as they are.
        """
        raise UsageError(f"{cls.name}: knows no places: leave out ?places=true", code="unsupported")

    def truth(self, row: R, case: Case, scene: Scene) -> Mapping[str, str]:
        """Question -> true label of a rendered image; empty if the scene doesn't determine any."""
        return {}

    def manifest(self, row: R, case: Case) -> Mapping[str, Any] | None:
        """Facts about an image that `spatial detect` and `audit` need; None where unused."""
        return None

    def measure(
        self, name: str, outcomes: Sequence[Outcome], question: str, unit: str = "%"
    ) -> tuple[frozenset[str], Measure]:
        """The measure that is the mean worth of one question's labels."""
        worth = self.worths[question]

        def value(outcome: Outcome) -> float:
            return worth.of(outcome.verdict(question))

        return frozenset([question]), Measure(name, outcomes, value, worth, unit)


class PaperSuite(Suite[R]):
    """A suite of OTS-Bench: persona `paper` asks by the rules of the paper's judge templates
    (Tables 15 to 18), in our words.

    Of the homogenization suites, A is the first-mentioned entity, or the left subject of an edit:
    1 if A is left (acts alone or more prominently, so ties favor A), 2 if A is right (only B acts),
    3 otherwise. Of the correctness suites, the question says what stands where or who is expected
    to act: 1 if the image respects this (is reversed), 2 if it violates this (is aligned), 3 if it
    can't be told.
    """

    personas = PERSONAS

    def __init__(self, persona: str = PERSONAS[0]) -> None:
        super().__init__(persona)
        if persona == PAPER:
            self.prompts = tuple(f"{name}_{PAPER}" for name in self.prompts)  # type: ignore[misc]

    @property
    def by_paper(self) -> bool:
        """Whether the paper's templates are used."""
        return self.persona == PAPER


def about_pair(
    pair_type: str, first: Entity, second: Entity
) -> tuple[tuple[str, ...], dict[str, str]]:
    """Clusters and groups of a row about two entities."""
    sorted_names = sorted((first.name, second.name))
    category = BOTH.join(sorted({first.category, second.category}))
    return ("/".join(sorted_names), *sorted_names), {"pair_type": pair_type, "category": category}


def case_items(
    question: str, worth: Worth, variant: str | None = None
) -> Callable[[Sequence[Outcome]], Items]:
    """Items of a headline: the worth of the label of every case of one variant, or of all."""

    def items(outcomes: Sequence[Outcome]) -> Items:
        return {
            o.case.id: Item((worth.of(o.verdict(question)),), o.case.cluster)
            for o in outcomes
            if variant is None or o.case.variant == variant
        }

    return items


def by_variant(
    outcomes: Sequence[Outcome], variants: Sequence[str]
) -> Iterator[tuple[str, list[Outcome]]]:
    """The outcomes of each variant, in the order of the variants."""
    for variant in variants:
        yield variant, [o for o in outcomes if o.case.variant == variant]
