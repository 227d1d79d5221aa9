"""`judge-check`: judges on gold images, and pairs that are excluded from their scores."""

import hashlib
import html
import json
import math
import random
import re
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from subprocess import CompletedProcess

import gold_judges
import pytest
from PIL import Image, ImageOps
from refusals import raises
from releases import small_release

from counterprior.builders import suite
from counterprior.builders.build import as_released
from counterprior.builders.suites import altered_worlds, t2i_correctness
from counterprior.cards.config_checks import Origin, differences
from counterprior.cards.manifest import read_manifest
from counterprior.errors import DataError
from counterprior.eval.api import evaluate
from counterprior.eval.core import Question
from counterprior.eval.engine.data import read_rows
from counterprior.eval.engine.evaluation import RunSettings
from counterprior.eval.engine.run import Run
from counterprior.eval.engine.steps import evaluate_run
from counterprior.eval.publishing.building import PublishSettings, build_publication
from counterprior.eval.publishing.restoring import recompute
from counterprior.eval.report.site import write_report
from counterprior.eval.results.judge_check import read_checks
from counterprior.eval.results.scoring import ScoreSettings, score_run
from counterprior.eval.store.verdicts import VERDICTS
from counterprior.eval.studies.judge_check import check_judges, gold_rows
from counterprior.eval.studies.preflight import plan_study
from counterprior.eval.studies.runner import run_study
from counterprior.images import encode_png
from counterprior.release import iter_records
from counterprior.schema import Row, T2ICorrectnessGold

