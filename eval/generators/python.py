"""Generators that are Python values: a function, or images that somebody made already."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from PIL import Image

from ...errors import UsageError
from ..checkpoints.registry import Identity, python_identity
from ..core import Case, GeneratorError, ImageRequest


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
    if isinstance(value, str):
        return Path(value)
    if isinstance(value, (Image.Image, Path)):
        return value
    raise GeneratorError(
        f"a {type(value).__name__} is neither a PIL image nor a path", code="wrong-type"
    )


def _takes_source(function: Callable[..., Any]) -> bool:
    """Whether a function takes three positional arguments; false if its signature is hidden."""
    try:
        inspect.signature(function).bind("prompt", 0, None)
    except (TypeError, ValueError):
        return False
    return True
