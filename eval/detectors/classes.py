"""Closed sets of classes: which of them a query means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from . import DetectorError

ALIASES = {
    "airplane": "aeroplane",
    "couch": "sofa",
    "dining table": "diningtable",
    "motorcycle": "motorbike",
    "potted plant": "pottedplant",
    "tv": "tvmonitor",
}
"""COCO's names, and what checkpoints that were trained with VOC's spelling (RT-DETR) call them."""


COCO = tuple(Path(__file__).with_name("coco.txt").read_text("utf-8").splitlines())
"""The 80 classes that detectors are trained on, in COCO's order."""


def class_numbers(names: Mapping[int, str], queries: Sequence[str]) -> dict[int, str]:
    """Class number -> query. Raises DetectorError for a query that is no class.

    >>> class_numbers({1: "cat", 2: "Potted plant"}, ["potted plant"])
    {2: 'potted plant'}
    """
    numbers = {name.lower(): number for number, name in names.items()}
    found: dict[int, str] = {}
    for query in queries:
        name = query.lower()
        if name not in numbers:
            name = ALIASES.get(name, name)
        if name not in numbers:
            raise DetectorError(f"the detector has no class {query!r} among its {len(numbers)}")
        found[numbers[name]] = query
    return found
