"""Rows of a config, from a release folder or the Hub, with the digest that says which rows."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from ..release import ReleaseError, iter_records, load, parquet_path, read_checksums
from ..schema import ROWS, Row, image_columns, rows_digest


class Rows(NamedTuple):
    """The scored rows of one config."""

    rows: list[Row]
    """In the order of the release, retired ones left out."""
    digest: str
    """Logical digest of the whole config."""


def read_rows(data: str, config: str, revision: str | None = None) -> Rows:
    """The rows of a release folder or a dataset repository, checked against its checksums.

    Raises ReleaseError where there is no such release or config, or the rows are not those that it
    published.
    """
    root = Path(data)
    if root.is_dir():
        expected = read_checksums(root)["files"].get(parquet_path(config))
        if expected is None:
            raise ReleaseError(f"{data} has no config {config!r}: build or choose another")
        records = list(iter_records(root, config))
        digest = rows_digest(records)
        if digest != expected["rows_sha256"]:
            raise ReleaseError(f"{data}, {config}: rows differ from the release's checksums")
    else:
        records = list(_from_hub(data, config, revision))
        digest = rows_digest(records)
    rows = [ROWS[config].model_validate(record) for record in records]
    return Rows([row for row in rows if row.status != "retired"], digest)


def _from_hub(repo: str, config: str, revision: str | None) -> Iterator[dict[str, Any]]:
    import datasets

    dataset = load(repo, config, revision=revision)
    for column in image_columns(config):
        dataset = dataset.cast_column(column, datasets.Image(decode=False))
    yield from dataset


def sample_rows(rows: list[Row], limit: int | None) -> list[Row]:
    """`limit` rows spread over the config, the same ones always; all where None or too many."""
    if limit is None or limit >= len(rows):
        return rows
    chosen = sorted(random.Random(0).sample(range(len(rows)), limit))
    return [rows[number] for number in chosen]
