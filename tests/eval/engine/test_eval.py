"""The harness from the outside: a generator or a folder of images, a judge, scores."""

import csv
import hashlib
import json
import math
import random
import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from forking import ForkingCommand
from PIL import Image
from refusals import assert_refused, raises

from counterprior.errors import UsageError
from counterprior.eval.engine.evaluation import RunSettings, check_identity
from counterprior.eval.engine.run import Run
from counterprior.eval.engine.steps import JudgeSettings, evaluate_run
from counterprior.release import iter_records, parquet_path
from counterprior.schema import arrow_schema, rows_digest

Run_ = ForkingCommand

RENDER = "render:?order_bias=1&missing=0.1"


@pytest.fixture(scope="module")
def judged(
    text_release: Path, tmp_path_factory: pytest.TempPathFactory, cli: ForkingCommand
) -> Path:
    """A judged run of 10 rows; read only."""
    out = tmp_path_factory.mktemp("eval") / "run"
    command = ["eval", "--suite", "t2i_homogenization"]
    command += ["--data", text_release, "--generator", RENDER, "--judge", "pixels"]
    command += ["--probes", "mirror,swap", "--limit", "10", "--out", out]
    done = cli(*command)
    assert done.returncode == 0, done.stderr
    return out


def results(run: Path, cli: Run_, *options: str) -> list[dict]:
    done = cli("score", run, "--json", *options)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def whole(result: dict) -> dict[str, dict]:
    return {score["name"]: score for score in result["scores"] if score["group"] == "all"}


def test_run_lists_all_reservations_about_its_scores(judged: Path, cli: Run_) -> None:
    (result,) = results(judged, cli)
    scores = whole(result)
    assert result["cases"] == 20
    for score in scores.values():
        assert score["n"] > 0
        low, high = score["interval"]
        assert low <= score["value"] <= high
    order = scores["signed_index"]
    assert order["n"] + sum(order["excluded"].values()) == 20
    assert scores["hom"]["value"] == abs(order["value"])
    # Images of a pair are alike, so that chance gives more than of as many fair coins.
    coins = 100 * (2 / math.pi / order["n"]) ** 0.5
    assert coins < scores["hom"]["null"] < 1.5 * coins and 0 < scores["hom"]["p_value"] <= 1
    assert scores["order_effect"]["value"] > 20
    card = result["card"]
    assert card["parse_rate"] == 1
    drawn = sum(i.status == "made" for i in Run.open(judged).images().values())
    assert card["asked"] == 4 * drawn == 80
    assert set(card["probes"]) == {"mirror", "swap", "mirror_swap"}
    assert card["probes"]["swap"]["consistency"] == 1
    assert card["probes"]["mirror"]["consistency"] >= 0.85
    assert set(card["prompts"]) == {"order"}
    groups = {score["group"] for score in result["scores"]}
    assert any(group.startswith("pair_type=") for group in groups)


def test_resumed_run_makes_no_image_again(judged: Path, tmp_path: Path, cli: Run_) -> None:
    run = Path(shutil.copytree(judged, tmp_path / "run"))
    before = (run / "images.jsonl").read_bytes(), [*run.glob("verdicts/*/verdicts.jsonl")]
    verdicts = before[1][0].read_bytes()
    assert cli("judge", run, "--judge", "pixels", "--probes", "mirror,swap").returncode == 0
    assert before[1][0].read_bytes() == verdicts
    header = json.loads((run / "run.json").read_text())
    done = cli(
        "generate",
        "--suite",
        "t2i_homogenization",
        "--data",
        header["data"],
        "--generator",
        RENDER,
        "--limit",
        "10",
        "--out",
        run,
    )
    assert done.returncode == 0, done.stderr
    assert (run / "images.jsonl").read_bytes() == before[0]


