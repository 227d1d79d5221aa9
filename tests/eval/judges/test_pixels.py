"""The judge `pixels` on rendered images, against what the renderer drew."""

import subprocess
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image

import counterprior
from counterprior.eval.core import Question, Task
from counterprior.eval.judges.pixels import SEEN, PixelJudge
from counterprior.parsing import read_rows
from counterprior.scenes.drawing import draw_scene
from counterprior.scenes.matching import OF_SEVERAL, SMALL, SearchedImage
from counterprior.scenes.scene import Figure, Scene

Cli = Callable[..., subprocess.CompletedProcess[str]]


def labels_of(
    cli: Cli, data: Path, out: Path, suite: str, limit: int, generator: str
) -> Counter[str]:
    """Labels of the verdicts of `pixels` by the command line."""
    options = ("--suite", suite, "--data", data, "--limit", limit, "--generator", generator)
    done = cli("eval", *options, "--judge", "pixels", "--out", out)
    assert done.returncode == 0, done.stderr
    (log,) = out.glob("verdicts/*/verdicts.jsonl")
    return Counter(row["label"] for _, row in read_rows(log))


@pytest.mark.parametrize(
    ("suite", "limit", "least"),
    [
        pytest.param("t2i_homogenization", 20, 40, marks=pytest.mark.slow),
        ("spatial_uc", 20, 8),
        pytest.param("spatial_uc", 60, 20, marks=pytest.mark.slow),
        pytest.param("spatial_multi", 40, 15, marks=pytest.mark.slow),
        pytest.param("order_beyond", 20, 40, marks=pytest.mark.slow),
    ],
)
def test_nearly_all_rendered_images_have_a_valid_answer(
    full_release: Path, tmp_path: Path, cli: Cli, suite: str, limit: int, least: int
) -> None:
    labels = labels_of(cli, full_release, tmp_path / "run", suite, limit, "render:")
    answers = labels.total() - labels["error"]  # of things that the atlas lacks
    assert answers >= least
    assert labels["invalid"] <= 0.05 * answers, labels


@pytest.mark.slow
def test_a_figure_that_was_left_out_stays_missing(
    full_release: Path, tmp_path: Path, cli: Cli
) -> None:
    labels = labels_of(cli, full_release, tmp_path / "run", "spatial_uc", 60, "render:?missing=1")
    answers = labels.total() - labels["error"]
    assert answers >= 20 and labels["invalid"] >= 0.9 * answers, labels


THIN = [
    ("giraffe", 0.4649, 1),
    ("bicycle", 0.4511, -1),
    ("remote", 0.4741, 1),
    ("bench", 0.4657, -1),
    ("bear", 0.4408, 1),
]
"""Figures at sizes between those of the first search."""


@pytest.mark.parametrize(("name", "scale", "faces"), THIN)
def test_a_closer_look_finds_what_a_search_misses(name: str, scale: float, faces: int) -> None:
    figures = (Figure(name, 0.48, 0.46, scale, faces), Figure("dog", 0.5, 0.95, 0.5))
    image = draw_scene(Scene(figures, 3))
    match = SearchedImage(image).look_closer(name, ("",), SMALL, SEEN)
    assert match is not None and match.score >= SEEN
    assert abs(match.x - 0.48) < 0.02
    absent = draw_scene(Scene(figures[1:], 3))
    match = SearchedImage(absent).look_closer(name, ("",), SMALL, SEEN)
    assert match is None or match.score < SEEN
    hidden = SearchedImage(image).without(SearchedImage(image).find(name, scales=SMALL))
    match = hidden.look_closer(name, ("",), SMALL, SEEN)
    assert match is None or match.score < SEEN


def test_a_closer_look_compares_colors_too() -> None:
    figures = (
        Figure("laptop", 0.1809, 0.9498, 0.6295),
        Figure("truck", 0.4998, 0.918, 0.7097, -1),
        Figure("backpack", 0.8377, 0.9472, 0.6204),
    )
    image = draw_scene(Scene(figures, 1363022284))
    match = SearchedImage(image).look_closer("boat", ("",), OF_SEVERAL, SEEN)
    assert match is None or match.score < SEEN


def test_a_small_image_shows_no_more_closely() -> None:
    small = draw_scene(Scene((Figure("cat", 0.3, 0.9, 1),), 0)).resize((40, 30))
    assert not SearchedImage(small).has_details
    for left, label in (("cat", "first"), ("dog", "second")):
        other = {"cat": "dog", "dog": "cat"}[left]
        figures = (Figure(left, 0.27, 0.93, 1), Figure(other, 0.73, 0.93, 1))
        image = draw_scene(Scene(figures, 1)).resize((80, 60))
        pale = Image.blend(image, Image.new("RGB", image.size, "white"), 0.5)
        for shown in (image, pale):
            assert PixelJudge().verdict(asked("order", ("cat", "dog"), (shown,))).label == label


def asked(
    task: Task, subjects: tuple[str, str], images: tuple[Image.Image, ...], **facts: str
) -> Question:
    return Question(
        case="c",
        name="q",
        probe="original",
        task=task,
        subjects=subjects,
        labels=("first", "second", "invalid"),
        prompt="?",
        answers={},
        images=images,
        facts=facts,
    )


