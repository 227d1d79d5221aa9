"""Published round trips: their texts are there, their numbers recompute, others can judge them."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import trip_doubles as doubles
from published import CC, publish
from refusals import raises

from counterprior.cards.verify import check_publication, verify_release
from counterprior.errors import DataError
from counterprior.eval.engine.data import Rows
from counterprior.eval.engine.evaluation import RunSettings
from counterprior.eval.engine.run import Run
from counterprior.eval.engine.steps import evaluate_run
from counterprior.eval.publishing.publication import iter_rows, read_publication, shard_path
from counterprior.eval.publishing.restoring import recompute
from counterprior.eval.results.scoring import ScoreSettings, score_run
from counterprior.eval.studies import runner as studies
from counterprior.eval.studies.runner import run_study

HERE = "python:trip_doubles:"
SUITE = "consistency"
ROWS = Rows.of(doubles.rows(2))
TOLD = "image~forgetful"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A study of four runs, two of texts and two of images."""
    doubles.reset()
    monkeypatch.setattr(studies, "read_rows", lambda *_: ROWS)
    file: dict[str, Any] = {
        "data": "the world",
        "suites": {SUITE: {}},
        "captioners": {"forgetful": f"{HERE}teller?forgets=0.3"},
        "generators": {"clumsy": f"{HERE}hand?errs=0.2"},
        "editors": {"image": f"{HERE}hand", "text": f"{HERE}teller"},
        "judges": {"reader": f"{HERE}reader?errs=0.1"},
        "only": [{"generator": name} for name in ("image", "text", TOLD, f"{TOLD}~clumsy")],
    }
    assert not run_study(file, tmp_path / "study").failures
    yield tmp_path / "study"
    doubles.reset()


def numbers(run: Path) -> dict[str, tuple[float, float, float, int]]:
    (judged,) = score_run(run, ScoreSettings())
    return {n: (s.value, *s.interval, s.n) for n, s in judged.whole.items()}


def test_texts_are_published_and_every_number_recomputes(root: Path, tmp_path: Path) -> None:
    out = tmp_path / "p"
    publication = publish(root, out)
    runs = {run.generator: run for run in publication.runs}
    assert {name: (run.texts, run.cases) for name, run in runs.items()} == {
        "image": (0, 2),
        "text": (2, 2),
        TOLD: (12, 12),
        f"{TOLD}~clumsy": (0, 8),
    }
    report = check_publication(out)
    assert (report.problems, report.notes) == ((), ())
    card = (out / "README.md").read_text()
    assert "10 images and 14 texts of 24 cases" in card and "word for word" in card
    told = root / "runs" / SUITE / TOLD
    known = Run.open(told).images()
    for row in iter_rows(out, publication.of("images")):
        if row["generator"] == TOLD:
            assert row["image"] is None
            assert row["text"] == (told / known[row["case"]].file).read_text()
            assert hashlib.sha256(row["text"].encode()).hexdigest() == row["sha256"]
    # Somebody else judges the published captions: the same judge gives the same numbers.
    settings = RunSettings(SUITE, "the world", tmp_path / "again")
    spec = f"hub:{out}?generator={TOLD}"
    judges = [f"{HERE}reader?errs=0.1"]
    done = evaluate_run(settings, spec, judges, rows=ROWS)
    assert numbers(told).items() <= numbers(tmp_path / "again").items()
    assert not done.run.notes()


@pytest.mark.lane
def test_names_changed_images_and_texts_of_publication(root: Path, tmp_path: Path) -> None:
    out = tmp_path / "p"
    publish(root, out)
    assert not verify_release(str(out), as_reader=True).problems
    path = out / shard_path("images", 0, 1)
    table = pq.read_table(path)

    def changed(column: str, value: Any) -> Path:
        copy = tmp_path / column
        shutil.copytree(out, copy)
        rows = table.to_pylist()
        first = next(row for row in rows if row["generator"] == TOLD)
        first[column] = value(first[column])
        changed_table = pa.Table.from_pylist(rows, schema=table.schema)
        pq.write_table(changed_table, copy / path.relative_to(out))
        return copy

    def other_answers(text: str) -> str:
        wrong = {"yes": "no", "no": "yes"}
        return json.dumps({name: wrong[label] for name, label in json.loads(text).items()})

    problems = recompute(changed("right_labels", other_answers)).problems
    assert problems and {problem.row.partition(",")[0] for problem in problems} == {
        f"{SUITE}/{TOLD}"
    }
    copy = changed("text", lambda text: text + " Cell 1 is green.")
    found = verify_release(str(copy), as_reader=True).problems
    assert any(problem.field == "text" for problem in found)
    # A text that tells of this machine is refused, with what to do.
    old = next((root / "runs" / SUITE / TOLD / "texts").iterdir()).read_bytes()
    told = f"This is strip 1, kept in {root}/x.".encode()
    digests = [hashlib.sha256(data).hexdigest().encode() for data in (old, told)]
    for file in (root / "runs" / SUITE / TOLD).rglob("*.*"):
        data = file.read_bytes()
        file.write_bytes(told if data == old else data.replace(*digests))
    with raises("secret-found", "text", "folder of this machine", error=DataError):
        publish(root, tmp_path / "q", CC)
    assert read_publication(out).runs and not (tmp_path / "q").exists()
