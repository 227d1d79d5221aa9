"""Money that buys nothing: a paid server whose images can't be kept is left alone at once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from refusals import raises

from counterprior.agents.chat import Permit, always
from counterprior.errors import RunFailed
from counterprior.eval.core import GeneratorError, ImageRequest
from counterprior.eval.engine.costs import Cost, capped
from counterprior.eval.engine.data import Rows
from counterprior.eval.engine.evaluation import Evaluation, RunSettings
from counterprior.eval.engine.run import Run
from counterprior.eval.generators import PaidByImage
from counterprior.eval.selftest import rows as trials


class Painter(PaidByImage):
    """A paid model whose images fail as `fails` says of their number, from 1."""

    def __init__(self, fails: Callable[[int], GeneratorError | None]) -> None:
        self.fails = fails
        self.asked = 0
        self._lock = threading.Lock()

    def identity(self) -> dict[str, str]:
        return {"kind": "openai-image", "model": "i"}

    def generate(self, request: ImageRequest, permit: Permit = always) -> Image.Image:
        with self._lock:
            self.asked += 1
            error = self.fails(self.asked)
        if error is not None:
            raise error
        return Image.new("RGB", (32, 32))


def paint(root: Path, painter: Painter, pairs: int = 12) -> list[str]:
    """Makes images of a run, eight at a time; returns their states, whatever ended the run."""
    rows = Rows.of([trials.neutral(a, b) for a, b in trials.pairs(trials.STOUT)[:pairs]])
    prices = root / "prices.yaml"
    prices.write_text("openai-image:i: {image: 4, edit: 4}\n")
    settings = RunSettings("t2i_homogenization", "memory", root / "run")
    with Evaluation.start(settings, painter.identity(), rows) as evaluation:
        plan = Cost(8, 500, prices).plan(root / "run")
        generator, several = capped(painter, plan, evaluation.run)
        evaluation.make(generator, concurrency=several)
    return states(root)


def states(root: Path) -> list[str]:
    return [image.status for image in Run.open(root / "run").images().values()]


def failure(text: str = "no", ends_run: bool = False) -> GeneratorError:
    error = GeneratorError(text)
    error.ends_run = ends_run
    return error


def test_a_failure_that_no_repetition_mends_ends_the_run_after_the_first(tmp_path: Path) -> None:
    painter = Painter(lambda number: failure("an address only", ends_run=True))
    for again in (1, 2):
        with raises("all-failed", "an address only", error=RunFailed) as caught:
            paint(tmp_path, painter)
        assert caught.value.exit_code == 1
        assert painter.asked == again and states(tmp_path) == ["error"]


def test_images_that_all_fail_alike_end_the_run(tmp_path: Path) -> None:
    painter = Painter(lambda number: failure("HTTP 400: unknown size"))
    with raises("all-failed", "unknown size", error=RunFailed):
        paint(tmp_path, painter)
    assert 3 <= painter.asked <= 3 + 8  # those under way with the third


@pytest.mark.parametrize(
    "fails",
    [
        lambda number: failure() if number > 1 else None,
        lambda number: failure(f"no {number}"),
    ],
    ids=["one was made", "each fails in its own way"],
)
def test_images_that_fail_on_their_own_end_no_run(fails: Any, tmp_path: Path) -> None:
    painter = Painter(fails)
    assert len(paint(tmp_path, painter)) == painter.asked == 24  # in both orders of mention
