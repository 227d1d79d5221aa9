"""The tables of a publication, written as parquet files with one row group in memory at a time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from ...storage import ArrowSink
from ..engine.run import Run
from .publication import PublishedFile, arrow_schema, shard_path

SHARD_BYTES = 500_000_000
"""Approximate size of the images in one file, bytes."""
MOST_SHARDS = 64
"""Files with images: one commit may touch fewer than 100 files."""
GROUP_ROWS = 100
GROUP_BYTES = 32_000_000
"""Size of the images in one row group, bytes: a viewer fetches as much to show one row."""
TABLE_ROWS = 1000
"""Rows of a row group without images."""


class Shards:
    """Writes the rows of one config to its files, one row group in memory at a time."""

    def __init__(self, folder: Path, config: str, sizes: Sequence[int]) -> None:
        """sizes: rows of each file with images; a table without images has one file."""
        self._folder, self._config, self._sizes = folder, config, list(sizes)
        self._schema = arrow_schema(config)
        self._images = config == "images"
        self._files: list[PublishedFile] = []
        self._open()

    def _open(self) -> None:
        import pyarrow.parquet as pq

        self._file = shard_path(self._config, len(self._files), len(self._sizes))
        path = self._folder / self._file
        path.parent.mkdir(exist_ok=True)
        self._rows = self._held = 0
        self._group: list[dict[str, Any]] = []
        self._runs: dict[str, None] = {}
        self._out = path.open("wb")
        self._writer = pq.ParquetWriter(
            ArrowSink(self._out),
            self._schema,
            # Images don't compress further; uncompressed, unchanged ones deduplicate on the Hub.
            compression="none" if self._images else "zstd",
            use_content_defined_chunking=True,
            write_page_index=True,
        )

    def add(self, row: dict[str, Any], run: str) -> None:
        """Takes one row of a run."""
        if self._images and self._rows + len(self._group) == self._sizes[len(self._files)]:
            self._close()
            self._open()
        self._group.append(row)
        self._runs[run] = None
        self._held += sum(len(row[name]["bytes"]) for name in ("image", "video") if row.get(name))
        most = GROUP_ROWS if self._images else TABLE_ROWS
        if len(self._group) == most or self._held >= GROUP_BYTES:
            self._flush()

    def _flush(self) -> None:
        import pyarrow as pa

        if self._group:
            table = pa.Table.from_pylist(self._group, schema=self._schema)
            self._writer.write_table(table, row_group_size=len(self._group))
            self._rows += len(self._group)
            self._group, self._held = [], 0

    def _close(self) -> None:
        self._flush()
        self._writer.close()
        self._out.close()
        self._files.append(
            PublishedFile(
                config=self._config,  # type: ignore[arg-type]
                file=self._file,
                rows=self._rows,
                bytes=(self._folder / self._file).stat().st_size,
                runs=list(self._runs),
            )
        )

    def abandon(self) -> None:
        """Lets go of an open file, for good: its destructor would complain of a full disk again."""
        with suppress(OSError):
            self._writer.close()
        self._writer.is_open = False
        with suppress(OSError):
            self._out.close()

    def end(self) -> list[PublishedFile]:
        """Closes the files; returns their descriptions."""
        self._close()
        return self._files


def image_sizes(run: Run) -> list[int]:
    """Size of every case's image in order, bytes; 0 without an image."""
    results, sizes = run.images(), []
    for case in run.cases():
        image = results.get(case.id)
        path = run.image_path(image) if image is not None and image.status == "made" else None
        sizes.append(path.stat().st_size if path is not None and path.is_file() else 0)
    return sizes


def shard_rows(sizes: Sequence[int]) -> list[int]:
    """Rows of each file with images of these sizes, bytes: at most `MOST_SHARDS` files.

    >>> shard_rows([SHARD_BYTES // 2] * 5), shard_rows([])
    ([2, 2, 1], [0])
    """
    most = max(SHARD_BYTES, math.ceil(sum(sizes) / (MOST_SHARDS - 1)))
    rows, held = [0], 0
    for size in sizes:
        if rows[-1] and held + size > most:
            rows.append(0)
            held = 0
        rows[-1] += 1
        held += size
    return rows
