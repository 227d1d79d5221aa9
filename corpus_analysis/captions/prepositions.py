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
from .names import QUANTIFYING, CaptionWords, Link, NamedThing, NameResolver, end
from .ontology import SOMEBODY
from .prefilter import HAVING, ITSELF, PLACES, SPATIAL
from .subjects import SubjectNoun, Subjects
from .support import Support, is_set_back
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
"""Words after "to the" that name a place; "to the edge of" is a direction."""
_ONES = frozenset(("one", "ones", "another", "other"))
"""Pronouns of things named before."""
_PAINTED = frozenset("painted printed drawn written".split())
"""Verbs of things that are only an image on something."""
_FAR = 12
"""Most words between "has" and "on it"."""
_MAX_RELATION = 5
"""Most words in a relation: "on the left side of"."""


class Prepositions:
    """The rules of prepositions for one ontology."""

    def __init__(self, resolver: NameResolver) -> None:
        self._resolver = resolver
        self._subjects = Subjects(resolver)
        self._support = Support(resolver)

    def of_preposition(self, doc: CaptionWords, token: Word) -> Iterator[Link]:
        """Links the object of a spatial preposition to each noun that the phrase modifies."""
        above = above_of(doc, token)
        if not _is_spatial(token, above):
            return
        target = self._cut_off_name(doc, _in_field(doc, token, object_of(token)))
        if target is not None and target.lower_ in ITSELF:
            yield from self._things_on_it(doc, token)
        if target is None or not _says_place(doc, token, above, target):
            return
        second = self._first_named(doc, target)
        if second is None:
            return
        subject = self._subjects.by_tree(doc, token, second)
        subject = subject or self._subjects.right_before(doc, token)
        if subject is None:
            return
        subject = self._subjects.resolve_subject(doc, token, subject, second)
        if subject is None:
            return
        glasses = second.head.lower_ == "glasses" and second.entity.name == "glass"
        if token.lower_ == "with" and glasses and subject[1].entity.animate:
            second = self._resolver.as_kind(second, "eyeglasses", second.begin)
        yield from self._links(doc, token, subject, second)

    def _links(
        self, doc: CaptionWords, token: Word, subject: SubjectNoun, second: NamedThing
    ) -> Iterator[Link]:
        """Links an object to its subject, to those that share the phrase, and to their support."""
        first, relation = subject[1], _relation(doc, token)
        upper = self._support.upper(doc, token, first)
        if upper is not None:
            yield upper, second, "preposition", relation
            return
        if not _places_both(first, second, relation, token):
            return
        for sharer in self._sharing(doc, token, subject, second):
            yield sharer, second, "preposition", relation
        yield first, second, "preposition", relation
        start = doc[_relation_start(doc, token)]
        if start.head.i == first.head.i and relation not in ("with", "on", "over", "around"):
            yield from self._things_on_support(doc, first, second, relation)
        support = self._support.of_subject(doc, doc[start.i - 1], first, second, relation)
        if support is not None and support.head.i != second.head.i:
            yield support, second, "preposition", relation
            return
        nearest = self._support.nearest(doc, start, first, second, relation)
        if nearest is not None and _places_both(nearest, second, relation, token):
            yield nearest, second, "preposition", relation

    def _sharing(
        self, doc: CaptionWords, token: Word, subject: SubjectNoun, second: NamedThing
    ) -> Iterator[NamedThing]:
        """The other things that share a phrase: "nuts, corn and apples on a table", but not "a
        woman in a suit and tie with a bag"."""
        noun, first = subject
        joined, of_noun = token.lower_ == "with", above_of(doc, token).tag_ in NOUNS
        root = root_of(noun)
        had = root.dep_ == "pobj" and root.head.lower_ == "with" and not first.entity.animate
        if had or (token.lower_ == "over" and "garment" in second.entity.kinds):
            return  # "a plate with toast and meat next to a cup", "glasses and a coat over a shirt"
        nouns = [*sharing(noun, token)]
        if not nouns and noun.lower_ in QUANTITIES:
            nouns = [*sharing(first.head, token)]  # "a group of men and goats under a tree"
        depicted = root.dep_ == "pobj" and root.head.head.lower_ in DEPICTIONS
        # "a board and a knife, with carrots"
        apart = token.i > 0 and doc[token.i - 1].text == ","
        everyone = (
            apart
            or (joined and is_set_back(doc, second))
            or (not joined and of_noun and (depicted or root.dep_ != "pobj"))
            or noun.dep_ in _ACTORS
        )
        for sharer in nouns:
            also = self._resolver.resolve(doc, sharer)
            if also is None or (joined and of_noun and _is_described(sharer)):
                continue
            people = {also.entity.category, first.entity.category} == {"people"}
            alike = also.entity.animate == first.entity.animate and not of_noun
            if everyone or people or alike:
                yield also

    def _things_on_it(self, doc: CaptionWords, token: Word) -> Iterator[Link]:
        """Things on or near another that has them: "a desk that has two monitors on it"."""
        verbs = (t for t in reversed(doc[max(0, token.i - _FAR) : token.i]) if t.lower_ in HAVING)
        verb = next(verbs, None)
        if verb is None or token.head.lower_ in _PAINTED:
            return
        subject = subject_before(verb)
        first = None if subject is None else self._resolver.resolve(doc, subject)
        if first is None or first.entity.category == "people":
            return
        things = [t for t in verb.rights if t.dep_ == "dobj"]
        for noun in (conjunct for thing in things for conjunct in (thing, *conjuncts(thing))):
            second = self._resolver.resolve(doc, noun) if noun.i < token.i else None
            is_real = second is not None and second.head.lower_ not in DEPICTIONS
            # "a cow has a bird on it", but not "has a tag on it"
            if second is not None and is_real and first.entity.animate <= second.entity.animate:
                yield first, second, "preposition", "with"

    def _things_on_support(
        self, doc: CaptionWords, seat: NamedThing, second: NamedThing, relation: str
    ) -> Iterator[Link]:
        """Things on furniture, which are where that is: "a cup and a pen on a desk near a lamp"."""
        if seat.entity.category in ("people", "animals") or seat.head.dep_ != "pobj":
            return
        if seat.head.head.lower_ not in ("on", "at"):
            return
        subject = noun_above(seat.head, self._resolver.ends_name)
        for noun in () if subject is None else (*sharing(subject, seat.head), subject):
            thing = self._resolver.resolve(doc, noun)
            if thing is not None:
                yield thing, second, "preposition", relation

    def _cut_off_name(self, doc: Sequence[Word], target: Word | None) -> Word | None:
        """A preposition's object, or the name after it that the parser cuts off: "next to a
        bathroom sink"."""
        if target is None or target.i + 1 == len(doc) or target.tag_ != "NN":
            return target
        after = doc[target.i + 1]
        cut = after.tag_ in NOUNS and after.dep_ == "ROOT" and self._resolver.is_name(after)
        return after if cut and not self._resolver.is_name(target) else target

    def _first_named(self, doc: CaptionWords, target: Word) -> NamedThing | None:
        """Entity of a word, or else of the next one joined to it: "with long hair and a hat", but
        not "with a grin holding an apple and a dahlia"."""
        joined = [t for t in target.lefts if t.dep_ == "nmod" and t.tag_ in NOUNS]
        if joined and doc[joined[-1].i + 1].tag_ == "VBG":  # "on a tripod facing a mountain"
            return self._resolver.resolve(doc, joined[-1])
        for noun in joined:  # "with a scooter and tennis racket"
            thing = self._resolver.resolve(doc, noun) if any(noun.rights) else None
            target_thing = self._resolver.resolve(doc, target)
            if thing and target_thing:
                return thing
        for noun in (target, *conjuncts(target)):
            thing = self._resolver.resolve(doc, noun)
            between = doc[target.i + 1 : noun.i]
            if thing is not None and any(t.dep_ == "dobj" for t in between):
                return None
            if thing is not None:
                return thing
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


