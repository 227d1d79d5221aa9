"""Where a prompt's words look: attention of image positions to text tokens, with gradients.

Every attention of diffusers ends in `scaled_dot_product_attention`, whatever its processor is
called: cross-attention of UNets and PixArt, and the joint attention of SD3, FLUX and Qwen-Image, in
which text tokens stand before or behind the image's. Its arguments are read on the way; its output
is left to it, so that what is watched does not change an image by a bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...errors import UsageError
from .words import PromptWord

if TYPE_CHECKING:
    from torch import Tensor

TEXT_LAST = ("SD3Transformer2DModel",)
"""Denoisers whose joint attention has the text behind the image."""


class _Done(BaseException):
    """Ends a denoiser's call behind the last layer that is used."""


@dataclass(frozen=True)
class Grid:
    """Rows and columns of image positions."""

    height: int
    width: int

    @classmethod
    def of(cls, positions: int, aspect: float) -> Grid | None:
        """The grid of so many positions whose height over width is `aspect`; None if there is none.

        >>> Grid.of(8, 0.5), Grid.of(7, 1.0)
        (Grid(height=2, width=4), None)
        """
        height = round(math.sqrt(positions * aspect))
        if height < 1 or positions % height:
            return None
        width = positions // height
        return cls(height, width) if abs(height / width / aspect - 1) < 0.2 else None


