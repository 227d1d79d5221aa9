"""From a suite's statements to a judge's question: counterbalanced, permuted, recorded.

Which subject is called A is drawn per case, and exchanged by the control `swap`. Which digit means
what is drawn per case and probe. A judge that prefers a name, a digit or the first description thus
errs to both sides, and the labels always speak of the image as it was made.

Questions by a paper's template (`by_paper`) are fixed instead: A and B, and the digits, are as in
the paper, whatever a judge prefers. `swap` still exchanges A and B.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

from PIL.Image import Image

from ...scenes.scene import mirror_image
from ..core import INVALID, ORIGINAL, Case, Question, Task, is_mirrored, names_exchanged
from . import Prompt, read_prompt


class Subject(NamedTuple):
    """One of the two things of a question."""

    name: str
    """Name for the judge."""
    look: str
    """Look by which it is recognized."""
    description: str = ""
    """Its action or state, if the question is about that."""


class Stated(NamedTuple):
    """Relation of two things that a prompt states."""

    a: str
    relation: str
    """Relation of a to b: a key of `AXES`."""
    b: str
    """What it relates to; of `between` both things, joined by `|`."""

    @property
    def references(self) -> tuple[str, ...]:
        """What the relation refers to: one thing, or the two that a is between."""
        return tuple(self.b.split("|"))

    @property
    def axis(self) -> StatedAxis:
        """Axis of the relation."""
        return AXES[self.relation][0]

    @property
    def order(self) -> tuple[str, str]:
        """Both things in their order on the axis: left, on top or in front first."""
        return (self.a, self.b) if AXES[self.relation][1] else (self.b, self.a)


StatedAxis = Literal[
    "horizontal",
    "vertical",
    "depth",
    "occlusion",
    "falling",
    "rising",
    "distance",
    "enclosure",
    "middle",
]
AXES: Mapping[str, tuple[StatedAxis, bool]] = {
    "left_of": ("horizontal", True),
    "right_of": ("horizontal", False),
    "above": ("vertical", True),
    "below": ("vertical", False),
    "in_front_of": ("depth", True),
    "behind": ("depth", False),
    "hidden_by": ("occlusion", True),
    "upper_left": ("falling", True),
    "lower_right": ("falling", False),
    "lower_left": ("rising", True),
    "upper_right": ("rising", False),
    "near": ("distance", True),
    "far": ("distance", True),
    "inside": ("enclosure", True),
    "surrounding": ("enclosure", False),
    "between": ("middle", True),
}
"""Relation -> its axis, and whether its subject comes first on it; what is hidden or inside comes
first, and at a distance and in the middle nothing does."""
STATEMENTS: Mapping[StatedAxis, str] = {
    "horizontal": "{a} is to the left of {b}",
    "vertical": "{a} is above {b}",
    "depth": "{a} is in front of {b}",
    "occlusion": "{a} is partly hidden by {b}",
    "falling": "{a} is above and to the left of {b}",
    "rising": "{a} is below and to the left of {b}",
    "distance": "A and B are near each other",
    "enclosure": "{a} is inside {b}",
    "middle": "A is between B and C",
}
FAR = "A and B are far from each other"
"""The reverse of the statement about a distance, the same for both orders of the things."""
ELSEWHERE = "A is not between B and C"
"""The reverse of the statement about the middle."""
PROMPTS: Mapping[StatedAxis, str] = {
    "horizontal": "order",
    "vertical": "stack",
    "depth": "depth",
    "occlusion": "occlusion",
    "falling": "placement",
    "rising": "placement",
    "distance": "placement",
    "enclosure": "placement",
    "middle": "between",
}
"""Axis -> prompt file about two things alone in an image."""
AMONG = "among"
"""Prompt file about two of several things."""


@dataclass(frozen=True)
class Alternative:
    """A question between two subjects, in the suite's order, with the meaning of each answer."""

    task: Task
    """Kind of the question; by default also its name and its prompt file."""
    first: Subject
    second: Subject
    labels: tuple[str, str]
    """Labels of the answers "first subject" and "second subject"."""
    prior: str = ""
    """Label that follows from the prior."""
    statement: str = "{a} is to the left of {b}"
    """Statement that is true of one order of the subjects."""
    axis: StatedAxis = "horizontal"
    """Axis of the statement, for a judge that measures."""
    claim: Stated | None = None
    """Relation that the prompt states, for a judge that measures; None if it states none."""
    objects: tuple[str, ...] = ()
    """Everything that the prompt names, for a detector; empty for the two subjects."""
    name: str = ""
    """Name of the question, if it differs from the task."""
    values: Mapping[str, str] = field(default_factory=dict)
    """Further placeholders of the prompt."""
    prompt: str = ""
    """Prompt file, if it differs from the task."""
    by_paper: bool = False
    """Whether it is asked by the paper's template, the file `TASK_paper`."""


