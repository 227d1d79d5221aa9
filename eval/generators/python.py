"""Generators that are Python values: a function, or images that somebody made already."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image

from ...errors import UsageError
from ..checkpoints.registry import Identity, python_identity
from ..core import Case, GeneratorError, ImageRequest

if TYPE_CHECKING:
    from numpy.typing import NDArray


class FunctionGenerator:
    """A function of prompt and seed, and of the source where it takes a third argument."""

    def __init__(self, function: Callable[..., Any], identity: Identity) -> None:
        self._function = function
        self._identity = python_identity(function, identity)
        self._edits = _takes_source(function)

    def identity(self) -> dict[str, str]:
        return dict(self._identity)

    def generate(self, request: ImageRequest) -> Image.Image | Path:
        """Raises GeneratorError if the function raises an error or returns no image."""
        if request.source is not None and not self._edits:
            raise GeneratorError(
                "the function takes (prompt, seed) only and can't edit a source", code="cannot-edit"
            )
        source = (request.source,) if self._edits else ()
        try:
            result = self._function(request.prompt, request.seed, *source)
        except (GeneratorError, FileNotFoundError):
            raise
        except Exception as error:  # the user's own code may raise anything
            raise GeneratorError(
                f"{type(error).__name__}: {error}", code="generator-failed"
            ) from error
        return _image_or_path(result)


class MappingGenerator:
    """Images by case: the case itself or its id -> PIL image or path."""

    def __init__(self, images: Mapping[Any, Any], identity: Identity) -> None:
        self._images = {str(getattr(key, "id", key)): value for key, value in images.items()}
        self._identity = {**python_identity(images, identity), "name": "images"}

    def identity(self) -> dict[str, str]:
        return dict(self._identity)

    def check(self, cases: Sequence[Case]) -> None:
        """Raises UsageError for an image of an unknown case."""
        if unknown := sorted(self._images.keys() - {case.id for case in cases}):
            raise UsageError(
                f"{len(unknown):,} images are of unknown cases, the first {unknown[0]!r}: "
                f"`counterprior.prompts` lists the cases of a suite",
                code="unknown-reference",
            )

    def generate(self, request: ImageRequest) -> Image.Image | Path:
        """Raises FileNotFoundError for a case without an image."""
        case = request.case
        if case is None or case.id not in self._images:
            raise FileNotFoundError(f"the mapping has no {case.id if case else 'case'}")
        return _image_or_path(self._images[case.id])


def _image_or_path(value: Any) -> Image.Image | Path:
    """What a function or mapping gives for one image, as pipelines return it, too.

    A list of one, or an array of shape (height, width) or (height, width, 3 or 4): bytes, or floats
    in [0, 1]. Raises GeneratorError for anything else.
    """
    if isinstance(value, (list, tuple)) and len(value) == 1:
        return _image_or_path(value[0])
    if isinstance(value, np.ndarray):
        return _image_of(value[0] if value.ndim == 4 and len(value) == 1 else value)
    if isinstance(value, str):
        return Path(value)
    if isinstance(value, (Image.Image, Path)):
        return value
    raise GeneratorError(
        f"a {type(value).__name__} is neither a PIL image nor a path, nor an array or list of one",
        code="wrong-type",
    )


def _image_of(pixels: NDArray[Any]) -> Image.Image:
    fits = pixels.ndim == 2 or (pixels.ndim == 3 and pixels.shape[2] in (3, 4))
    if pixels.dtype.kind == "f" and fits and pixels.size:
        if not 0 <= pixels.min() <= pixels.max() <= 1:  # not a number isn't either
            raise GeneratorError(
                f"floats of an image are in [0, 1], not from {pixels.min():g} to {pixels.max():g}",
                code="wrong-type",
            )
        pixels = (pixels * 255).round().astype(np.uint8)
    if not (fits and pixels.size and pixels.dtype == np.uint8):
        raise GeneratorError(
            f"an array of {pixels.dtype} and shape {pixels.shape} is no image: give bytes, or "
            f"floats in [0, 1], of shape (height, width, 3)",
            code="wrong-type",
        )
    return Image.fromarray(pixels)


def _takes_source(function: Callable[..., Any]) -> bool:
    """Whether a function takes three positional arguments; false if its signature is hidden."""
    try:
        inspect.signature(function).bind("prompt", 0, None)
    except (TypeError, ValueError):
        return False
    return True
