"""Whatever answers questions about images: one module an adapter, one line in `JUDGES` each."""

from __future__ import annotations

import hashlib
import json
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from ...agents.budget import Budget
from ...agents.caller import Caller, CallSettings
from ...agents.chat import ChatBackend
from ...agents.ledger import Ledger
from ...errors import UsageError
from ...specs import Spec
from ..checkpoints.extras import open_adapter
from ..core import FAILURES, Judge, Question, Verdict
from ..generators.python import python_identity, spec_identity
from ..questions import read_prompt
from ..store.shards import RunShard, shard_log, shard_logs


@dataclass(frozen=True)
class CallPlan:
    """How a judge that is paid by the call makes its calls; verdicts don't depend on it."""

    ledgers: Path
    """Folder of the ledgers, one file a judge: what a killed run has paid is not paid again."""
    budget: Budget
    """What everything of the run may cost together, with what it has cost so far."""
    concurrency: int = 8
    """Calls under way at the same time."""
    shard: RunShard | None = None
    """Which of how many parts of the run this process works on, from 1; its calls have ledgers of
    their own, and those of the others are read."""

    def ledger(self, name: str) -> Ledger:
        """The ledger of a judge, by a name that no other judge has.

        Raises LedgerError for a damaged one, InUseError where another process writes it.
        """
        path = self.ledgers / shard_log(name, self.shard)
        others = [
            other for other in shard_logs(self.ledgers, name) if other != path and other.exists()
        ]
        ledger = Ledger(path, others=others)
        try:
            self.budget.adopt(path.name, ledger.cost_of)
        except BaseException:
            ledger.close()
            raise
        return ledger

    def caller(
        self, backend: ChatBackend, *, prefix: str, identity: Mapping[str, str], holder: object
    ) -> Caller:
        """The caller of a backend, with a ledger named by a prefix and the digest of an identity.

        An outage becomes answers with the status `error`. `holder`: who makes the calls; it has no
        end of its own, so the ledger is free for others when nobody holds it any more. Raises as
        `ledger`.
        """
        digest = hashlib.sha256(json.dumps(dict(identity), sort_keys=True).encode()).hexdigest()
        ledger = self.ledger(f"{prefix}-{digest[:8]}")
        weakref.finalize(holder, ledger.close)
        return Caller(
            backend, ledger, self.budget, CallSettings(self.concurrency, stop_on_outage=False)
        )


def together_option(spec: Spec) -> bool:
    """Whether a judge is shown all frames of a clip at once: ``clips=together``, else one by one.

    Raises UsageError for another value.
    """
    if (text := spec.options.get("clips", "frames")) not in ("frames", "together"):
        raise UsageError(
            f"{spec.kind}: clips is frames or together, not {text!r}", code="bad-option"
        )
    return text == "together"


def together_identity(takes_clips: bool) -> dict[str, str]:
    """What a judge's identity has of it, with the version of the prompt that tells what it sees."""
    return {"clips": f"together {read_prompt('clip').version}"} if takes_clips else {}


@runtime_checkable
class Answering(Protocol):
    """A judge that can be asked beforehand whether it would answer at all."""

    def check(self) -> None:
        """Raises BackendError where its server, key or model can't be used, UnpricedError where a
        cap is set and its price isn't known."""
        ...


class OneByOne(ABC):
    """A judge that looks at one question after the other."""

    @abstractmethod
    def verdict(self, question: Question) -> Verdict:
        """What it says of one question."""

    def judge(self, questions: Iterable[Question]) -> Iterator[tuple[Question, Verdict]]:
        for question in questions:
            yield question, self.verdict(question)


