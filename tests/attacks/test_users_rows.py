"""Rows of a user's own file that can't be used are refused before the first image, in one line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from forking import ForkingCommand
from refusals import assert_refused

from counterprior.eval.selftest import rows as trials

Records = list[dict[str, Any]]


def first(**values: Any) -> Callable[[Records], Records]:
    """Changes fields of the second row."""
    return lambda rows: [rows[0], {**rows[1], **values}, *rows[2:]]


CHANGES: dict[str, tuple[Callable[[Records], Records], str, str]] = {
    "an id twice": (lambda rows: [*rows, rows[1]], ":4: id: ", "duplicate-id"),
    "an empty id": (first(id=""), ":2: id: ", "bad-value"),
    "another id": (first(id="mine"), ":2: ", "bad-value"),
    "no seeds": (first(seeds=[]), ":2: seeds: ", "bad-value"),
    "negative seeds": (first(seeds=[1, -1]), ":2: seeds: ", "bad-value"),
    "no rows": (lambda rows: [], ": no rows", "nothing-to-do"),
}


def refused(cli: ForkingCommand, suite: str, file: Path, code: str, place: str) -> bool:
    """Whether an evaluation of a file says what is wrong and makes nothing."""
    out = file.with_name("run")
    words = ("eval", "--suite", suite, "--data", file, "--generator", "render:")
    done = cli(*words, "--judge", "pixels:", "--out", out)
    assert_refused(done, code, f"{file}{place}")
    return not out.exists()


@pytest.mark.parametrize("name", CHANGES)
def test_a_row_that_cannot_be_used_is_named(
    name: str, tmp_path: Path, cli: ForkingCommand, survived: Callable[[str, bool], None]
) -> None:
    change, place, code = CHANGES[name]
    rows = [
        trials.neutral(*pair).model_dump(mode="json") for pair in trials.pairs(trials.STOUT)[:3]
    ]
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in change(rows)))
    well = refused(cli, "t2i_homogenization", file, code, place)
    survived("rows of a user's own file", well)
    assert well


def test_a_prompt_of_a_benchmark_that_is_there_twice_is_named(
    tmp_path: Path, cli: ForkingCommand, survived: Callable[[str, bool], None]
) -> None:
    entry = {"unique_id": 7, "text": "a cat to the left of a dog", "rel_type": "left of"}
    entry |= {"obj_1_attributes": ["cat"], "obj_2_attributes": ["dog"]}
    file = tmp_path / "visor.json"
    file.write_text(json.dumps([entry, entry]))
    well = refused(cli, "spatial_visor", file, "duplicate-id", ":2: unique_id: ")
    survived("rows of a user's own file", well)
    assert well
