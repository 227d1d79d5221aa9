"""Rows of a config, from a release folder or the Hub, with the digest that says which rows."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from ...release import ReleaseError, iter_records, load, parquet_path, read_checksums
from ...schema import ROWS, Counterfactual, Row, SpatialUC, image_columns, rows_digest


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
    """At most `limit` rows spread over the config, the same ones always; all where None.

    Rows that are scored together stay together: the levels of a group of worlds, and the two
    prompts of one scene. At least one group is taken, whatever the limit.
    """
    if limit is None or limit >= len(rows):
        return rows
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(_together(row), []).append(row)
    count = max(1, limit // max(map(len, groups.values())))
    chosen = set(random.Random(0).sample(list(groups), min(count, len(groups))))
    return [row for row in rows if _together(row) in chosen]


def _together(row: Row) -> str:
    if isinstance(row, Counterfactual):
        return row.group
    return row.pair_id if isinstance(row, SpatialUC) else row.id
