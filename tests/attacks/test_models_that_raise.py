"""Models that raise whatever they like: each image is one failure, with one line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from refusals import raises

from counterprior.agents.chat import BackendError
from counterprior.errors import RunFailed
from counterprior.eval.core import ImageRequest
from counterprior.eval.engine.data import Rows
from counterprior.eval.engine.evaluation import Evaluation, RunSettings
from counterprior.eval.engine.run import Run
from counterprior.eval.selftest import rows as trials


class OutOfMemoryError(RuntimeError):
    """As torch names its own."""


class Checkpoint:
    """Draws every second image, and fails at the others as `fail` does."""

    def __init__(self, fail: Callable[[], Any], batch_size: int = 1) -> None:
        self.fail = fail
        self.batch_size = batch_size
        self.asked = 0

    def identity(self) -> dict[str, str]:
        return {"kind": "python", "model": "checkpoint"}

    def generate(self, request: ImageRequest) -> Any:
        self.asked += 1
        return Image.new("RGB", (32, 32)) if self.asked % 2 else self.fail()

    def generate_batch(self, requests: list[ImageRequest]) -> list[Any]:
        return [self.fail() for _ in requests]


def throw(error: BaseException) -> Callable[[], Any]:
    def fail() -> Any:
        raise error

    return fail


FAULTS: dict[str, Callable[[], Any]] = {
    "memory": throw(OutOfMemoryError("CUDA out of memory.\nTried to allocate 2 GiB")),
    "an assertion": throw(AssertionError()),
    "a key": throw(KeyError("unet")),
    "a type": throw(TypeError("forward() got an unexpected keyword")),
    "an attribute": throw(AttributeError("'NoneType' object has no attribute 'images'")),
    "a recursion": throw(RecursionError("maximum recursion depth exceeded")),
    "a long text": throw(RuntimeError("x" * 100_000)),
    "an own exception": throw(type("Odd", (Exception,), {})("odd")),
    "no image": lambda: None,
    "a text": lambda: "an image",
    "an image without pixels": lambda: Image.new("RGB", (0, 0)),
}


def generated(checkpoint: Checkpoint, root: Path) -> list[tuple[str, str]]:
    """Makes four images; returns their states and messages."""
    rows = Rows.of([trials.neutral(a, b) for a, b in trials.pairs(trials.STOUT)[:2]])
    settings = RunSettings("t2i_homogenization", "memory", root / "run")
    with Evaluation.start(settings, checkpoint.identity(), rows) as evaluation:
        evaluation.make(checkpoint)
    images = Run.open(root / "run").images().values()
    return [(image.status, image.message) for image in images]


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("name", FAULTS)
def test_an_image_that_a_model_fails_at_is_one_failure(
    name: str, batch: int, tmp_path: Path, survived: Callable[[str, bool], None]
) -> None:
    checkpoint = Checkpoint(FAULTS[name], batch)
    if batch == 1:
        vars(checkpoint)["generate_batch"] = None
    images = generated(checkpoint, tmp_path)
    said = [message for status, message in images if status == "error"]
    well = len(images) == 4 and len(said) >= 2 and all(0 < len(s) < 400 for s in said)
    well = well and not any("\n" in message for message in said)
    survived("models that raise", well)
    assert well, images


def test_what_ends_a_run_still_ends_it(tmp_path: Path) -> None:
    with raises("all-failed", "gone", error=RunFailed):
        generated(Checkpoint(throw(BackendError("gone", code="all-failed"))), tmp_path)
