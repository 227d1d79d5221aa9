"""One cap over everything that a run pays for: its images and all of its judges."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from ...agents.budget import Budget, PriceTable
from ...agents.ledger import Ledger
from ..core import Generator
from ..generators import PaidByImage
from ..generators.paid import PaidGenerator
from ..judges import CallPlan
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

    def plan(self, root: Path) -> CallPlan:
        """The call plan of a run folder, or of another folder with ledgers.

        Everything that its ledgers hold counts under the cap; see `count_images` for the rest.
        """
        cap = None if self.max_usd is None else Decimal(str(self.max_usd))
        budget = Budget(PriceTable.read(self.prices), cap)
        for path in sorted((root / LEDGERS).glob("*.jsonl")):
            with Ledger(path, read_only=True) as ledger:
                budget.restore(ledger.records(), source=str(path))
        return CallPlan(root / LEDGERS, budget, self.concurrency)


def count_images(plan: CallPlan, run: Run) -> None:
    """Counts what the run's images have cost under the cap of its judges too, once."""
    amounts = (Decimal(made.usd) for made in run.attempts() if made.usd)
    plan.budget.restore_amounts(amounts, source=str(run.root))


def capped(generator: Generator, plan: CallPlan, run: Run) -> tuple[Generator, int]:
    """The generator under the run's cap, and how many images it may make at a time."""
    if not isinstance(generator, PaidByImage):
        return generator, 1
    paid = (made.usd for made in run.attempts())
    return PaidGenerator(generator, plan.budget, paid, str(run.root)), plan.concurrency
