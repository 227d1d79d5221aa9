"""Writes one config as a parquet file; the bytes depend only on the rows and on pyarrow."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ..release import parquet_path, sha256_file
from ..schema import Row, arrow_schema, image_columns, rows_digest, to_record
from ..storage import ArrowSink, whole_file


class WrittenParquet(NamedTuple):
    """Facts about one file for the documents."""

    file: str
    """Path relative to the release."""
    bytes: int
    """Size of the file."""
    sha256: str
    """Digest of the file."""
    rows_sha256: str
    """Logical digest of the rows."""


def write_parquet(config: str, rows: Sequence[Row], root: Path) -> WrittenParquet:
    """Writes the rows of one config below `root`."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = root / parquet_path(config)
    records = [to_record(row) for row in rows]
    table = pa.Table.from_pylist(records, schema=arrow_schema(config))
    images = image_columns(config)
    with whole_file(path) as file:
        pq.write_table(
            table,
            ArrowSink(file),
            # PNG does not compress further; uncompressed, unchanged images deduplicate on the Hub.
            compression="none" if images else "zstd",
            row_group_size=100 if images else 1000,
            use_content_defined_chunking=True,
            write_page_index=True,
        )
    return WrittenParquet(
        file=parquet_path(config),
        bytes=path.stat().st_size,
        sha256=sha256_file(path),
        rows_sha256=rows_digest(records),
    )
