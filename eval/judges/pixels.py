"""`pixels`: a judge that measures rendered images.

It sees the pixels and the question and knows the atlas, but never an image's metadata. With it the
whole scoring chain runs offline, on images whose truth is known.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...scenes.language import entity_of, is_passive, mentions
from ...scenes.matching import OF_SEVERAL, SCALES, SMALL, UNLIKE, Match, SearchedImage
from ...scenes.poses import find_pose
from ...scenes.sprites import atlas_digest, clothes
from ..core import Question, Verdict
from . import OneByOne

FOUND = 0.6
"""Least correlation of a figure that counts as there in an image too small for a closer look: 97 %
of 300 posed figures reach it, as do 5 % of absent ones, which look like one that is there."""
PERSON_FOUND = 0.65
"""The same of a person, searched for in one skin tone of five: with it, the answers about 562 drawn
pairs, a fifth of them with a fault, are right as often as when all people had one tone."""
SURE = 0.75
"""Correlation of a search that needs no closer look."""
SEEN = 0.62
"""Least correlation of a closer look at a figure that counts as there, at which it stops: of 40
things that a search had missed, 38 reach it, as do none of 54 absent ones that it had not found."""
PERSON_SEEN = 0.78
"""The same of a person: people are alike, so that of 30 absent ones the best reached 0.70."""
MARGIN = 0.10
"""Least distance of centers at which one is left of the other, in widths (SpatialBench)."""
SAME_PLACE = 0.35
"""Overlap, in [0, 1], above which two matches are one figure."""
CHANGED = 0.0025
"""Least mean difference of colors, in [0, 1], of a figure that an edit changed."""
UNDECIDED = 0.02
"""Difference of correlations within which two bindings can't be told apart."""


class PixelJudge(OneByOne):
    """Finds the subjects of a question by template matching and measures the answer."""

    tasks = frozenset(("order", "arrangement", "gate", "actor", "binding"))
    """Tasks of the questions that it can answer."""

    def identity(self) -> dict[str, str]:
        return {"kind": "pixels", "version": "5", "atlas": atlas_digest()[:12]}

    def objection(self, question: Question) -> str:
        """Why it can't answer, whatever the image: a subject that no figure shows, or an axis."""
        try:
            _check_axis(question)
            for subject in question.subjects:
                entity_of(subject)
        except ValueError as error:
            return str(error)
        return ""

    def verdict(self, question: Question) -> Verdict:
        try:
            if question.task not in _MEASURES:
                raise ValueError(f"can't answer a free question ({question.task})")
            which, why = _MEASURES[question.task](question)
        except ValueError as error:
            return Verdict("error", f"pixels: {error}")
        return Verdict(question.labels[which], why)


class _SubjectMatch(NamedTuple):
    """A subject in an image."""

    match: Match
    """Where it matches best."""
    is_there: bool
    """Whether it matches well enough."""


def _find_both(
    question: Question, image: SearchedImage, posed: bool = True
) -> tuple[_SubjectMatch, _SubjectMatch]:
    """Both subjects in an image, in a plain pose or, if `posed`, their own."""
    scales = _scales(question)
    wanted = []
    for subject, fact in zip(question.subjects, ("first", "second"), strict=True):
        own = find_pose(question.facts.get(fact, "")) if posed else None
        wanted.append((subject, ("", own) if own else ("",), scales))
    a, b = (_find(image, *search) for search in wanted)
    if a.match.overlap(b.match) > SAME_PLACE:
        # Two alike matched one figure: one keeps it, the other is elsewhere.
        other_a = _find(image.without(b.match), *wanted[0])
        other_b = _find(image.without(a.match), *wanted[1])
        if a.match.score + other_b.match.score >= other_a.match.score + b.match.score:
            return a, other_b
        return other_a, b
    return a, b


def _scales(question: Question) -> tuple[float, ...]:
    """Sizes at which the renderer draws what the prompt of a question names."""
    if "objects" not in question.facts:
        return SMALL if question.facts.get("axis") == "vertical" else SCALES
    drawn = {name for name in question.facts["objects"].split("|") if mentions(f"a {name}")}
    return OF_SEVERAL if len(drawn) > 2 else (*SMALL, *SCALES)


def _find(
    image: SearchedImage, subject: str, poses: Sequence[str], scales: tuple[float, ...]
) -> _SubjectMatch:
    """A subject in an image: a search finds it, or a closer look at the likeliest places."""
    entity = entity_of(subject)
    is_person = clothes(entity) is not None
    # In small images, as blurred ones by networks, colors are no sign.
    unlike = UNLIKE if image.has_details else math.inf
    match = image.find(entity, poses, scales, unlike)
    if match.score >= SURE:
        return _SubjectMatch(match, True)
    if not image.has_details:
        return _SubjectMatch(match, match.score >= (PERSON_FOUND if is_person else FOUND))
    enough = PERSON_SEEN if is_person else SEEN
    closer = image.look_closer(entity, poses, scales, enough) or match
    return _SubjectMatch(closer, closer.score >= enough)


