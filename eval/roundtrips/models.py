"""Models of round trips: opened once for all trips of a study, and used for single steps."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from decimal import Decimal
from typing import Any

from ...agents.spending import Charge
from ...agents.threads import in_threads
from ...errors import CounterpriorError
from ..captioners import as_captioner
from ..core import OBSERVED, GeneratorError
from ..generators import PaidByImage, as_generator
from ..generators.paid import PaidGenerator
from ..judges import Answering, CallPlan
from ..questions import read_prompt
from ..workers.farm import IN_PROCESS, Scale, farm
from .log import FOLDER, StepLog, StepRecord, step_key
from .routes import MADE, RECORDED, StepKind
from .steps import RouteStep, StepInput, StepResult, TakeSteps, draw_step, take_here

PAPER = "paper"
"""Ending of the prompt files with ACON's own instructions (appendix D)."""
CHAT = "chat-image:"
"""Begins the specs of generators that are told in a chat what to do with a text."""
SOURCE = f"{FOLDER}/images"
"""Name of the images of steps in the spending log."""


class RouteModel:
    """A captioner or generator of a study's round trips; opened when it is needed."""

    def __init__(self, value: Any, writes: bool, models: TripModels) -> None:
        """value: a spec, or an object or function that `as_captioner` or `as_generator` takes."""
        self._value = value
        self.writes = writes
        """Whether it writes texts."""
        self._models = models
        self._opened: Any = None
        self._identity: dict[str, str] | None = None

    def prompt(self, step: StepKind) -> str:
        """Name of the prompt file of a step; empty for a generator that gets its text alone."""
        if self._models.by_paper and step == "caption":
            return f"{step}_{PAPER}"
        is_chat = isinstance(self._value, str) and self._value.startswith(CHAT)
        if self._models.by_paper and step == "generate" and is_chat:
            return f"{step}_{PAPER}"
        return step if self.writes else ""

    def identity(self, step: StepKind) -> dict[str, str]:
        """Identity of the model, with the version of the prompt of a step that has one."""
        if self._identity is None:
            self._identity = dict(self.open().identity())
        name = self.prompt(step)
        prompt = {"prompt": read_prompt(name).version} if name else {}
        return {**self._identity, **prompt}

    def open(self) -> Any:
        """Returns the captioner or generator, a paid generator under the cap.

        Raises UsageError for a bad spec, BackendError for a missing key, UnpricedError under a cap.
        """
        plan = self._models.plan
        if self._opened is None and self.writes:
            self._opened = as_captioner(self._value, plan)
        elif self._opened is None:
            generator = as_generator(self._value)
            paid = isinstance(generator, PaidByImage)
            self._opened = PaidGenerator(generator, plan.budget, SOURCE) if paid else generator  # type: ignore[arg-type]
        return self._opened

    def key(self, step: StepKind, step_input: StepInput, edit: str, seed: int) -> str:
        """Key of a step; a text does not depend on the seed.

        What a server says of itself is left out: the server may be down.
        """
        identity = {n: v for n, v in self.identity(step).items() if not n.startswith(OBSERVED)}
        return step_key(step, identity, step_input.digest, edit, 0 if self.writes else seed)

    def take(self, steps: Iterable[RouteStep], scale: Scale = IN_PROCESS) -> Iterator[None]:
        """Takes steps and records each as it is done; a failed one is in `TripModels.failed`.

        A model behind a server is called from this process, any other in the workers of `scale`.
        Raises LoadError, BudgetError and LedgerError, which end the run.
        """
        opened, models = self.open(), self._models
        folder = models.log.folder
        if isinstance(opened, PaidGenerator):
            # Recorded in the thread that made it: it is paid, whatever ends the run meanwhile.
            def draw(step: RouteStep) -> None:
                models.record(step, draw_step(opened, step, folder))

            yield from in_threads(draw, steps, models.plan.concurrency)
            return
        if scale.in_process or isinstance(opened, Answering):
            for step, result in take_here(opened, self.writes, steps, folder):
                models.record(step, result)
                yield
            return
        task = TakeSteps(self._value, self.writes, dict(opened.identity()), folder)
        with closing(farm(task, steps, scale)) as results:
            for step, result in results:
                models.record(step, result)
                yield

    def release(self) -> None:
        """Frees the model; it is opened again when it is needed again."""
        if isinstance(self._value, str):
            self._opened = None
            gc.collect()
            if (torch := sys.modules.get("torch")) is not None and torch.cuda.is_available():
                torch.cuda.empty_cache()


class TripModels:
    """Every model of a study's round trips, and the log of their steps."""

    def __init__(
        self, plan: CallPlan, log: StepLog | None = None, *, by_paper: bool = False
    ) -> None:
        """log: None for the log beside the plan's ledgers. by_paper: whether models get ACON's own
        instructions. Raises DataError for a damaged log."""
        self.plan = plan
        self.by_paper = by_paper
        self.log = StepLog(plan.ledgers.parent, plan.shard) if log is None else log
        self.failed: dict[str, GeneratorError] = {}
        """Errors of steps by key in this process; the next process tries these steps again."""
        self.broken: dict[RouteModel, CounterpriorError] = {}
        """Models that this process can't use any more, with their errors."""
        self._by_value: dict[tuple[Any, bool], RouteModel] = {}
        paid = ((record.key, Charge(Decimal(record.usd))) for record in self.log if record.usd)
        plan.budget.restore(SOURCE, paid)
        if plan.shard is None:  # else another process may be waiting for an image
            plan.budget.adopt(SOURCE, lambda call: None)

    def model(self, step: StepKind, value: Any) -> RouteModel:
        """Model that takes a kind of step; the same for all trips that name it."""
        writes = MADE[step] == "text"
        key = (value if isinstance(value, str) else id(value), writes)
        if key not in self._by_value:
            self._by_value[key] = RouteModel(value, writes, self)
        return self._by_value[key]

    def release(self) -> None:
        """Frees every model, and the ledgers of those that are paid."""
        for model in self._by_value.values():
            model.release()

    def record(self, step: RouteStep, result: StepResult) -> None:
        """Records a result or a refusal; a failure is only remembered."""
        if isinstance(result, StepRecord):
            self.log.add(result)
        elif result.status == "refused":
            name, message = RECORDED[step.step], str(result)
            self.log.add(StepRecord(step.key, name, "refused", message=message, usd=result.usd))
        else:
            self.failed[step.key] = result


def prefixed(step: StepKind, identity: Mapping[str, str]) -> dict[str, str]:
    """Identity of one model among those of a trip: every name with the step's recorded name."""
    prefix = RECORDED[step]
    return {
        f"{OBSERVED}{prefix}_{name.removeprefix(OBSERVED)}"
        if name.startswith(OBSERVED)
        else f"{prefix}_{name}": value
        for name, value in identity.items()
    }
