"""Whatever answers questions about images: one module an adapter, one line in `JUDGES` each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from PIL.Image import Image

from ...specs import Spec
from ..checkpoints.extras import named_extras

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


@dataclass(frozen=True)
class CallPlan:
    """How a judge that is paid by the call makes its calls; verdicts don't depend on it."""

    ledgers: Path
    """Folder of the ledgers, one file a judge: what a killed run has paid is not paid again."""
    concurrency: int = 8
    """Calls under way at the same time."""
    max_usd: float | None = None
    """Cap on what the judge may cost in all, resumed runs included, in US dollars."""
    prices: Path | None = None
    """The user's own price table, see `agents.budget`."""


class Judge(Protocol):
    """Answers questions about images."""

    def judge(self, questions: Iterable[Question]) -> Iterator[tuple[Question, Verdict]]:
        """Every question with its verdict, as soon as it is there, in any order.

        Questions hold their pictures, so they are taken as they are needed. One that fails has the
        verdict `error`; nothing is raised for it. What speaks of the run is raised: BudgetError
        where a cap ends it, LedgerError for a damaged ledger.
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


def _hf_vlm(spec: Spec) -> Judge:
    from .hf_vlm import LocalJudge

    return LocalJudge.from_spec(spec)


def _boxes(spec: Spec) -> Judge:
    from .boxes import BoxJudge

    return BoxJudge.from_spec(spec)


def _chat(spec: Spec, plan: CallPlan) -> Judge:
    from .chat import ChatJudge

    return ChatJudge.from_spec(spec, plan)


JUDGES: dict[str, Callable[[Spec], Judge]] = {
    "boxes": _boxes,
    "faulty": _faulty,
    "hf-vlm": _hf_vlm,
    "human": _human,
    "pixels": _pixels,
}

PAID: dict[str, Callable[[Spec, CallPlan], Judge]] = {
    "anthropic": _chat,
    "openai": _chat,
    "scripted": _chat,
}
"""Judges that are paid by the call."""


def open_judge(text: str, plan: CallPlan | None = None) -> Judge:
    """The judge that a spec such as ``pixels`` or ``openai:MODEL`` names.

    Raises ValueError for an unknown kind or option, a library that isn't installed, and a judge of
    `PAID` without a plan; BackendError for a missing key.
    """
    spec = Spec.parse(text)
    with named_extras(spec.kind):
        if spec.kind in JUDGES:
            return JUDGES[spec.kind](spec)
        if spec.kind in PAID and plan is not None:
            return PAID[spec.kind](spec, plan)
    if spec.kind in PAID:
        raise ValueError(f"{spec.kind}: a judge that is paid by the call needs a call plan")
    kinds = ", ".join(sorted([*JUDGES, *PAID]))
    raise ValueError(f"no judge {spec.kind!r}: choose from {kinds}")
