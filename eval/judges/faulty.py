"""`faulty`: another judge with known faults put in, to see what they do to a score.

``faulty:pixels?name=0.1&side=0.2`` judges like ``pixels``, but in a tenth of the questions it names
the first subject, and in a fifth it says that the prior holds.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields

from ...errors import UsageError
from ...specs import Spec
from ..core import Judge, Question, Verdict
from . import CallPlan, open_judge


@dataclass(frozen=True)
class Faults:
    """Shares of questions, in [0, 1]; at most one fault befalls a question."""

    name: float = 0
    """Answers with the subject that is named first."""
    side: float = 0
    """Says that the prior holds, whatever the image shows."""
    swap: float = 0
    """Exchanges the two subjects."""
    unparsed: float = 0
    """Answers in prose."""
    refuse: float = 0
    """Declines."""


class FaultyJudge:
    """A judge whose errors are known, because they are set."""

    def __init__(self, inner: Judge, faults: Faults) -> None:
        self.inner = inner
        self.faults = faults
        self.takes_clips = bool(getattr(inner, "takes_clips", False))

    @classmethod
    def from_spec(cls, spec: Spec, plan: CallPlan | None = None) -> FaultyJudge:
        """Raises UsageError for an unknown fault or a share outside [0, 1]."""
        known = [field.name for field in fields(Faults)]
        shares = {}
        for name, text in spec.options.items():
            if name not in known:
                raise UsageError(
                    f"faulty: has no fault {name!r}: choose from {', '.join(known)}",
                    code="unknown-name",
                )
            try:
                shares[name] = float(text)
            except ValueError:
                shares[name] = math.nan
            if not 0 <= shares[name] <= 1:
                raise UsageError(
                    f"faulty: {name}={text} is no share in [0, 1]", code="out-of-range"
                )
        if sum(shares.values()) > 1:
            raise UsageError("faulty: the shares add up to more than 1", code="out-of-range")
        return cls(open_judge(spec.argument, plan), Faults(**shares))

    def identity(self) -> dict[str, str]:
        inner = {f"inner_{name}": value for name, value in self.inner.identity().items()}
        put_in = {name: f"{share:g}" for name, share in vars(self.faults).items()}
        return {"kind": "faulty", **inner, **put_in}

    def judge(self, questions: Iterable[Question]) -> Iterator[tuple[Question, Verdict]]:
        for question, verdict in self.inner.judge(questions):
            yield question, self._spoil(question, verdict)

    def _spoil(self, question: Question, verdict: Verdict) -> Verdict:
        draw = random.Random(f"faulty/{question.id}").random()
        for fault, share in vars(self.faults).items():
            if draw < share:
                return _spoiled(fault, question, verdict)
            draw -= share
        return verdict


def _spoiled(fault: str, question: Question, verdict: Verdict) -> Verdict:
    first, second = question.labels[:2]
    exchanged = {first: second, second: first}.get(verdict.label)
    return {
        "name": Verdict(first, "name bias"),
        "side": Verdict(question.prior, "side bias") if question.prior else verdict,
        "swap": verdict if exchanged is None else Verdict(exchanged, "swapped"),
        "unparsed": Verdict("unparsed", "It is hard to say."),
        "refuse": Verdict("refused", "I can't help with that."),
    }[fault]
