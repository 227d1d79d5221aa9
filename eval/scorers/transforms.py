"""Images as CLIP-like encoders take them, on Pillow and torch alone.

What `Resize`, `CenterCrop` and `Pad` of torchvision do, whose wheel is linked to CUDA. Pixel for
pixel the same on images of Pillow.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch
    from PIL.Image import Image

MEAN = (0.48145466, 0.4578275, 0.40821073)
STD = (0.26862954, 0.26130258, 0.27577711)
"""Standard deviation of CLIP's training pixels in [0, 1], red, green and blue."""


def cropped(image: Image, side: int) -> Image:
    """The middle square after the shorter side was brought to `side` pixels, bicubic."""
    from PIL.Image import Resampling

    width, height = image.size
    if width <= height:
        size = side, int(side * height / width)
    else:
        size = int(side * width / height), side
    resized = image if size == image.size else image.resize(size, Resampling.BICUBIC)
    x, y = (round((length - side) / 2) for length in size)
    return resized.crop((x, y, x + side, y + side))


def padded(image: Image, side: int) -> Image:
    """The whole image with its longer side at `side` pixels, bicubic, on a black square."""
    from PIL import Image as images

    scale = side / max(image.size)
    width, height = (round(length * scale) for length in image.size)
    square = images.new("RGB", (side, side))
    if (width, height) != image.size:
        image = image.resize((max(1, width), max(1, height)), images.Resampling.BICUBIC)
    square.paste(image, ((side - width) // 2, (side - height) // 2))
    return square


def normalized(squares: Iterable[Image]) -> torch.Tensor:
    """Shape (n, 3, side, side), float32: pixels less CLIP's mean, by its deviation."""
    import numpy as np
    import torch

    stacked = np.stack([np.asarray(square.convert("RGB")) for square in squares])
    pixels = torch.from_numpy(stacked).permute(0, 3, 1, 2).contiguous().float().div(255)
    mean, std = (torch.tensor(values).view(3, 1, 1) for values in (MEAN, STD))
    return pixels.sub_(mean).div_(std)
