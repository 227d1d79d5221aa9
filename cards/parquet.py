"""Writing one config: a parquet file whose bytes are a function of its rows and of pyarrow."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ..release import parquet_path, sha256_file
from ..schema import Row, arrow_schema, image_columns, rows_digest, to_record


class WrittenParquet(NamedTuple):
    """What the documents say about one file."""

    file: str
    """Path relative to the release."""
    bytes: int
    """Size of the file."""
    arrow_bytes: int
    """Size in memory."""
    sha256: str
    """Of the file."""
    rows_sha256: str
    """Logical digest."""


def write_parquet(config: str, rows: Sequence[Row], root: Path) -> WrittenParquet:
    """Write the rows of one config below `root`."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = parquet_path(config)
    path = root / file
    path.parent.mkdir(parents=True)
    records = [to_record(row) for row in rows]
    table = pa.Table.from_pylist(records, schema=arrow_schema(config))
    pictures = image_columns(config)
    pq.write_table(
        table,
        path,
        # PNG does not shrink; left as it is, unchanged pictures dedupe between versions.
        compression="none" if pictures else "zstd",
        row_group_size=100 if pictures else 1000,
        use_content_defined_chunking=True,
        write_page_index=True,
    )
    return WrittenParquet(
        file, path.stat().st_size, table.nbytes, sha256_file(path), rows_digest(records)
    )
