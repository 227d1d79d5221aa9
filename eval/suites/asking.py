"""From a suite's statements to a judge's question: counterbalanced, permuted, recorded.

Which subject is called A is drawn per case, and exchanged by the control `swap`. Which digit means
what is drawn per case and probe. A judge that prefers a name, a digit or the first description thus
errs to both sides, and the labels always speak of the image as it was made.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

from PIL import ImageOps
from PIL.Image import Image

from ..core import ORIGINAL, Case, Question, Task, is_mirrored, names_exchanged
from ..prompts import Prompt, read_prompt
from .base import INVALID, YES_NO


class Subject(NamedTuple):
    """One of two things asked about."""

    name: str
    """As the judge is told."""
    look: str
    """How to recognize it."""
    told: str = ""
    """What it does or how it is, where the question is about that."""


@dataclass(frozen=True)
class Alternative:
    """A question between two subjects, in the suite's order, and what each answer means."""

    task: Task
    """What is asked; also the question's name, and that of its prompt file."""
    first: Subject
    second: Subject
    labels: tuple[str, str]
    """What it means for the first and for the second subject."""
    prior: str = ""
    """The one of the labels that the prior would give."""
    statement: str = "{a} is to the left of {b}"
    """What holds of `{a}` and not of `{b}`."""
    axis: Literal["horizontal", "vertical"] = "horizontal"
    """Where it lies, for a judge that measures."""
    values: Mapping[str, str] = field(default_factory=dict)
    """Further placeholders of the prompt."""
    prompt: str = ""
    """The prompt file, where it has another name than the task."""


def ask_which(asked: Alternative, case: Case, probe: str, images: Sequence[Image]) -> Question:
    """Of which of two subjects does the statement hold?

    A mirrored image exchanges the labels where left and right decide (order, arrangement).
    """
    if _b_comes_first(case, probe):
        labels = asked.labels[::-1]
        asked = replace(asked, first=asked.second, second=asked.first, labels=labels)
    if is_mirrored(probe) and asked.task in ("order", "arrangement"):
        prior = next((one for one in asked.labels if asked.prior and one != asked.prior), "")
        asked = replace(asked, labels=asked.labels[::-1], prior=prior)
    texts = (asked.statement.format(a="A", b="B"), asked.statement.format(a="B", b="A"))
    return _question(asked, case, probe, images, texts)


def ask_binding(asked: Alternative, case: Case, probe: str, images: Sequence[Image]) -> Question:
    """Does each subject do its own (first label), or each the other's (second)?

    Which of the two the prompt describes first is drawn per case: else "the first description"
    would always be right (OTS-Bench, Table 16).
    """
    first, second = asked.first, asked.second
    if random.Random(f"{case.id}/description").random() < 0.5:
        asked = replace(
            asked,
            first=first._replace(told=second.told),
            second=second._replace(told=first.told),
            labels=asked.labels[::-1],
        )
    if _b_comes_first(case, probe):
        asked = replace(asked, first=asked.second, second=asked.first)
    texts = ("the edited picture shows (x)", "the edited picture shows (y)")
    return _question(asked, case, probe, images, texts)


def ask_yes_no(case: Case, name: str, prompt: Prompt, question: str, image: Image) -> Question:
    """A free question whose answer is yes or no."""
    labels = tuple(YES_NO.values)
    digits = _digits(case, name, ORIGINAL, 2)
    return Question(
        case=case.id,
        name=name,
        probe=ORIGINAL,
        task="yes_no",
        subjects=(),
        labels=labels,
        prompt=prompt.fill(question=question, answers=_listed(digits, labels)),
        answers=dict(zip(digits, labels, strict=True)),
        images=(image,),
    )


def _question(
    asked: Alternative,
    case: Case,
    probe: str,
    images: Sequence[Image],
    texts: tuple[str, str],
) -> Question:
    a, b = asked.first, asked.second
    digits = _digits(case, asked.task, probe, 3)
    answers = (*asked.labels, INVALID)
    return Question(
        case=case.id,
        name=asked.task,
        probe=probe,
        task=asked.task,
        subjects=(a.name, b.name),
        labels=answers,
        prompt=read_prompt(asked.prompt or asked.task).fill(
            first=a.name,
            first_look=a.look,
            first_told=a.told,
            second=b.name,
            second_look=b.look,
            second_told=b.told,
            answers=_listed(digits, (*texts, "neither of these can be said")),
            neither_number=digits[2],
            **asked.values,
        ),
        answers=dict(zip(digits, answers, strict=True)),
        images=tuple(map(ImageOps.mirror, images)) if is_mirrored(probe) else tuple(images),
        prior=asked.prior,
        facts={"first": a.told, "second": b.told, "axis": asked.axis},
    )


def _b_comes_first(case: Case, probe: str) -> bool:
    return (random.Random(f"{case.id}/names").random() < 0.5) != names_exchanged(probe)


def _digits(case: Case, name: str, probe: str, count: int) -> list[str]:
    """The digit of every answer, in an order that case, question and probe decide."""
    digits = [str(number + 1) for number in range(count)]
    random.Random(f"{case.id}/{name}/{probe}/digits").shuffle(digits)
    return digits


def _listed(digits: Sequence[str], texts: Sequence[str]) -> str:
    """One line an answer, in the order of the digits."""
    return "\n".join(f"{d}: {t}" for d, t in sorted(zip(digits, texts, strict=True)))