def _is_spatial(token: Word, above: Word) -> bool:
    """Whether a preposition may say where something is, by its word and the one above it."""
    if token.dep_ == "agent":
        passing = above.lower_ in MOVING and above.tag_ == "VBG"  # "a car passing by a tree"
        return passing or above.lower_ in SURROUNDING | POSTURES
    return token.lower_ in SPATIAL or (token.lower_ in LINKS and is_placing(above))


def _says_place(doc: CaptionWords, token: Word, above: Word, target: Word) -> bool:
    """Whether a preposition says where something is, rather than who made it or what for."""
    word = token.lower_
    if token.head.lower_ in _ONES:
        return False  # "two bears, one with a hat and one with a scarf"
    if word == "on" and token.i and doc[token.i - 1].lower_ == "eye":
        return False  # "keeps a close eye on the ball"
    if is_place(target) and (word != "with" or target.lower_ in PLACES):
        return False  # "with a ball on the right and two cones on the left"
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
        quantified = any(t.dep_ in QUANTIFYING for t in target.lefts)
        return quantified and not target.tag_.startswith("NNP")
    if word in LINKS:
        return above.head.lower_ != "with"  # "with a side of bread"
    return not (is_place(above) and (word == "with" or above.tag_.startswith("VB")))


def _places_both(first: NamedThing, second: NamedThing, relation: str, token: Word) -> bool:
    """Whether a preposition says that the two are there, beside or on each other."""
    subject, target = first.entity, second.entity
    words = relation.split()
    if words[0] in _DIRECTIONS and len(words) > 2 and _BESIDES.isdisjoint(words):
        return False  # "steps to the edge of a table"
    if words[0] == "side" and target.category == "food_kitchen":
        return False  # "a plate with a side of rice"
    if words[0] in ("up", "down"):
        return False  # "rides up the side of a ramp"
    if words[:2] == ["in", "the"] and target.category == "vehicles":
        return False  # "in the back of a truck" is in it
    if subject.category == "animals" and relation == "with" and target.name == "coat":
        return False  # its own
    clause = second.head.head.dep_ == "pcomp" and second.head.dep_ in _ACTORS
    if clause and subject.animate and not target.animate:
        # "sleeping with his phone on", but not "near a wall with pots hanging"
        return any(t.lower_ in POSSESSIVES for t in second.head.lefts)
    if relation in ("on", "with") and subject.animate and target.name in ("door", "window"):
        return False
    if words[0] in ("on", "at") and subject.animate and target.name in GROUNDS:
        return False
    attached = ("lights", "car" if "train" in {subject.name, *subject.kinds} else "lights")
    if relation == "with" and subject.category == "vehicles" and target.name in attached:
        return False  # its own
    if relation == "on" and target.name == SOMEBODY and not any(second.head.lefts):
        return False  # CC3M's word for the name of a place
    if relation == "on" and token.head.lower_ in PLAYED and target.category == "devices_leisure":
        return False  # "plays on a piano"
    flat = target.category == "food_kitchen" or target.name == "paper"
    possessed = any(t.lower_ in ("its", *POSSESSIVES) for t in second.head.lefts)
    if subject.category == "animals" and target.name in SHELLS and possessed:
        return False  # "a turtle spinning on its shell"
    if (
        relation == "on"
        and subject.category == "people"
        and flat
        and token.head.lower_ not in POSTURES
    ):
        return False
    if target.name == "camera" and relation in ("in front of", "back to", "close to", "past"):
        return False  # of the photographer
    if (
        relation == "on"
        and subject.animate
        and not SCREENS.isdisjoint({target.name, *target.kinds})
    ):
        return token.head.lower_ in POSTURES
    return not (target.name in OFFSPRING and subject.category == "animals" and relation == "with")


def _relation(doc: Sequence[Word], token: Word) -> str:
    """The preposition with the words that belong to it: "next to", "to the left of"."""
    return " ".join(doc[i].lower_ for i in range(_relation_start(doc, token), token.i + 1))


def _relation_start(doc: Sequence[Word], token: Word) -> int:
    """Index of the first word of a preposition."""
    if token.dep_ == "conj":
        return token.i  # "on a board and on a ramp"
    start, at = token.i, above_of(doc, token)
    while at.i < start and (is_placing(at) or at.dep_ == "prep"):
        if token.i - at.i >= _MAX_RELATION:
            break
        start, at = at.i, at.head
    return start
