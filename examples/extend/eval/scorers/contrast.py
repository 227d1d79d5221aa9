"""`contrast`: standard deviation of an image's brightness."""

from __future__ import annotations

from collections.abc import Sequence

from PIL.Image import Image


class Contrast:
    """In levels of 255; knows nothing of the prompt."""

    def identity(self) -> dict[str, str]:
        return {"kind": "contrast", "version": "1"}

    def score(self, pairs: Sequence[tuple[str, Image]]) -> list[float]:
        """One number for each prompt and image."""
        import numpy as np

        return [float(np.asarray(image.convert("L")).std()) for _, image in pairs]
