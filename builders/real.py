"""The bank of readings of real images: what readers saw in images that VISOR published."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from ..errors import DataError
from ..parsing import parse, read_rows
from ..readings import ImageReading
from ..schema import Struct
from .bank import BankError, by_name, read_by_name

FILE = "real/labels.jsonl"
READERS = "real/readers.yaml"


class Reader(Struct):
    """Who looked at the images."""

    name: str
    """Name in the readings."""
    kind: Literal["model", "human"]
    """Kind of the reader."""
    how: str
    """What the reader was shown and which images, one sentence."""


class ImageReadings(Struct):
    """One image with all its readings."""

    image: Annotated[str, Field(pattern=r"^\w+/\d+_\d\.png$")]
    """MODEL/PROMPT_NUMBER.png, as in the folder `images` of microsoft/VISOR."""
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    """SHA-256 of the file."""
    readings: dict[str, ImageReading]
    """Reader -> reading; A is the thing that the prompt mentions first."""

    @property
    def model(self) -> str:
        """Generator of the image."""
        return self.image.partition("/")[0]

    @property
    def prompt_id(self) -> int:
        """VISOR's id of the prompt."""
        return int(self.image.partition("/")[2].partition("_")[0])


def read_readers(bank: Path) -> dict[str, Reader]:
    """Name -> reader; none where the bank has no such file. Raises BankError."""
    return read_by_name(bank / READERS, Reader, "name")


def read_real(bank: Path) -> list[ImageReadings]:
    """The images of the bank, in its order; none where it has no such file.

    Raises BankError for a line that can't be read, an image twice, and a reader who is not in
    `readers.yaml`.
    """
    path = bank / FILE
    if not path.exists():
        return []
    try:
        images = [parse(ImageReadings, row, path, number) for number, row in read_rows(path)]
    except DataError as error:
        raise BankError(str(error), code=error.code) from None
    by_name(images, "image", str(path))
    readers = read_readers(bank)
    for image in images:
        if unknown := sorted(image.readings.keys() - readers.keys()):
            raise BankError(
                f"{path}, {image.image}: readings: no reader {unknown[0]!r} in {READERS}",
                code="unknown-reference",
            )
    return images
