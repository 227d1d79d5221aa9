"""`judge-check --images`: judges on images of real generators that readers have labeled."""

import itertools
import json
import random
import re
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
import real_images
from PIL import Image
from refusals import raises
from releases import small_release

from counterprior.builders.suite import SHIPPED
from counterprior.builders.suites.real_gold import build
from counterprior.errors import DataError
from counterprior.eval.core import ALL, INVALID, ORIGINAL, Outcome, Verdict
from counterprior.eval.engine.data import Rows, read_rows
from counterprior.eval.engine.evaluation import RunSettings
from counterprior.eval.engine.steps import JudgeSettings, evaluate_run
from counterprior.eval.generators.folder import ImageFolder
from counterprior.eval.people.serve import Audit
from counterprior.eval.studies.graded_gold import IMAGES, VERSION, GradedImages, graded_scene
from counterprior.eval.studies.real_check import DRAWN, LABELS, RealImages, check_on_real
from counterprior.eval.suites.real import AXES, RealGoldSuite, condition_of, right_label
from counterprior.eval.suites.spatial import QUESTION
from counterprior.parsing import read_rows as read_json_rows
from counterprior.release import sha256_file
from counterprior.scenes.graded import LEVELS
from counterprior.schema import OwnPrompt, Provenance, RealGold, Row, SpatialVISOR

sys.path.append(str(Path(__file__).parents[3] / "tools"))
import read_graded
from read_graded import FILE as GRADED
from read_graded import misread

NAMES = ("guessing", "mentioning", "naming", "seeing")
VISOR = Path(__file__).parents[4] / "shared" / "data" / "visor"


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Mapping[str, Any]]:
    """Judge -> its scores over all images, by name."""
    root = tmp_path_factory.mktemp("real")
    labels = real_images.write(root / "images")
    judges = [f"python:real_images:{name}" for name in NAMES]
    done = check_on_real(str(labels), root / "images", root / "out", judges)
    assert [*done.notes, *done.done.run.notes()] == []
    by_judge = {run.result.judge.rpartition(":")[2]: run.whole for run in done.judged}
    assert set(by_judge) == set(NAMES)
    return by_judge


