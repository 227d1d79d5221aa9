"""`audit findings`: what readers' labels of real images say, by command and against truth."""

import json
import math
import random
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from subprocess import CompletedProcess

import pytest
import real_images
from refusals import assert_refused, raises
from releases import small_release

from counterprior.builders.suite import SHIPPED
from counterprior.builders.suites.real_gold import build
from counterprior.errors import DataError
from counterprior.eval.core import ALL, Score
from counterprior.eval.engine.data import read_rows
from counterprior.eval.studies import detected
from counterprior.eval.studies.detected import read_detections, scores_of
from counterprior.eval.studies.findings import MEANINGS, TABLES, Findings, _scores, find
from counterprior.readings import ImageReading, columns_of
from counterprior.schema import RealGold, Row

sys.path.append(str(Path(__file__).parents[3] / "tools"))
from findings_page import COLUMN, DETECTIONS, TABLE, renewed

PAGE = (Path(__file__).parents[3] / "docs" / "findings.md").read_text()
REAL = RealGold.model_fields["suite"].default
LEFT_TO_THE_COMMAND = {
    *("one_there", "neither_there", "merged", "first_there", "second_there", "holds_if_both")
}
"""Scores by the readers that the page leaves to the command; of a detector's, it shows some."""


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The release of the shipped labels."""
    return small_release(tmp_path_factory.mktemp("findings") / "release", (REAL,))


@pytest.fixture(scope="module")
def by_detector(published: Path) -> Findings:
    """The findings of the shipped labels and detections."""
    return find(str(published), detections=DETECTIONS)


def relabeled(row: RealGold, reading: ImageReading) -> RealGold:
    """A row as if two readers had seen this."""
    readings = {"r1": reading, "r2": reading}
    return row.model_copy(update=columns_of(readings, dict.fromkeys(readings, "model")))


def released(folder: Path, rows: Sequence[Row]) -> Findings:
    return find(str(small_release(folder / "release", (REAL,), lambda _: list(rows))))


def overall(findings: Findings, group: str = ALL) -> dict[str, Score]:
    return {score.name: score for score in findings.scores if score.group == group}


@pytest.mark.slow
def test_what_is_put_into_labels_comes_out(tmp_path: Path) -> None:
    """GLIDE follows the order of mention and drops the second thing; the others don't."""
    rng = random.Random(1)
    rows = []
    for row in build(SHIPPED, rng):
        follows = row.model == "glide"
        left = "A" if rng.random() < (0.9 if follows else 0.5) else "B"
        dropped = rng.random() < 0.3
        first_is_dropped = dropped and not follows and rng.random() < 0.5
        order = "none" if dropped else left
        reading = ImageReading(
            a="no" if first_is_dropped else "whole",
            b="no" if dropped and not first_is_dropped else "part",
            left=order,
            upper=order,
            front=order,
            sure=3,
        )
        rows.append(relabeled(row, reading))
    findings = released(tmp_path, rows)
    glide, other = overall(findings, "model=glide"), overall(findings, "model=dallev2")
    assert glide["first_left"].interval.low < 90 < glide["first_left"].interval.high
    assert glide["first_left"].p_value < 0.001 and glide["first_left"].q_value < 0.01
    assert other["first_left"].interval.low < 50 < other["first_left"].interval.high
    assert other["first_left"].p_value > 0.01 and other["first_left"].null == 50
    assert glide["first_more_often"].interval.low > 20 and glide["first_there"].value == 100
    assert other["first_more_often"].interval.low < 0 < other["first_more_often"].interval.high
    for score in overall(findings).values():
        if score.name.startswith("kappa") and score.name != "kappa_merged":
            assert score.value == 1


def test_a_prompt_without_a_relation_has_none_that_holds(published: Path) -> None:
    rows = list(read_rows(str(published), REAL).rows)[:40]
    unrelated = [row.model_copy(update={"relation": ""}) for row in rows]
    stated, none, both = (
        {s.name: s for s in _scores(of, ALL)} for of in (rows, unrelated, rows + unrelated)
    )
    for name in TABLES["relation"]:
        assert stated[name].n > 0 == none[name].n and both[name].n == stated[name].n


