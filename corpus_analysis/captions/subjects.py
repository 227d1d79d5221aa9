"""Subjects of prepositional phrases, where the tree alone misleads."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from .attachment import (
    NOUNS,
    POSSESSIVES,
    Word,
    above_of,
    conjuncts,
    is_place,
    noun_above,
    root_of,
    subject_of,
)
from .names import BEFORE_NOUNS, QUANTIFYING, CaptionWords, NamedThing, NameResolver
from .support import SURFACES, Support, below, is_beside_it, is_of_it, is_set_back, place_start
from .words import (
    ALOFT,
    ALONE,
    CLOTHES,
    COLORS,
    DEPICTIONS,
    FILLING,
    FLYING,
    LINKS,
    POSTURES,
    PUT_DOWN,
    PUTTING,
    SCREENS,
    TEAMING,
    WEARING,
)

_GROWING = frozenset(("leaf", "flower", "fruit"))
_ROOMS = frozenset("room bedroom bathroom kitchen office classroom library".split())
_AIMS = frozenset(("at", "for", "to", "toward", "towards", "after"))
_CUTLERY = frozenset(("fork", "knife", "spoon", "chopstick", "cutlery", "utensil", "spatula"))
_EATING = frozenset("eat eats eating cut cuts cutting slice slices slicing stir stirring".split())
"""Verbs of people with cutlery and food."""
_VESSELS = frozenset(
    "basket bowl plate tray cup mug glass jar box bag crate bucket pot pan".split()
)
"""Vessels of food: "a rabbit holding a basket with eggs"."""
_NEAREST = frozenset(("with", "between"))
"""Prepositions about the noun before them and nothing further up: "clashes between police"."""
_ON = frozenset("on by over around against among".split())
"""Prepositions that may say where an act ends: "puts lights on a tree"."""
_FEATS = frozenset("trick tricks stunt stunts jump jumps nap grind ride rides".split())
"""Deeds done in a place: "a man doing a trick on his board"."""
_CARRIED = frozenset(
    "umbrella bag luggage suitcase basket bucket book newspaper magazine bouquet shovel broom "
    "stick rope gun sword towel cane".split()
)
"""Belongings that come along to any place: "people on a sidewalk with umbrellas"."""
_SEATING = frozenset(("couch", "bed", "chair", "bench", "armchair"))
"""Seats of those who do something: "a cat chewing something on a couch"."""
_MADE_AS = frozenset("set dressed used designed arranged disguised decorated".split())
"""Before "as something" that a thing is only made to be."""
_MAX_PLACES = 3
"""Most nouns of places that a phrase is about before the thing: "in view in a room"."""
_OWN = POSSESSIVES | {"him"}


SubjectNoun = tuple[Word, NamedThing]
"""A noun, and the entity that it names."""


class Subjects:
    """Rules for the subject of a phrase, for one ontology."""

    def __init__(self, resolver: NameResolver) -> None:
        self._resolver = resolver
        self._support = Support(resolver)

    def by_tree(self, doc: CaptionWords, token: Word, second: NamedThing) -> SubjectNoun | None:
        """The noun that a prepositional phrase modifies by the tree, and what it names."""
        above = above_of(doc, token)
        subject = _put_object(token, above, second)
        in_role = above.dep_ == "pobj" and above.head.lower_ == "as"
        if token.lower_ == "with" and in_role and above.head.head.lower_ in _MADE_AS:
            above = above.head  # "a desk set up as an office with a laptop"
        if subject is None:
            subject = subject_of(above, self._resolver.ends_name) or _mistagged_subject(doc, token)
        if subject is None:
            return None
        thing = self._resolver.resolve(doc, subject)
        if thing is None and subject.lower_ in COLORS:  # "brown and white dog sitting"
            subject = next((t for t in conjuncts(subject) if t.tag_ in NOUNS), subject)
            thing = self._resolver.resolve(doc, subject)
        if thing is not None:
            return subject, thing
        rides = second.entity.category == "vehicles" and token.lower_ == "on"
        seated = second.entity.name in _SEATING and subject.head.lower_ not in PUTTING
        rides = rides or seated or subject.lower_ in _FEATS
        inner = subject.dep_ in ("pobj", "conj") or (
            subject.dep_ == "dobj" and (rides or token.lower_ not in _ON)
        )
        if not inner:
            return None
        inner_word = subject.lower_
        # "a woman with long hair next to a bird", "a man covering his eyes near a dog"
        aloft = token.lower_ == "between" and subject.lower_ in ALOFT
        further = aloft or token.lower_ not in _NEAREST
        for climbed in range(_MAX_PLACES):
            subject = noun_above(subject, self._resolver.ends_name)
            thing = None if subject is None else self._resolver.resolve(doc, subject)
            if subject is None or thing is not None or (further and climbed):
                break
        if subject is None or thing is None:
            return None
        if further or (token.lower_ == "with" and is_set_back(doc, second)):
            return subject, thing
        return (subject, thing) if _is_company(thing, inner_word, token, second) else None

    def right_before(self, doc: CaptionWords, token: Word) -> SubjectNoun | None:
        """The lifeless thing right before a place, where what the tree says is unknown: "a room
        filled with furniture next to a window"."""
        start = place_start(token)
        noun = doc[start.i - 1] if start.i else token
        if token.lower_ in _NEAREST or noun.tag_ not in NOUNS or noun.head.tag_ in NOUNS:
            return None
        thing = self._resolver.resolve(doc, noun)
        return None if thing is None or thing.entity.animate else (noun, thing)

    def resolve_subject(
        self, doc: CaptionWords, token: Word, subject: SubjectNoun, second: NamedThing
    ) -> SubjectNoun | None:
        """The true subject of a phrase, given the one that the tree says; None if it is unknown."""
        if subject[1].entity.animate:
            return self._lifeless_instead(doc, token, subject, second)
        vessel = self._vessel(doc, token, subject[0], second)
        return vessel or self._lifeless_subject(doc, token, subject, second)

    def _lifeless_subject(
        self, doc: CaptionWords, token: Word, subject: SubjectNoun, second: NamedThing
    ) -> SubjectNoun | None:
        """A lifeless subject, the thing beside the phrase that it gives way to, or its owner."""
        noun, first = subject
        if token.lower_ == "with" and second.entity.category == "food_kitchen":
            used = second.entity.name in _CUTLERY
            if used and noun.dep_ == "dobj" and noun.head.lower_ in _EATING:
                return None  # "eating pizza with a knife and fork"
            if not used and first.entity.name in _VESSELS:
                return subject  # "a farmer carrying a crate with vegetables"
        eaten = first.entity.category == "food_kitchen" and noun.head.lower_ == "with"
        owner = noun.head.head
        had = noun.dep_ == "pobj" and noun.head.lower_ == "with" and owner.tag_ in NOUNS
        if token.dep_ == "agent" and had:  # "a house with a door surrounded by trees"
            around = self._resolver.resolve(doc, owner)
            return subject if around is None else (owner, around)
        put = token.head.lower_ in PUTTING | FILLING and not is_place(token.head)
        put = put or _put_object(token, above_of(doc, token), second) is not None
        if (token.head.tag_ == "VBN" and not eaten) or put:
            return subject  # but "a salad with nuts arranged on a plate"
        furniture = self._support.furniture_before(doc, token, noun, second)
        if furniture is not None:
            return furniture
        before = doc[token.i - 1]
        unknown = before.tag_ in NOUNS and self._resolver.resolve(doc, before) is None
        room = before.dep_ == "pobj" and before.head.lower_ == "in" and not is_set_back(doc, second)
        # "a motorcycle in a lot with cars"
        room = room and not first.entity.category == second.entity.category == "vehicles"
        on_it = room and before.lower_ in _ROOMS and is_beside_it(doc, second.head)
        if on_it and first.entity.category == "furniture":
            return subject  # "a desk in a room with a monitor on it"
        if token.lower_ == "with" and unknown and (room or is_of_it(second.head, noun, before)):
            return None  # "a fridge in a kitchen with tiles", "near a rock with people on it"
        return self._owner_instead(doc, token, subject, second)

    def _owner_instead(
        self, doc: CaptionWords, token: Word, subject: SubjectNoun, second: NamedThing
    ) -> SubjectNoun | None:
        """The thing or living being that a phrase is about where the parser chose what it is on,
        in, holds or wears.

        "A man waiting for a train with a phone in his hand", "a dog on a bed next to a teddy bear",
        "a woman in a hat with a dog", "people wearing helmets standing next to bikes".
        """
        noun, first = subject
        above = noun_above(noun, self._resolver.ends_name)
        owner = None if above is None else self._resolver.resolve(doc, above)
        if above is None or owner is None:
            clad = noun.dep_ == "pobj" and noun.head.lower_ == "in"
            acts = token.head.dep_ in ("acl", "advcl") and token.head.tag_ == "VBG"
            if second.entity.animate and token.lower_ == "with" and noun.head.lower_ in _AIMS:
                return None  # "a player battles for the ball with a player"
            # "a platypus in a jacket standing on a stump", where the platypus isn't known
            return None if clad and acts and first.entity.category == "everyday" else subject
        held = noun.head.head.lower_ == "full"  # "a vase full of flowers on a desk"
        if token.lower_ not in ("with", "above", "over"):
            held = held or root_of(noun).head.lower_ == "with"
        alike = first.entity.category == owner.entity.category != "vehicles"
        if held and (alike or first.entity.category in ("everyday", "devices_leisure")):
            vessel = self._vessel(doc, token, above, second)
            return vessel or (above, owner)  # "a present with a ribbon to the left of a tree"
        if token.lower_ == "with" and noun.dep_ == "pobj" and is_set_back(doc, second):
            return above, owner  # "a car in front of a shop with a man standing by"
        if not owner.entity.animate:
            return subject
        drawn = owner.entity.category == "animals" and second.entity.category == "people"
        if drawn and token.lower_ == "with" and first.entity.category == "vehicles":
            return subject  # "a horse pulling a cart with people"
        return (above, owner) if _is_about_owner(token, subject, second) else subject

    def _vessel(
        self, doc: CaptionWords, token: Word, food: Word, second: NamedThing
    ) -> SubjectNoun | None:
        """Vessel of food that is somewhere, or with what nobody eats: "a plate of donuts with a
        person"."""
        eaten = second.entity.category == "food_kitchen" and second.entity.name not in _CUTLERY
        if second.entity.name in _CUTLERY:
            food = root_of(food)  # "a bowl of noodles and meat with a fork"
        if (eaten and token.lower_ == "with") or food.dep_ != "pobj" or food.head.lower_ != "of":
            return None
        thing = self._resolver.resolve(doc, food.head.head)
        held = thing is not None and thing.entity.name in _VESSELS and thing.head.i != food.i
        return (food.head.head, thing) if thing is not None and held else None

    def _lifeless_instead(
        self, doc: CaptionWords, token: Word, chosen: SubjectNoun, second: NamedThing
    ) -> SubjectNoun | None:
        """The lifeless thing that a phrase is about where the parser chose who acts; None if that
        is not known.

        "A man blows out candles on a cake", "a woman behind a table with carrots on it", "a cow
        next to a tree with red leaves", "a woman shows her bagel with cheese".
        """
        people, target = chosen[1].entity.category == "people", second.entity
        before = doc[token.i - 1]
        of_it = people and (
            is_of_it(second.head, chosen[0], before) or is_beside_it(doc, second.head)
        )
        on_top = target.category == "food_kitchen" or target.name in SURFACES
        if token.lower_ == "on" and people and on_top and token.head.lower_ not in POSTURES:
            objects = (t for t in token.head.rights if t.dep_ == "dobj" and t.i < token.i)
            before = next(objects, before)
        elif token.lower_ != "with" or before.tag_ not in NOUNS or before.i == chosen[0].i:
            return chosen
        thing = self._resolver.resolve(doc, before) if before.tag_ in NOUNS else None
        growing = target.name in _GROWING or "flower" in target.kinds
        if thing is None or thing.entity.animate:
            if thing is not None and people and target.animate:
                # "people riding horses with dogs behind them", "a pony with a boy riding on it"
                after = [t.lower_ for t in doc[second.head.i + 1 : second.head.i + 4]]
                ridden = any(on == "on" and it in ("it", "its") for on, it in pairwise(after))
                return (before, thing) if ridden else chosen
            return None if of_it or (growing and not people) else chosen
        eaten = thing.entity.category == "food_kitchen" and (
            target.name == "candle"
            or (target.category == "food_kitchen" and target.name not in _CUTLERY)
        )
        contains = thing.entity.name in _VESSELS and target.category == "food_kitchen"
        contains = contains and target.name not in _CUTLERY
        contains = contains or (thing.entity.category == "vehicles" and target.name == "trailer")
        on_top = token.lower_ == "on"
        return (before, thing) if of_it or growing or eaten or contains or on_top else chosen


