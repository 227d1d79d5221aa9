"""Parses prompts for the renderer: entities in order, layout words and actions."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from functools import cache

from .poses import find_pose
from .sprites import ALIASES, drawn_as, entity_names

AXES = {
    "horizontal": (("to the left of", 1), ("to the right of", -1)),
    "vertical": (("above", 1), ("below", -1)),
    "depth": (("in front of", 1), ("partly hidden by", -1), ("behind", -1)),
}
"""For each axis its phrases, each with 1 where the entity before it comes first, else -1.

First means left, top or front.
"""

_RELATION = re.compile(
    rf"\b(?:{'|'.join(words for relations in AXES.values() for words, _ in relations)}"
    r"|on the (?:left|right|top|bottom) of)\b"
)
_ONE_OTHER = {"one above the other": "vertical", "one in front of the other": "depth"}
_ON_THE = re.compile(r"(?:,?\s+and)?\s+on the (left|right|top|bottom) of (?:an?|the)\s+")
_SIDES = {
    "left": ("horizontal", 1),
    "right": ("horizontal", -1),
    "top": ("vertical", 1),
    "bottom": ("vertical", -1),
}
_DIAGONAL = re.compile(
    r"\b(?:to|on|at|in) the (top|upper|bottom|lower)[ -](left|right) of\b"
    r"|\b(above|below) and (?:to|on) the (left|right) of\b"
)
_BETWEEN = re.compile(r"(?: is| are)? (?:between|among|in the middle of) (?:an?|the) ")
_DISTANCE = {"far": re.compile(r"\bfar from\b"), "near": re.compile(r"\bnear\b")}
_SAME_SUBJECT = re.compile(r",?\s+and\s+(?:(?:to|on) the|above|below)\b")
_NEXT_CLAUSE = re.compile(r",?\s+and\s+(?:an?|the)\s+")
_SIDE = re.compile(r"\bon the (left|right)\b")
_GROUPS = re.compile(r"(one|the) (person|animal|object)\b", re.IGNORECASE)


@dataclass(frozen=True)
class NamedEntity:
    """An entity where a text names it."""

    entity: str
    """Its name."""
    start: int
    """First character of the name."""
    end: int
    """Character after the name."""


@dataclass(frozen=True)
class Layout:
    """Where a text puts what it names."""

    axis: str
    """`horizontal`, `vertical`, `depth`, `near` or `far`, or `chain` where each entity is placed by
    another."""
    order: tuple[int, ...] | None
    """Indices of the mentions from first to last on the axis; None for a neutral text."""
    steps: tuple[tuple[int, int], ...] = ()
    """In a chain, where each entity stands from the one before it: columns and rows, +1 is right
    and down."""


@cache
def _names() -> re.Pattern[str]:
    # Longest first, so that "mouse" never wins over a longer name that holds it.
    longest_first = sorted((*entity_names(), *ALIASES), key=lambda name: (-len(name), name))
    # Only after an article or number: a "tight ball" or a "teddy bear" is no entity.
    return re.compile(
        rf"\b(?:an?|the|one|two)\s+({'|'.join(map(re.escape, longest_first))})\b", re.IGNORECASE
    )


def mentions(text: str) -> list[NamedEntity]:
    """Entities that the text names, each once, in order of first mention."""
    entities: dict[str, NamedEntity] = {}
    for match in _names().finditer(text):
        entity = drawn_as(match.group(1).lower())
        entities.setdefault(entity, NamedEntity(entity, match.start(1), match.end(1)))
    return sorted(entities.values(), key=lambda mention: mention.start)


def entity_of(subject: str) -> str:
    """The entity that a question or a query names, with an article or without.

    Raises ValueError if it names none or several.
    """
    named = mentions(subject) or mentions(f"a {subject}")
    if len(named) != 1:
        raise ValueError(f"{subject!r} does not name one entity of the atlas")
    return named[0].entity


def layout(text: str, named: list[NamedEntity]) -> Layout:
    """The layout that the text asks for; a neutral horizontal one if it states none."""
    lowered = text.lower()
    for words, axis in _ONE_OTHER.items():
        if words in lowered:
            return Layout(axis, None)
    sides = [(m.start(), m.group(1)) for m in _SIDE.finditer(lowered)]
    if len(named) == len(sides) == 2:
        return Layout("horizontal", (0, 1) if sides[0][1] == "left" else (1, 0))
    texts = [lowered[before.end : after.start] for before, after in itertools.pairwise(named)]
    stated = [_stated(text) for text in texts]
    if len(stated) == 1 and (diagonal := _DIAGONAL.search(texts[0])):
        vertical, side = (first or second for first, second in zip(*_halves(diagonal), strict=True))
        step = (1 if side == "left" else -1, 1 if vertical in ("top", "upper", "above") else -1)
        return Layout("chain", (0, 1), (step,))
    if len(named) > 2 and _BETWEEN.fullmatch(texts[-2]):
        # What is between two things stands in the middle, in order of mention.
        return Layout("horizontal", (len(named) - 2, *range(len(named) - 2), len(named) - 1))
    if len(stated) == 1 and stated[0] is not None:
        axis, sign = stated[0]
        return Layout(axis, (0, 1) if sign > 0 else (1, 0))
    if len(stated) == 1:
        for distance, pattern in _DISTANCE.items():
            if pattern.search(texts[0]):
                return Layout(distance, None)
    if steps := _steps(texts, stated):
        return Layout("chain", tuple(range(len(named))), steps)
    return Layout("horizontal", None)


def loses_layout(text: str, named: list[NamedEntity]) -> bool:
    """Whether a text states a relation, but its entities are laid out as if it stated none.

    So it is where what a relation refers to is no entity, between two that are.
    """
    if len(named) < 2 or layout(text, named) != Layout("horizontal", None):
        return False
    return _RELATION.search(text.lower()) is not None


def _halves(match: re.Match[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Groups of the two ways to write a diagonal."""
    groups = match.groups()
    return groups[:2], groups[2:]


