"""Published runs become a study: its tables are the published ones, and other judges see it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from refusals import assert_refused

from counterprior.eval.engine.evaluation import RunSettings
from counterprior.eval.engine.run import Run
from counterprior.eval.engine.steps import generate
from counterprior.eval.judges.checker.run import detect_manifest
from counterprior.eval.publishing.building import PublishSettings, build_publication
from counterprior.parsing import read_rows, write_rows

Cli = Callable[..., subprocess.CompletedProcess[str]]
NAME = "SD1.5-prompt-only"


@pytest.fixture(scope="module")
def published(text_release: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as SpatialBench-UC publishes a run: images, manifest.jsonl and per_sample.jsonl."""
    root = tmp_path_factory.mktemp("published")
    made = generate(RunSettings("spatial_uc", str(text_release), root / "own", limit=8), "render:")
    images = {i.case: i for i in made.run.images().values() if i.status == "made"}
    (root / "images").mkdir()
    manifest = []
    for row in read_rows(root / "own" / "manifest.jsonl"):
        about = row[1]
        if about["sample_id"] not in images:
            continue
        sample = f"run_{about['prompt_id']}_seed0000"
        data = made.run.image_path(images[about["sample_id"]]).read_bytes()
        (root / "images" / f"{sample}.png").write_bytes(data)
        model = {"pipeline": "P", "model_id": "somebody/stable-diffusion-v1-5", "revision": "451f"}
        columns = {name: about[name] for name in ("prompt_id", "relation", "object_a", "object_b")}
        manifest.append(
            {"sample_id": sample, "image_path": f"images/{sample}.png", **columns}
            | {"model": model, "gen_params": {"seed": 0, "scheduler": "UniPC"}}
        )
    write_rows(root / "manifest.jsonl", manifest)
    (root / "checker.yaml").write_text("stability: {enabled: false}\n")
    detect_manifest(
        root / "manifest.jsonl", root / "checker.yaml", "pixels", root / "per_sample.jsonl"
    )
    return root


@pytest.mark.slow
def test_files_become_a_study_whose_runs_other_judges_see(
    published: Path, text_release: Path, tmp_path: Path, cli: Cli
) -> None:
    detections, study = published / "per_sample.jsonl", tmp_path / "study"
    sources = (f"{NAME}={detections}", "--rules", published / "checker.yaml")
    labels = tmp_path / "labels.csv"
    samples = [row["sample_id"] for _, row in read_rows(detections)]
    verdicts = ["PASS", "FAIL", "UNDECIDABLE"]
    lines = [f"{sample},{v}" for sample, v in zip(samples, verdicts, strict=False)]
    labels.write_text("sample_id,human_verdict\n" + "\n".join(lines) + "\n")
    keep = ("--keep", study, "--data", text_release, "--manifest", published / "manifest.jsonl")
    done = cli(
        *("study", "table", "--as", "spatialbench-uc-5", *sources, "--labels", labels, *keep)
    )
    assert done.returncode == 0, done.stderr
    assert "here the name stands for" not in done.stdout  # the manifest says the paper's model
    (root,) = study.glob("runs/*/*")
    run = Run.open(root)
    assert run.header.common_seeds == (0,) and len(run.present()) == len(samples) > 2
    (report,) = {
        json.loads(image.report)["published"]["model"]["revision"]
        for image in run.images().values()
    }
    assert report == "451f"
    (file,) = (study / "labels").iterdir()
    assert [line.split(",")[2] for line in file.read_text().split()[1:]].count("holds") == 1
    judged = cli("judge", root, "--judge", "visor:pixels")
    assert judged.returncode == 0, judged.stderr
    assert len(Run.open(root).judges()) == 2
    again = cli("study", "table", "--as", "spatialbench-uc-5", *sources, *keep)
    assert_refused(again, "folder-not-empty", study)
    dataset = tmp_path / "dataset"
    publication = build_publication([study], dataset, PublishSettings("cc-by-4.0"))
    assert publication and NAME in (dataset / "README.md").read_text()
    assert sum(file.stat().st_size for file in dataset.rglob("*.parquet")) > 10_000
    site = cli("report", root, "--out", tmp_path / "site")
    assert site.returncode == 0, site.stderr
    assert NAME in (tmp_path / "site" / "index.html").read_text()


