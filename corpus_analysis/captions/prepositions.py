"""Things that a preposition of place, or "with", links."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .attachment import (
    NOUNS,
    POSSESSIVES,
    Word,
    conjuncts,
    is_place,
    listed,
    noun_above,
    object_of,
    sharing,
    subject_of,
)
from .names import BEFORE_NOUNS, QUANTIFYING, Link, NamedThing, Names, end
from .one_thing import heads_both
from .prefilter import SPATIAL
from .words import (
    ALOFT,
    DEALING,
    DRESSING,
    EATING,
    FIGHTING,
    FILLED,
    FILLING,
    LINKS,
    MINDING,
    MOVING,
    OFFSPRING,
    PLAYED,
    POSTURES,
    PUTTING,
    SCREENS,
    SHELLS,
    SURROUNDING,
    WATCHING,
)

_ACTING = frozenset(("dobj", "nsubj", "nsubjpass"))
_GROWING = frozenset(("leaf", "flower", "fruit"))
_AIMS = frozenset(("at", "for", "to", "toward", "towards", "after"))
_SURFACES = frozenset(("table", "desk", "counter", "shelf", "tripod", "stove", "cabinet"))
_CUTLERY = frozenset(("fork", "knife", "spoon", "chopstick", "cutlery", "utensil", "spatula"))
_NEAREST = frozenset(("with", "between"))
"""Prepositions about the noun before them and nothing further up: "clashes between police"."""
_SEPARATORS = frozenset("-|\u2013\u2014")
"""Between spaces, what ends a field of alt text."""
_ON = frozenset("on by over around against among".split())
"""Prepositions that may say where an act ends: "puts lights on a tree"."""
_INSIDE = frozenset(("it", "inside", "them"))
"""Of what is right before, where a phrase ends so: "a car with a child inside"."""
_DIRECTIONS = frozenset(("to", "from", "onto", "into"))
_BESIDES = frozenset(("left", "right", "side"))
"""What "to the" may be followed by in a place; "to the edge of" is a direction."""
_MAX_RELATION = 5
"""Most words in a relation: "on the left side of"."""


class Prepositions:
    """The rules of prepositions for one ontology."""

    def __init__(self, names: Names) -> None:
        self._names = names

    def of_particle(self, doc: Sequence[Word], text: str, token: Word) -> Iterator[Link]:
        """Who moves past what, where the parser takes the preposition for the verb's particle: "a
        train is passing over a bridge"."""
        verb = token.head
        if token.lower_ not in SPATIAL or verb.lower_ not in MOVING:
            return
        target = next((t for t in verb.rights if t.dep_ == "dobj" and t.i > token.i), None)
        subject = subject_of(verb, self._names.ends_name)
        if target is None or subject is None:
            return
        first, second = (
            self._names.resolve(doc, text, subject),
            self._names.resolve(doc, text, target),
        )
        if first is not None and second is not None:
            yield first, second, "preposition", token.lower_

    def of_preposition(self, doc: Sequence[Word], text: str, token: Word) -> Iterator[Link]:
        """The object of a spatial preposition and each noun that the phrase modifies."""
        word, above = token.lower_, _above(doc, token)
        if token.dep_ == "agent":
            if above.lower_ not in SURROUNDING | POSTURES:
                return
        elif word not in SPATIAL and not (word in LINKS and _is_placing(above)):
            return
        target = _in_field(doc, token, object_of(token))
        if target is None or not _of_place(token, above, target):
            return
        if word == "on" and token.i and doc[token.i - 1].lower_ == "eye":
            return  # "keeps a close eye on the ball"
        if is_place(target):
            return  # "with a ball on the right and two cones on the left"
        second = self._first_named(doc, text, target)
        modified = None if second is None else self._modified(doc, text, token, second)
        if second is None or modified is None:
            return
        better = self._better(doc, text, token, *modified, second)
        if better is None:
            return
        subject, first = better
        if (
            word == "with"
            and second.head.lower_ == "glasses"
            and second.entity.name == "glass"
            and first.entity.animate
        ):
            second = self._names.as_kind(second, "eyeglasses", second.begin)
        relation = _relation(doc, token)
        beneath = self._beneath(doc, text, token, first)
        if beneath is not None:
            yield beneath, second, "preposition", relation
            return
        if not _stands(first, second, relation, token):
            return
        # "Nuts, corn and apples on a table", but not "a woman in a suit and tie with a bag"
        root = _root(subject)
        list_placed = word != "with" and above.tag_ in NOUNS and root.dep_ != "pobj"
        had = root.dep_ == "pobj" and root.head.lower_ == "with" and not first.entity.animate
        # "a plate with toast and meat next to a cup", "glasses and a coat over a shirt"
        alone = had or (word == "over" and "garment" in second.entity.kinds)
        for other in () if alone else sharing(subject, token):
            also = self._names.resolve(doc, text, other)
            if also is None or (token.head.dep_ == "acl" and _in_act(other)):
                continue  # "a truck parked next to a car and a van parked by a house"
            people = {also.entity.category, first.entity.category} == {"people"}
            alike = also.entity.animate == first.entity.animate and above.tag_ not in NOUNS
            if list_placed or people or alike or subject.dep_ in ("nsubj", "nsubjpass"):
                yield also, second, "preposition", relation
        yield first, second, "preposition", relation
        if word == "with" and above.lower_ in FILLED:
            for noun in listed(second.head):  # "a plate topped with broccoli, meat and rice"
                later = self._names.resolve(doc, text, noun)
                if later is not None:
                    yield first, later, "preposition", relation

    def _first_named(self, doc: Sequence[Word], text: str, target: Word) -> NamedThing | None:
        """What a word or else the next thing joined to it names: "with long hair and a hat", but
        not "with a grin holding an apple and a dahlia"."""
        joined = [t for t in target.lefts if t.dep_ == "nmod" and t.tag_ in NOUNS]
        for noun in joined:  # "with a scooter and tennis racket"
            found = self._names.resolve(doc, text, noun) if any(noun.rights) else None
            whole = self._names.resolve(doc, text, target)
            if found and whole and not heads_both(self._names, doc, text, found, whole):
                return found
        for noun in (target, *conjuncts(target)):
            found = self._names.resolve(doc, text, noun)
            between = doc[target.i + 1 : noun.i]
            if found is not None and any(t.dep_ == "dobj" for t in between):
                return None
            if found is not None:
                return found
        return None

    def _beneath(
        self, doc: Sequence[Word], text: str, token: Word, first: NamedThing
    ) -> NamedThing | None:
        """What stands on another, of two phrases with "on": the plate in "it is on a plate on a
        table"."""
        before = doc[token.i - 1]
        if token.lower_ != "on" or first.entity.animate or before.dep_ != "pobj":
            return None
        if before.head.lower_ not in ("on", "in") or before.head.i < first.head.i:
            return None
        found = self._names.resolve(doc, text, before)
        return None if found is None or found.entity.animate else found

    def _modified(
        self, doc: Sequence[Word], text: str, token: Word, second: NamedThing
    ) -> tuple[Word, NamedThing] | None:
        """The noun that a prepositional phrase modifies by the tree, and what it names."""
        above = _above(doc, token)
        subject: Word | None = None
        put = token.lower_ in ("on", "over", "above") and above.lower_ in PUTTING
        filled = token.lower_ == "with" and above.lower_ in FILLING and not second.entity.animate
        if above.tag_ not in NOUNS and (put or filled):
            subject = next((t for t in above.rights if t.dep_ == "dobj" and t.i < token.i), None)
        if subject is None:
            subject = subject_of(above, self._names.ends_name) or _mistaken(doc, token)
        if subject is None:
            return None
        found = self._names.resolve(doc, text, subject)
        rides = second.entity.category == "vehicles" and token.lower_ == "on"
        inner = subject.dep_ in ("pobj", "conj") or (
            subject.dep_ == "dobj" and (rides or token.lower_ not in _ON)
        )
        aloft = token.lower_ == "between" and subject.lower_ in ALOFT
        if found is None and inner and (aloft or token.lower_ not in _NEAREST):
            # "a woman with long hair next to a bird", "a man covering his eyes near a dog"
            subject = noun_above(subject, self._names.ends_name)
            found = None if subject is None else self._names.resolve(doc, text, subject)
        return None if subject is None or found is None else (subject, found)

    def _better(
        self,
        doc: Sequence[Word],
        text: str,
        token: Word,
        subject: Word,
        first: NamedThing,
        second: NamedThing,
    ) -> tuple[Word, NamedThing] | None:
        """Subject and name, or the living thing that the phrase is about where the parser chose
        what it is on, in, holds or wears.

        "A man waiting for a train with a phone in his hand", "a dog on a bed next to a teddy bear",
        "a woman in a hat with a dog", "people wearing helmets standing next to bikes".
        """
        chosen = subject, first
        outer = self._outer(doc, text, token, second)
        if outer is not None:
            return outer
        if first.entity.animate:
            return self._before(doc, text, token, chosen, second)
        eaten = first.entity.category == "food_kitchen" and subject.head.lower_ == "with"
        put = token.head.lower_ in PUTTING | FILLING and not is_place(token.head)
        if (token.head.tag_ == "VBN" and not eaten) or put:
            return chosen  # but "a salad with nuts arranged on a plate"
        near = self._furniture(doc, text, token, subject)
        if near is not None:
            return near
        before = doc[token.i - 1]
        if token.lower_ == "with" and before.tag_ in NOUNS and before.i != subject.i:
            of_it = any(t.lower_ in _INSIDE for t in _below(second.head))
            if of_it and self._names.resolve(doc, text, before) is None:
                return None  # "a train next to a platform with people on it"
        above = noun_above(subject, self._names.ends_name)
        found = None if above is None else self._names.resolve(doc, text, above)
        if above is None or found is None:
            clad = subject.dep_ == "pobj" and subject.head.lower_ == "in"
            acts = token.head.dep_ in ("acl", "advcl") and token.head.tag_ == "VBG"
            if second.entity.animate and token.lower_ == "with" and subject.head.lower_ in _AIMS:
                return None  # "a player battles for the ball with a player"
            # "a platypus in a jacket standing on a stump", where the platypus isn't known
            return None if clad and acts and first.entity.category == "everyday" else chosen
        holding = subject.head.lower_ == "with" and token.lower_ != "with"
        holding = (
            holding or subject.head.head.lower_ == "full"
        )  # "a vase full of flowers on a desk"
        alike = first.entity.category == found.entity.category
        if holding and (alike or first.entity.category in ("everyday", "devices_leisure")):
            return above, found  # "a present with a ribbon to the left of a tree"
        if not found.entity.animate:
            return chosen
        toy = second.entity.animate or second.entity.category == "devices_leisure"
        seat = first.entity.category in ("furniture", "vehicles") and toy
        own = any(t.lower_ in POSSESSIVES for t in _below(second.head))
        aim = token.lower_ == "with" and subject.head.lower_ in _AIMS
        aim = aim and not is_place(subject.head.head)
        eaten = first.entity.category == "food_kitchen" and second.entity.animate
        worn = subject.dep_ in ("pobj", "conj", "dobj") and first.entity.category == "everyday"
        held = first.entity.category in ("food_kitchen", "devices_leisure")
        if token.lower_ == "with" and subject.head.lower_ in LINKS:
            worn = False  # "a cow next to a tree with leaves"
        worn = worn or (held and subject.dep_ == "dobj" and token.lower_ not in ("with", "on"))
        return (above, found) if seat or own or worn or aim or eaten else chosen

    def _outer(
        self, doc: Sequence[Word], text: str, token: Word, second: NamedThing
    ) -> tuple[Word, NamedThing] | None:
        """The garment right before "over", if it is worn over another: "a man in a jacket over a
        shirt"."""
        before = doc[token.i - 1]
        if token.lower_ != "over" or "garment" not in second.entity.kinds:
            return None
        found = self._names.resolve(doc, text, before) if before.tag_ in NOUNS else None
        worn = found is not None and found.entity.category == "everyday"
        return (before, found) if found is not None and worn else None

    def _furniture(
        self, doc: Sequence[Word], text: str, token: Word, subject: Word
    ) -> tuple[Word, NamedThing] | None:
        """The furniture right before "with" that a lifeless subject stands on, or is joined to.

        "A pizza on a table with magazines", "a fridge and shelves with jars".
        """
        before = doc[token.i - 1]
        if token.lower_ != "with" or before.i == subject.i or before.tag_ not in NOUNS:
            return None
        found = self._names.resolve(doc, text, before)
        if found is None or found.entity.animate:
            return None
        joined = any(one.i == before.i for one in conjuncts(subject))
        return (before, found) if joined or found.entity.category == "furniture" else None

    def _before(
        self,
        doc: Sequence[Word],
        text: str,
        token: Word,
        chosen: tuple[Word, NamedThing],
        second: NamedThing,
    ) -> tuple[Word, NamedThing] | None:
        """The lifeless thing that a phrase is about where the parser chose who acts; None if that
        is not known.

        "A man blows out candles on a cake", "a woman behind a table with carrots on it", "a cow
        next to a tree with red leaves", "a woman shows her bagel with cheese".
        """
        people, what = chosen[1].entity.category == "people", second.entity
        before = doc[token.i - 1]
        of_it = people and any(t.lower_ in _INSIDE for t in _below(second.head))
        on_top = what.category == "food_kitchen" or what.name in _SURFACES
        if token.lower_ == "on" and people and on_top and token.head.lower_ not in POSTURES:
            objects = (t for t in token.head.rights if t.dep_ == "dobj" and t.i < token.i)
            before = next(objects, before)
        elif token.lower_ != "with" or before.tag_ not in NOUNS or before.i == chosen[0].i:
            return chosen
        found = self._names.resolve(doc, text, before) if before.tag_ in NOUNS else None
        growing = what.name in _GROWING or "flower" in what.kinds
        if found is None or found.entity.animate:
            if found is not None and people and what.animate:
                return chosen  # "people riding horses with dogs behind them"
            return None if of_it or (growing and not people) else chosen
        eaten = found.entity.category == "food_kitchen" and (
            what.name == "candle" or (what.category == "food_kitchen" and what.name not in _CUTLERY)
        )
        on_top = token.lower_ == "on"
        return (before, found) if of_it or growing or eaten or on_top else chosen


