"""Steps of round trips, as a model takes them: here, or in workers; nothing is recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL import Image

from ..captioners import as_captioner
from ..core import Caption, Captioner, CaptionRequest, Case, Generator, GeneratorError, ImageRequest
from ..generators import as_generator, draw
from ..questions import read_prompt
from ..workers.farm import Numbered, check_same
from .log import TakenStep, taken_step
from .routes import StepKind

ONE_IMAGE = (FileNotFoundError, GeneratorError, OSError, ValueError)
"""What a generator may raise for one image; anything else ends the run."""


@dataclass(frozen=True)
class StepInput:
    """What goes into a step."""

    digest: str
    """SHA-256 of the text, or of the image's file."""
    text: str = ""
    """Where it is a text."""
    image: Callable[[], Image.Image] | None = None
    """Reads it where it is an image, RGB; picklable, for workers."""


@dataclass(frozen=True)
class RouteStep:
    """A step that can be taken now; picklable."""

    key: str
    """See `log.step_key`."""
    step: StepKind
    step_input: StepInput
    edit: str
    """The instruction of an edit; empty for the other steps."""
    case: Case
    """One of the cases that need it."""


StepResult = TakenStep | GeneratorError
"""What became of a step; an error where it may go better another time, or was refused."""


def write_steps(
    captioner: Captioner, steps: Iterable[RouteStep], folder: Path
) -> Iterator[tuple[RouteStep, StepResult]]:
    """What a captioner writes in each step, in any order. Raises LoadError."""
    asked: dict[str, RouteStep] = {}

    def requests() -> Iterator[CaptionRequest]:
        for one in steps:
            asked[one.key] = one
            yield _request(one)

    for request, caption in captioner.caption(requests()):
        one = asked.pop(request.id)
        if caption.status == "ok" and caption.text.strip():
            yield one, taken_step(folder, one.key, one.step, caption)
        else:
            yield one, _not_written(caption)


def draw_step(generator: Generator, one: RouteStep, folder: Path) -> StepResult:
    """What a generator draws in a step, kept in the folder of steps."""
    prompt = one.edit if one.step == "retouch" else one.step_input.text
    try:
        source = one.step_input.image() if one.step_input.image is not None else None
        request = ImageRequest(prompt, one.case.seed, source=source, case=one.case)
        drawn = draw(generator, request)
    except ONE_IMAGE as error:
        return (
            error
            if isinstance(error, GeneratorError)
            else GeneratorError(str(error), code="generator-failed")
        )
    return taken_step(folder, one.key, one.step, drawn)  # a full disk is no image's own failure


def take_here(
    model: Any, writes: bool, steps: Iterable[RouteStep], folder: Path
) -> Iterator[tuple[RouteStep, StepResult]]:
    """What a captioner (`writes`) or a generator makes, one step after the other."""
    if writes:
        yield from write_steps(model, steps, folder)
        return
    for one in steps:
        yield one, draw_step(model, one, folder)


@dataclass(frozen=True)
class TakeSteps:
    """The task of workers that take the steps of one model."""

    model: Any
    """Spec, or the captioner or generator itself."""
    writes: bool
    """Whether it is a captioner."""
    identity: dict[str, str]
    """Who it is."""
    folder: Path
    """Of steps, absolute."""

    @property
    def bundle(self) -> int:
        return 1

    def open(self) -> StepWorker:
        """Raises RunFailed where the model is another one in a worker."""
        model = as_captioner(self.model) if self.writes else as_generator(self.model)
        check_same(self.identity, model.identity(), "captioner" if self.writes else "generator")
        return StepWorker(self, model)

    def lost(self, piece: RouteStep, deaths: int) -> StepResult:
        """A step on which that many workers died."""
        return GeneratorError(f"{deaths} workers died taking it", code="workers-died")


class StepWorker:
    """Takes steps in a worker."""

    def __init__(self, task: TakeSteps, model: Any) -> None:
        self._task = task
        self._model = model

    def do(self, work: Sequence[Numbered[RouteStep]]) -> Iterator[Numbered[StepResult]]:
        numbers = {piece.key: number for number, piece in work}
        pieces = (piece for _, piece in work)
        for piece, result in take_here(self._model, self._task.writes, pieces, self._task.folder):
            yield numbers[piece.key], result

    def finish(self) -> Iterable[Numbered[StepResult]]:
        return ()


def _request(one: RouteStep) -> CaptionRequest:
    prompt = read_prompt(one.step)
    if one.step_input.image is not None:
        return CaptionRequest(one.key, prompt.fill().strip(), one.step_input.image())
    asked = prompt.fill(caption=one.step_input.text, edit=one.edit)
    return CaptionRequest(one.key, asked.strip(), None)


def _not_written(caption: Caption) -> GeneratorError:
    if caption.status == "refused":
        return GeneratorError(caption.text or "refused", "refused", code="declined")
    return GeneratorError(caption.text or "it wrote nothing", code="bad-answer")
