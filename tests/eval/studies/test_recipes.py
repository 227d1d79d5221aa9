"""Every study that ships: its file, its plan, its table, and a run from end to end."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from recipe_stand_ins import StandIns, labels_of, tiny_lora
from refusals import raises
from trip_doubles import rows as trip_rows

from counterprior.errors import UsageError
from counterprior.eval.engine.data import Rows, read_rows
from counterprior.eval.engine.run import Run
from counterprior.eval.studies import preflight as plan
from counterprior.eval.studies import runner as studies
from counterprior.eval.studies.folder import Study
from counterprior.eval.studies.formats import FORMS, format_table
from counterprior.eval.studies.preflight import plan_study
from counterprior.eval.studies.recipes import find_layout, read_recipe, recipe_names
from counterprior.eval.studies.runner import run_study
from counterprior.eval.studies.scores.corpora import RESULT, read_corpus
from counterprior.eval.studies.table import study_table
from counterprior.eval.suites import SUITES
from counterprior.release import iter_records
from counterprior.schema import ROWS

GOLDEN = Path(__file__).parents[4] / "shared" / "golden" / "paper_tables.json"
CHEAP = ("ots-bench-5", "spatialbench-uc-5")
"""Recipes that every run of the tests takes from end to end; the others are opt-in."""
PEOPLE = {"cf-world-4": "accept"}
"""Recipe -> the question that people alone answer."""


@pytest.fixture(autouse=True)
def world(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (studies, plan):
        monkeypatch.setattr(module, "read_rows", with_trips(module.read_rows))


def with_trips(read: Callable[..., Rows]) -> Callable[..., Rows]:
    """Reads a config, or for round trips a small world: no release has rows of its own."""

    def read_rows(data: str, suite: str) -> Rows:
        return Rows.of(trip_rows(4)) if SUITES[suite].takes_trips else read(data, suite)

    return read_rows


def answer(body: dict[str, Any]) -> str:
    """One of the first two answers, decided by the question and its image."""
    return str(1 + hashlib.sha256(json.dumps(body).encode()).digest()[0] % 2)


@pytest.fixture(scope="module")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Two results of `corpus mine`, without the mining."""
    found = {}
    for name, aligned in (("LAION-2B-en-aesthetic", 9), ("DataComp-Large", 6)):
        folder = tmp_path_factory.mktemp(name)
        share = {"n": 10, "rate": aligned / 10, "by_pair": [0.4, 0.98]}
        told = {"judge": {"kind": "boxes", "version": "1"}, "single_probe": share}
        told |= {"four_probes": {"n": 8, "rate": 0.75, "by_pair": [0.5, 1]}}
        told |= {"consistent": {"n": 0, "rate": None, "by_pair": [None, None]}}
        (folder / RESULT).write_text(json.dumps(told))
        found[name] = folder
    return found


def rendered_weights(folder: Path) -> Path:
    """Fake weights of the renderer."""
    (folder / "render.json").write_text('{"order_bias": 0.5}')
    return folder


