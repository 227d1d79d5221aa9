"""The Python API: errors that name the cause, and judges that are told apart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from refusals import raises

import counterprior
from counterprior.errors import RunFailed, UsageError
from counterprior.eval.core import describe
from counterprior.eval.generators import open_generator


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
