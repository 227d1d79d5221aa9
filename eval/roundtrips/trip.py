"""A round trip: what makes the image or text of a case by its route, step after step."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from PIL import Image

from ...agents.budget import BudgetError
from ...errors import CounterpriorError
from ...progress import Progress, silent
from ..core import Case, GeneratedText, GeneratorError, ImageRequest, describe
from ..judges import Answering
from ..workers.farm import IN_PROCESS, Scale
from .log import TakenStep
from .models import OpenStep, RouteModel, TripModels, prefixed
from .routes import EDITS, MADE, TRIP, Modality, StepKind, route_of, trip_name
from .steps import StepInput

CUT = json.dumps(
    {"note": "some texts were cut at the most tokens of their model: raise max_tokens"}
)


class RoundTrip:
    """The models of a run, and where it starts; a maker of images and texts."""

    def __init__(self, start: Modality, steps: Mapping[StepKind, Any], models: TripModels) -> None:
        """steps: kind -> spec of who takes it, the captioner and the generator in their order, and
        after them the editors."""
        self.start = start
        self.model_of = {step: models.model(step, value) for step, value in steps.items()}
        self._models = models

    def identity(self) -> dict[str, str]:
        known = {step: model.identity(step) for step, model in self.model_of.items()}
        named = [describe(found) for step, found in known.items() if step not in EDITS]
        parts = (prefixed(step, found) for step, found in known.items())
        about = {"kind": TRIP, "name": trip_name(self.start, named), "start": self.start}
        return {**about, **{name: value for part in parts for name, value in part.items()}}

    def check_answering(self) -> None:
        """Raises BackendError for a captioner that would not answer, UnpricedError under a cap, and
        what opening a model raises."""
        for model in self.model_of.values():
            if isinstance(opened := model.open(), Answering):
                opened.check()

    def generate(self, request: ImageRequest) -> Image.Image | GeneratedText:
        """The end of a case's route; steps that nobody took yet are taken now.

        Raises GeneratorError where a step fails or is refused, and what ends the run.
        """
        case = request.case
        assert case is not None
        source = request.source
        assert source is not None or self.start == "text"
        while isinstance(place := self.place(case, lambda: source), OpenStep):  # type: ignore[arg-type,return-value]
            if place.key in self._models.failed:
                raise self._models.failed[place.key]
            if place.model in self._models.broken:
                raise self._models.broken[place.model]
            for _ in place.model.take([place]):
                pass
        if place.refused is not None:
            raise GeneratorError(place.refused.message, "refused", code="declined")
        if place.step_input.image is None:
            return GeneratedText(place.step_input.text, CUT if place.cut else "")
        return place.step_input.image()

    def place(self, case: Case, source: Callable[[], Image.Image]) -> OpenStep | RouteEnd:
        """How far a case is: the step that is to be taken next, or where its route has ended.

        source: reads the row's image.
        """
        route, _ = route_of(case.variant)
        step_input = StepInput(case.source.rpartition("/")[2].removesuffix(".png"), image=source)
        if self.start == "text":
            step_input = text_input(case.fields["caption"])
        cut = False
        for step in route.steps:
            open_step = self._step(step, step_input, case)
            taken = self._models.log.find(open_step.key)
            if taken is None:
                return open_step
            if taken.status == "refused":
                return RouteEnd(step_input, cut, taken)
            cut = cut or taken.cut
            step_input = self._output(taken)
        return RouteEnd(step_input, cut)

    def left(self, case: Case, source: Callable[[], Image.Image]) -> Iterator[OpenStep]:
        """Every step of a case that nobody took yet, as if each made something that no other does:
        a later one is given the key of the one before it, and no text."""
        place = self.place(case, source)
        if isinstance(place, RouteEnd):
            return
        yield place
        steps = route_of(case.variant)[0].steps
        for step in steps[steps.index(place.step) + 1 :]:
            shown = source if MADE[place.step] == "image" else None
            place = self._step(step, StepInput(place.key, image=shown), case)
            yield place

    def _step(self, step: StepKind, step_input: StepInput, case: Case) -> OpenStep:
        number = route_of(case.variant)[1]
        edit = json.loads(case.fields["edits"])[number - 1] if step in EDITS else ""
        model = self.model_of[step]
        key = model.key(step, step_input, edit, case.seed)
        return OpenStep(key, step, step_input, edit, case, model=model)

    def _output(self, taken: TakenStep) -> StepInput:
        if taken.text:
            return text_input(taken.text)
        return StepInput(taken.sha256, image=self._models.log.image(taken))


class RouteEnd(NamedTuple):
    """The end of a route."""

    step_input: StepInput
    """What was made."""
    cut: bool
    """Whether a text on the way was cut."""
    refused: TakenStep | None = None
    """The step that was refused; nothing was made then."""


class TripCase(NamedTuple):
    """A case of a run of round trips."""

    trip: RoundTrip
    case: Case
    """With the fields of its row."""
    source: Callable[[], Image.Image]
    """Reads the row's image, RGB."""


def text_input(text: str) -> StepInput:
    """A text as an input of a step."""
    return StepInput(TakenStep("", "", text=text).digest, text=text)


def take_steps(
    wanted: Callable[[], Iterator[TripCase]],
    models: TripModels,
    progress: Progress = silent,
    scale: Scale = IN_PROCESS,
) -> None:
    """Takes every step of many trips, model after model, so that each is loaded a few times only.

    wanted: gives the cases anew each time. scale: the workers that take steps of models that run
    here. What fails here fails again, for each of its cases, when
    they are made. Raises BudgetError at the cap.
    """
    done = 0
    while True:
        ready: dict[RouteModel, dict[str, OpenStep]] = {}
        for one in wanted():
            place = _place(one)
            if not isinstance(place, OpenStep) or place.key in models.failed:
                continue
            if place.model not in models.broken:
                ready.setdefault(place.model, {})[place.key] = place
        if not ready:
            return
        total = done + sum(map(len, ready.values()))
        for model, steps in ready.items():
            try:
                for _ in model.take(steps.values(), scale):
                    done += 1
                    progress("steps", done, total)
            except BudgetError:
                raise
            except CounterpriorError as error:  # said for each run of it
                models.broken[model] = error
            model.release()


def _place(one: TripCase) -> OpenStep | RouteEnd | None:
    """None where a model can't be opened: the run that needs it says so."""
    try:
        return one.trip.place(one.case, one.source)
    except CounterpriorError:
        return None
