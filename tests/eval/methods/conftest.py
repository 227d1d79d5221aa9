"""Generators whose steps can be reached."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from steered import OPTIONS, Opened

from counterprior.eval.generators import open_generator
from counterprior.eval.generators.diffusion import DiffusersGenerator


@pytest.fixture
def opened(checkpoint: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> Opened:
    """A generator on the tiny checkpoint of a kind, which gives pixels as float32.

    What a prompt changes in a random model is below 1/255: each pixel's four bytes are those of the
    first color's number.
    """

    def exact(values: Any) -> Image.Image:
        first = np.ascontiguousarray(values[:, :, 0], dtype=np.float32)
        return Image.frombytes("RGBA", first.shape[::-1], first.tobytes())

    monkeypatch.setattr("counterprior.eval.generators.diffusion._image", exact)

    def open_kind(kind: str, options: str = "") -> DiffusersGenerator:
        if kind == "qwen-image-edit":  # it always works on one megapixel
            import diffusers.pipelines.qwenimage.pipeline_qwenimage_edit as module

            real = module.calculate_dimensions
            monkeypatch.setattr(
                module, "calculate_dimensions", lambda area, ratio: real(64 * 64, ratio)
            )
        spec = f"diffusers:{checkpoint(kind)}?{options or OPTIONS[kind]}"
        generator = open_generator(spec)
        assert isinstance(generator, DiffusersGenerator)
        if kind == "gligen":  # boxes are no option of a spec
            generator._call |= {"gligen_phrases": ["a dog"], "gligen_boxes": [[0, 0.2, 0.4, 0.8]]}  # type: ignore[dict-item]
        return generator

    return open_kind
