"""Detections as rows, their masks as COCO's run lengths: by column, absent and present in turns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...errors import DataError
from ..geometry.boxes import Box
from . import Detection, Mask


class RleError(DataError):
    """Run lengths that are none, or of another size."""


def encode(mask: Mask) -> dict[str, Any]:
    """A mask (H, W) as COCO's uncompressed form, which JSON and pycocotools read.

    >>> encode(np.array([[False, True], [True, True]]))
    {'size': [2, 2], 'counts': [1, 3]}
    """
    height, width = mask.shape
    flat = np.ascontiguousarray(mask.T).ravel()
    ends = [*(np.flatnonzero(flat[1:] != flat[:-1]) + 1).tolist(), flat.size]
    counts = np.diff([0, *ends]).tolist()
    return {"size": [height, width], "counts": [0, *counts] if flat[:1].any() else counts}


def decode(rle: Any) -> Mask:
    """The mask (H, W) of run lengths, as a list or in COCO's compressed text.

    Raises RleError for anything else, and for runs that don't fill the size.
    """
    try:
        height, width = (int(side) for side in rle["size"])
        counts = rle["counts"]
        runs = np.asarray(_expanded(counts) if isinstance(counts, str) else counts, dtype=np.int64)
        if runs.ndim != 1 or (runs < 0).any() or runs.sum() != height * width:
            raise ValueError(f"the runs do not fill {height} x {width} pixels")
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise RleError(f"no mask in run lengths: {error}", code="bad-value") from None
    present = np.arange(len(runs)) % 2 == 1
    return np.repeat(present, runs).reshape(width, height).T


def _expanded(text: str) -> Sequence[int]:
    """Decodes runs of the compressed text: 5 bits a character, from the third on as differences."""
    runs: list[int] = []
    place = 0
    while place < len(text):
        value, shift, continues = 0, 0, True
        while continues:
            bits = ord(text[place]) - 48
            if not 0 <= bits < 64:
                raise ValueError(f"{text[place]!r} is not a digit of a compressed mask")
            value |= (bits & 0x1F) << shift
            continues, shift, place = bool(bits & 0x20), shift + 5, place + 1
            if continues and place == len(text):
                raise ValueError("the text is cut off")
            if not continues and bits & 0x10:
                value -= 1 << shift
        runs.append(value + runs[-2] if len(runs) > 2 else value)
    return runs


def to_row(detection: Detection) -> dict[str, Any]:
    """Returns a detection as a plain row, with its mask if it has one."""
    return detection.to_row() | ({} if detection.mask is None else {"mask": encode(detection.mask)})


def from_row(row: Mapping[str, Any]) -> Detection:
    """The inverse of `to_row`. Raises KeyError, TypeError or RleError for another row."""
    mask = decode(row["mask"]) if row.get("mask") is not None else None
    return Detection(row["label"], row["score"], Box(*row["box_xyxy"]), mask)
