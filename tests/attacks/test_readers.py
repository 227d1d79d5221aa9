"""Malformed files for every reader: it reads them, or says in one line what is wrong."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from judged import judged_run
from malformed import check, few, jsonl, malformed
from PIL import Image

from counterprior.agents.ledger import Ledger
from counterprior.builders.bank import read_entries
from counterprior.corpus_analysis.sources.shards import SourceSettings, list_shards, read_shard
from counterprior.eval.core import Case, Outcome, Verdict
from counterprior.eval.engine.run import Run
from counterprior.eval.generators.folder import read_manifest
from counterprior.eval.judges.checker.run import PUBLISHED_SIZE, read_samples
from counterprior.human_labels import read_labels
from counterprior.images import open_image
from counterprior.parsing import read_yaml
from counterprior.release import read_checksums
from counterprior.schema import Entity


def parquet() -> bytes:
    buffer = io.BytesIO()
    pq.write_table(pa.table({"caption": ["a dog"], "url": ["http://a.test/"]}), buffer)
    return buffer.getvalue()


def png() -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (32, 32), "red").save(buffer, "PNG")
    return buffer.getvalue()


def captions(path: Path) -> None:
    source = SourceSettings(paths=(str(path),))
    for shard in list_shards(source):
        read_shard(shard, source).to_pylist()


def ledger(path: Path) -> None:
    with Ledger(path, read_only=True) as opened:
        opened.batches()
        list(opened.records())


DETECTION = {"label": "cat", "score": 0.9, "box_xyxy": [1, 2, 3, 4]}


def a_run(root: Path) -> None:
    run = Run.open(root)
    list(run.cases())
    list(run.results.every())
    for log in run.judges():
        list(log)


READERS: dict[str, tuple[str, bytes, Callable[[Path], Any]]] = {
    "ledger": (
        "a.jsonl",
        jsonl({"run": "a", "inputs": {}}, {"batch": "b", "calls": ["c"]}),
        ledger,
    ),
    "labels": ("a.jsonl", jsonl({"case": "a", "question": "b", "label": "c"}), read_labels),
    "labels, csv": ("a.csv", b"case,question,label\na,b,c\n", read_labels),
    "manifest": ("a.jsonl", jsonl({"case": "a", "file": "b.png"}), read_manifest),
    "manifest, json": ("a.json", b'[{"case": "a", "file": "b.png"}]', read_manifest),
    "detections": (
        "a.jsonl",
        jsonl(
            {
                **{"sample_id": "s", "prompt_id": "p", "relation": "above"},
                **{"object_a": "cat", "object_b": "dog"},
                "detectors": {"primary": {"detections": [DETECTION]}},
            }
        ),
        lambda p: list(read_samples(p, PUBLISHED_SIZE)),
    ),
    "bank": (
        "a.yaml",
        b"- {name: a, kind: human, category: b, look: c}\n",
        lambda p: read_entries(p, Entity),
    ),
    "yaml": ("a.yaml", b"openai:m: {input: 0.1, output: 1}\n", read_yaml),
    "checksums": (
        "checksums.json",
        json.dumps({"files": {"a": {"sha256": "a" * 64, "bytes": 1}}}).encode(),
        lambda p: read_checksums(p.parent),
    ),
    "captions, jsonl": ("a.jsonl", jsonl({"caption": "a", "url": "b"}), captions),
    "captions, csv": ("a.csv", b"caption,url\na,b\n", captions),
    "captions, parquet": ("a.parquet", parquet(), captions),
    "image": ("a.png", png(), open_image),
}

NAMES = ("judge.json", "verdicts.jsonl")


@pytest.mark.parametrize("kind", READERS)
@few
@given(data=st.data())
def test_readers_read_or_say_what_is_wrong(
    kind: str, tmp_path: Path, survived: Callable[[str, bool], None], data: st.DataObject
) -> None:
    name, good, read = READERS[kind]
    path = tmp_path / name
    path.write_bytes(data.draw(malformed(good)))
    check(kind, lambda: read(path), survived)


@pytest.mark.parametrize("kind", READERS)
def test_a_whole_file_is_read(kind: str, tmp_path: Path) -> None:
    name, good, read = READERS[kind]
    (tmp_path / name).write_bytes(good)
    read(tmp_path / name)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    said = {("arrangement", "original"): Verdict("correct", probabilities={"correct": 1.0})}
    cases = [Case(f"row{n}", "reverse", 0, 0, "a prompt", ("pair",)) for n in range(2)]
    outcomes = [Outcome(case, said) for case in cases]
    return judged_run(tmp_path_factory.mktemp("judged") / "run", outcomes)


@pytest.mark.parametrize(
    "log",
    ["run.json", "cases.jsonl", "images.jsonl", *(f"verdicts/*/{n}" for n in NAMES)],
)
@few
@given(data=st.data())
def test_malformed_runs_name_the_fault(
    log: str,
    run: Path,
    tmp_path: Path,
    survived: Callable[[str, bool], None],
    data: st.DataObject,
) -> None:
    root = tmp_path / "run"
    shutil.rmtree(root, ignore_errors=True)
    shutil.copytree(run, root)
    (path,) = root.glob(log)
    path.write_bytes(data.draw(malformed(path.read_bytes())))
    check(f"run, {path.name}", lambda: a_run(root), survived)
