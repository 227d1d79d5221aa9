"""Things and boxes as a UNet with GLIGEN's layers takes them (Li et al., arXiv:2301.07093).

Its position net makes a token of each thing's name and box, and places of the image look at these
tokens. `StableDiffusionGLIGENPipeline` passes them to it, but draws noise unless latents have four
channels; `GroundingHook` passes the same to the UNet of a `StableDiffusionPipeline`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..geometry.boxes import Box
from .denoising import Arguments

if TYPE_CHECKING:
    from torch import Tensor

GATED = "gated"
"""Type of attention of a UNet that has these layers."""
MOST_THINGS = 30
"""Tokens of an image, as in GLIGEN; those without a thing say so."""


@dataclass(frozen=True)
class PlacedThing:
    """A thing and its box."""

    name: str
    """As the row names it."""
    box: Box
    """Shares of the image's sides."""


def phrase(name: str) -> str:
    """A thing as SpatialBench-UC names it to GLIGEN, `a apple` too."""
    return f"a {name}"


def phrase_features(encoder: Any, tokenizer: Any, names: Sequence[str]) -> dict[str, Tensor]:
    """What a CLIP text encoder makes of each name's phrase, shape (width,)."""
    import torch

    tokens = tokenizer([phrase(n) for n in names], padding=True, return_tensors="pt")
    with torch.no_grad():
        pooled = encoder(**tokens.to(encoder.device)).pooler_output
    return dict(zip(names, pooled, strict=True))


def grounding(
    images: Sequence[Sequence[PlacedThing]], features: Mapping[str, Tensor]
) -> dict[str, Tensor]:
    """Arguments of the position net for a batch of images.

    images: things of each, none for an image without a layout. features: as `phrase_features`.
    """
    known = next(iter(features.values()))
    boxes = known.new_zeros(len(images), MOST_THINGS, 4)
    embeddings = known.new_zeros(len(images), MOST_THINGS, len(known))
    masks = known.new_zeros(len(images), MOST_THINGS)
    for row, things in enumerate(images):
        for place, thing in enumerate(things):
            boxes[row, place] = known.new_tensor(thing.box)
            embeddings[row, place] = features[thing.name]
            masks[row, place] = 1
    return {"boxes": boxes, "positive_embeddings": embeddings, "masks": masks}


class GroundingHook:
    """Gives the UNet of a `StableDiffusionPipeline` the boxes in the first steps of an image.

    With guidance, the half of the batch that sees no prompt sees no boxes.
    """

    def __init__(self, pipeline: Any, things: Sequence[PlacedThing], share: float) -> None:
        """share: of the steps that see the boxes, rounded down as diffusers does."""
        self._scheduler, self._things, self._share = pipeline.scheduler, things, share
        names = [thing.name for thing in things]
        features = phrase_features(pipeline.text_encoder, pipeline.tokenizer, names)
        self._features = features
        self._step = 0

    def __call__(
        self, module: Any, args: tuple[Any, ...], kwargs: Arguments
    ) -> tuple[tuple[Any, ...], Arguments] | None:
        step, self._step = self._step, self._step + 1
        if step >= int(self._share * len(self._scheduler.timesteps)):
            return None
        rows = len(args[0])
        unseen: list[Sequence[PlacedThing]] = [()] * (rows // 2)
        images = [*unseen, *[self._things] * (rows - len(unseen))]
        own = kwargs.get("cross_attention_kwargs") or {}
        boxes = {"gligen": grounding(images, self._features)}
        return args, {**kwargs, "cross_attention_kwargs": {**own, **boxes}}
