"""Compares records of `croissant.json`, as mlcroissant reads them, with the parquet rows."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ..progress import Progress, silent
from ..release import Problem, ReleaseError, iter_records, parquet_path, sha256_file
from ..storage import ArrowSink, whole_file
from .croissant import record_set_id
from .manifest import Manifest

CROISSANT = "croissant.json"

MINIMUM = (
    "name description license url creator datePublished version citeAs rai:dataLimitations "
    "rai:dataBiases rai:personalSensitiveInformation rai:dataUseCases rai:dataSocialImpact "
    "rai:hasSyntheticData prov:wasDerivedFrom prov:wasGeneratedBy"
).split()
"""Core and responsible-AI properties that NeurIPS 2026 requires of a dataset."""


SAMPLED = 60
"""Rows of each config that are compared, besides one of each kind of values in each column."""


def record_problems(
    root: Path, manifest: Manifest, progress: Progress = silent, *, every: bool = False
) -> Iterator[Problem]:
    """Problems of the document, then of every RecordSet, row by row; needs mlcroissant.

    mlcroissant takes milliseconds for a row, and what it makes of one depends on the kinds of its
    values alone. So it reads a seeded sample and a row of each kind; `every`: all rows.
    """
    import mlcroissant

    with TemporaryDirectory() as temporary:
        try:
            document = json.loads((root / CROISSANT).read_text(encoding="utf-8"))
            places = {config.name: root for config in manifest.configs}
            if not every:
                places |= dict.fromkeys(
                    _samples(root, document, places, Path(temporary)), Path(temporary)
                )
            mapping = {c.file: str(places[c.name] / c.file) for c in manifest.configs}
            dataset = mlcroissant.Dataset(jsonld=document, mapping=mapping)
        except Exception as error:
            # mlcroissant raises whatever its readers raise; each means a faulty document or file.
            reason = error.__cause__ if isinstance(error, ReleaseError) else error
            yield Problem(CROISSANT, f"is not valid Croissant: {reason}")
            return
        for name in MINIMUM:
            if not document.get(name) and document.get(name) is not True:
                yield Problem(CROISSANT, "property is missing", field=name)
        for issue in sorted(dataset.metadata.ctx.issues.warnings):
            yield Problem(CROISSANT, f"warning: {issue}")
        for number, (name, place) in enumerate(places.items()):
            progress("Croissant", number, len(places))
            yield from _compare(dataset, place, name)
        progress("Croissant", len(places), len(places))


def _samples(
    root: Path, document: dict[str, Any], configs: Iterable[str], folder: Path
) -> Iterator[str]:
    """Writes the rows to compare below a folder, and puts their digests into the document; yields
    the configs.

    A file of few rows, or with another digest than the document says, is left to mlcroissant.
    """
    objects = {str(entry.get("@id")): entry for entry in document["distribution"]}
    for config in configs:
        file = parquet_path(config)
        entry = objects.get(file, {})
        if not (root / file).is_file() or entry.get("sha256") != sha256_file(root / file):
            continue
        if _sample(root, config, folder):
            entry["sha256"] = sha256_file(folder / file)
            yield config


def _sample(root: Path, config: str, folder: Path) -> bool:
    """Writes the rows of a config that are compared below a folder; false if these are all."""
    import pyarrow.parquet as pq

    kinds, chosen, count = set[tuple[str, Any]](), set[int](), 0
    for count, record in enumerate(iter_records(root, config), 1):
        new = {(name, _kind(value)) for name, value in record.items()} - kinds
        if new:
            kinds |= new
            chosen.add(count - 1)
    if count <= SAMPLED + len(chosen):
        return False
    chosen |= set(random.Random(config).sample(range(count), SAMPLED))
    table = pq.read_table(root / parquet_path(config)).take(sorted(chosen))
    with whole_file(folder / parquet_path(config)) as file:
        pq.write_table(table, ArrowSink(file))
    return True


def _kind(value: Any) -> Any:
    """What of a value decides how it is read: type, emptiness, and the kinds of what it holds."""
    if isinstance(value, dict):
        return tuple((name, _kind(inner)) for name, inner in value.items())
    if isinstance(value, list):
        return min(len(value), 2), tuple(sorted({repr(_kind(inner)) for inner in value}))
    if isinstance(value, str):
        return bool(value), value.isascii(), "\n" in value
    if isinstance(value, float | int):
        return type(value).__name__, value != value, value > 0, value < 0
    return type(value).__name__


def _compare(dataset: Any, root: Path, config: str) -> Iterator[Problem]:
    record_set = record_set_id(config)
    try:
        rows = iter_records(root, config)
        for record, row in zip(dataset.records(record_set), rows, strict=True):
            for name, value in row.items():
                key = f"{record_set}/{name}"
                if not _same(record.get(key), value, key):
                    message = f"record of {record_set} differs from the parquet"
                    yield Problem(CROISSANT, message, str(row["id"]), name)
                    return
    except Exception as error:  # as above
        reason = error.__cause__ or error
        yield Problem(CROISSANT, f"{type(reason).__name__}: {reason}", row=record_set)


def _same(loaded: Any, value: Any, key: str) -> bool:
    """Whether what mlcroissant read (text as bytes, keys as ids, images opened) is the value."""
    if isinstance(value, str):
        return bool(loaded == value.encode())
    if isinstance(value, list):
        return len(loaded) == len(value) and all(map(_same, loaded, value, [key] * len(value)))
    if isinstance(value, dict) and isinstance(value.get("bytes"), bytes):
        # Opened but not decoded yet, so its file still holds the encoded bytes.
        loaded.fp.seek(0)
        return bool(loaded.fp.read() == value["bytes"])
    if isinstance(value, dict):
        return all(_same(loaded[k := f"{key}/{name}"], inner, k) for name, inner in value.items())
    return loaded is None if value is None else bool(loaded == value)