def test_commands_end_with_1_where_a_judge_has_no_answer_that_counts(
    judged: Path, text_release: Path, tmp_path: Path, cli: Run_
) -> None:
    mute, run = "python:gold_judges:mute", tmp_path / "run"
    shutil.copytree(judged, run)
    made = sum(image.status == "made" for image in Run.open(run).images().values())
    silent = f"gave no answer that counts: {made} unparsed of {made}"
    asked = ("eval", "--suite", "t2i_homogenization", "--data", text_release, "--limit", 10)
    evaluated = cli(*asked, "--generator", RENDER, "--judge", mute, "--unchecked", "--out", run)
    for done in (
        evaluated,
        cli("judge", run, "--judge", mute),  # asks nothing again
        cli("score", run, "--judge", mute),
    ):
        assert done.returncode == 1 and silent in done.stderr, done.stdout + done.stderr
        assert "[all-failed]" in done.stderr
    (labels,) = re.findall(r"\(labels of order: (.+?)\)", " ".join(done.stdout.split()))
    assert {*labels.split(", ")} == {"first_left", "first_right", "invalid"}
    assert cli("score", run, "--judge", "pixels").returncode == 0


def test_a_run_without_an_image_has_nothing_to_judge(
    text_release: Path, tmp_path: Path, cli: Run_
) -> None:
    (tmp_path / "none").mkdir()
    asked = ("--suite", "t2i_homogenization", "--data", text_release, "--limit", 1)
    folder, run = ("--generator", f"folder:{tmp_path / 'none'}"), tmp_path / "run"
    assert cli("generate", *asked, *folder, "--out", run).returncode == 1
    done = cli("judge", run, "--judge", "pixels")
    assert done.returncode == 1 and "no image to judge (2 missing)" in done.stderr


def test_a_folder_is_one_run_only(judged: Path, text_release: Path, cli: Run_) -> None:
    done = cli(
        "generate",
        "--suite",
        "t2i_homogenization",
        "--data",
        text_release,
        "--generator",
        "render:",
        "--limit",
        "10",
        "--out",
        judged,
    )
    assert_refused(done, "another-run", judged, "generator", "--out", exit_code=1)


def test_a_run_on_other_rows_is_not_judged(judged: Path, tmp_path: Path, cli: Run_) -> None:
    run = Path(shutil.copytree(judged, tmp_path / "run"))
    header = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps(header | {"rows_sha256": "0" * 64}))
    done = cli("judge", run, "--judge", "pixels")
    assert_refused(done, "different-rows", run, "t2i_homogenization", exit_code=1)


def truth_labels(run: Path, path: Path, share: float) -> int:
    """What the renderer drew, for a random part of the cases."""
    opened = Run.open(run)
    rng, count = random.Random(5), 0
    images = opened.images()
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("case", "question", "label"))
        for case in opened.cases():
            if rng.random() >= share:
                continue
            with Image.open(opened.image_path(images[case.id])) as image:
                scene = json.loads(image.info["scene"])
            places = {figure["entity"]: figure["x"] for figure in scene["figures"]}
            first, second = sorted(case.clusters[1:], key=lambda n: case.prompt.lower().index(n))
            label = "invalid"
            if not scene["faults"]:
                label = "first_left" if places[first] < places[second] else "first_right"
            writer.writerow((case.id, "order", label))
            count += 1
    return count


def test_labels_give_agreement_and_a_corrected_score(
    judged: Path, tmp_path: Path, cli: Run_
) -> None:
    labels = tmp_path / "labels.csv"
    count = truth_labels(judged, labels, 0.6)
    (result,) = results(judged, cli, "--labels", str(labels))
    agreement = result["card"]["agreement"]["order"]
    assert agreement["n"] == count
    assert agreement["kappa"] > 0.6
    assert sum(map(sum, agreement["matrix"])) == count
    corrected = whole(result)["signed_index_corrected"]
    assert corrected["interval"][0] <= corrected["value"] <= corrected["interval"][1]
    assert corrected["n"] + sum(corrected["excluded"].values()) == 20


