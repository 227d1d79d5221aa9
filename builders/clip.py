"""How long a prompt is for CLIP's text encoder, which many generators read with.

Counts with the published byte-pair merges (`vocabulary/clip_merges.txt.gz`), so no model is needed.
"""

from __future__ import annotations

import gzip
import re
from functools import cache
from itertools import pairwise
from pathlib import Path

MERGES = Path(__file__).parent / "vocabulary" / "clip_merges.txt.gz"

_WORD = re.compile(r"'(?:s|t|re|ve|m|ll|d)|[^\W\d_]+|\d|(?:[^\s\w]|_)+", re.IGNORECASE)


def clip_length(text: str) -> int:
    """Tokens of a text without the marks of start and end; the encoder holds 75 of them.

    >>> clip_length("a hyacinth bulb in bloom.")
    7
    """
    return sum(map(_pieces, _WORD.findall(" ".join(text.lower().split()))))


@cache
def _ranks() -> dict[tuple[str, str], int]:
    lines = gzip.decompress(MERGES.read_bytes()).decode().splitlines()
    return {(a, b): rank for rank, (a, b) in enumerate(line.split(" ") for line in lines)}


@cache
def _letters() -> dict[int, str]:
    """The character that stands for each byte: itself where it prints, else one from 256 on."""
    printing = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    nonprinting = (byte for byte in range(256) if byte not in printing)
    return {b: chr(b) for b in printing} | {b: chr(256 + i) for i, b in enumerate(nonprinting)}


@cache
def _pieces(word: str) -> int:
    """Tokens of one word: its bytes, merged pair by pair, the earliest merge first."""
    ranks, letters = _ranks(), _letters()
    pieces = [letters[byte] for byte in word.encode()]
    pieces[-1] += "</w>"
    while len(pieces) > 1:
        pairs = list(pairwise(pieces))
        best = min(pairs, key=lambda pair: ranks.get(pair, len(ranks)))
        if best not in ranks:
            break
        merged: list[str] = []
        for piece in pieces:
            # A part that was just merged is longer than the first of the pair.
            if merged and (merged[-1], piece) == best:
                merged[-1] += piece
            else:
                merged.append(piece)
        pieces = merged
    return len(pieces)
