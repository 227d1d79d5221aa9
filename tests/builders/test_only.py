"""`build --only`: the rows of one entry are those of a release, and so are their images."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from counterprior.builders.bank import DEFAULT_BANK
from counterprior.builders.gold import draw_gold
from counterprior.builders.suite import SHIPPED
from counterprior.builders.suites.t2i_correctness_gold import images_of
from counterprior.release import iter_records, parquet_path
from counterprior.schema import image_columns

PAIR = "flags-and-heraldry-france-blue-red"
SCENE = "physics-astronomy-moon-self-luminous-eight-positions"
SHOWN = {
    PAIR: {"t2i_correctness": 1, "t2i_correctness_gold": 7},
    SCENE: {
        "counterfactual": 3,
        "altered_worlds": 4,
        "altered_worlds_gold": 4,
    },
    "fall": {"rule_decoupling": 6},
}


def shown_by(cli: Any, entry: str, out: Path, *options: object) -> dict[str, list[dict[str, Any]]]:
    done = cli("build", "--only", entry, "--out", out, *options)
    assert done.returncode == 0, done.stderr
    shown: dict[str, list[dict[str, Any]]] = json.loads(done.stdout)
    count = sum(map(len, shown.values()))
    rows = f"{count} row{'s' * (count > 1)}"
    assert f"{entry}: {rows} of {', '.join(shown)}; " in done.stderr
    assert not out.exists()  # no release
    return shown


def check_images(shown: dict[str, list[dict[str, Any]]], images: Path) -> set[str]:
    """The digests of all images, each of which lies in the folder."""
    pictured = [(row, row[n]) for name in shown for row in shown[name] for n in image_columns(name)]
    for row, image in pictured:
        assert hashlib.sha256((images / image).read_bytes()).hexdigest() == row["image_sha256"]
    assert len(pictured) == (len(list(images.iterdir())) if images.exists() else 0)
    return {row["image_sha256"] for row, _ in pictured}


def ids_of(release: Path, config: str, names: set[str]) -> list[str]:
    things = ("first", "second", "left", "right")
    return [
        record["id"]
        for record in iter_records(release, config)
        if names & {record[thing]["name"] for thing in things if thing in record}
    ]


@pytest.mark.slow
@pytest.mark.parametrize("entry", SHOWN)
def test_the_rows_of_an_entry_are_those_of_a_release(
    entry: str, cli: Any, full_release: Path, tmp_path: Path
) -> None:
    shown = shown_by(cli, entry, tmp_path / "out")
    assert {name: len(rows) for name, rows in shown.items()} == SHOWN[entry]
    for config in (name for name in shown if not image_columns(name)):
        if (full_release / parquet_path(config)).exists():  # a bank need not have the others
            released = {record["id"]: record for record in iter_records(full_release, config)}
            assert shown[config] == [released[row["id"]] for row in shown[config]]
    digests = check_images(shown, tmp_path / "out-only")
    if entry == PAIR:
        drawable = SHIPPED.drawables[PAIR]
        drawn = [draw_gold(drawable.image(*version)) for version in images_of(drawable)]
        assert digests == {hashlib.sha256(image).hexdigest() for image in drawn}


@pytest.mark.slow
def test_an_occupation_is_shown_with_the_seed_images_of_its_rows(
    cli: Any, full_release: Path, tmp_path: Path
) -> None:
    options = ("--config", "t2i_homogenization", "--config", "i2i_correctness")
    shown = shown_by(cli, "postal worker", tmp_path / "out", *options)
    names = {"male postal worker", "female postal worker"}
    for config in ("t2i_homogenization", "i2i_correctness"):
        ids = ids_of(full_release, config, names)
        assert ids and [row["id"] for row in shown[config]] == ids
    assert check_images(shown, tmp_path / "out-only")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "facts"),
    [
        (("--only", f"{PAIR}x"), ("unknown-name", PAIR, "did you mean")),
        (("--only", PAIR, "--config", "rule_decoupling"), ("nothing-to-do", "t2i_correctness")),
        (("--only", PAIR, "--seed-images", "none"), ("conflicting-options", "--only")),
    ],
)
def test_what_can_not_be_shown_is_refused_with_a_hint(
    options: tuple[str, ...], facts: tuple[str, ...], cli: Any, tmp_path: Path
) -> None:
    done = cli("build", *options, "--out", tmp_path / "out")
    assert (done.returncode, done.stdout) == (2, "")
    assert all(fact in done.stderr for fact in facts), done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_an_entry_that_a_release_has_no_room_for_is_named(cli: Any, tmp_path: Path) -> None:
    entry = "thermodynamics-heat-only-down-level-rod"
    assert entry in (DEFAULT_BANK / "counterfactual/thermodynamics.yaml").read_text()
    done = cli("build", "--only", entry, "--out", tmp_path / "out")
    assert done.returncode == 1 and f"{entry}: a release takes no row of it" in done.stderr
