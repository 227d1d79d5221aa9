"""Forms by kind of review, and the rows to review."""

from __future__ import annotations

import random
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from pydantic import BaseModel, TypeAdapter

from ...errors import UsageError
from ...parsing import RowError, read_rows, read_yaml


class ReviewField(BaseModel, frozen=True):
    """One decision about a row."""

    name: str
    """Key in the label."""
    title: str
    """Question on the page."""
    options: tuple[tuple[str, str], ...]
    """Value and the key that chooses it."""


class ReviewForm(BaseModel, frozen=True):
    """A kind of review."""

    key: tuple[str, ...]
    """Columns that together name a row; they stand in every label."""
    fields: tuple[ReviewField, ...]
    """Decisions, in order; a row is done when all are made."""
    note: bool = False
    """Whether a text may be added, e.g. an edit."""
    shown: tuple[str, ...] = ()
    """The only columns sent to the page, in this order; all but `ADMIN_COLUMNS` where empty."""
    aliases: tuple[str, ...] = ()
    """Columns that name a row where the key's are missing."""
    part: tuple[str, ...] = ()
    """Columns of the key that only samples of runs have: cases are the same in several runs."""
    blind: bool = False
    """Whether images are sent as pixels alone, without the metadata of their files."""

    def name(self, record: Mapping[str, Any]) -> str:
        """Returns the task of a label. Raises KeyError for a label of another form."""
        values = [str(record[column]) for column in self.key]
        return "/".join([*values, *(str(record[c]) for c in self.part if c in record)])


ADMIN_COLUMNS = ("canary", "id", "license", "provenance", "review", "seeds", "status", "suite")
"""Columns of a release besides the content of a row, its reviewers among them."""
_SHOWN_APART = ("image", "images", "level")
"""Columns that are not shown as a text of their own."""

FORMS = TypeAdapter(dict[str, ReviewForm]).validate_python(
    tomllib.loads(resources.files(__package__).joinpath("forms.toml").read_text("utf-8"))
)
"""Kind -> form: SpatialBench-UC's audit, selection of a judge, quality of one image or of two side
by side, CF-World's review, review of the bank."""


def open_form(kind: str) -> ReviewForm:
    """Returns the form of a kind of review. Raises UsageError for an unknown kind."""
    if kind not in FORMS:
        raise UsageError(f"no kind {kind!r}: choose from {', '.join(FORMS)}", code="unknown-name")
    return FORMS[kind]


@dataclass(frozen=True)
class ReviewTask:
    """One row to review."""

    key: tuple[tuple[str, str], ...]
    """Column and value that name the row; unique in the audit."""
    texts: tuple[tuple[str, str], ...]
    """Column and text, shown in this order."""
    images: tuple[Path, ...]
    """Shown side by side, a source before its edit."""
    options: tuple[tuple[str, str], ...] = ()
    """Value and key of the one field, where the row's `answers` say what its digits mean."""
    captions: tuple[str, ...] = ()
    """Below the images, where there are several."""
    clips: tuple[int, ...] = ()
    """Places of the clips among the images, counted from 0."""
    hints: tuple[tuple[str, str], ...] = ()
    """Column and what it holds, where the page can say."""

    @property
    def id(self) -> str:
        """The key as one text."""
        return "/".join(value for _, value in self.key)


def read_tasks(path: Path, form: ReviewForm) -> list[ReviewTask]:
    """Rows of `.jsonl`, `.json`, `.csv`, a bank's `.yaml` or a release's `.parquet`, in its order.

    `image` or `images` hold paths, relative to the file. Rows of one group (L1, L2, L3) are one
    task. Raises RowError for a row without its id, an id twice, or an image that is not there.
    """
    tasks: dict[str, ReviewTask] = {}
    for number, row in _rows(path):
        key = _key(row, form, path, number)
        name = "/".join(value for _, value in key)
        level = f"{row['level']} " if "group" in form.key and "level" in row else ""
        texts = row_texts(row, form, level)
        options = _options(row, form, path, number)
        task = ReviewTask(key, texts, _images(row, path, number), options)
        if name in tasks:
            if not level:
                raise RowError(
                    f"{path}:{number}: {key[0][0]}: {name!r} occurs twice", code="duplicate-id"
                )
            earlier = tasks[name]
            new = tuple(text for text in texts if text[1] not in {t for _, t in earlier.texts})
            task = ReviewTask(key, earlier.texts + new, earlier.images + task.images)
        tasks[name] = task
    if not tasks:
        raise RowError(f"{path}: nothing to review", code="nothing-to-do")
    return list(tasks.values())


