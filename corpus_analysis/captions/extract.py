"""From a parsed caption to its pairs: coordination and explicit prepositions.

Plain functions over tokens, so that the rules can be tested without a model; spaCy's `Token` has
everything that `Word` names. Labels are those of spaCy's English models.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from .attachment import (
    NOUNS,
    PARTS,
    POSSESSIVES,
    Word,
    conjuncts,
    is_place,
    noun_above,
    sharing,
    subject_of,
)
from .ontology import SOMEBODY, CaptionEntity, Ontology, distinct
from .prefilter import COORDINATORS, PUNCTUATION, SPATIAL, triggered
from .words import (
    ACTING,
    COLORS,
    DEALING,
    DEPICTIONS,
    DRESSING,
    EATING,
    FAKE,
    FIGHTING,
    FIGURES,
    FILLING,
    GAMES,
    GROUPS,
    HUES,
    IDIOMS,
    IMPRINTS,
    LINKS,
    MEATS,
    MINDING,
    MOVING,
    NO_ACTS,
    OFFSPRING,
    PICKING,
    PLAYED,
    POSTURES,
    PRODUCTS,
    PUTTING,
    QUANTITIES,
    SCREENS,
    SETS,
    STUFFED,
    SURROUNDING,
    TITLES,
    TOYS,
    WATCHING,
)

Pattern = Literal["coordination", "preposition"]


@dataclass(frozen=True)
class CaptionMention:
    """One half of a pair, as the caption says it. Offsets are characters of the normalized text."""

    name: str
    """Canonical name of the entity."""
    category: str
    """Category of the entity."""
    head: str
    """The head noun as written."""
    phrase: str
    """The noun phrase up to its head, determiner and quantifier kept: "two brown dogs"."""
    quantifier: str
    """Determiner, number or partitive: "the", "two", "a pair of"; may be empty."""
    start: int
    """Offset where the name starts."""
    end: int
    """Offset where it ends."""


@dataclass(frozen=True)
class CaptionPair:
    """Two entities that a caption links, in mention order."""

    first: CaptionMention
    second: CaptionMention
    pattern: Pattern
    """How they are linked."""
    relation: str
    """The linking words: "and", ",", "next to", "in front of"."""
    sentence: str
    """The sentence that mentions them."""


_QUANTIFYING = frozenset(("det", "nummod", "predet", "poss", "quantmod"))
_MODIFYING = _QUANTIFYING | {"amod", "compound", "nmod", "nounmod", "advmod"}
_SHOWN = frozenset(("ROOT", "nsubj", "nsubjpass", "attr", "appos", "dep"))
"""Where a depiction is the image itself, rather than a thing in it."""
_BEFORE_NOUNS = frozenset("DT PRP$ CD JJ JJR JJS VBN VBD VBG NN NNP HYPH".split())
"""Tags of what may stand between a conjunction and its noun."""
_ACTING = frozenset(("dobj", "nsubj", "nsubjpass"))
_DETERMINERS = frozenset(("DT", "PRP$", "CD"))
_SENTENCE = frozenset(("DT", "PRP$", "NN", "NNS", "VBZ", "VBN", "VBG"))
"""Tags of words that begin with a capital in titles only."""
_MAX_COMMAS = 2
"""Of a list without "and"; longer ones are keywords."""
_AND = frozenset(("and", "&", "+", "or"))
_GROWING = frozenset(("leaf", "flower", "fruit"))
_AIMS = frozenset(("at", "for", "to", "toward", "towards", "after"))
_SURFACES = frozenset(("table", "desk", "counter", "shelf", "tripod", "stove", "cabinet"))
_CUTLERY = frozenset(("fork", "knife", "spoon", "chopstick", "cutlery", "utensil", "spatula"))
_NEAREST = frozenset(("with", "between"))
"""Prepositions about the noun before them and nothing further up: "clashes between police"."""
_ON = frozenset("on by inside over around against among".split())
"""Prepositions that may say where an act ends: "puts lights on a tree"."""
_INSIDE = frozenset(("it", "inside", "them"))
"""Of what is right before, where a phrase ends so: "a car with a child inside"."""
_DIRECTIONS = frozenset(("to", "from", "onto", "into"))
_BESIDES = frozenset(("left", "right", "side"))
"""What "to the" may be followed by in a place; "to the edge of" is a direction."""
_WEIGHT = re.compile(
    r"(?i)(?:\W+[a-z]+){0,2}\W+\d[\d.]*\s?(?:oz|ounces?|k?g|ml|l|lbs?|pounds?|ct|count|pack)\b"
)
"""How much of a product there is, right after its name."""
_MAX_RELATION = 5
"""Most words in a relation: "on the left side of"."""

SPATIAL_WORDS = re.compile(
    r"(?i)(?<![a-z])(left|right|above|below|top|bottom|upper|lower|front|behind|beside|next to|"
    r"between|middle|center|centre|foreground|background)(?![a-z])"
)


def spatial_words(text: str) -> list[str]:
    """The layout words of a caption, lower case, in order, each once.

    >>> spatial_words("Left: a cat. Right: a dog, on the left of a tree")
    ['left', 'right']
    """
    return list(dict.fromkeys(word.lower() for word in SPATIAL_WORDS.findall(text)))


@dataclass(frozen=True)
class _Found:
    """An entity with the tokens that name it."""

    entity: CaptionEntity
    head: Word
    begin: Word
    """First token of the name."""
    quantity: Word | None
    """The partitive noun before it; None if there is none."""
    plain: CaptionEntity
    """What the name alone says, which the prefilter reads: "dog" for a toy dog."""


class _Words(tuple[Word, ...]):
    """The words of one caption, made once: spaCy makes a token anew each time it is asked for."""

    named: dict[int, _Found | None]
    """What `Extractor._resolve` has found so far, by the position of the word."""

    def __init__(self, words: Sequence[Word]) -> None:
        self.named = {}


_Link = tuple[_Found, _Found, Pattern, str]
"""Two mentions, how they are linked, and by which words."""


class Extractor:
    """The extraction rules for one ontology."""

    def __init__(self, ontology: Ontology) -> None:
        self.ontology = ontology
        self._two_words = {
            (*form.before, last)
            for last, forms in ontology.by_last.items()
            for form in forms
            if len(form.before) == 1 and form.entity
        }

    def pairs(self, doc: Sequence[Word], text: str) -> list[CaptionPair]:
        """Every pair of one parsed caption; `text` is what was parsed.

        A pair is two nouns of the ontology, neither a kind of the other, linked both by the tree
        and by a trigger in the text between them. CC3M writes "person" for somebody's name, so
        "person and groom" are two.
        """
        doc = _Words(doc)
        found: list[CaptionPair] = []
        joined: set[int] = set()  # heads that a coordination has linked to what is before
        for links in (self._by_tree(doc, text), self._by_place(doc, text, joined)):
            for first, second, pattern, relation in links:
                if (
                    first.head.i < second.head.i
                    and (_differ(first, second) or _somebody(first, second, relation))
                    and triggered(
                        text[_end(first.head) : second.head.idx], text[_end(second.head) :]
                    )
                ):
                    if pattern == "coordination":
                        joined.add(second.head.i)
                    sentence = _sentence(text, second.head)
                    halves = _mention(text, first), _mention(text, second)
                    found.append(CaptionPair(*halves, pattern, relation, sentence))
        return found

    def mentions(self, doc: Sequence[Word], text: str) -> list[CaptionMention]:
        """Every entity that a parsed text names, linked to another or not, in order.

        Each noun counts once; "no dog" names none.
        """
        doc = _Words(doc)
        found: dict[int, _Found] = {}
        for token in doc:
            if token.lower_ in self.ontology.by_last:
                one = self._resolve(doc, text, token)
                if one is not None:
                    found.setdefault(one.head.i, one)
        return [_mention(text, found[at]) for at in sorted(found)]

    def _by_tree(self, doc: Sequence[Word], text: str) -> Iterator[_Link]:
        """What the tree links."""
        for token in doc:
            link = token.dep_
            if link == "conj" or (link == "appos" and _listed(token)):
                yield from self._coordination(doc, text, token)
            elif link in ("prep", "agent"):
                yield from self._preposition(doc, text, token)
            elif link == "nmod":
                yield from self._slash(doc, text, token)
            elif link == "prt":
                yield from self._particle(doc, text, token)

    def _by_place(self, doc: Sequence[Word], text: str, joined: set[int]) -> Iterator[_Link]:
        """Names with only a conjunction between them, which the tree links to nothing.

        "A white dress and brown boots", where the parser makes "brown" the conjunct. The subject of
        a verb begins a clause: "a man is on a bench and a dog lies below".
        """
        for token in doc:
            if (
                token.lower_ not in self.ontology.by_last
                or token.i in joined
                or not _is_noun(doc, token)
                or (
                    (token.dep_ == "compound" and not _ends_field(doc, token))
                    and not _in_set(doc, token)
                )
            ):
                continue
            second = self._resolve(doc, text, token)
            conjunction = None if second is None else self._conjunction(doc, second.begin)
            if second is None or conjunction is None or second.head.i != token.i:
                continue
            if _is_choice(conjunction.lower_, second):
                continue
            at = conjunction.i - 1
            before = doc[at - 1] if doc[at].text == "," and at else doc[at]
            own = before.dep_ == "nmod" and before.head.i == token.i
            clause = token.dep_ in ("nsubj", "nsubjpass")
            if before.tag_ not in NOUNS or ((clause or _unseen(before)) and not own):
                continue
            first = self._resolve(doc, text, before)
            if conjunction.text == "," and before.lower_ in QUANTITIES:
                continue  # "a couple, a man and a woman"
            if (
                first is None
                or first.head.i != before.i
                or self._heads_both(doc, text, first, second)
            ):
                continue
            past = token.head.tag_ == "VBD" and token.head.i == token.i - 1
            if past and first.entity.category != second.entity.category:
                continue  # "a jacket and checkered dress", but not "on a bench and played guitar"
            one = _one_person(doc, first, second) or _one_dish(doc, first, second)
            if not one and not _is_flavor(text, first, second):
                yield first, second, "coordination", conjunction.lower_

    def _conjunction(self, doc: Sequence[Word], name: Word) -> Word | None:
        """The conjunction before a name, with at most four words between that name nothing.

        A comma is one where a list goes on: "a fridge, a trash can and an oven".
        """
        for at in range(name.i - 1, max(name.i - 6, 0), -1):
            word = doc[at]
            if word.lower_ in _AND or (word.text == "," and _goes_on(doc, name)):
                return word
            named = word.tag_ in NOUNS and word.lower_ in self.ontology.by_last
            # "with storage beautiful kitchen islands"
            ends = word.tag_ in NOUNS and doc[at + 1].tag_ in ("JJ", "DT", "PRP$", "CD")
            if word.tag_ not in _BEFORE_NOUNS or named or ends or _acts(doc, word):
                return None
        return None

    def _coordination(self, doc: Sequence[Word], text: str, token: Word) -> Iterator[_Link]:
        """A conjunct and the nearest earlier conjunct of its chain that is an entity."""
        second = self._resolve(doc, text, token)
        coordinator = _coordinator(doc, token)
        if second is None or not coordinator or _unseen(token):
            return
        if coordinator == "," and _is_keyword(doc, token):
            return
        if _is_choice(coordinator, second):
            return
        earlier = token.head
        listed = [t for t in earlier.rights if t.dep_ == "appos" and t.i < token.i]
        if _is_measured(earlier, token):
            earlier = earlier.head.head  # "plates of food and a bottle of wine"
        if listed and token.dep_ == "conj" and self._resolve(doc, text, listed[-1]) is not None:
            earlier = listed[-1]  # "a violin, a suitcase, and a candle"
        while True:
            first = self._resolve(doc, text, _complement(earlier, token))
            if first is not None:
                nearer = self._nearer(doc, text, earlier, token, first, second)
                if nearer is None or self._heads_both(doc, text, nearer, second):
                    return
                one = _one_person(doc, nearer, second) or _one_dish(doc, nearer, second)
                if not one and not _is_flavor(text, nearer, second):
                    yield nearer, second, "coordination", coordinator
                return
            # Only neighbors are linked, but "and" also reaches over what isn't known.
            if coordinator == "," or (earlier.dep_ != "conj" and not _listed(earlier)):
                return
            earlier = earlier.head

    def _slash(self, doc: Sequence[Word], text: str, token: Word) -> Iterator[_Link]:
        """Two names with a slash between, which the parser takes for one: "sofa/chair"."""
        noun = token.head
        of_next = noun.dep_ == "compound"  # "a rice/wheat seeder"
        if of_next or noun.i != token.i + 2 or text[_end(token) : noun.idx] != "/":
            return
        first, second = self._resolve(doc, text, token), self._resolve(doc, text, noun)
        if first is not None and second is not None:
            yield first, second, "coordination", "/"

    def _particle(self, doc: Sequence[Word], text: str, token: Word) -> Iterator[_Link]:
        """Who moves past what, where the parser takes the preposition for the verb's particle: "a
        train is passing over a bridge"."""
        verb = token.head
        if token.lower_ not in SPATIAL or verb.lower_ not in MOVING:
            return
        target = next((t for t in verb.rights if t.dep_ == "dobj" and t.i > token.i), None)
        subject = subject_of(verb, self._names_end)
        if target is None or subject is None:
            return
        first, second = self._resolve(doc, text, subject), self._resolve(doc, text, target)
        if first is not None and second is not None:
            yield first, second, "preposition", token.lower_

    def _preposition(self, doc: Sequence[Word], text: str, token: Word) -> Iterator[_Link]:
        """The object of a spatial preposition and each noun that the phrase modifies."""
        word, above = token.lower_, _above(doc, token)
        if token.dep_ == "agent":
            if above.lower_ not in SURROUNDING | POSTURES:
                return
        elif word not in SPATIAL and not (word in LINKS and _is_placing(above)):
            return
        target = _object(token)
        if target is None or not _of_place(token, above, target):
            return
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
            second = self._as(second, "eyeglasses", second.begin)
        relation = _relation(doc, token)
        beneath = self._beneath(doc, text, token, first)
        if beneath is not None:
            yield beneath, second, "preposition", relation
            return
        if not _stands(first, second, relation, token):
            return
        for other in sharing(subject, token):
            also = self._resolve(doc, text, other)
            if also is None:
                continue
            people = {also.entity.category, first.entity.category} == {"people"}
            alike = also.entity.animate == first.entity.animate and above.tag_ not in NOUNS
            if people or alike or subject.dep_ in ("nsubj", "nsubjpass"):
                yield also, second, "preposition", relation
        yield first, second, "preposition", relation

    def _first_named(self, doc: Sequence[Word], text: str, target: Word) -> _Found | None:
        """What a word or else the next thing joined to it names: "with long hair and a hat", but
        not "with a grin holding an apple and a dahlia"."""
        joined = [t for t in target.lefts if t.dep_ == "nmod" and t.tag_ in NOUNS]
        for noun in joined:  # "with a scooter and tennis racket"
            found = self._resolve(doc, text, noun) if any(noun.rights) else None
            whole = self._resolve(doc, text, target)
            if found and whole and not self._heads_both(doc, text, found, whole):
                return found
        for noun in (target, *conjuncts(target)):
            found = self._resolve(doc, text, noun)
            between = doc[target.i + 1 : noun.i]
            if found is not None and any(t.dep_ == "dobj" for t in between):
                return None
            if found is not None:
                return found
        return None

    def _beneath(self, doc: Sequence[Word], text: str, token: Word, first: _Found) -> _Found | None:
        """What stands on another, of two phrases with "on": the plate in "it is on a plate on a
        table"."""
        before = doc[token.i - 1]
        if token.lower_ != "on" or first.entity.animate or before.dep_ != "pobj":
            return None
        if before.head.lower_ not in ("on", "in") or before.head.i < first.head.i:
            return None
        found = self._resolve(doc, text, before)
        return None if found is None or found.entity.animate else found

    def _modified(
        self, doc: Sequence[Word], text: str, token: Word, second: _Found
    ) -> tuple[Word, _Found] | None:
        """The noun that a prepositional phrase modifies by the tree, and what it names."""
        above = _above(doc, token)
        subject: Word | None = None
        put = token.lower_ in ("on", "over", "above", "inside") and above.lower_ in PUTTING
        filled = token.lower_ == "with" and above.lower_ in FILLING and not second.entity.animate
        if above.tag_ not in NOUNS and (put or filled):
            subject = next((t for t in above.rights if t.dep_ == "dobj" and t.i < token.i), None)
        if subject is None:
            subject = subject_of(above, self._names_end) or _mistaken(doc, token)
        if subject is None:
            return None
        found = self._resolve(doc, text, subject)
        rides = second.entity.category == "vehicles" and token.lower_ == "on"
        inner = subject.dep_ in ("pobj", "conj") or (
            subject.dep_ == "dobj" and (rides or token.lower_ not in _ON)
        )
        if found is None and inner and token.lower_ not in _NEAREST:
            # "a woman with long hair next to a bird", "a man covering his eyes near a dog"
            subject = noun_above(subject, self._names_end)
            found = None if subject is None else self._resolve(doc, text, subject)
        return None if subject is None or found is None else (subject, found)

    def _better(
        self,
        doc: Sequence[Word],
        text: str,
        token: Word,
        subject: Word,
        first: _Found,
        second: _Found,
    ) -> tuple[Word, _Found] | None:
        """Subject and name, or the living thing that the phrase is about where the parser chose
        what it is on, in, holds or wears.

        "A man waiting for a train with a phone in his hand", "a dog on a bed next to a teddy bear",
        "a woman in a hat with a dog", "people wearing helmets standing next to bikes".
        """
        chosen = subject, first
        if first.entity.animate:
            return self._before(doc, text, token, chosen, second)
        eaten = first.entity.category == "food_kitchen" and subject.head.lower_ == "with"
        if (token.head.tag_ == "VBN" and not eaten) or token.head.lower_ in PUTTING | FILLING:
            return chosen  # but "a salad with nuts arranged on a plate"
        near = self._furniture(doc, text, token, subject)
        if near is not None:
            return near
        before = doc[token.i - 1]
        if token.lower_ == "with" and before.tag_ in NOUNS and before.i != subject.i:
            of_it = any(t.lower_ in _INSIDE for t in _below(second.head))
            if of_it and self._resolve(doc, text, before) is None:
                return None  # "a train next to a platform with people on it"
        above = noun_above(subject, self._names_end)
        found = None if above is None else self._resolve(doc, text, above)
        if above is None or found is None:
            clad = subject.dep_ == "pobj" and subject.head.lower_ == "in"
            acts = token.head.dep_ in ("acl", "advcl") and token.head.tag_ == "VBG"
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

    def _furniture(
        self, doc: Sequence[Word], text: str, token: Word, subject: Word
    ) -> tuple[Word, _Found] | None:
        """The furniture right before "with" that a lifeless subject stands on, or is joined to.

        "A pizza on a table with magazines", "a fridge and shelves with jars".
        """
        before = doc[token.i - 1]
        if token.lower_ != "with" or before.i == subject.i or before.tag_ not in NOUNS:
            return None
        found = self._resolve(doc, text, before)
        if found is None or found.entity.animate:
            return None
        joined = any(one.i == before.i for one in conjuncts(subject))
        return (before, found) if joined or found.entity.category == "furniture" else None

    def _before(
        self,
        doc: Sequence[Word],
        text: str,
        token: Word,
        chosen: tuple[Word, _Found],
        second: _Found,
    ) -> tuple[Word, _Found] | None:
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
        found = self._resolve(doc, text, before) if before.tag_ in NOUNS else None
        growing = what.name in _GROWING or "flower" in what.kinds
        if found is None or found.entity.animate:
            return None if of_it or (growing and not people) else chosen
        eaten = found.entity.category == "food_kitchen" and (
            what.name == "candle" or (what.category == "food_kitchen" and what.name not in _CUTLERY)
        )
        on_top = token.lower_ == "on"
        return (before, found) if of_it or growing or eaten or on_top else chosen

    def _nearer(
        self,
        doc: Sequence[Word],
        text: str,
        noun: Word,
        conjunct: Word,
        first: _Found,
        second: _Found,
    ) -> _Found | None:
        """What a noun comes with, wears or holds, if that is what a conjunct joins; None if that is
        no thing.

        "A bike with a bag and a lamp", "a dog wearing a tie and a hat", "a man in a shirt and tie".
        The parser mostly joins the noun itself, which is right for "a man with a hat and a woman".
        """
        couple = first.entity.animate and second.entity.animate
        if second.entity.animate and not first.entity.animate and _in_clause(second.head):
            # "a man eating a donut and a woman eating a cake"
            above = noun_above(first.head, self._names_end)
            living = None if above is None else self._resolve(doc, text, above)
            if living is not None and living.entity.animate:
                return living
        for right in noun.rights:
            if right.i > conjunct.i:
                break
            target, at_hand = _comes_with(right)
            if target is None or not right.i < target.i < conjunct.i:
                continue
            if right.lower_ == "of" and any(t.lower_ == "of" for t in conjunct.rights):
                continue  # "a plate of rice and a bowl of soup"
            inner = self._resolve(doc, text, target)
            if inner is None and right.lower_ == "with" and not first.entity.animate:
                return first if second.entity.animate else None
            if inner is None or (couple and not inner.entity.animate):
                continue
            alike = inner.entity.category == second.entity.category
            if right.lower_ in SPATIAL and not at_hand:
                alike = alike and first.entity.category != second.entity.category
            if alike or (at_hand and not second.entity.animate):
                return inner
        return first

    def _heads_both(self, doc: Sequence[Word], text: str, first: _Found, second: _Found) -> bool:
        """Whether "and" joins two modifiers: "fish and flowers t-shirt", "corn and bean soup", also
        further on in a list: "a zucchini, asparagus and carrot salad".

        The word after the conjunction is an entity, but not the head, and no article is between. A
        plural joined to a singular is no modifier: "plates and coffee mugs".
        """
        if _are_food(first, second) and _is_plain(first) and _is_plain(second):
            *_, last = (second.head, *conjuncts(second.head))
            if last.i != second.head.i:
                named = self._named(doc, text, last)
                word = _bare_modifier(doc, last, named.begin if named else last)
                return word is not None and word.lower_ in self.ontology.by_last
        word = _bare_modifier(doc, second.head, second.begin)
        plural = first.head.tag_[-1] == "S"
        if word is None or (plural and not word.lower_.endswith("s")):
            return False
        if word.lower_ in OFFSPRING and second.entity.animate:
            return False  # "a mother and baby son"
        near = word.i == second.begin.i - 1 and doc[word.i - 1].lower_ in _AND
        titled = near and word.text[0].isupper() and second.head.text[0].isupper()
        return titled or word.lower_ in self.ontology.by_last

    def _names_end(self, token: Word) -> bool:
        """Whether a token ends a name of several words, whatever its tag: "bird feeder"."""
        forms = self.ontology.by_last.get(token.lower_)
        return bool(forms) and any(
            len(form.before) == 1 and any(t.lower_ == form.before[0] for t in token.lefts)
            for form in forms or ()
        )

    def _as(self, found: _Found, name: str, begin: Word) -> _Found:
        """The mention as a thing of another kind, which the ontology must name."""
        return replace(found, entity=self.ontology.entities[name], begin=begin)

    def _resolve(self, doc: Sequence[Word], text: str, token: Word) -> _Found | None:
        """The entity that a noun names, looking through "a pair of" and "photo of"."""
        named = doc.named if isinstance(doc, _Words) else {}
        if token.i not in named:  # several rules ask about the same word
            named[token.i] = self._look_up(doc, text, token)
        return named[token.i]

    def _look_up(self, doc: Sequence[Word], text: str, token: Word) -> _Found | None:
        token = self._whole(doc, token)
        word, figure = token.lower_, _figure(token)
        if any(t.lower_ == "no" for t in token.lefts):
            return None
        if figure is not None:
            return self._named(doc, text, figure)
        shown = word in DEPICTIONS and token.dep_ in _SHOWN
        if word in QUANTITIES or word in PICKING or shown:
            of = next((t for t in token.rights if t.dep_ == "prep" and t.lower_ == "of"), None)
            inner = of and next((t for t in of.rights if t.dep_ == "pobj"), None)
            found = self._resolve(doc, text, inner) if inner else None
            if found is not None:
                quantity = found.quantity or (None if shown else token)
                return replace(found, quantity=quantity)
            if shown or (of is not None and word in GROUPS):
                return None  # "picture with a dog" is the image; "a group of letters" is no people
        return self._named(doc, text, token)

    def _named(self, doc: Sequence[Word], text: str, token: Word) -> _Found | None:
        """The longest name that ends in a token; it may be written with hyphens.

        A one-word name must be tagged as a noun; "fire hydrant" counts whatever its tag.
        """
        forms = self.ontology.by_last.get(token.lower_)
        if forms is None or not _stands_alone(text, token) or _modifies(doc, token):
            return None
        if _in_idiom(doc, token) or _is_color(doc, token) or _is_quoted(doc, token):
            return None
        for form in forms:
            if not form.before and (not _is_noun(doc, token) or _is_stuff(doc, token)):
                return None
            at = token.i
            for word in form.before:
                at -= 2 if at > 1 and doc[at - 1].lower_ == "-" else 1
                if at < 0 or doc[at].lower_ != word or not _stands_alone(text, doc[at]):
                    break
            else:
                if form.entity is None:
                    return None
                if not form.before and _is_surname(doc, token, form.entity):
                    return None
                acts = form.entity.category == "people" and token.tag_.startswith("VB")
                if acts or _in_title(doc, token):
                    return None  # "dice an onion and cook in butter"
                if form.entity.name in PRODUCTS and self._is_imprint(doc, token):
                    return None
                return self._of_its_kind(_Found(form.entity, token, doc[at], None, form.entity))
        return None

    def _is_imprint(self, doc: Sequence[Word], token: Word) -> bool:
        """Whether a caption ends in what it is printed on: "bird on a fence greeting card"."""
        return _ends_caption(doc, token) and any(
            t.dep_ == "compound" and t.lower_ in self.ontology.by_last for t in token.lefts
        )

    def _whole(self, doc: Sequence[Word], token: Word) -> Word:
        """The last word of the name that a token begins, where the parser splits "fire hydrant"."""
        after = doc[token.i + 1] if token.i + 1 < len(doc) else None
        word = token.lower_
        if word in IMPRINTS and _ends_caption(doc, token) and doc[token.i - 1].head.i == token.i:
            return doc[token.i - 1]  # "a bulldog near window photo"
        if after is not None and (word, after.lower_) in self._two_words:
            return after
        forms = self.ontology.by_last.get(token.lower_, ())
        eaten = any(form.entity and form.entity.category == "food_kitchen" for form in forms)
        # "a lady cutting pizza", "a beach feeding seagulls", but not "a horse riding helmet"
        return _noun_of(token) if not forms or eaten or token.tag_ == "NNS" else token

    def _of_its_kind(self, found: _Found) -> _Found | None:
        """The mention, unless a modifier says that it only looks like one: "a plastic horse".

        Toys and stuffed animals are entities of their own.
        """
        for word in found.head.lefts:
            if word.i >= found.begin.i or word.dep_ not in ("amod", "compound", "nmod"):
                continue
            if word.lower_ in STUFFED:
                return self._as(found, "stuffed animal", word)
            if word.lower_ in TOYS:
                return self._as(found, "toy", word)
            real = not (found.entity.animate or found.entity.category == "vehicles")
            if word.lower_ in FAKE and not real:
                return None
        return found