GOLD, PAIRS = "t2i_correctness_gold", "t2i_correctness"
FEW = {"flag-france", "clock-9-15"}


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The gold images of three pairs, and these pairs with one that has none."""

    drawn = {name: d for name, d in suite.SHIPPED.drawables.items() if d.depiction.id in FEW}
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(suite.SHIPPED.__dict__, "drawables", drawn)
        out = tmp_path_factory.mktemp("gold") / "release"
        return small_release(out, (PAIRS, GOLD), lambda rows: four_pairs(rows, set(drawn)))


def test_a_folder_of_a_release_may_have_an_at_sign_in_its_path(
    release: Path, tmp_path: Path
) -> None:
    (tmp_path / "me@work").symlink_to(release.parent)
    data = str(tmp_path / "me@work" / release.name)
    pairs = [row.id for row in read_rows(data, PAIRS).rows]
    gold_images = gold_rows(data, PAIRS, pairs)
    assert gold_images is not None and len(gold_images.rows) > 0
    checked = check_judges(data, tmp_path / "gold", ["python:gold_judges:seeing"])
    assert [check.suite.name for check in checked] == [GOLD]


def test_judges_are_checked_by_command(
    release: Path, tmp_path: Path, cli: Callable[..., CompletedProcess[str]]
) -> None:
    judges = ("--judge", "python:gold_judges:seeing", "--judge", "python:gold_judges:knowing")
    done = cli("judge-check", *judges, "--data", release, "--out", tmp_path / "gold")
    assert done.returncode == 0, done.stderr
    assert "0 of 3 pairs are excluded" in done.stdout
    assert "3 of 3 pairs are excluded for this judge" in done.stdout
    assert "flags-and-heraldry-france-blue-red" in done.stdout
    knowing, seeing = read_checks(tmp_path / "gold" / GOLD)  # by name
    assert seeing.judge == "python:gold_judges:seeing" and seeing.misled == {}
    assert knowing.confusion["swapped"] == {"correct": 6} and len(knowing.misled) == 3
    results = json.loads((tmp_path / "gold" / GOLD / "scores.json").read_text())
    of_all = [{s["name"]: s for s in r["scores"] if s["group"] == "all"} for r in results]
    names = ("recognized", "swapped_called_correct", "controls_recognized")
    assert [[scores[name]["value"] for name in names] for scores in of_all] == [
        [50, 100, 0],
        [100, 0, 100],
    ]
    assert of_all[0]["recognized"]["n"] == 12
    clocks = next(
        s
        for s in results[0]["scores"]
        if s["name"] == "recognized" and s["group"] == "domain=clocks_and_dials"
    )
    assert clocks["n"] == 4 and clocks["interval"][0] < 50 < clocks["interval"][1]


def test_scores_say_which_rows_have_no_gold_images(
    release: Path, tmp_path: Path, cli: Callable[..., CompletedProcess[str]]
) -> None:
    judge = ("--judge", "python:gold_judges:seeing")
    rows = len(read_rows(str(release), PAIRS).rows)
    painter = ("--suite", PAIRS, "--generator", "python:gold_judges:painter")
    done = cli("eval", *painter, *judge, "--data", release, "--out", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    note = f"for 1 of the {rows} rows, which stay in: the check has none of 1"
    assert note in " ".join(done.stdout.split() + done.stderr.split())
    (result,) = json.loads(cli("score", tmp_path / "run", "--json").stdout)
    assert any(note in text for text in result["notes"])
    # One of four is more than a tenth.
    assert {tuple(score["marks"]) for score in result["scores"]} == {("partly-checked",)}


def test_the_page_counts_the_rows_without_gold_images() -> None:
    page = " ".join((Path(__file__).parents[3] / "docs" / "gold.md").read_text().split())
    pairs = t2i_correctness.build(suite.SHIPPED, random.Random())
    bare = [row for row in pairs if row.provenance.entry not in suite.SHIPPED.drawables]
    assert f"{len(bare)} of the {len(pairs)} rows of `{PAIRS}`" in page
    worlds = altered_worlds.build(suite.SHIPPED, random.Random())
    undrawn = [row.group for row in worlds if row.group not in suite.SHIPPED.world_drawings]
    counted = f"{len(undrawn):,} of the {len(worlds):,} rows of `altered_worlds`"
    assert f"{counted} ({len(set(undrawn))} groups)" in page


@pytest.mark.slow
def test_misled_pairs_are_excluded_with_the_score_before_and_after(
    release: Path, tmp_path: Path
) -> None:
    dazzled = "python:gold_judges:dazzled"
    check_judges(str(release), tmp_path / "gold", [dazzled])
    run = RunSettings(suite=PAIRS, data=str(release), out=tmp_path / "run")
    evaluate_run(run, gold_judges.draw_nothing, [dazzled, "python:gold_judges:seeing"])
    with raises("judge-unchecked", dazzled, error=DataError):
        score_run(run.out, ScoreSettings(gold=tmp_path / "gold"))
    chosen = ScoreSettings(gold=tmp_path / "gold", judges=(dazzled,))
    (judged,) = score_run(run.out, chosen)
    assert judged.whole["valid_reverse"].n == 3
    (note,) = [note for note in judged.result.notes if "1 pairs are excluded" in note]
    assert "accuracy_reverse_unconditional 25.0 with all of them, 0.0 without" in note
    assert judged.result.card.gold["all"]["swapped"] == {"correct": 2, "wrong": 4}
    assert judged.check is not None and len(judged.check.misled) == 1 and not judged.check.failed
    (plain,) = score_run(run.out, ScoreSettings(judges=chosen.judges))
    assert plain.whole["valid_reverse"].n == 4
    assert any("not checked on gold images" in note for note in plain.result.notes)


@pytest.mark.parametrize("answer", ["correct", "wrong", "coin"])
def test_a_judge_that_does_not_look_has_no_scores(
    answer: str, release: Path, tmp_path: Path
) -> None:
    """A judge that always says "wrong" misled nobody about swapped images, and scored 0."""

    def blind(question: Question) -> str:
        heads = int(hashlib.sha256(question.id.encode()).hexdigest(), 16) % 2
        return ("correct", "wrong")[heads] if answer == "coin" else answer

    result = evaluate(PAIRS, gold_judges.draw_nothing, blind, data=str(release), out=tmp_path / "o")
    score = result.scores["accuracy_reverse"]
    assert math.isnan(score.value) and score.n == 0
    assert any("fails its check on gold images: informedness" in note for note in result.notes)


@pytest.mark.parametrize(
    ("judge", "doubt"),
    [
        ("blind", "python:gold_judges:blind fails its check on gold images"),
        pytest.param(
            "mute",
            "python:gold_judges:mute gave no answer that counts: ",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_judge_that_cannot_be_believed_is_named_above_the_scores(
    judge: str,
    doubt: str,
    release: Path,
    tmp_path: Path,
    cli: Callable[..., CompletedProcess[str]],
) -> None:
    run = tmp_path / "run"
    made = ("--generator", "python:gold_judges:painter", "--judge", f"python:gold_judges:{judge}")
    done = cli("eval", "--suite", PAIRS, "--data", release, *made, "--out", run)
    above, _, below = " ".join(done.stdout.split()).partition("t2i_correctness: python:")
    assert doubt in above and doubt not in below, done.stdout + done.stderr
    site = tmp_path / "site"
    assert cli("report", run, "--out", site).returncode == 0
    for page in ("index.html", "t2i_correctness.html"):
        shown = (site / page).read_text()
        assert shown.count('class="doubt"') == 1 and doubt in html.unescape(shown)


@pytest.mark.slow
def test_a_study_checks_its_judges_first(
    release: Path, tmp_path: Path, cli: Callable[..., CompletedProcess[str]]
) -> None:
    judges = {name: f"python:gold_judges:{name}" for name in ("seeing", "knowing")}
    plain = {"data": str(release), "suites": {PAIRS: {}}, "judges": judges}
    file, out = tmp_path / "s.yaml", tmp_path / "out"
    generators = {name: "python:gold_judges:painter" for name in ("one", "two")}
    file.write_text(json.dumps(plain | {"generators": generators}))
    planned = {(p.name, p.what): p.count for p in plan_study(file).questions}
    for name in judges:
        assert planned[name, f"gold images of {PAIRS}"] == 21
        assert planned[name, f"questions of {PAIRS}"] == 16
    run_study(file, out)
    assert not plan_study(file, out).workloads
    logs = Run.open(out / "gold" / GOLD).judges()
    asked = [len((log.root / VERDICTS).read_text().splitlines()) for log in logs]
    assert asked == [21, 21], "once each, whatever the number of generators"
    done = cli("study", "table", out)
    assert done.returncode == 0, done.stderr
    assert "python:gold_judges:knowing fails its check on gold images" in done.stdout
    run = out / "runs" / PAIRS / "two"
    knowing, seeing = score_run(run, ScoreSettings())
    assert [one.result.cases for one in (knowing, seeing)] == [8, 8]
    assert knowing.whole["accuracy_reverse"].n == 0
    page = write_report([run], tmp_path / "site").parent / f"{PAIRS}-judges.html"
    text = re.sub(r"<[^>]+>", "", page.read_text())
    assert text.count("6 of 6") == 3 and text.count("0 of 6") == 1  # all right and swapped ones
    build_publication([run], tmp_path / "published", PublishSettings("cc0-1.0"))
    assert recompute(tmp_path / "published").problems == []


@pytest.fixture(scope="module")
def larger_release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The gold images of some more pairs, and these pairs with one that has none."""
    ids = sorted(d.depiction.id for d in suite.SHIPPED.drawables.values())[:16]
    drawn = {name: d for name, d in suite.SHIPPED.drawables.items() if d.depiction.id in ids}
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(suite.SHIPPED.__dict__, "drawables", drawn)
        out = tmp_path_factory.mktemp("larger") / "release"
        return small_release(out, (PAIRS, GOLD), lambda rows: four_pairs(rows, set(drawn)))


