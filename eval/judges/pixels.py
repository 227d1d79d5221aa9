"""`pixels`: a judge that measures the renderer's pictures.

It gets pixels and question, and knows what the atlas looks like: never a picture's metadata. With
it the whole scoring chain runs offline, on pictures whose truth is known.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from ...scenes.language import mentions
from ...scenes.matching import SCALES, SMALL, Match, Picture
from ...scenes.poses import find_pose
from ...scenes.sprites import atlas_digest
from ...specs import Spec
from ..core import Question, Verdict

FOUND = 0.6
"""Correlation from which a figure counts as there: 97 % of 300 posed figures are above, and 5 % of
figures that are not there, which look like one that is."""
MARGIN = 0.10
"""Horizontal distance of centres, share of the width, below which nobody is left (SpatialBench)."""
SAME_PLACE = 0.35
"""Overlap above which two matches are one figure."""
CHANGED = 0.0025
"""Mean difference of colours, in [0, 1], from which an edit changed a figure."""
UNDECIDED = 0.02
"""Difference of correlations within which two bindings can't be told apart."""


class PixelJudge:
    """Finds the subjects of a question by template matching and measures the answer."""

    @classmethod
    def from_spec(cls, spec: Spec) -> PixelJudge:
        if spec.argument or spec.options:
            raise ValueError("pixels takes neither argument nor options")
        return cls()

    def identity(self) -> dict[str, str]:
        return {"kind": "pixels", "version": "1", "atlas": atlas_digest()[:12]}

    def judge(self, questions: Iterable[Question]) -> Iterator[tuple[Question, Verdict]]:
        for question in questions:
            yield question, self._verdict(question)

    def _verdict(self, question: Question) -> Verdict:
        try:
            which, why = _MEASURES[question.task](question)
        except (KeyError, ValueError) as error:
            return Verdict("error", f"pixels: {error}")
        return Verdict(question.labels[which], why)


def _entities(question: Question) -> list[str]:
    """The atlas' name of each subject."""
    found = []
    for subject in question.subjects:
        named = mentions(subject) or mentions(f"a {subject}")
        if len(named) != 1:
            raise ValueError(f"the subject {subject!r} is no single entity of the atlas")
        found.append(named[0].entity)
    return found


def _find_both(question: Question) -> tuple[Match, Match, Picture]:
    picture = Picture(question.images[-1])
    first, second = _entities(question)
    scales = SMALL if question.facts.get("axis") == "vertical" else SCALES
    wanted = [
        (name, tuple(dict.fromkeys(("", find_pose(question.facts.get(fact, "")) or ""))), scales)
        for name, fact in ((first, "first"), (second, "second"))
    ]
    a, b = (picture.find(*one) for one in wanted)
    if a.overlap(b) > SAME_PLACE:
        # Two alike matched one figure: the better one keeps it, the other looks elsewhere.
        if a.score >= b.score:
            b = picture.without(a).find(*wanted[1])
        else:
            a = picture.without(b).find(*wanted[0])
    return a, b, picture


def _order(question: Question) -> tuple[int, str]:
    a, b, _ = _find_both(question)
    for subject, match in zip(question.subjects, (a, b), strict=True):
        if match.score < FOUND:
            return 2, f"{subject} is missing (correlation {match.score:.2f})"
    across, down = a.x - b.x, a.y - b.y
    why = f"across {across:+.2f}, down {down:+.2f}"
    along, beside = (down, across) if question.facts.get("axis") == "vertical" else (across, down)
    if abs(along) < MARGIN or abs(along) < abs(beside):
        return 2, f"not in one line ({why})"
    return (0 if along < 0 else 1), why


def _gate(question: Question) -> tuple[int, str]:
    """One of three aspects of a layout: existence, separation, topology."""
    a, b, _ = _find_both(question)
    across, down = abs(a.x - b.x), abs(a.y - b.y)
    holds = {
        "existence": min(a.score, b.score) >= FOUND,
        "separation": a.overlap(b) <= SAME_PLACE,
        "topology": across >= MARGIN and across >= down,
    }[question.facts["aspect"]]
    return (0 if holds else 1), f"across {across:.2f}, down {down:.2f}"


def _actor(question: Question) -> tuple[int, str]:
    """Whichever figure of the source the edit changed."""
    source, edited = (Picture(image) for image in question.images)
    changes = []
    for name in _entities(question):
        match = source.find(name)
        if match.score < FOUND:
            raise ValueError(f"the source does not show the {name}")
        changes.append(source.change(edited, match))
    why = "changes " + " and ".join(f"{change:.4f}" for change in changes)
    if max(changes) < CHANGED or min(changes) > max(changes) / 2:
        return 2, why
    return int(np.argmax(changes)), why


def _binding(question: Question) -> tuple[int, str]:
    """Whether each subject looks more like what it was told to do than like what the other was."""
    picture = Picture(question.images[-1])
    first, second = _entities(question)
    poses = [find_pose(question.facts[fact]) or "" if question.facts[fact] else ""
             for fact in ("first", "second")]  # fmt: skip
    told = [picture.find(first, poses[:1]), picture.find(second, poses[1:])]
    exchanged = [picture.find(first, poses[1:]), picture.find(second, poses[:1])]
    gain = sum(m.score for m in told) - sum(m.score for m in exchanged)
    why = f"as told {gain:+.2f} better than exchanged"
    if abs(gain) <= UNDECIDED or max(min(m.score for m in pair) for pair in (told, exchanged)) < (
        FOUND
    ):
        return 2, why
    return (0 if gain > 0 else 1), why


def _no_measure(question: Question) -> tuple[int, str]:
    raise ValueError("can't answer a free question")


_MEASURES = {
    "order": _order,
    "arrangement": _order,
    "gate": _gate,
    "actor": _actor,
    "binding": _binding,
    "yes_no": _no_measure,
}
