"""Adapters whose libraries are extras of the package: saying which one is missing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

EXTRAS = {
    "accelerate": "models",
    "anthropic": "agents",
    "diffusers": "models",
    "openai": "agents",
    "torch": "models",
    "transformers": "models",
}
"""Library -> extra that installs it."""


@contextmanager
def named_extras(kind: str) -> Iterator[None]:
    """Turns the import of a library that isn't installed into a ValueError that says what to do."""
    try:
        yield
    except ModuleNotFoundError as error:
        library = (error.name or "").partition(".")[0]
        if library not in EXTRAS:
            raise
        extra = EXTRAS[library]
        raise ValueError(
            f"{kind} needs {library}, which is not installed: pip install 'counterprior[{extra}]'"
        ) from None
