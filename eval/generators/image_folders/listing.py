"""Inputs of a layout, and the places of images that it returns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ....errors import UsageError

ENDINGS = (".png", ".jpg", ".jpeg", ".webp")
"""Endings of image files, in the order in which they are tried."""


@dataclass(frozen=True)
class ImagePlace:
    """Where one image of a prompt is."""

    file: str
    """Path in the folder; without an ending, any of `ENDINGS`."""
    cell: tuple[int, int] | None = None
    """Number of a cell of a square grid, by rows from 0, and cells on a side."""
    row: int | None = None
    """Row of a parquet file."""
    seed: int | None = None
    """Seed that it was made with, where the layout says so."""

    def __str__(self) -> str:
        place = self.row if self.cell is None else f"cell {self.cell[0]}"
        return self.file if place is None else f"{self.file} ({place})"


@dataclass(frozen=True)
class LayoutSource:
    """Folder to read by a layout, with the options of the layout."""

    root: Path
    """The folder."""
    prompts: Path | None = None
    """List of the prompts by id, or folder of text files."""
    grid: int | None = None
    """Images on a side of each file; 1 if a file is one image."""
    model: str = ""
    """Model whose images are read, of several models side by side."""

    def listed(self, description: str, *patterns: str) -> Path:
        """Path of the list of prompts: the option's, or the only such file in the folder."""
        if self.prompts is not None:
            return self.prompts
        files = [path for pattern in patterns for path in sorted(self.root.glob(pattern))]
        if len(files) != 1:
            many = f"has {len(files)} files that may be it" if files else "does not say it"
            raise UsageError(
                f"folder: name {description} with prompts=: {self.root} {many}",
                code="missing-option",
            )
        return files[0]

    def of_model(self, pattern: str) -> str:
        """Name of the only model whose folder matches ``pattern`` (with ``{}`` for its name)."""
        depth = pattern.split("/").index("{}")
        models = {
            path.relative_to(self.root).parts[depth]
            for path in self.root.glob(pattern.format(self.model or "*"))
        }
        if len(models) != 1:
            which = f"{', '.join(sorted(models))}: choose one with model=" if models else "no model"
            raise UsageError(f"folder: {self.root} has images of {which}", code="different-rows")
        return models.pop()


Listed = Iterator[tuple[str, ImagePlace]]
"""Prompts with their images, in the order of their seeds."""