def _stands_alone(text: str, token: Word) -> bool:
    """Whether the token is a whole word of the text, not a piece that the tokenizer cut off."""
    before, after = text[: token.idx][-1:].lower(), text[_end(token) :][:1].lower()
    return not ("a" <= before[-1:] <= "z" or "a" <= after[:1] <= "z")


def _is_stuff(doc: Sequence[Word], token: Word) -> bool:
    """Whether a word says what something is made of: "glass" alone, but not "glass of wine"."""
    alone = not any(t.dep_ in _MODIFYING for t in token.lefts)
    filled = token.i + 1 < len(doc) and doc[token.i + 1].lower_ == "of"
    return token.lower_ == "glass" and alone and not filled


def _modifies(doc: Sequence[Word], token: Word) -> bool:
    """Whether a noun is no thing here: the next noun's modifier, a game that is played, a stuff.

    The parser often makes "pencil" the head in "shirt and pencil skirt".
    """
    if token.dep_ == "npadvmod" and token.head.tag_ == "VBN" and token.head.i > token.i:
        return True  # "a horse drawn cart"
    if token.lower_ in GAMES and token.dep_ == "dobj" and token.head.lower_ in PLAYED:
        return True
    after = doc[token.i + 1] if token.i + 1 < len(doc) else None
    if token.lower_ == "book" and after is not None and after.tag_ == "CD":
        return True  # "Ranger's Apprentice, Book 4"
    if after is not None and after.text == "-" and after.idx == _end(token):
        joined = doc[token.i + 2] if token.i + 2 < len(doc) else None
        return joined is not None and joined.idx == after.idx + 1 and joined.text.isalpha()
    if after is None or after.idx != _end(token) + 1 or not after.text.isalpha():
        return False
    if _in_set(doc, token) or (after.lower_ in IMPRINTS and _ends_caption(doc, after)):
        return False
    if token.text[0].isupper() and after.text[0].isupper():  # "Three Pigs and the Wolf Posters"
        return after.tag_ in NOUNS and after.lower_ not in IMPRINTS
    return (
        after.tag_ == "NN"
        and after.dep_ not in ("ROOT", "conj", "appos", "npadvmod")
        and not after.lower_.endswith("ing")
    )


