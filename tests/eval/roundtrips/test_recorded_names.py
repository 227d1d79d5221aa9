"""Steps of round trips keep the names on disk that the first runs gave them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from counterprior.eval.core import Caption
from counterprior.eval.roundtrips.log import StepLog, step_key, store_result
from counterprior.eval.roundtrips.models import prefixed
from counterprior.eval.roundtrips.routes import StepKind

FIRST_RUNS: dict[StepKind, tuple[str, str]] = {
    "caption": ("tell", "c1574a6822fbfe4d64b47c2a"),
    "generate": ("draw", "92dfc79d09d4fc9c986569ee"),
    "edit_text": ("revise", "39e741661d5047cefd28cd87"),
    "edit_image": ("retouch", "ebe306f2735d2c91a6c05e12"),
}
"""Kind -> its recorded name, and the key that the first runs gave the step below."""


@pytest.mark.parametrize("kind", FIRST_RUNS)
def test_keys_and_identities_equal_those_of_first_runs(kind: StepKind) -> None:
    name, key = FIRST_RUNS[kind]
    assert step_key(kind, {"kind": "x", "model": "m"}, "ab", "wider", 3) == key
    identity = prefixed(kind, {"kind": "x", "served_by": "1"})
    assert identity == {f"{name}_kind": "x", f"served_{name}_by": "1"}


def test_finds_step_of_first_runs_and_records_new_ones_alike(tmp_path: Path) -> None:
    folder = tmp_path / "steps"
    folder.mkdir()
    line = {"key": "k", "step": "tell", "status": "made", "text": "a cat"}
    (folder / "steps.jsonl").write_text(json.dumps(line) + "\n")
    log = StepLog(tmp_path)
    record = log.find("k")
    assert record is not None and record.text == "a cat"
    written = store_result(log.folder, "k", "caption", Caption("a cat"))
    assert written.to_record() == line == record.to_record()
