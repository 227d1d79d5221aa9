"""The models of round trips: opened once for all trips of a study, and asked for single steps."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from PIL import Image

from ...agents.spending import Charge
from ...agents.threads import in_threads
from ..captioners import as_captioner
from ..core import (
    OBSERVED,
    Caption,
    Captioner,
    CaptionRequest,
    Case,
    Generator,
    GeneratorError,
    ImageRequest,
)
from ..generators import PaidByImage, as_generator, draw
from ..generators.paid import PaidGenerator
from ..judges import CallPlan
from ..prompts import read_prompt
from .log import FOLDER, StepLog, step_key
from .routes import MADE, StepKind

SOURCE = f"{FOLDER}/images"
"""Name of the images of steps in the spending log."""
ONE_IMAGE = (FileNotFoundError, GeneratorError, OSError, ValueError)
"""What a generator may raise for one image; anything else ends the run."""


@dataclass(frozen=True)
class GivenInput:
    """What goes into a step."""

    digest: str
    """SHA-256 of the text, or of the image's file."""
    text: str = ""
    """Where it is a text."""
    image: Callable[[], Image.Image] | None = None
    """Reads it where it is an image, RGB."""


@dataclass(frozen=True)
class OpenStep:
    """A step that can be taken now."""

    key: str
    """See `log.step_key`."""
    step: StepKind
    member: TripMember
    """Who takes it."""
    given: GivenInput
    edit: str
    """The instruction of an edit; empty for the other steps."""
    case: Case
    """One of the cases that need it."""


class TripMember:
    """One model of a study's round trips, a captioner or a generator; opened when it is needed."""

    def __init__(self, value: Any, writes: bool, models: TripModels) -> None:
        """value: a spec, or what can stand for a captioner or generator."""
        self._value = value
        self.writes = writes
        """Whether it makes texts."""
        self._models = models
        self._opened: Any = None
        self._identity: dict[str, str] | None = None

    def identity(self, step: StepKind) -> dict[str, str]:
        """Who takes a step, with the version of what it is told."""
        if self._identity is None:
            self._identity = dict(self.open().identity())
        told = {"prompt": read_prompt(step).version} if self.writes else {}
        return {**self._identity, **told}

    def open(self) -> Any:
        """The captioner or generator, the latter under the cap. Raises UsageError for a bad spec,
        BackendError for a missing key, UnpricedError under a cap."""
        plan = self._models.plan
        if self._opened is None and self.writes:
            self._opened = as_captioner(self._value, plan)
        elif self._opened is None:
            made = as_generator(self._value)
            paid = isinstance(made, PaidByImage)
            self._opened = PaidGenerator(made, plan.budget, SOURCE) if paid else made  # type: ignore[arg-type]
        return self._opened

    def key(self, step: StepKind, given: GivenInput, edit: str, seed: int) -> str:
        """Of a step; a text does not depend on the seed. What a server says of itself is no part:
        it may be down."""
        known = {n: v for n, v in self.identity(step).items() if not n.startswith(OBSERVED)}
        return step_key(step, known, given.digest, edit, 0 if self.writes else seed)

    def take(self, steps: Iterable[OpenStep]) -> Iterator[None]:
        """Takes steps and records each as it is done; one that failed is in `TripModels.failed`.

        Raises LoadError, BudgetError and LedgerError, which end the run.
        """
        opened = self.open()
        if self.writes:
            yield from self._write(opened, steps)
            return
        several = self._models.plan.concurrency if isinstance(opened, PaidGenerator) else 1
        yield from in_threads(lambda one: self._draw(opened, one), steps, several)

    def release(self) -> None:
        """Frees the model; it is opened again where it is needed again."""
        if isinstance(self._value, str):
            self._opened = None
            gc.collect()
            if (torch := sys.modules.get("torch")) is not None and torch.cuda.is_available():
                torch.cuda.empty_cache()

    def _write(self, captioner: Captioner, steps: Iterable[OpenStep]) -> Iterator[None]:
        asked: dict[str, OpenStep] = {}

        def requests() -> Iterator[CaptionRequest]:
            for one in steps:
                asked[one.key] = one
                yield _request(one)

        for request, caption in captioner.caption(requests()):
            one = asked.pop(request.id)
            if caption.status == "ok" and caption.text.strip():
                self._models.log.add(one.key, one.step, caption)
            else:
                self._models.fail(one, _not_written(caption))
            yield

    def _draw(self, generator: Generator, one: OpenStep) -> None:
        given = one.given
        prompt = one.edit if one.step == "retouch" else given.text
        try:
            source = given.image() if given.image is not None else None
            request = ImageRequest(prompt, one.case.seed, source=source, case=one.case)
            self._models.log.add(one.key, one.step, draw(generator, request))
        except ONE_IMAGE as error:
            failed = error if isinstance(error, GeneratorError) else GeneratorError(str(error))
            self._models.fail(one, failed)


class TripModels:
    """Every model of a study's round trips, and the log of the steps that they took."""

    def __init__(self, plan: CallPlan, log: StepLog | None = None) -> None:
        """log: of the steps that were taken; where None, beside the plan's ledgers. Raises
        DataError for a damaged log."""
        self.plan = plan
        self.log = StepLog(plan.ledgers.parent, plan.shard) if log is None else log
        self.failed: dict[str, GeneratorError] = {}
        """Steps that failed in this process; they are tried again by the next one."""
        self._members: dict[tuple[Any, bool], TripMember] = {}
        paid = ((one.key, Charge(Decimal(one.usd))) for one in self.log if one.usd)
        plan.budget.restore(SOURCE, paid)
        if plan.shard is None:  # else another process may be waiting for an image
            plan.budget.adopt(SOURCE, lambda call: None)

    def member(self, step: StepKind, value: Any) -> TripMember:
        """Who takes a kind of step; one model for all trips that name it."""
        writes = MADE[step] == "text"
        key = (value if isinstance(value, str) else id(value), writes)
        if key not in self._members:
            self._members[key] = TripMember(value, writes, self)
        return self._members[key]

    def fail(self, one: OpenStep, error: GeneratorError) -> None:
        """Notes a step that failed, and records one that was refused."""
        if error.status == "refused":
            self.log.add(one.key, one.step, error)
        else:
            self.failed[one.key] = error


def prefixed(step: StepKind, identity: Mapping[str, str]) -> dict[str, str]:
    """The identity of one model among those of a trip."""
    return {
        f"{OBSERVED}{step}_{name.removeprefix(OBSERVED)}"
        if name.startswith(OBSERVED)
        else f"{step}_{name}": value
        for name, value in identity.items()
    }


def _request(one: OpenStep) -> CaptionRequest:
    prompt = read_prompt(one.step)
    if one.given.image is not None:
        return CaptionRequest(one.key, prompt.fill().strip(), one.given.image())
    asked = prompt.fill(caption=one.given.text, edit=one.edit)
    return CaptionRequest(one.key, asked.strip(), None)


def _not_written(caption: Caption) -> GeneratorError:
    if caption.status == "refused":
        return GeneratorError(caption.text or "refused", "refused")
    return GeneratorError(caption.text or "it wrote nothing")