def _in_set(doc: Sequence[Word], token: Word) -> bool:
    """Whether a word is the last of what makes up a set: "a washer and dryer set"."""
    at = token.i
    return (
        at + 1 < len(doc)
        and doc[at + 1].lower_ in SETS
        and (at + 2 == len(doc) or doc[at + 2].tag_ not in NOUNS)
        and any(word.lower_ in _AND for word in doc[max(0, at - 2) : at])
    )


def _is_noun(doc: Sequence[Word], token: Word) -> bool:
    """Whether a word is tagged as a noun, or as a verb where none can be: "a cap and tie"."""
    if token.tag_ in NOUNS:
        return True
    if token.tag_ == "JJ" and token.dep_ in ("pobj", "dobj"):  # "with a stove top oven"
        return any(t.dep_ in _MODIFYING for t in token.lefts)
    if token.tag_ not in ("VB", "VBP", "VBZ") or token.i < 2 or doc[token.i - 1].lower_ not in _AND:
        return False
    after = doc[token.i + 1].tag_ if token.i + 1 < len(doc) else "."
    return doc[token.i - 2].tag_ in NOUNS and after in (".", ",", "IN", "CC", "VBG")


def _acts(doc: Sequence[Word], word: Word) -> bool:
    """Whether a participle is a verb with an object: "holding a flag", "wearing glasses"."""
    if word.tag_ != "VBG":
        return False
    return doc[word.i + 1].tag_ in _DETERMINERS or (
        word.dep_ not in ("amod", "compound") and any(t.dep_ == "dobj" for t in word.rights)
    )


