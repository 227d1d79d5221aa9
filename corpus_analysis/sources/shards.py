"""Sources of captions: local files and Hub datasets, in shards, read column by column.

A shard is a run of row groups of one parquet file, or one whole csv, tsv or jsonl file, or one tar
or folder of captioned images. The process that mines a shard reads it; listing shards reads only
parquet footers.
"""

from __future__ import annotations

import glob
import hashlib
import json
import re
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from .archives import folder_members, holds_captioned_images, sample_table, tar_members
from .columns import (
    COLUMNS,
    PRESETS,
    SourceError,
    check_preset,
    find_columns,
    missing_column,
)

if TYPE_CHECKING:
    import pyarrow as pa

HUB = "hf://datasets/"
"""Prefix of files in a dataset repository on the Hub."""

SHARD_ROWS = 250_000
"""Rows of a parquet shard, rounded up to whole row groups."""

FORMATS = (".parquet", ".csv", ".tsv", ".jsonl", ".csv.gz", ".tsv.gz", ".jsonl.gz", ".tar")
"""Files that are read; others in a folder are ignored."""

READ_AHEAD = 8_000_000
"""Bytes of a tar on the Hub that are downloaded at a time."""

TAR = ".tar"
"""Captioned images, one file a sample and kind, as img2dataset and webdataset write them."""

_ESCAPED = re.compile(
    rb"\\\\|\\u[dD][89abAB]..\\u[dD][c-fC-F]..|(?P<lone>\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
)
"""Escapes of JSON: a backslash, a pair of surrogates, one without the other."""
DAMAGED = b"counterprior.damaged"
"""Key of a table's schema metadata: the damage of a file that could be read in part."""


@dataclass(frozen=True)
class SourceSettings:
    """Rows and columns to read."""

    paths: tuple[str, ...]
    """Files, folders, globs, or `hf://datasets/NAMESPACE/NAME/…` of the same kinds."""
    preset: str = ""
    """A key of `PRESETS`; empty: columns by option or by guess."""
    caption_column: str = ""
    """Overrides the preset."""
    url_column: str = ""
    """Overrides the preset."""
    image_column: str = ""
    """Column of images, or of the names of their files; empty for a guess."""
    min_similarity: float | None = None
    """Least similarity of image and caption by the source's own column; None for no filter."""
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
    source: str
    """Name of its file in rows: the end of its path that no other file of the run has."""
    size: int
    """Size of the file in bytes; part of the shard's identity."""
    groups: tuple[int, int] | None
    """First row group and the one after the last; None if the file is read whole."""
    first_row: int
    """Number of its first row in the file."""
    rows: int | None
    """Rows to read from the start; None for all."""


def list_shards(settings: SourceSettings) -> list[Shard]:
    """Lists the shards of every source, in a fixed order.

    Raises SourceError for missing or bad files, an unknown preset and a bad share.
    """
    check_preset(settings.preset)
    if not 0 < settings.sample <= 1:
        raise SourceError(
            f"--sample {settings.sample} is not a share in (0, 1]", code="out-of-range"
        )
    paths = source_names(settings)
    shards: list[Shard] = []
    remaining = settings.limit
    for number, (source, path) in enumerate(paths.items()):
        for shard in _cut(path, f"{number:05d}", source):
            if remaining is not None and remaining <= 0:
                return shards
            if remaining is not None:
                rows = min(remaining, _count(shard, settings))
                shard = replace(shard, rows=rows)
                remaining -= rows
            shards.append(shard)
    return shards


def source_names(settings: SourceSettings) -> dict[str, str]:
    """Maps the name in rows to the path of every file to read, in order. Raises SourceError."""
    files = [file for path in settings.paths for file in _files(path)]
    if repeated := {f for f in files if files.count(f) > 1}:
        raise SourceError(f"{sorted(repeated)[0]} is named twice", code="duplicate-id")
    path_by_name: dict[str, str] = {}
    alike = Counter(Path(file).name for file in files)
    for file in files:
        segments = Path(file).parts
        length = 1
        if alike[segments[-1]] > 1:
            other_paths = [Path(f).parts for f in files if f != file]
            while any(segments[-length:] == path[-length:] for path in other_paths):
                length += 1
        path_by_name["/".join(segments[-length:])] = file
    return path_by_name


