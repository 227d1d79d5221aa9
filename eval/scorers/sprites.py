"""`sprites`: how closely the figures of a prompt are drawn as the renderer's atlas has them.

The mean over a prompt's figures of the correlation of the best match with the figure itself, in
[-1, 1] (see `scenes.matching`). It needs no weights, and says something of `render:` and of
organisms alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from ...scenes.language import mentions
from ...scenes.matching import SearchedImage
from ...scenes.sprites import atlas_digest
from ...specs import Options, Spec
from ..judges import CallPlan
from . import ScorerError

if TYPE_CHECKING:
    from PIL.Image import Image


class SpriteScorer:
    """Finds the figures of a prompt by template matching."""

    argument: ClassVar[str] = ""
    options: ClassVar[type[Options]] = Options

    @classmethod
    def from_spec(cls, spec: Spec, options: Options, plan: CallPlan) -> SpriteScorer:
        """A scorer without options."""
        return cls()

    def identity(self) -> dict[str, str]:
        return {"kind": "sprites", "version": "1", "atlas": atlas_digest()[:12]}

    def score(self, pairs: Sequence[tuple[str, Image]]) -> list[float]:
        """Raises ScorerError for a prompt that names no figure of the atlas, DataError for an image
        of another shape than the renderer's."""
        return [self._score(prompt, image) for prompt, image in pairs]

    def _score(self, prompt: str, image: Image) -> float:
        names = list(dict.fromkeys(mention.entity for mention in mentions(prompt)))
        if not names:
            raise ScorerError(f"{prompt!r} names no figure of the atlas", code="unsupported")
        searched = SearchedImage(image)
        return sum(searched.find(name).score for name in names) / len(names)