def ask_which(
    alternative: Alternative, case: Case, probe: str, images: Sequence[Image]
) -> Question:
    """Asks of which of two subjects the statement is true.

    A mirrored image exchanges the labels if left and right decide (order, arrangement).
    """
    symmetric = alternative.axis == "distance"
    if b_comes_first(case, probe, alternative.by_paper):
        labels = alternative.labels if symmetric else alternative.labels[::-1]
        alternative = replace(
            alternative, first=alternative.second, second=alternative.first, labels=labels
        )
    if is_mirrored(probe) and alternative.task in ("order", "arrangement"):
        prior = next(
            (
                label
                for label in alternative.labels
                if alternative.prior and label != alternative.prior
            ),
            "",
        )
        alternative = replace(
            alternative,
            labels=alternative.labels[::-1],
            prior=prior,
            claim=_mirrored(alternative.claim),
        )
    texts = (alternative.statement.format(a="A", b="B"), alternative.statement.format(a="B", b="A"))
    if symmetric:
        texts = (texts[0], FAR)
    return _question(alternative, case, probe, images, texts)


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
    """Asks whether the stated relation is true (`holds`), or its reverse (`opposite`).

    looks: thing -> its look, by default its name. objects: everything that the prompt names, if
    more than two. Empty if the probe does not apply: a mirror changes nothing above, below and in
    depth.
    """
    if is_mirrored(probe) and claim.axis != "horizontal":
        return []
    if claim.axis == "middle":
        return [_ask_between(claim, case, probe, images, objects, name)]
    first, second = (Subject(thing, (looks or {}).get(thing, thing)) for thing in claim.order)
    alternative = Alternative(
        "order",
        first,
        second,
        ("opposite", "holds") if claim.relation == "far" else ("holds", "opposite"),
        prompt=AMONG if len(objects) > 2 else PROMPTS[claim.axis],
        statement=STATEMENTS[claim.axis],
        axis=claim.axis,
        claim=claim,
        objects=objects,
        name=name,
    )
    return [ask_which(alternative, case, probe, images)]


def _ask_between(
    claim: Stated,
    case: Case,
    probe: str,
    images: Sequence[Image],
    objects: tuple[str, ...],
    name: str,
) -> Question:
    """Asks whether a thing is between two others (`holds`), or elsewhere (`opposite`).

    Which of the two is called B is drawn per case.
    """
    second, third = claim.references
    if b_comes_first(case, probe):
        second, third = third, second
    among = Alternative(
        "order",
        Subject(claim.a, claim.a),
        Subject(claim.b, second),
        ("holds", "opposite"),
        prompt=PROMPTS[claim.axis],
        axis=claim.axis,
        claim=claim,
        objects=objects or (claim.a, *claim.references),
        name=name,
        values={"third": third},
    )
    return _question(among, case, probe, images, (STATEMENTS["middle"], ELSEWHERE))


def _mirrored(claim: Stated | None) -> Stated | None:
    """Returns a claim as it is in the mirror image."""
    exchanged = {"left_of": "right_of", "right_of": "left_of"}
    return claim and claim._replace(relation=exchanged.get(claim.relation, claim.relation))


def ask_binding(
    alternative: Alternative, case: Case, probe: str, images: Sequence[Image]
) -> Question:
    """Asks whether each subject does its own action (first label), or the other's (second).

    The order of both descriptions is drawn per case: else "the first description" would always be
    right (OTS-Bench, Table 16).
    """
    first, second = alternative.first, alternative.second
    if not alternative.by_paper and random.Random(f"{case.id}/description").random() < 0.5:
        alternative = replace(
            alternative,
            first=first._replace(description=second.description),
            second=second._replace(description=first.description),
            labels=alternative.labels[::-1],
        )
    if b_comes_first(case, probe, alternative.by_paper):
        alternative = replace(alternative, first=alternative.second, second=alternative.first)
    texts = ("the edited picture shows (x)", "the edited picture shows (y)")
    return _question(alternative, case, probe, images, texts)


