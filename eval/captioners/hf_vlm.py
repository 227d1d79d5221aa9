"""`hf-vlm`: a vision-language model that writes captions here, by transformers.

``hf-vlm:PATH_OR_REPO[?revision=r&device=cuda&dtype=bfloat16&max_tokens=512]``. Greedy, one image at
a time, so that a caption depends on nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ...agents.chat import without_thoughts
from ...errors import UsageError
from ...specs import Spec
from ..checkpoints.placement import Checkpoint, LoadError, Placement
from ..checkpoints.vision import VisionModel, chat
from ..core import Caption, CaptionRequest
from . import token_bound

OPTIONS = ("revision", "device", "dtype", "max_tokens")


class LocalCaptioner(VisionModel):
    """Writes the likeliest token after the other, up to `max_tokens`."""

    def __init__(self, checkpoint: Checkpoint, placement: Placement, max_tokens: int) -> None:
        super().__init__(checkpoint, placement)
        self.max_tokens = max_tokens

    @classmethod
    def from_spec(cls, spec: Spec) -> LocalCaptioner:
        """Raises UsageError for a wrong option or a model that isn't there."""
        if unknown := set(spec.options) - set(OPTIONS):
            raise UsageError(
                f"{spec.kind}: no option {sorted(unknown)[0]!r}", code="unknown-option"
            )
        checkpoint = Checkpoint.find(spec.argument, spec.options.get("revision"), "config.json")
        return cls(checkpoint, Placement.from_options(spec.options), token_bound(spec))

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

        shown = () if request.image is None else (request.image,)
        inputs = self.processor.apply_chat_template(
            [chat(shown, request.instruction)],
            add_generation_prompt=True,
            tokenize=True,
            return_dict=True,
            return_tensors="pt",
        ).to(self.placement.device, self.placement.torch_dtype)
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