@pytest.mark.slow
def test_labels_of_several_runs_name_their_images(judged: Path, tmp_path: Path, cli: Run_) -> None:
    labels, other = tmp_path / "labels.csv", tmp_path / "other"
    count = truth_labels(judged, labels, 0.5)
    shutil.copytree(judged, other)
    # The same cases, other images: what people said of the first run's says nothing of them.
    digests = {}
    for image in (other / "images").rglob("*.png"):
        old = hashlib.sha256(image.read_bytes()).hexdigest()
        image.write_bytes(image.read_bytes() + b"other")
        digests[old] = hashlib.sha256(image.read_bytes()).hexdigest()
    for log in (other / "images.jsonl", *other.glob("verdicts/*/verdicts.jsonl")):
        text = log.read_text()
        log.write_text(re.sub("[0-9a-f]{64}", lambda d: digests.get(d[0], d[0]), text))
    refused = cli("score", judged, other, "--labels", labels, "--across-judges")
    assert_refused(refused, "missing-field", f"{labels}:2:", "`image`")
    images = {case: image.sha256 for case, image in Run.open(judged).images().items()}
    rows = csv.DictReader(labels.read_text().splitlines())
    text = "".join(json.dumps(r | {"image": images[r["case"]]}) + "\n" for r in rows)
    (tmp_path / "labels.jsonl").write_text(text)
    done = cli(
        "score", judged, other, "--labels", tmp_path / "labels.jsonl", "--json", "--across-judges"
    )
    assert done.returncode == 0, done.stderr
    first, second = json.loads(done.stdout)
    assert first["card"]["agreement"]["order"]["n"] == count > 0
    assert second["card"]["agreement"] == {} and second["card"]["asked"] == 80


@pytest.mark.slow
def test_people_are_a_judge_too(judged: Path, tmp_path: Path, cli: Run_) -> None:
    run = Path(shutil.copytree(judged, tmp_path / "run"))
    labels = tmp_path / "labels.csv"
    count = truth_labels(run, labels, 0.5)
    assert cli("judge", run, "--judge", f"human:{labels}").returncode == 0
    people = next(r for r in results(run, cli) if r["judge"].startswith("human"))
    score = whole(people)["signed_index"]
    assert score["excluded"]["missing"] == 20 - count
    assert people["card"]["failures"] == {"missing": 20 - count}
    assert whole(people)["valid"]["n"] == count
    # Runs under different judges are no ranking.
    done = cli("score", run, judged)
    assert_refused(done, "different-judges", "--across-judges", exit_code=1)
    assert cli("score", run, judged, "--across-judges").returncode == 0


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"suite": "nonsense"}, ("unknown-name", "nonsense")),
        ({"generator": "magic:"}, ("unknown-name", "magic")),
        ({"generator": "folder:nowhere"}, ("no-such-file", "nowhere")),
        ({"generator": "folder:.?template={color}"}, ("unknown-name", "color")),
        ({"judge": "oracle"}, ("unknown-name", "oracle")),
        ({"judge": "faulty:pixels?name=2"}, ("bad-option", "name", "0 to 1", "'2'")),
        ({"controls": ("upside-down",)}, ("unknown-name", "upside-down")),
        ({"persona": "kind"}, ("unknown-name", "kind")),
        ({"data": "/nowhere"}, ("no-such-file", "/nowhere")),
    ],
)
def test_bad_specs_are_refused_before_anything_is_made(
    wrong: dict[str, Any], reason: tuple[str, ...], text_release: Path, tmp_path: Path
) -> None:
    asked = {
        "suite": "t2i_homogenization",
        "data": str(text_release),
        "generator": "render:",
        "judge": "pixels",
        "controls": (),
        "persona": "standard",
    } | wrong
    run = RunSettings(asked["suite"], asked["data"], tmp_path / "run", limit=1)
    settings = JudgeSettings(asked["controls"], asked["persona"])
    with raises(*reason, error=UsageError):
        evaluate_run(run, asked["generator"], [asked["judge"]], settings)
    assert not (tmp_path / "run" / "run.json").exists()


