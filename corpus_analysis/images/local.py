"""Images that need no fetching: in tar shards, image columns and folders.

A place is ``SOURCE#member=NAME@OFFSET+SIZE``, ``SOURCE#row=NUMBER`` or ``SOURCE#file=NAME``.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...fetching import DownloadSettings
from ..sources.shards import SourceSettings, image_column, open_binary, source_names
from .fetch import Fetched
from .pixels import BadImage, store

if TYPE_CHECKING:
    import pyarrow as pa

_GROUPS_KEPT = 2


def file_name(place: str) -> str:
    """Name of the file of an image at a place, without folders; empty for one in a column."""
    kind, _, detail = place.partition("#")[2].partition("=")
    name = detail.rpartition("@")[0] if kind == "member" else detail if kind == "file" else ""
    return name.rpartition("/")[2]


class NoImage(Exception):
    """An image missing from its place; carries the `reason`."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class LocalImages:
    """Reads images from the sources of a run; one instance serves many threads."""

    def __init__(
        self,
        sources: SourceSettings,
        folder: Path | None,
        max_bytes: int = DownloadSettings.max_bytes,
    ) -> None:
        """folder: of the named files, None for beside the source. max_bytes: largest file."""
        self._settings = sources
        self._folder = folder
        self._max_bytes = max_bytes
        self._groups: OrderedDict[tuple[str, int], pa.ChunkedArray] = OrderedDict()
        self._lock = threading.Lock()

    @cached_property
    def _paths(self) -> dict[str, str]:
        return source_names(self._settings)

    def fetch(self, place: str) -> Fetched:
        """Reads the image at a place; the result gives the reason for a failure. Never raises."""
        try:
            data = self._read(place)
        except NoImage as error:
            return Fetched(place, "failed_to_download", error.reason, str(error))
        except Exception as error:  # a broken file must not end a run of millions
            return Fetched(place, "failed_to_download", "unreadable", f"{error}")
        try:
            return Fetched(place, "success", "ok", image=store(data))
        except BadImage as bad:
            return Fetched(place, "failed_to_resize", bad.reason, str(bad))
        except Exception as error:  # a decoder's bug
            return Fetched(place, "failed_to_resize", "internal", type(error).__name__)

    def _read(self, place: str) -> bytes:
        source, _, where = place.partition("#")
        kind, _, detail = where.partition("=")
        if source not in self._paths:
            raise NoImage("missing_file", f"{source} is not a source of this run")
        path = self._paths[source]
        if kind == "file":
            data = self._file(path, detail)
        elif kind == "row":
            data = self._row(path, int(detail))
        else:
            offset, _, size = detail.rpartition("@")[2].partition("+")
            data = self._range(path, int(offset), int(size))
        if not data:
            raise NoImage("empty_file", f"{place} is empty")
        return data

    def _file(self, source: str, name: str) -> bytes:
        beside = Path(source)
        root = self._folder or (beside if beside.is_dir() else beside.parent)
        path = (root / name).resolve()
        if not path.is_relative_to(root.resolve()):
            raise NoImage("outside", f"{name} is not below {root}")
        if not path.is_file():
            raise NoImage("missing_file", f"{path} does not exist")
        self._check_size(path.stat().st_size)
        return path.read_bytes()

    def _range(self, source: str, offset: int, size: int) -> bytes:
        self._check_size(size)
        with open_binary(source) as file:
            file.seek(offset)
            data = file.read(size)
        if len(data) < size:
            raise NoImage("truncated", f"{source} ends after {len(data):,} of {size:,} bytes")
        return data

    def _row(self, source: str, number: int) -> bytes:
        import pyarrow.parquet as pq

        with self._lock, open_binary(source) as file:  # pyarrow's files serve one thread
            parquet = pq.ParquetFile(file, pre_buffer=False)  # see `sources._open`
            group = 0
            while number >= (rows := parquet.metadata.row_group(group).num_rows):
                number -= rows
                group += 1
            if (source, group) not in self._groups:
                name = image_column(parquet.schema_arrow.names, self._settings, source)
                self._groups[source, group] = parquet.read_row_group(
                    group, columns=[name], use_threads=False
                )[name]
                if len(self._groups) > _GROUPS_KEPT:
                    self._groups.popitem(last=False)
            value: Any = self._groups[source, group][number].as_py()
        if not isinstance(value, dict):
            raise NoImage("missing_file", f"row {number} of {source} has no image")
        if value.get("bytes") is None:
            return self._file(source, str(value.get("path") or ""))
        self._check_size(len(value["bytes"]))
        return bytes(value["bytes"])

    def _check_size(self, size: int) -> None:
        if size > self._max_bytes:
            raise NoImage("too_large", f"{size:,} bytes")
