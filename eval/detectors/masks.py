"""PSE of many mask files, on several processes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from ...errors import DataError
from ...images import FORMATS
from ...progress import Progress, silent
from ..rules.boxes import Relation
from ..rules.pse import present, pse
from . import Mask


class MaskError(DataError):
    """A file that holds no mask; the message names it."""


@dataclass(frozen=True)
class MaskPair:
    """Two objects of one image."""

    a: Path | None
    """PNG of object a, any pixel above 0 belongs to it; None where it was not found."""
    b: Path | None
    """PNG of object b."""
    relation: Relation
    """What a is of b."""


@dataclass(frozen=True)
class MaskScore:
    pse: float
    """In [0, 1]; 0 where either object is missing."""
    missing: tuple[str, ...]
    """`a`, `b`: no file, or an empty mask."""


def score_pair(pair: MaskPair) -> MaskScore:
    """PSE of one pair. Raises MaskError for unreadable masks or masks of different size."""
    a, b = (None if path is None else _read(path) for path in (pair.a, pair.b))
    missing = tuple(n for n, mask in (("a", a), ("b", b)) if mask is None or not present(mask))
    if a is None or b is None or missing:
        return MaskScore(0.0, missing)
    if a.shape != b.shape:
        raise MaskError(f"{pair.a}, {pair.b}: masks of {a.shape} and {b.shape} pixels do not fit")
    return MaskScore(float(pse(a, b, pair.relation)), ())


def _read(path: Path) -> Mask:
    try:
        with Image.open(path, formats=FORMATS) as image:
            return np.asarray(image.convert("L")) > 0
    except FileNotFoundError:
        raise MaskError(f"{path}: no such mask") from None
    except (OSError, SyntaxError, ValueError) as error:
        raise MaskError(f"{path}: no readable mask ({type(error).__name__})") from None


def score_pairs(
    pairs: Sequence[MaskPair], jobs: int = 1, progress: Progress = silent
) -> Iterator[MaskScore]:
    """Scores in the order of the pairs, computed on `jobs` processes."""
    with ProcessPoolExecutor(jobs) as pool:
        scores = pool.map(score_pair, pairs, chunksize=64)
        for done, score in enumerate(scores, 1):
            progress("masks", done, len(pairs))
            yield score
