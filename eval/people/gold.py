"""A release to read on the page: rows with the gold images of theirs, right and exchanged.

A vote is of a row as it was read: its key ends in the digest of the row, and says nothing of the
row once that is another one.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ...errors import DataError
from ...release import CHECKSUMS, has_config
from ...schema import Row, T2ICorrectnessGold, content_digest
from ...storage import write_whole
from ..engine.data import read_rows
from ..suites import SUITES
from .forms import ReviewForm, ReviewTask, row_texts

SHOWN = {"right": "as it should be", "swapped": "exchanged"}
"""Layout of a gold image -> its caption."""


def is_release(path: Path) -> bool:
    """Whether a path is the folder of a release."""
    return (path / CHECKSUMS).is_file()


def release_tasks(root: Path, form: ReviewForm, folder: Path) -> list[ReviewTask]:
    """Every row of the configs that have gold images, those without an image too.

    Images are written to `folder/images`, by their digests. Raises ReleaseError for a damaged
    release, DataError for one without such a config.
    """
    tasks = []
    for name, suite in SUITES.items():
        if not suite.gold or not has_config(root, name):
            continue
        images: dict[str, dict[str, T2ICorrectnessGold]] = {}
        if has_config(root, suite.gold):
            for gold in read_rows(str(root), suite.gold).rows:
                assert isinstance(gold, T2ICorrectnessGold)
                images.setdefault(gold.source_id, {}).setdefault(gold.layout, gold)
        for row in read_rows(str(root), name).rows:
            tasks.append(_task(row, images.get(row.id, {}), form, folder))
    if not tasks:
        raise DataError(f"{root}: no config of it has gold images: name a file of rows")
    return tasks


def _task(
    row: Row, images: dict[str, T2ICorrectnessGold], form: ReviewForm, folder: Path
) -> ReviewTask:
    shown = {layout: images[layout] for layout in SHOWN if layout in images}
    (column,) = form.key
    return ReviewTask(
        key=((column, f"{row.provenance.entry}@{content_digest(row)}"),),
        texts=row_texts(row.model_dump(), form),
        images=tuple(_kept(gold, folder) for gold in shown.values()),
        captions=tuple(SHOWN[layout] for layout in shown),
    )


def _kept(gold: Any, folder: Path) -> Path:
    path = folder / "images" / f"{gold.image_sha256}.png"
    if not path.exists():
        write_whole(path, gold.image.bytes)
    return path
