"""Spatial relations in free prompts: extracted by a model and by rules, and how far both agree.

The task is that of PSE's appendix: lines of (object, object, relation) from a prompt.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from ..progress import Progress, silent
from ..schema import Struct
from .caller import Call, Caller
from .hygiene import skeleton
from .roles import Role

Direction = Literal[
    "left",
    "right",
    "top",
    "bottom",
    "front",
    "behind",
    "top left",
    "top right",
    "bottom left",
    "bottom right",
    "near",
    "far",
    "inside",
    "around",
    "between",
]

REVERSE: dict[Direction, Direction] = {
    "right": "left",
    "bottom": "top",
    "behind": "front",
    "bottom right": "top left",
    "bottom left": "top right",
    "around": "inside",
}
"""Relations that count as the reverse of another when two lists are compared."""
SYMMETRIC: tuple[Direction, ...] = ("near", "far")
"""Relations that are the same for both orders of their things."""
JOINT = "|"
"""Joins the two things that another is between."""


class StatedRelation(Struct):
    """`first` is on that side of `second`."""

    first: str
    """Noun with its adjectives, without article."""
    relation: Direction
    """Where it is, seen from the second."""
    second: str
    """Noun with its adjectives, without article; of `between` both, as in `cat|dog`."""

    def normal(self) -> tuple[str, str, str]:
        """A form that is the same for both ways to state it and for spellings of one name.

        >>> StatedRelation(first="a cat", relation="right", second="Dog").normal()
        ('dog', 'left', 'cat')
        """
        first, second = (
            JOINT.join(sorted(map(skeleton, text.split(JOINT))))
            for text in (self.first, self.second)
        )
        if self.relation in SYMMETRIC:
            first, second = sorted((first, second))
        if self.relation in REVERSE:
            return second, REVERSE[self.relation], first
        return first, self.relation, second


class Extraction(Struct):
    """The relations that a prompt states."""

    relations: list[StatedRelation] = Field(max_length=30)
    """In the order of the text."""


EXTRACTOR = Role("relations/extractor", Extraction, 1_000)
"""Extracts what a prompt states."""

READER = Role("relations/reader", Extraction, 1_000)
"""Extracts what a prompt states or conveys otherwise (PSE, appendix B.7)."""

_SIDE = r"(?:-hand)?(?: corner| side)? of"
_CONNECTORS: tuple[tuple[str, Direction], ...] = (
    (rf"(?:to|on|at|in) the (?:top|upper)[ -]left{_SIDE}", "top left"),
    (rf"(?:to|on|at|in) the (?:top|upper)[ -]right{_SIDE}", "top right"),
    (rf"(?:to|on|at|in) the (?:bottom|lower)[ -]left{_SIDE}", "bottom left"),
    (rf"(?:to|on|at|in) the (?:bottom|lower)[ -]right{_SIDE}", "bottom right"),
    (r"(?:to|on|at) the left(?:-hand)?(?: side)? of|(?:directly |just )?left of", "left"),
    (r"(?:to|on|at) the right(?:-hand)?(?: side)? of|(?:directly |just )?right of", "right"),
    (r"(?:on|at) (?:the )?top of|(?:directly |just |high )?above|over|atop", "top"),
    (r"(?:directly |just )?below|under(?:neath)?|beneath|(?:at|on) the bottom of", "bottom"),
    (r"in front of", "front"),
    (r"behind|at the back of|(?:(?:partly|partially|half) )?(?:hidden|covered) by", "behind"),
    (r"near(?: to)?|next to|beside|close to|(?:on|by|at) (?:the )?side of", "near"),
    (r"far(?: away)? from", "far"),
    (r"inside(?: of)?|within|surrounded by", "inside"),
    (r"surrounding|all around", "around"),
    (r"between|among|in the middle of", "between"),
)
_CONNECTOR = re.compile(
    r"\b(?:"
    + "|".join(f"(?P<{name.replace(' ', '_')}>{pattern})" for pattern, name in _CONNECTORS)
    + r")\b",
    re.IGNORECASE,
)
_BOTH_SIDES = re.compile(
    r"\b(?:(?P<v>above|below)(?:,)? and (?:to|on) the (?P<h>left|right) of"
    r"|(?:to|on) the (?P<h2>left|right) of(?:,)? and (?P<v2>above|below))\b",
    re.IGNORECASE,
)
_TWO_AROUND = re.compile(
    r"\b(between|among|in the middle of)(\s+[^.,;!?|]+?)\s+and\s+", re.IGNORECASE
)
_CLAUSE = re.compile(r"[.;!?]|,?\s+(?:and|while|with|but)\s+|,\s*")
_LEAD = re.compile(
    r"^(?:(?:a|an|the)\s+)?(?:photo|picture|image|painting|drawing|render|shot|view)\s+of\s+", re.I
)
_VERB = re.compile(
    r"\s+(?:is|are|was|were|stands?|sits?|lies|lying|standing|sitting|placed|located|positioned|"
    r"hanging|floating|flying|resting|hidden)\b.*$",
    re.IGNORECASE,
)
_PRONOUN = re.compile(r"(?:it|them|this|that|these|those|him|her|each other)", re.IGNORECASE)
_DETERMINER = re.compile(r"^(?:a|an|the|one|some|this|that|his|her|its|their)\s+", re.IGNORECASE)


def extract_by_rules(prompt: str) -> list[StatedRelation]:
    """Relations of the form `A <connector> B`; a clause without a subject keeps the last one.

    >>> [r.normal() for r in extract_by_rules("A photo of a cat to the left of a red dog.")]
    [('cat', 'left', 'red dog')]
    """
    relations: list[StatedRelation] = []
    text = _TWO_AROUND.sub(rf"\1\2 {JOINT} ", _BOTH_SIDES.sub(_diagonal, prompt.strip()))
    for clause in _CLAUSE.split(_LEAD.sub("", text)):
        connectors = list(_CONNECTOR.finditer(clause))
        start = 0
        # In a chain ("A above B behind C") the object of one relation is the subject of the next.
        subject = ""
        for place, connector in enumerate(connectors):
            end = connectors[place + 1].start() if place + 1 < len(connectors) else len(clause)
            before = _noun(clause[start : connector.start()]) or subject
            after = _noun(clause[connector.end() : end])
            if not before and relations:
                before = relations[-1].first
            if before and after:
                name = (connector.lastgroup or "").replace("_", " ")
                direction: Direction = name  # type: ignore[assignment]
                if (direction == "between") == (JOINT in after):
                    stated = StatedRelation(first=before, relation=direction, second=after)
                    relations.append(stated)
            subject, start = after, end
    return relations


def _diagonal(match: re.Match[str]) -> str:
    """The words of a diagonal for "above and to the left of"."""
    vertical = (match["v"] or match["v2"]).lower()
    side = "top" if vertical == "above" else "bottom"
    return f"to the {side} {(match['h'] or match['h2']).lower()} of"


def _noun(text: str) -> str:
    """A noun phrase without determiner and verb, or two around a third; empty if there is none."""
    if JOINT in text:
        both = [_noun(part) for part in text.split(JOINT)]
        return JOINT.join(both) if all(both) else ""
    bare = _VERB.sub("", " " + text.strip(" ,")).strip()
    previous = None
    while previous != bare:
        previous, bare = bare, _DETERMINER.sub("", bare)
    return "" if _DETERMINER.fullmatch(bare + " ") or _PRONOUN.fullmatch(bare) else bare


@dataclass(frozen=True)
class Extracted:
    """One prompt, read by rules and by the model."""

    id: str
    """Id of the prompt."""
    prompt: str
    """The prompt."""
    by_rules: tuple[StatedRelation, ...]
    """Relations found by the rules."""
    by_model: tuple[StatedRelation, ...] | None
    """Relations found by the model; None without a usable answer."""
    problem: str
    """Why the model gave no usable answer; empty if it gave one."""


def extract(
    caller: Caller,
    prompts: Iterable[tuple[str, str]],
    progress: Progress = silent,
    role: Role[Extraction] = EXTRACTOR,
) -> list[Extracted]:
    """Both readings of every (id, prompt), in order.

    role: `EXTRACTOR` or `READER`; one ledger can hold both.
    """
    listed = list(prompts)
    stem = "relations" if role is EXTRACTOR else role.name
    calls = [
        Call(f"{stem}/{name}", role.request(f"<data>\n{text}\n</data>"), role.read)
        for name, text in listed
    ]
    answers = caller.call_many(calls, "relations", progress)
    return [
        Extracted(
            id=name,
            prompt=text,
            by_rules=tuple(extract_by_rules(text)),
            by_model=tuple(answer.value.relations) if answer.value else None,
            problem="" if answer.value else f"{answer.status}: {answer.problem}",
        )
        for (name, text), answer in zip(listed, answers, strict=True)
    ]


@dataclass(frozen=True)
class ExtractionAgreement:
    """Agreement of rules and model over the prompts that both have read."""

    prompts: int
    """Prompts compared."""
    unread: int
    """Prompts to which the model gave no usable answer; not compared."""
    same: int
    """Prompts with exactly the same relations."""
    shared: int
    """Relations that both found."""
    rules_only: int
    """Relations that only the rules found."""
    model_only: int
    """Relations that only the model found."""

    @property
    def f1(self) -> float | None:
        """2 shared / (all of both), in [0, 1]; None if neither found any."""
        total = 2 * self.shared + self.rules_only + self.model_only
        return 2 * self.shared / total if total else None


def agreement(results: Sequence[Extracted]) -> ExtractionAgreement:
    """Counts over all prompts; a relation and its reverse are one."""
    same = shared = rules_only = model_only = 0
    read = [r for r in results if r.by_model is not None]
    for result in read:
        rules = {relation.normal() for relation in result.by_rules}
        model = {relation.normal() for relation in result.by_model or ()}
        same += rules == model
        shared += len(rules & model)
        rules_only += len(rules - model)
        model_only += len(model - rules)
    unread = len(results) - len(read)
    return ExtractionAgreement(
        prompts=len(read),
        unread=unread,
        same=same,
        shared=shared,
        rules_only=rules_only,
        model_only=model_only,
    )