@pytest.mark.slow
def test_scores_are_also_printed_corrected_by_the_errors_on_gold_images(
    larger_release: Path, tmp_path: Path, cli: Callable[..., CompletedProcess[str]]
) -> None:
    out = tmp_path / "run"
    options = ("--suite", PAIRS, "--data", larger_release, "--out", out)
    models = ("--generator", "python:gold_judges:painter", "--judge", "python:gold_judges:lenient")
    done = cli("eval", *options, *models)
    assert done.returncode == 0, done.stderr
    (judged,) = score_run(out, ScoreSettings())
    assert judged.check is not None and judged.check.items >= 10
    swapped = judged.check.confusion["swapped"]
    sensitivity = 1.0  # of right images, none is missed
    lenience = swapped["correct"] / sum(swapped.values())
    outcomes = Run.open(out).judges()[0].present(Run.open(out).present())
    labels = [a.verdict.label for a in outcomes if "-reverse-" in a.case]
    share = labels.count("correct") / len(labels)
    corrected = judged.whole["accuracy_reverse_by_gold"]
    expected = (share - lenience) / (sensitivity - lenience)
    assert corrected.value == pytest.approx(100 * expected) and corrected.n == len(labels)
    unconditional = judged.whole["accuracy_reverse_unconditional_by_gold"]
    assert unconditional.value == pytest.approx(corrected.value)  # it calls none invalid
    assert corrected.interval.low < 50 < corrected.interval.high
    assert "as often as on gold images" in corrected.warning
    printed = cli("score", out).stdout
    assert "accuracy_reverse_by_gold" in printed and "as often as on gold images" in printed
    few = evaluate(
        PAIRS,
        gold_judges.draw_nothing,
        gold_judges.lenient(),
        unchecked=True,
        data=str(larger_release),
    )
    assert "accuracy_reverse_by_gold" not in few.scores