def _in_field(doc: Sequence[Word], token: Word, target: Word | None) -> Word | None:
    """A preposition's object, or the noun that ends its field where the parser reads on.

    "Necklace with Colorful Beads - Desi Royale".
    """
    if target is None:
        return None
    for word in doc[token.i + 2 : target.i]:
        before = doc[word.i - 1]
        apart = word.text in _SEPARATORS and end(before) < word.idx
        if apart and before.tag_ in NOUNS and not doc[word.i + 1].text[0].islower():
            return before  # but not "a tangerine - orange vinaigrette"
    return target


def _root(noun: Word) -> Word:
    """The first of the words that a noun is joined to."""
    while noun.dep_ == "conj" and noun.head.i != noun.i:
        noun = noun.head
    return noun


def _in_act(noun: Word) -> bool:
    """Whether a noun has a participle of its own."""
    return any(t.dep_ == "acl" for t in noun.rights)


def _mistaken(doc: Sequence[Word], token: Word) -> Word | None:
    """What a phrase is about if the tagger took a caption's first word for a verb: "engaged couple
    on a bench", "framed picture above a sofa"."""
    first = token.head
    resting = first.tag_ == "VBG" and first.lower_ in POSTURES  # "resting gulls on a dock"
    if first.i or not (resting or first.tag_ in ("VBN", "VBD", "VB")):
        return None
    nouns = [t for t in first.rights if t.dep_ == "dobj" and t.i < token.i]
    direct = len(nouns) == 1 and all(t.tag_ in BEFORE_NOUNS for t in doc[1 : nouns[0].i])
    bare = direct and not any(t.dep_ in QUANTIFYING for t in nouns[0].lefts)
    return nouns[0] if bare else None


