"""Which columns of a corpus hold what: presets of published corpora, options and guesses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...errors import UsageError

COLUMNS = ("caption", "url", "width", "height", "uid", "similarity", "image")
"""Our names for the columns of a source; only captions, and addresses or images, are required."""


class SourceError(UsageError):
    """A source that can't be read; the message names file, column and what to do."""


@dataclass(frozen=True)
class Preset:
    """Column names of a published corpus."""

    caption: str
    url: str
    width: str = ""
    height: str = ""
    uid: str = ""
    similarity: str = ""
    header: bool = True
    """False for tables without a header line, whose columns are caption and url, in that order."""


PRESETS = {
    "laion": Preset("TEXT", "URL", "WIDTH", "HEIGHT", "SAMPLE_ID", "similarity"),
    "datacomp": Preset(
        "text", "url", "original_width", "original_height", "uid", "clip_l14_similarity_score"
    ),
    "cc3m": Preset("caption", "url", header=False),
}
"""Columns by `--preset`: LAION's parquet, DataComp's metadata, Conceptual Captions' tsv."""

GUESSES = {
    "caption": ("caption", "text", "alt_text", "alt", "sentence", "raw_caption"),
    "url": ("url", "image_url", "img_url", "image_link", "link"),
    "width": ("original_width", "width"),
    "height": ("original_height", "height"),
    "uid": ("uid", "sample_id"),
    "similarity": ("similarity", "clip_l14_similarity_score", "clip_b32_similarity_score"),
    "image": ("image", "img", "jpg", "png", "webp", "file_name"),
}
"""Column names to look for, in any letter case, if neither preset nor option gives one."""


def find_columns(
    names: Sequence[str], preset: str, asked: Mapping[str, str], where: str
) -> dict[str, str]:
    """Our column names -> those of a source, for the columns that it has.

    asked: our name -> column, where an option names one. Raises SourceError for an unknown preset,
    an asked column that isn't there, no captions, and neither addresses nor images.
    """
    if preset and preset not in PRESETS:
        raise SourceError(
            f"no preset {preset!r}: choose from {', '.join(PRESETS)}", code="unknown-name"
        )
    given = {n: getattr(PRESETS[preset], n, "") if preset else "" for n in COLUMNS}
    given |= {name: column for name, column in asked.items() if column}
    lower = {name.lower(): name for name in reversed(names)}
    found = {}
    for ours, column in given.items():
        guess = next((lower[g] for g in GUESSES[ours] if g in lower), "")
        theirs = column if column in names else "" if column else guess
        if theirs:
            found[ours] = theirs
        elif asked.get(ours) or ours == "caption" or (ours == "url" and column):
            raise missing(column or GUESSES[ours][0], ours, names, where)
    if "url" not in found and "image" not in found:
        raise missing(GUESSES["url"][0], "url", names, where)
    return found


def missing(column: str, ours: str, names: Sequence[str], where: str) -> SourceError:
    """What to raise where a column isn't there."""
    return SourceError(
        f"{where}: no column {column!r} among {', '.join(names)}; give it with --{ours}-column",
        code="missing-column",
    )


def find_values(record: Mapping[str, Any]) -> dict[str, Any]:
    """Our column names -> values of one record, e.g. the JSON that lies beside an image."""
    lower = {str(name).lower(): value for name, value in record.items()}
    found = {}
    for ours, guesses in GUESSES.items():
        known = (lower[g] for g in guesses if lower.get(g) is not None)
        found[ours] = next(known, None)
    return found
