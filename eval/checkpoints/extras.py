"""Opening the adapter that a spec names, and saying which extra is missing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from ...errors import UsageError
from ...specs import Spec

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
        extra = EXTRAS[library]
        raise UsageError(
            f"{kind} needs {library}, which is not installed: pip install 'counterprior[{extra}]'"
        ) from None


def open_adapter(table: Mapping[str, str], spec: Spec, package: str, *settings: Any) -> Any:
    """The adapter of a spec's kind: ``table[kind]`` names module and class, opened by `from_spec`.

    Raises UsageError for an unknown kind and a library that isn't installed.
    """
    if spec.kind not in table:
        what = package.rpartition(".")[2].removesuffix("s")
        raise UsageError(f"no {what} {spec.kind!r}: choose from {', '.join(sorted(table))}")
    module, _, name = table[spec.kind].partition(":")
    with named_extras(spec.kind):
        return getattr(import_module(module, package), name).from_spec(spec, *settings)
