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

from ..core import INVALID, ORIGINAL, Case, Question, Task, is_mirrored, names_exchanged
from . import Prompt, read_prompt


class Subject(NamedTuple):
    """One of two things asked about."""

    name: str
    """As the judge is told."""
    look: str
    """How to recognize it."""
    told: str = ""
    """What it does or how it is, where the question is about that."""


class Stated(NamedTuple):
    """What a prompt states of two things."""

    a: str
    relation: str
    """What a is of b: a key of `AXES`."""
    b: str

    @property
    def axis(self) -> StatedAxis:
        """Where the relation lies."""
        return AXES[self.relation][0]

    @property
    def order(self) -> tuple[str, str]:
        """Both things, the one first that comes first on the axis: left, on top, in front."""
        return (self.a, self.b) if AXES[self.relation][1] else (self.b, self.a)


StatedAxis = Literal["horizontal", "vertical", "depth", "occlusion"]
AXES: Mapping[str, tuple[StatedAxis, bool]] = {
    "left_of": ("horizontal", True),
    "right_of": ("horizontal", False),
    "above": ("vertical", True),
    "below": ("vertical", False),
    "in_front_of": ("depth", True),
    "behind": ("depth", False),
    "hidden_by": ("occlusion", True),
}
"""Relation -> its axis, and whether its subject comes first on it; what is hidden comes first."""
STATEMENTS: Mapping[StatedAxis, str] = {
    "horizontal": "{a} is to the left of {b}",
    "vertical": "{a} is above {b}",
    "depth": "{a} is in front of {b}",
    "occlusion": "{a} is partly hidden by {b}",
}
PROMPTS: Mapping[StatedAxis, str] = {
    "horizontal": "order",
    "vertical": "stack",
    "depth": "depth",
    "occlusion": "occlusion",
}
"""The prompt file about two things alone in an image."""
AMONG = "among"
"""The prompt file about two of several things."""


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
    axis: StatedAxis = "horizontal"
    """Where it lies, for a judge that measures."""
    claim: Stated | None = None
    """What the prompt states, for a judge that measures; None where it states nothing."""
    objects: tuple[str, ...] = ()
    """Everything that the prompt names, for a detector; empty for the two subjects."""
    name: str = ""
    """Of the question, where it is not that of the task."""
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
        asked = replace(asked, labels=asked.labels[::-1], prior=prior, claim=_mirrored(asked.claim))
    texts = (asked.statement.format(a="A", b="B"), asked.statement.format(a="B", b="A"))
    return _question(asked, case, probe, images, texts)


def ask_stated(
    claim: Stated,
    case: Case,
    probe: str,
    images: Sequence[Image],
    *,
    looks: Mapping[str, str] | None = None,
    objects: tuple[str, ...] = (),
    name: str = "",
) -> list[Question]:
    """Does what a prompt states hold (`holds`), or its reverse (`opposite`)?

    looks: how to recognize each thing; else by its name. objects: everything that the prompt
    names, where it is more than two. No question where the probe does not apply: a mirror changes
    nothing above, below and in depth.
    """
    if is_mirrored(probe) and claim.axis != "horizontal":
        return []
    first, second = (Subject(one, (looks or {}).get(one, one)) for one in claim.order)
    asked = Alternative(
        "order",
        first,
        second,
        ("holds", "opposite"),
        prompt=AMONG if len(objects) > 2 else PROMPTS[claim.axis],
        statement=STATEMENTS[claim.axis],
        axis=claim.axis,
        claim=claim,
        objects=objects,
        name=name,
    )
    return [ask_which(asked, case, probe, images)]


def _mirrored(claim: Stated | None) -> Stated | None:
    """What a claim is in the mirror image."""
    exchanged = {"left_of": "right_of", "right_of": "left_of"}
    return claim and claim._replace(relation=exchanged.get(claim.relation, claim.relation))


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


def ask_together(frames: Sequence[Question]) -> Question:
    """One question about a clip as a whole, from the same one about each of its frames in the order
    of time: a source comes first, then all frames."""
    first = frames[0]
    shown = (*first.images[:-1], *(question.images[-1] for question in frames))
    preface = read_prompt("clip").fill(count=str(len(frames)))
    return replace(first, prompt=f"{preface}\n{first.prompt}", images=shown, frame=None, digest="")


def ask_yes_no(
    case: Case,
    name: str,
    prompt: Prompt,
    question: str,
    image: Image | None,
    probe: str = ORIGINAL,
) -> Question:
    """A free question whose answer is yes or no; `swap` exchanges the digits of the answers.

    image: None where a text is judged.
    """
    labels = ("yes", "no")
    digits = _digits(case, name, ORIGINAL, 2)
    if names_exchanged(probe):
        digits = digits[::-1]
    return Question(
        case=case.id,
        name=name,
        probe=probe,
        task="yes_no",
        subjects=(),
        labels=labels,
        prompt=prompt.fill(question=question, answers=_listed(digits, labels)),
        answers=dict(zip(digits, labels, strict=True)),
        images=() if image is None else (image,),
    )


def ask_mention(
    case: Case, subjects: tuple[str, str], labels: Mapping[str, str], probe: str = ORIGINAL
) -> Question:
    """Which of two things a text names first; `swap` exchanges A and B.

    labels: label -> what it means, where `{a}` and `{b}` are the first and second subject.
    """
    exchanged = names_exchanged(probe)
    a, b = ("B", "A") if exchanged else ("A", "B")
    first, second = subjects[::-1] if exchanged else subjects
    digits = _digits(case, "mention", probe, len(labels))
    texts = [meaning.format(a=a, b=b) for meaning in labels.values()]
    return Question(
        case=case.id,
        name="mention",
        probe=probe,
        task="mention",
        subjects=subjects,
        labels=tuple(labels),
        prompt=read_prompt("mention").fill(a=first, b=second, answers=_listed(digits, texts)),
        answers=dict(zip(digits, labels, strict=True)),
        images=(),
    )


def _question(
    asked: Alternative,
    case: Case,
    probe: str,
    images: Sequence[Image],
    texts: tuple[str, str],
) -> Question:
    a, b = asked.first, asked.second
    name = asked.name or asked.task
    digits = _digits(case, name, probe, 3)
    answers = (*asked.labels, INVALID)
    facts = {"first": a.told, "second": b.told, "axis": asked.axis}
    if asked.claim is not None:
        facts |= asked.claim._asdict()
    if asked.objects:
        facts["objects"] = "|".join(asked.objects)
    return Question(
        case=case.id,
        name=name,
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
        facts=facts,
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
