"""Compares records of `croissant.json`, as mlcroissant reads them, with the parquet rows."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from ..progress import Progress, silent
from ..release import (
    Problem,
    ReleaseError,
    iter_records,
    parquet_path,
    sha256_file,
    unreadable,
)
from ..storage import ArrowSink, whole_file
from .croissant import record_set_id
from .manifest import Manifest

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

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
    """Writes the rows of a config that are compared below a folder; false if these are all.

    Raises ReleaseError if its file can't be read.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = root / parquet_path(config)
    try:
        table = pq.read_table(path)
    except (pa.ArrowException, OSError) as error:
        raise unreadable(path, error) from error
    chosen = {row for column in table.columns for row in _first_of_each_kind(_array(column))}
    if len(table) <= SAMPLED + len(chosen):
        return False
    chosen |= set(random.Random(config).sample(range(len(table)), SAMPLED))
    with whole_file(folder / parquet_path(config)) as file:
        pq.write_table(table.take(sorted(chosen)), ArrowSink(file))
    return True


def _array(column: pa.ChunkedArray) -> pa.Array:
    """The values of a column as one array."""
    import pyarrow as pa

    array = column.combine_chunks()
    return array if isinstance(array, pa.Array) else pa.concat_arrays(array.chunks)


def _first_of_each_kind(values: pa.Array) -> list[int]:
    """Place of the first value of each kind."""
    import numpy as np

    return [int(place) for place in np.unique(_kinds(values), return_index=True)[1]]


def _kinds(values: pa.Array) -> NDArray[np.int64]:
    """A number for each value, by what of it decides how it is read: type, emptiness, and the
    kinds of what it holds. Values of one kind have one number, which means nothing else."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    def numbers(array: pa.Array) -> NDArray[np.int64]:
        return np.asarray(
            pc.fill_null(pc.cast(array, pa.int64()), 0).to_numpy(zero_copy_only=False)
        )

    kind = values.type
    aspects = [numbers(values.is_null())]
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        length = pc.binary_length(values)
        aspects += [
            numbers(pc.greater(length, 0)),
            numbers(pc.equal(length, pc.utf8_length(values))),  # is ASCII
            numbers(pc.match_substring(values, "\n")),
        ]
    elif pa.types.is_struct(kind):
        # Of a missing struct the parts are unseen, whatever lies there.
        present = 1 - aspects[0]
        aspects += [present * (_kinds(part) + 1) for part in values.flatten()]
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        lengths = numbers(pc.list_value_length(values))
        aspects += [np.minimum(lengths, 2), _held(_kinds(values.flatten()), lengths)]
    elif pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind):
        if pa.types.is_floating(kind):
            aspects.append(numbers(pc.is_nan(values)))
        signed = pc.cast(values, pa.int8()) if pa.types.is_boolean(kind) else values
        aspects += [numbers(pc.greater(signed, 0)), numbers(pc.less(signed, 0))]
    combined = aspects[0]
    for aspect in aspects[1:]:
        _, places = np.unique(aspect, return_inverse=True)
        combined = combined * (int(places.max(initial=0)) + 1) + places
        _, combined = np.unique(combined, return_inverse=True)
    return combined


def _held(kinds: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """A number for each list, by the set of the kinds that it holds.

    kinds: of the values of all lists, one list after the other; lengths: of each list.
    """
    import numpy as np

    held = np.zeros(len(lengths), np.int64)
    owners = np.repeat(np.arange(len(lengths)), lengths)
    for kind in np.unique(kinds):
        holds = np.zeros(len(lengths), np.int64)
        holds[owners[kinds == kind]] = 1
        _, held = np.unique(2 * held + holds, return_inverse=True)
    return held


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