UNCHECKED = "the judge was not checked on gold images"


@pytest.mark.slow
def test_a_judge_without_a_check_is_marked_wherever_a_number_stands(
    release: Path, tmp_path: Path, cli: Callable[..., CompletedProcess[str]]
) -> None:
    study = {
        "data": str(release),
        "suites": {PAIRS: {}},
        "judges": {"knowing": "python:gold_judges:knowing"},
        "generators": {name: "python:gold_judges:painter" for name in ("one", "two")},
        "unchecked": True,
    }
    file, out = tmp_path / "s.yaml", tmp_path / "out"
    file.write_text(json.dumps(study))
    run_study(file, out)
    runs = [out / "runs" / PAIRS / name for name in ("one", "two")]
    scored, listed = cli("score", *runs), cli("score", *runs, "--json")
    assert len(re.findall(r"accuracy_reverse .* \d+\.\d†", scored.stdout)) == 2, scored.stdout
    assert scored.stdout.count(f"† {UNCHECKED}") == 2
    assert {tuple(s["marks"]) for r in json.loads(listed.stdout) for s in r["scores"]} == {
        ("unchecked",)
    }
    quality = cli("quality", *runs).stdout
    assert f"† {UNCHECKED}" in quality and re.search(r"accuracy_reverse.*\d†", quality)
    table = cli("study", "table", out).stdout
    assert re.search(r"\| one \|.*¹", table) and f"1. {UNCHECKED}" in table
    for form, text in (("tex", r"\textsuperscript{1}"), ("html", "¹"), ("csv", ""), ("json", "")):
        printed = cli("study", "table", out, "--format", form).stdout
        assert text in printed and UNCHECKED in printed, form
    site = write_report(runs, tmp_path / "site").parent
    for page in (site / "index.html", site / f"{PAIRS}.html"):
        assert f'<sup title="{UNCHECKED}">†</sup>' in page.read_text()
        assert f"† {UNCHECKED}" in page.read_text()
    build_publication(runs, tmp_path / "published", PublishSettings("cc0-1.0"))
    card = (tmp_path / "published" / "README.md").read_text()
    assert " %†" in card and f"† {UNCHECKED}" in card
    assert recompute(tmp_path / "published").problems == []
    inspect = cli("report", *runs, "--out", tmp_path / "exported", "--export", "inspect")
    assert inspect.returncode == 0, inspect.stderr
    logs = list((tmp_path / "exported").rglob("*_*.json"))
    assert logs and all(UNCHECKED in log.read_text() for log in logs)


