"""Calls that are accounted for: ledger first, then budget, then backend, then validation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Generic, Literal, TypeVar

from ..errors import UsageError
from ..progress import Progress, silent
from .batch import BatchBackend, prefetch
from .budget import Budget, Hold, Spending
from .chat import BackendError, ChatBackend, ChatRequest, Completion, UnusableModelError
from .ledger import Ledger
from .threads import in_threads

T = TypeVar("T")
K = TypeVar("K")

ATTEMPTS = 2
"""If the validator rejects an answer, the call is repeated once with the validator's message."""

QUOTED = 4000
"""Characters of a rejected answer that the second attempt quotes."""

Status = Literal["ok", "invalid", "refused", "truncated", "error"]
"""`invalid`: the validator rejected both attempts; the others as the last attempt ended."""

COUNTED: dict[Status, Spending] = {
    "ok": Spending(),
    "invalid": Spending(invalid=1),
    "truncated": Spending(invalid=1),
    "refused": Spending(refused=1),
    "error": Spending(errors=1),
}
"""How an answer counts in the summary of a run."""


@dataclass(frozen=True)
class Call(Generic[T]):
    """A call to make."""

    id: str
    """Logical id, unique in its ledger; the attempt is appended to it."""
    request: ChatRequest
    """The request."""
    validate: Callable[[str], T]
    """Turns the answer's text into a value, or raises ValueError saying what is wrong with it."""


@dataclass(frozen=True)
class Answer(Generic[T]):
    """The result of a call."""

    status: Status
    """Whether there is a value, and otherwise why not."""
    value: T | None
    """Value returned by the validator; None unless `ok`."""
    completion: Completion | None
    """The last attempt; None if the server could not be reached."""
    calls: tuple[str, ...]
    """Ledger ids of all attempts."""
    problem: str = ""
    """Why it isn't `ok`."""