def _is_company(owner: NamedThing, inner: str, token: Word, second: NamedThing) -> bool:
    """Whether something is with who is named further up, rather than with the noun between."""
    if owner.entity.category == second.entity.category == "vehicles" and token.lower_ == "with":
        return True
    if owner.entity.animate:
        if second.entity.animate and token.lower_ == "with":
            return True
        # "poses for a photo with her bat"
        posed = inner in DEPICTIONS
        if posed and any(t.lower_ in POSSESSIVES for t in second.head.lefts):
            return True
    if owner.entity.category != "people":
        return False
    carried = second.entity.name in _CARRIED or "bag" in second.entity.kinds
    return carried or inner in CLOTHES or second.entity.category in ("devices_leisure", "animals")


def _is_about_owner(token: Word, subject: SubjectNoun, second: NamedThing) -> bool:
    """Whether a phrase after what somebody is on, in, holds or wears is about that somebody."""
    noun, first = subject
    category, target = first.entity.category, second.entity
    joined = token.lower_ == "with"
    if category in ("furniture", "vehicles"):
        if target.animate or target.category == "devices_leisure":
            return True
        if target.category == "food_kitchen" and "chair" in first.entity.name:
            return True  # "a toddler in a high chair with a cake"
    if any(t.lower_ in _OWN for t in below(second.head)):
        return True  # "with a phone in his hand"
    if category == "food_kitchen" and target.animate:
        return True
    if joined and noun.head.lower_ in _AIMS and not is_place(noun.head.head):
        return True  # "waiting for a train with a phone"
    beside = joined and noun.head.lower_ in LINKS  # "a cow next to a tree with leaves"
    if category == "everyday" and noun.dep_ in ("pobj", "conj", "dobj") and not beside:
        return True
    if joined:
        return False
    if first.entity.name in SCREENS and noun.head.lower_ == "on":
        return True  # "on a phone next to a man"
    held = category in ("food_kitchen", "devices_leisure") and noun.dep_ == "dobj"
    return held and token.lower_ != "on"


