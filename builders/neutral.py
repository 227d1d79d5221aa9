"""Neutral prompts: a scene of two without names and without order (`Two people.`).

A temporal prompt switch starts with one, so that the layout is settled before any name is read
(OTS-Bench: "a man and a woman in a park" becomes "two people in a park").
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from functools import cache

from ..schema import Row
from .phrases import sentence
from .suite import Fault
from .taxonomy import GENDERS, EntityKind, Taxonomy

Mentioned = tuple[str, str]
"""An entity's name and what it does; empty if it does nothing."""

COLLECTIVE: dict[frozenset[EntityKind], str] = {
    frozenset(["human"]): "people",
    frozenset(["animal"]): "animals",
    frozenset(["object"]): "objects",
    frozenset(["human", "animal"]): "living beings",
    frozenset(["human", "object"]): "things",
    frozenset(["animal", "object"]): "things",
}
"""Kinds of two entities -> one word for both; naming each kind would order them."""

_ORDER = re.compile(
    r"\b(?:first|second|third|last|former|latter|then|next|before|after|followed|"
    r"firstly|secondly|finally)\b",
    re.IGNORECASE,
)
"""Words that put one before the other."""


def neutral_prompt(taxonomy: Taxonomy, first: Mentioned, second: Mentioned) -> str:
    """The scene of two entities without their names, the same whichever is mentioned first.

    What they do stays, in an order that the two actions alone decide, by a hash and not by the
    alphabet, unless it names an entity (`a large teddy bear`).
    """
    kinds = frozenset(taxonomy.entities[name].kind for name, _ in (first, second))
    scene = f"two {COLLECTIVE[kinds]}"
    does = kept_actions(taxonomy, first, second)
    if does:
        doing = f"both {does[0]}" if does[0] == does[1] else f"one {does[0]} and one {does[1]}"
        scene = f"{scene}, {doing}"
    return sentence(scene)


def kept_actions(taxonomy: Taxonomy, first: Mentioned, second: Mentioned) -> list[str]:
    """Returns both actions, ordered by a hash of the two; empty if either has none or names an
    entity."""
    does = sorted(action for _, action in (first, second))
    if hashlib.sha256(" / ".join(does).encode()).digest()[0] % 2:
        does.reverse()
    return does if all(does) and not any(_named(taxonomy, action) for action in does) else []


def anonymous_faults(
    row: Row, field: str, taxonomy: Taxonomy, first: Mentioned, second: Mentioned
) -> Iterator[Fault]:
    """The text names no entity, orders nothing, keeps the scene, and speaks of two in plural."""
    text: str = getattr(row, field)
    if name := _named(taxonomy, text):
        yield Fault(row.id, field, f"names {name!r}")
    if order := _ORDER.search(text):
        yield Fault(row.id, field, f"holds the order word {order.group()!r}")
    match = re.match(r"Two ([a-z ]+?)(?:, (one|both) (.+))?\.$", text)
    kinds = frozenset(
        taxonomy.entities[n].kind for n, _ in (first, second) if n in taxonomy.entities
    )
    if match is None or match.group(1) != COLLECTIVE.get(kinds, match.group(1)):
        yield Fault(row.id, field, f"does not speak of two {COLLECTIVE.get(kinds, '')}: {text!r}")
        return
    scene = kept_actions(taxonomy, first, second)
    actions = match.group(3) or ""
    doing = (
        [actions, actions]
        if match.group(2) == "both"
        else actions.split(" and one ")
        if actions
        else []
    )
    if sorted(doing) != sorted(scene):
        yield Fault(row.id, field, f"tells {doing}, the scene is {scene}")
    elif doing != scene:
        yield Fault(row.id, field, f"orders what they do by who is mentioned first: {text!r}")


def _named(taxonomy: Taxonomy, text: str) -> str:
    """The first entity, occupation or gender that a text names; empty for none."""
    match = _names(taxonomy.names).search(text)
    return match.group() if match else ""


@cache
def _names(entities: frozenset[str]) -> re.Pattern[str]:
    genders = "|".join(GENDERS)
    bare = {re.sub(rf"^(?:{genders}) ", "", name) for name in entities}
    # Also where a word is meant otherwise, as in "a tight ball": who reads it may take it so.
    words = sorted({*bare, *GENDERS, "man", "men", "woman", "women"}, key=lambda w: (-len(w), w))
    return re.compile(rf"\b(?:{'|'.join(map(re.escape, words))})\b", re.IGNORECASE)
