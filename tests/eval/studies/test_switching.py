"""The step at which the layout is decided is found again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from counterprior.eval.core import Case, Outcome, Verdict
from counterprior.eval.engine.data import Rows
from counterprior.eval.selftest.trials import homogenization_trials
from counterprior.eval.studies.scores.switched import biased
from counterprior.eval.studies.switching import SwitchSettings, run_switches


def test_success_and_hom_fall_where_the_layout_is_decided(tmp_path: Path) -> None:
    rows = Rows.of(next(homogenization_trials()).rows[:10])
    settings = SwitchSettings(
        suite="t2i_homogenization",
        generator="render:?order_bias=2&decides=3",
        judge="pixels",
        data="trial",
        out=tmp_path,
        protocols=("a2b", "n2a"),
        steps=(2, 3),
    )
    found = run_switches(settings, found=rows)
    cells = {(cell["protocol"], cell["step"]): cell for cell in found["cells"]}
    assert 0 < found["biased"] < found["of"] == 20
    assert cells["base", None]["hom"] == 100  # they were chosen for it
    before, after = cells["a2b", 2], cells["a2b", 3]
    assert before["success"] > 80 and after["success"] < 20
    assert before["success_interval"][0] < before["success_interval"][1]
    assert cells["n2a", 2]["hom"] > cells["n2a", 3]["hom"]
    assert cells["n2a", 2]["success"] is None
    assert (tmp_path / "switch.html").read_text().count("<svg") == 2
    assert run_switches(settings, found=rows) == found
    with pytest.raises(ValueError, match="no protocol 'x2y'"):
        run_switches(replace(settings, protocols=("x2y",)))
    with pytest.raises(ValueError, match="does not ask about a prior in both orders"):
        run_switches(replace(settings, suite="spatial_uc"))


def test_biased_means_biased_in_both_orders() -> None:
    def outcome(row: str, variant: str, seed: int, label: str) -> Outcome:
        case = Case(row, variant, seed, 0, "", ("",))
        return Outcome(case, {("order", "original"): Verdict(label)})

    said = [
        outcome("a", "plain", 1, "first_left"),
        outcome("a", "swapped", 1, "first_left"),
        outcome("a", "plain", 2, "first_left"),
        outcome("a", "swapped", 2, "first_right"),
        outcome("b", "plain", 1, "first_left"),
        outcome("b", "swapped", 1, "invalid"),
    ]
    assert [case.id for case in biased(said, "order", "first_left")] == ["a-plain-1", "a-swapped-1"]


@pytest.mark.lane  # the function is tested above
def test_the_study_is_a_command(
    text_release: Path, tmp_path: Path, cli: Callable[..., Any]
) -> None:
    done = cli(
        *("switch", "--suite", "t2i_homogenization", "--data", text_release, "--limit", 4),
        *("--generator", "render:?order_bias=9&decides=2", "--judge", "pixels"),
        *("--protocols", "a2b", "--steps", "1,2", "--out", tmp_path / "out"),
    )
    assert done.returncode == 0, done.stderr
    assert "success %" in done.stdout and "biased in both orders" in done.stdout
    assert (tmp_path / "out" / "a2b-1" / "images.jsonl").exists()