def _check_axis(question: Question) -> None:
    """Raises ValueError for an axis that an image alone does not show."""
    axis = question.facts.get("axis", "horizontal")
    if question.task in ("order", "arrangement") and axis not in ("horizontal", "vertical"):
        raise ValueError(f"can't measure the axis {axis!r}: choose a judge by rule")


def _order(question: Question) -> tuple[int, str]:
    _check_axis(question)
    seen = _find_both(question, SearchedImage(question.images[-1]))
    for subject, subject_match in zip(question.subjects, seen, strict=True):
        if not subject_match.is_there:
            return 2, f"{subject} is missing (correlation {subject_match.match.score:.2f})"
    a, b = (subject_match.match for subject_match in seen)
    across, down = a.x - b.x, a.y - b.y
    why = f"across {across:+.2f}, down {down:+.2f}"
    along, beside = across, down
    if question.facts.get("axis") == "vertical":
        along, beside = down, across
    if "objects" in question.facts:
        # Of several, two may stand across from each other; above is then what stands higher, too:
        # of two on one ground the taller has the higher center.
        beside = 0.0
        if question.facts.get("axis") == "vertical":
            along = min(down, a.foot - b.foot, key=abs) if down * (a.foot - b.foot) > 0 else 0.0
    if abs(along) < MARGIN or abs(along) < abs(beside):
        return 2, f"not in one line ({why})"
    return (0 if along < 0 else 1), why


def _gate(question: Question) -> tuple[int, str]:
    """One of three aspects of a layout: existence, separation, topology."""
    seen = _find_both(question, SearchedImage(question.images[-1]))
    a, b = (subject_match.match for subject_match in seen)
    across, down = abs(a.x - b.x), abs(a.y - b.y)
    holds = {
        "existence": all(subject_match.is_there for subject_match in seen),
        "separation": a.overlap(b) <= SAME_PLACE,
        "topology": across >= MARGIN and across >= down,
    }[_fact(question, "aspect")]
    return (0 if holds else 1), f"across {across:.2f}, down {down:.2f}"


def _actor(question: Question) -> tuple[int, str]:
    """The figure of the source that the edit changed, if it is still there."""
    source, edited = (SearchedImage(image) for image in question.images)
    changes = []
    seen = _find_both(question, source, posed=False)
    for subject, subject_match in zip(question.subjects, seen, strict=True):
        if not subject_match.is_there:
            raise ValueError(f"the source does not show the {subject}")
        changes.append(source.change(edited, subject_match.match))
    why = "changes " + " and ".join(f"{change:.4f}" for change in changes)
    if max(changes) < CHANGED or min(changes) > max(changes) / 2:
        return 2, why
    actor = int(np.argmax(changes))
    if not _find_both(question, edited)[actor].is_there:
        return 2, f"{question.subjects[actor]} is missing from the edited image ({why})"
    return actor, why


def _binding(question: Question) -> tuple[int, str]:
    """Whether each subject looks more like its own action than like the other's."""
    image = SearchedImage(question.images[-1])
    first, second = map(entity_of, question.subjects)
    poses = [_acted(_fact(question, name)) for name in ("first", "second")]
    stated = [image.find(first, poses[:1]), image.find(second, poses[1:])]
    exchanged = [image.find(first, poses[1:]), image.find(second, poses[:1])]
    gain = sum(m.score for m in stated) - sum(m.score for m in exchanged)
    why = f"as told {gain:+.2f} better than exchanged"
    if abs(gain) <= UNDECIDED:
        return 2, why
    shown = poses if gain > 0 else poses[::-1]
    for subject, pose in zip(question.subjects, shown, strict=True):
        if not _find(image, subject, (pose,), SCALES).is_there:
            return 2, f"{subject} is missing"
    return (0 if gain > 0 else 1), why


def _acted(action: str) -> str:
    """Pose of a figure with an action; empty for one that undergoes it."""
    return "" if is_passive(action) else find_pose(action) or ""


def _fact(question: Question, name: str) -> str:
    if name not in question.facts:
        raise ValueError(f"the question lacks the fact {name!r}")
    return question.facts[name]


_MEASURES = {
    "order": _order,
    "arrangement": _order,
    "gate": _gate,
    "actor": _actor,
    "binding": _binding,
}
