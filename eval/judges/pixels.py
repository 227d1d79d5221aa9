"""`pixels`: a judge that measures rendered images.

It sees the pixels and the question and knows the atlas, but never an image's metadata. With it the
whole scoring chain runs offline, on images whose truth is known.
"""

from __future__ import annotations

import numpy as np

from ...scenes.language import entity_of
from ...scenes.matching import OF_SEVERAL, SCALES, SMALL, Match, SearchedImage
from ...scenes.poses import find_pose
from ...scenes.sprites import atlas_digest, clothes
from ..core import Question, Verdict
from . import OneByOne

FOUND = 0.6
"""Least correlation of a figure that counts as there: 97 % of 300 posed figures reach it, as do 5 %
of absent ones, which look like one that is there."""
PERSON_FOUND = 0.65
"""The same of a person, searched for in one skin tone of five: with it, the answers about 562 drawn
pairs, a fifth of them with a fault, are right as often as when all people had one tone."""
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
        return {"kind": "pixels", "version": "3", "atlas": atlas_digest()[:12]}

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


def _find_both(question: Question) -> tuple[Match, Match]:
    """The best match of each subject, in a plain pose or its own."""
    image = SearchedImage(question.images[-1])
    scales: tuple[float, ...] = SMALL if question.facts.get("axis") == "vertical" else SCALES
    if "objects" in question.facts:
        scales = OF_SEVERAL
    poses = [find_pose(question.facts.get(fact, "")) or "" for fact in ("first", "second")]
    wanted = [
        (entity_of(subject), tuple(dict.fromkeys(("", pose))), scales)
        for subject, pose in zip(question.subjects, poses, strict=True)
    ]
    a, b = (image.find(*search) for search in wanted)
    if a.overlap(b) > SAME_PLACE:
        # Two alike matched one figure: the better one keeps it, the other looks elsewhere.
        if a.score >= b.score:
            b = image.without(a).find(*wanted[1])
        else:
            a = image.without(b).find(*wanted[0])
    return a, b


def _is_there(subject: str, match: Match) -> bool:
    return match.score >= (PERSON_FOUND if clothes(entity_of(subject)) else FOUND)


def _check_axis(question: Question) -> None:
    """Raises ValueError for an axis that an image alone does not show."""
    axis = question.facts.get("axis", "horizontal")
    if question.task in ("order", "arrangement") and axis not in ("horizontal", "vertical"):
        raise ValueError(f"can't measure the axis {axis!r}: choose a judge by rule")


def _order(question: Question) -> tuple[int, str]:
    _check_axis(question)
    a, b = _find_both(question)
    for subject, match in zip(question.subjects, (a, b), strict=True):
        if not _is_there(subject, match):
            return 2, f"{subject} is missing (correlation {match.score:.2f})"
    across, down = a.x - b.x, a.y - b.y
    why = f"across {across:+.2f}, down {down:+.2f}"
    along, beside = (down, across) if question.facts.get("axis") == "vertical" else (across, down)
    if abs(along) < MARGIN or abs(along) < abs(beside):
        return 2, f"not in one line ({why})"
    return (0 if along < 0 else 1), why


def _gate(question: Question) -> tuple[int, str]:
    """One of three aspects of a layout: existence, separation, topology."""
    a, b = _find_both(question)
    across, down = abs(a.x - b.x), abs(a.y - b.y)
    holds = {
        "existence": all(map(_is_there, question.subjects, (a, b))),
        "separation": a.overlap(b) <= SAME_PLACE,
        "topology": across >= MARGIN and across >= down,
    }[_fact(question, "aspect")]
    return (0 if holds else 1), f"across {across:.2f}, down {down:.2f}"


def _actor(question: Question) -> tuple[int, str]:
    """The figure of the source that the edit changed."""
    source, edited = (SearchedImage(image) for image in question.images)
    changes = []
    for name in map(entity_of, question.subjects):
        match = source.find(name)
        if match.score < FOUND:
            raise ValueError(f"the source does not show the {name}")
        changes.append(source.change(edited, match))
    why = "changes " + " and ".join(f"{change:.4f}" for change in changes)
    if max(changes) < CHANGED or min(changes) > max(changes) / 2:
        return 2, why
    return int(np.argmax(changes)), why


def _binding(question: Question) -> tuple[int, str]:
    """Whether each subject looks more like its own action than like the other's."""
    image = SearchedImage(question.images[-1])
    first, second = map(entity_of, question.subjects)
    poses = [find_pose(_fact(question, name)) or "" for name in ("first", "second")]
    stated = [image.find(first, poses[:1]), image.find(second, poses[1:])]
    exchanged = [image.find(first, poses[1:]), image.find(second, poses[:1])]
    gain = sum(m.score for m in stated) - sum(m.score for m in exchanged)
    why = f"as told {gain:+.2f} better than exchanged"
    best = max(min(match.score for match in pair) for pair in (stated, exchanged))
    if abs(gain) <= UNDECIDED or best < FOUND:
        return 2, why
    return (0 if gain > 0 else 1), why


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
