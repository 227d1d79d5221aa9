"""`counterprior spatial detect`: a manifest of images becomes input of `spatial check`."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from refusals import assert_refused, raises

from counterprior.eval.geometry.boxes import Size
from counterprior.eval.geometry.checker.rules import CheckerRules
from counterprior.eval.judges.checker.run import (
    check_file,
    detect_manifest,
    read_manifest,
)
from counterprior.images import encode_png
from counterprior.parsing import RowError
from counterprior.scenes.drawing import draw_scene
from counterprior.scenes.scene import Figure, Scene

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def settings(tmp_path: Path) -> dict[str, Any]:
    rows = []
    for number, (left, right) in enumerate((("cat", "dog"), ("dog", "cat"), ("cat", "dog"))):
        scene = Scene((Figure(left, 0.27, 0.9, 0.95), Figure(right, 0.74, 0.9, 1.0)), number)
        (tmp_path / f"{number}.png").write_bytes(encode_png(draw_scene(scene)))
        rows.append(
            {
                "file": f"{number}.png",
                "unique_id": number,
                "relation": "to the left of",
                "object_a": "cat",
                "object_b": "dog",
            }
        )
    (tmp_path / "2.png").write_bytes(b"\x89PNG torn")
    (tmp_path / "m.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    once = "perturbations: [{type: brightness, factor: 0.9}]"  # each is a look at each image
    (tmp_path / "checker.yaml").write_text(f"geometry: {{margin: 0.1}}\nstability: {{{once}}}\n")
    return {
        "manifest": tmp_path / "m.jsonl",
        "rules": tmp_path / "checker.yaml",
        "detector": "pixels",
        "out": tmp_path / "d.jsonl",
        "secondary": "pixels",
        "cache": tmp_path / "c",
    }


@pytest.mark.slow
def test_detections_give_same_verdicts_and_are_not_made_again(
    settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = detect_manifest(**settings)
    assert counts["verdicts"] == {"FAIL": 1, "PASS": 1} and counts["unreadable"] == 1
    recorded = settings["out"].read_bytes()
    found = check_file(settings["out"], CheckerRules(), Size(1, 1))
    assert [one.verdict for one in found] == ["PASS", "FAIL"]
    rows = [json.loads(line) for line in recorded.decode().splitlines()]
    assert [one.confidence for one in found] == [row["conf"] for row in rows]
    assert all(row["conf_components"]["agreement"] == 1 for row in rows)
    unreadable = json.loads((settings["out"].parent / "d.unreadable.json").read_text())
    assert list(unreadable) == ["2"] and "not a readable" in unreadable["2"]
    settings["out"].write_bytes(recorded[: recorded.index(b"\n") + 9])
    monkeypatch.setattr(
        "counterprior.eval.detectors.pixels.PixelDetector.detect",
        lambda self, requests: pytest.fail("detected again"),
    )
    again = detect_manifest(**settings)
    assert (again["recorded_before"], again["recorded_now"]) == (1, 1)
    assert settings["out"].read_bytes() == recorded


def test_a_file_of_other_detectors_or_rules_is_not_gone_on_with(settings: dict[str, Any]) -> None:
    settings["secondary"] = ""
    detect_manifest(**settings)
    settings["rules"].write_text("geometry: {margin: 0.05}\n")
    with raises("another-run", settings["out"], "--out"):
        detect_manifest(**settings)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (
            {"file": "a.png", "relation": "near", "object_a": "a", "object_b": "b"},
            ("unknown-name", ":2: relation"),
        ),
        (
            {"relation": "above", "object_a": "a", "object_b": "b"},
            ("missing-field", ":2: image_path"),
        ),
        (
            {"file": "0.png", "relation": "above", "object_a": "a", "object_b": "b"},
            ("duplicate-id", "0"),
        ),
    ],
)
def test_bad_manifests_are_named(
    tmp_path: Path, row: dict[str, Any], reason: tuple[str, ...]
) -> None:
    good = {"image_path": "0.png", "relation": "above", "object_a": "a", "object_b": "b"}
    path = tmp_path / "m.jsonl"
    path.write_text(json.dumps(good) + "\n" + json.dumps(row) + "\n")
    with raises(*reason, error=RowError):
        read_manifest(path)


@pytest.mark.slow
def test_the_command(settings: dict[str, Any], cli: Run) -> None:
    options = ("--rules", settings["rules"], "--detector", "pixels", "--out", settings["out"])
    done = cli("spatial", "detect", settings["manifest"], *options, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["recorded_now"] == 2
    wrong = cli(
        "spatial",
        "detect",
        settings["manifest"],
        *options[:2],
        "--detector",
        "magic:",
        *options[4:],
    )
    assert_refused(wrong, "unknown-name", "detector", "'magic'", "pixels")
