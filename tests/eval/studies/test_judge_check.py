"""`judge-check`: judges on gold images, and pairs that are left out of their scores."""

import json
import math
import random
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from subprocess import CompletedProcess

import gold_judges
import pytest
from PIL import Image, ImageOps
from releases import small_release

from counterprior.builders import suite
from counterprior.builders.build import as_released
from counterprior.builders.depictions import Depiction, read_depictions
from counterprior.builders.suites import t2i_correctness
from counterprior.cards.facts import read_facts
from counterprior.cards.validate import Origin, differences
from counterprior.errors import DataError
from counterprior.eval.engine.data import Rows, read_rows
from counterprior.eval.engine.evaluation import RunSettings
from counterprior.eval.engine.steps import evaluate_run
from counterprior.eval.results.judge_check import JudgeCheck, read_checks
from counterprior.eval.results.scoring import ScoreSettings, score_run
from counterprior.eval.studies.judge_check import check_judges
from counterprior.images import encode_png
from counterprior.release import iter_records
from counterprior.schema import T2ICorrectnessGold

GOLD = "t2i_correctness_gold"
FEW = {"flag-france", "clock-9-15"}


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The gold images of three pairs."""

    def few(bank: Path) -> dict[str, list[Depiction]]:
        return {
            domain: [d for d in listed if d.id in FEW]
            for domain, listed in read_depictions(bank).items()
        }

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(suite, "read_depictions", few)
        patch.setattr(suite, "SHIPPED", suite.Banks(suite.SHIPPED.root))
        return small_release(tmp_path_factory.mktemp("gold") / "release", (GOLD,))


def test_judges_are_checked_by_command(
    release: Path, tmp_path: Path, cli: Callable[..., CompletedProcess[str]]
) -> None:
    judges = ("--judge", "python:gold_judges:seeing", "--judge", "python:gold_judges:knowing")
    done = cli("judge-check", *judges, "--data", release, "--out", tmp_path / "gold")
    assert done.returncode == 0, done.stderr
    assert "0 of 3 pairs are excluded" in done.stdout
    assert "3 of 3 pairs are excluded for this judge" in done.stdout
    assert "flags-and-heraldry-france-blue-red" in done.stdout
    knowing, seeing = read_checks(tmp_path / "gold")  # by name
    assert seeing.judge == "python:gold_judges:seeing" and seeing.misled == {}
    assert knowing.confusion["swapped"] == {"correct": 6} and len(knowing.misled) == 3
    results = json.loads((tmp_path / "gold" / "scores.json").read_text())
    of_all = [{s["name"]: s for s in r["scores"] if s["group"] == "all"} for r in results]
    names = ("recognized", "swapped_called_correct", "controls_recognized")
    assert [[scores[name]["value"] for name in names] for scores in of_all] == [
        [50, 100, 0],
        [100, 0, 100],
    ]
    assert of_all[0]["recognized"]["n"] == 12
    clocks = next(
        s
        for s in results[0]["scores"]
        if s["name"] == "recognized" and s["group"] == "domain=clocks_and_dials"
    )
    assert clocks["n"] == 4 and clocks["interval"][0] < 50 < clocks["interval"][1]


def test_misled_pairs_are_left_out_of_scores_and_said(release: Path, tmp_path: Path) -> None:
    check_judges(str(release), tmp_path / "gold", ["python:gold_judges:knowing"])
    (check,) = read_checks(tmp_path / "gold")
    found = constrained_rows(check)
    run = RunSettings(suite="t2i_correctness", data="none", out=tmp_path / "run")
    judges = ["python:gold_judges:knowing", "python:gold_judges:seeing"]
    evaluate_run(run, draw_nothing, judges, found=found)
    with pytest.raises(DataError, match="judge-check"):
        score_run(run.out, ScoreSettings(gold=tmp_path / "gold"))
    chosen = ScoreSettings(gold=tmp_path / "gold", judges=("python:gold_judges:knowing",))
    (judged,) = score_run(run.out, chosen)
    assert judged.whole["accuracy_reverse"].n == 1  # the pair without gold images
    assert any("3 pairs are left out" in note for note in judged.result.notes)
    assert judged.result.card.gold["swapped"] == {"correct": 6}
    (plain,) = score_run(run.out, ScoreSettings(judges=chosen.judges))
    assert plain.whole["accuracy_reverse"].n == 4


def test_a_pair_without_a_verdict_on_its_swapped_image_is_unchecked(
    release: Path, tmp_path: Path
) -> None:
    found = check_judges(str(release), tmp_path / "gold", [gold_judges.refusing()])
    (check,), (judged,) = found.checks, found.judged
    assert check.pairs == 0 and len(check.unchecked) == 3 and not check.misled
    swapped = judged.whole["swapped_recognized"]
    assert math.isnan(swapped.value) and swapped.excluded == {"refused": 6}


def test_the_images_are_those_of_the_release(release: Path, tmp_path: Path) -> None:
    found = check_judges(str(release), tmp_path / "gold", [gold_judges.seeing()])
    digests = {image.sha256 for image in found.done.run.images().values()}
    assert digests == {row.image_sha256 for row in read_rows(str(release), GOLD).rows}


def test_validate_compares_the_pixels_with_the_bank(release: Path) -> None:
    (config,) = read_facts(release).configs
    records = list(iter_records(release, GOLD))
    rows = [T2ICorrectnessGold.model_validate(record) for record in records]
    origin = Origin("", lambda name, seed: None, as_released)
    assert not list(differences(config, records, list(rows), origin))
    with Image.open(BytesIO(records[0]["image"]["bytes"])) as image:
        same = encode_png(image, level=9)
        other = encode_png(ImageOps.mirror(image.convert("RGB")))
    for data, faults in ((same, 0), (other, 1), (b"nothing", 1), (None, 1)):
        forged = [records[0] | {"image": data and {"bytes": data, "path": "a.png"}}, *records[1:]]
        found = list(differences(config, forged, list(rows), origin))
        assert [problem.field for problem in found] == ["image"] * faults


def draw_nothing(prompt: str, seed: int) -> Image.Image:
    return Image.new("RGB", (64, 64), (seed % 256, len(prompt) % 256, 0))


def constrained_rows(check: JudgeCheck) -> Rows:
    """The rows of the pairs of a check, and one more."""
    made = t2i_correctness.build(suite.SHIPPED, random.Random(0))
    named = [row for row in made if row.id in check.misled]
    return Rows.of([*named, next(row for row in made if row.id not in check.misled)])
