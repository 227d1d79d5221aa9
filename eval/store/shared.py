"""Values that many records of a run have in common, each held once."""

from __future__ import annotations

from dataclasses import fields
from functools import cache
from typing import Any, TypeVar

from ..core import Verdict

LONGEST = 300
"""Characters of a text that is looked for among others; a longer one seldom recurs."""

Record = TypeVar("Record")


class SharedValues:
    """Texts, mappings and verdicts met so far: prompts, labels and groups recur in a whole run.

    Only for frozen records: a value that several of them hold is never changed.
    """

    def __init__(self) -> None:
        self._values: dict[Any, Any] = {}

    def share(self, record: Record) -> Record:
        """The same dataclass, with values that were met before in place of equal ones."""
        for name in _shareable(type(record)):  # type: ignore[arg-type]
            value = getattr(record, name)
            key = _key(value)
            if key is not None and (known := self._values.setdefault(key, value)) is not value:
                object.__setattr__(record, name, known)
        return record


@cache
def _shareable(kind: Any) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind) if field.name not in DISTINCT)


DISTINCT = frozenset({"key", "case", "image", "file", "sha256", "seed", "number", "stamp"})
"""Fields whose values hardly recur in a run, or are no texts."""


def _key(value: Any) -> Any:
    """What equal values have in common; None for one that is not looked for.

    Numbers are left alone: 1, 1.0 and True are equal and not the same.
    """
    kind = type(value)
    if kind is str:
        return value if len(value) <= LONGEST else None
    if kind is tuple and all(type(part) is str for part in value):
        return value
    if kind is dict and all(type(part) is str for part in value.values()):
        return dict, *value.items()
    if kind is Verdict and value.probabilities is value.number is value.mass is None:
        return (Verdict, value.label, value.raw, value.usd) if len(value.raw) <= LONGEST else None
    return None
