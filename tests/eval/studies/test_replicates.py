"""Several trainings of a condition in one line of a table, and a study without its images."""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from refusals import raises

from counterprior.errors import DataError, UsageError
from counterprior.eval.engine.data import Rows
from counterprior.eval.selftest.trials import homogenization_trials
from counterprior.eval.stats.replicates import page_trend
from counterprior.eval.studies import runner
from counterprior.eval.studies.folder import Study
from counterprior.eval.studies.formats import format_table
from counterprior.eval.studies.packed import pack_study, unpacked
from counterprior.eval.studies.runner import run_study
from counterprior.eval.studies.table import StudyTable, study_table
from counterprior.eval.studies.table_layout import TableLayout

HOM = "t2i_homogenization"
BIASES = {"a": (0, 0.2, 0.1), "b": (1.0, 1.3, 0.8), "c": (3.0, 3.5, 2.6)}
"""Condition -> the order bias of three generators, in logits."""


def study_of() -> dict[str, Any]:
    lines: dict[str, Any] = {name: {"generator": f"{name}-?"} for name in BIASES}
    lines |= {
        "b-1": {},
        "c less a": {"generator": "c-?", "less": "a-?"},
        "preview less switch": {"generator": "c-?+preview-2", "less": "c-?+a2b-0"},
        "trend": {"generator": ["a-?", "b-?", "c-?"]},
        "settled": {"generator": "c-?", "method": "preview-0", "score": "replicates:settled"},
        "settled later": {"generator": "c-?", "method": "preview-2", "score": "replicates:settled"},
        "switched": {"generator": "c-?", "method": "a2b-0", "score": "replicates:success"},
    }
    names = ("order_effect", "hom", "valid")
    columns = [{"label": n, "suite": HOM, "score": f"replicates:{n}"} for n in names]
    columns.append({"label": "p", "suite": HOM, "score": "p:replicates:order_effect"})
    columns.append({"label": "grade", "suite": HOM, "score": "scorer:grade"})
    return {
        "data": "trial",
        "suites": {HOM: {"seeds": 2}},
        "generators": {
            f"{name}-{n}": f"render:?order_bias={bias}&decides=3"
            for name, biases in BIASES.items()
            for n, bias in enumerate(biases, 1)
        },
        "methods": {
            "preview-0": "preview:?at=0",
            "preview-2": "preview:?at=2",
            "a2b-0": "switch:a2b?at=0",
        },
        "judges": {"p": "scene"},
        "scorers": {"grade": "sprites"},
        "margins": {"valid": 20, "grade": 0.2},
        "except": [
            {"generator": "[ab]-*+*"},
            {"generator": "*+*", "judge": "grade"},
        ],
        "unchecked": True,
        "table": {"title": "t", "figure": "intervals", "lines": lines, "columns": columns},
    }


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Study:
    rows = Rows.of(next(homogenization_trials()).rows[:4])
    file = tmp_path_factory.mktemp("s") / "s.yaml"
    file.write_text(yaml.safe_dump(study_of(), sort_keys=False))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "read_rows", lambda *_: rows)
        result = run_study(file, file.parent / "study")
    assert not result.failures
    return result.study


@pytest.fixture(scope="module")
def table(done: Study) -> StudyTable:
    return study_table(done)


def score(table: StudyTable, line: str, column: str) -> Any:
    cells = next(entry.cells for entry in table.lines if entry.name == line)
    return cells[[c.label for c in table.columns].index(column)].score


def test_a_line_of_replicates_pools_them_with_a_wider_interval(table: StudyTable) -> None:
    assert table.complete
    one, three = score(table, "b-1", "order_effect"), score(table, "b", "order_effect")
    counted = [s.n + sum(s.excluded.values()) for s in (one, three)]
    assert counted == [16, 48] and "one training" in one.warning
    effects = [score(table, name, "order_effect").value for name in BIASES]
    assert effects == sorted(effects) and effects[0] < 40 < effects[2]
    assert three.interval.low < three.value < three.interval.high and not three.warning
    assert 0 < score(table, "b-1", "p").value <= 1 and score(table, "b", "p") is None
    assert score(table, "c", "hom").value > 60 and score(table, "c", "valid").value > 80


def test_a_difference_is_paired_and_has_a_claim(table: StudyTable) -> None:
    less = score(table, "c less a", "order_effect")
    apart = [score(table, name, "order_effect").value for name in ("c", "a")]
    assert less.value == pytest.approx(apart[0] - apart[1])
    assert less.interval.low < less.value < less.interval.high <= 200
    assert any(note.startswith("valid: ") and "20.0" in note for note in table.notes)
    assert any(note.startswith("grade: ") for note in table.notes)
    grades = [score(table, name, "grade").value for name in ("c", "a")]
    assert score(table, "c less a", "grade").value == pytest.approx(grades[0] - grades[1])
    # Each under a method: a preview, and images that follow the other prompt.
    assert score(table, "preview less switch", "order_effect").value > 100


@pytest.mark.slow
def test_where_nothing_is_subtracted_there_is_no_number(done: Study) -> None:
    wrong = study_of()
    wrong["table"]["lines"]["c less a"]["less"] = "d-?"  # as of a study with other trainings
    layout = TableLayout.model_validate(wrong["table"])
    assert score(study_table(done, layout), "c less a", "order_effect") is None
    assert score(study_table(done, layout), "c less a", "grade") is None


