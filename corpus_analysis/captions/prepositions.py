"""Things that a preposition of place, or "with", links."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .attachment import (
    NOUNS,
    POSSESSIVES,
    Word,
    above_of,
    conjuncts,
    is_place,
    is_placing,
    noun_above,
    object_of,
    root_of,
    sharing,
    subject_before,
)
from .names import QUANTIFYING, Link, NamedThing, Names, end
from .ontology import SOMEBODY
from .prefilter import HAVING, ITSELF, PLACES, SPATIAL
from .seats import Seats, is_set_back
from .subjects import Subjects
from .words import (
    DEALING,
    DEPICTIONS,
    DRESSING,
    EATING,
    FIGHTING,
    GROUNDS,
    LINKS,
    MINDING,
    MOVING,
    OFFSPRING,
    PLAYED,
    POSTURES,
    QUANTITIES,
    SCREENS,
    SHELLS,
    SURROUNDING,
    TOSSING,
    WATCHING,
)

_ACTORS = frozenset(("nsubj", "nsubjpass"))
_ACTING = _ACTORS | {"dobj"}
_SEPARATORS = frozenset("-|\u2013\u2014")
"""Between spaces, what ends a field of alt text."""
_DIRECTIONS = frozenset(("to", "from", "onto", "into"))
_BESIDES = frozenset(("left", "right", "side"))
"""What "to the" may be followed by in a place; "to the edge of" is a direction."""
_ONES = frozenset(("one", "ones", "another", "other"))
"""What stands for something named before."""
_PAINTED = frozenset("painted printed drawn written".split())
"""Of what is only an image on something."""
_FAR = 12
"""Most words between "has" and "on it"."""
_MAX_RELATION = 5
"""Most words in a relation: "on the left side of"."""


class Prepositions:
    """The rules of prepositions for one ontology."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._subjects = Subjects(names)
        self._seats = Seats(names)

    def of_preposition(self, doc: Sequence[Word], text: str, token: Word) -> Iterator[Link]:
        """The object of a spatial preposition and each noun that the phrase modifies."""
        word, above = token.lower_, above_of(doc, token)
        if token.dep_ == "agent":
            passing = above.lower_ in MOVING and above.tag_ == "VBG"  # "a car passing by a tree"
            if above.lower_ not in SURROUNDING | POSTURES and not passing:
                return
        elif word not in SPATIAL and not (word in LINKS and is_placing(above)):
            return
        target = self._whole(doc, _in_field(doc, token, object_of(token)))
        if target is not None and target.lower_ in ITSELF:
            yield from self._had(doc, text, token)
        if target is None or not _of_place(token, above, target):
            return
        if token.head.lower_ in _ONES:
            return  # "two bears, one with a hat and one with a scarf"
        if word == "on" and token.i and doc[token.i - 1].lower_ == "eye":
            return  # "keeps a close eye on the ball"
        if is_place(target) and (word != "with" or target.lower_ in PLACES):
            return  # "with a ball on the right and two cones on the left"
        second = self._first_named(doc, text, target)
        if second is None:
            return
        modified = self._subjects.modified(doc, text, token, second)
        modified = modified or self._subjects.before(doc, text, token)
        if modified is None:
            return
        better = self._subjects.better(doc, text, token, *modified, second)
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
        beneath = self._seats.beneath(doc, text, token, first)
        if beneath is not None:
            yield beneath, second, "preposition", relation
            return
        if not _stands(first, second, relation, token):
            return
        # "Nuts, corn and apples on a table", but not "a woman in a suit and tie with a bag"
        root = root_of(subject)
        shown = root.dep_ == "pobj" and root.head.head.lower_ in DEPICTIONS
        list_placed = word != "with" and above.tag_ in NOUNS and (shown or root.dep_ != "pobj")
        had = root.dep_ == "pobj" and root.head.lower_ == "with" and not first.entity.animate
        # "a plate with toast and meat next to a cup", "glasses and a coat over a shirt"
        alone = had or (word == "over" and "garment" in second.entity.kinds)
        others = [*sharing(subject, token)]
        if not others and subject.lower_ in QUANTITIES:
            others = [*sharing(first.head, token)]  # "a group of men and goats under a tree"
        # "a board and a knife, with carrots"
        apart = token.i > 0 and doc[token.i - 1].text == ","
        apart = apart or (word == "with" and is_set_back(doc, second))
        for other in () if alone else others:
            also = self._names.resolve(doc, text, other)
            own = word == "with" and above.tag_ in NOUNS and _is_described(other)
            if also is None or own:
                continue
            people = {also.entity.category, first.entity.category} == {"people"}
            alike = also.entity.animate == first.entity.animate and above.tag_ not in NOUNS
            if list_placed or people or alike or apart or subject.dep_ in _ACTORS:
                yield also, second, "preposition", relation
        yield first, second, "preposition", relation
        start = doc[_start(doc, token)]
        if start.head.i == first.head.i and relation not in ("with", "on", "over", "around"):
            yield from self._seated(doc, text, first, second, relation)
        seat = self._seats.seat(doc, text, doc[start.i - 1], first, second, relation)
        if seat is not None and seat.head.i != second.head.i:
            yield seat, second, "preposition", relation
            return
        last = self._seats.last(doc, text, start, first, second, relation)
        if last is not None and _stands(last, second, relation, token):
            yield last, second, "preposition", relation

    def _had(self, doc: Sequence[Word], text: str, token: Word) -> Iterator[Link]:
        """What a thing has on it or near it: "a desk that has two monitors on it"."""
        verbs = (t for t in reversed(doc[max(0, token.i - _FAR) : token.i]) if t.lower_ in HAVING)
        verb = next(verbs, None)
        if verb is None or token.head.lower_ in _PAINTED:
            return
        subject = subject_before(verb)
        first = None if subject is None else self._names.resolve(doc, text, subject)
        if first is None or first.entity.category == "people":
            return
        things = [t for t in verb.rights if t.dep_ == "dobj"]
        for noun in (one for thing in things for one in (thing, *conjuncts(thing))):
            second = self._names.resolve(doc, text, noun) if noun.i < token.i else None
            shown = second is not None and second.head.lower_ not in DEPICTIONS
            # "a cow has a bird on it", but not "has a tag on it"
            if second is not None and shown and first.entity.animate <= second.entity.animate:
                yield first, second, "preposition", "with"

    def _seated(
        self, doc: Sequence[Word], text: str, seat: NamedThing, second: NamedThing, relation: str
    ) -> Iterator[Link]:
        """What is on furniture is where that is: "a cup and a pen sit on a desk near a lamp"."""
        if seat.entity.category in ("people", "animals") or seat.head.dep_ != "pobj":
            return
        if seat.head.head.lower_ not in ("on", "at"):
            return
        subject = noun_above(seat.head, self._names.ends_name)
        for noun in () if subject is None else (*sharing(subject, seat.head), subject):
            found = self._names.resolve(doc, text, noun)
            if found is not None:
                yield found, second, "preposition", relation

    def _whole(self, doc: Sequence[Word], target: Word | None) -> Word | None:
        """A preposition's object, or the name after it that the parser cuts off: "next to a
        bathroom sink"."""
        if target is None or target.i + 1 == len(doc) or target.tag_ != "NN":
            return target
        after = doc[target.i + 1]
        cut = after.tag_ in NOUNS and after.dep_ == "ROOT" and self._names.is_name(after)
        return after if cut and not self._names.is_name(target) else target

    def _first_named(self, doc: Sequence[Word], text: str, target: Word) -> NamedThing | None:
        """What a word or else the next thing joined to it names: "with long hair and a hat", but
        not "with a grin holding an apple and a dahlia"."""
        joined = [t for t in target.lefts if t.dep_ == "nmod" and t.tag_ in NOUNS]
        if joined and doc[joined[-1].i + 1].tag_ == "VBG":  # "on a tripod facing a mountain"
            return self._names.resolve(doc, text, joined[-1])
        for noun in joined:  # "with a scooter and tennis racket"
            found = self._names.resolve(doc, text, noun) if any(noun.rights) else None
            whole = self._names.resolve(doc, text, target)
            if found and whole:
                return found
        for noun in (target, *conjuncts(target)):
            found = self._names.resolve(doc, text, noun)
            between = doc[target.i + 1 : noun.i]
            if found is not None and any(t.dep_ == "dobj" for t in between):
                return None
            if found is not None:
                return found
        return None


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


