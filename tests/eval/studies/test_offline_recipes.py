"""Recipes without their models, and the figures of tables."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest
import yaml
from refusals import assert_refused, raises

from counterprior.errors import UsageError
from counterprior.eval import detectors as coco_module
from counterprior.eval.core import Case, Outcome, Score, Verdict
from counterprior.eval.engine.data import read_rows
from counterprior.eval.report.plots import as_file, guidance_plot
from counterprior.eval.stats.intervals import Interval
from counterprior.eval.studies.figures import FIGURES, TABLE_FIGURES
from counterprior.eval.studies.offline import offline_text
from counterprior.eval.studies.recipes import read_recipe, recipe_names
from counterprior.eval.studies.scores import find_score
from counterprior.eval.studies.scores.categories import (
    SUPERCATEGORIES,
    category_pairs,
    supercategory,
)
from counterprior.eval.studies.scores.scope import LabeledRun, ScoreInputs
from counterprior.eval.studies.spec import parse_study
from counterprior.eval.studies.table_lines import Heading, TableEntry, TableLine
from counterprior.eval.suites import SUITES
from counterprior.scenes.language import mentions

Cli = Callable[..., "subprocess.CompletedProcess[str]"]
NEEDED = {
    "acon": "write texts",
    "ots-bench-5": "corpus",
    "organism-methods": "scorers",
    "organism-psg": "scorers",
    "ots-bench-19": "scorers",
    "ots-bench-6": "scorers",
    "pse-8": "scorers",
}
"""Start of a recipe's name -> what it can't do without."""


def offline_names() -> list[str]:
    return [name for name in recipe_names() if not name.startswith(tuple(NEEDED))]


def test_offline_recipes_name_no_model() -> None:
    assert len(offline_names()) > 20
    for name in offline_names():
        text = offline_text(read_recipe(name))
        study, shipped = parse_study(text, name), read_recipe(name).study
        specs = [
            *study.generators.values(),
            *study.judges.values(),
            *map(str, study.methods.values()),
        ]
        assert not [s for s in specs if "/" in s.replace("1/", "") or "COMMIT" in s], name
        assert all(s.startswith("render:") for s in study.generators.values()), name
        assert (study.table, [*study.judges]) == (shipped.table, [*shipped.judges]), name
        assert [*study.methods] == [*shipped.methods] and not study.labels, name
        searches = max(1, sum("best-of:" in str(spec) for spec in study.methods.values()))
        for suite, sample in study.suites.items():
            # Each search draws up to 16 images a prompt: several share the rows.
            assert sample.limit and sample.limit * searches <= SUITES[suite].offline_rows <= 40, (
                name
            )


def test_recipes_that_need_models_say_so() -> None:
    for start, needed in NEEDED.items():
        for name in recipe_names():
            if name.startswith(start):
                with raises("unsupported", needed, error=UsageError):
                    offline_text(read_recipe(name))


@pytest.mark.parametrize(
    "limit",
    [pytest.param(4, marks=pytest.mark.slow), pytest.param(None, marks=pytest.mark.lane)],
)
def test_an_offline_recipe_ends_in_its_table(
    full_release: Path, cli: Cli, tmp_path: Path, limit: int | None
) -> None:
    printed = cli("study", "recipes", "spatialbench-uc-fig-4", "--offline")
    file, out = tmp_path / "s.yaml", tmp_path / "study"
    file.write_text(printed.stdout)
    fewer = ["--set", f"suites.spatial_uc.limit={limit}"] if limit else []
    done = cli("study", "run", file, "--out", out, "--set", f"data={full_release}", *fewer)
    assert done.returncode in (0, 1) and "Traceback" not in done.stderr, done.stderr
    table = cli("study", "table", out)
    assert "| *paper* | *23.8* | *49.5* |" in table.stdout
    drawn = cli("study", "table", out, "--format", "svg").stdout
    words = "".join(ElementTree.fromstring(drawn).itertext())
    assert "pass of decided, %" in words and "SD1.5-prompt-only" in words
    refused = cli("study", "recipes", "acon-1", "--offline")
    assert refused.returncode == 2 and "models that write texts" in refused.stderr


@pytest.mark.parametrize("name", ["pse-5", "pse-7", "pse-13"])
def test_offline_prompts_have_their_authors_format(name: str) -> None:
    study = parse_study(offline_text(read_recipe(name)), name)
    shipped = read_recipe(name).study
    rows = read_rows(study.data_of("own_prompts"), "own_prompts").rows
    # The files are named as their authors name theirs, and read by the same reader.
    of, own = (s.data_of("own_prompts").rpartition("/")[2] for s in (shipped, study))
    assert of == own and len(rows) > 20
    levels = {row.difficulty for row in rows}
    assert levels == ({"easy", "medium", "hard"} if name == "pse-13" else {""})
    drawn = [named for row in rows if len(named := mentions(row.prompt)) == len(row.objects)]
    assert len(drawn) == len(rows)


def test_suites_of_a_study_have_rows_of_their_own(
    text_release: Path, cli: Cli, tmp_path: Path
) -> None:
    (tmp_path / "own.txt").write_text("a cat between a dog and a horse\na cat near a dog\n")
    study = {
        "data": str(text_release),
        "suites": {
            "t2i_homogenization": {"limit": 2},
            "own_prompts": {"data": str(tmp_path / "own.txt")},
        },
        "generators": {"r": "render:?grounding=1"},
        "judges": {"s": "scene"},
    }
    file, out = tmp_path / "s.yaml", tmp_path / "study"
    file.write_text(yaml.safe_dump(study))
    done = cli("study", "run", file, "--out", out)
    assert done.returncode == 0, done.stderr
    table = cli("study", "table", out).stdout
    assert f"Data of t2i_homogenization: {text_release}." in table
    assert f"Data of own_prompts: {tmp_path / 'own.txt'}." in table
    assert "own_prompts: 2 rows" in table
    (tmp_path / "own.txt").write_text("a cat near a horse\n")
    assert_refused(
        cli("study", "run", file, "--out", out), "different-rows", "own.txt has now", exit_code=1
    )
    (tmp_path / "own.txt").unlink()
    again = cli("study", "plan", file)
    assert_refused(again, "no-such-file", "own.txt: no file of prompts")


def entry(value: float, **facts: object) -> TableEntry:
    score = Score(value, Interval(value - 1, value + 1), 9, name="cyclic", unit="%")
    return replace(TableEntry(score), **facts)


def words_of(kind: str, columns: list[Heading], lines: list[TableLine]) -> str:
    return "|".join(ElementTree.fromstring(TABLE_FIGURES[kind](columns, lines, "T")).itertext())


def test_pairs_are_a_heat_map_with_own_pairs_framed() -> None:
    columns = [Heading("", "accuracy", ("consistency",), "cyclic")]
    lines = [
        TableLine(f"image: {a} to {b}", "", [entry(value)])
        for a, b, value in (("A", "A", 61.5), ("A", "B", 52.25), ("B", "A", 43.125))
    ]
    lines.append(TableLine("image: B to B", "", [entry(99, gap="not begun")]))
    words = words_of("pairs", columns, lines)
    assert "61.5" in words and "52.2" in words and "43.1" in words and "99.0" not in words
    framed = TABLE_FIGURES["pairs"](columns, lines, "T")
    alone = TABLE_FIGURES["pairs"](columns, lines[1:], "T")
    assert framed.count("#b8480a") > alone.count("#b8480a") == 0


def test_courses_have_a_series_for_each_line_and_head() -> None:
    columns = [Heading(h, label, ("s",), "m") for h in ("PSE", "centers") for label in "01"]
    lines = [TableLine("search", "", [entry(n) for n in range(4)])]
    words = words_of("courses", columns, lines)
    assert "PSE, search" in words and "centers, search" in words
    plain = words_of("courses", columns[:2], [replace(lines[0], section="judge J")])
    assert "search, judge J: 1 at 1" in plain


def test_courses_have_a_panel_for_each_quantity() -> None:
    columns = [Heading("scale", label, ("s",), "m") for label in "012"]
    names = ("stated: as stated, %", "alone: as stated, %", "stated: sprites")
    lines = [TableLine(name, "", [entry(n) for n in range(3)]) for name in names]
    words = words_of("courses", columns, lines).split("|")
    assert [words.count(word) for word in ("as stated, %", "sprites", "scale")] == [1, 1, 2]
    assert words.count("stated") == words.count("alone") == 1, "one legend for all panels"
    drawn = TABLE_FIGURES["courses"](columns, lines, "T")
    assert [word for word in words if word.startswith("alone:")] == [
        f"alone: {n} at {n}" for n in range(3)
    ]
    assert drawn.count('class="whisker"') == 9


def judged(folder: Path, *numbers: tuple[str, str, float]) -> LabeledRun:
    """A cell of verdicts by rule, one for each pair of things."""
    outcomes = []
    for place, (a, b, number) in enumerate(numbers):
        case = Case(f"c{place}", "plain", 0, 0, "", (f"{a}/{b}",))
        raw = json.dumps({"relation": "above", "number": number, "found": {a: [], b: []}})
        verdicts = {("order", "original"): Verdict("holds", raw, number)}
        outcomes.append(Outcome(case, verdicts))
    result = SimpleNamespace(folder=str(folder))
    run = SimpleNamespace(name="SDXL", result=result, outcomes=outcomes)
    return LabeledRun(run, {})  # type: ignore[arg-type]


def test_numbers_by_super_category(tmp_path: Path) -> None:
    numbers = [
        ("cat", "car", 0.5),
        ("dog", "bus", 1.0),
        ("car", "cat", 0.25),
        ("unicorn", "cat", 0),
    ]
    cell = judged(tmp_path, *numbers)
    unmade = replace(cell.outcomes[0], verdicts={})
    cell.judged.outcomes.append(unmade)  # type: ignore[attr-defined]  # its image could not be made
    assert category_pairs(cell.outcomes) == {
        ("animal", "vehicle"): [0.5, 1.0],
        ("vehicle", "animal"): [0.25],
    }
    score = find_score("category:animal/vehicle", "all", ScoreInputs([cell]))
    assert score is not None and (score.value, score.n) == (75, 2)
    assert find_score("category:food/food", "all", ScoreInputs([cell])) is None
    drawn = FIGURES["categories"]({"PSE": {"spatial_visor SDXL": cell}}, "T")
    words = "|".join(ElementTree.fromstring(drawn).itertext())
    assert "75.0" in words and "25.0" in words and "vehicle" in words
    assert FIGURES["categories"]({"PSE": {}}, "T") == ""


def test_super_categories_are_those_of_coco() -> None:
    named = [name for names in SUPERCATEGORIES.values() for name in names.split()]
    ours = (Path(coco_module.__file__).with_name("coco.txt")).read_text().split("\n")
    assert sorted(name.replace("_", " ") for name in named) == sorted(filter(None, ours))
    published = Path(__file__).parents[4] / "shared/data/coco_tiny/annotations"
    file = published / "instances_val2017.json"
    if file.exists():
        for entry in json.loads(file.read_text())["categories"]:
            assert supercategory(entry["name"]) == entry["supercategory"]


def test_a_guided_image_is_drawn_with_its_maps() -> None:
    profile = [{"x": [0.75, 0.25]}, {"x": [0.25, 0.75]}]
    record = {
        "relations": [["cat", "left_of", "dog"]],
        "losses": [-0.25, -0.5, -0.75],
        "pos": [[0.5], [0.6], [0.7]],
        "maps": [[profile]] * 3,
    }
    drawn = as_file(guidance_plot(record, "a cat to the left of a dog"), "T")
    words = "|".join(ElementTree.fromstring(drawn).itertext())
    assert "a cat to the left of a dog: loss" in words and "PoS: cat left of dog" in words
    assert "maps of cat and dog, left to right" in words and "update 2" in words
    diagonal = [{"x": [1.0, 0], "y": [1.0, 0]}, {"x": [0, 1.0], "y": [0, 1.0]}]
    both = {**record, "relations": [["cat", "upper_left", "dog"]], "maps": [[diagonal]] * 3}
    words = "|".join(ElementTree.fromstring(as_file(guidance_plot(both, "p"), "T")).itertext())
    assert "left to right" in words and "top to bottom" in words


@pytest.mark.parametrize("gap", ["", "not begun"])
def test_a_scatter_shows_what_is_done_and_the_paper_s(gap: str) -> None:
    columns = [Heading("", label, ("s",), "m") for label in ("coverage", "pass")]
    lines = [TableLine("A", "", [entry(20, paper=30.0, gap=gap), entry(40, paper=50.0)])]
    words = words_of("scatter", columns, lines)
    assert ("A: 20.0, 40.0" in words) == (not gap) and ("A (paper)" in words) == bool(gap)