def _put_object(token: Word, above: Word, second: NamedThing) -> Word | None:
    """The object of a verb, where a phrase says where it is put, or with what it comes."""
    verb = above
    if above.lower_ == "top":
        verb = above.head.head  # "pouring wine on top of"
    elif is_place(above) and above.tag_ not in NOUNS:
        verb = above.head
    put = verb.lower_ in PUTTING | PUT_DOWN and (
        verb.i != above.i or token.lower_ in ("on", "over", "above", "near", "beside")
    )
    put = put and not (verb.lower_ in FLYING and token.lower_ in ("near", "beside", "to"))
    worn = not second.entity.kinds.isdisjoint(("garment", "jewelry", "shoe", "headdress"))
    filled = verb.lower_ in FILLING | TEAMING and not second.entity.animate
    filled = filled or (verb.lower_ in WEARING and worn)
    put = put or (token.lower_ in ("over", "on") and filled)  # "wearing a coat over a dress"
    if verb.tag_ in NOUNS or not (put or (token.lower_ == "with" and filled)):
        return None
    return next((t for t in verb.rights if t.dep_ == "dobj" and t.i < token.i), None)


def _mistagged_subject(doc: Sequence[Word], token: Word) -> Word | None:
    """Subject of a phrase if the tagger took a caption's first word for a verb: "engaged couple
    on a bench", "framed picture above a sofa"."""
    first = token.head
    if first.i == 0 and first.lower_ in DEPICTIONS:
        return first  # "drawing of a woman with a hat"
    # "resting gulls on a dock", "smiling family with a dog"
    resting = first.tag_ == "VBG" and first.lower_ in POSTURES | ALONE
    if first.i or not (resting or first.tag_ in ("VBN", "VBD", "VB")):
        return None
    nouns = [t for t in first.rights if t.dep_ == "dobj" and t.i < token.i]
    direct = len(nouns) == 1 and all(t.tag_ in BEFORE_NOUNS for t in doc[1 : nouns[0].i])
    bare = direct and not any(t.dep_ in QUANTIFYING for t in nouns[0].lefts)
    return nouns[0] if bare else None