def _is_placing(token: Word) -> bool:
    """Whether a word and "of" or "to" are a preposition: "in front of", "outside of"."""
    return is_place(token) or token.lower_ == "outside"


def _above(doc: Sequence[Word], token: Word) -> Word:
    """What a preposition attaches to; for "with", the noun right before it rather than its place.

    "To the right of a plate with toast on it", where the parser chose "right".
    """
    before = doc[token.i - 1]
    of = before.head
    placed = before.dep_ == "pobj" and of.lower_ in LINKS and of.head.i == token.head.i
    return before if token.lower_ == "with" and placed and is_place(token.head) else token.head


def _of_place(token: Word, above: Word, target: Word) -> bool:
    """Whether a preposition says where something is, rather than who made it or what for."""
    word = token.lower_
    if above.lower_ in WATCHING and word in ("on", "over", "around"):
        return False
    if word == "against" and above.lower_ in PLAYED | FIGHTING:
        return False
    if word in ("against", "over") and target.tag_ in ("NNP", "NNPS"):
        return target.text.isupper()  # a match against the Wizards
    if word == "on" and (above.lower_ in EATING | PLAYED | DEALING or above.lower_ == "eye"):
        return False
    if word == "with" and (above.lower_ in MINDING or _is_befriending(above)):
        return False
    if (
        word == "on"
        and above.lower_ in DRESSING
        and not any(t.dep_ == "dobj" for t in above.rights)
    ):
        return False
    if above.tag_ in NOUNS and is_place(above) and above.dep_ in _ACTING:
        return False  # "hangs the top of a rock"
    if word == "by" and token.dep_ == "prep":
        known = any(t.dep_ in QUANTIFYING for t in target.lefts) or target.tag_ == "NNS"
        return known and not target.tag_.startswith("NNP")
    if word in LINKS:
        return above.head.lower_ != "with"  # "with a side of bread"
    return not (is_place(above) and (word == "with" or above.tag_.startswith("VB")))


