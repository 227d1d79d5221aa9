"""`flip`: mirrors a share of the images, so that no side follows word order."""

from __future__ import annotations

import random
from typing import ClassVar

from PIL import Image

from ...specs import Options, Share, Spec
from ..core import Generator, ImageRequest
from ..generators import draw
from . import Method


class FlipOptions(Options):
    """Options of `flip`."""

    share: Share = 0.5
    """Share of the images that are mirrored."""


class Flip(Method):
    """Mirrors an image with a fixed probability."""

    options: ClassVar[type[Options]] = FlipOptions

    def __init__(self, inner: Generator, share: float) -> None:
        super().__init__(inner)
        self._share = share

    @classmethod
    def from_spec(cls, spec: Spec, options: FlipOptions, inner: Generator) -> Flip:
        return cls(inner, options.share)

    @property
    def name(self) -> str:
        return f"flip:?share={self._share:g}"

    def generate(self, request: ImageRequest) -> Image.Image:
        """The generator's image, mirrored where the seed says so."""
        image = draw(self.inner, request)
        if random.Random(f"flip {request.seed} {request.prompt}").random() < self._share:
            return image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        return image
