"""`render:` draws altered worlds and constrained pairs of the bank, with set faults of each."""

import json
import math
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from refusals import raises

from counterprior.builders import drawn
from counterprior.builders.build import rebuilt
from counterprior.eval.core import ImageRequest, Outcome, Question, Verdict
from counterprior.eval.detectors import DetectorError, Request, open_detector
from counterprior.eval.engine.data import read_rows, row_fields
from counterprior.eval.engine.evaluation import outcomes
from counterprior.eval.engine.run import Run
from counterprior.eval.generators import draw, open_generator
from counterprior.eval.judges import open_judge
from counterprior.eval.selftest import rows
from counterprior.eval.selftest.trials import (
    Trial,
    altered_trials,
    described_trials,
    drawn_pair_trials,
    true_outcomes,
    world_trials,
)
from counterprior.eval.suites import open_suite
from counterprior.images import encode_png, open_image
from counterprior.scenes.scene import Figure, Scene

Cli = Callable[..., subprocess.CompletedProcess[str]]
SEEDS = 8


@pytest.mark.parametrize(
    ("suite", "trials"),
    [
        ("counterfactual", world_trials),
        ("counterfactual_denominalized", described_trials),
        pytest.param("altered_worlds", altered_trials, marks=pytest.mark.slow),
        pytest.param("t2i_correctness", drawn_pair_trials, marks=pytest.mark.slow),
    ],
)
def test_planted_rates_are_recovered(suite: str, trials: Callable[[], Iterator[Trial]]) -> None:
    """`benchmarks/worlds.py` does the same with 200 seeds."""
    (trial,) = trials()
    values: dict[str, list[float]] = {}
    held = []
    for seed in range(SEEDS):
        judged = true_outcomes(suite, trial, shift=seed + 1)
        whole = {s.name: s for s in open_suite(suite).score(judged) if s.group == "all"}
        truths = trial.truths([outcome.case for outcome in judged])
        for name, truth in truths.items():
            low, high = whole[name].interval
            held.append(low - 1e-9 <= truth <= high + 1e-9)
            values.setdefault(name, []).append(whole[name].value)
    assert np.mean(held) >= 0.9
    for name, of_seeds in values.items():
        error = np.std(of_seeds, ddof=1) / math.sqrt(SEEDS)
        assert abs(np.mean(of_seeds) - truths[name]) <= 4 * error + 1e-9, name


@pytest.mark.slow
def test_a_generator_that_alters_under_a_stated_real_law_is_known_by_its_number() -> None:
    share = 0.3
    suite = open_suite("altered_worlds")
    stated = [row for row in rebuilt()("altered_worlds", 0) or [] if row.real_law_prompt]
    drawable = [row for row in stated if drawn.draws_world(row.group)][:40]
    generator = open_generator(f"render:?over_application={share}&lock_in=0.9")
    judged, shown = [], []
    for row in drawable:
        for case in suite.cases(row, 2):
            image = draw(generator, ImageRequest(case.prompt, case.seed, fields=row_fields(row)))
            scene = Scene.of(image)
            answers = suite.truth(row, case, scene)
            labels = {(name, "original"): Verdict(label) for name, label in answers.items()}
            judged.append(Outcome(case, labels))
            shown += [scene.world] if case.variant == "LR" else []
    whole = {s.name: s for s in suite.score(judged) if s.group == "all"}
    altered, real = whole["real_law_altered"], whole["real_law_real"]
    assert altered.n == real.n == len(shown) == 80
    assert altered.value == shown.count("altered") / 80 == pytest.approx(1 - real.value)
    assert altered.interval[0] < share < altered.interval[1]
    assert whole["knows_real"].value == 1 and whole["over_application"].n == 0