def _is_befriending(verb: Word) -> bool:
    """Whether a verb's object only names what somebody is to be: "make friends with a bear"."""
    made = verb.lower_ in ("make", "makes", "making", "made")
    return made and any(t.lower_ == "friends" for t in verb.rights)


def _below(token: Word) -> Iterator[Word]:
    """All that depends on what follows a word: "in his hand"."""
    for right in token.rights:
        yield from right.lefts
        yield right
        yield from _below(right)


def _stands(first: NamedThing, second: NamedThing, relation: str, token: Word) -> bool:
    """Whether a preposition says that the two are there, beside or on each other."""
    one, other = first.entity, second.entity
    words = relation.split()
    if words[0] in _DIRECTIONS and len(words) > 2 and _BESIDES.isdisjoint(words):
        return False  # "steps to the edge of a table"
    if words[0] in ("up", "down"):
        return False  # "rides up the side of a ramp"
    if second.head.head.dep_ == "pcomp" and one.animate and not other.animate:
        # "sleeping with his phone on", but not "near a wall with pots hanging"
        return any(t.lower_ in POSSESSIVES for t in second.head.lefts)
    if relation in ("on", "with") and one.animate and other.name in ("door", "window"):
        return False
    flat = other.category == "food_kitchen" or other.name == "paper"
    own = any(t.lower_ in ("its", *POSSESSIVES) for t in second.head.lefts)
    if one.category == "animals" and other.name in SHELLS and own:
        return False  # "a turtle spinning on its shell"
    if relation == "on" and one.category == "people" and flat and token.head.lower_ not in POSTURES:
        return False
    if other.name == "camera" and relation in ("in front of", "back to", "close to"):
        return False  # of the photographer
    if relation == "on" and one.animate and not SCREENS.isdisjoint({other.name, *other.kinds}):
        return token.head.lower_ in POSTURES
    young = other.name in OFFSPRING and one.category == "animals"
    return not (young and (relation == "with" or any(t.dep_ == "poss" for t in second.head.lefts)))


def _relation(doc: Sequence[Word], token: Word) -> str:
    """The preposition with the words that belong to it: "next to", "to the left of"."""
    start, at = token.i, _above(doc, token)
    while at.i < start and (_is_placing(at) or at.dep_ == "prep"):
        if token.i - at.i >= _MAX_RELATION:
            break
        start, at = at.i, at.head
    return " ".join(doc[i].lower_ for i in range(start, token.i + 1))
