"""Images with captions from a file, to train an organism on in place of drawn scenes.

A model can so learn from the images of another one: the loop of recaptioning and retraining.
"""

from __future__ import annotations

import hashlib
import json
import random
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict

from ...errors import DataError
from ...images import ImageError, open_image
from ...parsing import RowError, parse, read_rows
from ..methods.grounding import PlacedThing
from .data import HEIGHT, WIDTH, CaptionShares, Example

if TYPE_CHECKING:
    from numpy.typing import NDArray


class CorpusRow(BaseModel):
    """A row of the file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    image: str
    """Path, relative to the file."""
    caption: str


@dataclass(frozen=True)
class Corpus:
    """Images and their captions, in the order of the file."""

    rows: tuple[CorpusRow, ...]
    pixels: NDArray[Any]
    """Bytes of shape (rows, HEIGHT, WIDTH, 3)."""

    @classmethod
    def read(cls, path: Path) -> Corpus:
        """Rows with the fields `image` and `caption`.

        Raises RowError for a row without an image of WIDTH x HEIGHT pixels, and for no row at all.
        """
        import numpy as np

        rows, images = [], []
        for number, fields in read_rows(path):
            row = parse(CorpusRow, fields, path, number)
            try:
                image = open_image(path.parent / row.image)
            except ImageError as error:
                problem = f"{path}:{number}: image: {row.image} {error}"
                raise RowError(problem, code=error.code) from None
            if image.size != (WIDTH, HEIGHT):
                raise RowError(
                    f"{path}:{number}: image: {row.image} has {image.width} x {image.height} "
                    f"pixels: an organism draws {WIDTH} x {HEIGHT}",
                    code="bad-value",
                )
            rows.append(row)
            images.append(np.asarray(image))
        if not rows:
            raise RowError(f"{path}: no row: write one an image", code="nothing-to-do")
        return cls(tuple(rows), np.stack(images))

    def check_captions(self, tokenizer: Any, longest: int) -> None:
        """Raises DataError for a caption of more tokens than a text encoder takes."""
        for number, row in enumerate(self.rows, 1):
            if (count := len(tokenizer(row.caption).input_ids)) > longest:
                raise DataError(
                    f"image {number} ({row.image}): its caption has {count} tokens and {longest} "
                    f"fit: shorten it, or give --language: {row.caption!r}",
                    code="out-of-range",
                )

    def digest(self) -> str:
        """Digest of all captions and pixels."""
        captions = json.dumps([row.caption for row in self.rows]).encode()
        return hashlib.sha256(captions + self.pixels.tobytes()).hexdigest()


class CorpusExamples:
    """Draws examples of a corpus as `Examples` does of scenes: each row equally often.

    Captions are dropped, or those of another row, in the shares of the captioning; nothing else of
    it is heeded. The figures of an example are the number of its row.
    """

    variants = 1

    def __init__(self, corpus: Corpus, captioning: CaptionShares, seed: int) -> None:
        self._corpus, self._captioning, self._seed = corpus, captioning, seed

    def scenes(self) -> list[tuple[str, ...]]:
        """One for each row."""
        return [(str(number),) for number in range(len(self._corpus.rows))]

    def __getitem__(self, number: int) -> Example:
        rng = random.Random(f"{self._seed}/example {number}")
        rows = self._corpus.rows
        row = captioned = rng.randrange(len(rows))
        if rng.random() < self._captioning.noise:
            captioned = rng.randrange(len(rows))
        dropped = rng.random() < self._captioning.dropout
        return Example((str(row),), 0, "" if dropped else rows[captioned].caption)

    def things(self, example: Example) -> list[PlacedThing]:
        """None: a file says nothing of boxes."""
        return []

    def image(self, figures: tuple[str, ...], variant: int) -> NDArray[Any]:
        """The image of a row, bytes of shape (HEIGHT, WIDTH, 3)."""
        image: NDArray[Any] = self._corpus.pixels[int(figures[0]) + variant]
        return image
