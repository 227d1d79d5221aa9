"""Rows that were changed: a release whose row does not fit, and labels that name a column twice."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from refusals import raises
from releases import RULES, small_release

from counterprior.eval.engine.data import _rows_of, read_rows
from counterprior.eval.selftest import rows as trials
from counterprior.human_labels import read_labels
from counterprior.parsing import RowError
from counterprior.release import ReleaseError, parquet_path

SUITE = "t2i_homogenization"
CHANGES: dict[str, dict[str, Any]] = {
    "a long id": {"id": "x" * 5_000},
    "an id that leads elsewhere": {"id": "../../etc/passwd"},
    "no id": {"id": None},
    "seeds that are texts": {"seeds": ["a"]},
    "an unknown field": {"surplus": 1},
    "no field at all": {"prompt": ...},
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_row_that_does_not_fit_is_named(name: str, survived: Callable[[str, bool], None]) -> None:
    row = trials.neutral(*trials.pairs(trials.STOUT)[0]).model_dump(mode="json")
    field = next(iter(CHANGES[name]))
    for key, value in CHANGES[name].items():
        row = {**row, key: value}
        if value is ...:
            row = {"id": row["id"]}
            field = "row"
    with raises("changed-file", f"rel, {SUITE}, row", field, error=ReleaseError) as caught:
        _rows_of(iter([row]), SUITE, "rel")
    well = "\n" not in str(caught.value) and len(str(caught.value)) < 400
    survived("rows that do not fit", well)
    assert well


def test_kept_rows_are_those_of_the_file_as_it_is(tmp_path: Path) -> None:
    data = str(small_release(tmp_path / "release"))
    rows = read_rows(data, RULES).rows
    assert rows and read_rows(data, RULES).rows[0] is rows[0]
    path = tmp_path / "release" / parquet_path(RULES)
    pq.write_table(pq.read_table(path).slice(1), path)
    with raises("changed-file", f"{data}, {RULES}", error=ReleaseError):
        read_rows(data, RULES)


def test_labels_of_a_file_that_names_a_column_twice_are_refused(tmp_path: Path) -> None:
    table = tmp_path / "l.csv"
    table.write_text("case,label,label\na,x,y\n")
    with raises("duplicate-id", ":1:", "'label'", error=RowError):
        read_labels(table)
    lines = tmp_path / "l.jsonl"
    lines.write_text('{"case": "a", "label": "x"}\n{"case": "b", "label": "x", "label": "y"}\n')
    with raises("bad-json", ":2:", "'label' is there twice", error=RowError):
        read_labels(lines)


def test_an_earlier_click_that_stands_later_does_not_win(tmp_path: Path) -> None:
    lines = tmp_path / "l.jsonl"
    row = '{{"case": "a", "label": "{}", "annotator": "ann", "clicked": "2026-01-01T{}:00:00Z"}}\n'
    lines.write_text("\ufeff" + row.format("A", "10") + row.format("B", "09"))
    assert [label.label for label in read_labels(lines)] == ["A"]
