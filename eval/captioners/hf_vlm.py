"""`hf-vlm`: a vision-language model that writes captions here, by transformers.

``hf-vlm:PATH_OR_REPO[?revision=r&device=cuda&dtype=bfloat16&max_tokens=512]``. Greedy, one image at
a time, so that a caption depends on nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import ClassVar

from ...agents.chat import without_thoughts
from ...specs import Options, Spec
from ..checkpoints.placement import Checkpoint, LoadError, ModelOptions, Placement
from ..checkpoints.vision import VisionModel
from ..core import Caption, CaptionRequest
from ..judges import CallPlan
from . import MAX_TOKENS, CaptionTokens


class LocalCaptionerOptions(ModelOptions):
    """Options of the captioner `hf-vlm`."""

    max_tokens: CaptionTokens = MAX_TOKENS
    """Longest caption, in tokens."""


class LocalCaptioner(VisionModel):
    """Writes the likeliest token after the other, up to `max_tokens`."""

    argument: ClassVar[str] = "PATH_OR_REPO"
    options: ClassVar[type[Options]] = LocalCaptionerOptions

    def __init__(self, checkpoint: Checkpoint, placement: Placement, max_tokens: int) -> None:
        super().__init__(checkpoint, placement)
        self.max_tokens = max_tokens

    @classmethod
    def from_spec(
        cls, spec: Spec, options: LocalCaptionerOptions, plan: CallPlan | None = None
    ) -> LocalCaptioner:
        """Raises UsageError for a model that isn't there."""
        checkpoint = Checkpoint.find(spec.argument, options.revision, "config.json")
        placement = Placement.find(options.device, options.dtype)
        return cls(checkpoint, placement, options.max_tokens)

    def identity(self) -> dict[str, str]:
        return {**super().identity(), "max_tokens": str(self.max_tokens), "decoding": "greedy"}

    def caption(
        self, requests: Iterable[CaptionRequest]
    ) -> Iterator[tuple[CaptionRequest, Caption]]:
        """Raises LoadError where there can be no caption at all."""
        for request in requests:
            yield request, self._caption(request)

    def _caption(self, request: CaptionRequest) -> Caption:
        try:
            return self._written(request)
        except LoadError:
            raise
        except Exception as error:  # a model's own code may raise anything
            return Caption(f"{type(error).__name__}: {error}", "error")

    def _written(self, request: CaptionRequest) -> Caption:
        import torch

        images = () if request.image is None else (request.image,)
        inputs = self.encode([(images, request.instruction)])
        with torch.inference_mode():
            written = self.model.generate(
                **inputs, max_new_tokens=self.max_tokens, do_sample=False, num_beams=1
            )
        tokens = written[0, inputs["input_ids"].shape[1] :]
        text = self.processor.tokenizer.decode(tokens, skip_special_tokens=True)
        ends = self.model.generation_config.eos_token_id
        last = int(tokens[-1]) if len(tokens) else None
        ended = last in (ends if isinstance(ends, list) else [ends])
        return Caption(without_thoughts(text), cut=len(tokens) >= self.max_tokens and not ended)
