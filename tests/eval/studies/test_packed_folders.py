"""A packed study of images that a folder held: the same numbers on a machine that has no such
folder, and no path of the machine that had it."""

from __future__ import annotations

import csv
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from counterprior.eval.api import prompts
from counterprior.eval.core import ImageRequest
from counterprior.eval.generators import open_generator
from counterprior.eval.studies.packed import _files
from counterprior.eval.studies.runner import run_study

Cli = Callable[..., Any]
SUITE = "t2i_homogenization"


@pytest.fixture
def lab(text_release: Path, tmp_path: Path) -> Path:
    """A folder with a release, and a researcher's own drawings in three folders: one beside a
    table of its files, one inside another, and one without an image of the first case."""
    lab = tmp_path / "lab"
    drawn = {name: lab / name for name in ("drawn", "drawn/late", "listed")}
    for folder in drawn.values():
        folder.mkdir(parents=True)
    (lab / "release").symlink_to(text_release)
    rows = []
    for number, case in enumerate(prompts(SUITE, data=str(text_release), limit=2)):
        for order_bias, (name, folder) in enumerate(drawn.items()):
            generator = open_generator(f"render:?order_bias={order_bias}")
            image = generator.generate(ImageRequest(case.prompt, case.seed))
            if name != "drawn/late" or number:
                image.save(folder / (f"{number}.png" if name == "listed" else case.file))
        rows.append((case.id, f"{number}.png"))
    (lab / "my files").mkdir()
    with (lab / "my files" / "files.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("case", "file"), *rows])
    plain = {
        "data": "release",
        "suites": {SUITE: {"limit": 2}},
        "generators": {
            "first": f"folder:{drawn['drawn']}",
            "late": f"folder:{drawn['drawn/late']}?template={{id}}",
            "listed": f"folder:{drawn['listed']}?manifest={lab}/my+files/files.csv&name=mine",
        },
        "judges": {"px": "pixels"},
    }
    (lab / "study.yaml").write_text(yaml.safe_dump(plain))
    return lab


def scores(cli: Cli, study: Path, at: Path) -> dict[str, bytes]:
    written = {}
    for run in sorted((study / "runs" / SUITE).iterdir()):
        done = cli("score", run.relative_to(at), cwd=at)
        assert done.returncode == 0, done.stderr
        written[run.name] = (run / "scores.json").read_bytes()
        (run / "scores.json").unlink()
    return written


@pytest.mark.slow
def test_a_packed_study_of_a_folder_gives_the_same_numbers_without_the_folder(
    lab: Path, tmp_path: Path, cli: Cli
) -> None:
    (lab / "my files").rename(lab / "not yet")  # a first try, whose failure names the folder
    assert cli("study", "run", "study.yaml", "--out", "study", cwd=lab).returncode == 1
    (lab / "not yet").rename(lab / "my files")
    done = cli("study", "run", "study.yaml", "--out", "study", cwd=lab)
    assert done.returncode == 0, done.stderr
    table = cli("study", "table", "study", cwd=lab).stdout
    numbers = scores(cli, lab / "study", lab)
    assert sorted(numbers) == ["first", "late", "listed"] and "first" in table

    away = tmp_path / "away"
    away.mkdir()
    packed = cli("study", "pack", "study", "--out", away / "handed-in.zip", cwd=lab)
    assert packed.returncode == 0, packed.stderr
    shutil.rmtree(lab)

    assert cli("study", "table", "handed-in.zip", cwd=away).stdout == table
    with zipfile.ZipFile(away / "handed-in.zip") as file:
        assert not [name for name in file.namelist() if str(lab).encode() in file.read(name)]
        assert not [name for name in file.namelist() if name.endswith(".png")]
        file.extractall(away / "study")
    assert scores(cli, away / "study", away) == numbers
    generators = yaml.safe_load((away / "study" / "study.yaml").read_text())["generators"]
    assert generators == {
        "first": "folder:drawn",
        "late": "folder:late?template=%7Bid%7D",
        "listed": "folder:listed?manifest=files.csv&name=mine",
    }


def test_a_generator_may_have_the_name_of_a_folder_of_runs(
    text_release: Path, tmp_path: Path
) -> None:
    study = {
        "data": str(text_release),
        "suites": {SUITE: {"limit": 1}},
        "generators": {"images": "render:"},
        "judges": {"px": "pixels"},
    }
    root = run_study(study, tmp_path / "study").study.root
    assert {path.name for path in _files(root) if path.parent.name == "images"} == {
        *("run.json", "cases.jsonl", "images.jsonl")
    }


@pytest.mark.slow
def test_a_path_of_other_data_is_still_refused(lab: Path, cli: Cli) -> None:
    study = yaml.safe_load((lab / "study.yaml").read_text())
    study["data"] = str((lab / "release").resolve())
    (lab / "study.yaml").write_text(yaml.safe_dump(study))
    assert cli("study", "run", "study.yaml", "--out", "study", cwd=lab).returncode == 0
    refused = cli("study", "pack", "study", "--out", "study.zip", cwd=lab)
    assert refused.returncode == 2 and "secret-found" in refused.stderr
    assert "name data by a path relative" in refused.stderr
    assert not (lab / "study.zip").exists()


def test_an_image_that_was_replaced_since_is_not_handed_in(lab: Path, cli: Cli) -> None:
    assert cli("study", "run", "study.yaml", "--out", "study", cwd=lab).returncode == 0
    shutil.copy(lab / "listed" / "1.png", lab / "listed" / "0.png")
    refused = cli("study", "pack", "study", "--out", "study.zip", cwd=lab)
    assert refused.returncode == 2 and "x listed x px" in refused.stderr, refused.stderr
