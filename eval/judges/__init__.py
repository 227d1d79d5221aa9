"""Whatever answers questions about images: one module an adapter, one line in `JUDGES` each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from PIL.Image import Image

from ...specs import Spec

Task = Literal["order", "arrangement", "actor", "binding", "gate", "yes_no"]
"""What is asked, for judges that measure instead of reading the prompt.

order: which of two subjects is at the left; arrangement: the same where a fact decides;
actor: which subject of an edited picture acts; binding: who does which of two actions;
gate: are two subjects there, apart and side by side; yes_no: any question that is answered so.
"""

FAILURES = ("unparsed", "refused", "error", "missing")
"""What a verdict can be besides a label of its question: an answer that is none of the allowed
ones, a refusal, a judge or image that failed, an image that isn't there. Never scored, never
dropped."""


@dataclass(frozen=True)
class Question:
    """One question about one picture (an edit may show its source first)."""

    id: str
    """Unique in a run: item, seed, probe and name; also the id of the logical call."""
    task: Task
    """What is asked."""
    subjects: tuple[str, ...]
    """Names of the things asked about, in the order of the prompt; empty for a free yes/no."""
    labels: tuple[str, ...]
    """What it means if it is the first subject, the second, or neither; for yes_no yes and no."""
    prompt: str
    """The whole text for a language model, with the answers as they must be written."""
    answers: Mapping[str, str]
    """Answer as it must be written (`"1"`) -> one of `labels`."""
    images: tuple[Image, ...]
    """RGB, the one to judge last."""
    facts: Mapping[str, str] = field(default_factory=dict)
    """What a measuring judge needs besides the subjects: what `first` and `second` do."""


@dataclass(frozen=True)
class Verdict:
    """What a judge made of a question."""

    label: str
    """A label of the question, or one of `FAILURES`."""
    raw: str
    """What the judge said, verbatim; for `error` the message."""
    probabilities: Mapping[str, float] | None = None
    """Label -> probability, summing to 1 over the question's labels, where the backend has them."""
    mass: float | None = None
    """Probability of all allowed answers together in the whole vocabulary, in [0, 1]."""


class Judge(Protocol):
    """Answers questions about images."""

    def judge(self, questions: Sequence[Question]) -> Iterator[tuple[Question, Verdict]]:
        """Every question with its verdict, as soon as it is there, in any order.

        A question that fails has the verdict `error`; nothing is raised for it.
        """
        ...

    def identity(self) -> dict[str, str]:
        """What judged (kind, model, revision, settings); goes into every record."""
        ...


def _pixels(spec: Spec) -> Judge:
    from .pixels import PixelJudge

    return PixelJudge.from_spec(spec)


def _human(spec: Spec) -> Judge:
    from .human import HumanJudge

    return HumanJudge.from_spec(spec)


def _faulty(spec: Spec) -> Judge:
    from .faulty import FaultyJudge

    return FaultyJudge.from_spec(spec)


JUDGES: dict[str, Callable[[Spec], Judge]] = {
    "faulty": _faulty,
    "human": _human,
    "pixels": _pixels,
}


def open_judge(text: str) -> Judge:
    """The judge that a spec such as ``pixels`` names; ValueError for an unknown kind."""
    spec = Spec.parse(text)
    if spec.kind not in JUDGES:
        raise ValueError(f"no judge {spec.kind!r}: choose from {', '.join(sorted(JUDGES))}")
    return JUDGES[spec.kind](spec)
