"""`faulty`: another judge with known faults put in, to see what they do to a score.

``faulty:pixels?name=0.1&side=0.2`` judges like ``pixels``, but in a tenth of the questions it names
the first subject, and in a fifth it says that the prior holds.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from typing import ClassVar

from ...errors import UsageError
from ...specs import Options, Share, Spec
from ..core import Judge, Question, Verdict
from . import CallPlan, open_judge


class Faults(Options):
    """Shares of questions; at most one fault befalls a question."""

    name: Share = 0
    """Share of questions answered with the subject that is named first."""
    side: Share = 0
    """Share of questions answered according to the prior, whatever the image shows."""
    swap: Share = 0
    """Share of answers in which the two subjects are exchanged."""
    unparsed: Share = 0
    """Share of questions answered with a sentence instead of a label."""
    refuse: Share = 0
    """Share of requests that are refused."""


class FaultyJudge:
    """A judge whose errors are known, because they are set."""

    argument: ClassVar[str] = "JUDGE"
    options: ClassVar[type[Options]] = Faults

    def __init__(self, inner: Judge, faults: Faults) -> None:
        self.inner = inner
        self.faults = faults
        self.takes_clips = bool(getattr(inner, "takes_clips", False))

    @classmethod
    def from_spec(cls, spec: Spec, options: Faults, plan: CallPlan | None = None) -> FaultyJudge:
        """Raises UsageError for shares that add up to more than 1, and what opening the other judge
        raises."""
        if sum(dict(options).values()) > 1:
            problem = "faulty: the shares add up to more than 1"
            raise UsageError(problem, code="out-of-range")
        return cls(open_judge(spec.argument, plan), options)

    def identity(self) -> dict[str, str]:
        inner = {f"inner_{name}": value for name, value in self.inner.identity().items()}
        return {"kind": "faulty", **inner, **self.faults.texts()}

    def judge(self, questions: Iterable[Question]) -> Iterator[tuple[Question, Verdict]]:
        for question, verdict in self.inner.judge(questions):
            yield question, self._spoil(question, verdict)

    def _spoil(self, question: Question, verdict: Verdict) -> Verdict:
        draw = random.Random(f"faulty/{question.id}").random()
        for fault, share in self.faults:
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
