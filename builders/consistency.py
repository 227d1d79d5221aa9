"""The bank of consistency items: images with caption, edits and questions (ACON)."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Annotated

from pydantic import Field

from ..schema import Consistency, EncodedImage, Provenance, Struct
from .bank import BankError, by_name, read_entries

FILE = "consistency/items.yaml"

LICENSE = r"^[A-Za-z0-9][A-Za-z0-9.+-]*$"
"""Pattern of an SPDX id."""

TEXTS = "CC-BY-4.0"
"""License of what was written about an image."""


class AnsweredQuestion(Struct):
    """A yes/no question with its right answer."""

    question: str
    """Ends with a question mark."""
    answer: bool
    """True for yes."""


class EditItem(Struct):
    """An edit, and questions about the edited image."""

    prompt: str
    """The instruction."""
    questions: list[AnsweredQuestion]
    """Two: one answered yes, one answered no."""


class ConsistencyItem(Struct):
    """One image with its test material."""

    id: str
    """First 16 hex digits of the image's SHA-256."""
    source: str
    """Name of the image at its origin."""
    image: str
    """File of the image below `consistency/`, a PNG."""
    license: Annotated[str, Field(pattern=LICENSE)]
    """SPDX id of the image's license."""
    caption: str
    """Dense caption, 7-10 self-contained sentences."""
    questions: list[AnsweredQuestion]
    """Ten: five similarities first, then five differences."""
    edits: list[EditItem]
    """Three."""
    written_by: list[str]
    """Authors of caption, edits and questions, in this order."""
    checked_by: list[str]
    """Checkers of caption, edits and questions, in this order."""
    review: tuple[str, ...]
    """Reviewers besides the author: `reviewer-model`, `human`."""
    calls: tuple[str, ...]
    """Ledger ids of the model calls it was written with."""


def read_consistency(bank: Path) -> list[Consistency]:
    """The rows of the bank; none if it has no such file.

    Raises BankError naming file, entry and field.
    """
    file = bank / FILE
    if not file.exists():
        return []
    items = read_entries(file, ConsistencyItem)
    by_name(items, "id", str(file))
    return [_row(item, file) for item in items]


def _row(item: ConsistencyItem, file: Path) -> Consistency:
    where = f"{file}, {item.id}"
    counts = (len(item.questions), len(item.edits), *(len(e.questions) for e in item.edits))
    if counts != (10, 3, 2, 2, 2):
        raise BankError(
            f"{where}: needs ten questions and three edits with two each", code="bad-entry"
        )
    try:
        data = (file.parent / item.image).read_bytes()
    except OSError as error:
        raise BankError(f"{where}, image: {error}", code="unreadable-image") from None
    sha = hashlib.sha256(data).hexdigest()
    if sha[:16] != item.id:
        raise BankError(
            f"{where}, image: {item.image} is another image (SHA-256 {sha[:16]}...)",
            code="changed-file",
        )
    questions = [*item.questions, *(q for edit in item.edits for q in edit.questions)]
    return Consistency(
        image=EncodedImage(bytes=data, path=f"{item.id}.png"),
        image_sha256=sha,
        caption=item.caption,
        edits=[edit.prompt for edit in item.edits],
        questions=[q.question for q in questions],
        answers=[q.answer for q in questions],
        written_by=item.written_by,
        checked_by=item.checked_by,
        review=["code", *item.review],
        license=TEXTS if item.license == TEXTS else f"{TEXTS} AND {item.license}",
        provenance=Provenance(
            bank=FILE, entry=item.id, author=item.written_by[0], calls=list(item.calls)
        ),
    )