@pytest.fixture
def stand_ins(
    request: pytest.FixtureRequest, corpora: dict[str, Path], tmp_path: Path, server: Any
) -> Callable[[str], list[str]]:
    """Changes of a recipe that let it run here."""

    def changes(name: str) -> list[str]:
        server.answer = answer
        weights = {}
        if name in ("ots-bench-6", "ots-bench-19"):
            flux = request.getfixturevalue("checkpoint")("flux")
            weights = {"lora/flux": tiny_lora(flux, tmp_path / "flux")}
            weights["lora/qwen-image"] = rendered_weights(tmp_path)
        made = StandIns(
            data=Path() if name == "ots-bench-5" else request.getfixturevalue("full_release"),
            chat=lambda judge: server.spec("openai").replace("m-1", judge),
            checkpoint=lambda kind: request.getfixturevalue("checkpoint")(kind),
            weights=weights,
            corpora=corpora,
        )
        return made.changes(name)

    return changes


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
@pytest.mark.parametrize(
    "name",
    [n if n in CHEAP else pytest.param(n, marks=pytest.mark.lane) for n in recipe_names()],
)
def test_a_recipe_ends_in_its_table(
    name: str, stand_ins: Callable[[str], list[str]], tmp_path: Path
) -> None:
    recipe, changes = read_recipe(name), stand_ins(name)
    file = tmp_path / f"{name}.yaml"
    file.write_text(recipe.text)
    done = run_study(file, tmp_path / "study", changes=changes)
    # The renderer draws no law and no clock face, noise shows no source to edit: that is said, and
    # costs nobody else.
    causes = ("no image to judge", "can't be drawn")
    assert all(any(c in f.cause for c in causes) for f in done.failures), done.failures
    if recipe.study.labels:
        files = {}
        for suite in recipe.study.labels:
            file_of = labels_of(done.study, suite, PEOPLE.get(name, ""), tmp_path / f"{suite}.csv")
            files[suite] = str(file_of)
        changes = [*changes, f"labels={json.dumps(files)}"]
        done = run_study(file, tmp_path / "study", changes=changes)
    table = study_table(done.study)
    assert table.title == recipe.title and len(table.columns) >= len(find_layout(name).columns)
    layout = find_layout(name)
    for place, column in enumerate(table.columns):
        known = [line.cells[place].score for line in table.lines if line.cells[place].score]
        # Two rows are of few groups, and people's column needs a judge that only they can be.
        asked = layout.columns[place % len(layout.columns)]
        absent = asked.group != "all" or asked.label in ("Human", "Ali", "Rev")
        assert known or absent, column
    assert any(cell.score for line in table.lines for cell in line.cells)
    for form in (*FORMS, *(["svg"] if find_layout(name).figure else [])):
        assert format_table(table, form)


@pytest.mark.slow
def test_a_recipe_s_table_stands_before_anything_is_made(
    corpora: dict[str, Path], tmp_path: Path
) -> None:
    for name in recipe_names():
        study, layout = read_recipe(name).study, find_layout(name)
        if study.corpora:
            study = study.model_copy(update={"corpora": {n: str(f) for n, f in corpora.items()}})
        table = study_table(Study(tmp_path / name, study))
        repeated = len(study.judges) if layout.across else 1
        assert len(table.columns) == repeated * len(layout.columns)
        shown = {line.name for line in table.lines}
        drawn = {f"{g}+{m}" for g in study.generators for m in study.methods}
        models = {*study.all_generators, *study.all_judges, *study.corpora, *drawn}
        assert shown <= {*layout.lines, *models}, name
        printed = layout.paper.lines if layout.paper else {}
        for line in table.lines:
            if line.name in printed:
                given = printed[line.name].values
                rows = given.values() if isinstance(given, dict) else [given]
                expected = [value for row in rows for value in row]
                assert [cell.paper for cell in line.cells][: len(expected)] == expected, name
            gaps = {cell.gap for cell in line.cells}
            assert study.corpora or gaps <= {"", "not begun"} | _others(gaps), (name, gaps)
            assert study.corpora or any(gaps), (name, line)
        for place, heading in enumerate(table.columns):
            known = [line.cells[place].gap for line in table.lines]
            assert any(known) or study.corpora or heading.label == "Human", (name, heading)
        # A line of the paper is of a model that the file names, if only in a comment.
        text = read_recipe(name).text
        for line_name in printed:
            of = layout.lines[line_name].generator if line_name in layout.lines else line_name
            assert line_name in shown or f"# {of}:" in text, (name, line_name)
        assert not [n for n in table.notes if n.startswith("the paper's")], (name, table.notes)
        for form in FORMS:
            assert format_table(table, form)


def _others(gaps: set[str]) -> set[str]:
    """Gaps that name several cells, none of them begun."""
    return {g for g in gaps if all(part.endswith(": not begun") for part in g.split("; "))}


