"""Rows of a release as tasks for the page, with what there is to see of each.

Beside a row stand its gold images, e.g. right and exchanged, its seed image, or the image that it
is about. A vote is for a version of a row: its key ends in the digest of the row, and does not
count for later versions.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from ...errors import DataError, UsageError
from ...release import CHECKSUMS, has_config
from ...schema import (
    ROWS,
    EncodedImage,
    Entity,
    EvaluationQuestion,
    GoldRow,
    KeyedQuestion,
    RealGold,
    Row,
    columns,
    content_digest,
    description,
    image_columns,
)
from ...storage import write_whole
from ..engine.data import RowChoice, read_rows
from ..suites import SUITES, open_gold
from .forms import ADMIN_COLUMNS, ReviewForm, ReviewTask
from .strata import stratified

ROWS_TO_READ = 200
"""Rows of a release that are drawn by default; at half a minute each, they take two hours."""


class Drawn(NamedTuple):
    """A row to read, with an image and its caption for each that there is."""

    row: Row
    images: tuple[tuple[str, EncodedImage], ...] = ()


def is_release(path: Path) -> bool:
    """Whether a path is the folder of a release."""
    return (path / CHECKSUMS).is_file()


def release_tasks(
    root: Path,
    form: ReviewForm,
    folder: Path,
    n: int | None = None,
    seed: int = 0,
    where: Sequence[str] | None = None,
) -> list[ReviewTask]:
    """Draws rows of a release for annotators, equally many of each config.

    n: rows to draw, `ROWS_TO_READ` by default; of a config with fewer than its share, all.
    where: FIELD=VALUE of the rows, so of the configs that have such rows.

    Images are written to `folder/images`, by their digests. A config whose images are elsewhere has
    no task. Raises ReleaseError for a damaged release, DataError for one without rows to read,
    UsageError where no row fits `where`.
    """
    choice, unfit = RowChoice.of(where), None
    rows: dict[tuple[str, ...], Sequence[Row]] = {}
    rng = random.Random(f"bank {seed}")
    most = n or ROWS_TO_READ
    for name in (name for name in SUITES if name in ROWS and has_config(root, name)):
        if name not in choice.fields.get("suite", (name,)):
            continue
        try:
            fitting = choice.rows(read_rows(str(root), name))
        except UsageError as error:
            unfit = error
            continue
        readable = [at for at, row in enumerate(fitting) if _is_readable(row)]
        if readable:
            chosen = rng.sample(readable, min(most, len(readable)))
            rows[name,] = [fitting[at] for at in chosen]
    if not rows and unfit is not None:
        raise unfit
    if not rows:
        raise DataError(
            f"{root}: none of its configs has rows to read: name a file of rows",
            code="nothing-to-do",
        )
    drawn = stratified(rows, min(most, sum(map(len, rows.values()))), rng, lambda of, k: of[:k])
    by_config: dict[str, list[Row]] = {}
    for row, _ in drawn:
        by_config.setdefault(row.suite, []).append(row)
    return [
        _task(shown, form, folder)
        for name, config_rows in by_config.items()
        for shown in _with_images(root, name, config_rows)
    ]


def _is_readable(row: Row) -> bool:
    """Whether all that a row is about is in the release."""
    return not row.lacks_source and not isinstance(row, RealGold)


def _with_images(root: Path, config: str, rows: Sequence[Row]) -> Iterator[Drawn]:
    gold, gold_images = open_gold(config), dict[str, dict[str, EncodedImage]]()
    if gold is not None and has_config(root, gold.name) and gold.captions:
        wanted = {row.id for row in rows}
        for image_row in read_rows(str(root), gold.name).rows:
            assert isinstance(image_row, GoldRow)
            (case,) = gold.cases(image_row, 1)
            for source in wanted.intersection(gold.sources(image_row)):
                gold_images.setdefault(source, {}).setdefault(case.variant, image_row.image)
    captions = {} if gold is None else gold.captions
    for row in rows:
        own = [(column.replace("_", " "), getattr(row, column)) for column in image_columns(config)]
        of_row = gold_images.get(row.id, {})
        both = [*own, *((caption, of_row.get(content)) for content, caption in captions.items())]
        yield Drawn(row, tuple((caption, image) for caption, image in both if image is not None))


def _task(drawn: Drawn, form: ReviewForm, folder: Path) -> ReviewTask:
    (column,) = form.key
    row = drawn.row
    texts = tuple(_texts(row))
    return ReviewTask(
        key=((column, f"{row.id}@{content_digest(row)}"),),
        texts=texts,
        images=tuple(_image_file(image, folder) for _, image in drawn.images),
        captions=tuple(caption for caption, _ in drawn.images),
        hints=tuple((name, description(row.suite, name)) for name, _ in texts[1:]),
    )


_UNSHOWN = frozenset(
    "suite image_sha256 seed_source seen source_id source_ids cluster family".split()
)
"""Columns that a person need not read, besides ids, images and administration."""


def _texts(row: Row) -> Iterator[tuple[str, str]]:
    """What there is to read of a row: what its config is, then prompts, then what says more."""
    about = (type(row).__doc__ or "").partition("\n\n")[0]
    yield "config", f"{row.suite}: {about}"
    for name in columns(row.suite):
        value = getattr(row, name)
        if name not in _UNSHOWN and name not in ADMIN_COLUMNS and _says(value):
            yield name, _text(value)


def _says(value: object) -> bool:
    return value not in (None, "", []) and not isinstance(value, EncodedImage)


def _text(value: object) -> str:
    """A value on one line: an entity with its look, a question with the world of its yes."""
    if isinstance(value, Entity):
        return f"{value.name}: {value.look}"
    if isinstance(value, KeyedQuestion):
        return f"{value.text} (yes: {value.world})"
    if isinstance(value, EvaluationQuestion):
        return value.text
    if isinstance(value, list):
        return "; ".join(map(_text, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def _image_file(image: EncodedImage, folder: Path) -> Path:
    path = folder / "images" / f"{hashlib.sha256(image.bytes).hexdigest()}.png"
    if not path.exists():
        write_whole(path, image.bytes)
    return path