class Caller:
    """One model with its ledger and budget; safe to use from threads."""

    def __init__(
        self,
        backend: ChatBackend,
        ledger: Ledger,
        budget: Budget,
        *,
        concurrency: int = 8,
        stop_on_outage: bool = True,
        batch: bool = False,
        retry_failed: bool = False,
    ) -> None:
        """Takes options that change no result.

        concurrency: calls under way at the same time. stop_on_outage: whether a server that can't
        be reached ends the run; if not, its calls become answers with status `error`, which the
        ledger does not hold, so the next run makes them again. One that rejects model or key ends
        it in any case. batch: whether `call_many` sends first attempts through the provider's batch
        interface. retry_failed: whether calls that are recorded as an `error` are made once more.
        """
        self.backend = backend
        self.ledger = ledger
        self.budget = budget
        self.concurrency = concurrency
        self.stop_on_outage = stop_on_outage
        self.batch = batch
        self.retry_failed = retry_failed
        self._retried: set[str] = set()
        self.identity = backend.identity()
        self.source = ledger.path.name

    @property
    def author(self) -> str:
        """`kind:model`, as rows name their author."""
        return f"{self.identity['kind']}:{self.identity['model']}"

    def call(self, call_id: str, request: ChatRequest, validate: Callable[[str], T]) -> Answer[T]:
        """The validated answer; the call is repeated once if the validator rejects the first.

        Raises BackendError, BudgetError and LedgerError; all else is a status of the answer.
        """
        answer = self._answer(call_id, request, validate)
        self.budget.count(COUNTED[answer.status])
        return answer

    def _answer(
        self, call_id: str, request: ChatRequest, validate: Callable[[str], T]
    ) -> Answer[T]:
        calls: list[str] = []
        attempted = request
        for attempt in range(ATTEMPTS):
            calls.append(f"{call_id}/attempt{attempt}")
            try:
                completion = self._complete(calls[-1], attempted)
            except BackendError as error:
                if self.stop_on_outage or isinstance(error, UnusableModelError):
                    raise
                return Answer("error", None, None, tuple(calls), str(error))
            outcome = completion.outcome
            if outcome != "ok" and not (outcome == "truncated" and request.may_be_cut):
                return Answer(outcome, None, completion, tuple(calls), completion.text[:QUOTED])
            try:
                return Answer("ok", validate(completion.text), completion, tuple(calls))
            except (ValueError, OverflowError, RecursionError) as error:
                problem = str(error)
            attempted = again(request, completion.text, problem)
        return Answer("invalid", None, completion, tuple(calls), problem)

    def call_many(
        self,
        calls: Iterable[Call[T]],
        stage: str = "calls",
        progress: Progress = silent,
    ) -> list[Answer[T]]:
        """The answers in the order of the calls, `concurrency` of them under way at a time.

        If one raises, no further call starts, those under way end and are recorded, and the first
        error is raised.
        """
        waiting = list(calls)
        _unique(waiting)
        if self.batch and isinstance(self.backend, BatchBackend):
            first = [(f"{call.id}/attempt0", call.request) for call in waiting]
            prefetch(self.backend, self.ledger, self.budget, first)
        answers: dict[int, Answer[T]] = {}
        for place, call in enumerate(waiting):
            if f"{call.id}/attempt0" in self.ledger:  # threads would only slow a replay down
                answers[place] = self.call(call.id, call.request, call.validate)
        progress(stage, len(answers), len(waiting))
        new = ((place, call) for place, call in enumerate(waiting) if place not in answers)
        for place, answer in self.stream(new):
            answers[place] = answer
            progress(stage, len(answers), len(waiting))
        return [answers[place] for place in range(len(waiting))]

    def stream(self, calls: Iterable[tuple[K, Call[T]]]) -> Iterator[tuple[K, Answer[T]]]:
        """Each call's key with its answer, as soon as it is there, in any order.

        Calls are taken as they are needed, so there may be more than fit into memory. If one
        raises, no further call starts, and the error is raised when those under way have ended.
        """

        def answer(keyed: tuple[K, Call[T]]) -> tuple[K, Answer[T]]:
            key, call = keyed
            return key, self.call(call.id, call.request, call.validate)

        return in_threads(answer, calls, self.concurrency)

    def _complete(self, call_id: str, request: ChatRequest) -> Completion:
        recorded = self.ledger.find(call_id, self.identity, request)
        if recorded is not None and not self._is_retried(call_id, recorded.completion):
            self.budget.count(Spending(replayed=1))
            return recorded.completion
        holds: list[Hold] = []
        name = self.ledger.next_name(call_id)

        def reserve() -> None:
            # Also before each attempt that follows a lost one, which may be billed as well.
            self.budget.lose(holds)
            hold = self.budget.reserve(self.identity, request, self.source, name)
            holds.append(hold)

        reserve()
        try:
            completion = self.backend.complete(request, reserve)
            cost = self.budget.price(self.identity, request, completion.usage, self.source)
            price = None if cost.usd is None else str(cost.usd)
            self.ledger.append(call_id, self.identity, request, completion, price)
        except BaseException as error:
            self._give_up(holds, error)
            raise
        *lost, answered = holds
        self.budget.lose(lost)
        usd = self.budget.settle([answered], self.source, cost)
        self._count(lost, usd, calls=1, unpriced=int(cost.usd is None))
        return completion

    def _is_retried(self, call_id: str, completion: Completion) -> bool:
        """Whether a recorded call is made once more, in this run for the first time."""
        if not self.retry_failed or completion.outcome != "error" or call_id in self._retried:
            return False
        self._retried.add(call_id)
        return True

    def _give_up(self, holds: Sequence[Hold], error: BaseException) -> None:
        """Leaves what may have been billed open, and frees the rest."""
        lost = len(holds)
        if isinstance(error, BackendError):
            lost = error.lost_attempts
        elif isinstance(error, UsageError):  # never sent
            lost = 0
        self.budget.lose(holds[:lost])
        self.budget.release(holds[lost:])
        self._count(holds[:lost], Decimal(0), calls=0)

    def _count(self, lost: Sequence[Hold], usd: Decimal, calls: int, unpriced: int = 0) -> None:
        usd = sum((hold.usd for hold in lost), usd)
        self.budget.count(Spending(calls=calls, retries=len(lost), usd=usd, unpriced=unpriced))


def again(request: ChatRequest, answer: str, problem: str) -> ChatRequest:
    """The request, with the rejected answer and what is wrong with it."""
    quoted = answer[:QUOTED].encode("utf-8", "replace").decode()
    message = (
        f"Your last answer was:\n<answer>\n{quoted}\n</answer>\n"
        f"It was rejected: {problem[:QUOTED]}\nAnswer the same request again, with that mended."
    )
    return replace(request, user=(*request.user, message))


def _unique(calls: Sequence[Call[T]]) -> None:
    ids: set[str] = set()
    for call in calls:
        if call.id in ids:
            raise ValueError(f"two calls have the id {call.id}")
        ids.add(call.id)
