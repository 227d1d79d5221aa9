"""Compares every record of `croissant.json`, as mlcroissant reads it, with the parquet rows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..progress import Progress, silent
from ..release import Problem, iter_records
from .croissant import record_set_id
from .manifest import Manifest

CROISSANT = "croissant.json"

MINIMUM = (
    "name description license url creator datePublished version citeAs rai:dataLimitations "
    "rai:dataBiases rai:personalSensitiveInformation rai:dataUseCases rai:dataSocialImpact "
    "rai:hasSyntheticData prov:wasDerivedFrom prov:wasGeneratedBy"
).split()
"""Core and responsible-AI properties that NeurIPS 2026 requires of a dataset."""


def record_problems(
    root: Path, manifest: Manifest, progress: Progress = silent
) -> Iterator[Problem]:
    """Problems of the document, then of every RecordSet, row by row; needs mlcroissant."""
    import mlcroissant

    try:
        document = json.loads((root / CROISSANT).read_text(encoding="utf-8"))
        mapping = {config.file: str(root / config.file) for config in manifest.configs}
        dataset = mlcroissant.Dataset(jsonld=document, mapping=mapping)
    except Exception as error:
        # mlcroissant raises whatever its readers raise; each means a faulty document or file.
        yield Problem(CROISSANT, f"is not valid Croissant: {error}")
        return
    for name in MINIMUM:
        if not document.get(name) and document.get(name) is not True:
            yield Problem(CROISSANT, "property is missing", field=name)
    for issue in sorted(dataset.metadata.ctx.issues.warnings):
        yield Problem(CROISSANT, f"warning: {issue}")
    for number, config in enumerate(manifest.configs):
        progress("Croissant", number, len(manifest.configs))
        yield from _compare(dataset, root, config.name)
    progress("Croissant", len(manifest.configs), len(manifest.configs))


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
