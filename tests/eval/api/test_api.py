"""The Python API: errors that name the cause, and judges that are told apart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from refusals import raises

import counterprior
from counterprior.errors import RunFailed, UsageError
from counterprior.eval.core import GeneratorError, ImageRequest, describe
from counterprior.eval.generators import as_generator, open_generator


def white(prompt: str, seed: int) -> Image.Image:
    return Image.new("RGB", (16, 16), "white")


def broken(prompt: str, seed: int) -> Image.Image:
    raise RuntimeError("no memory left")


def first(question: counterprior.Question) -> str:
    return question.labels[0]


def second(question: counterprior.Question) -> str:
    return question.labels[1]


def evaluate(release: Path, generator: Any = white, judge: Any = first, **more: Any) -> Any:
    more = {"limit": 2, **more}
    return counterprior.evaluate("t2i_correctness", generator, judge, data=str(release), **more)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"limit": 0}, ("out-of-range", "limit=0")),
        ({"seeds": 5}, ("out-of-range", "to 4")),
        ({"probes": "mirror,swap"}, ("unknown-name", "mirror,swap")),
        ({"identity": {"generators": "1"}}, ("unknown-name", "generator, judge")),
        ({"judge": []}, ("missing-option",)),
        ({"judge": [first, first]}, ("duplicate-id", "python:tests.eval.api.test_api.first")),
        ({"generator": {"case": "a.png"}}, ("unknown-reference", "counterprior.prompts")),
    ],
)
def test_a_bad_argument_is_named(
    text_release: Path, arguments: dict[str, Any], message: tuple[str, ...]
) -> None:
    with raises(*message, error=UsageError):
        evaluate(text_release, **arguments)


def test_run_without_any_image_fails_with_first_error(text_release: Path) -> None:
    with raises("all-failed", error=RunFailed):
        evaluate(text_release, broken)


def test_judges_are_chosen_as_on_the_command_line(text_release: Path, tmp_path: Path) -> None:
    found = evaluate(text_release, judge=[first, second], identity="1")
    labels = [found.judge(name).outcomes[0].label("arrangement") for name in found.judges]
    assert set(labels) == {"correct", "wrong"}
    with raises("unknown-name", "judges", error=UsageError):
        found.judge("python")
    assert evaluate(text_release).judge("python").judges == evaluate(text_release).judges
    with raises("unknown-name", "judge", error=UsageError):
        found.judge("pixels")
    page = found.judge(found.judges[1]).report(tmp_path / "site").read_text()
    assert "test_api.second" in page and "test_api.first" not in page


def test_options_of_a_factory_are_part_of_its_identity(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own_factory.py").write_text("def make(steps): return lambda prompt, seed: None\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    few, many = (open_generator(f"python:own_factory:make?steps={n}") for n in (4, 8))
    assert few.identity() != many.identity()
    assert describe(few.identity()) == "python:own_factory:make?steps=4"


def test_scores_say_what_an_image_failed_of_and_what_a_judge_answered(text_release: Path) -> None:
    def sometimes(prompt: str, seed: int) -> Image.Image:
        return broken(prompt, seed) if seed % 2 else white(prompt, seed)

    result = evaluate(text_release, sometimes, lambda question: 7, seeds=4, unchecked=True)
    failed = result.failures["images"]["error"]
    assert f"{failed} images could not be made, the first: RuntimeError: no memory left" in str(
        result
    )
    label = "as a label of their question, the first: 7 (labels of arrangement: correct, wrong, "
    assert any(label in note for note in result.notes)


GREY = np.full((16, 16, 3), 51, np.uint8)


@pytest.mark.parametrize(
    "pixels", [GREY, GREY / 255, GREY[None], [GREY], [Image.fromarray(GREY)], GREY[:, :, 0]]
)
def test_an_image_comes_as_pipelines_return_it(pixels: Any) -> None:
    generator = as_generator(lambda prompt, seed: pixels, "v1")
    image = generator.generate(ImageRequest("a cat", 1))
    assert isinstance(image, Image.Image) and image.convert("RGB").getpixel((3, 3)) == (51, 51, 51)


@pytest.mark.parametrize(
    "pixels",
    [
        GREY * 1.0,
        GREY / 255 - 0.5,
        np.full((2, 2), np.nan),
        GREY.astype(int),
        GREY[:0],
        np.zeros(3),
        [],
        [GREY] * 2,
    ],
)
def test_what_is_no_image_is_refused(pixels: Any) -> None:
    with raises("wrong-type", error=GeneratorError):
        as_generator(lambda prompt, seed: pixels, "v1").generate(ImageRequest("a cat", 1))
