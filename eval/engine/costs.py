"""One cap over everything that a run pays for: its images and all of its judges."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from ...agents.budget import Budget, PriceTable
from ...agents.ledger import Ledger
from ...agents.spending import SPENDING, Charge, is_ledger
from ..core import Generator
from ..generators import PaidByImage
from ..generators.paid import PaidGenerator
from ..judges import CallPlan
from ..methods import Method
from .run import LEDGERS, Run


@dataclass(frozen=True)
class Cost:
    """How paid calls are made."""

    concurrency: int = 8
    """Calls under way at the same time."""
    max_usd: float | None = None
    """Cap on what a run may cost in all, earlier commands included, in US dollars."""
    prices: Path | None = None
    """The user's own price table, see `agents.budget`."""
    retry_failed: bool = False
    """Whether calls whose rejection is recorded are made once more."""

    def plan(self, root: Path, shard: tuple[int, int] | None = None) -> CallPlan:
        """The call plan of a run folder, or of another folder with ledgers.

        Several processes may have plans of one folder at a time: they share one spending log, so
        that the cap holds over all of them together. `shard` is which part, of how many, this one
        works on, from 1. Raises DataError for a damaged ledger or log, UnpricedError under a cap
        where something has no known price.
        """
        cap = None if self.max_usd is None else Decimal(str(self.max_usd))
        ledgers = root / LEDGERS
        budget = Budget(PriceTable.read(self.prices), cap, ledgers / SPENDING)
        for path in sorted(filter(is_ledger, ledgers.glob("*.jsonl"))):
            with Ledger(path, read_only=True) as ledger:
                budget.restore(path.name, ledger.costs())
        return CallPlan(ledgers, budget, self.concurrency, shard, self.retry_failed)


def call_plan(
    cost: Cost | CallPlan | None, root: Path, shard: tuple[int, int] | None = None
) -> AbstractContextManager[CallPlan]:
    """The call plan of one run, or the one that it shares with others, as in a study."""
    return nullcontext(cost) if isinstance(cost, CallPlan) else (cost or Cost()).plan(root, shard)


def count_images(plan: CallPlan, run: Run) -> None:
    """Makes sure that what the run's images have cost counts under the cap, once."""
    paid = (
        (result.case, Charge(Decimal(result.usd))) for result in run.results.every() if result.usd
    )
    plan.budget.restore(_source(plan, run), paid)


def capped(generator: Generator, plan: CallPlan, run: Run) -> tuple[Generator, int]:
    """The generator under the run's cap, and how many images it may make at a time."""
    if isinstance(generator, Method):
        generator.inner, several = capped(generator.inner, plan, run)
        return generator, several
    if isinstance(generator, PaidGenerator):  # of a method that made images of another run before
        generator = generator.inner
    if not isinstance(generator, PaidByImage):
        return generator, 1
    count_images(plan, run)
    if plan.shard is None:  # else another process may be waiting for an image of this run
        plan.budget.adopt(_source(plan, run), lambda case: None)
    return PaidGenerator(generator, plan.budget, _source(plan, run)), plan.concurrency


def _source(plan: CallPlan, run: Run) -> str:
    """The name of a run's images in the spending log; it stays where the folder is moved."""
    root = os.path.relpath(run.root.resolve(), plan.ledgers.parent.resolve())
    return str(Path(root) / "images")
