"""Which pictures a config asks for, which questions about them, and which scores follow.

One module a suite, one line in `SUITES` each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from io import BytesIO
from typing import Protocol

from PIL import Image

from ...schema import Row, SeededRow
from ..core import Case, Outcome
from ..judges import Question
from .attribute_decoupling import AttributeDecouplingSuite
from .counterfactual import CounterfactualSuite
from .counterfactual_denominalized import CounterfactualDenominalizedSuite
from .i2i_correctness import I2ICorrectnessSuite
from .i2i_homogenization import I2IHomogenizationSuite
from .rule_decoupling import RuleDecouplingSuite
from .scores import Score
from .spatial import SpatialSuite
from .t2i_correctness import T2ICorrectnessSuite
from .t2i_homogenization import T2IHomogenizationSuite


class EvalSuite(Protocol):
    """How one config is evaluated; rows are of the type that `schema.ROWS` has for its name."""

    @property
    def prompts(self) -> tuple[str, ...]:
        """Names of the prompts that its questions are made from."""
        ...

    def cases(self, row: Row, seeds: int) -> Iterator[Case]:
        """The pictures to be made for a row, with its first `seeds` seeds."""
        ...

    def questions(
        self, row: Row, case: Case, images: Sequence[Image.Image], probe: str
    ) -> list[Question]:
        """What a judge is asked about a case's picture; none where the probe does not apply.

        `images` holds the picture, after its source where it is an edit.
        """
        ...

    def score(self, outcomes: Sequence[Outcome]) -> list[Score]:
        """Every score of one generator under one judge; the outcomes' order does not matter."""
        ...


PERSONAS = ("standard", "strict")
"""How a judge answers free questions: a fair analyst, or an adversarial examiner (CF-World)."""

SUITES: dict[str, Callable[[str], EvalSuite]] = {
    "t2i_homogenization": lambda persona: T2IHomogenizationSuite(),
    "t2i_correctness": lambda persona: T2ICorrectnessSuite(),
    "i2i_homogenization": lambda persona: I2IHomogenizationSuite(),
    "i2i_correctness": lambda persona: I2ICorrectnessSuite(),
    "counterfactual": CounterfactualSuite,
    "counterfactual_denominalized": CounterfactualDenominalizedSuite,
    "rule_decoupling": RuleDecouplingSuite,
    "attribute_decoupling": AttributeDecouplingSuite,
    "spatial_uc": lambda persona: SpatialSuite(),
    "spatial_visor": lambda persona: SpatialSuite(),
}
"""By config; made for a persona, which only suites with free questions use."""


def open_suite(name: str, persona: str = PERSONAS[0]) -> EvalSuite:
    """The suite of a config. Raises ValueError for one that has none, or no such persona."""
    if name not in SUITES:
        raise ValueError(f"no suite {name!r}: choose from {', '.join(SUITES)}")
    if persona not in PERSONAS:
        raise ValueError(f"no persona {persona!r}: choose from {', '.join(PERSONAS)}")
    return SUITES[name](persona)


def source_image(row: Row) -> Image.Image | None:
    """The picture that a row's edits start from; None for text-to-image."""
    if not isinstance(row, SeededRow):
        return None
    if row.seed_image is None:
        raise ValueError(f"{row.id} has no seed picture: use a release that was built with them")
    image = Image.open(BytesIO(row.seed_image.bytes))
    image.load()
    return image
