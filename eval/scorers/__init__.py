"""How good an image is for its prompt, as a number: one module an adapter, one line in `SCORERS`.

A score says nothing by itself: it is compared between runs, on the same cases and by one scorer.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from ...errors import RunFailed
from ..checkpoints.registry import Identity, Registry, python_identity
from ..judges import CallPlan

if TYPE_CHECKING:
    from PIL.Image import Image


class ScorerError(RunFailed):
    """A pair that has no score; the message says why."""


@runtime_checkable
class Scorer(Protocol):
    """Scores images by their prompts. Higher is better.

    An optional attribute `batch: int` is the number of pairs at a time, 1 by default.
    """

    def score(self, pairs: Sequence[tuple[str, Image]]) -> list[float]:
        """Returns the score of each prompt and its RGB image, in order.

        May raise any error for pairs without a score: each pair is then tried on its own. LoadError
        and BudgetError end the run.
        """
        ...

    def identity(self) -> dict[str, str]:
        """Kind, model, revision and settings; part of every record."""
        ...


class RecordedScorer(ABC):
    """A scorer that looks up what was said of an image's file, and never opens it."""

    @abstractmethod
    def score_digests(self, digests: Sequence[str]) -> list[float]:
        """Returns the score of each file by its SHA-256, in order; NaN where it has none."""

    @abstractmethod
    def score(self, pairs: Sequence[tuple[str, Image]]) -> list[float]:
        """As of a `Scorer`, for images without a file."""

    @abstractmethod
    def identity(self) -> dict[str, str]:
        """As of a `Scorer`."""


class FunctionScorer:
    """A function of prompt and image that gives a number."""

    def __init__(self, function: Callable[[str, Image], float], identity: Identity) -> None:
        self._function = function
        self._identity = python_identity(function, identity)

    def identity(self) -> dict[str, str]:
        return dict(self._identity)

    def score(self, pairs: Sequence[tuple[str, Image]]) -> list[float]:
        return [float(self._function(prompt, image)) for prompt, image in pairs]


SCORERS: Registry[Scorer] = Registry(
    "scorer",
    {
        "clipscore": f"{__name__}.clip_score:ClipScore",
        "hps": f"{__name__}.hps:HumanPreferenceScore",
        "hpsv3": f"{__name__}.hpsv3:HPSv3",
        "image-reward": f"{__name__}.image_reward:ImageReward",
        "pickscore": f"{__name__}.pick_score:PickScore",
        "ratings": f"{__name__}.ratings:HumanRatings",
        "sprites": f"{__name__}.sprites:SpriteScorer",
        "vqascore": f"{__name__}.vqa_score:VqaScore",
    },
    protocol=Scorer,
    wrappers={Callable: FunctionScorer},
    accepts="a function (prompt, image) that gives a number, or an object with score and identity",
)
"""Each `from_spec` takes a `CallPlan` too, for a scorer that asks a judge."""


def as_scorer(value: Any, plan: CallPlan | None = None, identity: Identity = "") -> Scorer:
    """A scorer from anything that can stand for one; raises as `Registry.adapt`."""
    return SCORERS.adapt(value, plan, identity=identity)
