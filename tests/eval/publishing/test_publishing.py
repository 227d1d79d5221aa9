"""A published study: it loads, its images decode, its numbers recompute, and nothing leaks."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections import Counter
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from published import CC, KEY, SECRETS, png, publish, published_run, study
from refusals import raises

from counterprior.cards.verify import check_publication
from counterprior.errors import DataError, UsageError
from counterprior.eval.engine.run import Run, RunError
from counterprior.eval.publishing import shards
from counterprior.eval.publishing.building import build_publication, release_of, score_columns
from counterprior.eval.publishing.publication import (
    CONFIGS,
    iter_rows,
    read_publication,
    shard_path,
)
from counterprior.eval.publishing.restoring import recompute, restore_run
from counterprior.eval.publishing.scrubbing import HIDDEN, Scrubber
from counterprior.eval.publishing.shards import MOST_SHARDS, SHARD_BYTES, shard_rows
from counterprior.eval.results.scoring import ScoreSettings, score_run
from counterprior.eval.store.verdicts import VERDICTS, Answered
from counterprior.images import open_image, pixels_digest
from counterprior.release import verify
from counterprior.storage import read_records


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A judged study; read only."""
    return study(tmp_path_factory.mktemp("study") / "s")


@pytest.fixture(scope="module")
def folder(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its publication; read only."""
    out = tmp_path_factory.mktemp("publication") / "p"
    publish(root, out)
    return out


@pytest.fixture(scope="module")
def run(root: Path) -> Path:
    """One of its runs; read only."""
    return root / "runs" / "i2i_correctness" / "fair"


def loaded(folder: Path, config: str) -> Any:
    return datasets.load_dataset(str(folder), config, split="test")


def test_it_loads_and_its_images_are_the_judged_ones(root: Path, folder: Path) -> None:
    made = {}
    for path in root.glob("runs/*/*"):
        for image in Run.open(path).images().values():
            made[path.parent.name, path.name, image.case] = path / image.file, image
    images = loaded(folder, "images")
    assert len(images) == len(made)
    plain = images.cast_column("image", datasets.Image(decode=False))
    for row, raw in zip(images, plain, strict=True):
        path, image = made[row["suite"], row["generator"], row["case"]]
        assert (row["status"], row["sha256"]) == (image.status, image.sha256)
        if image.status != "made":
            assert row["image"] is None and row["message"]
            continue
        assert raw["image"]["bytes"] == path.read_bytes()
        assert hashlib.sha256(raw["image"]["bytes"]).hexdigest() == row["sha256"]
        assert row["image"].size == (row["width"], row["height"]) == (24, 20)
        assert pixels_digest(row["image"]) == row["pixels_sha256"]
    assert Counter(images["status"]) == {"made": 20, "missing": 4, "refused": 4, "error": 4}
    assert datasets.load_dataset(str(folder), split="test").column_names == images.column_names
    only = [("status", "=", "refused")]
    assert len(datasets.load_dataset(str(folder), "images", split="test", filters=only)) == 4


@pytest.mark.slow
def test_verdicts_and_scores_are_the_study_s(root: Path, folder: Path) -> None:
    verdicts, scores = loaded(folder, "verdicts"), loaded(folder, "scores")
    count = 0
    for path in root.glob("runs/*/*"):
        for judged in score_run(path, ScoreSettings()):
            found = [
                row
                for row in scores
                if (row["suite"], row["generator"]) == (path.parent.name, path.name)
                and row["judge_id"] == judged.log.root.name
            ]
            expected = [score_columns(score, judged.result.cases) for score in judged.result.scores]
            assert [{name: row[name] for name in expected[0]} for row in found] == expected
            count += len(expected)
            assert len(list(read_records(judged.log.root / VERDICTS))) == 20
    assert len(scores) == count
    assert len(verdicts) == 8 * 20
    assert {"vlm" in row["judge"] or "qwen" in row["judge"] for row in scores} == {True}


@pytest.mark.slow
def test_published_verdicts_give_published_scores(folder: Path, tmp_path: Path) -> None:
    report = check_publication(folder)
    assert (report.problems, report.notes) == ((), ())
    publication = read_publication(folder)
    restored = restore_run(folder, publication, publication.runs[0], tmp_path / "run")
    assert {image.status for image in restored.images().values()} == {
        "made",
        "missing",
        "refused",
        "error",
    }


def test_a_run_of_a_part_of_the_cases_says_so_in_public(run: Path, tmp_path: Path) -> None:
    part = Path(shutil.copytree(run, tmp_path / "part"))
    header = json.loads((part / "run.json").read_text())
    (part / "run.json").write_text(json.dumps(header | {"where": "only left=/home/somebody/x"}))
    publication = publish(part, tmp_path / "p")
    assert publication.runs[0].where == "only left=x"
    assert "only left=x" in (tmp_path / "p" / "README.md").read_text()
    restored = restore_run(tmp_path / "p", publication, publication.runs[0], tmp_path / "run")
    assert restored.header.where == "only left=x"


def test_a_restored_run_has_every_verdict_whole(run: Path, tmp_path: Path) -> None:
    publication = publish(run, tmp_path / "p")
    restored = restore_run(tmp_path / "p", publication, publication.runs[0], tmp_path / "run")
    assert restored.cases() == Run.open(run).cases()

    def said(root: Run) -> dict[str, dict[str, Answered]]:
        return {
            log.root.name: {
                key: replace(one, verdict=replace(one.verdict, raw=""))
                for key, one in log.newest.items()
            }
            for log in root.judges()
        }

    assert said(restored) == said(Run.open(run))


def test_a_changed_verdict_is_found(run: Path, tmp_path: Path) -> None:
    copy = tmp_path / "p"
    publish(run, copy)
    path = copy / shard_path("verdicts", 0, 1)
    table = pq.read_table(path)
    rows = table.to_pylist()
    first = next(r for r in rows if r["label"] == "correct" and r["probe"] == "original")
    first["label"] = "wrong"
    pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), path)
    assert [p.file for p in verify(copy)] == [shard_path("verdicts", 0, 1)]
    problems = recompute(copy).problems
    assert problems and all(
        "as published, but the published verdicts give" in str(p) for p in problems
    )
    place = f"{first['suite']}/{first['generator']}, {first['judge']}"
    assert {problem.row for problem in problems} == {place}


def test_publication_holds_no_path_of_this_machine(root: Path, folder: Path) -> None:
    for path in folder.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            for secret in (*SECRETS, str(root)):
                assert secret.encode() not in data, (path, secret)
    for config in CONFIGS:  # strings in parquet may be compressed
        text = repr([{k: v for k, v in r.items() if k != "image"} for r in loaded(folder, config)])
        assert not [secret for secret in (*SECRETS, str(root)) if secret in text]
    assert HIDDEN in (folder / "study.yaml").read_text()
    raws = set(loaded(folder, "verdicts")["raw"])
    assert f"1 {HIDDEN}" in raws and "left/right? \\ud800 I can't | say" in raws


def test_the_card_has_the_table_and_no_markup_of_others(folder: Path) -> None:
    card = (folder / "README.md").read_text()
    publication = read_publication(folder)
    for run in publication.runs:
        for judge in run.judges:
            head = judge.headline
            line = next(
                line
                for line in card.partition("## Load")[0].splitlines()
                if line.startswith(f"| {run.generator} |")
                and f"`{head.score}`" in line
                and judge.name.split("@")[0].split(":")[1].strip() in line
            )
            assert f"| {head.n:,} |" in line
    assert "byte for byte" in card and "cc-by-4.0" in card and "<b>" not in card


@pytest.mark.parametrize("quality", [None, 60])
def test_webp_is_lossless_unless_quality_is_set(
    run: Path, tmp_path: Path, quality: int | None
) -> None:
    settings = replace(CC, image_format="webp", quality=quality)
    publication = publish(run, tmp_path / "p", settings)
    assert publication.lossy == (quality is not None)
    card = (tmp_path / "p" / "README.md").read_text()
    assert ("**The images are lossy: WebP of quality 60.**" in card) == publication.lossy
    same = 0
    for row in iter_rows(tmp_path / "p", publication.of("images")):
        if row["image"] is not None:
            assert row["image"]["path"].endswith(".webp")
            image = open_image(BytesIO(row["image"]["bytes"]))
            same += pixels_digest(image) == row["pixels_sha256"]
            judged = (run / "images" / f"{row['case']}.png").read_bytes()
            assert hashlib.sha256(judged).hexdigest() == row["sha256"]
    assert same == 5 if quality is None else same < 5


def test_the_same_study_gives_the_same_bytes_and_is_not_written_twice(
    run: Path, tmp_path: Path
) -> None:
    publish(run, tmp_path / "p")
    first = {path: path.read_bytes() for path in (tmp_path / "p").rglob("*") if path.is_file()}
    before = (tmp_path / "p").stat().st_ino
    publish(run, tmp_path / "p")
    assert (tmp_path / "p").stat().st_ino == before
    with (tmp_path / "p" / shard_path("images", 0, 1)).open("ab") as file:
        file.write(b"!")
    publish(run, tmp_path / "p")
    assert {path: path.read_bytes() for path in first} == first


def test_images_are_streamed_in_groups_and_shards(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shards, "SHARD_BYTES", 200)
    monkeypatch.setattr(shards, "GROUP_ROWS", 2)
    publication = publish(run, tmp_path / "p")
    files = publication.of("images")
    assert len(files) > 1 and sum(file.rows for file in files) == 8
    for file in files:
        read = pq.ParquetFile(tmp_path / "p" / file.file)
        groups = [read.metadata.row_group(n).num_rows for n in range(read.num_row_groups)]
        assert max(groups) <= 2 and sum(groups) == file.rows
    assert len(loaded(tmp_path / "p", "images")) == 8
    assert recompute(tmp_path / "p").problems == []


@given(st.lists(st.integers(0, 3 * SHARD_BYTES), max_size=300))
def test_shards_hold_every_row_and_are_few(sizes: list[int]) -> None:
    rows = shard_rows(sizes)
    assert sum(rows) == len(sizes) and (min(rows) >= 1 or not sizes)
    # No two neighbors could be one: so there are at most twice as many as bytes demand.
    assert len(rows) <= 2 * MOST_SHARDS - 1


def test_one_run_and_several_can_be_published(root: Path, tmp_path: Path) -> None:
    runs = sorted(root.glob("runs/t2i_homogenization/*"))
    publication = build_publication(runs, tmp_path / "p", CC)
    assert [run.name for run in publication.runs] == [
        "t2i_homogenization/biased",
        "t2i_homogenization/fair",
    ]
    alone = build_publication(runs[:1], tmp_path / "q", CC)
    assert [run.generator for run in alone.runs] == ["biased"]
    assert not (tmp_path / "q" / "study.yaml").exists()


def test_refuses_unpublishable_runs(root: Path, tmp_path: Path) -> None:
    def refused(code: str, *facts: object, folder: Path = root, **changes: Any) -> None:
        with raises(code, *facts):
            publish(folder, tmp_path / "p", replace(CC, **changes))
        assert not (tmp_path / "p").exists()

    refused("missing-option", "--license", "biased (diffusers), fair", license="")
    refused("bad-option", "--license", "'CC BY'", license="CC BY")
    refused("unknown-name", "--format", "'jpg'", "png", "webp", image_format="jpg")
    refused("out-of-range", "--quality", "--format webp", "1 to 100", quality=80)
    refused("not-a-run", tmp_path, folder=tmp_path)
    run = published_run(tmp_path / "run", "t2i_homogenization", "g")
    file = next((run / "images").iterdir())
    kept = file.read_bytes()
    file.write_bytes(png(7))
    refused("incomplete-run", run, "1 images", "--partial", folder=run)
    file.unlink()
    refused("unreadable-image", run, file.name, folder=run)
    file.write_bytes(kept)
    shutil.rmtree(run / "verdicts")
    refused("nothing-judged", run, "counterprior judge", folder=run)
    with raises("duplicate-id", "t2i_homogenization/fair", error=UsageError):
        twin = published_run(tmp_path / "fair", "t2i_homogenization", "g")
        build_publication([root, twin], tmp_path / "p", CC)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine")
    with raises("folder-not-empty", error=RunError):
        publish(root, tmp_path / "full")


def test_release_is_named_by_its_manifest(tmp_path: Path) -> None:
    assert release_of("a/b@v1.0.0") == ("a/b@v1.0.0", {})
    assert release_of("/home/somebody/dist") == release_of("./a/b") == ("", {})
    manifest = {"changes": [{"version": "1.2.0"}], "bank_sha256": "b", "holdout": None}
    told = {"version": "1.2.0", "bank_sha256": "b"}
    for holdout, extra in ((None, {}), ({"private": True}, {"holdout": "private"})):
        (tmp_path / "manifest.json").write_text(json.dumps(manifest | {"holdout": holdout}))
        assert release_of(str(tmp_path)) == ("", told | extra)


@pytest.mark.parametrize("told", [f"key={KEY}", "workflow in {home}/comfy/flow.json"])
def test_refuses_images_with_secrets_in_metadata(tmp_path: Path, told: str) -> None:
    run = published_run(tmp_path / "run", "t2i_homogenization", "g")
    data = png(1, told.format(home=Path.home()) if str(Path.home()) != "/" else f"key={KEY}")
    name = next((run / "images").iterdir()).name
    (run / "images" / name).write_bytes(data)
    lines = []
    for record in read_records(run / "images.jsonl"):
        if record.get("file") == f"images/{name}":
            old, record["sha256"] = record["sha256"], hashlib.sha256(data).hexdigest()
        lines.append(json.dumps(record) + "\n")
    (run / "images.jsonl").write_text("".join(lines))
    for path in run.glob(f"verdicts/*/{VERDICTS}"):
        path.write_text(path.read_text().replace(old, hashlib.sha256(data).hexdigest()))
    with raises("secret-found", "--format", error=DataError):
        publish(run, tmp_path / "p")
    publish(run, tmp_path / "p", replace(CC, image_format="webp"))
    row = next(
        row for row in loaded(tmp_path / "p", "images") if row["case"] == name.removesuffix(".png")
    )
    assert isinstance(row["image"], Image.Image) and not row["image"].info.get("parameters")


@given(st.text(max_size=40), st.text(max_size=40), st.booleans())
def test_no_key_survives_whatever_stands_around_it(before: str, after: str, answer: bool) -> None:
    scrubber = Scrubber([Path("/data/study")], {"MY_API_KEY": "q7!x/y z"})
    text = f"{before}q7!x/y z{after}"
    cleaned = (scrubber.answer if answer else scrubber.text)(text)
    assert "q7!x/y z" not in cleaned
    assert scrubber.leak(text.encode("utf-8", "replace")) == "a key"


def test_a_key_is_noticed_in_a_text_of_any_size() -> None:
    text = "é" * 100_000 + " sk-" + "a1" * 12
    assert Scrubber([], {}).leak(text.encode()) == "a key"
    assert Scrubber([], {}).leak(b"\xff" + text.encode()) == ""  # by chance, as far as one can say
