"""What `score` prints of groups: pair types first, small groups folded, nothing lost in JSON."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from scored import cases, image_run, judged_as

from counterprior.cli.evaluate import score
from counterprior.cli.options import ScoreOptions

GROUPS = {"basis": ("convention",), "domain": ("tools", "clocks"), "pair_type": ("A-A", "H-H")}


def test_pair_types_come_first_and_small_groups_are_folded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = []
    for number, case in enumerate(cases(40)):
        groups = {name: values[number % len(values)] for name, values in GROUPS.items()}
        groups["domain"] = "clocks" if number < 9 else "tools"
        asked.append(replace(case, groups=groups))
    root = image_run(tmp_path / "run", asked, {case.id: 90 for case in asked})
    judged_as(root, {case.id: "correct" for case in asked})
    score([root], ScoreOptions(), groups=True)
    printed = capsys.readouterr().out
    places = [printed.index(name) for name in ("pair_type=A-A", "basis=", "domain=tools")]
    assert printed.index(" all ") < places[0] < places[1] < places[2]
    assert "domain=clocks" not in printed
    assert "domain: 1 group of fewer than 10 items folded (clocks); --json prints them" in printed
    assert "Each of the 5 groups has an interval of its own" in " ".join(printed.split())
    score([root], ScoreOptions(), json=True)
    (result,) = json.loads(capsys.readouterr().out)
    assert {"domain=clocks"} < {one["group"] for one in result["scores"]}