def _ends_field(doc: Sequence[Word], token: Word) -> bool:
    """Whether a word is the last of its field: "a cat and a dog - stock photo"."""
    after = doc[token.i + 1].text if token.i + 1 < len(doc) else ""
    return bool(after) and after in "-|\u2013\u2014"


def _ends_caption(doc: Sequence[Word], token: Word) -> bool:
    """Whether no word follows."""
    return not any(t.text.isalpha() for t in doc[token.i + 1 :])


def _in_idiom(doc: Sequence[Word], token: Word) -> bool:
    """Whether a word is half of an idiom: "rock & roll"."""
    at = token.i
    if at > 1 and doc[at - 1].lower_ in _AND and (doc[at - 2].lower_, token.lower_) in IDIOMS:
        return True
    joined = at + 2 < len(doc) and doc[at + 1].lower_ in _AND
    return joined and (token.lower_, doc[at + 2].lower_) in IDIOMS


def _is_color(doc: Sequence[Word], token: Word) -> bool:
    """Whether a thing's name is a color here, next to another one: "orange & green"."""
    if token.lower_ not in HUES or any(t.dep_ in _QUANTIFYING for t in token.lefts):
        return False
    after = [word.lower_ for word in doc[token.i + 1 : token.i + 3]]
    before = [word.lower_ for word in reversed(doc[max(0, token.i - 2) : token.i])]
    return any(
        near and (near[0] in COLORS or (near[0] in _AND | {","} and near[-1] in COLORS))
        for near in (before, after)
    )


