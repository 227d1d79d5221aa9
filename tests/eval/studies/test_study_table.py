"""A table of a study: no number without what qualifies it."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
import study_doubles as doubles
from refusals import raises

from counterprior.errors import UsageError
from counterprior.eval.core import Score
from counterprior.eval.engine.run import Run
from counterprior.eval.stats.intervals import NOTHING, Interval
from counterprior.eval.studies.folder import Study
from counterprior.eval.studies.formats import FORMS, cell_text, format_table
from counterprior.eval.studies.runner import run_study
from counterprior.eval.studies.table import (
    Heading,
    StudyTable,
    TableEntry,
    TableLine,
    study_table,
)
from counterprior.eval.studies.table_layout import ColumnLayout, TableLayout

HOM, UC = "t2i_homogenization", "spatial_uc"


def study_of(data: Path, **changes: Any) -> dict[str, Any]:
    suites = {HOM: {"limit": 3}, UC: {"limit": 4}}
    return doubles.study_file(data, suites, painters=["red", "blue"]) | changes


def cells(table: StudyTable) -> dict[tuple[str, str, str], TableEntry]:
    """(Line, suite, score) -> cell."""
    return {
        (line.name, heading.suites[0], heading.score): cell
        for line in table.lines
        for heading, cell in zip(table.columns, line.cells, strict=True)
    }


def test_a_part_of_a_cell_is_no_plain_number(text_release: Path, tmp_path: Path) -> None:
    left = [30]

    def before() -> None:
        left[0] -= 1
        if not left[0]:
            raise KeyboardInterrupt

    doubles.BEFORE[:] = [before]
    with pytest.raises(KeyboardInterrupt):
        run_study(study_of(text_release), tmp_path)  # 20 images, 6 + 3 of 20 answers
    table = study_table(Study.open(tmp_path))
    found = cells(table)
    whole, part = found["red", HOM, "order_bias"], found["red", UC, "accuracy_unconditional"]
    none = found["blue", UC, "accuracy_unconditional"]
    assert not whole.gap and whole.score is not None and whole.score.n <= 6
    assert part.gap == "judged in part: 3 answers about 4 images" and part.score is not None
    assert none.gap.startswith("judged in part: 0 answers") and none.score is None
    assert re.fullmatch(r"\(.+\) in part", cell_text(part)) and part.notes
    assert cell_text(none) == "judged in part"
    assert part.groups == whole.groups == "", "nobody to be tied with"
    texts = {form: format_table(table, form) for form in FORMS}
    assert all("(incomplete)" in texts[form] for form in ("md", "tex", "html"))
    assert all("3 answers about 4 images" in text for text in texts.values())
    rows = list(csv.DictReader(io.StringIO(texts["csv"])))
    cut = next(r for r in rows if r["line"] == "red" and r["suites"] == UC)
    assert cut["value"] == "" and cut["partial_value"] != "" and cut["gap"]
    plain = json.loads(texts["json"])
    kept = [cell for line in plain["lines"] for cell in line["cells"] if cell["gap"]]
    assert not plain["complete"] and all(cell["score"] is None for cell in kept)
    assert any(cell["partial"] for cell in kept)


@pytest.mark.slow
def test_a_line_and_a_column_name_their_method_and_judge(
    text_release: Path, tmp_path: Path
) -> None:
    plain = study_of(
        text_release,
        suites={HOM: {"limit": 10}},
        generators={"g": "python:study_doubles:painter?name=g"},
        judges={n: f"python:study_doubles:reader?name={n}" for n in ("ann", "bob")},
        methods={"a2b-1": "python:study_doubles:repainted"},
    )
    study = run_study(plain, tmp_path / "whole").study
    own = {
        (line.section, line.name): line.cells[0].score for line in study_table(study).lines
    }  # of every generator and judge
    column = {"suite": HOM, "label": "x", "score": "order_bias"}
    layout = TableLayout.model_validate(
        {
            "title": "T",
            "lines": {
                "A2B": {"generator": "g", "method": "a2b", "judge": "bob"},
                "followed": {"generator": "g", "method": "a2b", "judge": "bob"}
                | {"score": "switched:success:plain"},
                "absent": {"generator": "h", "judge": "bob"},
            },
            "columns": [
                {**column, "method": ""},
                {**column, "method": "*-1"},
                {**column, "method": "*-1", "judge": "ann"},
            ],
        }
    )
    a2b, followed = study_table(study, layout).lines
    assert (a2b.name, a2b.section) == ("A2B", "")
    expected = [("judge bob", "g"), ("judge bob", "g+a2b-1"), ("judge ann", "g+a2b-1")]
    assert [cell.score for cell in a2b.cells] == [own[key] for key in expected]
    base, switched, _ = (cell.score for cell in followed.cells)
    assert base is not None and switched is not None
    assert base.value == 100 and base.n == switched.n + sum(switched.excluded.values())
    # Where columns name methods, generators have one line each, with their own.
    by_generator = layout.model_copy(update={"lines": {}})
    assert [line.name for line in study_table(study, by_generator).lines] == ["g", "g"]
    # A score that needs another cell says what is missing of it.
    doubles.reset()
    left = [50]

    def before() -> None:
        left[0] -= 1
        if not left[0]:
            raise KeyboardInterrupt

    doubles.BEFORE[:] = [before]
    with pytest.raises(KeyboardInterrupt):
        run_study({**plain, "judges": {"bob": plain["judges"]["bob"]}}, tmp_path / "part")
    _, cut = study_table(Study.open(tmp_path / "part"), layout).lines
    assert "g: judged in part" in cut.cells[1].gap and cell_text(cut.cells[1]) != "100.0"


def test_a_suite_whose_scores_go_by_group_needs_no_column_of_a_group(
    full_release: Path, tmp_path: Path
) -> None:
    plain = study_of(full_release, suites={"order_beyond": {"limit": 4}})
    table = study_table(run_study(plain, tmp_path).study)
    (column,) = table.columns
    assert column.score == "order_bias"
    assert all(cell.score for line in table.lines for cell in line.cells)


def test_neighbors_that_were_made_otherwise_are_marked(text_release: Path, tmp_path: Path) -> None:
    plain = study_of(text_release, **{"except": [{"generator": "blue", "suite": UC, "seeds": 2}]})
    table = study_table(run_study(plain, tmp_path).study)
    found = cells(table)
    for name, sample in (("red", "1 seed,"), ("blue", "2 seeds,")):
        notes = found[name, UC, "accuracy_unconditional"].notes
        assert any(sample in table.notes[n - 1] for n in notes), table.notes
        assert not any("seed" in table.notes[n - 1] for n in found[name, HOM, "order_bias"].notes)
    assert any("elsewhere" in remark for remark in table.remarks)


def test_n_and_what_is_left_out_are_told(text_release: Path, tmp_path: Path) -> None:
    plain = study_of(text_release, suites={HOM: {"limit": 6}, UC: {"limit": 4}})
    table = study_table(run_study(plain, tmp_path).study)
    found = cells(table)
    assert {cell.groups for cell in found.values()} == {"A"}
    left_out = 0
    for (name, suite, score), cell in found.items():
        told = next(remark for remark in table.remarks if remark.startswith(f"n of {name}"))
        assert cell.score is not None and f"{suite} {score} {cell.score.n}" in told
        for reason, count in cell.score.excluded.items():
            left_out += count
            assert f"{suite} {score} {count} {reason}" in told
    assert left_out, "nothing to tell"
    assert any(remark.startswith("generator red: double:red") for remark in table.remarks)
    assert any("digest " in remark and "of limit 6, 1 seed" in remark for remark in table.remarks)


def test_the_paper_s_value_of_another_model_is_marked(text_release: Path, tmp_path: Path) -> None:
    layout = {
        "title": "T",
        "columns": [{"suite": HOM, "score": "hom", "label": "Hom"}],
        "paper": {
            "source": "A paper, Table 1",
            "lines": {
                "red": {"of": "name=red", "values": [88.8]},
                "blue": {"of": "FLUX.1", "values": [42]},
            },
        },
    }
    plain = study_of(text_release, suites={HOM: {"limit": 2}}, table=layout)
    table = study_table(run_study(plain, tmp_path).study)
    found = cells(table)
    red, blue = found["red", HOM, "hom"], found["blue", HOM, "hom"]
    assert red.paper == 88.8 and blue.paper == 42
    assert "the paper's blue is FLUX.1; here the name stands for python:study_doubles" in (
        " ".join(table.notes[n - 1] for n in blue.notes)
    )
    assert not any("paper" in table.notes[n - 1] for n in red.notes)
    text = format_table(table, "md")
    assert "| *paper* | *88.8* |" in text and "as printed in A paper, Table 1" in text
    assert "\\emph{88.8}" in format_table(table, "tex")


def test_people_s_labels_pool_over_suites(text_release: Path, tmp_path: Path) -> None:
    plain = study_of(text_release, generators={"red": "python:study_doubles:painter?name=red"})
    run_study(plain, tmp_path / "study")
    labels = {}
    for suite in (HOM, UC):
        run = Run.open(tmp_path / f"study/runs/{suite}/red")
        (log,) = run.judges()
        answers = sorted(log.newest.values(), key=lambda a: a.case)
        lines = [f"{a.case},{a.question},{a.verdict.label}" for a in answers]
        if suite == UC:  # people say otherwise of one
            case, question, label = lines[0].split(",")
            lines[0] = f"{case},{question},{'opposite' if label == 'holds' else 'holds'}"
        file = tmp_path / f"{suite}.csv"
        file.write_text("case,question,label\n" + "".join(line + "\n" for line in lines))
        labels[suite] = {"red": str(file)}
    scores = ("kappa", "agreement", "count:1:1", "accuracy", "risk")
    layout = {
        "title": "T",
        "rows": "judge",
        "columns": [
            {"suite": [HOM, UC], "score": f"people:{name}", "label": name} for name in scores
        ],
    }
    again = run_study(plain | {"labels": labels, "table": layout}, tmp_path / "study")
    (line,) = study_table(again.study).lines
    assert line.name == "ann"
    agreed = line.cells[1].score
    assert agreed is not None and (agreed.value, agreed.n) == (pytest.approx(9 / 10), 10)
    kappa = line.cells[0].score
    assert kappa is not None and 0 < kappa.value < 1 and kappa.value in kappa.interval
    notes = study_table(again.study).notes
    for place, few in ((0, "fewer than 20 items for each label"), (4, "fewer than 20 items: ")):
        assert any(few in notes[number - 1] for number in line.cells[place].notes)
    unlabeled = TableLayout.model_validate(layout)
    bare = study_table(
        Study(
            tmp_path / "study",
            Study.open(tmp_path / "study").file.model_copy(update={"labels": {}}),
        ),
        unlabeled,
    )
    assert bare.lines[0].cells[0].score is None
    assert "no labels of people" in bare.notes[bare.lines[0].cells[0].notes[0] - 1]


def test_a_column_subtracts_the_number_of_another_judge(text_release: Path, tmp_path: Path) -> None:
    judges = {n: f"python:study_doubles:reader?name={n}" for n in ("ann", "bob", "eve")}
    doubles.SHUT.add("eve")
    study = run_study(study_of(text_release, judges=judges), tmp_path).study
    score = "accuracy_unconditional"
    layout = TableLayout(
        title="T",
        columns=(
            ColumnLayout(suite=UC, score=score, label="ann", judge="ann"),
            ColumnLayout(suite=UC, score=score, label="bob", judge="bob"),
            ColumnLayout(suite=UC, score=score, label="less", judge="bob", less="ann"),
            ColumnLayout(suite=UC, score=score, label="shut", judge="bob", less="eve"),
        ),
    )
    for line in study_table(study, layout).lines:
        ann, bob, difference, shut = line.cells
        assert ann.score and bob.score and difference.score
        assert difference.score.value == bob.score.value - ann.score.value
        assert difference.score.interval == NOTHING and not difference.groups and bob.groups
        assert shut.score is None and "failed" in shut.gap and not bob.gap


def test_a_table_without_any_of_the_suites_is_refused(text_release: Path, tmp_path: Path) -> None:
    column = ColumnLayout(suite="counterfactual", score="prr", label="PRR")
    study = run_study(study_of(text_release), tmp_path).study
    with raises("nothing-to-do", "counterfactual", error=UsageError):
        study_table(study, TableLayout(title="T", columns=(column,)))
    both = TableLayout(
        title="T", columns=(column, ColumnLayout(suite=UC, score="accuracy", label="A"))
    )
    table = study_table(study, both)
    assert [heading.label for heading in table.columns] == ["A"]
    assert "Without the columns of counterfactual." in table.remarks


def odd_table() -> StudyTable:
    score = Score(50.0, Interval(40.0, 60.0), n=7, name="hom", unit="%")
    cell = TableEntry(score, notes=(1,), groups="A B")
    return StudyTable(
        title="100 % of A_B & <b>",
        rows="generator",
        columns=[Heading("x|y", "z", (HOM,), "hom")],
        lines=[TableLine("flux", "judge a#1", [cell])],
        source="",
        notes=["first\nsecond | <script> ~ \\ ^ { }"],
        remarks=[],
    )


def test_texts_of_others_do_not_break_a_format() -> None:
    table = odd_table()
    markdown = format_table(table, "md")
    assert "<script" not in markdown and "<b>" not in markdown
    body = [line for line in markdown.splitlines() if line.startswith("|")]
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in body} == {3}
    assert "| flux | 50.0 [40.0, 60.0] AB ¹ |" in body
    tex = format_table(table, "tex")
    assert "100 \\% of A\\_B \\& \\textless{}b\\textgreater{}" in tex
    assert "judge a\\#1" in tex and "\\textbackslash{} \\textasciicircum{} \\{ \\}" in tex
    assert tex.count("\\begin{") == tex.count("\\end{") == 2
    assert next(csv.DictReader(io.StringIO(format_table(table, "csv"))))["n"] == "7"
    page = format_table(table, "html")
    assert "<td>judge a#1: flux</td><td>50.0 [40.0, 60.0] AB ¹</td>" in page
    assert "<h1>100 % of A_B &amp; &lt;b&gt;</h1>" in page and "<script" not in page
    assert "<li>first\nsecond | &lt;script&gt;" in page
    with raises("unknown-name", "markdown", error=UsageError):
        format_table(table, "markdown")


def test_a_line_with_a_star_stands_for_those_of_the_paper() -> None:
    plain: dict[str, Any] = {
        "title": "t",
        "columns": [{"suite": UC, "score": "accuracy", "label": "a"}],
        "lines": {"* after *": {"generator": "start~*~*", "judge": "ann"}, "own": {}},
        "paper": {
            "source": "s",
            "lines": {n: {"values": [1]} for n in ("b after c", "d", "e after f")},
        },
    }
    layout = TableLayout.model_validate(plain)
    assert {name: line.generator for name, line in layout.lines.items()} == {
        "b after c": "start~b~c",
        "e after f": "start~e~f",
        "own": "",
    }
    assert {line.judge for line in layout.lines.values()} == {"ann", ""}
    with pytest.raises(ValueError, match="'x\\* after' fits no line of the paper"):
        TableLayout.model_validate(plain | {"lines": {"x* after": {}}})