@pytest.mark.parametrize(("acts", "label"), [(0, "first"), (1, "second")])
def test_who_acts_on_whom_is_seen(acts: int, label: str) -> None:
    names = ("male designer", "female chef")
    figures = [Figure(name, x, 0.93, 0.95) for name, x in zip(names, (0.27, 0.73), strict=True)]
    source = draw_scene(Scene(tuple(figures), 4))
    figures[acts] = replace(figures[acts], pose="whispering")
    edited = draw_scene(Scene(tuple(figures), 4))
    question = asked(
        "binding",
        names,
        (source, edited),
        first="is whispering to the female chef",
        second="is being whispered to by the male designer",
    )
    assert PixelJudge().verdict(question).label == label


def test_of_two_alike_each_is_one_figure_of_the_source() -> None:
    acting = Figure("male bartender", 0.2781, 0.9344, 0.9795, 1, "bowing", "light")
    other = Figure("female bartender", 0.7429, 0.9266, 0.9218, 1, "", "medium-light")
    source, edited = (
        draw_scene(Scene((figure, other), 1265152400))
        for figure in (replace(acting, pose=""), acting)
    )
    text = "One person is bowing."
    question = asked(
        "actor", ("female bartender", "male bartender"), (source, edited), first=text, second=text
    )
    assert PixelJudge().verdict(question).label == "second"


@pytest.mark.parametrize(
    ("now", "label"),
    [
        (("dog", "lying"), "first"),
        (("rabbit", ""), "invalid"),
        (("rabbit", "lying"), "invalid"),
        (None, "invalid"),
    ],
)
def test_who_was_exchanged_or_taken_away_did_not_act(
    now: tuple[str, str] | None, label: str
) -> None:
    dog, pig = Figure("dog", 0.27, 0.93, 0.95), Figure("pig", 0.73, 0.93, 0.95)
    changed = [replace(dog, entity=now[0], pose=now[1])] if now else []
    images = tuple(draw_scene(Scene((*left, pig), 4)) for left in ([dog], changed))
    text = "One animal is lying down on the ground."
    question = asked("actor", ("dog", "pig"), images, first=text, second=text)
    assert PixelJudge().verdict(question).label == label


LIKE_EDGES = [
    (
        Figure("horse", 0.5, 0.4788, 0.474),
        Figure("baseball bat", 0.5188, 0.9519, 0.4725, -1),
        940736032,
    ),
    (
        Figure("baseball bat", 0.3653, 0.2377, 0.4826, -1),
        Figure("elephant", 0.1163, 0.7468, 0.4919, -1),
        754208943,
    ),
    (
        Figure("chair", 0.4916, 0.28, 0.4597, -1),
        Figure("surfboard", 0.1457, 0.9574, 0.4402),
        1871407205,
    ),
]
"""Two figures, the upper first, of which the bat or the chair correlates with an edge of the
background, whose seed is the last."""


@pytest.mark.parametrize(("upper", "lower", "background"), LIKE_EDGES)
def test_an_edge_of_the_background_is_no_figure(
    upper: Figure, lower: Figure, background: int
) -> None:
    names = (upper.entity, lower.entity)
    edged, other = (upper, lower) if names[0] in ("baseball bat", "chair") else (lower, upper)
    labels = []
    for figures in ((other, edged), (other,), (other, replace(edged, entity="truck"))):
        image = draw_scene(Scene(figures, background))
        objects = "|".join((*names, "toothbrush", "cat", "dog"))
        question = asked("order", names, (image,), axis="vertical", objects=objects)
        labels.append(PixelJudge().verdict(question).label)
    assert labels == ["first", "invalid", "invalid"]


@pytest.mark.parametrize(
    ("axis", "base", "label"),
    [("vertical", 0.6, "first"), ("horizontal", 0.6, "first"), ("vertical", 0.95, "invalid")],
)
def test_of_several_two_may_stand_across_from_each_other(
    axis: str, base: float, label: str
) -> None:
    figures = (
        Figure("male chef", 0.2, base, 0.7),
        Figure("cat", 0.5, 0.95, 0.5),
        Figure("car", 0.83, 0.6, 0.5),
    )
    image = draw_scene(Scene(figures, 5))
    question = asked(
        "order", ("male chef", "cat"), (image,), axis=axis, objects="male chef|cat|car"
    )
    assert PixelJudge().verdict(question).label == label


@pytest.mark.slow
def test_three_in_a_row_are_seen_as_they_are_drawn(full_release: Path) -> None:
    result = counterprior.evaluate(
        "order_beyond",
        "render:",
        ["pixels", "scene"],
        data=str(full_release),
        only="setting=three_homogenization",
        limit=10,
    )
    truth = {outcome.case.id: outcome for outcome in result.judge("scene").outcomes}
    seen = [
        (outcome.label(question), truth[outcome.case.id].label(question))
        for outcome in result.judge("pixels").outcomes
        for question, _ in outcome.verdicts
    ]
    assert len(seen) > 25
    assert sum(pixels == drawn for pixels, drawn in seen) >= 0.95 * len(seen)