def _is_described(noun: Word) -> bool:
    """Whether a noun has a phrase of its own: "a woman in a hat and a man with a dog"."""
    return any(t.dep_ == "acl" or t.lower_ in ("with", "in") for t in noun.rights)


def _of_place(token: Word, above: Word, target: Word) -> bool:
    """Whether a preposition says where something is, rather than who made it or what for."""
    word = token.lower_
    if above.lower_ in WATCHING and word in ("on", "over", "around"):
        return False
    if above.lower_ in TOSSING and word == "around":
        return False
    if word in ("against", "over") and (
        above.lower_ in PLAYED | FIGHTING or target.lower_ in ("team", "teams")
    ):
        return False
    if word in ("against", "over") and target.tag_ in ("NNP", "NNPS"):
        return target.text.isupper()  # a match against the Wizards
    if word == "on" and (above.lower_ in EATING | DEALING or above.lower_ == "eye"):
        return False
    if word == "with" and above.lower_ in MINDING:
        return False
    if (
        word == "on"
        and above.lower_ in DRESSING
        and above.tag_ != "VBN"
        and not any(t.dep_ == "dobj" for t in above.rights)
    ):
        return False
    if above.tag_ in NOUNS and is_place(above) and root_of(above).dep_ in _ACTING:
        return False  # "hangs the top of a rock", "likes the front and back of a hat"
    if word == "by" and token.dep_ == "prep":
        if above.dep_ == "acomp":
            return False  # "is amazed by a pizza"
        near = token.i and token.head.i == token.i - 1
        if near and token.head.lower_ in POSTURES | MOVING:
            return True  # "standing by vintage car", "passes by buildings"
        known = any(t.dep_ in QUANTIFYING for t in target.lefts)
        return known and not target.tag_.startswith("NNP")
    if word in LINKS:
        return above.head.lower_ != "with"  # "with a side of bread"
    return not (is_place(above) and (word == "with" or above.tag_.startswith("VB")))


