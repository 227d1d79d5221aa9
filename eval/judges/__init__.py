"""Judges answer questions about images: one module an adapter, one line in `JUDGES` each."""

from __future__ import annotations

import hashlib
import json
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from numbers import Real
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

from ...agents.budget import Budget, Spending
from ...agents.caller import Caller
from ...agents.chat import ChatBackend, ChatRequest
from ...agents.ledger import Ledger
from ..checkpoints.registry import Identity, Registry, RegistryEntry, python_identity
from ..core import FAILURES, Judge, Question, Verdict
from ..geometry.metrics import METRICS
from ..questions import read_prompt
from ..store.shards import RunShard, shard_log, shard_logs


@dataclass(frozen=True)
class CallPlan:
    """How a judge that is paid by the call makes its calls; verdicts don't depend on it."""

    ledgers: Path
    """Folder of the ledgers, one file a judge: what a killed run has paid is not paid again."""
    budget: Budget
    """The cap of the whole run, with its spending so far."""
    concurrency: int = 8
    """Calls under way at the same time."""
    shard: RunShard | None = None
    """The shard that this process works on; its calls have ledgers of their own, and those of the
    other shards are read."""
    retry_failed: bool = False
    """Whether calls that a server rejected, and whose rejection is recorded, are made once more."""
    _open: ExitStack = field(default_factory=ExitStack, init=False, repr=False, compare=False)

    def __enter__(self) -> CallPlan:
        return self

    def __exit__(self, *error: object) -> None:
        """Closes the ledgers and lets a person settle, also if an error still refers to their
        judges, as in a notebook."""
        try:
            self._open.close()
        finally:
            self.budget.log.finish()

    def ledger(self, name: str) -> Ledger:
        """The ledger of a judge, by a name that no other judge has.

        Raises LedgerError for a damaged one, InUseError where another process writes it.
        """
        path = self.ledgers / shard_log(name, self.shard)
        other_logs = [log for log in shard_logs(self.ledgers, name) if log != path and log.exists()]
        ledger = Ledger(path, siblings=other_logs)
        try:
            self.budget.adopt(path.name, ledger.cost_of)
        except BaseException:
            ledger.close()
            raise
        self._open.callback(ledger.close)
        return ledger

    def check(self, backend: ChatBackend, trial: ChatRequest) -> None:
        """Makes sure that a backend answers, and that a request fits the cap.

        Raises BackendError, UnpricedError where a cap is set and no price is known, BudgetError.
        """
        self.budget.check(backend.identity(), trial)
        self.budget.count(Spending(retries=backend.check()))

    def caller(
        self, backend: ChatBackend, *, prefix: str, identity: Mapping[str, str], holder: object
    ) -> Caller:
        """The caller of a backend, with a ledger named by a prefix and the digest of an identity.

        An outage becomes answers with the status `error`; a server that rejects model or key ends
        the run. `holder`: who makes the calls. The ledger is free for others when the block of the
        plan ends; without a block, when nobody refers to the holder. Raises as `ledger`.
        """
        digest = hashlib.sha256(json.dumps(dict(identity), sort_keys=True).encode()).hexdigest()
        ledger = self.ledger(f"{prefix}-{digest[:8]}")
        weakref.finalize(holder, ledger.close)
        return Caller(
            backend,
            ledger,
            self.budget,
            concurrency=self.concurrency,
            stop_on_outage=False,
            retry_failed=self.retry_failed,
        )


Clips = Literal["frames", "together"]
"""How a judge is shown the chosen frames of a clip: each alone, or all at once."""


def together_identity(takes_clips: bool) -> dict[str, str]:
    """Entry of an identity with the version of the prompt that describes a clip, or empty."""
    return {"clips": f"together {read_prompt('clip').version}"} if takes_clips else {}


@runtime_checkable
class Answering(Protocol):
    """A judge that can be asked beforehand whether it would answer at all."""

    def check(self) -> None:
        """Raises BackendError where its server, key or model can't be used, UnpricedError where a
        cap is set and its price isn't known."""
        ...


