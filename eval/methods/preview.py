"""`preview`: the clean image that a denoising step predicts, on the way to the generator's image.

``preview:?at=3`` draws four steps (0 to 3) of the same trajectory and decodes what the last of them
predicts, in place of the image that more steps would make. A study with a preview for each step
shows from which step on the layout is the final one, without touching the prompt.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar, Protocol, runtime_checkable

from PIL.Image import Image
from pydantic import Field

from ...clip_files import Clip
from ...specs import Options, Spec
from ..core import Generator, ImageRequest
from . import Method, find_pipeline, has_pipeline, innermost, refuse
from .denoising import PREVIEW, predicting

ABLE = "diffusers: or render:"


@runtime_checkable
class Previewable(Protocol):
    """A generator that knows what its image looks like on the way."""

    def generate_preview(self, request: ImageRequest, at: int) -> Image | Clip:
        """Draws what step `at` predicts, from 0."""
        ...


class PreviewOptions(Options):
    """Options of `preview`."""

    at: Annotated[int, Field(ge=0)]
    """Denoising step, from 0, whose predicted image is drawn. The prediction of the last step is
    the final image."""


class Preview(Method):
    """A generator that stops early, at the image that a step predicts."""

    argument: ClassVar[str] = ""
    options: ClassVar[type[Options]] = PreviewOptions

    def __init__(self, inner: Generator, at: int) -> None:
        """Raises UsageError for a generator whose steps can't be reached."""
        super().__init__(inner)
        if not (has_pipeline(inner) or isinstance(innermost(inner), Previewable)):
            raise refuse("preview", inner, ABLE)
        self.at = at

    @classmethod
    def from_spec(cls, spec: Spec, options: PreviewOptions, inner: Generator) -> Preview:
        """Raises UsageError for a generator whose steps can't be reached."""
        return cls(inner, options.at)

    @property
    def name(self) -> str:
        return f"{PREVIEW}{self.at}"

    def generate(self, request: ImageRequest) -> Image | Clip | Path:
        """Raises UsageError for a scheduler that predicts no clean image."""
        base = innermost(self.inner)
        if isinstance(base, Previewable):
            return base.generate_preview(request, self.at)
        with predicting(find_pipeline(self.inner), self.at):
            return self.inner.generate(request)
