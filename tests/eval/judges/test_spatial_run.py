"""From a generator to the checker's table: a spatial run, detected and checked."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from counterprior.eval.engine.evaluation import RunSettings, outcomes
from counterprior.eval.engine.run import Run
from counterprior.eval.engine.steps import generate, judge_run
from counterprior.eval.judges.checker.run import (
    detect_manifest,
    run_check,
)
from counterprior.eval.judges.pixels import PixelJudge

Cli = Callable[..., CompletedProcess[str]]


@pytest.fixture(scope="module")
def run(text_release: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Images of prompts side by side and above each other, one of them lost; read only."""
    out = tmp_path_factory.mktemp("spatial") / "run"
    made = generate(RunSettings("spatial_uc", str(text_release), out, limit=20), "render:").run
    first, *_ = [image for image in made.images().values() if image.status == "made"]
    made.image_path(first).unlink()
    return made


@pytest.fixture(scope="module")
def steady(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The published rules without perturbations, which take the time."""
    path = tmp_path_factory.mktemp("rules") / "checker.yaml"
    path.write_text("stability: {enabled: false}\n")
    return path


def rows_of(run: Run) -> list[dict[str, str]]:
    return [json.loads(line) for line in (run.root / "manifest.jsonl").read_text().splitlines()]


@pytest.mark.slow
def test_a_run_becomes_the_checkers_table(run: Run, steady: Path, tmp_path: Path) -> None:
    drawn = {image.case for image in run.images().values() if image.status == "made"}
    lost = {case.id for case in run.cases() if not (run.root / f"images/{case.id}.png").exists()}
    assert {row["sample_id"] for row in rows_of(run)} == {case.id for case in run.cases()}
    detected = tmp_path / "d.jsonl"
    settings = (run.root / "manifest.jsonl", steady, "pixels", detected)
    counts = detect_manifest(*settings)
    unreadable = json.loads((tmp_path / "d.unreadable.json").read_text())
    assert counts["images"] == 20 == counts["recorded_now"] + len(unreadable)
    assert lost <= unreadable.keys()
    unknown = [why for name, why in unreadable.items() if name not in lost]
    assert all("does not name one entity of the atlas" in why for why in unknown)
    metrics = run_check(detected, steady, tmp_path / "verdicts.jsonl")
    # The renderer does as it is told, and the image that is lost is no failure of it.
    assert metrics["total_samples"] == metrics["pass_count"] == len(drawn) - 1 - len(unknown)
    assert {"left_of", "above"} <= set(metrics["by_relation"])
    assert metrics["counterfactual_pairs"]["both_pass"] >= 2
    assert (tmp_path / "verdicts.metrics.md").read_text().startswith("| Images |")


FULL_MEMORY = """
class Full:
    def identity(self):
        return {"kind": "full"}
    def detect(self, requests):
        raise RuntimeError("CUDA out of memory. Tried to allocate 2 GiB\\nand more")

def detector():
    return Full()
"""


@pytest.mark.slow
def test_agreement_is_a_half_where_the_second_detector_fails(
    run: Run, steady: Path, text_release: Path, tmp_path: Path, cli: Cli
) -> None:
    (tmp_path / "full.py").write_text(FULL_MEMORY)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    rows = [row for row in rows_of(run) if (run.root / row["file"]).exists()][:2]
    near = [row | {"file": str(run.root / row["file"])} for row in rows]
    manifest, detected = tmp_path / "m.jsonl", tmp_path / "d.jsonl"
    manifest.write_text("".join(json.dumps(row) + "\n" for row in near))
    options: dict[str, Any] = {"cwd": tmp_path, "env": environment}
    second = ("--secondary", "python:full:detector", "--rules", steady)
    done = cli(
        "spatial", "detect", manifest, "--detector", "pixels", *second, "--out", detected, **options
    )
    assert done.returncode == 0, done.stderr
    for line in detected.read_text().splitlines():
        row = json.loads(line)
        error = row["detectors"]["secondary"]["error"]
        assert error == "RuntimeError: CUDA out of memory. Tried to allocate 2 GiB"
        assert row["conf_components"]["agreement"] == 0.5 and row["verdict_raw"] == "PASS"
    metrics = run_check(detected, steady, tmp_path / "verdicts.jsonl")
    assert metrics["secondary_failed"] == metrics["pass_count"] == 2

    judge = f"checker:pixels?rule.secondary=python:full:detector&rule.rules={steady}"
    settings = ("--suite", "spatial_uc", "--data", text_release, "--limit", "8")
    scored = cli(
        *("eval", *settings, "--generator", "render:", "--judge", judge, "--out", "again"),
        **options,
    )
    assert scored.returncode == 0, scored.stderr
    again = Run.open(tmp_path / "again")
    (log,) = again.judges()
    verdicts = [o.verdict("order") for o in outcomes(again, log)]
    held = [json.loads(v.raw)["why"] for v in verdicts if v.label == "holds"]
    assert held and all("the second detector failed, agreement 0.5: RuntimeErr" in w for w in held)


@pytest.mark.slow
def test_images_of_the_opposite_fail_by_the_published_rules(run: Run, tmp_path: Path) -> None:
    exchanged = tmp_path / "exchanged.jsonl"
    with exchanged.open("w") as file:
        for row in [row for row in rows_of(run) if (run.root / row["file"]).exists()][:2]:
            a, b = row["object_b"], row["object_a"]
            there = row | {"object_a": a, "object_b": b, "file": str(run.root / row["file"])}
            file.write(json.dumps(there) + "\n")
    detected = tmp_path / "d.jsonl"
    detect_manifest(exchanged, None, "pixels", detected)
    metrics = run_check(detected, None, tmp_path / "verdicts.jsonl")
    assert metrics["total_samples"] == metrics["fail_count"] == 2


def test_the_pixel_judge_sees_above_and_below(run: Run) -> None:
    ((log, _),) = judge_run(run.root, [PixelJudge()]).judged
    said = [o for o in outcomes(run, log) if o.label("order") in ("holds", "opposite")]
    assert {o.label("order") for o in said} == {"holds"}
    assert {o.case.groups["relation"] for o in said} == {"left_of", "right_of", "above", "below"}


@pytest.mark.slow
def test_rules_read_the_scene_of_saved_images(text_release: Path, cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "run"
    done = cli(
        *("eval", "--suite", "spatial_uc", "--data", str(text_release), "--limit", "8"),
        *("--generator", "render:", "--method", "best-of:2?by=pse:scene"),
        *("--judge", "visor:scene", "--out", str(out)),
    )
    assert done.returncode == 0, done.stderr
    (log,) = Run.open(out).chosen_judges(["visor"])
    labels = [outcome.label("order") for outcome in outcomes(Run.open(out), log)]
    holds = labels.count("holds")
    assert holds >= 2 and set(labels) <= {"holds", "error"}, "others are not in the atlas"
    detected = cli(
        *("spatial", "detect", str(out / "manifest.jsonl"), "--detector", "scene"),
        *("--out", str(tmp_path / "d.jsonl")),
    )
    assert detected.returncode == 0, detected.stderr
    assert len((tmp_path / "d.jsonl").read_text().splitlines()) == holds