def row_texts(
    row: Mapping[str, Any], form: ReviewForm, level: str = ""
) -> tuple[tuple[str, str], ...]:
    """Returns column and text of everything that the page shows of a row."""
    columns = form.shown or [c for c in row if c not in (*ADMIN_COLUMNS, *form.key, *_SHOWN_APART)]
    return tuple(line for c in columns for line in _lines(f"{level}{c}", row.get(c)))


def _key(
    row: Mapping[str, Any], form: ReviewForm, path: Path, number: int
) -> tuple[tuple[str, str], ...]:
    """Returns column and value of everything that names a row."""
    key = []
    for column in form.key:
        values = (row.get(name) for name in (column, *form.aliases))
        value = next(
            (str(text) for text in values if isinstance(text, (str, int)) and text != ""), ""
        )
        if not value:
            columns = " or ".join((column, *form.aliases))
            raise RowError(
                f"{path}:{number}: {columns}: a non-empty text is needed", code="wrong-type"
            )
        key.append((column, value))
    return tuple(key)


def _rows(path: Path) -> list[tuple[int, Mapping[str, Any]]]:
    if path.suffix == ".parquet":
        import pyarrow.parquet

        return list(enumerate(pyarrow.parquet.read_table(path).to_pylist(), 1))
    if path.suffix not in (".yaml", ".yml"):
        return list(read_rows(path))
    entries = read_yaml(path)
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise RowError(f"{path}: is not a list of entries", code="wrong-type")
    return list(enumerate(entries, 1))


def _options(
    row: Mapping[str, Any], form: ReviewForm, path: Path, number: int
) -> tuple[tuple[str, str], ...]:
    """The labels of `answers` (key -> label), for a judge's question; empty without `answers`."""
    answers = row.get("answers")
    if form is not FORMS["judge"] or answers is None:
        return ()
    keys = [key for _, key in form.fields[0].options]
    if not isinstance(answers, Mapping) or sorted(answers) != keys:
        raise RowError(
            f"{path}:{number}: answers: write what each of {', '.join(keys)} means",
            code="missing-field",
        )
    return tuple((str(label), key) for key, label in sorted(answers.items()))


def _images(row: Mapping[str, Any], path: Path, number: int) -> tuple[Path, ...]:
    named = row.get("images") or ([row["image"]] if row.get("image") else [])
    paths = tuple(path.parent / str(name) for name in named)
    for image in paths:
        if not image.is_file():
            raise RowError(f"{path}:{number}: image: {image} is not there", code="no-such-file")
    return paths


def _lines(name: str, value: object) -> Iterator[tuple[str, str]]:
    """A value as (name, text) lines, a line for each nested value; empty for an empty value."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _lines(f"{name} {key}", item)
    elif isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        if any(isinstance(item, Mapping) for item in value):
            for number, item in enumerate(value, 1):
                yield from _lines(f"{name} {number}", item)
        elif value:
            yield name, "; ".join(map(str, value))
    elif not isinstance(value, bytes) and value not in (None, ""):
        yield name, str(value)


def shuffled(tasks: Sequence[ReviewTask], annotator: str) -> list[ReviewTask]:
    """Returns an annotator's order of the tasks: random, but the same at every start."""
    order = sorted(tasks, key=lambda task: task.id)
    random.Random(f"audit {annotator}").shuffle(order)
    return order
