"""Captioned images that lie together, as img2dataset writes them: tar shards and folders.

A sample is the files that share a name up to its first dot: an image, a caption (`.txt`), and
metadata (`.json`). Images are not read here: a row gives the place of its image in the archive.
"""

from __future__ import annotations

import json
import tarfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from .columns import find_values

if TYPE_CHECKING:
    import pyarrow as pa

IMAGE_SUFFIXES = frozenset(("jpg", "jpeg", "png", "webp", "gif", "bmp"))
TEXT_LIMIT = 1_000_000
"""Longest caption or JSON file that is read, bytes."""
_BLOCK = 512


class Member(NamedTuple):
    """One file of an archive."""

    name: str
    """Path in the archive."""
    place: str
    """Place of its bytes, for `images.local`."""
    read: Callable[[], bytes]
    """Its first `TEXT_LIMIT` bytes."""


def tar_members(file: IO[bytes], damage: list[str]) -> Iterator[Member]:
    """Yields the files of a tar, up to any damage, which is described in `damage`."""
    at = 0
    try:
        with tarfile.open(fileobj=file, mode="r:") as archive:
            for entry in archive:
                at = archive.offset
                if entry.isfile():
                    yield _tar_member(archive, entry)
            at = archive.offset
    except (tarfile.TarError, OSError, EOFError, ValueError) as error:
        damage.append(f"{error} (after byte {at:,})")
        return
    # tarfile ends silently at a header that it can't read; a whole archive ends with zeros.
    file.seek(at)
    if file.read(_BLOCK) != bytes(_BLOCK):
        damage.append(f"neither a tar entry nor the end at byte {at:,}")


def _tar_member(archive: tarfile.TarFile, entry: tarfile.TarInfo) -> Member:
    def read() -> bytes:
        opened = archive.extractfile(entry)
        return opened.read(TEXT_LIMIT) if opened else b""

    return Member(entry.name, f"member={entry.name}@{entry.offset_data}+{entry.size}", read)


def folder_members(folder: Path) -> Iterator[Member]:
    """Yields the files of a folder, not those of its subfolders."""

    def reader(path: Path) -> Callable[[], bytes]:
        def read() -> bytes:
            with path.open("rb") as file:
                return file.read(TEXT_LIMIT)

        return read

    for path in sorted(p for p in folder.iterdir() if p.is_file()):
        yield Member(path.name, f"file={path.name}", reader(path))


def holds_captioned_images(folder: Path) -> bool:
    """Whether a folder holds an image with a caption beside it."""
    file_names = [path.name for path in folder.iterdir()]
    captions = {_key(n) for n in file_names if _suffix(n) in ("txt", "json")}
    return any(_suffix(n) in IMAGE_SUFFIXES and _key(n) in captions for n in file_names)


def sample_table(members: Iterable[Member], source: str) -> pa.Table:
    """Returns one row per sample, in the order of its first file, with our column names.

    The gate counts a sample without a caption as `empty`.
    """
    import pyarrow as pa

    samples: dict[str, dict[str, Any]] = {}
    for member in members:
        suffix = _suffix(member.name)
        if suffix not in IMAGE_SUFFIXES and suffix not in ("txt", "json"):
            continue
        sample = samples.setdefault(_key(member.name), {})
        if suffix == "txt":
            sample["caption"] = member.read().decode("utf-8", "replace")
        elif suffix == "json":
            values = find_values(_json(member.read()))
            del values["image"]
            sample |= {name: value for name, value in values.items() if name not in sample}
        else:
            sample.setdefault("image", f"{source}#{member.place}")
    types = {
        **dict.fromkeys(("url", "caption", "uid", "image"), (pa.string(), _text)),
        **dict.fromkeys(("width", "height"), (pa.int64(), _integer)),
        "similarity": (pa.float64(), _number),
    }
    return pa.table(
        {
            name: pa.array([convert(s.get(name)) for s in samples.values()], kind)
            for name, (kind, convert) in types.items()
        }
    )


def _key(name: str) -> str:
    path = PurePosixPath(name)
    return str(path.parent / path.name.split(".")[0])


def _suffix(name: str) -> str:
    return PurePosixPath(name).name.lower().rpartition(".")[2]


def _json(data: bytes) -> dict[str, Any]:
    try:
        record = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return record if isinstance(record, dict) else {}


def _text(value: Any) -> str | None:
    return None if value is None else str(value).encode("utf-8", "replace").decode()


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, (int, float)) else None


def _integer(value: Any) -> int | None:
    is_whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    return int(value) if is_whole and abs(value) < 2**62 else None