@pytest.mark.slow
def test_exchanging_both_things_turns_the_effects_around(tmp_path: Path) -> None:
    rows = build(SHIPPED, random.Random())[::4]

    def turned(row: RealGold) -> RealGold:
        readings = [
            ImageReading(a=a, b=b, left=left, upper=upper, front=front, sure=sure).swapped()  # type: ignore[arg-type]
            for a, b, left, upper, front, sure in zip(
                row.a_read,
                row.b_read,
                row.left_read,
                row.upper_read,
                row.front_read,
                row.sure,
                strict=True,
            )
        ]
        columns = columns_of(
            dict(zip(row.readers, readings, strict=True)),
            dict(zip(row.readers, row.reader_kinds, strict=True)),
        )
        names = {"object_a": row.object_b, "object_b": row.object_a}
        return row.model_copy(update={**columns, **names})

    (tmp_path / "plain").mkdir()
    plain = overall(released(tmp_path / "plain", rows))
    exchanged = overall(released(tmp_path, [turned(row) for row in rows]))
    for name, score in plain.items():
        whole = 100 if name in TABLES["order"] else 0
        if name in (*TABLES["order"], "first_more_often"):
            assert exchanged[name].value == pytest.approx(whole - score.value), name
            assert exchanged[name].p_value == pytest.approx(score.p_value), name
        elif not name.startswith(("holds", "first", "second")):
            assert exchanged[name].value == pytest.approx(score.value), name
    assert exchanged["first_there"].value == plain["second_there"].value


@pytest.mark.slow
def test_the_command_prints_every_finding_and_draws_figures(
    published: Path, tmp_path: Path, cli: Callable[..., CompletedProcess[str]]
) -> None:
    done = cli("audit", "findings", "--data", published, "--out", tmp_path / "figures")
    assert done.returncode == 0, done.stderr
    of_readers = set(MEANINGS) - set(detected.MEANINGS)
    assert all(f"{name}: " in done.stdout for name in of_readers)
    assert "by a detector" not in done.stdout
    assert "not compared with their digests" in done.stderr + done.stdout
    figures = sorted(path.name for path in (tmp_path / "figures").iterdir())
    assert figures == ["finding-both-there.svg", "finding-existence.svg", "finding-order.svg"]
    for name in figures:
        drawn = (tmp_path / "figures" / name).read_text()
        assert drawn == (Path(__file__).parents[3] / "docs" / name).read_text(), name
    one = tmp_path / "one.jsonl"
    one.write_text(DETECTIONS.read_text().splitlines()[0] + "\n")
    few = cli("audit", "findings", "--data", published, "--detections", one, "--json")
    assert_refused(few, "different-rows", "no detections of 1,599 of 1,600")


@pytest.mark.lane
def test_the_command_prints_what_a_detector_says(
    published: Path, cli: Callable[..., CompletedProcess[str]]
) -> None:
    printed = cli("audit", "findings", "--data", published, "--detections", DETECTIONS, "--json")
    assert printed.returncode == 0, printed.stderr
    assert {s["name"] for s in json.loads(printed.stdout)["scores"]} == set(MEANINGS)
    assert "nanodet" in printed.stderr + printed.stdout


