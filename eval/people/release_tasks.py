"""A release as tasks for the page: rows with their gold images, e.g. right and exchanged.

A vote is for a version of a row: its key ends in the digest of the row, and does not count for
later versions.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ...errors import DataError
from ...release import CHECKSUMS, has_config
from ...schema import GoldRow, Row, content_digest
from ...storage import write_whole
from ..engine.data import read_rows
from ..suites import SUITES, open_gold
from .forms import ReviewForm, ReviewTask, row_texts


def is_release(path: Path) -> bool:
    """Whether a path is the folder of a release."""
    return (path / CHECKSUMS).is_file()


def release_tasks(root: Path, form: ReviewForm, folder: Path) -> list[ReviewTask]:
    """Returns every row of the configs with gold images for annotators, those without an image too.

    Images are written to `folder/images`, by their digests. Raises ReleaseError for a damaged
    release, DataError for one without such a config.
    """
    tasks = []
    for name in SUITES:
        gold = open_gold(name)
        if gold is None or not gold.captions or not has_config(root, name):
            continue
        images: dict[str, dict[str, GoldRow]] = {}
        if has_config(root, gold.name):
            for row in read_rows(str(root), gold.name).rows:
                assert isinstance(row, GoldRow)
                (case,) = gold.cases(row, 1)
                for source in gold.sources(row):
                    images.setdefault(source, {}).setdefault(case.variant, row)
        for row in read_rows(str(root), name).rows:
            captioned = [
                (caption, images[row.id][variant])
                for variant, caption in gold.captions.items()
                if variant in images.get(row.id, {})
            ]
            tasks.append(_task(row, captioned, form, folder))
    if not tasks:
        raise DataError(
            f"{root}: none of its configs has gold images: name a file of rows",
            code="nothing-to-do",
        )
    return tasks


def _task(
    row: Row, captioned: Sequence[tuple[str, GoldRow]], form: ReviewForm, folder: Path
) -> ReviewTask:
    (column,) = form.key
    return ReviewTask(
        key=((column, f"{row.provenance.entry}@{content_digest(row)}"),),
        texts=row_texts(row.model_dump(), form),
        images=tuple(_image_file(gold, folder) for _, gold in captioned),
        captions=tuple(caption for caption, _ in captioned),
    )


def _image_file(gold: GoldRow, folder: Path) -> Path:
    path = folder / "images" / f"{gold.image_sha256}.png"
    if not path.exists():
        write_whole(path, gold.image.bytes)
    return path
