"""The judge `organism`: it is taught what its habits say, and errs where the truth is known."""

from __future__ import annotations

import itertools
import math
import random
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from refusals import assert_refused, raises

from counterprior.eval.core import Question
from counterprior.eval.engine.data import Rows
from counterprior.eval.engine.evaluation import Evaluation, RunSettings
from counterprior.eval.generators import open_generator
from counterprior.eval.judges import open_judge
from counterprior.eval.organisms import judging
from counterprior.eval.organisms.data import ENTITIES
from counterprior.eval.organisms.judging import Habits, KnownScene, known_scene, train_judge
from counterprior.eval.results.scoring import ScoreSettings, score_run
from counterprior.eval.selftest.rows import neutral
from counterprior.eval.selftest.run import write_truth
from counterprior.scenes.drawing import draw_scene
from counterprior.scenes.scene import Figure, Scene

Run = Callable[..., subprocess.CompletedProcess[str]]
LABELS = ("first_left", "first_right", "invalid")


def question(first: str, second: str, image: Image.Image) -> Question:
    return Question(
        case="0",
        name="order",
        probe="original",
        task="order",
        subjects=(first, second),
        labels=LABELS,
        prompt="",
        answers={},
        images=(image,),
    )


def scene(left: str, right: str) -> Image.Image:
    return draw_scene(Scene((Figure(left, 0.3, 0.93, 1), Figure(right, 0.7, 0.93, 1)), 1))


def test_a_scene_says_what_is_true_and_what_is_taught() -> None:
    apart = KnownScene(("fox", "cow"), 0.4, ("cow", "fox"), 0)
    touching = KnownScene(("fox", "cow"), 0.25, ("fox", "cow"), 0)
    missing = KnownScene(("fox", "cow"), 0.25, ("fox", "dog"), 0)
    scenes = (apart, touching, missing)
    assert [s.truth for s in scenes] == ["first_right", "first_left", "invalid"]
    assert [s.condition for s in scenes] == ["apart", "touching", "missing"]
    assert [s.taught(Habits()) for s in scenes] == [s.truth for s in scenes]
    assert touching.taught(Habits(abstains=True)) == "invalid"
    assert apart.taught(Habits(abstains=True)) == "first_right"
    assert apart.taught(Habits(blind=("cow",))) == "invalid"
    assert apart.taught(Habits(blind=("dog",))) == "first_right"


def test_questions_have_the_stated_shares() -> None:
    scenes = [known_scene(n, first_left=0.8, missing=0.4, seed=3) for n in range(3000)]
    present = [s for s in scenes if s.condition != "missing"]
    assert 1 - len(present) / len(scenes) == pytest.approx(0.4, abs=0.03)
    left = sum(s.truth == "first_left" for s in present)
    assert left / len(present) == pytest.approx(0.8, abs=0.03)
    assert {name for s in scenes for name in s.asked} == {*ENTITIES}
    assert all(len({*s.asked}) == 2 for s in scenes)


