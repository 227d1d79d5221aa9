"""A round trip: makes the image or text of a case by its route, step after step."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from PIL import Image

from ...agents.budget import BudgetError
from ...errors import CounterpriorError
from ...progress import Progress, silent
from ..captioners import CUT
from ..core import Case, GeneratedText, GeneratorError, ImageRequest, describe
from ..judges import Answering
from ..workers.farm import IN_PROCESS, Scale
from .log import StepRecord
from .models import RouteModel, TripModels, prefixed
from .routes import EDITS, MADE, TRIP, Modality, StepKind, route_of, trip_name
from .steps import RouteStep, StepInput


class RoundTrip:
    """The start and the models of a run; generates images and texts."""

    def __init__(self, start: Modality, steps: Mapping[StepKind, Any], models: TripModels) -> None:
        """steps: kind -> spec of its model: captioner and generator in the order in which they
        work, then the editors."""
        self.start = start
        self.model_of = {step: models.model(step, value) for step, value in steps.items()}
        self._models = models

    def identity(self) -> dict[str, str]:
        identities = {step: model.identity(step) for step, model in self.model_of.items()}
        models = [describe(identities[step]) for step in identities if step not in EDITS]
        identity = {"kind": TRIP, "name": trip_name(self.start, models), "start": self.start}
        for step, identity_of_model in identities.items():
            identity |= prefixed(step, identity_of_model)
        return identity

    def check_answering(self) -> None:
        """Raises BackendError for a captioner that would not answer, UnpricedError under a cap, and
        the errors of opening a model."""
        for model in self.model_of.values():
            if isinstance(opened := model.open(), Answering):
                opened.check()

    def generate(self, request: ImageRequest) -> Image.Image | GeneratedText:
        """Returns the image or text at the end of a case's route; takes the open steps now.

        Raises GeneratorError if a step fails or is refused, and the errors that end a run.
        """
        case = request.case
        assert case is not None
        source = request.source
        assert source is not None or self.start == "text"
        while isinstance(place := self.place(case, lambda: source), RouteStep):  # type: ignore[arg-type,return-value]
            if place.key in self._models.failed:
                raise self._models.failed[place.key]
            model = self.model_of[place.step]
            if model in self._models.broken:
                raise self._models.broken[model]
            for _ in model.take([place]):
                pass
        if place.refused is not None:
            raise GeneratorError(place.refused.message, "refused", code="declined")
        if place.step_input.image is None:
            return GeneratedText(place.step_input.text, CUT if place.cut else "")
        return place.step_input.image()

    def place(self, case: Case, source: Callable[[], Image.Image]) -> RouteStep | RouteEnd:
        """Returns the next step of a case, or the end of its route.

        source: reads the row's image.
        """
        route, _ = route_of(case.variant)
        step_input = StepInput(case.source.rpartition("/")[2].removesuffix(".png"), image=source)
        if self.start == "text":
            step_input = text_input(case.fields["caption"])
        cut = False
        for number, step in enumerate(route.steps, 1):
            next_step = self._step(step, step_input, case, route.steps[number:])
            record = self._models.log.find(next_step.key)
            if record is None:
                return next_step
            if record.status == "refused":
                return RouteEnd(step_input, cut, record)
            cut = cut or record.cut
            step_input = self._output(record)
        return RouteEnd(step_input, cut)

    def open_steps(self, case: Case, source: Callable[[], Image.Image]) -> Iterator[RouteStep]:
        """Yields every open step of a case, as if no two steps made the same.

        A later step gets the key of the step before it as its input, and no text.
        """
        place = self.place(case, source)
        if isinstance(place, RouteEnd):
            return
        yield place
        for step in place.later:
            image = source if MADE[place.step] == "image" else None
            place = self._step(step, StepInput(place.key, image=image), case)
            yield place

    def _step(
        self,
        step: StepKind,
        step_input: StepInput,
        case: Case,
        later: tuple[StepKind, ...] = (),
    ) -> RouteStep:
        number = route_of(case.variant)[1]
        edit = json.loads(case.fields["edits"])[number - 1] if step in EDITS else ""
        key = self.model_of[step].key(step, step_input, edit, case.seed)
        prompt = self.model_of[step].prompt(step)
        return RouteStep(key, step, step_input, edit, case, prompt, later)

    def _output(self, record: StepRecord) -> StepInput:
        if record.text:
            return text_input(record.text)
        return StepInput(record.sha256, image=self._models.log.image(record))


class RouteEnd(NamedTuple):
    """The end of a route."""

    step_input: StepInput
    """Image or text that is judged."""
    cut: bool
    """Whether a text on the way was cut."""
    refused: StepRecord | None = None
    """The step that was refused; then there is nothing to judge."""


class TripCase(NamedTuple):
    """A case of a run of round trips."""

    trip: RoundTrip
    case: Case
    """Case with the fields of its row."""
    source: Callable[[], Image.Image]
    """Reads the row's image, RGB."""


def text_input(text: str) -> StepInput:
    """Returns a text as an input of a step."""
    return StepInput(StepRecord("", "", text=text).digest, text=text)


def take_steps(
    wanted: Callable[[], Iterator[TripCase]],
    models: TripModels,
    progress: Progress = silent,
    scale: Scale = IN_PROCESS,
) -> None:
    """Takes every step of many trips, model after model, so that each is loaded only a few times.

    wanted: yields the cases anew each time. scale: workers for models that run on this machine. A
    step that fails is reported for each of its cases when these are made. Raises BudgetError at the
    cap.
    """
    done = 0
    while True:
        ready: dict[RouteModel, dict[str, RouteStep]] = {}
        for trip_case in wanted():
            place = _place(trip_case)
            if not isinstance(place, RouteStep) or place.key in models.failed:
                continue
            model = trip_case.trip.model_of[place.step]
            if model not in models.broken:
                ready.setdefault(model, {})[place.key] = place
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
            except CounterpriorError as error:  # reported by each run that needs the model
                models.broken[model] = error
            model.release()


def _place(trip_case: TripCase) -> RouteStep | RouteEnd | None:
    """Returns the place of a case; None if a model can't be opened, which its run reports."""
    try:
        return trip_case.trip.place(trip_case.case, trip_case.source)
    except CounterpriorError:
        return None
