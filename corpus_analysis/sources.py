"""Where captions come from: local files and Hub datasets, in shards, read column by column.

A shard is a run of row groups of one parquet file, or one whole csv, tsv or jsonl file. The process
that mines a shard reads it; listing shards reads only parquet footers.
"""

from __future__ import annotations

import glob
import hashlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from ..errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa

HUB = "hf://datasets/"
"""Prefix of files in a dataset repository on the Hub."""

SHARD_ROWS = 250_000
"""Rows of a parquet shard, rounded up to whole row groups."""

FORMATS = (".parquet", ".csv", ".tsv", ".jsonl", ".csv.gz", ".tsv.gz", ".jsonl.gz")
"""Files that are read; others in a folder are ignored."""

COLUMNS = ("url", "caption", "width", "height")
"""Our names for the columns of a source; not every source has width and height."""


class SourceError(UsageError):
    """A source that can't be read; the message names file, column and what to do."""


@dataclass(frozen=True)
class Preset:
    """Column names of a published corpus."""

    caption: str
    url: str
    width: str = ""
    height: str = ""
    header: bool = True
    """False for tables without a header line, whose columns are caption and url, in that order."""


PRESETS = {
    "laion": Preset("TEXT", "URL", "WIDTH", "HEIGHT"),
    "datacomp": Preset("text", "url", "original_width", "original_height"),
    "cc3m": Preset("caption", "url", header=False),
}
"""Columns by `--preset`: LAION's parquet, DataComp's metadata, Conceptual Captions' tsv."""

GUESSES = {
    "caption": ("caption", "text", "alt_text", "alt", "sentence", "raw_caption"),
    "url": ("url", "image_url", "img_url", "image_link", "link"),
    "width": ("width", "original_width"),
    "height": ("height", "original_height"),
}
"""Column names to look for, in any letter case, if neither preset nor option gives one."""


@dataclass(frozen=True)
class SourceSettings:
    """Which rows and columns to read."""

    paths: tuple[str, ...]
    """Files, folders, globs, or `hf://datasets/NAMESPACE/NAME/…` of the same kinds."""
    preset: str = ""
    """A key of `PRESETS`; empty: columns by option or by guess."""
    caption_column: str = ""
    """Overrides the preset."""
    url_column: str = ""
    """Overrides the preset."""
    limit: int | None = None
    """Most rows to read, from the first shards; None for all."""
    sample: float = 1.0
    """Share of rows to read, chosen by seed and position; in (0, 1]."""
    seed: int = 0
    """Seed of the sample."""


@dataclass(frozen=True)
class Shard:
    """A piece of a source that one process mines."""

    path: str
    """Local path or `hf://…`."""
    name: str
    """File name of its results, unique in a run."""
    size: int
    """Size of the file in bytes; part of the shard's identity."""
    groups: tuple[int, int] | None
    """First row group and the one after the last; None if the file is read whole."""
    first_row: int
    """Number of its first row in the file."""
    rows: int | None
    """Rows to read from the start; None for all."""


def list_shards(settings: SourceSettings) -> list[Shard]:
    """The shards of every source, in a fixed order. Raises SourceError for missing or bad files."""
    if not 0 < settings.sample <= 1:
        raise SourceError(f"--sample {settings.sample} is not a share in (0, 1]")
    files = [file for path in settings.paths for file in _files(path)]
    if repeated := {f for f in files if files.count(f) > 1}:
        raise SourceError(f"{sorted(repeated)[0]} is given twice")
    shards: list[Shard] = []
    left = settings.limit
    for number, path in enumerate(files):
        for shard in _cut(path, f"{number:05d}"):
            if left is not None and left <= 0:
                return shards
            if left is not None:
                rows = min(left, _count(shard, settings))
                shard = replace(shard, rows=rows)
                left -= rows
            shards.append(shard)
    return shards