def _is_quoted(doc: Sequence[Word], token: Word) -> bool:
    """Whether a word is in quotation marks, after the caption's start: "a shirt with 'Rocks!'"."""
    at = token.i
    while at > 0 and doc[at].tag_ != "''":
        if doc[at].tag_ == "``":
            return any(t.tag_ == "''" for t in doc[token.i + 1 :])
        at -= 1
    return False


def _is_surname(doc: Sequence[Word], token: Word, entity: CaptionEntity) -> bool:
    """Whether an animal's name is somebody's, in a text with few capitals: "Ken Wolf"."""
    if not token.i or not entity.animate or not token.tag_.startswith("NNP"):
        return False
    before = doc[token.i - 1]
    if before.text == "." and token.i > 1:
        before = doc[token.i - 2]
    if before.lower_.rstrip(".") in TITLES and before.text[0].isupper() and token.text[0].isupper():
        return True  # "Princess Python"
    if entity.category != "animals":
        return False
    if before.dep_ != "compound" or not (before.text[0].isupper() and token.text[0].isupper()):
        return False
    words = [t.text for t in doc if t.text.isalpha()]
    return 2 * sum(word.islower() for word in words) > len(words)


def _in_title(doc: Sequence[Word], token: Word) -> bool:
    """Whether a name is part of a work's title, in a caption that is none: "on The Real Wives"."""
    if not token.text[0].isupper():
        return False
    for word in token.lefts:
        at = word.i
        if word.dep_ not in ("det", "poss") or not word.text.istitle() or not at:
            continue
        if word.tag_ in _DETERMINERS and doc[at - 1].text.islower():
            return any(t.tag_ in _SENTENCE and t.text.islower() for t in doc)
    return False


