"""Results of `counterprior corpus mine` on web corpora: does the first-mentioned thing stand left?

OTS-Bench's Table 5 has a line for each corpus, where others have one for each generator.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ....errors import DataError
from ....parsing import MALFORMED
from ...core import Score, describe
from ...stats.intervals import Interval

RESULT = "alignment.json"
"""File in the folder of a corpus."""
SHARES = {
    "aligned": "single_probe",
    "aligned_probed": "four_probes",
    "aligned_consistent": "consistent",
}
"""Score -> key of the result. Asked once, as the paper does; the mean over the image and its mirror
image, with the names in both orders, so that a judge's preferences cancel; and over the pairs for
which all four agree."""
PAIRS = "pairs"
"""Pairs with an answer."""
NAMES = (*SHARES, PAIRS)


@dataclass(frozen=True)
class MinedCorpus:
    """One corpus."""

    judge: str
    """Judge of its images, in a few words."""
    scores: Mapping[str, Score]
    """Name -> score."""


def read_corpus(folder: Path) -> MinedCorpus:
    """Reads the result of a corpus that was mined to the end.

    Intervals are over pairs of things, because the same two are often named together. Raises
    DataError for a missing or damaged result.
    """
    path = folder / RESULT
    try:
        result = json.loads(path.read_text("utf-8"))
        shares = {name: _share(name, result[key]) for name, key in SHARES.items()}
        judge = describe(result["judge"])
    except FileNotFoundError:
        raise DataError(
            f"there is no {path}: make it with `counterprior corpus mine SOURCE --stage layout "
            f"--judge SPEC --out {folder}`",
            code="no-such-file",
        ) from None
    except (OSError, *MALFORMED) as error:
        raise DataError(
            f"{path} is not a result of `counterprior corpus mine`: {error!r}", code="bad-format"
        ) from None
    n = shares["aligned"].n
    return MinedCorpus(judge, shares | {PAIRS: Score(float(n), n=n, name=PAIRS, unit="pairs")})


def _share(name: str, record: Mapping[str, Any]) -> Score:
    value, *ends = (
        math.nan if share is None else 100 * float(share)
        for share in (record["rate"], *record["by_pair"])
    )
    return Score(value, Interval(*ends), n=int(record["n"]), name=name, unit="%")
