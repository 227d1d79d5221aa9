"""Takes steps of round trips with a model, in this process or in workers; records nothing."""

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
from ..workers.tasks import Numbered, check_same
from .log import StepRecord, store_result
from .routes import StepKind

ONE_IMAGE = (FileNotFoundError, GeneratorError, OSError, ValueError)
"""Errors of a generator that concern one image; any other ends the run."""


@dataclass(frozen=True)
class StepInput:
    """Input of a step."""

    digest: str
    """SHA-256 of the text, or of the image's file."""
    text: str = ""
    """Text; empty for an image."""
    image: Callable[[], Image.Image] | None = None
    """Reads the image, RGB; picklable, for workers. None for a text."""


@dataclass(frozen=True)
class RouteStep:
    """A step whose input is there; picklable."""

    key: str
    """See `log.step_key`."""
    step: StepKind
    step_input: StepInput
    edit: str
    """The instruction of an edit; empty for the other steps."""
    case: Case
    """One of the cases that need it."""
    prompt: str = ""
    """Name of the prompt file with its instruction; empty for a text that is drawn as it is."""
    later: tuple[StepKind, ...] = ()
    """Steps of the route that follow it."""


StepResult = StepRecord | GeneratorError
"""Result of a step; an error if it was refused, or may succeed another time."""


def write_steps(
    captioner: Captioner, steps: Iterable[RouteStep], folder: Path
) -> Iterator[tuple[RouteStep, StepResult]]:
    """Yields each step with the captioner's result, in any order. Raises LoadError."""
    pending: dict[str, RouteStep] = {}

    def requests() -> Iterator[CaptionRequest]:
        for step in steps:
            pending[step.key] = step
            yield _request(step)

    for request, caption in captioner.caption(requests()):
        step = pending.pop(request.id)
        if caption.status == "ok" and caption.text.strip():
            yield step, store_result(folder, step.key, step.step, caption)
        else:
            yield step, _not_written(caption)


def draw_step(generator: Generator, step: RouteStep, folder: Path) -> StepResult:
    """Takes a step with a generator; its image is stored in the folder of steps."""
    prompt = step.edit if step.step == "edit_image" else step.step_input.text
    if step.prompt:
        prompt = read_prompt(step.prompt).fill(text=prompt).strip()
    try:
        source = step.step_input.image() if step.step_input.image is not None else None
        request = ImageRequest(prompt, step.case.seed, source=source, case=step.case)
        drawn = draw(generator, request)
    except ONE_IMAGE as error:
        return (
            error
            if isinstance(error, GeneratorError)
            else GeneratorError(str(error), code="generator-failed")
        )
    return store_result(folder, step.key, step.step, drawn)  # a full disk ends the run


def take_here(
    model: Any, writes: bool, steps: Iterable[RouteStep], folder: Path
) -> Iterator[tuple[RouteStep, StepResult]]:
    """Takes steps with a captioner (`writes`) or a generator; yields each with its result."""
    if writes:
        yield from write_steps(model, steps, folder)
        return
    for step in steps:
        yield step, draw_step(model, step, folder)


@dataclass(frozen=True)
class TakeSteps:
    """The task of workers that take the steps of one model."""

    model: Any
    """Spec, or the captioner or generator itself."""
    writes: bool
    """Whether it is a captioner."""
    identity: dict[str, str]
    """Identity of the model."""
    folder: Path
    """Folder of steps, absolute."""

    @property
    def bundle(self) -> int:
        return 1

    def open(self) -> StepWorker:
        """Opens the model in a worker. Raises RunFailed if it has another identity there."""
        model = as_captioner(self.model) if self.writes else as_generator(self.model)
        check_same(self.identity, model.identity(), "captioner" if self.writes else "generator")
        return StepWorker(self, model)

    def lost(self, step: RouteStep, deaths: int) -> StepResult:
        """Result of a step on which that many workers died."""
        return GeneratorError(f"{deaths} workers died taking it", code="workers-died")


class StepWorker:
    """Takes steps in a worker."""

    def __init__(self, task: TakeSteps, model: Any) -> None:
        self._task = task
        self._model = model

    def do(self, work: Sequence[Numbered[RouteStep]]) -> Iterator[Numbered[StepResult]]:
        numbers = {step.key: number for number, step in work}
        steps = (step for _, step in work)
        for step, result in take_here(self._model, self._task.writes, steps, self._task.folder):
            yield numbers[step.key], result

    def finish(self) -> Iterable[Numbered[StepResult]]:
        return ()


def _request(step: RouteStep) -> CaptionRequest:
    prompt = read_prompt(step.prompt)
    if step.step_input.image is not None:
        return CaptionRequest(step.key, prompt.fill().strip(), step.step_input.image())
    instruction = prompt.fill(caption=step.step_input.text, edit=step.edit)
    return CaptionRequest(step.key, instruction.strip(), None)


def _not_written(caption: Caption) -> GeneratorError:
    if caption.status == "refused":
        return GeneratorError(caption.text or "refused", "refused", code="declined")
    return GeneratorError(caption.text or "it wrote nothing", code="bad-answer")
