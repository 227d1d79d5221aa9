"""Writing a release folder, so that it is there whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Any

from ..builders.build_result import Build
from ..release import CHECKSUMS, ReleaseError, foreign_files, read_checksums, sha256_file
from ..schema import SeededRow
from ..storage import collector_paused, whole_folder, write_whole
from .baselines import Baseline
from .documents import SAMPLE_COLUMNS, render_documents
from .manifest import MANIFEST, CardSample, Manifest, collect, read_manifest, write_manifest
from .parquet import write_parquet
from .push_checks import some


def staged(out: Path) -> AbstractContextManager[Path]:
    """An empty folder that takes the place of the release at `out` when the block ends well.

    Raises ReleaseError if `out` holds anything that no build wrote, and InUseError if another
    process is building or pushing it.
    """
    _check_ours(out)
    return whole_folder(out)


def _check_ours(out: Path) -> None:
    """Raises ReleaseError unless a folder is empty, or a release of ours and nothing else."""
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return
    try:
        recorded = read_checksums(out)["files"].get(MANIFEST, {}).get("sha256")
        ours = (out / MANIFEST).is_file() and sha256_file(out / MANIFEST) == recorded
    except (ReleaseError, OSError, AttributeError):
        ours = False
    if not ours:
        raise ReleaseError(
            f"{out} is not empty and not a release: choose another --out or empty it",
            code="folder-not-empty",
        )
    if foreign := foreign_files(out):
        raise ReleaseError(
            f"{out} also holds {some(foreign)}, which no build wrote: move that elsewhere, or "
            f"choose another --out",
            code="folder-not-empty",
        )


def check_keeps(out: Path, configs: Sequence[str]) -> None:
    """Raises ReleaseError if a build of these configs would drop others that a release has.

    Without any all are built, and nothing is dropped.
    """
    if not configs or not (out / MANIFEST).is_file():
        return
    dropped = [c.name for c in read_manifest(out).configs if c.name not in configs]
    if dropped:
        again = " ".join(f"--config {name}" for name in (*dropped, *configs))
        raise ReleaseError(
            f"{out} has {some(dropped)}, which this build would drop: keep them with {again}, "
            f"choose another --out, or remove {out}",
            code="folder-not-empty",
        )


def write_releases(
    make: Callable[[], Sequence[Build]], outs: Sequence[Path], baselines: Sequence[Baseline] = ()
) -> dict[Path, Manifest]:
    """Writes the parts of a build to their folders, replacing the releases there.

    `make` is called once all folders are locked. If it or a write fails, every folder stays as it
    was. The last folder is replaced first: a run killed in between leaves the public release old,
    and the next run repairs it. Raises what `staged` raises.
    """
    with collector_paused(), ExitStack() as stack:
        folders = [stack.enter_context(staged(out)) for out in outs]
        targets = zip(outs, make(), folders, strict=True)
        return {
            out: write_release(build, folder, () if _private(build) else baselines)
            for out, build, folder in targets
        }


def _private(build: Build) -> bool:
    """Whether a build is the part that is held out; published studies are of the other."""
    return build.holdout is not None and build.holdout.private


def write_release(build: Build, root: Path, baselines: Sequence[Baseline] = ()) -> Manifest:
    """Writes every file of the release into the empty folder `root`; returns its manifest."""
    written = {
        config.name: write_parquet(config.name, config.rows, root) for config in build.configs
    }
    manifest = collect(build, written, _write_samples(build, root), baselines)
    write_texts(manifest, render_documents(manifest), root)
    return manifest


def write_texts(manifest: Manifest, documents: Mapping[str, str], root: Path) -> None:
    """Writes manifest, documents and checksums of a release whose data are already in `root`.

    documents: path -> text, as rendered from the manifest.
    """
    write_manifest(manifest, root)
    for name, text in documents.items():
        write_whole(root / name, text)
    _write_checksums(manifest, root)


def _write_samples(build: Build, root: Path) -> list[CardSample]:
    """Writes the images for the card: the first of each pair type, with its instruction."""
    samples = []
    for config in build.configs:
        pair_types: set[str] = set()
        for row in config.rows:
            if not isinstance(row, SeededRow) or len(pair_types) == SAMPLE_COLUMNS:
                break
            if row.pair_type in pair_types or row.seed_image is None:
                continue
            pair_types.add(row.pair_type)
            file = f"assets/{row.seed_image.path}"
            write_whole(root / file, row.seed_image.bytes)
            text = next(value for name, value in row if name.endswith("instruction"))
            samples.append(CardSample(file=file, caption=text))
    return samples


def _write_checksums(manifest: Manifest, root: Path) -> None:
    logical: dict[str, dict[str, Any]] = {
        c.file: {"rows": c.rows, "rows_sha256": c.rows_sha256}
        | ({"added": c.added} if c.added else {})
        for c in manifest.configs
    }
    files = {}
    for path in sorted(p for p in root.rglob("*") if p.is_file()):
        name = path.relative_to(root).as_posix()
        files[name] = {
            "sha256": sha256_file(path),
            "bytes": path.stat().st_size,
            **logical.get(name, {}),
        }
    text = json.dumps({"version": manifest.version, "files": files}, indent=1)
    write_whole(root / CHECKSUMS, text + "\n")
