"""The pairs that captions state: a table of phrases, one rule each, and frozen captions."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from counterprior.corpus_analysis.captions.miner import Mined, Miner

GOLDEN = Path(__file__).parents[2] / "golden" / "captions.jsonl"
PHRASES = dict(
    line.split(" =>", 1)
    for line in Path(__file__).with_name("phrases.txt").read_text().splitlines()
    if line and not line.startswith("#")
)


def stated(mined: Mined | None) -> list[list[str]]:
    return [[p.first.name, p.relation, p.second.name] for p in mined.pairs] if mined else []


@pytest.mark.parametrize("which", ["miner", "reference"])
def test_phrases(request: pytest.FixtureRequest, which: str) -> None:
    miner: Miner = request.getfixturevalue(which)
    mined = miner(pa.array(list(PHRASES)))
    found = ["; ".join(map(" ".join, stated(one))) for one in mined]
    assert dict(zip(PHRASES, found, strict=True)) == {c: s.strip() for c, s in PHRASES.items()}


@pytest.mark.slow
@pytest.mark.parametrize("every", [4, pytest.param(1, marks=pytest.mark.lane)])
def test_frozen_captions(miner: Miner, reference: Miner, every: int) -> None:
    rows = [json.loads(line) for line in GOLDEN.read_text().splitlines()]
    assert len(rows) >= 2000
    rows = rows[::every]
    captions = pa.array([row["caption"] for row in rows])
    found, expected = miner(captions), reference(captions)
    if not reference.parser.model.endswith(" 3.8.0"):
        pytest.skip(f"the set was frozen with model 3.8.0, this is {reference.parser.model}")
    for row, mine, plain in zip(rows, found, expected, strict=True):
        frozen = row.get("parsed", row["pairs"])
        assert stated(plain) == frozen, row["caption"]
        assert mine == plain, row["caption"]
    said = sum(len(row["pairs"]) for row in rows)
    right = sum(pair in row["pairs"] for row in rows for pair in row.get("parsed", row["pairs"]))
    assert right / said > 0.93  # what the captions say, as read by hand