@pytest.mark.slow
def test_a_recipe_can_be_planned(
    full_release: Path, corpora: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @with_trips
    @cache
    def few(data: str, suite: str) -> Rows:
        if not Path(data).is_dir():  # a list of prompts; the captions and boxes of COCO don't ship
            listed = Path(data.partition("?")[0])
            is_there = listed.is_file()
            stand_in = listed.with_name("spatial_val.txt")
            return read_rows(data if is_there else f"{stand_in}?benchmark=compbench", suite)
        records = islice(iter_records(Path(data), suite), 12)
        return Rows([ROWS[suite].model_validate(record) for record in records], "0")

    monkeypatch.setattr(plan, "read_rows", few)
    made = StandIns(
        data=full_release,
        chat=lambda judge: f"python:study_doubles:reader?name={judge}",
        checkpoint=None,
        weights=dict.fromkeys(("lora/flux", "lora/qwen-image"), rendered_weights(tmp_path)),
        corpora=corpora,
    )
    for name in recipe_names():
        recipe = read_recipe(name)
        file = tmp_path / f"{name}.yaml"
        file.write_text(recipe.text)
        found = plan_study(file, changes=made.changes(name))
        assert bool(found.workloads) != bool(recipe.study.corpora), name
        assert all("can't be drawn" in p or "clock" in p for p in found.problems), found.problems


@pytest.mark.lane
@pytest.mark.parametrize("name", recipe_names())
def test_its_own_models_are_only_not_here(name: str, full_release: Path, tmp_path: Path) -> None:
    file = tmp_path / f"{name}.yaml"
    file.write_text(read_recipe(name).text)
    suites = read_recipe(name).study.suites
    changes = [f"data={full_release}", *(f"suites.{suite}.limit=2" for suite in suites)]
    found = plan_study(file, changes=changes if suites else [])
    assert found.problems, "models that nobody has downloaded"
    spelled = re.compile("option|no (generator|judge|method|preset|kind)|Traceback")
    assert not [p for p in found.problems if spelled.search(p) or "\n" in p], found.problems


def test_a_corpus_that_is_not_mined_names_the_command(tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    file.write_text(read_recipe("ots-bench-5").text)
    with raises("no-such-file", "mined/laion/"):
        run_study(file, tmp_path / "study")
    assert len(plan_study(file).problems) == 2
    (tmp_path / RESULT).write_text('{"single_probe": {}}')
    with raises("bad-format", "`counterprior corpus mine`"):
        read_corpus(tmp_path)


@pytest.mark.slow
def test_labels_fill_the_table_of_judges(
    stand_ins: Callable[[str], list[str]], tmp_path: Path
) -> None:
    changes = stand_ins("ots-bench-3")
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
            done.study.models.read()["judges"]["Qwen3-VL-8B"]["identity"] | {"persona": "standard"}
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
        if layout.paper is None:  # a figure, or a table that stands in no paper
            assert "Figure" in "".join(layout.notes) or "No printed values" in "".join(layout.notes)
        else:
            assert "Table" in layout.paper.source


@pytest.mark.skipif(not GOLDEN.exists(), reason="the papers' tables are not here")
def test_recipes_draw_as_many_as_the_papers() -> None:
    golden = json.loads(GOLDEN.read_text())
    pse, world = golden["001"]["tables"], golden["004"]["tables"]

    def searched(name: str) -> set[int]:
        methods = map(str, read_recipe(name).study.methods.values())
        found = (re.match(r"best-of:(\d+)\?", spec) for spec in methods)
        return {int(match[1]) for match in found if match}

    def rows(name: str) -> int | None:
        return next(iter(read_recipe(name).study.suites.values())).limit

    assert searched("pse-3") == {pse["table7_search_3d"]["n_search"]}  # searched in depth, too
    assert searched("pse-11") == {pse["table11_detectors"]["N"]}
    steps = [*pse["table16_scaling"]["columns"][1:]]
    assert sorted(searched("pse-16")) == [int(step.removeprefix("N=")) for step in steps]
    assert searched("pse-17") == {max(searched("pse-16"))}
    assert rows("pse-11") == rows("pse-17") == rows("pse-16") == pse["table16_scaling"]["n_prompts"]
    images = world["design"]["human_n_images"]
    assert rows("cf-world-fig-5") == images / len(read_recipe("cf-world-fig-5").study.generators)


def test_an_unknown_recipe() -> None:
    with raises("unknown-name", "ots-bench-55", error=UsageError):
        read_recipe("ots-bench-55")


@pytest.mark.skipif(not GOLDEN.exists(), reason="the papers' tables are not here")
def test_printed_values_are_those_of_the_papers() -> None:
    golden = json.loads(GOLDEN.read_text())
    ots, pse, uc, world = (golden[f"00{n}"]["tables"] for n in (0, 1, 2, 4))

    compared = set()

    def shown(name: str) -> dict[str, Any]:
        compared.add(name)
        layout = find_layout(name)
        assert layout.paper is not None
        return {plain(k): v.values for k, v in layout.paper.lines.items()}

    def plain(name: str) -> str:
        known = {"sd xl": "sdxl", "sd2.1": "sd 2.1", "sana1.5": "sana 1.5"}
        words = re.sub("[- ]+", " ", name.lower().replace(" + ", " "))
        return known.get(words, words)

    def rows(table: dict[str, Any]) -> dict[str, Any]:
        return {plain(k): tuple(v) for k, v in table.items()}

    assert shown("ots-bench-4") == rows(ots["table4_main"]["rows"])
    assert sorted(shown("ots-bench-3").values()) == sorted(
        tuple(v) for v in ots["table3_judges"]["rows"].values()
    )
    counts = [
        (*(n for row in m["m"] for n in row), m["kappa_printed"])
        for m in ots["table13_confusions"]["matrices"].values()
    ]
    assert sorted(shown("ots-bench-13").values()) == sorted(counts)
    assert shown("ots-bench-5") == {
        plain(name): (told["n"], told["ots_align_pct"], None, None)
        for name, told in ots["table5_corpora"].items()
    }
    assert shown("ots-bench-6") == rows(ots["table6_sft"]["rows"])
    assert shown("ots-bench-19") == rows(ots["table19_human_quality"]["rows"])
    switched = ots["table7_temporal"]
    steps = [column.label for column in find_layout("ots-bench-7").columns]
    assert steps == list(map(str, switched["switch_steps"]))
    assert shown("ots-bench-7") == {
        key[:3].lower(): tuple(values)
        for key, values in switched.items()
        if key.endswith(("_success", "_hom"))
    }
    metrics = rows(pse["table1_corr"]["rows"])
    assert shown("pse-1") == {k: metrics[k] for k in shown("pse-1")} and len(shown("pse-1")) == 5
    derived = golden["_derived"]["pse_table2_derived"]
    for name, key in (("visor", "VISOR"), ("hrs bench", "HRS"), ("pse(0.5)", "PSE(0.5)")):
        precision, recall, _, npv, _ = shown("pse-2")[name]
        for value, true in ((precision, "true_precision"), (recall, "true_recall"), (npv, "NPV")):
            assert value == pytest.approx(derived[key][true] / 100, abs=2e-4)
    for name, table in {
        "3": "table3_pse",
        "4": "table4_visor",
        "6": "table6_hrs",
        "7": "table7_search_3d",
        "12": "table12_maps",
        "13": "table13_hrs_difficulty",
        "17": "table17_search",
    }.items():
        assert shown(f"pse-{name}") == rows(pse[table]["rows"]), name
    for name, table in {"5": "table5_t2i_compbench", "14": "table14_t2i_compbench_sd14"}.items():
        fractions = {k: [round(x / 100, 4) for x in v] for k, v in shown(f"pse-{name}").items()}
        assert fractions == {k: [*v] for k, v in rows(pse[table]["rows"]).items()}, name
    # The mean of the three levels of difficulty is the number of the other table.
    by_level, whole = shown("pse-13")["psg"], shown("pse-6")["sdxl psg"]
    assert round(sum(by_level) / len(by_level), 2) == whole[0] == 34.33
    many = pse["table15_many_objects"]["rows"]
    assert shown("pse-15") == {
        plain(k): (*many[f"3: {k}"], None, *many[f"4: {k}"], None) for k in ("SDXL", "SDXL + PSG")
    }
    hidden = pse["texts"]["occluded_pearson"]
    assert shown("pse-occluded") == {plain(k): (r, None) for k, r in hidden.items()}
    scores = pse["texts"]["clip_score_coco"]
    assert shown("pse-8") == {plain(k): (score, None) for k, score in scores.items()}
    note = find_layout("pse-8").notes[0]
    for values in pse["table8_quality"]["rows"].values():
        assert ", ".join(f"{value:g}" for value in values) in note
    notes = " ".join(find_layout("pse-18").notes)
    for line, values in pse["table18_box_variance"]["rows"].items():
        assert f"{line[:3]}{', '.join(f'{value:g}' for value in values)}" in notes
    spoiled = pse["table10_corruption"]
    assert [value for (value,) in shown("pse-10").values()] == [
        spoiled["baseline"],
        *spoiled["raw_row"],
    ]
    assert shown("pse-11") == rows(pse["table11_detectors"]["rows"])
    for name, (first, second) in {
        "pse-16": (pse["table16_scaling"]["pse"], pse["table16_scaling"]["center_acc"]),
        "pse-19": (pse["table19_relation"]["visor"], pse["table19_relation"]["oa"]),
    }.items():
        assert shown(name) == {plain(k): (*first[k], *second[k]) for k in first}, name
    tables = {"5": "main_calibrated", "6": "abstention", "7": "prompt_level"}
    for number, table in tables.items():
        assert shown(f"spatialbench-uc-{number}") == rows(uc[table]["rows"]), number
    both = {k: tuple(v[1:3]) for k, v in rows(uc["main_calibrated"]["rows"]).items()}
    assert shown("spatialbench-uc-fig-4") == both
    assert shown("spatialbench-uc-relations") == rows(uc["by_relation_pass"]["rows"])
    pairs = rows(uc["counterfactual"]["rows"])
    assert shown("spatialbench-uc-pairs") == {k: (*v[1:], None) for k, v in pairs.items()}
    before, now, best, change = (
        rows(uc[table]["rows"])
        for table in ("uncalibrated", "main_calibrated", "prompt_level", "calibration_delta_pp")
    )
    assert shown("spatialbench-uc-calibration") == {
        name: (*before[name], *now[name][:3], best[name][0], now[name][3], *change[name])
        for name in before
    }
    judges = world["table2"]["judges"]
    assert shown("cf-world-2") == {
        plain(name): dict(zip(judges, map(tuple, found), strict=True))
        for name, found in world["table2"]["rows"].items()
    }
    assert shown("cf-world-3") == {k: v[1:] for k, v in rows(world["table3"]["rows"]).items()}
    acon = golden["003"]["tables"]
    for name, table, keys in (
        ("acon-1", "table1_cyclic", ("first_i2t", "second_t2i", "first_t2i", "second_i2t")),
        ("acon-4", "table4_conjugated", ("i2t", "t2i", "t2i", "i2t")),
    ):
        expected = {}
        for line in acon[table]:
            for side, (first, second) in (("image", keys[:2]), ("text", keys[2:])):
                found = line[side]
                key = plain(f"{side}: {found[first]} to {found[second]}")
                expected[key] = (found["acc"], found["f1"])
        assert {k: v[:2] for k, v in shown(name).items()} == expected and len(expected) == 72
        for name, side in (("acon-fig-4", "image"), ("acon-fig-5", "text")):
            pairs = {k: v[:1] for k, v in expected.items() if k.startswith(f"{side}:")}
            if table == "table1_cyclic":
                assert shown(name) == pairs and len(pairs) == 36
    expected = {}
    for line in acon["table3_forward"]:
        for side, found in line.items():
            values = expected.setdefault(plain(f"{side}: {found['row']}"), [])
            values.extend([] if values else [found["acc_fg"], found["acc_gf"]])
            values.append(found["corr"])
    assert {k: list(v[:8]) for k, v in shown("acon-3").items()} == expected
    checkpoints = {name: row[0] for name, row in acon["table2_models"]["rows"].items()}
    for name in ("acon-1", "acon-3", "acon-4"):
        study = read_recipe(name).study
        specs = [*study.all_generators.values(), *study.all_captioners.values()]
        for model in (
            "Flux",
            "SDXL",
            "LLaVA-Next",
            "Qwen2-VL",
            "Anole",
            "Emu3",
            "VILA-U",
            "Seed-X",
        ):
            assert any(f":{checkpoints[model]}" in spec for spec in specs), (name, model)
        if study.editors.text:
            assert f":{checkpoints['text editor']}@" in study.editors.text
        assert f":{checkpoints['text evaluator']}@" in study.text_judges["Qwen2.5"]
        # The models that differ are named as such.
        assert checkpoints["image evaluator"] in read_recipe(name).text
        if study.editors.image:
            assert f"in the paper by {checkpoints['image editor']}" in read_recipe(name).text
    (gate,) = shown("cf-world-4").values()
    accuracy, f1 = zip(*world["table4_threshold"].values(), strict=True)
    assert gate == (*accuracy, *(pytest.approx(100 * share) for share in f1))
    # No recipe has a number that is not compared here.
    assert compared == {name for name in recipe_names() if find_layout(name).paper}
