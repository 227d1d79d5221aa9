"""Values that many records of a run have in common, each parsed once and held once."""

from __future__ import annotations

import marshal
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import cache
from typing import Any, Generic, TypeVar

from ...parsing import SHA256, parse_as
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


FieldCheck = Callable[[Any], bool]
"""Says whether a plain value is one of a field as it is."""


def is_text(value: Any) -> bool:
    return type(value) is str


def is_digest(value: Any) -> bool:
    """Whether it is a SHA-256."""
    return type(value) is str and SHA256.fullmatch(value) is not None


def is_whole(value: Any) -> bool:
    return type(value) is int


MOST = 1_000
"""Kinds of records that are remembered at a time."""


class RecordParser(Generic[Record]):
    """Parses many records of one frozen dataclass, which differ in few of its fields.

    The others are parsed for the first record that has them; the next one like it takes its values.
    """

    def __init__(self, kind: Callable[..., Record], own: Mapping[str, FieldCheck]) -> None:
        """own: the fields in which records differ, each with a check of a value that is right."""
        self._kind, self._own = kind, own
        self._known: dict[bytes, dict[str, Any]] = {}
        self._shared = SharedValues()

    def parsed(self, plain: Mapping[str, Any], parse: Callable[[], Record], **own: Any) -> Record:
        """The record of plain values. parse: parses all of them, as for a single record. own:
        further fields, parsed already."""
        common = {name: value for name, value in plain.items() if name not in self._own}
        key = marshal.dumps(common, 2)  # tells 1 from 1.0 and True
        known = self._known.get(key)
        if known is not None:
            for name, is_right in self._own.items():
                if not is_right(value := plain.get(name)):
                    return self._shared.share(parse())
                own[name] = value
            return self._kind(**known, **own)
        record = self._shared.share(parse())
        if len(self._known) >= MOST:
            self._known.clear()
        self._known[key] = {name: getattr(record, name) for name in common}
        return record


class VerdictParser:
    """Parses many verdicts; those that are short texts alone once for each."""

    def __init__(self) -> None:
        self._known: dict[tuple[tuple[str, Any], ...], Verdict] = {}

    def parsed(self, plain: Mapping[str, Any]) -> Verdict:
        """The verdict of plain values. Raises RowError where they are of none."""
        key = tuple(plain.items())
        try:
            return self._known[key]
        except (KeyError, TypeError):  # new, or with probabilities
            verdict = parse_as(Verdict, plain, "")
        if all(type(value) is str and len(value) <= LONGEST for value in plain.values()):
            if len(self._known) >= MOST:
                self._known.clear()
            self._known[key] = verdict
        return verdict


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
