"""The ledger and budget of a run, the callers that share them, and what the run has cost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path

from ..errors import UsageError
from .backends import open_backend
from .backends.replay import ReplayBackend
from .batch import BatchBackend
from .budget import Budget, PriceTable
from .caller import Caller
from .chat import ChatBackend
from .ledger import CallRecord, Ledger
from .spending import spending_file


@dataclass(frozen=True)
class SessionSettings:
    """Where calls are recorded, who answers, and what it may cost."""

    ledger: Path
    """The ledger file; created if it is missing, except in a replay."""
    backend: str = ""
    """Spec of the model; empty in a replay."""
    reviewer: str = ""
    """Spec of a second model that checks the first one's work; if empty, the first does."""
    replay: bool = False
    """Whether only recorded calls are used: no network, no cost, no change to the ledger."""
    max_usd: float | None = None
    """Cap over the whole run, including its recorded calls, US dollars."""
    prices: Path | None = None
    """The user's price table."""
    concurrency: int = 8
    """Calls under way at the same time."""
    retry_failed: bool = False
    """Whether calls whose rejection is recorded are made once more."""
    batch: bool = False
    """Whether calls that don't depend on each other go through the provider's batch interface."""


class Session:
    """Makes the callers of a run."""

    def __init__(self, settings: SessionSettings, ledger: Ledger, budget: Budget) -> None:
        self.settings = settings
        self.ledger = ledger
        self.budget = budget

    def author(self, role: str | None = None) -> Caller:
        """The caller of the model that writes; in a replay, the model that answered `role`."""
        return self._caller(self.settings.backend, role)

    def reviewer(self, role: str) -> Caller:
        """The caller of the model that checks."""
        return self._caller(self.settings.reviewer or self.settings.backend, role)

    def further(self, spec: str) -> Caller:
        """The caller of one more model, unless calls are replayed."""
        return self._caller(spec, None)

    def recorded(self, identity: Mapping[str, str]) -> Caller:
        """The caller of a recorded model, for a replay that knows its models' identities."""
        return self._calling(ReplayBackend(identity))

    def accounts(self) -> list[Account]:
        """Use and cost of the calls in the ledger, by role and model."""
        return accounts(self.ledger.records())

    def _caller(self, spec: str, role: str | None) -> Caller:
        if self.settings.replay:
            return self.recorded(ReplayBackend.of(self.ledger, role).identity())
        backend = open_backend(spec)
        if self.settings.batch and not isinstance(backend, BatchBackend):
            raise UsageError(
                f"{spec}: has no batch interface; leave out --batch", code="unsupported"
            )
        return self._calling(backend)

    def _calling(self, backend: ChatBackend) -> Caller:
        return Caller(
            backend,
            self.ledger,
            self.budget,
            concurrency=self.settings.concurrency,
            batch=self.settings.batch,
            retry_failed=self.settings.retry_failed and not self.settings.replay,
        )


@contextmanager
def open_session(settings: SessionSettings) -> Iterator[Session]:
    """Opens the ledger and counts what it has cost so far.

    Raises UsageError for a missing backend, LedgerError, InUseError, UnpricedError.
    """
    if not settings.replay and not settings.backend:
        raise UsageError(
            "name a --backend, or replay a ledger with --replay", code="missing-option"
        )
    prices = PriceTable.read(settings.prices)
    with Ledger(settings.ledger, read_only=settings.replay) as ledger:
        cap = None if settings.replay or settings.max_usd is None else str(settings.max_usd)
        log = None if settings.replay else spending_file(settings.ledger)
        budget = Budget(prices, None if cap is None else Decimal(cap), log)
        if not settings.replay:
            budget.restore(ledger.path.name, ledger.costs())
            budget.adopt(ledger.path.name, ledger.cost_of)
        yield Session(settings, ledger, budget)


@dataclass(frozen=True)
class Account:
    """Use of one model by one role."""

    role: str
    """Role that asked."""
    model: str
    """`kind:model`."""
    calls: int = 0
    """Paid calls."""
    failed: int = 0
    """Calls that were refused, truncated or rejected by the server."""
    input_tokens: int = 0
    """As far as the server reported them."""
    output_tokens: int = 0
    """As far as the server reported them."""
    usd: Decimal = Decimal(0)
    """Price of the calls that have one."""
    unpriced: int = 0
    """Calls without a known price."""

    def plus(self, record: CallRecord) -> Account:
        """The account with one more call."""
        usage = record.completion.usage
        return replace(
            self,
            calls=self.calls + 1,
            failed=self.failed + (record.completion.outcome != "ok"),
            input_tokens=self.input_tokens + (usage.input_tokens if usage else 0),
            output_tokens=self.output_tokens + (usage.output_tokens if usage else 0),
            usd=self.usd + Decimal(record.usd or 0),
            unpriced=self.unpriced + (record.usd is None),
        )


def accounts(records: Iterable[CallRecord]) -> list[Account]:
    """One account per role and model, sorted."""
    by_model: dict[tuple[str, str], Account] = {}
    for record in records:
        key = (record.role, f"{record.identity['kind']}:{record.identity['model']}")
        by_model[key] = by_model.get(key, Account(*key)).plus(record)
    return [by_model[key] for key in sorted(by_model)]