def _steps(texts: list[str], stated: list[tuple[str, int] | None]) -> tuple[tuple[int, int], ...]:
    """Steps from each entity to the next, of a chain, of relations with one subject, and of clauses
    side by side; empty unless all is placed.

    texts: the words between entities. stated: the relation in each.
    """
    places = [(0, 0)]
    subject = 0
    for text, relation in zip(texts, stated, strict=True):
        last = len(places) - 1
        if relation is None:
            if last == subject or not _NEXT_CLAUSE.fullmatch(text):
                return ()
            subject = last + 1
            places.append(places[last])
            continue
        if relation[0] == "depth":
            return ()
        anchor = places[subject if _SAME_SUBJECT.match(text) else last]
        step = _step(*relation)
        places.append((anchor[0] + step[0], anchor[1] + step[1]))
    if len(texts) < 2 or subject == len(places) - 1:
        return ()
    return tuple((b[0] - a[0], b[1] - a[1]) for a, b in itertools.pairwise(places))


def _step(axis: str, sign: int) -> tuple[int, int]:
    """Columns and rows from an entity to the next of a chain."""
    return (sign, 0) if axis == "horizontal" else (0, sign)


def _stated(between: str) -> tuple[str, int] | None:
    """Axis and sign of the relation that some words state; None for none."""
    if side := _ON_THE.fullmatch(between):
        return _SIDES[side.group(1)]
    for axis, relations in AXES.items():
        for words, sign in relations:
            if words in between:
                return axis, sign
    return None


def mentioned_poses(text: str, named: list[NamedEntity]) -> list[str]:
    """For each mention, the pose that the words after it ask for; empty for none."""
    ends = [*(mention.start for mention in named[1:]), len(text)]
    return [
        find_pose(text[mention.end : end]) or "" for mention, end in zip(named, ends, strict=True)
    ]


def names_nobody(text: str) -> bool:
    """Whether an edit does not say who is meant: it speaks of one person, animal or object."""
    return _GROUPS.match(text) is not None


def is_directed(text: str, named: list[NamedEntity]) -> bool:
    """Whether one of two entities acts on the other, instead of both acting on their own."""
    if len(named) != 2:
        return False
    return re.search(r"\band (the|an?|one)\s*$", text[named[0].end : named[1].start]) is None


def is_passive(text: str) -> bool:
    """Whether the first entity named undergoes what the second does."""
    return (
        re.search(r"\b(is being|has a paw placed)\b.*\bby the\b|\bon it by the\b", text) is not None
    )