def test_conditions_in_order_have_a_trend(table: StudyTable, done: Study) -> None:
    trend = score(table, "trend", "order_effect")
    layout = {"title": "t", "columns": study_of()["table"]["columns"][:1]}
    alone = study_table(done, done.file.table.model_validate(layout))  # type: ignore[union-attr]
    own = {line.name: line.cells[0].score for line in alone.lines}
    rows = [[own[f"{name}-{n}"].value for name in BIASES] for n in (1, 2, 3)]
    expected = page_trend(np.array(rows))
    assert trend.value == pytest.approx(expected.value)
    assert score(table, "trend", "p").value == pytest.approx(expected.p_value)
    assert "0.0" in format_table(table, "md")


SHARES = "60/75/90"


def doses_of(done: Study, *scores: str, lines: tuple[str, ...] = ("a-?", "b-?", "c-?")) -> Any:
    columns = [{"label": s, "suite": HOM, "score": f"dose:{s}"} for s in scores]
    layout = {"title": "t", "lines": {"all": {"generator": [*lines]}}, "columns": columns}
    table = study_table(done, done.file.table.model_validate(layout))  # type: ignore[union-attr]
    return [cell.score for cell in table.lines[0].cells]


@pytest.mark.slow
def test_conditions_that_are_shares_of_captions_predict_another(
    done: Study, table: StudyTable
) -> None:
    gain, at_85, at_75, error = doses_of(
        done,
        f"gain:{SHARES}",
        f"predicted:85:{SHARES}",
        f"predicted:75:{SHARES}",
        f"error:75:{SHARES}",
    )
    assert gain.unit == "1" and 1 < gain.value < 3 and gain.interval.low > 0.3
    seen = [score(table, name, "order_effect").value for name in BIASES]
    assert seen[1] < at_85.value < seen[2] and at_85.value in at_85.interval
    assert at_85.n == gain.n == sum(score(table, name, "order_effect").n for name in BIASES)
    assert error.value == pytest.approx(seen[1] - at_75.value) and error.unit == "%"
    (alone,) = doses_of(done, "gain:60/90", lines=("a-?", "c-?"))
    assert alone.value != gain.value
    assert doses_of(done, "gain:60/90", lines=("a-?", "c-1")) == [None]


@pytest.mark.parametrize(
    ("name", "code", "fact"),
    [
        ("gain:60/75", "wrong-count", "3 conditions"),
        (f"gain:75:{SHARES}", "bad-option", "gain:75"),
        (f"predicted:{SHARES}", "bad-option", "predicted:75"),
        (f"predicted:75/80:{SHARES}", "bad-option", "75/80"),
        ("gain:60/much/90", "bad-option", "60/much/90"),
        ("gain:60/50/90", "out-of-range", "50 %"),
        (f"predicted:100:{SHARES}", "out-of-range", "100 %"),
        (f"error:80:{SHARES}", "unknown-name", "80 %"),
        (f"gains:{SHARES}", "unknown-name", "dose:gains"),
    ],
)
def test_a_malformed_dose_is_refused(done: Study, name: str, code: str, fact: str) -> None:
    with raises(code, fact, error=UsageError):
        doses_of(done, name)


def test_previews_settle_and_a_switch_at_the_start_is_followed(table: StudyTable) -> None:
    early, late = (score(table, n, "valid") for n in ("settled", "settled later"))
    assert early.interval.high < 100 == late.value
    assert score(table, "switched", "valid").value > 85


@pytest.mark.slow
def test_a_packed_study_gives_the_same_tables_without_images(
    done: Study, table: StudyTable, tmp_path: Path, cli: Callable[..., Any]
) -> None:
    packed = tmp_path / "study.zip"
    printed = cli("study", "pack", done.root, "--out", packed)
    assert printed.returncode == 0 and packed.stat().st_size < 400_000, printed.stderr
    with zipfile.ZipFile(packed) as file:
        left_out = (".png", ".lock", "/checked.txt")
        assert not [name for name in file.namelist() if name.endswith(left_out)]
    assert cli("study", "table", packed).stdout == format_table(table, "md")
    first = packed.read_bytes()
    pack_study(done.root, packed)
    assert packed.read_bytes() == first
    with raises("bad-option", ".zip", error=UsageError):
        pack_study(done.root, tmp_path / "study.tar")
    partial = tmp_path / "partial"
    shutil.copytree(done.root, partial)
    run = partial / "runs" / HOM / "a-1"
    lines = (run / "images.jsonl").read_text().splitlines(keepends=True)
    (run / "images.jsonl").write_text("".join(lines[:-1]))
    with raises("incomplete-run", "a-1", error=UsageError):
        pack_study(partial, tmp_path / "partial.zip")


def test_a_file_that_is_no_packed_study_is_refused(tmp_path: Path) -> None:
    bad = tmp_path / "bad.zip"
    bad.write_bytes(b"no archive")
    with raises("damaged-file", "bad.zip", error=DataError), unpacked(bad):
        pass
    for method, head in ((zipfile.ZIP_LZMA, 9), (zipfile.ZIP_DEFLATED, 0)):
        with zipfile.ZipFile(bad, "w", method) as file:
            file.writestr("study.yaml", "data: x\n" * 100)
            start = file.infolist()[0].header_offset + 30 + len("study.yaml")
        content = bytearray(bad.read_bytes())
        content[start + head : start + head + 7] = b"\xff" * 7
        bad.write_bytes(content)
        with raises("damaged-file", "bad.zip", error=DataError), unpacked(bad):
            pass
    for name in ("../study.yaml", "/study.yaml", "program.py"):
        with zipfile.ZipFile(bad, "w") as file:
            file.writestr(name, "data: x")
        with raises("bad-format", "bad.zip", error=DataError), unpacked(bad):
            pass