@pytest.mark.slow
def test_the_second_control_is_in_a_run_that_names_it_alone(
    full_release: Path, cli: Cli, tmp_path: Path
) -> None:
    levels = {}
    variants: dict[str, tuple[str, ...]] = {"usual": (), "named": ("--variants", "L1,LR")}
    for name, options in variants.items():
        out = tmp_path / name
        done = cli(
            *("eval", "--suite", "altered_worlds", "--data", full_release, "--limit", "4"),
            *("--generator", "render:", "--judge", "scene", "--out", out, *options),
        )
        assert done.returncode == 0, done.stderr
        levels[name] = {case.variant for case in Run.open(out).cases()}
        assert ("real_law_real" in (out / "scores.json").read_text()) == (name == "named")
    assert levels == {"usual": {"L0", "L1", "L2", "L3"}, "named": {"L1", "LR"}}
    named = ("--variants", "L9", "--generator", "render:", "--judge", "scene")
    suite = ("--suite", "altered_worlds", "--data", full_release, "--out", tmp_path / "wrong")
    assert "choose from L0, L1, L2, L3, LR" in cli("eval", *suite, *named).stderr
    listed = tmp_path / "prompts.jsonl"
    words = ("--suite", "altered_worlds", "--data", full_release, "--variants", "LR")
    assert cli("prompts", *words, "--out", listed).returncode == 0
    assert {json.loads(line)["variant"] for line in listed.read_text().splitlines()} == {"LR"}


def request(row: object, name: str = "prompt", seed: int = 3) -> ImageRequest:
    fields = row_fields(row)  # type: ignore[arg-type]
    return ImageRequest(fields[name], seed, fields=fields)


def test_each_fault_draws_its_world() -> None:
    group = rows.worlds()[0]
    plain, altered, control = (
        next(row for row in rows.altered_levels(group) if row.level == level)
        for level in ("L1", "L3", "L0")
    )
    shown = {
        "": ("real", "altered", "real"),
        "lock_in=1": ("real", "real", "real"),
        "literal=1": ("real", "real", "real"),
        "partial=1": ("real", "both", "real"),
        "over_application=1": ("real", "altered", "altered"),
        "missing=1": ("absent", "absent", "absent"),
    }
    for options, worlds in shown.items():
        generator = open_generator(f"render:?{options}" if options else "render:")
        images = [draw(generator, request(row)) for row in (plain, altered, control)]
        assert tuple(Scene.of(image).world for image in images) == worlds
        assert [image.width for image in images] == [768 if w == "both" else 384 for w in worlds]
    drawings = [drawn.world_images(group, world, 7)[0] for world in ("real", "altered", "absent")]
    assert drawings[0].behind != drawings[1].behind and drawings[2].behind == ()
    told = next(row for row in rows.altered_levels(group) if row.level == "L2")
    literal = draw(open_generator("render:?literal=1"), request(told))
    assert Scene.of(literal).world == "altered", "the outcome is told"
    same = (encode_png(draw(open_generator("render:"), request(told))) for _ in range(2))
    assert len(set(same)) == 1


def test_rows_without_drawing_and_other_prompts_are_refused() -> None:
    (row, *_) = rows.world_levels("physics-of-nowhere")
    with pytest.raises(ValueError, match="no drawing of physics-of-nowhere"):
        draw(open_generator("render:"), request(row))
    drawn_row = rows.world_levels(rows.worlds()[0])[0]
    fields = row_fields(drawn_row)
    with pytest.raises(ValueError, match="no entity of the atlas"):
        draw(open_generator("render:"), ImageRequest("Rephrased.", 3, fields=fields))
    with pytest.raises(ValueError, match="no clip of a drawing"):
        open_generator("render:?video=3").generate(request(drawn_row))
    image = draw(open_generator("render:"), request(drawn_row))
    with raises("no-scene", "drawing", error=DetectorError):
        open_detector("scene").detect([Request(image, ("cat",))])


def test_scenes_of_figures_are_recorded_as_before() -> None:
    scene = Scene((Figure("cat", 0.5, 0.9, 1.0),), 3, ("extra",))
    assert set(json.loads(scene.to_json())) == {"figures", "background", "faults"}
    world = Scene((), 3, (), "a-group", "both")
    assert [Scene.from_json(s.to_json()) for s in (scene, world)] == [scene, world]


