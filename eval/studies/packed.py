"""A study as one file without its images: what its tables are recomputed from, small enough to
publish beside a page.

Verdicts, scores, cases and records of images stay; images, candidates, ledgers, locks and what says
when this machine last looked at a file don't. Images that a `folder:` generator found elsewhere are
recorded by their digests as those of the run, and the folder by its name. The same study gives the
same bytes.
"""

from __future__ import annotations

import os
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from lzma import LZMAError
from pathlib import Path, PurePosixPath
from zipfile import ZIP_LZMA, BadZipFile, ZipFile, ZipInfo

from ...errors import DataError, UsageError
from ...specs import Spec
from ...storage import log_line, read_records, whole_file
from ..engine.run import CHECKED, IMAGES
from ..publishing.scrubbing import Scrubber
from .events import CELLS
from .folder import Study
from .status import study_status

ENDING = ".zip"
SUFFIXES = (".json", ".jsonl", ".yaml", ".csv")
"""Files that tables are made of."""
LEFT_OUT = frozenset(
    {
        "images",
        "candidates",
        "detections",  # a cache for other rules; verdicts have what theirs read
        "ledgers",
        "frames",
        "texts",
        "sources",
        "steps",
    }
)
"""Folders that no table reads."""
MOST_BYTES = 256 * 1024**2
"""Largest size of what is unpacked; no published study comes near it."""
PATH_OPTIONS = ("manifest", "prompts")
"""Options of `folder` that name a file or a folder."""
_TIME = (1980, 1, 1, 0, 0, 0)


def pack_study(root: Path, out: Path) -> int:
    """Writes a study without its images to a file that `study table` reads; returns its bytes.

    Raises UsageError for a name without ENDING, and for a study that is not complete: its gaps
    could not be told from what is left out; DataError for a file that holds a secret or a path of
    this machine.
    """
    if out.suffix != ENDING:
        raise UsageError(f"--out {out} must end in {ENDING}", code="bad-option")
    study = Study.open(root)
    open_cells = [status.cell for status in study_status(study) if status.gap]
    if open_cells:
        raise UsageError(
            f"{root} is not complete: {open_cells[0]} and {len(open_cells) - 1} other cells",
            "finish it with `counterprior study run`",
            code="incomplete-run",
        )
    specs = _portable_specs(study)
    # Whatever else names a folder of these images, such as the cause of an earlier failure.
    folders = {Path(path).parent for spec in specs for path in _absolute_paths(spec)}
    scrubber = Scrubber([root, *sorted(folders)])
    with whole_file(out) as file, ZipFile(file, "w") as packed:
        for path in _files(root):
            data = path.read_bytes()
            if path.parent == root:
                for spec, portable in specs.items():
                    data = data.replace(spec.encode(), portable.encode())
            if path.name.startswith((f"{IMAGES}.", f"{CELLS}.")):
                data = _scrubbed_records(path, scrubber)
            if secret := scrubber.leak(data):
                raise DataError(
                    f"{path} would publish {secret}; nothing was written",
                    "name data by a path relative to where you run; run it in a new --out",
                    code="secret-found",
                )
            name = path.relative_to(root).as_posix()
            packed.writestr(ZipInfo(name, _TIME), data, ZIP_LZMA)
    return out.stat().st_size


@contextmanager
def unpacked(path: Path) -> Iterator[Path]:
    """Yields the folder of a study: its own, or that of a packed one for as long as the block runs.

    Raises DataError for a damaged file, and one that holds anything but a study's.
    """
    if path.suffix != ENDING or path.is_dir():
        yield path
        return
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / path.stem
        try:
            with ZipFile(path) as packed:
                members = packed.infolist()
                names = [PurePosixPath(member.filename) for member in members]
                if sum(member.file_size for member in members) > MOST_BYTES or any(
                    name.is_absolute() or ".." in name.parts or name.suffix not in SUFFIXES
                    for name in names
                ):
                    raise DataError(f"{path} is no packed study", code="bad-format")
                packed.extractall(root)
        except (OSError, BadZipFile, LZMAError, zlib.error) as error:
            raise DataError(f"{path} can't be unpacked: {error}", code="damaged-file") from None
        yield root


def _portable_specs(study: Study) -> dict[str, str]:
    """Spec of a `folder:` generator -> the same with the folder and its lists by name alone, of
    those that name a path of this machine; the longest first, as one may begin another."""
    portable: dict[str, str] = {}
    for text in sorted(_specs(study), key=lambda text: (-len(text), text)):
        if paths := _absolute_paths(text):
            spec = Spec.parse(text)
            options = {n: Path(v).name if v in paths else v for n, v in spec.options.items()}
            portable[text] = str(Spec(spec.kind, Path(spec.argument).name, options))
    return portable


def _specs(study: Study) -> set[str]:
    """Specs of a study's generators."""
    models = study.models.read()["generators"].values()
    return {*study.file.generators.values(), *(model["spec"] for model in models)}


def _absolute_paths(text: str) -> list[str]:
    """The absolute paths of the spec of a `folder:` generator; none of another's."""
    spec = Spec.parse(text)
    if spec.kind != "folder":
        return []
    paths = [spec.argument, *(spec.options.get(name, "") for name in PATH_OPTIONS)]
    return list(filter(os.path.isabs, paths))


def _scrubbed_records(path: Path, scrubber: Scrubber) -> bytes:
    """Records of images or cells, where no image lies elsewhere and no message names a folder."""
    lines = []
    for record in read_records(path):
        if record.pop("stamp", None) is not None:
            record["file"] = f"images/{record['case']}{Path(record['file']).suffix}"
        for name in ("message", "cause"):
            if name in record:
                record[name] = scrubber.text(record[name])
        lines.append(log_line(record))
    return b"".join(lines)


def _files(root: Path) -> list[Path]:
    """Files of a study that its tables need, sorted."""
    return sorted(
        path
        for path in root.rglob("*")
        if path.is_file()
        and path.suffix in SUFFIXES
        and path.name != CHECKED
        and LEFT_OUT.isdisjoint(_inner_folders(path.relative_to(root)))
    )


def _inner_folders(path: Path) -> tuple[str, ...]:
    """The folders of a path in a study, in a run only those below it: suites and generators may
    have any name."""
    folders = path.parts[:-1]
    return folders[3:] if folders[:1] == ("runs",) else folders
