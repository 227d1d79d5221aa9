"""Every study that ships runs from end to end, with models that cost nothing."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import study_doubles as doubles

from counterprior.errors import UsageError
from counterprior.eval.engine.run import Run
from counterprior.eval.study.formats import format_table
from counterprior.eval.study.recipes import find_layout, read_recipe, recipe_names
from counterprior.eval.study.study import run_study
from counterprior.eval.study.table import study_table

GOLDEN = Path(__file__).parents[4] / "shared" / "golden" / "paper_tables.json"


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    doubles.reset()
    yield
    doubles.reset()


def answer(body: dict[str, Any]) -> str:
    """One of the first two answers, decided by the question and its image."""
    return str(1 + hashlib.sha256(json.dumps(body).encode()).digest()[0] % 2)


def stand_ins(name: str, data: Path, spec: Callable[[str], str]) -> list[str]:
    """Changes that leave a recipe as it is, but for its models, its sample and its labels.

    Two of its generators and judges are enough: one renderer, one that draws whatever is asked.
    """
    study = read_recipe(name).study
    models = {m: f"python:study_doubles:painter?name={m}" for m in [*study.generators][-2:]}
    models[next(iter(models))] = "render:?order_bias=2"
    judges = {j: spec(j) for j in [*study.judges][:2]}
    kept = [one.model_dump(exclude_none=True) for one in study.exceptions if one.judge in judges]
    return [
        f"data={data}",
        *(f"suites.{suite}.limit=2" for suite in study.suites),
        f"generators={json.dumps(models)}",
        f"judges={json.dumps(judges)}",
        f"except={json.dumps(kept)}",
        "labels={}",
    ]


@pytest.mark.parametrize("name", recipe_names())
def test_a_recipe_ends_in_its_table(
    name: str, full_release: Path, tmp_path: Path, server: Any
) -> None:
    server.answer = answer
    recipe = read_recipe(name)
    file = tmp_path / f"{name}.yaml"
    file.write_text(recipe.text)
    changes = stand_ins(
        name, full_release, lambda judge: server.spec("openai").replace("m-1", judge)
    )
    done = run_study(file, tmp_path / "study", changes=changes)
    drawn = {f"{f.cell.suite}/{f.cell.generator}" for f in done.failures}
    # The renderer can draw no law and no clock face: that is said, and costs nobody else.
    assert all("no image to judge" in f.cause for f in done.failures)
    assert len({run.partition("/")[2] for run in drawn}) <= 1
    table = study_table(done.study)
    assert table.title == recipe.title and len(table.columns) >= len(find_layout(name).columns)
    numbers = [cell.score for line in table.lines for cell in line.cells if cell.score]
    against_people = any(c.score.startswith("people:") for c in find_layout(name).columns)
    assert numbers or against_people
    for form in ("md", "tex", "csv", "json"):
        assert format_table(table, form)


def test_labels_fill_the_table_of_judges(full_release: Path, tmp_path: Path, server: Any) -> None:
    server.answer = answer
    changes = stand_ins(
        "ots-bench-3", full_release, lambda judge: server.spec("openai").replace("m-1", judge)
    )
    changes += ["suites.i2i_homogenization=", "suites.i2i_correctness=", "except=[]"]
    changes += ["suites.t2i_homogenization.limit=8", "suites.t2i_correctness.limit=8"]
    changes += ['generators={"FLUX-dev": "python:study_doubles:painter"}']
    recipe = tmp_path / "r.yaml"
    recipe.write_text(read_recipe("ots-bench-3").text)
    done = run_study(recipe, tmp_path / "study", changes=changes)
    all_labels, files = ["case,question,label\n"], {}
    for suite in ("t2i_homogenization", "t2i_correctness"):
        run = Run.open(tmp_path / f"study/runs/{suite}/FLUX-dev")
        first = run.judge(
            done.study.models()["judges"]["Qwen3-VL-8B"]["identity"] | {"persona": "standard"}
        )
        said = sorted(first.newest.values(), key=lambda a: a.case)
        lines = [f"{a.case},{a.question},{a.verdict.label}\n" for a in said]
        files[suite] = tmp_path / f"{suite}.csv"
        files[suite].write_text("".join([all_labels[0], *lines]))
        all_labels += lines
    (tmp_path / "all.csv").write_text("".join(all_labels))
    changes += [f"labels={json.dumps({s: str(f) for s, f in files.items()})}"]
    changes += [f"judges.people=human:{tmp_path / 'all.csv'}"]
    table = study_table(run_study(recipe, tmp_path / "study", changes=changes).study)
    # Kappa pools suites that this study doesn't have: no such column without them.
    assert [column.label for column in table.columns] == ["T2I", "Ali", "Rev"]
    lines = {line.name: line for line in table.lines}
    for mine, people in zip(lines["Qwen3-VL-8B"].cells, lines["people"].cells, strict=True):
        assert mine.score is not None and people.score is not None
        assert mine.score.n == people.score.n and mine.score.n
        assert mine.score.value == people.score.value
    assert "the paper's people is" not in " ".join(table.notes)
    assert "Qwen3-VL-8B is Qwen3-VL-8B" not in " ".join(table.notes)


def test_each_recipe_says_what_is_an_estimate() -> None:
    for name in recipe_names():
        text = read_recipe(name).text
        assert "# Estimates of ours" in text and text.startswith("# "), name
        layout = find_layout(name)
        assert layout.paper is not None and "Table" in layout.paper.source


def test_an_unknown_recipe() -> None:
    with pytest.raises(UsageError, match="no recipe 'ots-bench-5': did you mean"):
        read_recipe("ots-bench-5")


@pytest.mark.skipif(not GOLDEN.exists(), reason="the papers' tables are not here")
def test_printed_values_are_those_of_the_papers() -> None:
    golden = json.loads(GOLDEN.read_text())
    ots, world = golden["000"]["tables"], golden["004"]["tables"]

    def shown(name: str) -> dict[str, Any]:
        layout = find_layout(name)
        assert layout.paper is not None
        return {k.lower().replace("-", " "): v.values for k, v in layout.paper.lines.items()}

    def plain(name: str) -> str:
        return re.sub("[- ]", " ", name.lower())

    main = {plain(k): tuple(v) for k, v in ots["table4_main"]["rows"].items()}
    assert shown("ots-bench-4") == main
    assert sorted(shown("ots-bench-3").values()) == sorted(
        tuple(v) for v in ots["table3_judges"]["rows"].values()
    )
    counts = [
        (*(n for row in m["m"] for n in row), m["kappa_printed"])
        for m in ots["table13_confusions"]["matrices"].values()
    ]
    assert sorted(shown("ots-bench-13").values()) == sorted(counts)
    judges = world["table2"]["judges"]
    assert shown("cf-world-2") == {
        plain(name): dict(zip(judges, map(tuple, rows), strict=True))
        for name, rows in world["table2"]["rows"].items()
    }
    assert shown("cf-world-3") == {
        plain(name): tuple(row[1:]) for name, row in world["table3"]["rows"].items()
    }
