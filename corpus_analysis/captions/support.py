"""Things that others are on, at or beside: furniture, seats, and what stands on them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .attachment import (
    NOUNS,
    POSSESSIVES,
    Word,
    conjuncts,
    is_place,
    is_placing,
    root_of,
)
from .names import CaptionWords, NamedThing, NameResolver
from .words import FLYING, SET_BACK, WEARING

SURFACES = frozenset(("table", "desk", "counter", "shelf", "tripod", "stove", "cabinet"))
"""Things on which others stand."""
_LAID = frozenset(("table", "desk", "dining table", "coffee table", "picnic table"))
_AT_TABLE = frozenset("at behind by near around over".split())
"""Where somebody is who has a table."""
_ON_TABLES = frozenset(("food_kitchen", "devices_leisure"))
"""Categories of what tables and desks are with."""
_BESIDE = frozenset("to near by beside".split())
"""Last words of what says that something is beside what is on a table too."""
_PLACED = frozenset(("furniture", "vehicles", "people", "animals"))
_AT = frozenset(("in", "inside", "at"))
_SEATS = frozenset(("furniture", "vehicles", "food_kitchen"))
"""Categories of what something else is on, in or at, and that stands somewhere itself."""
_BOARDED = frozenset(("train", "bus", "airplane", "subway", "tram", "ferry", "ship"))
"""Vehicles whose riders "on" them are inside."""
_RIDDEN = frozenset(("vehicles",))
_ROUND = frozenset(("above", "behind", "around", "over", "between", "beside", "near", "to"))
_PASSING = frozenset(("by", "past"))
"""Last words of what moves by: "with a person walking by"."""
_IN_BACK = ["in", "back"]
_NEXT_TO = ["next", "to"]
_ON_TOP = ["on", "top", "of"]
_INSIDE = frozenset(("it", "inside", "them"))
"""Words that end a phrase and refer to the thing before it: "a car with a child inside"."""


class Support:
    """Rules for what is on, at or beside something, for one ontology."""

    def __init__(self, resolver: NameResolver) -> None:
        self._resolver = resolver

    def upper(self, doc: CaptionWords, token: Word, first: NamedThing) -> NamedThing | None:
        """The upper of two supports: the plate in "it is on a plate on a table"."""
        before = doc[token.i - 1]
        if token.lower_ != "on" or first.entity.animate or before.dep_ != "pobj":
            return None
        if before.head.lower_ not in ("on", "in") or before.head.i < first.head.i:
            return None
        thing = self._resolver.resolve(doc, before)
        return None if thing is None or thing.entity.animate else thing

    def of_subject(
        self,
        doc: CaptionWords,
        noun: Word,
        first: NamedThing,
        second: NamedThing,
        relation: str,
    ) -> NamedThing | None:
        """Support of a subject, right before its place: the bench in "a man on a bench next to a
        tree", which is next to the tree as well.

        Things "with" somebody are on the support only if it is a table: "a man at a table with two
        pizzas".
        """
        if noun.dep_ != "pobj" or noun.i <= first.head.i:
            return None
        if relation == "on" and first.entity.animate and noun.head.lower_ in _BESIDE:
            thing = self._resolver.resolve(doc, noun)
            placed = thing is not None and thing.entity.category not in _PLACED
            return thing if placed and second.entity.name in SURFACES else None
        at = _AT_TABLE if relation == "with" else _AT
        if noun.head.lower_ != "on" and noun.head.lower_ not in at:
            return None
        thing = self._resolver.resolve(doc, noun)
        if thing is None:
            return None
        if relation == "with" and first.entity.animate:
            laid = thing.entity.name in _LAID and noun.head.lower_ in _AT_TABLE
            laid = laid and second.entity.category in _ON_TABLES
            words = (*second.head.lefts, *below(second.head))
            possessed = any(t.lower_ in POSSESSIVES for t in words)  # "with glasses in their hands"
            return thing if laid and not possessed and not is_set_back(doc, second) else None
        at_work = noun.head.lower_ == "at" and thing.entity.category == "devices_leisure"
        if second.entity.animate and thing.entity.name in _BOARDED:
            return None  # "sitting on a train next to a woman"
        seats = _SEATS if relation != "on" else _RIDDEN
        lifeless = relation not in ("on", "with") and not (
            first.entity.animate or thing.entity.animate
        )
        return thing if at_work or lifeless or thing.entity.category in seats else None

    def nearest(
        self,
        doc: CaptionWords,
        start: Word,
        first: NamedThing,
        second: NamedThing,
        relation: str,
    ) -> NamedThing | None:
        """The lifeless thing right before a place, which is there by the other reading: the egg in
        "a plate with an egg next to a salad".

        start: the first word of the place. Not what somebody has who is on something, or on each
        side of it: "a man going up a ramp on a board", "girls hold cards on both sides of a desk".
        """
        noun = doc[start.i - 1]
        if noun.head.lower_ == "of" and not is_place(noun.head.head):
            noun = noun.head.head  # "a plate of food"
        if noun.tag_ not in NOUNS or noun.i <= first.head.i or noun.head.lower_ == "in":
            return None
        acts = first.entity.animate and (relation == "on" or "sides" in relation.split())
        if (
            acts
            or relation == "with"
            or second.entity.animate
            or noun.head.lower_ in FLYING | WEARING
        ):
            return None
        if relation == "on" and root_of(noun).head.lower_ == "with":
            return None  # "a cake with candles on a table"
        thing = self._resolver.resolve(doc, noun)
        if thing is None or thing.entity.animate or thing.head.i in (first.head.i, second.head.i):
            return None
        return None if "garment" in thing.entity.kinds else thing

    def furniture_before(
        self, doc: CaptionWords, token: Word, subject: Word, second: NamedThing
    ) -> tuple[Word, NamedThing] | None:
        """The furniture right before "with" that a lifeless subject stands on, or is joined to.

        "A pizza on a table with magazines", "a fridge and shelves with jars", "a train by a
        platform with people on it".
        """
        before = doc[token.i - 1]
        if token.lower_ != "with" or before.i == subject.i or before.tag_ not in NOUNS:
            return None
        if is_set_back(doc, second):
            return None
        thing = self._resolver.resolve(doc, before)
        if thing is None or thing.entity.animate:
            return None
        joined = any(conjunct.i == before.i for conjunct in conjuncts(subject))
        joined = joined or is_of_it(second.head, subject, before) or is_beside_it(doc, second.head)
        return (before, thing) if joined or thing.entity.category == "furniture" else None


def place_start(token: Word) -> Word:
    """The first word of a preposition: "next" of "next to"."""
    while is_placing(token.head) or token.head.dep_ == "prep":
        if not 0 < token.i - token.head.i <= 3:
            break
        token = token.head
    return token


def is_set_back(doc: Sequence[Word], thing: NamedThing) -> bool:
    """Whether a phrase ends in the background: "with a tower behind them", "with a tower in back",
    "with a girl walking by"."""
    after = [t.lower_ for t in doc[thing.head.i + 1 : thing.head.i + 7]]
    clause = next((at for at, word in enumerate(after) if word in (",", ".", "and")), len(after))
    last = after[clause - 1] if clause else ""
    return not SET_BACK.isdisjoint(after[:clause]) or last in _PASSING or after[:2] == _IN_BACK


def is_of_it(noun: Word, subject: Word, before: Word) -> bool:
    """Whether a noun's own words say that it is in or on what is named right before: "with people
    on it", but not "girls with a plane above them"."""
    for word in below(noun):
        if word.lower_ in _INSIDE:
            far = word.head.lower_ in _ROUND and word.lower_ == "them"
            # "a person skiing down a hill with trees behind them"
            return not (far and (subject.tag_[-1] == "S" or before.tag_[-1] != "S"))
    return False


def is_beside_it(doc: Sequence[Word], noun: Word) -> bool:
    """Whether a phrase ends in where "it" is, which the parser attaches further up: "a dog on a bed
    with a book next to it"."""
    after = [t.lower_ for t in doc[noun.i + 1 : noun.i + 7]]
    if "it" not in after:
        return after[:1] == ["inside"]
    between = after[: after.index("it")]
    return between[-2:] == _NEXT_TO or between[-3:] == _ON_TOP or between[-1:] == ["on"]


def below(token: Word) -> Iterator[Word]:
    """All that depends on what follows a word: "in his hand"."""
    for right in token.rights:
        yield from right.lefts
        yield right
        yield from below(right)
