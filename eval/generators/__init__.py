"""Whatever makes or edits an image: one module an adapter, one line in `GENERATORS` each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
from typing import Protocol

from PIL.Image import Image
from PIL.PngImagePlugin import PngInfo

from ...specs import Spec


@dataclass(frozen=True)
class ImageRequest:
    """What a generator is asked for; with `source` set it is an edit."""

    prompt: str
    """The text to draw, or the edit instruction."""
    seed: int
    """Non-negative; the same request must give the same pixels where the backend allows it."""
    source: Image | None = None
    """The RGB image to edit; None for text-to-image."""


class Generator(Protocol):
    """Makes one RGB image from one request."""

    def generate(self, request: ImageRequest) -> Image: ...

    def identity(self) -> dict[str, str]:
        """What produced the image (kind, model, revision, settings); goes into every record."""
        ...


def _render(spec: Spec) -> Generator:
    from .render import RenderGenerator

    return RenderGenerator.from_spec(spec)


GENERATORS: dict[str, Callable[[Spec], Generator]] = {
    "render": _render,
}


def open_generator(text: str) -> Generator:
    """The generator that a spec such as ``render:`` names; ValueError for an unknown kind."""
    spec = Spec.parse(text)
    if spec.kind not in GENERATORS:
        raise ValueError(f"no generator {spec.kind!r}: choose from {', '.join(sorted(GENERATORS))}")
    return GENERATORS[spec.kind](spec)


def encode_png(image: Image) -> bytes:
    """The image as PNG: the same bytes for the same pixels under one Pillow.

    Of its metadata only the renderer's ``scene`` is kept, so that its pictures can be edited again.
    """
    metadata = PngInfo()
    if isinstance(scene := image.info.get("scene"), str):
        metadata.add_text("scene", scene)
    buffer = BytesIO()
    image.convert("RGB").save(buffer, "PNG", compress_level=6, pnginfo=metadata)
    return buffer.getvalue()
