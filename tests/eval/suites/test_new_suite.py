"""A suite that only this test knows goes through everything: one row type, one class, one line."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import ClassVar

import pytest
from PIL import Image

from counterprior.eval.core import Case, Outcome, Question, Score, count_excluded
from counterprior.eval.engine.data import Rows
from counterprior.eval.engine.evaluation import RunSettings
from counterprior.eval.engine.steps import evaluate_run
from counterprior.eval.generators import as_generator
from counterprior.eval.judges import as_judge
from counterprior.eval.questions import read_prompt
from counterprior.eval.questions.asking import ask_yes_no
from counterprior.eval.report.site import write_report
from counterprior.eval.results.scoring import ScoreSettings, score_run, write_results
from counterprior.eval.suites import SUITES
from counterprior.eval.suites.base import Headline, Measure, Suite, case_items
from counterprior.eval.suites.scoring import mean_score
from counterprior.eval.suites.worths import YES_NO, values_of
from counterprior.schema import Provenance, Row

NAME = "shades"
LIGHT, DARK = (250, 250, 250), (5, 5, 5)


class Shade(Row):
    """A plain surface that should be light."""

    KEY: ClassVar[tuple[str, ...]] = ("surface",)
    surface: str
    wall: str


class ShadesSuite(Suite[Shade]):
    """Share of surfaces that came out light."""

    name = NAME
    variants = ("plain",)
    worths: ClassVar = {"light": YES_NO}
    prompts = ("assess_standard",)
    headline = Headline(
        score="light",
        better="higher",
        meaning="Share of light images.",
        items=case_items("light", YES_NO),
    )
    meanings: ClassVar = {"light": "Share of light images."}

    def cases(self, row: Shade, seeds: int) -> Iterator[Case]:
        for number, seed in enumerate(row.seeds[:seeds]):
            prompt = f"A light {row.surface}."
            yield Case(row.id, "plain", seed, number, prompt, (row.wall,), {"wall": row.wall})

    def together(self, row: Shade) -> str:
        return row.wall

    def questions(
        self, row: Shade, case: Case, images: Sequence[Image.Image], probe: str
    ) -> list[Question]:
        if probe != "original":
            return []
        text = f"Is the {row.surface} light?"
        return [ask_yes_no(case, "light", read_prompt(*self.prompts), text, images[-1])]

    def score(self, outcomes: Sequence[Outcome]) -> list[Score]:
        left_out = count_excluded([o.label("light") for o in outcomes], YES_NO.values)
        values = values_of(outcomes, "light", YES_NO)
        return [mean_score("light", values, outcomes, excluded=left_out)]

    def measures(self, outcomes: Sequence[Outcome]) -> Iterator[tuple[frozenset[str], Measure]]:
        yield self.measure("light", outcomes, "light")


def rows_of_walls(walls: int) -> list[Shade]:
    """Three surfaces a wall."""
    source = Provenance(bank="", entry="", author="test", calls=[])
    return [
        Shade(suite=NAME, review=[], provenance=source, surface=f"tile {n}", wall=f"wall {n // 3}")
        for n in range(3 * walls)
    ]


def paint(prompt: str, seed: int) -> Image.Image:
    return Image.new("RGB", (32, 32), LIGHT if seed % 2 else DARK)


def looks(question: Question) -> str:
    return "yes" if question.images[-1].getpixel((0, 0)) == LIGHT else "no"


def test_a_new_suite_needs_one_row_type_one_class_and_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(SUITES, NAME, ShadesSuite)
    rows = rows_of_walls(8)
    settings = RunSettings(NAME, "memory", tmp_path / "run", seeds=2, limit=12)
    generator, judge = as_generator(paint, "1"), as_judge(looks, identity="1")
    done = evaluate_run(settings, generator, [judge], rows=Rows.of(rows))
    cases = done.run.cases()
    # Sampled by wall: four of them, whole.
    assert len(cases) == 24 and len({case.groups["wall"] for case in cases}) == 4
    light = [case for case in cases if paint(case.prompt, case.seed).getpixel((0, 0)) == LIGHT]
    truth = {case.id: "yes" if case in light else "no" for case in cases}
    labels = tmp_path / "labels.csv"
    told = "".join(f"{case.id},light,{truth[case.id]}\n" for case in cases[::2])
    labels.write_text(f"case,question,label\n{told}")
    score = ScoreSettings(labels=labels)
    (judged,) = score_run(settings.out, score)
    write_results([judged.result])
    found = {score.name: score for score in judged.result.scores}
    assert found["light"].value == pytest.approx(100 * len(light) / 24) and found["light"].n == 24
    assert found["light"].value in found["light_corrected"].interval
    assert judged.result.card.agreement["light"].kappa.value == 1
    exports = ("inspect", "hub")
    index = write_report(
        [settings.out], tmp_path / "site", score, exports=exports, dataset="some/where@v1.0.0"
    )
    assert "Share of light images." in index.read_text()
    written = [path for path in (tmp_path / "site").rglob("*") if path.is_file()]
    (log,) = [path for path in written if "inspect" in path.parts]
    samples = {s["id"]: s for s in json.loads(log.read_text())["samples"]}
    assert samples.keys() == truth.keys()
    (entry,) = [path for path in written if ".eval_results" in path.parts]
    assert f"task_id: {NAME}" in entry.read_text()
