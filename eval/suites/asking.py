"""From a suite's statements to a judge's question: counterbalanced, permuted, recorded.

Which subject is called A is drawn per case, and exchanged by the probe `swap`; which digit means
what is drawn per case and probe. A judge that prefers a name, a digit or the first description thus
errs to both sides, and the labels always speak of the picture as it was made.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

from PIL import ImageOps
from PIL.Image import Image

from ..core import Case
from ..judges import Question, Task
from ..prompts import Prompt

INVALID = "invalid"
"""Label of a picture in which none of the statements holds."""


class Subject(NamedTuple):
    """One of two things asked about."""

    name: str
    """As the judge is told."""
    look: str
    """How to recognise it."""
    told: str = ""
    """What it does or how it is, where the question is about that."""


def ask_which(
    case: Case,
    probe: str,
    task: Task,
    prompt: Prompt,
    subjects: tuple[Subject, Subject],
    labels: tuple[str, str],
    statement: str,
    images: Sequence[Image],
    values: Mapping[str, str] | None = None,
    axis: Literal["horizontal", "vertical"] = "horizontal",
) -> Question:
    """Of which of two subjects does a statement hold?

    labels: what it means for the first and for the second subject. statement: of `{a}` and not of
    `{b}`; axis: where it lies, for a judge that measures. The probe `mirror` mirrors all images;
    where left and right decide (order, arrangement), the labels are exchanged with them.
    """
    if _names_exchanged(case, probe):
        subjects, labels = subjects[::-1], labels[::-1]
    if probe == "mirror" and task in ("order", "arrangement"):
        labels = labels[::-1]
    texts = (statement.format(a="A", b="B"), statement.format(a="B", b="A"))
    question = _ask(case, probe, task, prompt, subjects, labels, texts, images, values)
    return replace(question, facts={**question.facts, "axis": axis})


def ask_binding(
    case: Case,
    probe: str,
    prompt: Prompt,
    subjects: tuple[Subject, Subject],
    labels: tuple[str, str],
    images: Sequence[Image],
) -> Question:
    """Does each subject do its own, or each the other's?

    labels: what it means if each does what it is told, and if they are exchanged. Which of the two
    the prompt describes first is drawn per case: else "the first description" would always be
    right (OTS-Bench, Table 16).
    """
    if random.Random(f"{case.id}/description").random() < 0.5:
        first, second = subjects
        subjects = (first._replace(told=second.told), second._replace(told=first.told))
        labels = labels[::-1]
    if _names_exchanged(case, probe):
        subjects = subjects[::-1]
    texts = ("the edited picture shows (x)", "the edited picture shows (y)")
    return _ask(case, probe, "binding", prompt, subjects, labels, texts, images, None)


def ask_yes_no(case: Case, name: str, prompt: Prompt, question: str, image: Image) -> Question:
    """A free question whose answer is yes or no."""
    labels = ("yes", "no")
    digits = _digits(case, name, "original", 2)
    return Question(
        id=f"{case.id}/{name}/original",
        task="yes_no",
        subjects=(),
        labels=labels,
        prompt=prompt.fill(question=question, answers=_listed(digits, labels)),
        answers=dict(zip(digits, labels, strict=True)),
        images=(image,),
    )


def _ask(
    case: Case,
    probe: str,
    task: Task,
    prompt: Prompt,
    subjects: tuple[Subject, Subject],
    labels: tuple[str, str],
    texts: tuple[str, str],
    images: Sequence[Image],
    values: Mapping[str, str] | None,
) -> Question:
    a, b = subjects
    digits = _digits(case, task, probe, 3)
    return Question(
        id=f"{case.id}/{task}/{probe}",
        task=task,
        subjects=(a.name, b.name),
        labels=(*labels, INVALID),
        prompt=prompt.fill(
            first=a.name,
            first_look=a.look,
            first_told=a.told,
            second=b.name,
            second_look=b.look,
            second_told=b.told,
            answers=_listed(digits, (*texts, "neither of these can be said")),
            neither_number=digits[2],
            **(values or {}),
        ),
        answers=dict(zip(digits, (*labels, INVALID), strict=True)),
        images=tuple(ImageOps.mirror(i) for i in images) if probe == "mirror" else tuple(images),
        facts={"first": a.told, "second": b.told},
    )


def _names_exchanged(case: Case, probe: str) -> bool:
    return (random.Random(f"{case.id}/names").random() < 0.5) != (probe == "swap")


def _digits(case: Case, name: str, probe: str, count: int) -> list[str]:
    """The digit of every answer, in an order that case, question and probe decide."""
    digits = [str(number + 1) for number in range(count)]
    random.Random(f"{case.id}/{name}/{probe}/digits").shuffle(digits)
    return digits


def _listed(digits: Sequence[str], texts: Sequence[str]) -> str:
    """One line an answer, in the order of the digits."""
    return "\n".join(f"{d}: {t}" for d, t in sorted(zip(digits, texts, strict=True)))
