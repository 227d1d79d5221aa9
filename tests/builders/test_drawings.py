"""Drawings that are kept for later runs change no byte of a release, whatever state they are in."""

import hashlib
import logging
import os
import random
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from typer.testing import CliRunner

from counterprior.builders.bank import DEFAULT_BANK, FileRequest, begin_bank, read_entries
from counterprior.builders.drawings import (
    LEAST_AGAIN,
    DrawingRun,
    code_digest,
    drawing,
    kept_here,
)
from counterprior.builders.gold import GoldRequest, begin_gold, draw_gold
from counterprior.builders.seeds import SeedRequest, kept_seeds
from counterprior.builders.suite import SHIPPED, CocoClass
from counterprior.builders.suites.t2i_correctness_gold import images_of
from counterprior.cards.validate import ReleaseReport
from counterprior.cli.main import app
from counterprior.kept import Kept
from counterprior.release import iter_records, parquet_path
from counterprior.scenes.vector import VectorImage

CONFIG = "t2i_correctness_gold"
DRAWN = "depictions/flags_and_heraldry.yaml"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's cache, empty: the shipped bank is read before."""
    _ = SHIPPED.drawables
    folder = tmp_path / "cache"
    monkeypatch.setenv("COUNTERPRIOR_CACHE", str(folder))
    return folder


def some_images(pairs: int = 1) -> list[VectorImage]:
    drawables = [drawable for _, drawable in sorted(SHIPPED.drawables.items())[:pairs]]
    return [drawable.image(*version) for drawable in drawables for version in images_of(drawable)]


def kept_files(cache: Path) -> list[Path]:
    return sorted(path for path in cache.rglob("*") if path.is_file())


def drawn_by(images: list[VectorImage], jobs: int = 1) -> tuple[list[bytes], DrawingRun]:
    with drawing(jobs) as run:
        begin_gold(images)
        return [draw_gold(image) for image in images], run


def cut_off(files: list[Path]) -> None:
    files[0].write_bytes(files[0].read_bytes()[:-100])


def emptied(files: list[Path]) -> None:
    files[0].write_bytes(b"")


def changed(files: list[Path]) -> None:
    data = bytearray(files[0].read_bytes())
    data[-50] ^= 1
    files[0].write_bytes(data)


def exchanged(files: list[Path]) -> None:
    first, second = files[0].read_bytes(), files[1].read_bytes()
    files[0].write_bytes(second)
    files[1].write_bytes(first)


@pytest.mark.parametrize(
    ("damage", "lost"), [(cut_off, 1), (emptied, 1), (changed, 1), (exchanged, 2)]
)
def test_a_damaged_drawing_is_drawn_again(
    damage: Callable[[list[Path]], None], lost: int, cache: Path
) -> None:
    images = some_images()
    right, first = drawn_by(images)
    assert (first.counts.drawn.total(), first.counts.taken.total()) == (len(images), 0)
    damage(kept_files(cache))
    after, second = drawn_by(images)
    assert after == right and (second.counts.drawn.total(), second.counts.taken.total()) == (
        lost,
        len(images) - lost,
    )
    assert drawn_by(images)[1].counts.taken == {"gold": len(images)}  # and kept anew


def test_the_name_of_a_drawing_is_made_once_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes as long to write an image's whole content as to draw a part of it."""
    made: list[str] = []
    key = GoldRequest.key.fget  # type: ignore[attr-defined]
    monkeypatch.setattr(
        GoldRequest, "key", property(lambda request: made.append(text := key(request)) or text)
    )
    images = some_images(2)
    drawn_by(images)
    assert len(made) == 2 * len(images)  # begun, and asked for
    made.clear()
    assert drawn_by(images)[1].counts.again.total() == min(len(images), LEAST_AGAIN)
    assert len(made) == 2 * len(images)


def test_a_wrong_drawing_with_a_right_digest_discredits_all(
    cache: Path, caplog: pytest.LogCaptureFixture
) -> None:
    images = some_images()
    right, _ = drawn_by(images)
    for path in kept_files(cache):
        wrong = draw_gold(images[0])
        path.write_bytes(hashlib.sha256(path.name.encode() + wrong).digest() + wrong)
    with caplog.at_level(logging.WARNING):
        after, run = drawn_by(images)
    assert after == right and (run.counts.drawn, run.counts.taken) == ({"gold": len(images)}, {})
    assert "is wrong: all is made again" in caplog.text
    assert drawn_by(images)[1].counts.again == {"gold": len(images)}