def _stands(first: NamedThing, second: NamedThing, relation: str, token: Word) -> bool:
    """Whether a preposition says that the two are there, beside or on each other."""
    one, other = first.entity, second.entity
    words = relation.split()
    if words[0] in _DIRECTIONS and len(words) > 2 and _BESIDES.isdisjoint(words):
        return False  # "steps to the edge of a table"
    if words[0] == "side" and other.category == "food_kitchen":
        return False  # "a plate with a side of rice"
    if words[0] in ("up", "down"):
        return False  # "rides up the side of a ramp"
    if words[:2] == ["in", "the"] and other.category == "vehicles":
        return False  # "in the back of a truck" is in it
    if one.category == "animals" and relation == "with" and other.name == "coat":
        return False  # its own
    clause = second.head.head.dep_ == "pcomp" and second.head.dep_ in _ACTORS
    if clause and one.animate and not other.animate:
        # "sleeping with his phone on", but not "near a wall with pots hanging"
        return any(t.lower_ in POSSESSIVES for t in second.head.lefts)
    if relation in ("on", "with") and one.animate and other.name in ("door", "window"):
        return False
    if words[0] in ("on", "at") and one.animate and other.name in GROUNDS:
        return False
    parts = ("lights", "car" if "train" in {one.name, *one.kinds} else "lights")
    if relation == "with" and one.category == "vehicles" and other.name in parts:
        return False  # its own
    if relation == "on" and other.name == SOMEBODY and not any(second.head.lefts):
        return False  # CC3M's word for the name of a place
    if relation == "on" and token.head.lower_ in PLAYED and other.category == "devices_leisure":
        return False  # "plays on a piano"
    flat = other.category == "food_kitchen" or other.name == "paper"
    own = any(t.lower_ in ("its", *POSSESSIVES) for t in second.head.lefts)
    if one.category == "animals" and other.name in SHELLS and own:
        return False  # "a turtle spinning on its shell"
    if relation == "on" and one.category == "people" and flat and token.head.lower_ not in POSTURES:
        return False
    if other.name == "camera" and relation in ("in front of", "back to", "close to", "past"):
        return False  # of the photographer
    if relation == "on" and one.animate and not SCREENS.isdisjoint({other.name, *other.kinds}):
        return token.head.lower_ in POSTURES
    return not (other.name in OFFSPRING and one.category == "animals" and relation == "with")


def _relation(doc: Sequence[Word], token: Word) -> str:
    """The preposition with the words that belong to it: "next to", "to the left of"."""
    return " ".join(doc[i].lower_ for i in range(_start(doc, token), token.i + 1))


def _start(doc: Sequence[Word], token: Word) -> int:
    """Where the words of a preposition begin."""
    if token.dep_ == "conj":
        return token.i  # "on a board and on a ramp"
    start, at = token.i, above_of(doc, token)
    while at.i < start and (is_placing(at) or at.dep_ == "prep"):
        if token.i - at.i >= _MAX_RELATION:
            break
        start, at = at.i, at.head
    return start
