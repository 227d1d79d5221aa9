"""Distances between two runs: features recorded once, names that say what was measured."""

from __future__ import annotations

import json
import re
import subprocess
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from refusals import raises
from scored import cases, image_run
from typer.testing import CliRunner

from counterprior.cli.main import app
from counterprior.errors import UsageError
from counterprior.eval.checkpoints.placement import LoadError
from counterprior.eval.engine.features import image_features
from counterprior.eval.results.distances import set_distances
from counterprior.eval.scorers.features import EXTRACTORS
from counterprior.eval.stats.distances import frechet_distance, renyi_kernel_entropy

Cli = Callable[..., subprocess.CompletedProcess[str]]
ASKED = cases(12)


@pytest.fixture
def runs(tmp_path: Path) -> list[Path]:
    return [
        image_run(tmp_path / name, ASKED, {c.id: base + 9 * i for i, c in enumerate(ASKED)}, lost)
        for name, base, lost in (("one", 10, None), ("two", 60, {ASKED[3].id: "refused"}))
    ]


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program that is called as NVIDIA's Inception is."""
    torch = pytest.importorskip("torch")
    file = tmp_path_factory.mktemp("net") / "inception-2015-12-05.pt"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        module = torch.jit.ScriptModule()
        module.define(
            "def forward(self, x, return_features: bool):\n"
            "    assert return_features\n"
            "    return torch.cat([x.mean([2, 3]), x[:, :, 0, 0] * 2.0], 1)\n"
        )
        torch.jit.save(module, str(file))
    return file


def test_features_are_recorded_and_computed_once(runs: list[Path], network: Path) -> None:
    extractor = EXTRACTORS.open(f"inception:{network}?device=cpu")
    found = image_features(runs[1], extractor)
    assert len(found) == 11 and ASKED[3].id not in found
    assert found[ASKED[0].id].tolist() == [60, 60, 60, 120, 120, 120]

    class Never:
        distances = extractor.distances
        identity = extractor.identity

        def features(self, images: list[Image.Image]) -> np.ndarray:
            raise AssertionError("asked again")

    (log,) = (runs[1] / "features").glob("*/features.jsonl")
    log.write_bytes(log.read_bytes()[:-1] + b"\n{torn")
    again = image_features(runs[1], Never())  # type: ignore[arg-type]
    assert all((again[case] == found[case]).all() for case in found)


def test_distances_are_named_by_what_was_measured(
    runs: list[Path], network: Path, checkpoint: Callable[[str], Path]
) -> None:
    specs = [f"inception:{network}?device=cpu", f"clip:{checkpoint('clip')}?device=cpu"]
    found = set_distances(runs, specs)
    assert [(one.name, one.extractor) for one in found] == [
        ("fid", "inception:inception-2015-12-05.pt"),
        ("kid", "inception:inception-2015-12-05.pt"),
        ("precision", "inception:inception-2015-12-05.pt"),
        ("recall", "inception:inception-2015-12-05.pt"),
        ("fd", "clip:checkpoint-clip"),
        ("kid", "clip:checkpoint-clip"),
        ("cmmd", "clip:checkpoint-clip"),
        ("precision", "clip:checkpoint-clip"),
        ("recall", "clip:checkpoint-clip"),
    ]
    assert {one.n for one in found} == {11} and found[0].dimensions == 6
    one, two = (image_features(run, EXTRACTORS.open(specs[0])) for run in runs)
    expected = frechet_distance([one[case] for case in two], list(two.values()))
    assert found[0].value == pytest.approx(expected) and not found[0].warning
    assert np.isnan(found[0].interval.low) and found[1].interval.low < found[1].value
    assert "compare it only with distances of as many" in found[4].warning
    with raises("too-few-items", "two runs", error=UsageError):
        set_distances(runs[:1], specs)


@pytest.mark.slow
def test_dinov2_has_its_class_token_and_counts_modes_of_each_run(
    runs: list[Path], checkpoint: Callable[[str], Path]
) -> None:
    folder = checkpoint("dinov2")
    command = ["quality", *map(str, runs), "--json", "--features"]
    # In this process, which has imported torch.
    done = CliRunner().invoke(app, [*command, f"dinov2:{folder}?device=cpu&bandwidth=2"])
    assert done.exit_code == 0, done.stderr
    listed = json.loads(done.stdout)["distances"]
    assert [(d["run"], d["name"], d["n"]) for d in listed] == [
        *(("two", name, 11) for name in ("fd", "kid", "precision", "recall")),
        ("one", "rke", 12),
        ("two", "rke", 11),
    ]
    assert {d["bandwidth"] for d in listed[-2:]} == {2.0} and listed[0]["bandwidth"] is None
    extractor = EXTRACTORS.open(f"dinov2:{folder}?device=cpu")
    one = image_features(runs[0], extractor)  # the bandwidth changes no recorded feature
    assert len([*(runs[0] / "features").iterdir()]) == 1
    assert listed[4]["value"] == pytest.approx(renyi_kernel_entropy([*one.values()], 2))
    expected = _class_token(folder, runs[0] / "images" / f"{ASKED[0].id}.png")
    assert one[ASKED[0].id] == pytest.approx(expected, abs=1e-5)


def _class_token(folder: Path, image: Path) -> np.ndarray:
    from transformers import AutoImageProcessor, Dinov2Model

    pixels = AutoImageProcessor.from_pretrained(folder)(Image.open(image), return_tensors="pt")
    states = Dinov2Model.from_pretrained(folder).eval()(**pixels).last_hidden_state
    token: np.ndarray = states[0, 0].detach().numpy()
    return token


@pytest.mark.slow
def test_sets_of_few_images_have_no_value_instead_of_zero(
    tmp_path: Path, network: Path, cli: Cli
) -> None:
    few = [image_run(tmp_path / n, ASKED[:3], {c.id: 9 for c in ASKED[:3]}) for n in ("a", "b")]
    found = set_distances(few, [f"inception:{network}?device=cpu"])
    by_name = {distance.name: distance for distance in found}
    for name in ("precision", "recall"):
        assert np.isnan(by_name[name].value) and by_name[name].to_json()["value"] is None
        assert "more than 3 images" in by_name[name].warning
    done = cli("quality", *few, "--features", f"inception:{network}?device=cpu")
    assert re.search(r"recall +. inception:\S+ +. undefined", done.stdout), done.stdout
    wrong = cli("quality", *few, "--features", "dinov2:nowhere/at-all?bandwidth=0")
    assert wrong.returncode == 2 and "bandwidth" in wrong.stderr


def test_a_wrong_file_says_what_is_wrong(tmp_path: Path, runs: list[Path]) -> None:
    with raises("missing-option", "inception:FILE", error=UsageError):
        EXTRACTORS.open("inception:")
    with raises("no-such-file", "gone.pt", "TorchScript", error=UsageError):
        EXTRACTORS.open("inception:gone.pt")
    with raises("unknown-option", "batch", error=UsageError):
        EXTRACTORS.open("inception:x?batch=1")
    (tmp_path / "net.pt").write_bytes(b"no program")
    with raises("load-failed", "net.pt", "TorchScript", error=LoadError):
        set_distances(runs, [f"inception:{tmp_path / 'net.pt'}?device=cpu"])


@pytest.mark.slow
def test_the_command_prints_them(runs: list[Path], network: Path, cli: Cli) -> None:
    done = cli("quality", *runs, "--features", f"inception:{network}?device=cpu")
    assert done.returncode == 0, done.stderr
    assert "distance of sets of images to those of one" in done.stdout
    assert re.search(r"two +. fid +. inception:inception-2015", done.stdout)
