"""Study files of strangers: looking at one runs nothing, and running one says what it would run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from refusals import raises
from typer.testing import CliRunner

from counterprior.cli.main import app
from counterprior.errors import UsageError
from counterprior.eval.engine.data import Rows
from counterprior.eval.selftest import rows as trials
from counterprior.eval.studies import preflight, runner
from counterprior.eval.studies.preflight import plan_study
from counterprior.eval.studies.runner import run_study

SUITE = "t2i_homogenization"


@pytest.fixture(autouse=True)
def world(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = Rows.of([trials.neutral(a, b) for a, b in trials.pairs(trials.STOUT)[:2]])
    for module in (preflight, runner):
        monkeypatch.setattr(module, "read_rows", lambda *_: rows)


def study(folder: Path, change: dict[str, Any]) -> Path:
    plain = {
        "data": "the world",
        "suites": {SUITE: {}},
        "generators": {"fair": "render:"},
        "judges": {"p": "pixels"},
        **change,
    }
    file = folder / "study.yaml"
    file.write_text(yaml.safe_dump(plain))
    return file


def attacks(mark: Path) -> dict[str, dict[str, Any]]:
    """Studies that make a file named `mark` where any of their code runs."""
    system = f"python:os:system?command=touch%20{mark}"
    inside = f"python:counterprior.specs:os.system?command=touch%20{mark}"
    return {
        "a generator": {"generators": {"fair": "render:", "a": system}},
        "a judge": {"judges": {"p": "pixels", "j": system}},
        "a scorer": {"scorers": {"s": system}},
        "through this package": {"generators": {"a": inside}},
        "this package's own functions": {
            "generators": {"a": f"python:counterprior.storage:write_whole?path={mark}&data=x"}
        },
        "a command": {"generators": {"a": f"command:touch {mark}"}},
    }


@pytest.mark.parametrize("name", attacks(Path("x")))
def test_no_code_of_a_strangers_study_runs(name: str, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    file = study(tmp_path, attacks(mark)[name])
    for probe in (False, True):
        plan = plan_study(file, probe=probe, trust=False)
        assert any("--trust" in note for note in plan.notes) and not mark.exists()
    with raises("untrusted-code", str(file), str(mark), "--trust"):
        run_study(file, tmp_path / "out", trust=False)
    assert not mark.exists() and not (tmp_path / "out").exists()
    for words in (["plan", str(file)], ["run", str(file), "--out", str(tmp_path / "out")]):
        done = CliRunner().invoke(app, ["study", *words])
        assert not mark.exists() and isinstance(done.exception, SystemExit | UsageError | None)


def test_a_study_of_code_that_is_trusted_runs(tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    file = study(tmp_path, attacks(mark)["a generator"])
    run_study(file, tmp_path / "out")
    assert mark.exists()


def test_passwords_in_such_specs_are_not_shown(tmp_path: Path) -> None:
    file = study(tmp_path, {"generators": {"a": "python:mine:model?url=http://me:hidden@host/v1"}})
    with raises("untrusted-code", "host/v1") as caught:
        run_study(file, tmp_path / "out", trust=False)
    assert "hidden" not in str(caught.value)