@pytest.mark.slow
def test_worlds_are_scored_by_what_was_drawn(full_release: Path, tmp_path: Path, cli: Cli) -> None:
    out = tmp_path / "run"
    done = cli(
        *("eval", "--suite", "counterfactual", "--data", full_release, "--limit", "24"),
        *("--generator", "render:?lock_in=0.5", "--judge", "scene", "--out", out),
    )
    assert done.returncode == 0 and "no drawing of" in done.stderr, done.stderr
    run = Run.open(out)
    (log,) = run.judges()
    read = {row.id: row for row in read_rows(str(full_release), "counterfactual").rows}
    results, made = run.images(), 0
    for outcome in outcomes(run, log):
        if outcome.image == "made":
            made += 1
            world = Scene.of(open_image(run.image_path(results[outcome.case.id]))).world
            right = world == ("real" if outcome.case.variant == "L1" else "altered")
            labels = [outcome.label(name) for name in outcome.case.weights]
            assert labels == ["yes", *(["yes", "yes"] if right else ["no", "no"])]
        else:
            assert not drawn.draws_world(read[outcome.case.row].group)
    assert made >= 3


@pytest.mark.slow
def test_drawn_pairs_are_judged_by_their_record(
    text_release: Path, tmp_path: Path, cli: Cli
) -> None:
    out = tmp_path / "run"
    spec = "render:?grounding=0&order_bias=99"
    done = cli(
        *("eval", "--suite", "t2i_correctness", "--data", text_release, "--limit", "8"),
        *("--generator", spec, "--judge", "scene", "--out", out, "--json"),
    )
    assert done.returncode == 0, done.stderr
    run = Run.open(out)
    (log,) = run.judges()
    said = {"aligned": "correct", "reverse": "wrong"}
    labels = [(o.case.variant, o.label("arrangement")) for o in outcomes(run, log)]
    ordered = [(variant, label) for variant, label in labels if variant in said]
    assert len(ordered) == 16 and [*filter(lambda x: x[1] != "error", ordered)] == [
        (variant, said[variant]) for variant, label in ordered if label != "error"
    ]
    assert sum(label != "error" for _, label in ordered) >= 12


@pytest.mark.parametrize(
    ("fault", "label"), [("missing", "invalid"), ("duplicate", "invalid"), ("vertical", "invalid")]
)
def test_faults_of_pairs_are_invalid(fault: str, label: str) -> None:
    row = rows.constrained()[0]
    suite = open_suite("t2i_correctness")
    (case, *_) = suite.cases(row, 1)
    image = draw(open_generator(f"render:?{fault}=1"), request(row, "aligned_prompt"))
    assert suite.truth(row, case, Scene.of(image)) == {"arrangement": label}
    ((_, verdict),) = open_judge("scene").judge(suite.questions(row, case, [image], "original"))
    assert verdict.label == label
    sound = draw(open_generator("render:"), request(row, "aligned_prompt"))
    mirrored: list[Question] = [*suite.questions(row, case, [sound], "mirror")]
    ((question, mirror),) = open_judge("scene").judge(mirrored)
    assert mirror.label == "correct" and question.images[0].info["scene"]


def test_faults_of_a_single_thing_leave_an_image() -> None:
    for fault in ("extra", "duplicate", "overlap", "vertical", "wrong"):
        generator = open_generator(f"render:?missing=1&{fault}=1")
        assert Scene.of(draw(generator, ImageRequest("A cat.", 1))).figures == (), fault


def test_the_scene_judge_says_what_it_can_not_answer() -> None:
    row = rows.constrained()[0]
    suite = open_suite("t2i_correctness")
    (case, *_) = suite.cases(row, 1)
    blank = Image.new("RGB", (64, 64))
    ((_, verdict),) = open_judge("scene").judge(suite.questions(row, case, [blank], "original"))
    assert verdict.label == "error" and "render:" in verdict.raw
    image = draw(open_generator("render:"), request(rows.world_levels(rows.worlds()[0])[0]))
    ((_, verdict),) = open_judge("scene").judge(suite.questions(row, case, [image], "original"))
    assert verdict.label == "error" and "does not decide" in verdict.raw