def spoiled_detections(
    out: Path, rows: Sequence[RealGold], detects: Callable[[str], float]
) -> Path:
    """Detections by a detector that finds a thing with a chance that depends on what is there."""
    rng, lines = random.Random(5), []
    for row in rows:
        places = {"A": (0, 60), "B": (60, 0), "same": (30, 30)}
        left, top = (
            places.get(order) or rng.choice((*places.values(),))
            for order in (row.further_left, row.higher)
        )
        boxes = {
            name: [left[place], top[place], left[place] + 20, top[place] + 20]
            for place, name in enumerate("AB")
        }
        found = [
            {"label": thing, "score": 0.9, "box_xyxy": boxes[name]}
            for name, thing, shown in (
                ("A", row.object_a, row.a_shown),
                ("B", row.object_b, row.b_shown),
            )
            if rng.random() < detects(shown)
        ]
        lines.append(
            {
                "sample_id": row.image_file,
                "image_sha256": row.image_sha256,
                "prompt_id": row.prompt,
                "relation": row.relation,
                "object_a": row.object_a,
                "object_b": row.object_b,
                "width": 100,
                "height": 100,
                "detectors": {"primary": {"type": "test", "detections": found}},
            }
        )
    out.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return out


@pytest.mark.slow
def test_a_detector_that_misses_half_is_corrected_to_what_readers_saw(
    by_detector: Findings, tmp_path: Path
) -> None:
    """It errs alike on all generators, so the labels of the others correct each."""
    rows = build(SHIPPED, random.Random())
    chances = {"there": 0.7, "merged": 0.3, "absent": 0.1, "unsettled": 0.5}
    file = spoiled_detections(tmp_path / "d.jsonl", rows, chances.__getitem__)
    found = [*scores_of(read_detections(file, rows))]
    for model in ("dallemini", "dallev2", "stable_diffusion"):
        scores = overall(by_detector, f"model={model}")
        scores |= {score.name: score for score in found if score.group == f"model={model}"}
        for name, readers in (
            ("detected_both", "both_there"),
            ("visor_uncond", "holds_unconditional"),
            ("pse_half", "holds_unconditional"),
            ("detected_more_often", "first_more_often"),
            ("detected_left", "first_left"),
        ):
            low, high = scores[f"{name}_by_gold"].interval
            assert low < scores[readers].value < high, (model, name)
            assert scores[f"{name}_by_gold"].n == scores[name].n or name == "detected_left"
        assert scores["detected_both"].interval.high < scores["both_there"].value, model
    perfect = {"there": 1.0, "unsettled": 1.0, "merged": 0.0, "absent": 0.0}
    file = spoiled_detections(tmp_path / "d.jsonl", rows, perfect.__getitem__)
    found = [*scores_of(read_detections(file, rows))]
    scores = {score.name: score for score in found if score.group == ALL}
    seen = overall(by_detector)
    for name, readers in (("detected_both", "both_there"), ("detected_first", "first_there")):
        assert scores[name].value == pytest.approx(seen[readers].value, abs=0.5)
    assert not {name for name in scores if "by_gold" in name}


@pytest.mark.slow
def test_every_interval_allows_for_things_that_come_again_in_other_pairs(
    by_detector: Findings, tmp_path: Path
) -> None:
    """The same labels and detections as if no thing were in two pairs."""

    def apart(row: RealGold) -> RealGold:
        pair = "/".join(sorted((row.object_a, row.object_b)))
        names = {name: f"{getattr(row, name)} of {pair}" for name in ("object_a", "object_b")}
        return row.model_copy(update=names)

    rows = build(SHIPPED, random.Random())
    alone = {s.name: s for s in released(tmp_path, [*map(apart, rows)]).scores if s.group == ALL}
    recurring = overall(by_detector)
    for name in ("kappa_presence", "kappa_left", "both_there"):
        assert recurring[name].value == pytest.approx(alone[name].value)
        assert recurring[name].interval.width > 1.05 * alone[name].interval.width, name
    searched = [replace(image, row=apart(image.row)) for image in read_detections(DETECTIONS, rows)]
    group = "model=dallev2"
    alone = {score.name: score for score in scores_of(searched) if score.group == group}
    recurring = overall(by_detector, group)
    for name in ("detected_both", "pse_half", "checker_pass", "detected_more_often"):
        corrected = f"{name}_by_gold"
        assert recurring[corrected].value == alone[corrected].value
        assert recurring[corrected].interval.width > 1.1 * alone[corrected].interval.width, name