def ask_together(frames: Sequence[Question]) -> Question:
    """Merges the same question about each frame of a clip, in order of time, into one about the
    clip: a source comes first, then all frames."""
    first = frames[0]
    images = (*first.images[:-1], *(question.images[-1] for question in frames))
    preface = read_prompt("clip").fill(count=str(len(frames)))
    scale = f"{preface}\n{first.scale}" if first.scale else ""
    prompt = f"{preface}\n{first.prompt}"
    return replace(first, prompt=prompt, scale=scale, images=images, frame=None, digest="")


def ask_yes_no(
    case: Case,
    name: str,
    prompt: Prompt,
    question: str,
    image: Image | None,
    probe: str = ORIGINAL,
    facts: Mapping[str, str] | None = None,
) -> Question:
    """Asks a free yes/no question, or how far it is so; `swap` exchanges the digits of the answers.

    image: None if a text is judged. facts: for a judge that measures.
    """
    labels = ("yes", "no")
    digits = _digits(case, name, ORIGINAL, 2)
    if names_exchanged(probe):
        digits = digits[::-1]
    if "$answers" not in prompt.text:  # the question alone, as in ACON: answered in words
        digits = ["Yes", "No"]
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
        facts=facts or {},
        scale=prompt.scaled.fill(question=question),
    )


def ask_mention(
    case: Case, subjects: tuple[str, str], labels: Mapping[str, str], probe: str = ORIGINAL
) -> Question:
    """Asks which of two things a text names first; `swap` exchanges A and B.

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
    alternative: Alternative,
    case: Case,
    probe: str,
    images: Sequence[Image],
    texts: tuple[str, str],
) -> Question:
    a, b = alternative.first, alternative.second
    name = alternative.name or alternative.task
    digits = (
        _paper_digits(alternative.task, probe)
        if alternative.by_paper
        else _digits(case, name, probe, 3)
    )
    template = alternative.prompt or alternative.task
    answers = (*alternative.labels, INVALID)
    facts = {"first": a.description, "second": b.description, "axis": alternative.axis}
    if alternative.claim is not None:
        facts |= alternative.claim._asdict()
    if alternative.objects:
        facts["objects"] = "|".join(alternative.objects)
    return Question(
        case=case.id,
        name=name,
        probe=probe,
        task=alternative.task,
        subjects=(a.name, b.name),
        labels=answers,
        prompt=read_prompt(f"{template}_paper" if alternative.by_paper else template).fill(
            first=a.name,
            first_look=a.look,
            first_told=a.description,
            second=b.name,
            second_look=b.look,
            second_told=b.description,
            answers=_listed(digits, (*texts, "neither of these can be said")),
            neither_number=digits[2],
            **alternative.values,
        ),
        answers=dict(zip(digits, answers, strict=True)),
        images=tuple(map(mirror_image, images)) if is_mirrored(probe) else tuple(images),
        prior=alternative.prior,
        facts=facts,
    )


def b_comes_first(case: Case, probe: str = ORIGINAL, by_paper: bool = False) -> bool:
    """Whether a question about a case names the suite's second subject first."""
    drawn = not by_paper and random.Random(f"{case.id}/names").random() < 0.5
    return drawn != names_exchanged(probe)


def _paper_digits(task: Task, probe: str) -> list[str]:
    """The digit of every answer in the paper's template: that of a binding has `reversed` first,
    that of an arrangement says which thing belongs on which side, whatever it is called."""
    second_first = task == "binding" or (task == "arrangement" and names_exchanged(probe))
    return ["2", "1", "3"] if second_first else ["1", "2", "3"]


def _digits(case: Case, name: str, probe: str, count: int) -> list[str]:
    """The digit of every answer, in an order that case, question and probe decide."""
    digits = [str(number + 1) for number in range(count)]
    random.Random(f"{case.id}/{name}/{probe}/digits").shuffle(digits)
    return digits


def _listed(digits: Sequence[str], texts: Sequence[str]) -> str:
    """One line an answer, in the order of the digits."""
    return "\n".join(f"{d}: {t}" for d, t in sorted(zip(digits, texts, strict=True)))