def _figure(token: Word) -> Word | None:
    """The statue that a horse is, or the drawing that it is in: "a drawing of a horse"."""
    while token.dep_ == "conj" and token.head.i != token.i:
        token = token.head
    if token.dep_ != "pobj" or token.head.lower_ != "of":
        return None
    above = token.head.head
    shown = above.lower_ in DEPICTIONS and above.dep_ in _SHOWN
    return above if above.lower_ in FIGURES | DEPICTIONS and not shown else None


def _mistaken(doc: Sequence[Word], token: Word) -> Word | None:
    """What a phrase is about if the tagger took a caption's first word for a verb: "engaged couple
    on a bench", "framed picture above a sofa"."""
    first = token.head
    resting = first.tag_ == "VBG" and first.lower_ in POSTURES  # "resting gulls on a dock"
    if first.i or not (resting or first.tag_ in ("VBN", "VBD", "VB")):
        return None
    nouns = [t for t in first.rights if t.dep_ == "dobj" and t.i < token.i]
    direct = len(nouns) == 1 and all(t.tag_ in _BEFORE_NOUNS for t in doc[1 : nouns[0].i])
    bare = direct and not any(t.dep_ in _QUANTIFYING for t in nouns[0].lefts)
    return nouns[0] if bare else None


def _noun_of(token: Word) -> Word:
    """The noun of a phrase whose verb the tagger took for its head.

    "A couch playing wii" and "a racket waits" aren't nouns with two modifiers.
    """
    modifiers = [t for t in token.lefts if t.dep_ == "compound"]
    if token.lower_ in ACTING:
        if modifiers and modifiers[-1].i == token.i - 1:
            return modifiers[-1]  # "a cricketer standing next to a wicket"
        several = [t for t in token.lefts if t.dep_ == "nmod" and t.tag_ in NOUNS]
        *_, token = (token, *several, *(one for noun in several for one in conjuncts(noun)))
        return token  # "giraffe and zebra grazing next to plants"
    for word in modifiers:
        acts = word.lower_.endswith("ing") and word.lower_ not in NO_ACTS
        inner = word.lefts if acts else ()
        for noun in inner:
            if noun.dep_ == "compound" and noun.i + 1 == word.i:
                return noun
    verb = token.tag_ == "NNS" and token.lower_.endswith("s")
    if verb and modifiers and any(t.lower_ in ("a", "an") for t in token.lefts):
        return modifiers[-1]
    return token


