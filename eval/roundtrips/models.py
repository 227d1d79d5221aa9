"""The models of round trips: opened once for all trips of a study, and asked for single steps."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
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
from .log import FOLDER, StepLog, TakenStep, step_key
from .routes import MADE, StepKind
from .steps import RouteStep, StepInput, StepResult, TakeSteps, draw_step, take_here

SOURCE = f"{FOLDER}/images"
"""Name of the images of steps in the spending log."""


@dataclass(frozen=True)
class OpenStep(RouteStep):
    """A step that can be taken now, and who takes it."""

    model: RouteModel

    @property
    def work(self) -> RouteStep:
        """For a worker, who has a model of its own."""
        return RouteStep(self.key, self.step, self.step_input, self.edit, self.case)


class RouteModel:
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

    def key(self, step: StepKind, step_input: StepInput, edit: str, seed: int) -> str:
        """Of a step; a text does not depend on the seed. What a server says of itself is no part:
        it may be down."""
        known = {n: v for n, v in self.identity(step).items() if not n.startswith(OBSERVED)}
        return step_key(step, known, step_input.digest, edit, 0 if self.writes else seed)

    def take(self, steps: Iterable[RouteStep], scale: Scale = IN_PROCESS) -> Iterator[None]:
        """Takes steps and records each as it is done; one that failed is in `TripModels.failed`.

        A model behind a server is asked from here, any other one in the workers of `scale`. Raises
        LoadError, BudgetError and LedgerError, which end the run.
        """
        opened, models = self.open(), self._models
        folder = models.log.folder
        if isinstance(opened, PaidGenerator):
            # Recorded by who made it: it is paid, whatever ends the run meanwhile.
            def draw(one: RouteStep) -> None:
                models.keep(one, draw_step(opened, one, folder))

            yield from in_threads(draw, steps, models.plan.concurrency)
            return
        if scale.in_process or isinstance(opened, Answering):
            for one, result in take_here(opened, self.writes, steps, folder):
                models.keep(one, result)
                yield
            return
        task = TakeSteps(self._value, self.writes, dict(opened.identity()), folder)
        work = (one.work if isinstance(one, OpenStep) else one for one in steps)
        with closing(farm(task, work, scale)) as found:
            for one, result in found:
                models.keep(one, result)
                yield

    def release(self) -> None:
        """Frees the model; it is opened again where it is needed again."""
        if isinstance(self._value, str):
            self._opened = None
            gc.collect()
            if (torch := sys.modules.get("torch")) is not None and torch.cuda.is_available():
                torch.cuda.empty_cache()


class TripModels:
    """Every model of a study's round trips, and the log of the steps that they took."""

    def __init__(self, plan: CallPlan, log: StepLog | None = None) -> None:
        """log: of the steps that were taken; where None, beside the plan's ledgers. Raises
        DataError for a damaged log."""
        self.plan = plan
        self.log = StepLog(plan.ledgers.parent, plan.shard) if log is None else log
        self.failed: dict[str, GeneratorError] = {}
        """Steps that failed in this process; they are tried again by the next one."""
        self.broken: dict[RouteModel, CounterpriorError] = {}
        """Models that this process can't use any more, and why."""
        self._by_value: dict[tuple[Any, bool], RouteModel] = {}
        paid = ((one.key, Charge(Decimal(one.usd))) for one in self.log if one.usd)
        plan.budget.restore(SOURCE, paid)
        if plan.shard is None:  # else another process may be waiting for an image
            plan.budget.adopt(SOURCE, lambda call: None)

    def model(self, step: StepKind, value: Any) -> RouteModel:
        """Who takes a kind of step; one model for all trips that name it."""
        writes = MADE[step] == "text"
        key = (value if isinstance(value, str) else id(value), writes)
        if key not in self._by_value:
            self._by_value[key] = RouteModel(value, writes, self)
        return self._by_value[key]

    def release(self) -> None:
        """Frees every model, and the ledgers of those that are paid."""
        for model in self._by_value.values():
            model.release()

    def keep(self, one: RouteStep, result: StepResult) -> None:
        """Records what became of a step, and notes one that failed."""
        if isinstance(result, TakenStep):
            self.log.add(result)
        elif result.status == "refused":
            refused = TakenStep(one.key, one.step, "refused", message=str(result), usd=result.usd)
            self.log.add(refused)
        else:
            self.failed[one.key] = result


def prefixed(step: StepKind, identity: Mapping[str, str]) -> dict[str, str]:
    """The identity of one model among those of a trip."""
    return {
        f"{OBSERVED}{step}_{name.removeprefix(OBSERVED)}"
        if name.startswith(OBSERVED)
        else f"{step}_{name}": value
        for name, value in identity.items()
    }
