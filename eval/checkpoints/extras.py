"""The extra that installs a missing library."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ...errors import UsageError

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
    """Turns the import of a library that isn't installed into a UsageError that says what to do."""
    try:
        yield
    except ModuleNotFoundError as error:
        library = (error.name or "").partition(".")[0]
        if library not in EXTRAS:
            raise
        remedy = f"pip install 'counterprior[{EXTRAS[library]}]'"
        raise UsageError(
            f"{kind} needs {library}, which is not installed: {remedy}", code="missing-library"
        ) from None