def scored_by_gold(
    cli: Callable[..., CompletedProcess[str]], run: Path, gold: Path
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The result of `score --gold`, and its scores over all images by name."""
    done = cli("score", run, "--gold", gold, "--json")
    assert done.returncode == 0, done.stderr
    (result,) = json.loads(done.stdout)
    return result, {s["name"]: s for s in result["scores"] if s["group"] == "all"}


def test_a_perfect_judge_is_told_from_judges_that_do_not_look(
    checked: dict[str, Mapping[str, Any]],
) -> None:
    perfect = checked["seeing"]
    assert {perfect[n].value for n in ("recognized", "accuracy", "merged_refused")} == {100}
    assert perfect["informedness"].value == 1 and perfect["taken_for_opposite"].value == 0
    for name in NAMES[:-1]:
        blind = checked[name]
        informed = blind["informedness"]
        assert informed.interval.low < 0 < informed.interval.high, name
        assert informed.interval.high < perfect["informedness"].interval.low, name
        assert blind["recognized"].interval.high < perfect["recognized"].interval.low, name
        assert blind["one_missing_refused"].value == blind["merged_refused"].value == 0


def test_what_a_judge_prefers_is_told_apart(checked: dict[str, Mapping[str, Any]]) -> None:
    for preferring, score in (
        ("mentioning", "toward_first_mentioned"),
        ("naming", "toward_first_named"),
    ):
        for name in NAMES:
            interval = checked[name][score].interval
            if name == preferring:
                assert interval.low > 15, (name, score)
            else:
                assert interval.low < 0 < interval.high, (name, score)
    assert checked["seeing"]["toward_first_mentioned"].value == 0


def test_conditions_count_the_images_that_they_are_about(
    checked: dict[str, Mapping[str, Any]],
) -> None:
    of_kind = len(real_images.THINGS)
    counts = {name: score.n for name, score in checked["seeing"].items()}
    assert counts["recognized"] == counts["level_refused"] == 4 * of_kind
    assert counts["one_missing_refused"] == counts["merged_refused"] == 2 * of_kind
    assert "both_missing_refused" not in counts
    assert counts["accuracy"] == 12 * of_kind


@pytest.mark.slow
def test_the_command_says_what_is_missing(
    tmp_path: Path, cli: Callable[..., CompletedProcess[str]]
) -> None:
    labels, images = real_images.write(tmp_path / "images"), tmp_path / "images"
    judge = ("judge-check", "--judge", "python:real_images:seeing", "--data", labels)
    refused = cli(*judge, "--suite", RealGoldSuite.name, "--out", tmp_path / "out")
    assert refused.returncode == 2 and "--images" in refused.stderr
    (tmp_path / "none").mkdir()
    refused = cli(*judge, "--images", tmp_path / "none", "--out", tmp_path / "out")
    assert refused.returncode != 0 and "has none of the 96 images" in refused.stderr
    first = sorted(images.iterdir())[0]
    first.unlink()
    done = cli(*judge, "--images", images, "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert "1 of 96 images are missing and excluded" in done.stderr + done.stdout
    assert "recognized" in done.stdout
    run = tmp_path / "out" / RealGoldSuite.name
    (card,) = [result["card"] for result in json.loads((run / "scores.json").read_text())]
    agreement = card["agreement"]["order"]
    assert agreement["labels"] == ["holds", "invalid", "opposite"]
    assert sum(map(sum, agreement["matrix"])) == 2 * 95
    assert len((run / LABELS).read_text().splitlines()) == 2 * 95


def test_another_image_under_a_labeled_name_is_refused(tmp_path: Path) -> None:
    labels, images = real_images.write(tmp_path / "images"), tmp_path / "images"

    def digested(row: Row) -> RealGold:
        assert isinstance(row, RealGold)
        digest = sha256_file(images / row.image_file)
        return row.model_copy(update={"image_sha256": digest})

    rows = [digested(row) for row in read_rows(str(labels), RealGoldSuite.name).rows]
    assert RealImages(images, rows, "").missing == []
    real_images.draw("merged").save(images / rows[0].image_file)
    with raises("changed-file", "1 files are not the images", rows[0].image_file, error=DataError):
        RealImages(images, rows, "")


def test_labels_of_which_readers_disagree_are_left_out(tmp_path: Path) -> None:
    labels = real_images.write(tmp_path / "images")
    rows = [json.loads(line) for line in labels.read_text().splitlines()]
    rows[0]["votes"]["bo"] |= {"left": "B"}
    rows[4]["votes"]["bo"] |= {"b": "part"}
    labels.write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = check_on_real(
        str(labels), tmp_path / "images", tmp_path / "out", ["python:real_images:seeing"]
    )
    (judged,) = done.judged
    assert judged.whole["accuracy"].excluded == {"unsettled": 3}
    assert (
        judged.whole["recognized"].n == 63 and judged.whole["one_missing_refused"].n == 2 * 16 - 2
    )


def test_a_folder_is_labeled_on_the_page_merged_and_used(
    tmp_path: Path, cli: Callable[..., CompletedProcess[str]]
) -> None:
    images = tmp_path / "images"
    real_images.write(images)
    rows = images / "rows.jsonl"
    named = [(n, a, b, shown) for n, a, b, shown in real_images.labeled()][:12]
    lines = [{"image": n, "object_a": a, "object_b": b} for n, a, b, _ in named]
    rows.write_text("".join(json.dumps(line) + "\n" for line in lines))
    audit = Audit.open(rows, "real", tmp_path / "labels")
    answers = {f"{n}/{a}/{b}": real_images.reading(shown) for n, a, b, shown in named}
    for annotator in ("ann", "bo"):
        for task in audit.tasks:
            said = {name: str(value) for name, value in answers[task.id].items()}
            audit.click(annotator, task.id, said)
    files = [tmp_path / "labels" / f"{name}.jsonl" for name in ("ann", "bo")]
    merged = tmp_path / "merged.jsonl"
    done = cli("audit", "merge", *files, "--kind", "real", "--out", merged)
    assert done.returncode == 0 and re.search(r"alpha.left\s+1", done.stdout), done.stderr
    (row, *others) = read_rows(str(merged), RealGoldSuite.name).rows
    assert len(others) == 11 and isinstance(row, RealGold)
    assert row.readers == ["ann", "bo"] and row.reader_kinds == ["unstated"] * 2
    seeing = ["python:real_images:seeing"]
    (judged,) = check_on_real(str(merged), images, tmp_path / "out", seeing).judged
    assert judged.whole["accuracy"].value == 100 and judged.whole["accuracy"].n == 24


@pytest.mark.slow
def test_drawn_images_get_harder_and_stand_beside_real_ones(
    tmp_path: Path, cli: Callable[..., CompletedProcess[str]]
) -> None:
    labels, out = real_images.write(tmp_path / "images"), tmp_path / "out"
    done = cli("judge-check", "--judge", "pixels", "--out", out, "--limit", 6, "--drawn", "--json")
    assert done.returncode == 0, done.stderr
    (judged,) = json.loads(done.stdout)[DRAWN]
    right = {s["group"]: s["value"] for s in judged["scores"] if s["name"] == "recognized"}
    assert right["difficulty=0"] == 100 and right["difficulty=4"] < 50
    assert sum(map(sum, judged["card"]["agreement"]["order"]["matrix"])) == 2 * 6
    assert (out / DRAWN / LABELS).is_file()
    seeing = ("judge-check", "--judge", "python:real_images:seeing", "--out", tmp_path / "both")
    both = ("--drawn", "--images", tmp_path / "images", "--data", labels, "--limit", 2)
    done = cli(*seeing, *both)
    assert done.returncode == 0, done.stderr
    assert re.search(r"│ +real +│ +100\.0", done.stdout.partition("from easy to hard")[2])


def test_labels_of_drawn_images_are_what_the_scene_shows() -> None:
    rows = GradedImages().rows
    assert len(rows) == IMAGES * LEVELS == len({row.id for row in rows})
    by_level = [[r for r in rows if r.difficulty == level] for level in range(LEVELS)]
    for easier, harder in itertools.pairwise(by_level):
        # The same scenes, of the same things, at every level.
        for row, other in zip(easier, harder, strict=True):
            assert [right_label(row, a) for a in AXES] == [right_label(other, a) for a in AXES]
            assert (row.object_a, row.object_b) == (other.object_a, other.object_b)
    clear = [row for row in by_level[0] if condition_of(row) == "both"]
    assert Counter((row.further_left, row.higher) for row in clear) == {
        ("A", "same"): 16,
        ("B", "same"): 16,
        ("same", "A"): 16,
        ("same", "B"): 16,
    }


def spatial_rows(folder: Path) -> Rows:
    """Rows of stated relations, and their images: as asked, in every fourth one the reverse."""
    folder.mkdir()
    rows = []
    for a, b in itertools.combinations(real_images.THINGS[:9], 2):
        for relation, axis in (("left_of", "left"), ("above", "above")):
            number = len(rows)
            row = SpatialVISOR(
                visor_id=number,
                relation=relation,
                object_a=a,
                object_b=b,
                prompt=f"a {a} {relation} a {b}",
                review=[],
                provenance=Provenance(bank="test", entry=str(number), author="", calls=[]),
            )
            image = real_images.draw(f"{'A' if number % 4 else 'B'} {axis}")
            image.putpixel((0, 0), (number // 4 * 6, number, 0))  # the judge sees every other four
            image.save(folder / f"{number}.png")
            rows.append(row)
    return Rows.of(rows)


@pytest.mark.slow
def test_a_run_is_corrected_by_the_users_own_real_gold(
    tmp_path: Path, cli: Callable[..., CompletedProcess[str]]
) -> None:
    """From a folder of images and labels to the corrected number: the judge misses blue things."""
    images, judge = tmp_path / "images", "python:real_images:missing"
    labels = real_images.write(images)
    gold = ("--images", images, "--data", labels, "--out", tmp_path / "gold")
    done = cli("judge-check", "--judge", judge, *gold)
    assert done.returncode == 0, done.stderr
    assert f"`counterprior score RUN --gold {tmp_path / 'gold'}`" in done.stderr + done.stdout
    run = tmp_path / "run"
    rows = spatial_rows(tmp_path / "made")
    settings = RunSettings(suite="spatial_visor", data="", out=run, seeds=1)
    evaluate_run(
        settings,
        ImageFolder(tmp_path / "made", "{variant}.png"),
        [judge],
        JudgeSettings(),
        rows=rows,
    )
    refused = cli("score", run, "--gold", tmp_path / "elsewhere")
    assert refused.returncode != 0 and "create it with" in refused.stderr
    result, scores = scored_by_gold(cli, run, tmp_path / "gold")
    corrected = scores["accuracy_unconditional_by_gold"]
    # 54 of the 72 images are as the prompt says; the judge sees half of them.
    assert scores["accuracy_unconditional"]["value"] < 50
    low, high = corrected["interval"]
    assert low < 75 < high
    assert corrected["n"] == 72 and "real ones" in corrected["warning"]
    assert any("misses included" in note for note in result["notes"])
    settings = replace(settings, out=tmp_path / "other")
    made, seeing = ImageFolder(tmp_path / "made", "{variant}.png"), "python:real_images:seeing"
    evaluate_run(settings, made, [seeing], JudgeSettings(), rows=rows)
    refused = cli("score", settings.out, "--gold", tmp_path / "gold")
    assert refused.returncode != 0 and "was not asked about these images" in refused.stderr


@pytest.mark.slow
def test_a_judge_that_fails_does_not_keep_the_others_from_being_printed(
    tmp_path: Path, cli: Callable[..., CompletedProcess[str]]
) -> None:
    labels = real_images.write(tmp_path / "images")
    judges = [f"--judge=python:real_images:{name}" for name in ("failing", "seeing")]
    real = ("--images", tmp_path / "images", "--data", labels, "--out", tmp_path / "out")
    done = cli("judge-check", *judges, *real, "--drawn", "--limit", 5)
    assert done.returncode != 0 and "calls failed" in done.stderr
    assert "is out of order" in done.stderr and "Traceback" not in done.stderr
    assert "seeing on real images" in done.stdout and "from easy to hard" in done.stdout
    results = json.loads((tmp_path / "out" / RealGoldSuite.name / "scores.json").read_text())
    by_judge = {
        r["judge"].rpartition(":")[2]: {
            s["name"]: s["value"] for s in r["scores"] if s["group"] == "all"
        }
        for r in results
    }
    assert by_judge["seeing"]["accuracy"] == 100 and by_judge["failing"]["accuracy"] is None


def test_a_server_that_is_down_does_not_keep_the_others_from_being_asked(
    tmp_path: Path, cli: Callable[..., CompletedProcess[str]]
) -> None:
    labels = real_images.write(tmp_path / "images")
    real = ("--images", tmp_path / "images", "--data", labels, "--out", tmp_path / "out")
    down, seeing = "openai:m@http://127.0.0.1:9/v1", "python:real_images:seeing"
    done = cli("judge-check", "--judge", down, "--judge", seeing, *real, "--limit", 20)
    assert done.returncode != 0 and "127.0.0.1:9" in done.stderr
    assert "seeing on real images" in done.stdout and "Traceback" not in done.stderr
    alone = cli("judge-check", "--judge", down, *real)
    assert alone.returncode != 0 and "127.0.0.1:9" in alone.stderr and not alone.stdout


@pytest.mark.slow
def test_own_prompts_are_corrected_by_real_gold_where_they_ask_the_same(
    tmp_path: Path, cli: Callable[..., CompletedProcess[str]]
) -> None:
    """Of the images of single relations in the plane: the judge misses blue things."""
    images, judge = tmp_path / "images", "python:real_images:missing"
    labels = real_images.write(images)
    gold = ("--images", images, "--data", labels, "--out", tmp_path / "gold")
    assert cli("judge-check", "--judge", judge, *gold).returncode == 0
    pairs = [*itertools.combinations(real_images.THINGS[:9], 2)]
    words = {"left": "to the left of", "above": "above"}
    texts = [f"a {a} {words[axis]} a {b}" for a, b in pairs for axis in words]
    prompts = tmp_path / "prompts.txt"
    prompts.write_text("\n".join([*texts, "a dog near a cat", "a cat above a cup above a bed"]))
    rows = read_rows(str(prompts), "own_prompts")
    made = tmp_path / "made"
    made.mkdir()
    for number, row in enumerate(rows.rows):
        assert isinstance(row, OwnPrompt)
        axis = "above" if row.relations[0] == "above" else "left"
        image = real_images.draw(f"{'A' if number % 4 else 'B'} {axis}")
        image.putpixel((0, 0), (number // 4 * 6, number, 0))
        image.save(made / f"{row.id}.png")
    run = tmp_path / "run"
    settings = RunSettings(suite="own_prompts", data=str(prompts), out=run, seeds=1)
    folder = ImageFolder(made, "{row}.png")
    evaluate_run(settings, folder, [judge], JudgeSettings(), rows=rows)
    refused = cli("score", run, "--gold", tmp_path / "elsewhere")
    assert refused.returncode != 0 and "judge-check --images DIR" in refused.stderr
    result, scores = scored_by_gold(cli, run, tmp_path / "gold")
    corrected = scores["relations_right_by_gold"]
    assert scores["relations_right"]["value"] < 50
    low, high = corrected["interval"]
    assert low < 75 < high and corrected["n"] == 72
    (note,) = [note for note in result["notes"] if "_by_gold" in note]
    assert "of the 72 images whose prompt says only" in note and "not of 2 more" in note


PAGE = (Path(__file__).parents[3] / "docs" / "gold.md").read_text()
BLIND = {
    "sees": "",
    "guesses": "guessing",
    "answers with the thing that the question names first": "naming",
    "answers with the thing that the prompt mentions first": "mentioning",
}
"""Judge as the page names it -> judge of the fixture."""
TOLD_APART = (
    "recognized",
    "informedness",
    "one_missing_refused",
    "toward_first_named",
    "toward_first_mentioned",
)


@pytest.mark.slow
def test_the_page_tells_judges_that_do_not_look_from_one_that_knows() -> None:
    """Of all labeled images, whose pixels these judges do not look at."""
    rows = [row for row in build(SHIPPED, random.Random())]
    suite, blank = RealGoldSuite(), [Image.new("RGB", (4, 4))]
    lines = []
    for words, name in BLIND.items():
        answer = getattr(real_images, name)() if name else None
        outcomes = []
        for row in rows:
            for case in suite.cases(row, 1):
                (question,) = suite.questions(row, case, blank, ORIGINAL)
                label = answer(question) if answer else case.key.get(QUESTION, INVALID)
                outcomes.append(Outcome(case, {(QUESTION, ORIGINAL): Verdict(label)}))
        scores = {s.name: s for s in suite.score(outcomes) if s.group == ALL}
        cells = [scores[score].text(scores[score].unit) for score in TOLD_APART]
        lines.append(f"| {words} | {' | '.join(cells)} |")
    assert "\n".join(lines) in PAGE, "\n".join(lines)


READERS = {("2", "r4"), ("2", "r5"), ("3", "r5"), (VERSION, "r5")}
"""Version of the drawings, and reader."""


def test_the_page_says_how_many_of_the_drawn_images_a_reader_misreads() -> None:
    """Of the current drawings; earlier ones were easier at the last level."""
    rows = [row for _, row in read_json_rows(GRADED)]
    assert {row["kind"] for row in rows} == {"model"}
    assert "vision-language model that labeled them" in " ".join(PAGE.split())
    readings = {(version, reader): shares for version, reader, shares in misread(rows)}
    assert readings.keys() == READERS
    counts = {place: {share.n for share in shares} for place, shares in readings.items()}
    assert all(len(ns) == 1 and (min(ns) >= 40 or at[1] == "r4") for at, ns in counts.items())
    cells = [share.text("%") for share in readings[VERSION, "r5"]]
    (n,) = counts[VERSION, "r5"]
    assert f"| {' | '.join(cells)} | {n} |" in PAGE, cells
    assert 5 <= readings[VERSION, "r5"][-1].value <= 20


@pytest.mark.slow
def test_readings_of_several_draws_are_kept_and_counted_by_reader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader who errs in one of ten images, and one who answers a single draw."""
    monkeypatch.setattr(read_graded, "EACH", 1)
    file = tmp_path / "graded.jsonl"
    letters = {shown: letter for letter, shown in read_graded.ANSWERS.items()}
    for reader, seed, errors in (("ann", 1, 0), ("ann", 2, 1), ("bo", 1, 0), ("ann", 1, 0)):
        assert read_graded.sheets(tmp_path, reader, seed) == LEVELS
        name = f"{reader}_{seed}"
        with Image.open(tmp_path / name / "sheet_00.png") as sheet:
            assert sheet.width == 4 * (256 + 8)
        lines = []
        for place, drawn in enumerate(json.loads((tmp_path / f"key_{name}.json").read_text())):
            shown = graded_scene(drawn["scene"], drawn["level"]).shown
            letter = letters.get(shown, shown[0].lower())
            letter = read_graded.TURNED[letter] if drawn["turned"] else letter
            wrong = drawn["level"] == LEVELS - 1 and errors
            lines.append(f"{place} {'n' if wrong else letter}")
        (tmp_path / f"answers_{name}.txt").write_text("\n".join(lines))
        assert read_graded.record(tmp_path, reader, seed, "human", file) == LEVELS
    rows = [row for _, row in read_json_rows(file)]
    assert len(rows) == 3 * LEVELS and {row["kind"] for row in rows} == {"human"}
    (_, ann, of_ann), (_, bo, of_bo) = misread(rows)
    assert (ann, bo) == ("ann", "bo")
    assert [(share.value, share.n) for share in of_ann] == [(0, 2)] * (LEVELS - 1) + [(50, 2)]
    assert [(share.value, share.n) for share in of_bo] == [(0, 1)] * LEVELS
    (tmp_path / "answers_bo_1.txt").write_text("0 l")
    with pytest.raises(SystemExit, match="bo_1: #1: '' is none of l, r"):
        read_graded.record(tmp_path, "bo", 1, "human", file)


@pytest.mark.slow
@pytest.mark.skipif(not VISOR.is_dir(), reason="VISOR's images are not beside the checkout")
def test_judges_of_real_images_that_do_not_look_are_told_from_one_that_knows(
    tmp_path: Path,
) -> None:
    release = small_release(tmp_path / "release", (RealGoldSuite.name,))
    sample: dict[str, Any] = {"data": str(release), "images": VISOR, "limit": 160}
    first = check_on_real(out=tmp_path / "first", judges=["python:real_images:naming"], **sample)
    labels = first.done.run.root / LABELS
    judges = ["python:real_images:guessing", "python:real_images:naming", f"human:{labels}"]
    done = check_on_real(out=tmp_path / "all", judges=judges, **sample)
    by_judge = {run.result.judge: run.whole for run in done.judged}
    perfect = by_judge.pop("human")
    assert perfect["accuracy"].value == perfect["recognized"].value == 100
    assert perfect["informedness"].interval.low > 0.5
    for name, blind in by_judge.items():
        informed, recognized = blind["informedness"].interval, blind["recognized"].interval
        assert informed.low < 0 < informed.high < perfect["informedness"].interval.low, name
        assert recognized.high < perfect["recognized"].interval.low, name
        assert blind["one_missing_refused"].value == 0, name
    naming, guessing = (
        by_judge[f"python:real_images:{name}"]["toward_first_named"].interval
        for name in ("naming", "guessing")
    )
    assert guessing.low < 0 < guessing.high and naming.low > guessing.high


@pytest.mark.slow
@pytest.mark.skipif(not VISOR.is_dir(), reason="VISOR's images are not beside the checkout")
def test_the_released_labels_are_of_the_published_images(tmp_path: Path) -> None:
    release = small_release(tmp_path / "release", (RealGoldSuite.name,))
    rows = [r for r in read_rows(str(release), RealGoldSuite.name).rows if isinstance(r, RealGold)]
    assert RealImages(VISOR, rows, "").missing == []
    assert len(rows) == 1600 and all(len(row.readers) >= 2 for row in rows)