def test_what_the_page_says_of_corrected_numbers_is_so(by_detector: Findings) -> None:
    assert {score.name for score in by_detector.scores} == set(MEANINGS)
    by_model = {
        model: overall(by_detector, f"model={model}")
        for model in ("dallemini", "dallev2", "stable_diffusion", "glide")
    }
    glide = by_model.pop("glide")
    undefined = {n for n, s in glide.items() if n.endswith("_by_gold") and math.isnan(s.value)}
    assert len(undefined) == 4
    assert glide["detected_both_by_gold"].interval.high < glide["both_there"].value
    apart = by_model["stable_diffusion"]["found_if_both"].interval
    assert glide["found_if_both"].interval.high < apart.low
    for model, scores in by_model.items():
        for name, readers in (
            ("detected_both", "both_there"),
            ("visor_uncond", "holds_unconditional"),
            ("visor_cond", "holds_if_clear"),
            ("pse_half", "holds_unconditional"),
            ("checker_pass", "holds_unconditional"),
            ("detected_more_often", "first_more_often"),
            ("detected_left", "first_left"),
        ):
            low, high = scores[f"{name}_by_gold"].interval
            assert low < scores[readers].value < high, (model, name)
    for scores in (glide, *by_model.values()):
        for score in (scores["detected_more_often"], scores["detected_more_often_by_gold"]):
            assert score.interval.low < 0 < score.interval.high


def test_detections_of_other_images_are_refused(tmp_path: Path) -> None:
    rows = build(SHIPPED, random.Random())
    lines = DETECTIONS.read_text().splitlines()
    file = tmp_path / "d.jsonl"
    for spoil, code, words in (
        ({"image_sha256": "0" * 64}, "changed-file", "another file of this name"),
        ({"relation": "below", "verdict_raw": None}, "different-rows", "is not what the prompt"),
        ({"sample_id": "glide/else.png"}, "different-rows", "no detections of 1 of 1,600"),
    ):
        changed = json.dumps(json.loads(lines[0]) | spoil)
        file.write_text("\n".join([changed, *lines[1:]]) + "\n")
        with raises(code, words, error=DataError):
            read_detections(file, rows)


def test_labels_of_own_images_have_findings_too(tmp_path: Path) -> None:
    labels = real_images.write(tmp_path / "images")
    scores = overall(find(str(labels), tmp_path / "images"))
    assert scores["both_there"].value == pytest.approx(100 * 4 / 6)
    assert scores["kappa_left"].value == 1
    assert math.isnan(scores["first_left"].value) and scores["first_left"].n == 0


def test_one_reader_is_not_enough(tmp_path: Path) -> None:
    labels = real_images.write(tmp_path / "images")
    lines = [json.loads(line) for line in labels.read_text().splitlines()]
    lines[3]["votes"].pop("bo")
    labels.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with raises("too-few-items", "two readers", error=DataError):
        find(str(labels))


def test_every_number_of_the_page_is_the_commands(by_detector: Findings) -> None:
    assert renewed(PAGE, by_detector) == PAGE, "run: python tools/findings_page.py RELEASE"
    tables = "".join(TABLE.findall(PAGE))
    heads = "".join(table.splitlines()[0] for table in TABLE.findall(PAGE))
    shown = {name for _, name in COLUMN.findall(heads)}
    of_readers = set(MEANINGS) - set(detected.MEANINGS)
    assert shown <= set(MEANINGS) and of_readers - shown == LEFT_TO_THE_COMMAND
    prose = re.sub(r"```[\s\S]*?```|\]\([^)]*\)|`[^`]*`", "", TABLE.sub("", PAGE))
    assert set(re.findall(r"-?\d+\.\d+", prose)) <= set(re.findall(r"-?\d+\.\d+", tables))


def test_a_number_that_is_not_the_commands_is_seen(by_detector: Findings) -> None:
    spoiled = re.sub(r"(?<=\| )\d\.\d{3}(?= \()", "0.123", PAGE, count=1)
    assert spoiled != PAGE and renewed(spoiled, by_detector) == PAGE
