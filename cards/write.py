"""Writing a release folder, so that it is there whole or not at all."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from ..builders.manifest import Build
from ..release import CHECKSUMS, ReleaseError, sha256_file
from ..schema import SeededRow
from .documents import SAMPLE_COLUMNS, render_documents
from .facts import MANIFEST, Facts, Sample, collect, write_facts
from .parquet import write_parquet

SAMPLES_PER_CONFIG = SAMPLE_COLUMNS


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep other builds and pushes of `folder` out. Raises ReleaseError where one is under way."""
    with (folder.with_name(f".{folder.name}.lock")).open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ReleaseError(f"{folder}: another process is building or pushing it") from None
        try:
            yield
        finally:
            os.unlink(lock.name)


@contextmanager
def staged(out: Path) -> Iterator[Path]:
    """A fresh folder that takes the place of `out` when the block ends well.

    A release that is at `out` stays there until then; what a killed run left behind is removed by
    the next. Raises ReleaseError where `out` holds something that is no release, or where another
    process is writing to it.
    """
    out = out.absolute()
    if out.exists() and not (out / MANIFEST).is_file() and (out.is_file() or any(out.iterdir())):
        raise ReleaseError(f"{out} is not empty and no release: give another --out, or empty it")
    out.parent.mkdir(parents=True, exist_ok=True)
    partial, previous = (out.with_name(f".{out.name}.{what}") for what in ("partial", "previous"))
    with locked(out):
        for left_over in (partial, previous):
            shutil.rmtree(left_over, ignore_errors=True)
        partial.mkdir()
        try:
            yield partial
            if out.exists():
                out.rename(previous)
            partial.rename(out)
        finally:
            for left_over in (partial, previous):
                shutil.rmtree(left_over, ignore_errors=True)


def write_releases(make: Callable[[], Sequence[Build]], outs: Sequence[Path]) -> dict[Path, Facts]:
    """The parts of a build, each in its folder, in the place of what was there.

    `make` is called when all folders are ours; if it or any writing fails, all stay as they were.
    The last folder comes first: a run killed between two leaves the public one old, and the next
    run mends it. Raises ReleaseError as `staged` does.
    """
    with ExitStack() as stack:
        folders = [stack.enter_context(staged(out)) for out in outs]
        parts = zip(outs, make(), folders, strict=True)
        return {out: write_release(build, folder) for out, build, folder in parts}


def write_release(build: Build, root: Path) -> Facts:
    """Every file of the release, below the empty folder `root`; returns its facts."""
    written = {
        config.name: write_parquet(config.name, config.rows, root) for config in build.configs
    }
    facts = collect(build, written, _write_samples(build, root))
    write_texts(facts, root)
    return facts


def write_texts(facts: Facts, root: Path) -> None:
    """Manifest, documents and checksums of a release whose data are already below `root`."""
    write_facts(facts, root)
    for name, text in render_documents(facts).items():
        (root / name).write_text(text, encoding="utf-8")
    _write_checksums(facts, root)


def _write_samples(build: Build, root: Path) -> list[Sample]:
    """Pictures for the card: the first of each pair type, with its instruction."""
    samples = []
    for config in build.configs:
        shown: set[str] = set()
        for row in config.rows:
            if not isinstance(row, SeededRow) or row.seed_image is None:
                break
            if row.pair_type in shown or len(shown) == SAMPLES_PER_CONFIG:
                continue
            shown.add(row.pair_type)
            path = root / "assets" / row.seed_image.path
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(row.seed_image.bytes)
            text = next(value for name, value in row if name.endswith("instruction"))
            samples.append(Sample(file=f"assets/{path.name}", caption=text))
    return samples


def _write_checksums(facts: Facts, root: Path) -> None:
    logical = {c.file: {"rows": c.rows, "rows_sha256": c.rows_sha256} for c in facts.configs}
    files = {}
    for path in sorted(p for p in root.rglob("*") if p.is_file()):
        name = path.relative_to(root).as_posix()
        files[name] = {
            "sha256": sha256_file(path),
            "bytes": path.stat().st_size,
            **logical.get(name, {}),
        }
    text = json.dumps({"version": facts.version, "files": files}, indent=1)
    (root / CHECKSUMS).write_text(text + "\n", encoding="utf-8")
