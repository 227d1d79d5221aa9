"""A vision-language model that runs here, by transformers, asked through its chat template, or, if
it takes no chat, in the form that it was trained to answer questions in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from .placement import Checkpoint, LoadError, Placement
from .processors import load_processor

if TYPE_CHECKING:
    from PIL.Image import Image


class VisionModel:
    """A checkpoint and where it computes; its files are read when it is first asked."""

    forms: ClassVar[Mapping[str, str]] = {}
    """Processors that take no chat -> what a prompt is written as, after the images."""

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

    def encode(self, asked: Sequence[tuple[Sequence[Image], str]]) -> Any:
        """Tensors of prompts, each the images and a text, padded on the left; on the device.

        Raises LoadError where the model takes no chat, and no form of a question is known.
        """
        if self.processor.chat_template is not None:
            encoded = self.processor.apply_chat_template(
                [chat(images, text) for images, text in asked],
                add_generation_prompt=True,
                tokenize=True,
                return_dict=True,
                return_tensors="pt",
                processor_kwargs={"padding": True},
            )
        else:
            token = self.processor.image_token
            encoded = self.processor(
                images=[list(images) for images, _ in asked],
                text=[token * len(images) + self._plain(text) for images, text in asked],
                return_tensors="pt",
                padding=True,
            )
            encoded.pop("labels", None)  # of a training that nobody asked for
        return encoded.to(self.placement.device, self.placement.torch_dtype)

    def prompt_text(self, images: Sequence[Image], text: str) -> str:
        """What stands before the answer, as text; of a model that takes no chat without images."""
        if self.processor.chat_template is None:
            return f"{self._plain(text)}\n"
        prompt: str = self.processor.apply_chat_template(
            chat(images, text), add_generation_prompt=True, tokenize=False
        )
        return prompt

    def _plain(self, text: str) -> str:
        form = self.forms.get(type(self.processor).__name__)
        if form is None:
            raise LoadError(
                f"{self.checkpoint.name} has no chat template, and how to ask it is not known: "
                f"choose an instruction-tuned checkpoint",
                code="load-failed",
            )
        return form.format(text=text)

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
