"""Opening the adapter that a spec names, and saying which extra a missing library comes with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Self

from ...errors import UsageError
from ...specs import Spec, load_factory

EXTRAS = {
    "accelerate": "models",
    "anthropic": "agents",
    "diffusers": "models",
    "openai": "agents",
    "torch": "models",
    "transformers": "models",
}
"""Library -> extra that installs it."""


class SpecAdapter:
    """An adapter whose constructor reads the spec; that raises UsageError for a wrong one."""

    def __init__(self, spec: Spec) -> None: ...

    @classmethod
    def from_spec(cls, spec: Spec) -> Self:
        return cls(spec)


def open_adapter(table: Mapping[str, str], spec: Spec, what: str, *more: Any) -> Any:
    """What a spec names: ``Class.from_spec(spec, *more)`` of the table's ``package.module:Class``.

    The module is imported only now. ``python:package.module:factory?option=value`` opens what the
    factory returns. what: names the thing in messages, e.g. `detector`. Raises UsageError for an
    unknown kind and a library that is not installed, and whatever `from_spec` raises.
    """
    if spec.kind == "python":
        return load_factory(spec)
    if spec.kind not in table:
        known = ", ".join(sorted([*table, "python"]))
        raise UsageError(f"no {what} {spec.kind!r}: choose from {known}", code="unknown-name")
    with named_extras(spec.kind):
        return find_class(table[spec.kind]).from_spec(spec, *more)


def find_class(text: str) -> Any:
    """The class that ``package.module:Class`` names."""
    module, _, name = text.partition(":")
    return getattr(import_module(module), name)


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