@runtime_checkable
class Prepared(Protocol):
    """A generator that has to know its run and how paid calls are made: a method, a captioner."""

    def prepare(self, folder: Path, plan: CallPlan) -> None:
        """Called before the first image, with the folder of the run. Raises what opening a model
        raises."""
        ...


class OneByOne(ABC):
    """A judge that looks at one question after the other."""

    @abstractmethod
    def verdict(self, question: Question) -> Verdict:
        """Returns the verdict on a question."""

    def judge(self, questions: Iterable[Question]) -> Iterator[tuple[Question, Verdict]]:
        for question in questions:
            yield question, self.verdict(question)


class FunctionJudge(OneByOne):
    """Answers with what a function says: a label, a probability of the first label, a `Verdict`."""

    def __init__(self, function: Callable[[Question], Any], identity: Identity):
        self._function = function
        self._identity = python_identity(function, identity)

    def identity(self) -> dict[str, str]:
        return dict(self._identity)

    def verdict(self, question: Question) -> Verdict:
        try:
            answer = self._function(question)
        except Exception as error:  # the user's own code may raise anything
            return Verdict("error", f"{type(error).__name__}: {error}")
        return _as_verdict(question, answer)


def _as_verdict(question: Question, answer: Any) -> Verdict:
    """The verdict that a function's answer stands for; `unparsed` for any other value.

    A text is a label or an answer as it must be written; True and False answer a yes-or-no
    question; a number in [0, 1] is the probability of the first label, and the second has the rest.
    """
    if isinstance(answer, Verdict):
        is_allowed = answer.label in question.labels or answer.label in FAILURES
        return answer if is_allowed else Verdict("unparsed", answer.label)
    if isinstance(answer, bool) and question.task == "yes_no":
        return Verdict("yes" if answer else "no", str(answer))
    if isinstance(answer, str):
        is_allowed = answer in question.labels or answer in FAILURES
        return Verdict(answer if is_allowed else question.answers.get(answer, "unparsed"), answer)
    if isinstance(answer, Real) and not isinstance(answer, bool) and 0 <= float(answer) <= 1:
        first, second = question.labels[:2]
        shares = {first: float(answer), second: 1 - float(answer)}
        return Verdict(first if float(answer) >= 0.5 else second, str(answer), probabilities=shares)
    return Verdict("unparsed", repr(answer))


_CHAT = RegistryEntry(f"{__name__}.chat:ChatJudge", paid=True, argument="MODEL[@URL]")

JUDGES: Registry[Judge] = Registry(
    "judge",
    {
        "anthropic": _CHAT,
        "boxes": f"{__name__}.boxes:BoxJudge",
        "checker": f"{__name__}.checker.judge:CheckerJudge",
        "faulty": f"{__name__}.faulty:FaultyJudge",
        "hf-vlm": f"{__name__}.hf_vlm:LocalJudge",
        "human": f"{__name__}.human:HumanJudge",
        "openai": _CHAT,
        "organism": f"{__name__}.organism:OrganismJudge",
        "pixels": f"{__name__}.pixels:PixelJudge",
        "scene": f"{__name__}.scene:SceneJudge",
        "scripted": replace(_CHAT, argument="FILE"),
        "systemone": replace(_CHAT, argument="MODEL@URL"),
        **{
            name: RegistryEntry(
                f"{__name__}.by_rule:MetricJudge",
                argument="[DETECTOR]" if metric.detector else "DETECTOR",
            )
            for name, metric in METRICS.items()
        },
    },
    protocol=Judge,
    wrappers={Callable: FunctionJudge},
    accepts="a function of a question that gives a label, a probability of the first label or a "
    "`Verdict`, or an object with judge and identity",
)
"""Each `from_spec` takes a `CallPlan` too, which may be None for a judge that isn't paid."""


def open_judge(text: str, plan: CallPlan | None = None) -> Judge:
    """The judge that a spec names; raises as `Registry.open`."""
    return JUDGES.open(text, plan)


def as_judge(value: Any, plan: CallPlan | None = None, identity: Identity = "") -> Judge:
    """A judge from anything that can stand for one; raises as `Registry.adapt`."""
    return JUDGES.adapt(value, plan, identity=identity)
