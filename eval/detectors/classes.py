"""Closed sets of classes: which of them a query means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from . import DetectorError


def class_numbers(names: Mapping[int, str], queries: Sequence[str]) -> dict[int, str]:
    """Class number -> query. Raises DetectorError for a query that is no class.

    >>> class_numbers({1: "cat", 2: "Potted plant"}, ["potted plant"])
    {2: 'potted plant'}
    """
    numbers = {name.lower(): number for number, name in names.items()}
    unknown = [query for query in queries if query.lower() not in numbers]
    if unknown:
        raise DetectorError(f"the detector has no class {unknown[0]!r} among its {len(numbers)}")
    return {numbers[query.lower()]: query for query in queries}