def _object(token: Word) -> Word | None:
    """What a preposition points to; it may be in a clause: "with his phone on"."""
    for below in token.rights:
        if below.dep_ == "pobj":
            whose = next((t for t in below.lefts if t.dep_ == "poss"), None)
            return whose if whose is not None and below.lower_ in PARTS | {"back"} else below
        if below.dep_ == "pcomp":
            return next((t for t in below.lefts if t.dep_ in ("nsubj", "nsubjpass")), None)
    return None


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
        known = any(t.dep_ in _QUANTIFYING for t in target.lefts) or target.tag_ == "NNS"
        return known and not target.tag_.startswith("NNP")
    if word in LINKS:
        return above.head.lower_ != "with"  # "with a side of bread"
    return not (is_place(above) and (word == "with" or above.tag_.startswith("VB")))


def _is_befriending(verb: Word) -> bool:
    """Whether a verb's object only names what somebody is to be: "make friends with a bear"."""
    made = verb.lower_ in ("make", "makes", "making", "made")
    return made and any(t.lower_ == "friends" for t in verb.rights)


def _unseen(conjunct: Word) -> bool:
    """Whether the words joined describe a noun, or whom it is for: "orange & lemon soap"."""
    root = conjunct
    while root.dep_ in ("conj", "appos") and root.head.i != root.i:
        root = root.head
    if root.dep_ != "pobj":
        return root.dep_ in ("compound", "nmod") and root.head.lower_ not in ACTING
    made = root.head.head.lower_ if root.head.lower_ == "of" else ""
    return root.head.lower_ == "for" or made in ("made", "out")


def _below(token: Word) -> Iterator[Word]:
    """All that depends on what follows a word: "in his hand"."""
    for right in token.rights:
        yield from right.lefts
        yield right
        yield from _below(right)


def _is_plain(found: _Found) -> bool:
    """Whether a name is a singular without anything before it."""
    alone = found.head.i == found.begin.i and not any(found.head.lefts)
    return alone and found.head.tag_ in ("NN", "NNP")


def _bare_modifier(doc: Sequence[Word], head: Word, begin: Word) -> Word | None:
    """The noun between a conjunction and a name that it modifies, if nothing else is there.

    begin: the name's first token; head: its last.
    """
    first = min([*_modifiers(head), begin], key=lambda t: t.i)
    bare = first.i < begin.i and first.dep_ == "compound" and first.tag_ in NOUNS
    joined = first.i > 0 and doc[first.i - 1].lower_ in ("and", "&", ",")
    return first if bare and joined else None


def _differ(first: _Found, second: _Found) -> bool:
    """Whether two mentions name different things."""
    return distinct(first.entity, second.entity) and distinct(first.plain, second.plain)


def _somebody(first: _Found, second: _Found, relation: str) -> bool:
    """Whether one is "person" and the other somebody with a role: "person and groom"."""
    if relation in (",", "against", "over", "by"):
        return False
    names = [one.entity.name for one in (first, second)]
    heads = {one.head.lower_ for one in (first, second) if one.entity.name == "person"}
    roles = {one.entity.category for one in (first, second)} == {"people"}
    return roles and heads == {SOMEBODY} and names.count("person") == 1


def _are_food(first: _Found, second: _Found) -> bool:
    """Whether both names are eaten: "chicken and rice"."""
    both = (first.entity, second.entity)
    return all(one.category == "food_kitchen" or one.name in MEATS for one in both)


def _one_dish(doc: Sequence[Word], first: _Found, second: _Found) -> bool:
    """Whether two names of food are one dish: "peanut and ginger chicken"."""
    if not _are_food(first, second):
        return False
    determined = any(t.dep_ in _QUANTIFYING for t in first.head.lefts)
    determined = determined or {first.head.tag_, second.head.tag_} == {"NNS"}  # "plates and bowls"
    return not determined and _bare_modifier(doc, second.head, second.begin) is not None


def _is_flavor(text: str, first: _Found, second: _Found) -> bool:
    """Whether two names of food say what a product tastes of: "Chicken & Rice 15kg"."""
    return _are_food(first, second) and _WEIGHT.match(text, _end(second.head)) is not None


def _one_person(doc: Sequence[Word], first: _Found, second: _Found) -> bool:
    """Whether two roles name one person: "the singer and composer performs", "Ann Lee, author and
    actor"."""
    if {first.entity.category, second.entity.category} != {"people"}:
        return False
    at = first.head
    while at.dep_ == "conj" and at.head.i != at.i and not _is_name(at.head):
        at = at.head
    if any(t.dep_ in ("det", "poss") for t in second.head.lefts) or second.head.tag_[-1] == "S":
        return False
    at_name = any(_is_name(t) and doc[t.i + 1].text in ",(" for t in doc[: first.head.i - 1])
    named = (
        at_name
        or (at.dep_ in ("appos", "conj") and _is_name(at.head))
        or any(
            t.dep_ == "appos" and _is_name(t) and t.left_edge.i <= second.head.i + 2
            for t in at.rights
        )
    )
    return named or (at.dep_ == "nsubj" and at.head.tag_ == "VBZ")


def _is_name(token: Word) -> bool:
    """Whether a word ends the name of somebody: "Julia Hartz"."""
    return token.tag_.startswith("NNP") and any(t.tag_.startswith("NNP") for t in token.lefts)


