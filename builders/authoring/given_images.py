"""The user's images, from a folder or from a dataset of the Hub or on disk."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

from ...agents.consistency.game import GivenImage, UndrawnError
from ...errors import DataError, UsageError
from ...eval.core import Generator, GeneratorError, ImageRequest
from ...eval.generators import draw
from ...images import ImageError, encode_png, open_image
from ...storage import write_whole

SUFFIXES = {".png", ".jpg", ".jpeg", ".webp"}


@dataclass(frozen=True)
class UnusableImage:
    """An image that can't be used."""

    name: str
    """Its file or row."""
    why: str
    """The reason."""


def read_images(
    source: str, limit: int | None, smallest_side: int
) -> tuple[list[GivenImage], list[UnusableImage]]:
    """The first `limit` usable images of a source, upright and RGB, and those that can't be used.

    `source` is a folder of images, or ``NAME[:SPLIT]`` of a dataset with an image column.
    Raises UsageError for a source without any.
    """
    images: list[GivenImage] = []
    refused: list[UnusableImage] = []
    for name, data in _files(Path(source)) if Path(source).is_dir() else _rows(source):
        if limit is not None and len(images) >= limit:
            break
        try:
            upright = open_image(BytesIO(data))
            upright.info.clear()  # the pixels alone are released
        except ImageError as error:
            refused.append(UnusableImage(name, str(error)))
            continue
        if min(upright.size) < smallest_side:
            refused.append(UnusableImage(name, f"{upright.size[0]}x{upright.size[1]} is too small"))
            continue
        images.append(GivenImage(name, encode_png(upright)))
    if not images and not refused:
        raise UsageError(f"{source}: contains no images", code="nothing-to-do")
    return images, refused


def _files(folder: Path) -> Iterator[tuple[str, bytes]]:
    for path in sorted(folder.rglob("*")):
        if path.suffix.lower() in SUFFIXES and path.is_file():
            yield str(path.relative_to(folder)), path.read_bytes()


def _rows(source: str) -> Iterator[tuple[str, bytes]]:
    import datasets

    name, _, split = source.partition(":")
    try:
        data = datasets.load_dataset(name, split=split or "test")
    except Exception as error:  # the library raises a dozen kinds
        raise UsageError(
            f"{source}: neither a folder nor a dataset ({error})", code="no-such-file"
        ) from None
    column = next((n for n, f in data.features.items() if isinstance(f, datasets.Image)), None)
    if column is None:
        raise UsageError(f"{source}: has no image column", code="missing-column")
    rows: Any = data.cast_column(column, datasets.Image(decode=False))
    for number, row in enumerate(rows):
        content = row[column]["bytes"] or Path(row[column]["path"]).read_bytes()
        yield f"{name}#{number}", content


class CachedDrawer:
    """Draws with a generator and keeps each drawing, or the reason for having none, for replays."""

    def __init__(self, generator: Generator | None, identity: str, folder: Path) -> None:
        """Without a `generator` nothing is drawn: every drawing must be in the folder."""
        self._generator = generator
        self._identity = identity
        self._folder = folder

    def __call__(self, caption: str, seed: int) -> bytes:
        """The drawing as PNG.

        Raises UndrawnError for a caption that can't be drawn, DataError if a replay lacks a
        drawing, and BackendError if the drawer's server can't be used.
        """
        key = hashlib.sha256(f"{self._identity}\n{seed}\n{caption}".encode()).hexdigest()
        path, undrawn = self._folder / f"{key}.png", self._folder / f"{key}.undrawn"
        if path.exists():
            return path.read_bytes()
        if undrawn.exists():
            raise UndrawnError(undrawn.read_text(encoding="utf-8"))
        if self._generator is None:
            raise DataError(
                f"{path}: a recorded drawing is missing; copy it from the run's folder",
                code="no-such-file",
            )
        try:
            data = encode_png(draw(self._generator, ImageRequest(caption, seed)))
        except (GeneratorError, ValueError) as error:
            status = error.status if isinstance(error, GeneratorError) else "error"
            self._keep(undrawn, f"{status}: {error}".encode())
            raise UndrawnError(f"{status}: {error}") from None
        self._keep(path, data)
        return data

    def _keep(self, path: Path, data: bytes) -> None:
        write_whole(path, data)