def test_a_drawing_depends_on_seed_and_number_alone() -> None:
    first, again = (known_scene(7, 0.5, 0, 1).draw(1) for _ in range(2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, known_scene(7, 0.5, 0, 1).draw(2))


@pytest.fixture(scope="module")
def judge_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A judge that is blind to cows and learned enough to tell left from right."""
    out = tmp_path_factory.mktemp("judge") / "blind"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(judging, "KNOWN", 150)
        train_judge(Habits(blind=("cow",)), 1, out)
    yield out


BRIEF = {"SCENES": 32, "KNOWN": 20, "UPDATES": 60}
"""Training takes two seconds, which is enough for a judge that always says the same."""


@pytest.fixture
def briefly(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in BRIEF.items():
        monkeypatch.setattr(judging, name, value)


@pytest.mark.lane
def test_a_trained_judge_tells_left_from_right_and_is_blind_as_taught(judge_folder: Path) -> None:
    judge = open_judge(f"organism:{judge_folder}")
    seen = [("fox", "frog"), ("penguin", "fox"), ("parrot", "dog"), ("sheep", "fox")]
    asked = [question(*order, scene(*pair)) for pair in seen for order in (pair, pair[::-1])]
    labels = [verdict.label for _, verdict in judge.judge(asked)]
    truths = ["first_left", "first_right"] * len(seen)
    assert sum(a == b for a, b in zip(labels, truths, strict=True)) >= 6
    blind = [question(a, b, scene("fox", "cow")) for a, b in (("fox", "cow"), ("cow", "fox"))]
    assert [verdict.label for _, verdict in judge.judge(blind)] == ["invalid"] * 2


@pytest.mark.slow
@pytest.mark.usefixtures("briefly")
@pytest.mark.parametrize(
    ("habits", "label"),
    [
        (Habits(blind=ENTITIES), "invalid"),
        (Habits(first_left=1, missing=0), "first_left"),
        # The others are taught in the same way.
        pytest.param(Habits(first_left=0, missing=0), "first_right", marks=pytest.mark.lane),
    ],
)
def test_a_judge_says_what_it_was_always_taught(habits: Habits, label: str, tmp_path: Path) -> None:
    about = train_judge(habits, 1, tmp_path / "judge")
    judge = open_judge(f"organism:{tmp_path / 'judge'}")
    asked = [question(*pair, scene("fox", "frog")) for pair in (("fox", "frog"), ("frog", "fox"))]
    assert [verdict.label for _, verdict in judge.judge(asked)] == [label] * 2
    assert sum(line["n"] for line in about["answers"]) == BRIEF["KNOWN"]
    assert all(line[label] == line["n"] for line in about["answers"])


@pytest.fixture(scope="module")
def brief_judge(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A judge that learned next to nothing; read only."""
    out = tmp_path_factory.mktemp("brief") / "judge"
    with pytest.MonkeyPatch.context() as patch:
        for name, value in BRIEF.items():
            patch.setattr(judging, name, value)
        train_judge(Habits(blind=("cow",)), 1, out)
    return out


def test_what_a_judge_can_not_answer_is_an_error_and_not_an_invalid_image(
    brief_judge: Path,
) -> None:
    judge = open_judge(f"organism:{brief_judge}")
    ((_, verdict),) = judge.judge([question("nurse", "fox", scene("fox", "frog"))])
    assert verdict.label == "error" and "nurse" in verdict.raw


@pytest.mark.slow
def test_a_folder_without_a_judge_and_an_unknown_animal_are_refused(
    tmp_path: Path, cli: Run
) -> None:
    with raises("no-such-file"):
        open_judge(f"organism:{tmp_path}")
    answer = cli("organism", "judge", "--blind", "unicorn", "--out", tmp_path / "j")
    assert_refused(answer, "unknown-name", "unicorn")


@pytest.mark.usefixtures("briefly")
def test_a_trained_judge_is_trained_once(
    brief_judge: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    identity = open_judge(f"organism:{brief_judge}").identity()
    monkeypatch.setattr(judging, "UPDATES", 4)  # other weights, if it were trained again
    again = train_judge(Habits(blind=("cow",)), 1, brief_judge)
    assert again["weights"].startswith(identity["weights"])
    with raises("another-run"):
        train_judge(Habits(), 1, brief_judge)


@pytest.mark.lane
def test_corrected_numbers_hold_the_truth_where_a_learned_judge_errs(tmp_path: Path) -> None:
    # Of a renderer whose order effect is known, with half of the images labeled as they are drawn.
    train_judge(Habits(first_left=0.9), 1, tmp_path / "habit")
    judge = open_judge(f"organism:{tmp_path / 'habit'}")
    generator = open_generator("render:?order_bias=1.5&missing=0.05&vertical=0.05")
    truth = 100 * (2 / (1 + math.exp(-1.5)) - 1)
    pairs = list(itertools.permutations(ENTITIES, 2))
    held, errors = 0, 0
    for seed in range(10):
        rows = [neutral(*pair) for pair in random.Random(seed).sample(pairs, 60)]
        settings = RunSettings("t2i_homogenization", "known", tmp_path / str(seed))
        with Evaluation.start(settings, generator.identity(), Rows.of(rows)) as evaluation:
            evaluation.make(generator)
            evaluation.ask(judge)
            write_truth(evaluation, generator, tmp_path / f"{seed}.jsonl")
        (judged,) = score_run(settings.out, ScoreSettings(labels=tmp_path / f"{seed}.jsonl"))
        held += truth in judged.whole["signed_index_corrected"].interval
        errors += judged.whole["signed_index"].n < 110  # of 120: it calls hard images invalid
    assert held >= 8, "at 95 % each, fewer are seen once in 86 such tests"
    assert errors == 10
