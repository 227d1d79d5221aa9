"""The providers' batch interfaces: hours slower, and cheaper, for calls that don't depend on each
other (scenes, reviews, questions, verification).

A batch fills the ledger with first attempts. The caller then works as usual: it reads them back and
makes single calls for whatever the batch left open. The name of a batch is recorded before the wait
for it starts, so an interrupted run waits for the batch that it has paid for and sends no other.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol, runtime_checkable

from .budget import Budget, Hold, Spending
from .chat import BackendError, ChatRequest, Completion
from .ledger import DriftError, Ledger, spec_hash

POLL_SECONDS = 30.0
"""Seconds between two looks at a batch."""

MOST = 10_000
"""Calls in one batch; both providers allow more, but also limit its bytes."""


_Calls = Mapping[str, tuple[str, ChatRequest]]
"""Custom id -> call id and request."""


class BatchFailedError(BackendError):
    """The provider rejected a whole batch: nothing was done and nothing is billed."""


@runtime_checkable
class BatchBackend(Protocol):
    """A backend that also takes batches."""

    def submit(self, requests: Mapping[str, ChatRequest]) -> str:
        """Sends requests by custom id and returns the batch's name. Raises BackendError."""
        ...

    def finished(self, batch: str) -> bool:
        """Whether no more results will come. Raises BackendError, BatchFailedError."""
        ...

    def results(self, batch: str) -> Iterator[tuple[str, Completion]]:
        """Custom ids with their answers, in any order; requests without an answer are left out."""
        ...

    def identity(self) -> dict[str, str]: ...


def prefetch(
    backend: BatchBackend,
    ledger: Ledger,
    budget: Budget,
    calls: Iterable[tuple[str, ChatRequest]],
) -> int:
    """Sends the calls that the ledger lacks as batches, records the answers and counts them.

    Costs count at the full price, an upper bound. Raises BackendError, BudgetError, and DriftError
    where a call has changed since it was recorded, or since it was sent.
    """
    identity = backend.identity()
    open_calls = {
        custom_id(name): (name, request)
        for name, request in calls
        if ledger.find(name, identity, request) is None
    }
    sent: set[str] = set()
    for batch, specs in ledger.batches().items():
        if covered := {custom_id(name) for name in specs} & set(open_calls):
            for name, request in (open_calls[c] for c in sorted(covered)):
                # Its answer would be recorded as one to what is asked now.
                if specs[name] not in ("", spec_hash(identity, request)):
                    raise DriftError(
                        f"{ledger.path}: call {name} was sent in batch {batch} with another "
                        f"specification. Undo the change, or start a new ledger and pay again",
                        code="changed-call",
                    )
            sent |= covered
            _collect(backend, batch, ledger, budget, {c: open_calls[c] for c in covered})
    unanswered = [c for c in open_calls if c not in sent]
    for start in range(0, len(unanswered), MOST):
        chunk = {c: open_calls[c] for c in unanswered[start : start + MOST]}
        _send(backend, ledger, budget, chunk)
    return sum(name in ledger for name, _ in open_calls.values())


def _send(backend: BatchBackend, ledger: Ledger, budget: Budget, calls: _Calls) -> None:
    """Sends one batch, if its worst case fits below the cap, and records what it answers."""
    identity, source = backend.identity(), ledger.path.name
    holds: list[Hold] = []
    try:
        for name, request in calls.values():
            holds.append(budget.reserve(identity, request, source, name, batched=True))
    except BaseException:
        budget.release(holds)
        raise
    # From here on it may have been sent: its calls stay counted until it is read back.
    batch = backend.submit({c: request for c, (_, request) in calls.items()})
    ledger.open_batch(batch, {name: spec_hash(identity, r) for name, r in calls.values()})
    _collect(backend, batch, ledger, budget, calls)


def _collect(
    backend: BatchBackend, batch: str, ledger: Ledger, budget: Budget, calls: _Calls
) -> None:
    """Waits for a batch and records its answers to these calls."""
    source = ledger.path.name
    try:
        while not backend.finished(batch):
            _sleep(POLL_SECONDS)
    except BatchFailedError:
        ledger.open_batch(batch, {})  # so that the next run sends its calls again
        sent = budget.sent(source)
        budget.release([sent[name] for name, _ in calls.values() if name in sent])
        raise
    identity = backend.identity()
    sent = budget.sent(source)
    for custom, completion in backend.results(batch):
        name, request = calls.get(custom, ("", None))
        if request is None or name in ledger:
            continue
        # Paid when it was sent; without usage the worst case counts.
        cost = budget.price(identity, request, completion.usage, source)
        ledger.append(
            name, identity, request, completion, None if cost.usd is None else str(cost.usd)
        )
        usd = budget.settle([sent[name]] if name in sent else [], source, cost)
        budget.count(Spending(calls=1, usd=usd, unpriced=int(cost.usd is None)))
    # What a batch that has ended leaves without an answer was not done.
    unanswered = [sent[name] for name, _ in calls.values() if name not in ledger and name in sent]
    budget.release(unanswered)


def custom_id(call_id: str) -> str:
    """The call's id as both providers allow it: 64 hex digits."""
    return hashlib.sha256(call_id.encode()).hexdigest()


def _sleep(seconds: float) -> None:
    time.sleep(seconds)
