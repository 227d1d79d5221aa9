"""A run as a dataset folder: pairs and verdicts, readable with `load_dataset`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...eval.core import PROBES
from ...storage import write_whole
from ..images.retrieve import ImageSource, Retrieved
from ..mining.mine_shard import write_parquet
from ..mining.pair_rows import pair_schema
from .layout_judge import ASPECTS, Answers
from .rates import Alignment, JudgedPair

FOLDER = "dataset"

_CARD = """---
configs:
- config_name: pairs
  data_files:
  - split: test
    path: pairs/test-*.parquet
- config_name: verdicts
  data_files:
  - split: test
    path: verdicts/test-*.parquet
---
# Mention order and spatial order

Pairs of things named in web captions, in mention order, with the outcome of fetching their images
and a judge's answers about them. `pairs`: one row per pair. `verdicts`: one row per question to the
judge, including raw answers.

- aligned (first-mentioned on the left): {aligned} of {n} pairs, {rate}
- judge: {judge}
- captions: {model}, {speedup}

Captions and addresses are those of the source; this dataset contains no images, which belong to
their owners. All of it was made automatically: parser, rules and judge make errors, and nobody
checked individual rows.
"""


def write_dataset(
    folder: Path,
    *,
    pairs: Sequence[Mapping[str, Any]],
    retrieved: Retrieved,
    answers: Mapping[str, Answers],
    verdicts: Iterable[Mapping[str, Any]],
    result: Alignment,
) -> None:
    """Writes pairs, verdicts and card."""
    import pyarrow as pa

    schema = pair_schema()
    for name in ("picture", *ASPECTS, *(f"order_{probe}" for probe in PROBES)):
        schema = schema.append(pa.field(name, pa.string()))
    schema = schema.append(pa.field("valid", pa.bool_())).append(pa.field("aligned", pa.bool_()))
    rows = [_row(pair, retrieved, answers.get(pair["id"])) for pair in pairs]
    name = "test-00000-of-00001.parquet"
    write_parquet(pa.Table.from_pylist(rows, schema), folder / "pairs" / name)
    verdict_schema = pa.schema(
        [(n, pa.string()) for n in ("pair", "question", "probe", "label", "raw")]
    )
    ordered = sorted(verdicts, key=lambda v: (v["pair"], v["question"], v["probe"], v["raw"]))
    write_parquet(pa.Table.from_pylist(ordered, verdict_schema), folder / "verdicts" / name)
    single, captions = result.single_probe, result.funnel["captions"]
    card = _CARD.format(
        aligned=single.aligned,
        n=single.n,
        rate=f"{single.rate:.1%}" if single.n else "no rate",
        judge=json.dumps(result.judge, sort_keys=True),
        model=captions["model"],
        speedup=captions["speedup"],
    )
    write_whole(folder / "README.md", card)


def _row(pair: Mapping[str, Any], retrieved: Retrieved, answers: Answers | None) -> dict[str, Any]:
    """A pair with the outcome for its image and the judge's labels; None if not asked."""
    source = ImageSource.of(pair)
    record = retrieved.records.get(source.key) if source else None
    row = {**pair, "picture": record["reason"] if record else "no_source"}
    if answers is None:
        return row | {"valid": None, "aligned": None}
    row |= {aspect: answers.gate.get((aspect, "original")) for aspect in ASPECTS}
    row |= {f"order_{probe}": answers.order.get(probe) for probe in PROBES}
    side = JudgedPair(dict(pair), answers).side
    return row | {"valid": answers.valid, "aligned": None if side != side else side == 1}