def read_shard(shard: Shard, settings: SourceSettings) -> pa.Table:
    """The shard's rows: `row`, `url`, `caption` and, if the source has them, `width` and `height`.

    Reads only these columns. Raises SourceError, naming the file, if it can't be read.
    """
    import numpy as np
    import pyarrow as pa

    table = _read(shard, settings)
    if shard.rows is not None:
        table = table.slice(0, shard.rows)
    numbers = np.arange(shard.first_row, shard.first_row + len(table))
    table = table.append_column("row", pa.array(numbers))
    if settings.sample < 1:
        place = f"{settings.seed} {Path(shard.path).name} {shard.first_row}".encode()
        seed = int.from_bytes(hashlib.sha256(place).digest()[:8], "big")
        chosen = np.random.default_rng(seed).random(len(table)) < settings.sample
        table = table.filter(pa.array(chosen))
    return table


def _files(path: str) -> list[str]:
    """The readable files of a path, folder or glob, sorted."""
    if path.startswith(HUB):
        found = _hub_files(path)
    elif Path(path).is_dir():
        found = [str(p) for p in Path(path).rglob("*") if p.name.endswith(FORMATS)]
    elif Path(path).is_file():
        if not path.endswith(FORMATS):
            raise SourceError(f"{path}: not one of {', '.join(FORMATS)}")
        found = [path]
    else:
        found = [p for p in glob.glob(path, recursive=True) if p.endswith(FORMATS)]
    if not found:
        raise SourceError(f"{path}: no such file, folder or glob with {', '.join(FORMATS)}")
    return sorted(found)


def _hub_files(path: str) -> list[str]:
    from huggingface_hub import HfFileSystem

    files: Any = HfFileSystem()  # its methods have no types
    inner = path.removeprefix("hf://").rstrip("/")
    try:
        # The calls below return "no such file" if the Hub does not answer; this one raises.
        files.resolve_path("/".join(inner.split("/")[:3]))
        if any(letter in inner for letter in "*?["):
            found = files.glob(inner)
        elif files.isdir(inner):
            found = files.glob(f"{inner}/**")
        else:
            found = [inner] if files.exists(inner) else []
    except _failures(path) as error:
        raise SourceError(f"{path}: not found on the Hub ({_first_line(error)})") from None
    return [f"hf://{p}" for p in found if p.endswith(FORMATS)]


def _failures(path: str) -> tuple[type[Exception], ...]:
    """What reading a file may raise; on the Hub, also anything from its HTTP library."""
    import pyarrow as pa

    return (Exception,) if path.startswith(HUB) else (pa.ArrowException, OSError, EOFError)


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error) else ''}"


def _open(path: str) -> pa.NativeFile | IO[bytes]:
    """A file to read and close.

    Arrow's threads must not read ahead in a Python file: if they still do when the interpreter
    ends, the process aborts.
    """
    import pyarrow as pa

    if not path.startswith(HUB):
        return pa.OSFile(path)
    from huggingface_hub import HfFileSystem

    files: Any = HfFileSystem()
    inner = path.removeprefix("hf://")
    if not path.endswith(".parquet"):
        return pa.BufferReader(files.cat_file(inner))
    # Exact ranges only: reading ahead would fetch the neighbors of each column.
    opened: IO[bytes] = files.open(inner, cache_type="none")
    return opened


def _size(path: str) -> int:
    if path.startswith(HUB):
        from huggingface_hub import HfFileSystem

        return int(HfFileSystem().info(path.removeprefix("hf://"))["size"])
    return Path(path).stat().st_size


def _cut(path: str, number: str) -> list[Shard]:
    """The shards of one file; `number` distinguishes files of the same name."""
    import pyarrow.parquet as pq

    stem = Path(path).name.split(".")[0]
    size = _size(path)
    if not path.endswith(".parquet"):
        return [_shard(path, f"{number}-{stem}", size)]
    try:
        with _open(path) as file:
            metadata = pq.read_metadata(file)
    except _failures(path) as error:
        raise SourceError(f"{path}: not a readable parquet file ({error})") from None
    shards: list[Shard] = []
    first = rows = at = 0
    for group in range(metadata.num_row_groups):
        rows += metadata.row_group(group).num_rows
        if rows >= SHARD_ROWS or group == metadata.num_row_groups - 1:
            name = f"{number}-{stem}-{len(shards):04d}"
            whole = _shard(path, name, size)
            shards.append(replace(whole, groups=(first, group + 1), first_row=at))
            first, at, rows = group + 1, at + rows, 0
    return shards


