"""A vision-language model that runs here, by transformers, asked through its chat template."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

from .placement import Checkpoint, LoadError, Placement
from .processors import load_processor

if TYPE_CHECKING:
    from PIL.Image import Image


class VisionModel:
    """A checkpoint and where it computes; its files are read when it is first asked."""

    def __init__(self, checkpoint: Checkpoint, placement: Placement) -> None:
        self.checkpoint = checkpoint
        self.placement = placement

    def identity(self) -> dict[str, str]:
        """Model, revision, device and the libraries that its output depends on."""
        import transformers

        return {
            "kind": "hf-vlm",
            "model": self.checkpoint.name,
            "revision": self.checkpoint.version,
            # The Pillow and torchvision forms of an image processor differ in the last digits.
            "image_processor": type(self.processor.image_processor).__name__,
            "transformers": transformers.__version__,
            **self.placement.identity(),
        }

    @cached_property
    def processor(self) -> Any:
        """Raises LoadError where it can't be loaded."""
        with self._loading():
            processor: Any = load_processor(self.checkpoint.source, self.checkpoint.commit)
        # So that the last position of every row of a batch is the one to answer at.
        processor.tokenizer.padding_side = "left"
        return processor

    @cached_property
    def model(self) -> Any:
        """Raises LoadError where it can't be loaded."""
        from transformers import AutoModelForImageTextToText

        with self._loading():
            dtype = self.placement.torch_dtype
            model: Any = self.checkpoint.load(AutoModelForImageTextToText, dtype=dtype)
            return model.to(self.placement.device).eval()

    @contextmanager
    def _loading(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # whatever its files or the device make of it
            raise LoadError(
                f"{self.checkpoint.name} can't be loaded: {error}", code="load-failed"
            ) from error


def chat(images: Sequence[Image], text: str) -> list[dict[str, Any]]:
    """One message of a user: the images, then the text."""
    content: list[dict[str, Any]] = [{"type": "image", "image": image} for image in images]
    return [{"role": "user", "content": [*content, {"type": "text", "text": text}]}]