def read_shard(shard: Shard, settings: SourceSettings) -> pa.Table:
    """Reads the shard's rows: `row`, `caption` and the other `COLUMNS` of the source.

    Reads only these columns; `image` is the place of an image. The damage of a tar that could be
    read only in part stands in the schema's metadata under `DAMAGED`. Raises SourceError, naming
    the file, if it can't be read.
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
    """Lists the readable files of a path, folder or glob, sorted."""
    if path.startswith(HUB):
        files = _hub_files(path)
    elif Path(path).is_dir():
        files = _folder_files(Path(path))
    elif Path(path).is_file():
        if not path.endswith(FORMATS):
            raise SourceError(f"{path}: not one of {', '.join(FORMATS)}", code="unknown-format")
        files = [path]
    else:
        files = [p for p in glob.glob(path, recursive=True) if p.endswith(FORMATS)]
    if not files:
        raise SourceError(
            f"{path}: no such file, folder or glob with {', '.join(FORMATS)}", code="no-such-file"
        )
    # img2dataset writes a table of the same name beside each tar and folder: its log.
    archives = {str(f).removesuffix(TAR) for f in files if not f.endswith(FORMATS[:-1])}
    return sorted(f for f in files if f.removesuffix(".parquet") not in archives or f in archives)


def _folder_files(folder: Path) -> list[str]:
    """Lists the readable files below a folder, and folders with captions beside their images."""
    inside = list(folder.rglob("*"))
    files = [str(p) for p in inside if p.is_file() and p.name.endswith(FORMATS)]
    folders = [p for p in (folder, *inside) if p.is_dir() and holds_captioned_images(p)]
    return files + [str(p) for p in folders]


def _hub_files(path: str) -> list[str]:
    from huggingface_hub import HfFileSystem

    files: Any = HfFileSystem()  # its methods have no types
    inner = path.removeprefix("hf://").rstrip("/")
    try:
        # The calls below return "no such file" if the Hub does not answer; this one raises.
        files.resolve_path("/".join(inner.split("/")[:3]))
        if any(letter in inner for letter in "*?["):
            matches = files.glob(inner)
        elif files.isdir(inner):
            matches = files.glob(f"{inner}/**")
        else:
            matches = [inner] if files.exists(inner) else []
    except _failures(path) as error:
        raise SourceError(
            f"{path}: not found on the Hub ({_first_line(error)})", code="no-such-file"
        ) from None
    return [f"hf://{p}" for p in matches if p.endswith(FORMATS)]


def _failures(path: str) -> tuple[type[Exception], ...]:
    """Errors that reading a file may raise; on the Hub, also any of its HTTP library."""
    import pyarrow as pa

    return (
        (Exception,)
        if path.startswith(HUB)
        else (pa.ArrowException, OSError, EOFError, UnicodeError)
    )


def open_binary(path: str, read_ahead: int = 0) -> IO[bytes]:
    """Opens a local file, or one on the Hub, which is downloaded as it is read or in pieces of
    `read_ahead` bytes."""
    if not path.startswith(HUB):
        return Path(path).open("rb")
    from huggingface_hub import HfFileSystem

    files: Any = HfFileSystem()
    kind = {"cache_type": "readahead", "block_size": read_ahead} if read_ahead else None
    opened: IO[bytes] = files.open(path.removeprefix("hf://"), **(kind or {"cache_type": "none"}))
    return opened


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error) else ''}"


def _open(path: str) -> pa.NativeFile | IO[bytes]:
    """Opens a file, for the caller to close.

    Arrow's threads must not read ahead in a Python file, nor hold Python's memory: if they still do
    when the interpreter ends, the process aborts.
    """
    import pyarrow as pa

    if not path.startswith(HUB):
        return pa.OSFile(path)
    from huggingface_hub import HfFileSystem

    files: Any = HfFileSystem()
    inner = path.removeprefix("hf://")
    if not path.endswith(".parquet"):
        copied = pa.BufferOutputStream()
        copied.write(files.cat_file(inner))
        return pa.BufferReader(copied.getvalue())
    # Exact ranges only: reading ahead would fetch the neighbors of each column.
    return open_binary(path)


def _size(path: str) -> int:
    """Size of a file, or of the files in a folder, bytes."""
    if path.startswith(HUB):
        from huggingface_hub import HfFileSystem

        return int(HfFileSystem().info(path.removeprefix("hf://"))["size"])
    if Path(path).is_dir():
        return sum(p.stat().st_size for p in Path(path).iterdir() if p.is_file())
    return Path(path).stat().st_size


def _cut(path: str, number: str, source: str) -> list[Shard]:
    """Cuts one file into shards; `number` distinguishes files of the same name."""
    import pyarrow.parquet as pq

    stem = Path(path).name.split(".")[0]
    size = _size(path)
    if not path.endswith(".parquet"):
        return [_shard(path, f"{number}-{stem}", size, source)]
    try:
        with _open(path) as file:
            metadata = pq.read_metadata(file)
    except _failures(path) as error:
        raise SourceError(
            f"{path}: not a readable parquet file ({error})", code="unreadable-file"
        ) from None
    shards: list[Shard] = []
    first = rows = at = 0
    for group in range(metadata.num_row_groups):
        rows += metadata.row_group(group).num_rows
        if rows >= SHARD_ROWS or group == metadata.num_row_groups - 1:
            name = f"{number}-{stem}-{len(shards):04d}"
            whole_file = _shard(path, name, size, source)
            shards.append(replace(whole_file, groups=(first, group + 1), first_row=at))
            first, at, rows = group + 1, at + rows, 0
    return shards


def _shard(path: str, name: str, size: int, source: str) -> Shard:
    """Returns a whole file as one shard."""
    return Shard(path, name=name, source=source, size=size, groups=None, first_row=0, rows=None)


def _count(shard: Shard, settings: SourceSettings) -> int:
    import pyarrow.parquet as pq

    if shard.groups is None:
        return len(_read(shard, settings))
    with _open(shard.path) as file:
        metadata = pq.read_metadata(file)
    return sum(metadata.row_group(g).num_rows for g in range(*shard.groups))


def _read(shard: Shard, settings: SourceSettings) -> pa.Table:
    """Reads the wanted columns of a shard under our names."""
    try:
        if Path(shard.path).is_dir():
            return sample_table(folder_members(Path(shard.path)), shard.source)
        if shard.path.endswith(TAR):
            return _read_tar(shard)
        return _table(shard, settings)
    except SourceError:
        raise
    except _failures(shard.path) as error:
        raise SourceError(f"{shard.path}: not readable ({error})", code="unreadable-file") from None


def _read_tar(shard: Shard) -> pa.Table:
    damage: list[str] = []
    with open_binary(shard.path, READ_AHEAD) as file:
        table = sample_table(tar_members(file, damage), shard.source)
    return table.replace_schema_metadata({DAMAGED: damage[0].encode()}) if damage else table


def _table(shard: Shard, settings: SourceSettings) -> pa.Table:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    images: list[str] = []
    bad_rows = ""
    with _open(shard.path) as file:
        if shard.groups is not None:
            ahead = isinstance(file, pa.NativeFile)  # see `_open`
            source = pq.ParquetFile(file, pre_buffer=ahead)
            schema = source.schema_arrow
            wanted = _columns(schema.names, settings, shard.path)
            # Images are read only once their caption turns out to have a pair.
            images = [c for c in wanted.values() if pa.types.is_struct(schema.field(c).type)]
            table = source.read_row_groups(
                list(range(*shard.groups)),
                columns=sorted(set(wanted.values()) - set(images)),
                use_threads=ahead,
            )
        else:
            table, wanted = _read_text(file, shard.path, settings)
            bad_rows = (table.schema.metadata or {}).get(DAMAGED, b"").decode()
    places = [f"{shard.source}#row={shard.first_row + n}" for n in range(len(table))]
    columns = {
        ours: pa.array(places) if theirs in images else table[theirs]
        for ours, theirs in wanted.items()
    }
    if "image" in columns and not images:
        _check_text(columns["image"].type, "image", shard.path)
        columns["image"] = pc.binary_join_element_wise(
            pa.scalar(f"{shard.source}#file="), columns["image"].cast(pa.string()), ""
        )
    for name in ("caption", "url"):
        if name in columns:
            _check_text(columns[name].type, name, shard.path)
            columns[name] = columns[name].cast(pa.string())
    columns.setdefault("url", pa.nulls(len(table), pa.string()))
    for name, kind in (("width", pa.int64()), ("height", pa.int64()), ("similarity", pa.float64())):
        if name in columns:
            columns[name] = columns[name].cast(kind, safe=False)
    if "uid" in columns:
        columns["uid"] = columns["uid"].cast(pa.string())
    read = _as_unicode({name: columns[name] for name in COLUMNS if name in columns})
    if not bad_rows:
        return read
    bad_texts = (read.schema.metadata or {}).get(DAMAGED, b"").decode()
    damage = "; ".join(filter(None, (bad_rows, bad_texts)))
    return read.replace_schema_metadata({DAMAGED: damage.encode()})


def _as_unicode(columns: dict[str, Any]) -> pa.Table:
    """Returns a table in which invalid UTF-8 is replaced; such texts are counted as damage."""
    import pyarrow as pa

    replaced = 0
    for name, column in columns.items():
        if not pa.types.is_string(column.type):
            continue
        plain = column.cast(pa.binary())
        try:
            plain.cast(pa.string())
        except pa.ArrowInvalid:
            raw_texts = plain.to_pylist()
            texts = [None if raw is None else raw.decode("utf-8", "replace") for raw in raw_texts]
            columns[name] = pa.array(texts, pa.string())
            pairs = zip(raw_texts, texts, strict=True)
            replaced += sum(text is not None and text.encode() != raw for raw, text in pairs)
    table = pa.table(columns)
    if not replaced:
        return table
    damage = f"{replaced:,} of the texts were no UTF-8; the bytes that are none were replaced"
    return table.replace_schema_metadata({DAMAGED: damage.encode()})


def _check_text(kind: pa.DataType, name: str, path: str) -> None:
    import pyarrow as pa

    texts = kind.value_type if pa.types.is_dictionary(kind) else kind  # a category of pandas
    if not (pa.types.is_string(texts) or pa.types.is_large_string(texts)):
        raise SourceError(f"{path}: the {name} column is {kind}, not text", code="wrong-type")


def _read_text(
    file: pa.NativeFile | IO[bytes], path: str, settings: SourceSettings
) -> tuple[pa.Table, dict[str, str]]:
    """Reads a csv, tsv or jsonl table, decompressed if named .gz; returns it and our column names
    mapped to its own."""
    import pyarrow as pa
    from pyarrow import csv

    stream: Any = pa.CompressedInputStream(file, "gzip") if path.endswith(".gz") else file
    bare = path.removesuffix(".gz")
    if bare.endswith(".jsonl"):
        return _read_jsonl(_ESCAPED.sub(_without_surrogate, stream.read()), path, settings)
    tab = bare.endswith(".tsv")
    headless = settings.preset in PRESETS and not PRESETS[settings.preset].header
    table = csv.read_csv(
        stream,
        read_options=csv.ReadOptions(column_names=["caption", "url"] if headless else None),
        parse_options=csv.ParseOptions(
            delimiter="\t" if tab else ",",
            quote_char=False if tab else '"',
            newlines_in_values=not tab,
        ),
        convert_options=csv.ConvertOptions(check_utf8=False),
    )
    return table, _columns(table.column_names, settings, path)


def _read_jsonl(
    data: bytes, path: str, settings: SourceSettings
) -> tuple[pa.Table, dict[str, str]]:
    """A table of JSON rows, and our column names mapped to its own.

    A row that can't be read has no caption, so that the others keep their number; how many there
    are, and the first of them, is the table's damage. Raises SourceError where none can be read.
    """
    import pyarrow as pa
    from pyarrow import json as arrow_json

    try:
        table = arrow_json.read_json(pa.BufferReader(data))
        wanted = _columns(table.column_names, settings, path)
        kinds = {ours: table.schema.field(theirs).type for ours, theirs in wanted.items()}
        if all(_fits(ours, kind) for ours, kind in kinds.items()):
            return table, wanted
    except pa.ArrowInvalid:
        pass  # one row is enough for that: they are looked at one by one
    rows: list[dict[str, Any]] = []
    faults: list[tuple[int, str]] = []
    numbered = [(n, line) for n, line in enumerate(data.split(b"\n"), 1) if line.strip()]
    for number, line in numbered:
        row, fault = _json_row(line)
        rows.append(row)
        faults += [(number, fault)] if fault else []
    if not rows:
        raise SourceError(f"{path}: not readable (it holds no row)", code="unreadable-file")
    names = list(dict.fromkeys(name for row in rows for name in row))
    if len(faults) == len(rows):
        number, fault = faults[0]
        raise SourceError(f"{path}:{number}: not readable ({fault})", code="unreadable-file")
    wanted = _columns(names, settings, path)
    for (number, _), row in zip(numbered, rows, strict=True):
        for ours, theirs in wanted.items():
            value = row.get(theirs)
            if value is not None and not isinstance(value, _PLAIN.get(ours, str)):
                faults.append((number, f"its {theirs} is of type {type(value).__name__}"))
                row.clear()
                break
    columns = {}
    for ours, theirs in wanted.items():
        values = [row.get(theirs) for row in rows]
        if ours in _FLOATS:
            columns[theirs] = pa.array([None if v is None else float(v) for v in values])
        else:
            texts = [None if v is None else str(v).encode("utf-8", "replace") for v in values]
            columns[theirs] = pa.array(texts, pa.binary()).cast(pa.string(), safe=False)
    table = pa.table(columns)
    if not faults:
        return table, wanted
    number, fault = min(faults)
    damage = f"{len(faults):,} of {len(rows):,} rows can't be read, the first in line {number}: "
    return table.replace_schema_metadata({DAMAGED: (damage + fault).encode()}), wanted


_FLOATS = ("width", "height", "similarity")
_PLAIN: dict[str, Any] = {**dict.fromkeys(_FLOATS, (int, float)), "uid": (str, int)}
"""Our column -> types of its values in JSON; text in all others."""
LONGEST_ROW = 1_000_000
"""Bytes of a JSON row above which it is not read."""


def _fits(ours: str, kind: pa.DataType) -> bool:
    """Whether a column that was read at once has the type of ours."""
    import pyarrow as pa

    if pa.types.is_null(kind):
        return ours != "caption"
    number = pa.types.is_integer(kind) or pa.types.is_floating(kind)
    if ours in _FLOATS:
        return bool(number)
    return bool(pa.types.is_string(kind) or (ours == "uid" and pa.types.is_integer(kind)))


def _json_row(line: bytes) -> tuple[dict[str, Any], str]:
    """A row and what is wrong with it; an empty row if anything is."""
    if len(line) > LONGEST_ROW:
        return {}, f"it has {len(line):,} bytes, more than {LONGEST_ROW:,}"
    try:
        row = json.loads(line.decode("utf-8", "replace"), object_pairs_hook=_without_repetition)
    except (ValueError, RecursionError) as error:
        return {}, f"it is not JSON ({error})"
    if not isinstance(row, dict):
        return {}, f"it is a {type(row).__name__}, not an object"
    return row, ""


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    row = dict(pairs)
    if len(row) != len(pairs):
        raise ValueError("a key stands twice")
    return row


def _without_surrogate(escape: re.Match[bytes]) -> bytes:
    """Turns a lone surrogate into an invalid byte, which `_as_unicode` replaces and counts."""
    return b"\xff" if escape["lone"] else escape[0]


def _columns(column_names: list[str], settings: SourceSettings, path: str) -> dict[str, str]:
    options = {
        "caption": settings.caption_column,
        "url": settings.url_column,
        "image": settings.image_column,
    }
    return find_columns(column_names, settings.preset, options, path)


def image_column(column_names: list[str], settings: SourceSettings, path: str) -> str:
    """Name of the column of images. Raises SourceError if the source has none."""
    columns = _columns(column_names, settings, path)
    if "image" not in columns:
        raise missing_column(settings.image_column or "image", "image", column_names, path)
    return columns["image"]
