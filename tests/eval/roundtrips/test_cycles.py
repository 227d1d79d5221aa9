"""Several round trips one after another: what is left, and does it converge?"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trip_doubles as doubles
import yaml
from refusals import raises
from typer.testing import CliRunner

from counterprior.cli.main import app
from counterprior.eval.engine.data import Rows
from counterprior.eval.studies import preflight, runner
from counterprior.eval.studies.spec import StudyError, parse_study

ROWS, CYCLES = 2, 4


@pytest.fixture(autouse=True)
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    doubles.reset()
    for module in (preflight, runner):
        monkeypatch.setattr(module, "read_rows", lambda *_: Rows.of(doubles.rows(ROWS)))
    yield
    doubles.reset()


def study(**suite: Any) -> dict[str, Any]:
    return {
        "data": "the world",
        "suites": {"consistency": suite},
        "captioners": {"lossy": "python:trip_doubles:lossy?always=8"},
        "generators": {"hand": "python:trip_doubles:hand"},
        "judges": {"reader": "python:trip_doubles:reader"},
        "only": [{"generator": "*~*~*"}],
    }


@pytest.mark.slow
def test_a_lossy_captioner_loses_a_cell_each_time_and_then_converges(tmp_path: Path) -> None:
    """By command. After k round trips the last min(k, 2) cells are gone, so a question about one
    of them is wrong if its answer was yes; from the third on, nothing changes."""
    file = tmp_path / "study.yaml"
    file.write_text(yaml.safe_dump(study(cycles=CYCLES)))
    plan = CliRunner().invoke(app, ["study", "plan", str(file)])
    assert plan.exit_code == 0, plan.output
    words = ["study", "run", str(file), "--out", str(tmp_path / "out"), "--trust"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    red = [row.answers[:10] for row in doubles.rows(ROWS)]
    for start in ("image~lossy~hand", "text~hand~lossy"):
        run = tmp_path / "out" / "runs" / "consistency" / start
        scored = CliRunner().invoke(app, ["score", str(run), "--json"])
        assert scored.exit_code == 0, scored.output
        (result,) = json.loads(scored.output)
        scores = {score["name"]: score["value"] for score in result["scores"]}
        for count in range(1, CYCLES + 1):
            gone = [sum(answers[10 - min(count, 2) :]) for answers in red]
            name = "cyclic" if count == 1 else f"cyclic_{count}"
            assert scores[name] == pytest.approx(100 - 10 * sum(gone) / ROWS)
        assert scores["settled_2"] == pytest.approx(100 - 10 * sum(a[8] for a in red) / ROWS)
        assert scores["settled_3"] == scores["settled_4"] == 100
        assert scores["right"] == scores["cyclic"], "the headline is that of one round trip"
        assert "cyclic_5" not in scores
    # From the third cycle on a step has the input of an earlier one, and is not taken again.
    told = sum(count for what, count in doubles.DID.items() if what.startswith("tell"))
    assert told < 2 * ROWS * CYCLES


def test_without_cycles_there_is_one_round_trip(tmp_path: Path) -> None:
    from counterprior.eval.studies.spec import cells_of

    def variants(**suite: Any) -> set[str]:
        parsed = parse_study(yaml.safe_dump(study(**suite)), "s.yaml")
        return {variant for cell in cells_of(parsed) for variant in cell.variants}

    assert variants() == {"image_cyclic", "text_cyclic"}
    assert variants(cycles=2) == variants() | {"image_cycle2", "text_cycle2"}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"suites": {"consistency": {"cycles": 9}}}, ("out-of-range", "cycles", "8")),
        (
            {"suites": {"consistency": {}, "t2i_correctness": {"cycles": 2}}},
            ("conflicting-options", "t2i_correctness", "round trips"),
        ),
    ],
)
def test_rejects_cycles_that_cannot_be(change: dict[str, Any], reason: tuple[str, ...]) -> None:
    with raises(*reason, error=StudyError):
        parse_study(yaml.safe_dump(study() | change), "s.yaml")


@pytest.mark.slow
def test_models_are_told_what_acon_tells_them(tmp_path: Path, server: Any) -> None:
    """A captioner to describe in detail, a chat that draws to create an image; another generator
    gets the text alone, and steps of other instructions are other steps."""
    told: list[str] = []

    def answer(body: dict[str, Any]) -> str:
        told.append(str(body["messages"]))
        return "This is strip 1. Cell 1 is red."

    server.answer = answer
    chat = server.spec("openai")
    models = {
        "captioners": {"lossy": chat},
        "any_to_any": {"both": chat.replace("openai:m-1", "chat-image:m-2")},
    }
    plain = study() | models
    for number, instructions in enumerate(("ours", "paper")):
        told.clear()
        runner.run_study(plain | {"instructions": instructions}, tmp_path / str(number))
        text = " ".join(told)
        assert ("Describe the image in detail." in text) == (instructions == "paper")
        assert ("Create an image from the following text." in text) == (instructions == "paper")
        assert ("paragraph of seven to ten sentences" in text) == (instructions == "ours")
    hands = [what for what in doubles.DID if what.startswith("draw")]
    assert hands and not any("Create an image" in what for what in hands)
