"""How good an image is for its prompt, as a number: one module an adapter, one line in `SCORERS`.

A score says nothing by itself: it is compared between runs, on the same cases and by one scorer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from ...errors import RunFailed, UsageError
from ...specs import Spec
from ..checkpoints.extras import open_adapter
from ..generators.python import python_identity, spec_identity
from ..judges import CallPlan

if TYPE_CHECKING:
    from PIL.Image import Image


class ScorerError(RunFailed):
    """A pair that has no score; the message says why."""


@runtime_checkable
class Scorer(Protocol):
    """Scores images by their prompts. Higher is better.

    It may have `batch: int`, the pairs that it is given at a time; 1 where it has none.
    """

    def score(self, pairs: Sequence[tuple[str, Image]]) -> list[float]:
        """The score of each prompt and its RGB image, in order.

        May raise anything for pairs without a score: each is then tried on its own. LoadError and
        BudgetError end the run.
        """
        ...

    def identity(self) -> dict[str, str]:
        """What scores (kind, model, revision, settings); part of every record."""
        ...


SCORERS = {
    "clipscore": f"{__name__}.clip_score:ClipScore",
    "hps": f"{__name__}.hps:HumanPreferenceScore",
    "hpsv3": f"{__name__}.hpsv3:HPSv3",
    "image-reward": f"{__name__}.image_reward:ImageReward",
    "pickscore": f"{__name__}.pick_score:PickScore",
    "vqascore": f"{__name__}.vqa_score:VqaScore",
}
"""Kind of a spec -> ``module:Class``, imported when it is opened."""


def open_scorer(text: str, plan: CallPlan | None = None) -> Scorer:
    """The scorer that a spec names: ``pickscore:``, ``vqascore:hf-vlm:MODEL``.

    plan: how a scorer that asks a paid judge makes its calls. Raises UsageError for an unknown kind
    or option, a library that isn't installed, or a model that isn't there.
    """
    spec = Spec.parse(text)
    settings = (plan,) if spec.kind == "vqascore" else ()
    return as_scorer(open_adapter(SCORERS, spec, "scorer", *settings), spec_identity(spec))


def as_scorer(value: Any, identity: Mapping[str, str] | str = "") -> Scorer:
    """A scorer from a spec, an object of the protocol, or a function ``(prompt, image) -> float``.

    `identity` says which version of code that is. Raises UsageError for anything else.
    """
    if isinstance(value, str):
        return open_scorer(value)
    if isinstance(value, Scorer):
        return value
    if callable(value):
        return FunctionScorer(value, identity)
    raise UsageError(
        f"{value!r} is no scorer: give a spec, a function (prompt, image), or an object with score "
        f"and identity",
        code="wrong-type",
    )


class FunctionScorer:
    """A function of prompt and image that gives a number."""

    def __init__(
        self, function: Callable[[str, Image], float], identity: Mapping[str, str] | str
    ) -> None:
        self._function = function
        self._identity = python_identity(function, identity)

    def identity(self) -> dict[str, str]:
        return dict(self._identity)

    def score(self, pairs: Sequence[tuple[str, Image]]) -> list[float]:
        return [float(self._function(prompt, image)) for prompt, image in pairs]