def part_of_a_release(full: Path, config: str, keep: Callable[[dict], bool], out: Path) -> Path:
    """A folder with some rows of one config, and the checksums that reading it asks for."""
    records = [record for record in iter_records(full, config) if keep(record)]
    (out / config).mkdir(parents=True)
    table = pa.Table.from_pylist(records, schema=arrow_schema(config))
    pq.write_table(table, out / parquet_path(config))
    entry = {"rows_sha256": rows_digest(records)}
    (out / "checksums.json").write_text(json.dumps({"files": {parquet_path(config): entry}}))
    return out


@pytest.mark.lane  # 400 images
def test_real_images_of_a_real_model(
    full_release: Path, shared_data: Path, tmp_path: Path, cli: Run_
) -> None:
    """400 images of Stable Diffusion on VISOR's prompts, with labels from a script."""
    folder = shared_data / "visor"
    published = [json.loads(line) for line in (folder / "manifest.jsonl").read_text().splitlines()]
    wanted = {(p["unique_id"], p["seed"]): p["file"] for p in published}
    ids = {unique_id for unique_id, _ in wanted}
    data = part_of_a_release(
        full_release, "spatial_visor", lambda r: r["visor_id"] in ids, tmp_path / "data"
    )
    (tmp_path / "none").mkdir()
    asked = ("--suite", "spatial_visor", "--data", data, "--seeds", "4")
    plan = tmp_path / "plan"
    done = cli("generate", *asked, "--generator", f"folder:{tmp_path / 'none'}", "--out", plan)
    assert done.returncode == 1 and "400 missing" in done.stderr
    manifest, labels = tmp_path / "manifest.csv", tmp_path / "labels.csv"
    rng = random.Random(0)
    told = []
    with manifest.open("w", newline="") as a, labels.open("w", newline="") as b:
        files, answers = csv.writer(a), csv.writer(b)
        files.writerow(("case", "file"))
        answers.writerow(("case", "question", "label"))
        for c in Run.open(plan).cases():
            files.writerow((c.id, wanted[int(c.variant), c.number]))
            told.append(rng.choice(("holds", "opposite", "invalid")))
            answers.writerow((c.id, "order", told[-1]))
    run = tmp_path / "run"
    command = (
        "eval",
        *asked,
        "--generator",
        f"folder:{folder}?manifest={manifest}",
        "--judge",
        f"human:{labels}",
        "--out",
        run,
        "--json",
    )
    for after in (1, 150):
        process = cli.start(*command)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and process.poll() is None:
            found = list(run.glob("verdicts/*/verdicts.jsonl"))
            if found and found[0].read_bytes().count(b"\n") >= after:
                break
            time.sleep(0.002)
        process.kill()
        process.wait()
    done = cli(*command)
    assert done.returncode == 0, done.stderr
    assert "400 images" in done.stderr
    lines = next(run.glob("verdicts/*/verdicts.jsonl")).read_text().splitlines()
    assert len({json.loads(line)["key"] for line in lines}) == len(lines) == 400
    scores = whole(json.loads(done.stdout)[0])
    right, wrong = told.count("holds"), told.count("opposite")
    assert scores["accuracy"]["value"] == pytest.approx(100 * right / (right + wrong))
    assert scores["accuracy_unconditional"]["value"] == pytest.approx(100 * right / 400)


def test_an_identity_without_a_kind_is_refused_before_the_first_image(
    cli: ForkingCommand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "nameless.py").write_text(
        "from counterprior.eval.generators.render import RenderGenerator\n"
        "class Nameless(RenderGenerator):\n"
        "    def identity(self): return {'version': '1'}\n"
        "def open_it(): return Nameless()\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    named = ("--suite", "spatial_uc", "--generator", "python:nameless:open_it")
    refused = cli("generate", *named, "--limit", "2", "--out", tmp_path / "run")
    assert refused.returncode == 2 and "[missing-field]" in refused.stderr, refused.stderr
    assert not (tmp_path / "run" / "images.jsonl").exists()
    with raises("missing-field", "the judge has no `kind`", error=UsageError):
        check_identity("judge", {"name": "mine"})
    check_identity("judge", {"kind": "mine"})
