"""Columns of a corpus, matched to ours by presets of published corpora, options and guesses."""

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
"""Column names to look for, in any letter case, if neither preset nor option names a column."""


def check_preset(preset: str) -> None:
    """Raises SourceError for an unknown preset; an empty one is none."""
    if preset and preset not in PRESETS:
        raise SourceError(
            f"no preset {preset!r}: choose from {', '.join(PRESETS)}", code="unknown-name"
        )


def find_columns(
    columns: Sequence[str], preset: str, options: Mapping[str, str], where: str
) -> dict[str, str]:
    """Maps our column names to those of a source, for the columns that it has.

    columns: of the source. options: our name -> column, empty for no option. Raises SourceError for
    an unknown preset, a missing column that an option names, no captions, and neither addresses nor
    images.
    """
    check_preset(preset)
    wanted = {n: getattr(PRESETS[preset], n, "") if preset else "" for n in COLUMNS}
    wanted |= {name: column for name, column in options.items() if column}
    lower = {name.lower(): name for name in reversed(columns)}
    matches = {}
    for ours, column in wanted.items():
        guess = next((lower[g] for g in GUESSES[ours] if g in lower), "")
        theirs = column if column in columns else "" if column else guess
        if theirs:
            matches[ours] = theirs
        elif options.get(ours) or ours == "caption" or (ours == "url" and column):
            raise missing_column(column or GUESSES[ours][0], ours, columns, where)
    if "url" not in matches and "image" not in matches:
        raise missing_column(GUESSES["url"][0], "url", columns, where)
    return matches


def missing_column(column: str, ours: str, columns: Sequence[str], where: str) -> SourceError:
    """Returns the error for a missing column."""
    return SourceError(
        f"{where}: no column {column!r} among {', '.join(columns)}; name it with --{ours}-column",
        code="missing-column",
    )


def find_values(record: Mapping[str, Any]) -> dict[str, Any]:
    """Maps our column names to the values of a record, e.g. the JSON beside an image."""
    lower = {str(name).lower(): value for name, value in record.items()}
    values = {}
    for ours, guesses in GUESSES.items():
        candidates = (lower[g] for g in guesses if lower.get(g) is not None)
        values[ours] = next(candidates, None)
    return values
