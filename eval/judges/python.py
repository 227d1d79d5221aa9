"""A judge that is a Python function of a question."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from numbers import Real
from typing import Any

from ..core import FAILURES, Question, Verdict
from ..generators.python import python_identity


class FunctionJudge:
    """Answers with what a function says: a label, a probability of the first label, a `Verdict`."""

    def __init__(self, function: Callable[[Question], Any], identity: Mapping[str, str] | str):
        self._function = function
        self._identity = python_identity(function, identity)

    def identity(self) -> dict[str, str]:
        return dict(self._identity)

    def judge(self, questions: Iterable[Question]) -> Iterator[tuple[Question, Verdict]]:
        for question in questions:
            try:
                said = self._function(question)
            except Exception as error:  # the user's own code may raise anything
                yield question, Verdict("error", f"{type(error).__name__}: {error}")
            else:
                yield question, as_verdict(question, said)


def as_verdict(question: Question, said: Any) -> Verdict:
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