def _stands(first: _Found, second: _Found, relation: str, token: Word) -> bool:
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
    if relation == "on" and one.category == "people" and flat:
        return False
    if other.name == "camera" and relation in ("in front of", "back to", "close to"):
        return False  # of the photographer
    if relation == "on" and one.animate and not SCREENS.isdisjoint({other.name, *other.kinds}):
        return token.head.lower_ in POSTURES
    young = other.name in OFFSPRING and one.category == "animals"
    return not (young and (relation == "with" or any(t.dep_ == "poss" for t in second.head.lefts)))


def _listed(token: Word) -> bool:
    """Whether an apposition is the middle of a list: "the king, the queen and the prince".

    True appositions that list ("two friends, a man and a dog"; "a couple, a man and a woman")
    attach to a plural or a quantity.
    """
    return (
        token.dep_ == "appos"
        and token.head.tag_ in ("NN", "NNP")
        and token.head.lower_ not in QUANTITIES
        and any(t.dep_ == "conj" for t in token.rights)
    )


def _is_choice(coordinator: str, second: _Found) -> bool:
    """Whether a name is only another one for what stands there: "a snack or appetizer"."""
    bare = not any(t.dep_ in _QUANTIFYING for t in second.head.lefts)
    return coordinator == "or" and bare and second.head.tag_ in ("NN", "NNP")


def _is_measured(noun: Word, conjunct: Word) -> bool:
    """Whether a noun is what something holds, and its conjunct holds something as well."""
    holds = any(t.lower_ == "of" for t in conjunct.rights)
    return holds and noun.dep_ == "pobj" and noun.head.lower_ == "of"


def _is_keyword(doc: Sequence[Word], token: Word) -> bool:
    """Whether a word stands in a long list without "and" and without an article: keywords."""
    if any(t.dep_ in _QUANTIFYING for t in token.lefts):
        return False
    words = [t.lower_ for t in doc]
    return words.count(",") > _MAX_COMMAS and _AND.isdisjoint(words)


def _comes_with(right: Word) -> tuple[Word | None, bool]:
    """What a noun's own phrase or clause adds to it, and whether it has, wears or holds it.

    "A bust next to an egg", "a man in a shirt", "a bike with a bag", "a dog wearing a tie".
    """
    if right.dep_ == "acl" and right.tag_ == "VBG":
        return next((t for t in right.rights if t.dep_ == "dobj"), None), True
    if right.dep_ == "acl" and right.lower_ == "made":
        return next((_object(t) for t in right.rights if t.dep_ == "prep"), None), True
    if right.lower_ in ("with", "in", "of"):
        return _object(right), right.lower_ == "with"
    if right.lower_ in SPATIAL:
        return _object(next((t for t in right.rights if t.lower_ in LINKS), right)), False
    return None, False


def _goes_on(doc: Sequence[Word], name: Word) -> bool:
    """Whether a list goes on after the name that begins here: "…, a trash can and an oven"."""
    while name.dep_ == "compound" and name.head.i > name.i:
        name = name.head
    after = name.i + 1
    return name.dep_ in ("appos", "nmod") and after < len(doc) and doc[after].lower_ in _AND | {","}


def _in_clause(noun: Word) -> bool:
    """Whether a noun has a clause or a phrase of its own: "a woman eating a cake"."""
    return any(
        t.dep_ in ("acl", "relcl") or (t.dep_ == "prep" and t.lower_ in ("with", "in", "on"))
        for t in noun.rights
    )


def _complement(token: Word, conjunct: Word) -> Word:
    """The noun that a conjunct really joins where it attaches to a verb: "there is a cat and …"."""
    if token.tag_ in NOUNS:
        return token
    nouns = [t for t in token.rights if t.dep_ in ("attr", "dobj") and t.i < conjunct.i]
    return nouns[-1] if nouns else token


def _coordinator(doc: Sequence[Word], token: Word) -> str:
    """The word or character right before a conjunct's phrase, or its conjunction, or ","; empty if
    what stands there separates."""
    start = min([*_modifiers(token), token], key=lambda t: t.i).i
    if start and doc[start - 1].lower_ in COORDINATORS | set(PUNCTUATION):
        return doc[start - 1].lower_
    if start and doc[start - 1].text in "-:(/":
        return ""  # of another field
    words = [t for t in token.head.rights if t.dep_ == "cc" and t.i < token.i]
    if not words:
        return ","
    between = (doc[at] for at in range(words[-1].i + 1, start))
    return "" if any(t.tag_ in NOUNS for t in between) else words[-1].lower_


def _relation(doc: Sequence[Word], token: Word) -> str:
    """The preposition with the words that belong to it: "next to", "to the left of"."""
    start, at = token.i, _above(doc, token)
    while at.i < start and (_is_placing(at) or at.dep_ == "prep"):
        if token.i - at.i >= _MAX_RELATION:
            break
        start, at = at.i, at.head
    return " ".join(doc[i].lower_ for i in range(start, token.i + 1))


def _mention(text: str, found: _Found) -> CaptionMention:
    left = min([*_modifiers(found.head), found.begin], key=lambda t: t.i)
    if found.quantity is not None:
        begin = min([*_modifiers(found.quantity), found.quantity], key=lambda t: t.i)
        quantifier = text[begin.idx : left.idx].strip()
        left = begin
    else:
        quantifier = " ".join(t.lower_ for t in found.head.lefts if t.dep_ in _QUANTIFYING)
    return CaptionMention(
        name=found.entity.name,
        category=found.entity.category,
        head=text[found.head.idx : _end(found.head)],
        phrase=text[left.idx : _end(found.head)],
        quantifier=quantifier,
        start=found.begin.idx,
        end=_end(found.head),
    )


def _modifiers(noun: Word) -> list[Word]:
    """First tokens of a noun's modifiers before it; no punctuation."""
    return [t.left_edge for t in noun.lefts if t.dep_ in _MODIFYING]


def _end(token: Word) -> int:
    return token.idx + len(token.text)


def _sentence(text: str, token: Word) -> str:
    """The text of the tree that a token belongs to."""
    while token.head.i != token.i:
        token = token.head
    return text[token.left_edge.idx : _end(token.right_edge)]
