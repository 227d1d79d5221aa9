"""`audit findings`: what readers' labels of real images say, by command and against truth."""

import json
import math
import random
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from subprocess import CompletedProcess

import pytest
import real_images
from refusals import raises
from releases import small_release

from counterprior.builders.suite import SHIPPED
from counterprior.builders.suites.real_gold import build
from counterprior.errors import DataError
from counterprior.eval.core import ALL, Score
from counterprior.eval.studies.findings import MEANINGS, TABLES, Findings, find
from counterprior.readings import ImageReading, columns_of
from counterprior.schema import RealGold, Row

sys.path.append(str(Path(__file__).parents[3] / "tools"))
from findings_page import COLUMN, TABLE, renewed

PAGE = (Path(__file__).parents[3] / "docs" / "findings.md").read_text()
REAL = RealGold.model_fields["suite"].default


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The release of the shipped labels."""
    return small_release(tmp_path_factory.mktemp("findings") / "release", (REAL,))


def relabeled(row: RealGold, reading: ImageReading) -> RealGold:
    """A row as if two readers had seen this."""
    readings = {"r1": reading, "r2": reading}
    return row.model_copy(update=columns_of(readings, dict.fromkeys(readings, "model")))


def released(folder: Path, rows: Sequence[Row]) -> Findings:
    return find(str(small_release(folder / "release", (REAL,), lambda _: list(rows))))


def overall(findings: Findings, group: str = ALL) -> dict[str, Score]:
    return {score.name: score for score in findings.scores if score.group == group}


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


def test_exchanging_both_things_turns_the_effects_around(tmp_path: Path) -> None:
    rows = build(SHIPPED, random.Random())

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


def test_the_command_prints_every_finding_and_draws_figures(
    published: Path, tmp_path: Path, cli: Callable[..., CompletedProcess[str]]
) -> None:
    done = cli("audit", "findings", "--data", published, "--out", tmp_path / "figures")
    assert done.returncode == 0, done.stderr
    assert all(f"{name}: " in done.stdout for name in MEANINGS)
    assert "not compared with their digests" in done.stderr + done.stdout
    figures = sorted(path.name for path in (tmp_path / "figures").iterdir())
    assert figures == ["finding-both-there.svg", "finding-existence.svg", "finding-order.svg"]
    for name in figures:
        drawn = (tmp_path / "figures" / name).read_text()
        assert drawn == (Path(__file__).parents[3] / "docs" / name).read_text(), name
    printed = cli("audit", "findings", "--data", published, "--json")
    assert {s["name"] for s in json.loads(printed.stdout)["scores"]} == set(MEANINGS)


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


def test_every_number_of_the_page_is_the_commands(published: Path) -> None:
    assert renewed(PAGE, find(str(published))) == PAGE, "run: python tools/findings_page.py RELEASE"
    tables = "".join(TABLE.findall(PAGE))
    heads = "".join(table.splitlines()[0] for table in TABLE.findall(PAGE))
    assert {name for _, name in COLUMN.findall(heads)} == set(MEANINGS)
    prose = re.sub(r"```[\s\S]*?```|\]\([^)]*\)|`[^`]*`", "", TABLE.sub("", PAGE))
    assert set(re.findall(r"-?\d+\.\d+", prose)) <= set(re.findall(r"-?\d+\.\d+", tables))


def test_a_number_that_is_not_the_commands_is_seen(published: Path) -> None:
    spoiled = re.sub(r"(?<=\| )\d\.\d{3}(?= \()", "0.123", PAGE, count=1)
    assert spoiled != PAGE and renewed(spoiled, find(str(published))) == PAGE
