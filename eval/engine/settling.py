"""Attempts that were paid or not, nobody knows: listed for a person, and closed as they say.

The person looks at the provider's bill. Until then the attempts count at their worst case.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path

from ...agents.budget import Budget, PriceTable
from ...agents.ledger import Ledger
from ...agents.spending import SPENDING, Intent, is_ledger, read_usd, spending_file
from ...errors import UsageError
from .run import LEDGERS


@dataclass(frozen=True)
class Settlement:
    """Open attempts of a run, a study, a race, or an author's ledger, and their cost."""

    attempts: tuple[Intent, ...]
    """Attempts without an outcome, oldest first."""
    spent: Decimal
    """Total cost before, with these at their worst case; US dollars."""
    settled: Decimal | None
    """Their joint cost from now on, US dollars; None if they stay open."""
    unpriced: int = 0
    """Paid calls and open attempts that no known price counts."""
    accepted: Mapping[str, Mapping[str, Decimal]] = field(default_factory=dict)
    """Model -> what its units count at from now on instead of before, US dollars."""

    @property
    def worst(self) -> Decimal:
        """Highest cost that they may have had together, US dollars."""
        return sum((attempt.worst for attempt in self.attempts), Decimal(0))


def settle(
    path: Path,
    billed: Decimal | None = None,
    worst: bool = False,
    prices: Path | None = None,
    lower_prices: bool = False,
) -> Settlement:
    """Lists the attempts without an outcome of a folder, or of an author's ledger.

    billed: what all of them cost together, as the provider's bill says; `worst`: they count at
    their worst case for good; `lower_prices`: later calls count at the prices of now. Raises
    UsageError where nothing was ever spent and where both are given, InUseError while another
    process spends here.
    """
    if worst and billed is not None:
        raise UsageError(
            "--billed and --worst are two answers: give one", code="conflicting-options"
        )
    log = _log_of(path)
    if not log.is_file():
        raise UsageError(
            f"{path}: nothing was paid for here: {log} is missing", code="no-such-file"
        )
    ledgers = [path] if path.is_file() else sorted(log.parent.glob("*.jsonl"))
    budget = Budget(PriceTable.read(prices), log=log, alone=True)
    spending = budget.log
    for each in filter(is_ledger, ledgers):
        with Ledger(each) as ledger:
            budget.restore(each.name, ledger.costs())
            budget.adopt(each.name, ledger.cost_of)
    accepted = budget.accept_prices() if lower_prices else {}
    with spending.turn():
        # Raised, as the cap counts them: a server is known to bill more than was asked for.
        attempts = tuple(
            replace(intent, worst=intent.worst * spending.factor(intent.source))
            for _, intent in sorted(spending.open.items())
        )
        unpriced = spending.unpriced + sum(not attempt.is_priced for attempt in attempts)
        settlement = Settlement(attempts, spending.total, billed, unpriced, accepted)
        if worst:
            settlement = replace(settlement, settled=settlement.worst)
        if settlement.settled is not None and attempts:
            spending.settle(settlement.settled)
    spending.finish()
    return settlement


def has_spending(path: Path) -> bool:
    """Whether anything was ever paid for in a folder, or for an author's ledger."""
    return _log_of(path).is_file()


def _log_of(path: Path) -> Path:
    return spending_file(path) if path.is_file() else path / LEDGERS / SPENDING


def read_billed(text: str | None) -> Decimal | None:
    """An amount as a person writes it. Raises UsageError for what is none."""
    try:
        return None if text is None else read_usd(text)
    except ValueError:
        raise UsageError(
            f"--billed {text}: give an amount of 0 or more US dollars", code="not-a-number"
        ) from None