JUDGES = {
    "boxes": f"{__name__}.boxes:BoxJudge",
    "checker": f"{__name__}.checker.judge:CheckerJudge",
    "compbench": f"{__name__}.compbench:CompBenchJudge",
    "faulty": f"{__name__}.faulty:FaultyJudge",
    "geneval": f"{__name__}.geneval:GenEvalJudge",
    "hf-vlm": f"{__name__}.hf_vlm:LocalJudge",
    "hrs": f"{__name__}.hrs:HrsJudge",
    "human": f"{__name__}.human:HumanJudge",
    "pixels": f"{__name__}.pixels:PixelJudge",
    "pse": f"{__name__}.pse:PseJudge",
    "visor": f"{__name__}.visor:VisorJudge",
}
"""Kind of a spec -> ``module:Class``, imported when it is opened."""

RULES = ("checker", "compbench", "geneval", "hrs", "pse", "visor")
"""Judges that are a detector and a rule: they keep detections beside the plan's ledgers."""

PAID = dict.fromkeys(("anthropic", "openai", "scripted"), f"{__name__}.chat:ChatJudge")
"""Judges that are paid by the call: their `from_spec` takes a call plan too."""


def open_judge(text: str, plan: CallPlan | None = None) -> Judge:
    """The judge that a spec names: ``pixels``, ``openai:MODEL``, ``python:mine.models:judge``.

    Raises UsageError for an unknown kind or option, a library that isn't installed, and a judge of
    `PAID` without a plan; BackendError for a missing key.
    """
    spec = Spec.parse(text)
    if spec.kind in PAID and plan is None:
        raise UsageError(
            f"{spec.kind}: a judge that is paid by the call needs a call plan",
            code="missing-option",
        )
    settings = (plan,) if spec.kind in (*PAID, *RULES, "faulty") else ()
    found = open_adapter({**JUDGES, **PAID}, spec, "judge", *settings)
    return as_judge(found, identity=spec_identity(spec))


def as_judge(
    value: Any, plan: CallPlan | None = None, identity: Mapping[str, str] | str = ""
) -> Judge:
    """A judge from anything that can stand for one.

    A spec; an object of the protocol; or a function of a `Question` that gives a label, a
    probability of the first label, or a `Verdict`. `identity` says which version of code that is.
    Raises UsageError for anything else.
    """
    if isinstance(value, str):
        return open_judge(value, plan)
    if isinstance(value, Judge):
        return value
    if callable(value):
        return FunctionJudge(value, identity)
    raise UsageError(
        f"{value!r} is no judge: give a spec, a function of a question, or an object with judge "
        f"and identity",
        code="wrong-type",
    )


class FunctionJudge(OneByOne):
    """Answers with what a function says: a label, a probability of the first label, a `Verdict`."""

    def __init__(self, function: Callable[[Question], Any], identity: Mapping[str, str] | str):
        self._function = function
        self._identity = python_identity(function, identity)

    def identity(self) -> dict[str, str]:
        return dict(self._identity)

    def verdict(self, question: Question) -> Verdict:
        try:
            said = self._function(question)
        except Exception as error:  # the user's own code may raise anything
            return Verdict("error", f"{type(error).__name__}: {error}")
        return _as_verdict(question, said)


def _as_verdict(question: Question, said: Any) -> Verdict:
    """The verdict that a function's answer stands for; `unparsed` for any other value.

    A text is a label or an answer as it must be written; True and False answer a yes-or-no
    question; a number in [0, 1] is the probability of the first label, and the second has the rest.
    """
    if isinstance(said, Verdict):
        known = said.label in question.labels or said.label in FAILURES
        return said if known else Verdict("unparsed", said.label)
    if isinstance(said, bool) and question.task == "yes_no":
        return Verdict("yes" if said else "no", str(said))
    if isinstance(said, str):
        known = said in question.labels or said in FAILURES
        return Verdict(said if known else question.answers.get(said, "unparsed"), said)
    if isinstance(said, Real) and not isinstance(said, bool) and 0 <= float(said) <= 1:
        first, second = question.labels[:2]
        shares = {first: float(said), second: 1 - float(said)}
        return Verdict(first if float(said) >= 0.5 else second, str(said), probabilities=shares)
    return Verdict("unparsed", repr(said))