@pytest.mark.slow
def test_runs_without_images_can_be_scored_and_not_judged(
    published: Path, text_release: Path, tmp_path: Path, cli: Cli
) -> None:
    study = tmp_path / "study"
    sources = (f"{NAME}={published / 'per_sample.jsonl'}", "--rules", published / "checker.yaml")
    keep = ("--keep", study, "--data", text_release)
    done = cli("study", "table", "--as", "spatialbench-uc-7", *sources, *keep)
    assert done.returncode == 0, done.stderr
    (root,) = study.glob("runs/*/*")
    before = (root / "images.jsonl").read_bytes()
    unseen = cli("judge", root, "--judge", "visor:pixels")
    assert_refused(unseen, "no-images", root, exit_code=1)
    assert (root / "images.jsonl").read_bytes() == before
    scored = cli("score", root, "--json")
    scores = {score["name"]: score for score in json.loads(scored.stdout)[0]["scores"]}
    assert scores["accuracy_unconditional"]["value"] == 100
    hub = ("--repo-id", "somebody/runs", "--license", "cc-by-4.0", "--dry-run")
    refused = cli("publish", study, *hub, "--out", tmp_path / "hub")
    assert_refused(refused, "no-images", root, exit_code=1)
    assert not (tmp_path / "hub").exists()
    site = cli("report", root, "--out", tmp_path / "site")
    assert site.returncode == 0, site.stderr


@pytest.mark.slow
def test_the_published_run_has_the_published_tables(
    shared_data: Path, text_release: Path, tmp_path: Path, cli: Cli
) -> None:
    folder = shared_data / "spatialbench_uc" / "sd15_promptonly"
    rules = folder / "eval" / "checker_config.yaml"
    sources = (f"{NAME}={folder / 'eval' / 'per_sample.jsonl'}", "--rules", rules)
    study = tmp_path / "study"

    def table(recipe: str, *options: object) -> dict[str, Any]:
        done = cli(
            *("study", "table", "--as", f"spatialbench-uc-{recipe}", "--format", "json", *options)
        )
        assert done.returncode == 0, done.stderr
        line = json.loads(done.stdout)["lines"][0]
        return {str(n): cell["score"]["value"] for n, cell in enumerate(line["cells"])}

    keep = ("--keep", study, "--data", text_release, "--manifest", folder / "manifest.jsonl")
    five = table("5", *sources, *keep)
    assert [*five.values()] == pytest.approx([11.75, 23.75, 100 * 94 / 190, 0.20589817], abs=1e-6)
    for recipe in ("6", "pairs"):
        assert table(recipe, study) == pytest.approx(table(recipe, *sources), abs=1e-12)


def test_two_images_of_one_prompt_and_seed_are_refused(
    published: Path, text_release: Path, tmp_path: Path, cli: Cli
) -> None:
    rows = [row for _, row in read_rows(published / "per_sample.jsonl")]
    prompt, sample = rows[0]["prompt_id"], rows[0]["sample_id"]
    write_rows(tmp_path / "twice.jsonl", [*rows, {**rows[0], "sample_id": f"other_{sample}"}])
    source = (f"{NAME}={tmp_path / 'twice.jsonl'}", "--rules", published / "checker.yaml")
    keep = ("--keep", tmp_path / "study", "--data", text_release)
    done = cli("study", "table", "--as", "spatialbench-uc-7", *source, *keep)
    assert_refused(done, "duplicate-id", sample, f"other_{sample}", f"{prompt!r} and seed 0")
    assert not (tmp_path / "study").exists()


@pytest.mark.parametrize(
    ("options", "code", "facts"),
    [
        (("--manifest", "m.jsonl"), "missing-option", ("--keep",)),
        (("--keep", "k", "--data", "nowhere"), "no-such-file", ("nowhere",)),
    ],
)
def test_wrong_options_are_refused(
    published: Path,
    tmp_path: Path,
    cli: Cli,
    options: tuple[str, ...],
    code: str,
    facts: tuple[str, ...],
) -> None:
    source = f"{NAME}={published / 'per_sample.jsonl'}"
    done = cli("study", "table", "--as", "spatialbench-uc-5", source, *options, cwd=tmp_path)
    assert_refused(done, code, *facts)
    assert not (tmp_path / "k").exists()
