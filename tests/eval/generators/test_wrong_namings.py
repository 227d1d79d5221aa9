"""Eight ways to name images wrongly, each mended by what the message says, on the command line."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from refusals import assert_refused

from counterprior.eval.core import Case
from counterprior.eval.engine.run import Run

Cli = Callable[..., subprocess.CompletedProcess[str]]
SUITE = ("--suite", "t2i_homogenization", "--limit", "3")


@pytest.fixture(scope="module")
def drawn(text_release: Path, cli: Cli, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a list of prompts and the run that drew them."""
    root = tmp_path_factory.mktemp("drawn")
    for command in (
        ("prompts", "--out", root / "prompts.jsonl"),
        ("generate", "--generator", "render:", "--out", root / "run"),
    ):
        done = cli(*command, *SUITE, "--data", text_release)
        assert done.returncode == 0, done.stderr
    return root


Naming = Callable[[int, Case], str]
NAMINGS: dict[str, Naming] = {
    "endings in capitals": lambda i, c: f"{c.id}.PNG",
    "a folder for each prompt": lambda i, c: f"{c.prompt}/{c.seed}.png",
    "a folder for each row": lambda i, c: f"{c.row}/{c.variant}/{c.seed}.png",
    "numbers": lambda i, c: f"{i + 1:04}.png",
    "another template": lambda i, c: f"{c.row}_{c.variant}_{c.seed}.png",
    "no row": lambda i, c: f"{c.seed}_{c.variant}.png",
    "prompts with underscores": lambda i, c: f"{c.prompt.strip('.').replace(' ', '_')}_0.png",
    "spaces and brackets": lambda i, c: f"[{c.variant}] {c.row} ({c.seed}).png",
}


def pictures(drawn: Path) -> Iterator[tuple[int, Case, Path]]:
    run = Run.open(drawn / "run")
    for number, case in enumerate(run.cases()):
        yield number, case, run.image_path(run.images()[case.id])


def evaluated(
    cli: Cli, release: Path, spec: str, out: Path, judge: str = "scene"
) -> subprocess.CompletedProcess[str]:
    command = ("eval", *SUITE, "--data", release, "--generator", spec, "--judge", judge)
    return cli(*command, "--out", out)


def digests(run: Path) -> dict[str, Any]:
    return {case: image.sha256 for case, image in Run.open(run).images().items()}


@pytest.mark.parametrize("naming", NAMINGS)
def test_the_message_names_the_spec_that_reads_the_folder(
    naming: str, drawn: Path, text_release: Path, tmp_path: Path, cli: Cli
) -> None:
    folder = tmp_path / "my images (1)"
    for number, case, image in pictures(drawn):
        file = folder / NAMINGS[naming](number, case)
        file.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(image, file)
    done = evaluated(cli, text_release, f"folder:{folder}", tmp_path / "first")
    if done.returncode:
        assert "6 of 6 cases have no file" in done.stderr and "holds 6 images" in done.stderr
        (spec,) = re.findall(r"use --generator '([^']+)'", done.stderr)
        spec = spec.replace("prompts=prompts.jsonl", f"prompts={drawn / 'prompts.jsonl'}")
        options = (*SUITE, "--data", text_release, "--out", tmp_path / "first")
        done = cli("generate", *options, "--generator", spec)  # it is the images that count
    assert done.returncode == 0 and "have no file" not in done.stderr, done.stderr
    assert digests(tmp_path / "first") == digests(drawn / "run")


@pytest.mark.slow
def test_a_run_that_has_images_takes_no_other_layout(
    drawn: Path, text_release: Path, tmp_path: Path, cli: Cli
) -> None:
    """And where a wrong template loses them all, there is no table of nothing."""
    folder = tmp_path / "images"
    folder.mkdir()
    for number, case, image in pictures(drawn):
        shutil.copy(image, folder / f"{case.row}_{case.variant}_{case.seed}.png")
        shutil.copy(image, folder / f"{number}.png")
    numbered = f"folder:{folder}?layout=numbered&prompts={drawn / 'prompts.jsonl'}"
    right = f"folder:{folder}?template={{row}}_{{variant}}_{{seed}}"
    assert evaluated(cli, text_release, right, tmp_path / "run", "pixels").returncode == 0
    for path in folder.glob("t2i_*"):
        path.rename(tmp_path / path.name)
    done = evaluated(cli, text_release, numbered, tmp_path / "run", "pixels")
    assert_refused(done, "another-run", "layout=numbered", "--out", exit_code=1)
    done = evaluated(cli, text_release, f"{right}_x", tmp_path / "run", "pixels")
    assert_refused(done, "nothing-judged", "6 missing", exit_code=1)


@pytest.mark.slow
def test_jpegs_named_png_are_read(
    drawn: Path, text_release: Path, tmp_path: Path, cli: Cli
) -> None:
    for _, case, path in pictures(drawn):
        with Image.open(path) as image:
            image.save(tmp_path / f"{case.id}.png", format="JPEG")
    done = evaluated(cli, text_release, f"folder:{tmp_path}", tmp_path / "run", "pixels")
    assert done.returncode == 0 and "have no file" not in done.stderr, done.stderr
    assert {i.status for i in Run.open(tmp_path / "run").images().values()} == {"made"}


def test_a_misnamed_image_is_named_beside_the_missing_case(
    drawn: Path, text_release: Path, tmp_path: Path, cli: Cli
) -> None:
    for _, case, image in pictures(drawn):
        shutil.copy(image, tmp_path / f"{case.id}.png")
    wanted = [case.id for _, case, _ in pictures(drawn)][2]
    misnamed = f"{wanted[:-1]}.png"
    (tmp_path / f"{wanted}.png").rename(tmp_path / misnamed)
    done = evaluated(cli, text_release, f"folder:{tmp_path}", tmp_path / "run")
    assert f"1 of 6 cases have no file, the first {wanted}" in done.stderr, done.stderr
    assert f"1 image is of no case: if {misnamed} is that one, rename it" in done.stderr


def test_each_broken_image_is_named_with_its_reason(
    drawn: Path, text_release: Path, tmp_path: Path, cli: Cli
) -> None:
    ids = []
    for _, case, image in pictures(drawn):
        shutil.copy(image, tmp_path / f"{case.id}.png")
        ids.append(case.id)
    whole_file = (tmp_path / f"{ids[0]}.png").read_bytes()
    (tmp_path / f"{ids[0]}.png").write_bytes(whole_file[:3000])
    Image.new("RGB", (8, 8)).save(tmp_path / f"{ids[1]}.png")
    done = evaluated(cli, text_release, f"folder:{tmp_path}", tmp_path / "run")
    said = " ".join(done.stderr.split())
    assert f"error, {ids[0]}: {tmp_path / ids[0]}.png is not a readable image" in said, said
    assert f"error, {ids[1]}: {tmp_path / ids[1]}.png is 8 x 8, a side below 16" in said, said