def _shard(path: str, name: str, size: int) -> Shard:
    """A whole file as one shard."""
    return Shard(path=path, name=name, size=size, groups=None, first_row=0, rows=None)


def _count(shard: Shard, settings: SourceSettings) -> int:
    import pyarrow.parquet as pq

    if shard.groups is None:
        return len(_read(shard, settings))
    with _open(shard.path) as file:
        metadata = pq.read_metadata(file)
    return sum(metadata.row_group(g).num_rows for g in range(*shard.groups))


def _read(shard: Shard, settings: SourceSettings) -> pa.Table:
    """The wanted columns of a shard under our names."""
    try:
        return _table(shard, settings)
    except SourceError:
        raise
    except _failures(shard.path) as error:
        raise SourceError(f"{shard.path}: not readable ({error})") from None


def _table(shard: Shard, settings: SourceSettings) -> pa.Table:
    import pyarrow as pa
    import pyarrow.parquet as pq

    with _open(shard.path) as file:
        if shard.groups is not None:
            source = pq.ParquetFile(file)
            wanted = _columns(source.schema_arrow.names, settings, shard.path)
            table = source.read_row_groups(
                list(range(*shard.groups)), columns=sorted(set(wanted.values()))
            )
        else:
            table, wanted = _read_text(file, shard.path, settings)
    columns = {ours: table[theirs] for ours, theirs in wanted.items()}
    for name in ("caption", "url"):
        if not (
            pa.types.is_string(columns[name].type) or pa.types.is_large_string(columns[name].type)
        ):
            raise SourceError(f"{shard.path}: the {name} column is {columns[name].type}, not text")
        columns[name] = columns[name].cast(pa.string())
    for name in {"width", "height"} & set(columns):
        columns[name] = columns[name].cast(pa.int64(), safe=False)
    return pa.table({name: columns[name] for name in COLUMNS if name in columns})


def _read_text(
    file: pa.NativeFile | IO[bytes], path: str, settings: SourceSettings
) -> tuple[pa.Table, dict[str, str]]:
    """A csv, tsv or jsonl table, decompressed if named .gz, and our column names -> its."""
    import pyarrow as pa
    from pyarrow import csv, json

    stream: Any = pa.CompressedInputStream(file, "gzip") if path.endswith(".gz") else file
    bare = path.removesuffix(".gz")
    if bare.endswith(".jsonl"):
        table = json.read_json(stream)
        return table, _columns(table.column_names, settings, path)
    tab = bare.endswith(".tsv")
    headless = settings.preset and not PRESETS[settings.preset].header
    table = csv.read_csv(
        stream,
        read_options=csv.ReadOptions(column_names=["caption", "url"] if headless else None),
        parse_options=csv.ParseOptions(
            delimiter="\t" if tab else ",",
            quote_char=False if tab else '"',
            newlines_in_values=not tab,
        ),
    )
    return table, _columns(table.column_names, settings, path)


def _columns(names: list[str], settings: SourceSettings, path: str) -> dict[str, str]:
    """Our column names -> those of the source, for the columns to read."""
    preset = PRESETS.get(settings.preset)
    if settings.preset and preset is None:
        raise SourceError(f"no preset {settings.preset!r}: choose from {', '.join(PRESETS)}")
    asked = {
        "caption": settings.caption_column or (preset.caption if preset else ""),
        "url": settings.url_column or (preset.url if preset else ""),
        "width": preset.width if preset else "",
        "height": preset.height if preset else "",
    }
    lower = {name.lower(): name for name in reversed(names)}
    found = {}
    for ours, name in asked.items():
        guessed = next((lower[g] for g in GUESSES[ours] if g in lower), "")
        theirs = name if name in names else "" if name else guessed
        if not theirs and ours in ("caption", "url"):
            raise SourceError(
                f"{path}: no column {name or GUESSES[ours][0]!r} among {', '.join(names)}; "
                f"give it with --{ours}-column"
            )
        if theirs:
            found[ours] = theirs
    return found