def test_results_in_python_carry_the_mark_of_a_judge_without_a_check(release: Path) -> None:
    draw, seeing = gold_judges.draw_nothing, gold_judges.seeing()
    free = evaluate(PAIRS, draw, seeing, data=str(release), unchecked=True)
    assert set(free.to_pandas().marks) == {"unchecked"}
    assert f"unchecked: {UNCHECKED}" in free._repr_html_() and f"† {UNCHECKED}" in repr(free)
    checked = evaluate(PAIRS, draw, seeing, data=str(release))
    # One of the four pairs has no gold images.
    assert set(checked.to_pandas().marks) == {"partly-checked"} and "†" in repr(checked)
    blind = evaluate(PAIRS, draw, lambda question: "correct", data=str(release))
    assert set(blind.to_pandas().marks) == {"check-failed"} and "undefined‡" in repr(blind)


def test_eval_checks_the_rows_of_its_run_in_a_shared_folder(release: Path, tmp_path: Path) -> None:
    data, draw = str(release), gold_judges.draw_nothing
    asked: list[str] = []

    def knowing(question: Question) -> str:
        asked.append(question.id)
        return "correct"

    for name in ("one", "two"):
        found = evaluate(
            PAIRS,
            gold_judges.draw_nothing,
            knowing,
            data=data,
            gold=tmp_path / "gold",
            out=tmp_path / name,
        )
        assert any("fails its check" in note for note in found.notes)
    assert len(asked) == 21 + 8 + 8
    few = evaluate(PAIRS, draw, knowing, data=data, limit=2)
    asked_rows = {
        json.loads(line)["row"] for line in (few.folder / "cases.jsonl").read_text().splitlines()
    }
    checked = {row.source_id for row in read_rows(data, GOLD).rows} & asked_rows
    assert len(asked) == 37 + 4 + 7 * len(checked) and checked
    whole, before = tmp_path / "gold", len(asked)
    evaluate(PAIRS, draw, knowing, data=data, limit=2, gold=whole)
    assert len(asked) == before + 4, "a folder that knows the judge has its check for any rows"
    free = evaluate(PAIRS, draw, knowing, data=data, unchecked=True)
    assert not free.card.gold and free.scores["accuracy_aligned"].n == 4


def test_a_pair_without_a_verdict_on_its_swapped_image_is_unchecked(
    release: Path, tmp_path: Path
) -> None:
    (found,) = check_judges(str(release), tmp_path / "gold", [gold_judges.refusing()])
    (check,), (judged,) = found.checks, found.judged
    assert check.items == 0 and len(check.unchecked) == 3 and not check.misled
    swapped = judged.whole["swapped_recognized"]
    assert math.isnan(swapped.value) and swapped.excluded == {"refused": 6}


def test_the_images_are_those_of_the_release(release: Path, tmp_path: Path) -> None:
    (found,) = check_judges(str(release), tmp_path / "gold", [gold_judges.seeing()])
    digests = {image.sha256 for image in found.done.run.images().values()}
    assert digests == {row.image_sha256 for row in read_rows(str(release), GOLD).rows}


def test_validate_compares_the_pixels_with_the_bank(release: Path) -> None:
    config = next(one for one in read_manifest(release).configs if one.name == GOLD)
    records = list(iter_records(release, GOLD))
    rows = [T2ICorrectnessGold.model_validate(record) for record in records]
    origin = Origin("", lambda name, seed: None, as_released)
    assert not list(differences(config, records, list(rows), origin))
    with Image.open(BytesIO(records[0]["image"]["bytes"])) as image:
        image.convert("RGB").save(same := BytesIO(), "PNG", compress_level=9)
        other = encode_png(ImageOps.mirror(image.convert("RGB")))
    for data, faults in ((same.getvalue(), 0), (other, 1), (b"nothing", 1), (None, 1)):
        forged = [records[0] | {"image": data and {"bytes": data, "path": "a.png"}}, *records[1:]]
        found = list(differences(config, forged, list(rows), origin))
        assert [problem.field for problem in found] == ["image"] * faults


def four_pairs(rows: list[Row], drawn: set[str]) -> list[Row]:
    """The rows of the pairs with gold images, and one more; two prompts each."""
    known = [row for row in rows if row.provenance.entry in drawn]
    chosen = [*known, next(row for row in rows if row not in known)]
    return [row.model_copy(update={"unordered_prompt": "", "twin": ""}) for row in chosen]