@dataclass(frozen=True)
class Shape:
    """Shape of a denoiser's inputs."""

    text: int
    """Tokens of the prompt."""
    image: int
    """Image positions in joint attention."""
    aspect: float
    """Height over width of the image."""

    @classmethod
    def of(cls, model: Any, latents: Tensor, arguments: Mapping[str, Any]) -> Shape:
        """Reads the latents, (batch, channels, height, width) or packed (batch, positions,
        channels), and the arguments of the first call. Raises UsageError for other shapes."""
        text = arguments.get("encoder_hidden_states")
        if text is None or latents.ndim not in (3, 4):
            raise UsageError(
                f"psg: can't guide {type(model).__name__}: it has no text to look at",
                code="unsupported",
            )
        if latents.ndim == 4:
            height, width = latents.shape[-2:]
            patch = getattr(model.config, "patch_size", None) or 1
            return cls(text.shape[1], height * width // patch**2, height / width)
        if (shapes := arguments.get("img_shapes")) is not None:
            _, rows, columns = shapes[0][0]
            return cls(text.shape[1], latents.shape[1], rows / columns)
        places = arguments["img_ids"]
        rows, columns = (int(places[..., axis].max()) + 1 for axis in (1, 2))
        return cls(text.shape[1], latents.shape[1], rows / columns)


def watch_attention(
    model: Any, call: Callable[[], object], shape: Shape, size: int, stop_after: int = 0
) -> list[Tensor]:
    """Attention maps of a denoiser's call, one for each layer of the wanted size.

    call: runs the denoiser. size: longer side of the maps, in positions; 0 for the largest there
    are. stop_after: layers of that size after which the call ends; 0 for none.
    Each map has shape (batch, height, width, text): the share of its attention that an image
    position gives to a token, averaged over heads. Positions in joint attention also look at each
    other, so that their shares of text sum to less than 1.
    """
    import torch
    from torch.overrides import TorchFunctionMode

    last = type(model).__name__ in TEXT_LAST
    maps: list[tuple[int, Tensor]] = []

    class Watching(TorchFunctionMode):
        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            kwargs = kwargs or {}
            if func is torch.nn.functional.scaled_dot_product_attention:
                query, key = (_argument(args, kwargs, n, name) for n, name in _ARGUMENTS[:2])
                grid, rows, columns = _places(query.shape[-2], key.shape[-2], shape, last)
                if grid is not None and size in (0, max(grid.height, grid.width)):
                    mask = _argument(args, kwargs, 3, "attn_mask")
                    scale = kwargs.get("scale") or query.shape[-1] ** -0.5
                    shares = _shares(query[..., rows, :], key, mask, rows, scale)
                    means = shares[..., columns].mean(1)
                    map_of_layer = means.reshape(len(means), grid.height, grid.width, -1)
                    maps.append((grid.height * grid.width, map_of_layer))
                    if stop_after and len(maps) == stop_after:
                        raise _Done
            return func(*args, **kwargs)

    with Watching(), suppress(_Done):
        call()
    most = max((positions for positions, _ in maps), default=0)
    return [map_of_layer for positions, map_of_layer in maps if positions == most]


_ARGUMENTS = ((0, "query"), (1, "key"))


def _argument(args: Sequence[Any], kwargs: Mapping[str, Any], number: int, name: str) -> Any:
    return args[number] if len(args) > number else kwargs.get(name)


def _places(queries: int, keys: int, shape: Shape, last: bool) -> tuple[Grid | None, slice, slice]:
    """The grid of an attention from image to text, its image rows, and its text columns.

    None for attention that holds no text: among image positions, or of the text alone.
    """
    text, image = shape.text, shape.image
    if keys == text and queries != text:  # cross-attention, at whatever resolution
        return Grid.of(queries, shape.aspect), slice(None), slice(None)
    if not queries == keys == text + image:
        return None, slice(0), slice(0)
    grid = Grid.of(image, shape.aspect)
    if last:
        return grid, slice(0, image), slice(image, None)
    return grid, slice(text, None), slice(0, text)


def _shares(query: Tensor, key: Tensor, mask: Tensor | None, rows: slice, scale: float) -> Tensor:
    """softmax(q k) in float32, shape (batch, heads, image positions, keys)."""
    import torch

    logits = (query.float() @ key.float().transpose(-1, -2)) * scale
    if mask is not None:
        if mask.shape[-2] > 1:
            mask = mask[..., rows, :]
        if mask.dtype == torch.bool:
            return logits.masked_fill(~mask, -math.inf).softmax(-1)
        logits = logits + mask
    return logits.softmax(-1)


def token_places(pipeline: Any, prompt: str, word: PromptWord) -> dict[int, str]:
    """Places of a word's tokens among those that the denoiser reads, with the tokens' text.

    Raises ValueError for a word that no token spells, UsageError for a pipeline with unknown
    tokenizers.
    """
    name = type(pipeline).__name__
    if name.startswith("QwenImage"):
        template: str = pipeline.prompt_template_encode
        dropped: int = pipeline.prompt_template_encode_start_idx
        before = template.index("{}")
        tokens = _spelled(pipeline.tokenizer, template.format(prompt), word, before)
        return {place - dropped: token for place, token in tokens.items()}
    if name.startswith("Flux"):
        return _spelled(pipeline.tokenizer_2, prompt, word)
    if name.startswith("StableDiffusion3"):
        clip = _spelled(pipeline.tokenizer, prompt, word)
        if pipeline.text_encoder_3 is None:
            return clip
        third = _spelled(pipeline.tokenizer_3, prompt, word)
        # Tokens that CLIP cuts off have no place: the tokens of T5 begin there.
        length: int = pipeline.tokenizer_max_length
        read_by_clip = {place: token for place, token in clip.items() if place < length}
        return read_by_clip | {length + place: token for place, token in third.items()}
    if name.startswith(("StableDiffusion", "PixArt")):
        return _spelled(pipeline.tokenizer, prompt, word)
    raise UsageError(
        f"psg: does not know which tokens {name} reads: see docs/methods.md", code="unsupported"
    )


def _spelled(tokenizer: Any, text: str, word: PromptWord, before: int = 0) -> dict[int, str]:
    """Places and text of the tokens that spell a word of the prompt, which starts at `before` in
    `text`."""
    start, end = word.start + before, word.end + before
    offsets = tokenizer(text, return_offsets_mapping=True)["offset_mapping"]
    tokens = {i: text[a:b] for i, (a, b) in enumerate(offsets) if a < end and b > start and b > a}
    if not tokens:
        raise ValueError(f"no token spells {word.name!r} in {text!r}")
    return tokens