def test_a_wrong_seed_image_with_a_right_digest_discredits_all(cache: Path) -> None:
    rows = [
        {"seed_source": "render", "seed_prompt": prompt, "seeds": [seed]}
        for prompt in ("One cat and one dog.", "One dog and one cat.")
        for seed in range(2)
    ]
    others = [{"seed_source": "none", "seed_prompt": "One cat and one dog.", "seeds": [0]}, {}]
    requests = [SeedRequest("render:", row["seed_prompt"], row["seeds"][0]) for row in rows]
    with drawing() as run:
        assert kept_seeds(rows) == [None] * 4 and not run.counts.drawn
        right = [run(request) for request in requests]
    with drawing() as run:
        assert kept_seeds([*rows, *others]) == [*right, None, None]
        assert run.counts.again == {"seed": 4}
    with drawing(use_kept=False):
        assert kept_seeds(rows) == [None] * 4
    wrong = hashlib.sha256(requests[0].key.encode()).hexdigest()
    kept_here().put(wrong, b"no image")
    with drawing():
        assert kept_seeds(rows) == [None] * 4


def test_a_file_of_a_bank_is_parsed_once_and_a_wrong_parse_of_it_discredits_all(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    bank = tmp_path / "bank"
    bank.mkdir()
    text = "- {id: 1, label: parsed once, countable: true}\n"
    (bank / "coco.yaml").write_text(text)
    with drawing() as first:
        begin_bank(bank)
        right = read_entries(bank / "coco.yaml", CocoClass)
    assert (first.counts.drawn, right[0].label) == ({"bank": 1}, "parsed once")
    request = FileRequest(text + "# another text, so that no process has read it\n")
    (bank / "coco.yaml").write_text(request.text)
    name = hashlib.sha256(request.key.encode()).hexdigest()
    kept_here().put(name, request.draw().replace(b"parsed once", b"parsed wrong"))
    with drawing() as second, caplog.at_level(logging.WARNING):
        begin_bank(bank)
        assert read_entries(bank / "coco.yaml", CocoClass) == right
    assert "is wrong: all is made again" in caplog.text and second.counts.drawn == {"bank": 1}
    with drawing() as third:
        begin_bank(bank)
    assert (third.counts.drawn, third.counts.taken) == ({}, {"bank": 1})


@pytest.mark.parametrize("value", ["2026-01-01", "{1: a}", ".nan", "!!binary aGk="])
def test_what_json_would_change_is_never_kept(value: str) -> None:
    assert FileRequest(f"- {value}").draw() == b""
    assert FileRequest("- [1, 1.5, true, null, é]").draw() != b""


@pytest.mark.slow
def test_neither_processes_nor_the_order_change_an_image() -> None:
    images = some_images(4)  # more than one process is asked for at once
    right, _ = drawn_by(images)
    shutil.rmtree(kept_files(Path(os.environ["COUNTERPRIOR_CACHE"]))[0].parents[1])
    shuffled = random.Random(0).sample(images, len(images))
    drawn, run = drawn_by(shuffled, jobs=2)
    assert dict(zip(map(repr, shuffled), drawn, strict=True)) == dict(
        zip(map(repr, images), right, strict=True)
    )
    assert run.counts.drawn == {"gold": len(images)} and drawn_by(images, jobs=2)[0] == right


def test_only_a_folder_of_ones_own_is_used(cache: Path, tmp_path: Path) -> None:
    (image, *_) = some_images(1)
    right = draw_gold(image)
    kept = kept_here()
    kept.put("ab", right)
    assert kept.get("ab") == right
    folder = next(cache.glob("drawings/*"))
    folder.chmod(0o777)
    assert Kept(folder).get("ab") is None
    file = tmp_path / "file"
    file.write_text("")
    nowhere = Kept(file / "drawings")
    nowhere.put("ab", right)
    assert nowhere.get("ab") is None and file.read_text() == ""


def test_drawings_of_other_code_are_not_used_and_go_in_time(cache: Path) -> None:
    kept_here()
    old, recent = cache / "drawings" / f"{0:016}", cache / "drawings" / f"{1:016}"
    somebodys = cache / "drawings" / "of my children"
    for folder in (old, recent, somebodys):
        folder.mkdir()
    for folder in (old, somebodys):
        os.utime(folder, (0, 0))
    kept_here()
    names = {path.name for path in (cache / "drawings").iterdir()}
    assert names == {recent.name, somebodys.name, code_digest()[:16]}


def test_two_requests_never_share_a_name() -> None:
    keys = [GoldRequest(image).key for image in some_images(20)]
    keys += [SeedRequest("render:", prompt, seed).key for prompt in "ab" for seed in (1, 2)]
    assert len(set(keys)) == len(keys) and all(keys)
    assert SeedRequest("folder:x", "a", 1).key == ""  # not the renderer's: drawn each time


@pytest.fixture(scope="module")
def small_bank(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The shipped bank with the drawings of three pairs: more than are drawn again as a sample."""
    bank = tmp_path_factory.mktemp("small") / "bank"
    shutil.copytree(DEFAULT_BANK, bank, ignore=shutil.ignore_patterns("world_drawings"))
    for path in (bank / "depictions").glob("*.yaml"):
        listed = (
            yaml.safe_load(path.read_text("utf-8")) if path.stem == "flags_and_heraldry" else []
        )
        path.write_text(yaml.safe_dump(listed[:2]), "utf-8")
        drawn = {entry["id"] for entry in listed[:2]}
        for file in path.with_suffix("").glob("*.svg"):
            if file.stem not in drawn:
                file.unlink()
    return bank


@pytest.mark.slow
@pytest.mark.parametrize("wholly", [False, pytest.param(True, marks=pytest.mark.lane)])
def test_a_release_is_the_same_with_any_cache(
    wholly: bool, small_bank: Path, cache: Path, cli: Any, tmp_path: Path
) -> None:
    def checksums(jobs: int = 1) -> bytes:
        out = tmp_path / "out"
        done = cli("build", "--config", CONFIG, "--bank", small_bank, "--out", out, "--jobs", jobs)
        assert done.returncode == 0, done.stderr
        return (out / "checksums.json").read_bytes()

    empty = checksums(jobs=2)
    files = kept_files(cache)
    assert len(files) > 10
    if not wholly:
        changed(files)
        assert checksums() == empty  # full, but for one
    else:
        wrong = b"no image"
        for path in files:
            path.write_bytes(hashlib.sha256(path.name.encode() + wrong).digest() + wrong)
        assert checksums() == empty
    out = tmp_path / "out"
    count = len(list(iter_records(out, CONFIG)))
    options = ["--redraw", "--jobs", 2] if wholly else []
    checked = cli("validate", out, "--bank", small_bank, *options)
    assert checked.returncode == 0, checked.stderr
    again = f"{count} drawn again" if wholly else f"{LEAST_AGAIN} drawn again, all others"
    assert f"of {count} gold images {again}" in checked.stdout
    path = out / parquet_path(CONFIG)
    table = pq.read_table(path)
    records = table.to_pylist()
    records[0]["image"]["bytes"] = records[0]["image"]["bytes"][:2000]
    pq.write_table(pa.Table.from_pylist(records, schema=table.schema), path)
    done = cli("validate", out, "--bank", small_bank, *options)
    assert done.returncode == 1, done.stderr
    unreadable = [line for line in done.stdout.splitlines() if "not a readable image" in line]
    (only,) = unreadable  # though it is compared with its bank, and with other images
    assert f"{records[0]['id']}:image" in only


def test_redraw_uses_no_drawing_of_an_earlier_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And no sample; the lane above sees that each image is drawn."""
    used: list[bool] = []

    @contextmanager
    def noted(*_: object, use_kept: bool = True) -> Iterator[None]:
        used.append(use_kept)
        yield

    def check(root: Path, *_: object, every: bool, **__: object) -> ReleaseReport:
        used.append(every)
        return ReleaseReport(str(root), ())

    monkeypatch.setattr("counterprior.builders.drawings.drawing", noted)
    monkeypatch.setattr("counterprior.builders.bank.begin_bank", lambda bank: None)
    monkeypatch.setattr("counterprior.cards.validate.validate", check)
    for options, expected in ((["--redraw"], [False, False, True]), ([], [True, True, False])):
        used.clear()
        done = CliRunner().invoke(app, ["validate", str(tmp_path), *options])
        assert (done.exit_code, used) == (0, expected), done.output
