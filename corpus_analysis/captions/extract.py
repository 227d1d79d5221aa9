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
    POSSESSIVES,
    Word,
    conjuncts,
    is_place,
    noun_above,
    sharing,
    subject_of,
)
from .ontology import CaptionEntity, Ontology, distinct
from .prefilter import COORDINATORS, PUNCTUATION, SPATIAL, triggered
from .words import (
    DEPICTIONS,
    FAKE,
    FIGURES,
    GAMES,
    IMPRINTS,
    LINKS,
    OFFSPRING,
    PLAYED,
    POSTURES,
    PUTTING,
    QUANTITIES,
    SCREENS,
    STUFFED,
    SURROUNDING,
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
_BEFORE_NOUNS = frozenset("DT PRP$ CD JJ JJR JJS VBN NN NNP HYPH".split())
"""Tags of what may stand between a conjunction and its noun."""
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


_Link = tuple[_Found, _Found, Pattern, str]
"""Two mentions, how they are linked, and by which words."""


class Extractor:
    """The extraction rules for one ontology."""

    def __init__(self, ontology: Ontology) -> None:
        self.ontology = ontology

    def pairs(self, doc: Sequence[Word], text: str) -> list[CaptionPair]:
        """Every pair of one parsed caption; `text` is what was parsed.

        A pair is two nouns of the ontology, neither a kind of the other, linked both by the tree
        and by a trigger in the text between them.
        """
        found: list[CaptionPair] = []
        joined: set[int] = set()  # heads that a coordination has linked to what is before
        for links in (self._by_tree(doc, text), self._by_place(doc, text, joined)):
            for first, second, pattern, relation in links:
                if (
                    first.head.i < second.head.i
                    and distinct(first.entity, second.entity)
                    and distinct(first.plain, second.plain)
                    and triggered(text[_end(first.head) : second.head.idx])
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
            if token.dep_ == "conj" or _listed(token):
                yield from self._coordination(doc, text, token)
            elif token.dep_ in ("prep", "agent"):
                yield from self._preposition(doc, text, token)
            elif token.dep_ == "nmod":
                yield from self._slash(doc, text, token)

    def _by_place(self, doc: Sequence[Word], text: str, joined: set[int]) -> Iterator[_Link]:
        """Names with only a conjunction between them, which the tree links to nothing.

        "A white dress and brown boots", where the parser makes "brown" the conjunct. The subject of
        a verb begins a clause: "a man is on a bench and a dog lies below".
        """
        for token in doc:
            if (
                token.lower_ not in self.ontology.by_last
                or token.i in joined
                or token.tag_ not in NOUNS
                or token.dep_ in ("nsubj", "nsubjpass", "compound")
            ):
                continue
            second = self._resolve(doc, text, token)
            conjunction = None if second is None else self._conjunction(doc, second.begin)
            if second is None or conjunction is None or second.head.i != token.i:
                continue
            at = conjunction.i - 1
            before = doc[at - 1] if doc[at].text == "," and at else doc[at]
            own = before.dep_ == "nmod" and before.head.i == token.i
            if before.tag_ not in NOUNS or (_unseen(before) and not own):
                continue
            first = self._resolve(doc, text, before)
            if first is None or first.head.i != before.i or self._heads_both(doc, second):
                continue
            if not _one_person(first, second) and not _one_dish(doc, first, second):
                yield first, second, "coordination", conjunction.lower_

    def _conjunction(self, doc: Sequence[Word], name: Word) -> Word | None:
        """The conjunction before a name, with at most four words between that name nothing."""
        for at in range(name.i - 1, max(name.i - 6, 0), -1):
            word = doc[at]
            if word.lower_ in ("and", "&", "+", "or"):
                return word
            named = word.tag_ in NOUNS and word.lower_ in self.ontology.by_last
            if word.tag_ not in _BEFORE_NOUNS or named:
                return None
        return None

    def _coordination(self, doc: Sequence[Word], text: str, token: Word) -> Iterator[_Link]:
        """A conjunct and the nearest earlier conjunct of its chain that is an entity."""
        second = self._resolve(doc, text, token)
        if second is None or _unseen(token) or self._heads_both(doc, second):
            return
        earlier = token.head
        while True:
            first = self._resolve(doc, text, _complement(earlier, token))
            if first is not None:
                first = self._nearer(doc, text, earlier, token, first, second)
                if not _one_person(first, second) and not _one_dish(doc, first, second):
                    yield first, second, "coordination", _coordinator(doc, token)
                return
            if earlier.dep_ != "conj" and not _listed(earlier):
                return
            earlier = earlier.head

    def _slash(self, doc: Sequence[Word], text: str, token: Word) -> Iterator[_Link]:
        """Two names with a slash between, which the parser takes for one: "sofa/chair"."""
        noun = token.head
        if noun.i != token.i + 2 or text[_end(token) : noun.idx] != "/":
            return
        first, second = self._resolve(doc, text, token), self._resolve(doc, text, noun)
        if first is not None and second is not None:
            yield first, second, "coordination", "/"

    def _preposition(self, doc: Sequence[Word], text: str, token: Word) -> Iterator[_Link]:
        """The object of a spatial preposition and each noun that the phrase modifies."""
        word, above = token.lower_, token.head
        if token.dep_ == "agent":
            if above.lower_ not in SURROUNDING:
                return
        elif word not in SPATIAL and not (word in LINKS and is_place(above)):
            return
        target = _object(token)
        if target is None or not _of_place(token, target):
            return
        named = (self._resolve(doc, text, t) for t in (target, *conjuncts(target)))
        second = next((n for n in named if n is not None), None)  # "with long hair and a hat"
        modified = None if second is None else self._modified(doc, text, token)
        if second is None or modified is None:
            return
        subject, first = self._better(doc, text, token, *modified, second)
        if word == "with" and target.lower_ == "glasses" and first.entity.animate:
            second = self._as(second, "eyeglasses", second.begin)
        relation = _relation(doc, token)
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

    def _modified(self, doc: Sequence[Word], text: str, token: Word) -> tuple[Word, _Found] | None:
        """The noun that a prepositional phrase modifies by the tree, and what it names."""
        above = token.head
        subject: Word | None
        if token.lower_ in ("on", "over") and above.tag_ not in NOUNS and above.lower_ in PUTTING:
            subject = next((t for t in above.rights if t.dep_ == "dobj" and t.i < token.i), None)
        else:
            subject = subject_of(above, self._names_end)
        if subject is None:
            return None
        found = self._resolve(doc, text, subject)
        if found is None and subject.dep_ in ("pobj", "conj") and token.lower_ != "with":
            # "a woman with long hair next to a bird"
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
    ) -> tuple[Word, _Found]:
        """Subject and name, or the living thing that the phrase is about where the parser chose
        what it is on, in, holds or wears.

        "A man waiting for a train with a phone in his hand", "a dog on a bed next to a teddy bear",
        "a woman in a hat with a dog", "people wearing helmets standing next to bikes".
        """
        chosen = subject, first
        if first.entity.animate or token.head.tag_ == "VBN":
            return chosen
        above = noun_above(subject, self._names_end)
        found = None if above is None else self._resolve(doc, text, above)
        if above is None or found is None:
            return chosen
        holding = subject.head.lower_ == "with" and token.lower_ != "with"
        if holding and first.entity.category in ("everyday", "devices_leisure"):
            return above, found  # "a present with a ribbon to the left of a tree"
        if not found.entity.animate:
            return chosen
        toy = second.entity.animate or second.entity.category == "devices_leisure"
        seat = first.entity.category in ("furniture", "vehicles") and toy
        own = any(t.lower_ in POSSESSIVES for t in _below(second.head))
        worn = subject.dep_ in ("pobj", "conj", "dobj") and first.entity.category == "everyday"
        return (above, found) if seat or own or worn else chosen

    def _nearer(
        self,
        doc: Sequence[Word],
        text: str,
        noun: Word,
        conjunct: Word,
        first: _Found,
        second: _Found,
    ) -> _Found:
        """What a noun comes with, wears or holds, if that is what a conjunct joins.

        "A bike with a bag and a lamp", "a dog wearing a tie and a hat", "a man in a shirt and tie".
        The parser mostly joins the noun itself, which is right for "a man with a hat and a woman".
        """
        couple = first.entity.animate and second.entity.animate
        for right in noun.rights:
            if right.i > conjunct.i:
                break
            target = _object(right)
            if right.dep_ == "acl" and right.tag_ == "VBG":
                target = next((t for t in right.rights if t.dep_ == "dobj"), None)
            elif right.lower_ not in ("with", "in", "of"):
                continue
            inner = None
            if target is not None and right.i < target.i < conjunct.i:
                inner = self._resolve(doc, text, target)
            if inner is None or (couple and not inner.entity.animate):
                continue
            alike = inner.entity.category == second.entity.category
            if alike or (right.lower_ not in ("in", "of") and not second.entity.animate):
                return inner
        return first

    def _heads_both(self, doc: Sequence[Word], second: _Found) -> bool:
        """Whether "and" joins two modifiers: "fish and flowers t-shirt", "corn and bean soup".

        The word after the conjunction is an entity, but not the head, and no article is between.
        """
        word = _bare_modifier(doc, second)
        return word is not None and word.lower_ in self.ontology.by_last

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
        token = self._whole(doc, token)
        word, figure = token.lower_, _figure(token)
        if any(t.lower_ == "no" for t in token.lefts):
            return None
        if figure is not None:
            return self._named(doc, text, figure)
        if word in QUANTITIES or (word in DEPICTIONS and token.dep_ in _SHOWN):
            of = next((t for t in token.rights if t.dep_ == "prep" and t.lower_ == "of"), None)
            inner = of and next((t for t in of.rights if t.dep_ == "pobj"), None)
            found = self._resolve(doc, text, inner) if inner else None
            if found is not None:
                quantity = found.quantity or (token if word in QUANTITIES else None)
                return replace(found, quantity=quantity)
        return self._named(doc, text, token)

    def _named(self, doc: Sequence[Word], text: str, token: Word) -> _Found | None:
        """The longest name that ends in a token; it may be written with hyphens.

        A one-word name must be tagged as a noun; "fire hydrant" counts whatever its tag.
        """
        forms = self.ontology.by_last.get(token.lower_)
        if forms is None or not _stands_alone(text, token) or _modifies(doc, token):
            return None
        for form in forms:
            if not form.before and token.tag_ not in NOUNS:
                return None
            at = token.i
            for word in form.before:
                at -= 2 if at > 1 and doc[at - 1].lower_ == "-" else 1
                if at < 0 or doc[at].lower_ != word or not _stands_alone(text, doc[at]):
                    break
            else:
                if form.entity is None:
                    return None
                return self._of_its_kind(_Found(form.entity, token, doc[at], None, form.entity))
        return None

    def _whole(self, doc: Sequence[Word], token: Word) -> Word:
        """The last word of the name that a token begins, where the parser splits "fire hydrant"."""
        after = doc[token.i + 1] if token.i + 1 < len(doc) else None
        if after is not None and any(
            form.before == (token.lower_,) and form.entity
            for form in self.ontology.by_last.get(after.lower_, ())
        ):
            return after
        return token if token.lower_ in self.ontology.by_last else _noun_of(token)

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


def _modifies(doc: Sequence[Word], token: Word) -> bool:
    """Whether a noun is no thing here: the next noun's modifier, a game that is played, a stuff.

    The parser often makes "pencil" the head in "shirt and pencil skirt".
    """
    if token.lower_ == "glass" and not any(t.dep_ in _MODIFYING for t in token.lefts):
        return True
    if token.lower_ in GAMES and token.dep_ == "dobj" and token.head.lower_ in PLAYED:
        return True
    after = doc[token.i + 1] if token.i + 1 < len(doc) else None
    if after is None or after.idx != _end(token) + 1 or not after.text.isalpha():
        return False
    if token.text[0].isupper() and after.text[0].isupper():  # "Three Pigs and the Wolf Posters"
        return after.tag_ in NOUNS and after.lower_ not in IMPRINTS
    return (
        after.tag_ == "NN"
        and after.dep_ not in ("ROOT", "conj", "appos", "npadvmod")
        and not after.lower_.endswith("ing")
    )


def _figure(token: Word) -> Word | None:
    """The statue that a horse is, or the drawing that it is in: "a drawing of a horse"."""
    while token.dep_ == "conj" and token.head.i != token.i:
        token = token.head
    if token.dep_ != "pobj" or token.head.lower_ != "of":
        return None
    above = token.head.head
    shown = above.lower_ in DEPICTIONS and above.dep_ in _SHOWN
    return above if above.lower_ in FIGURES | DEPICTIONS and not shown else None


def _noun_of(token: Word) -> Word:
    """The noun of a phrase whose verb the tagger took for its head.

    "A couch playing wii" and "a racket waits" aren't nouns with two modifiers.
    """
    modifiers = [t for t in token.lefts if t.dep_ == "compound"]
    for word in modifiers:
        inner = word.lefts if word.lower_.endswith("ing") else ()
        for noun in inner:
            if noun.dep_ == "compound" and noun.i + 1 == word.i:
                return noun
    if token.tag_ == "NNS" and modifiers and any(t.lower_ in ("a", "an") for t in token.lefts):
        return modifiers[-1]
    return token


def _object(token: Word) -> Word | None:
    """What a preposition points to; it may be in a clause: "with his phone on"."""
    for below in token.rights:
        if below.dep_ == "pobj":
            return below
        if below.dep_ == "pcomp":
            return next((t for t in below.lefts if t.dep_ in ("nsubj", "nsubjpass")), None)
    return None


def _of_place(token: Word, target: Word) -> bool:
    """Whether a preposition says where something is, rather than who made it or what for."""
    word, above = token.lower_, token.head
    if above.lower_ in WATCHING and word in ("on", "over", "around"):
        return False
    if word in ("against", "over") and target.tag_ in ("NNP", "NNPS"):
        return target.text.isupper()  # a match against the Wizards
    if word == "by" and token.dep_ == "prep":
        known = any(t.dep_ in _QUANTIFYING for t in target.lefts) or target.tag_ == "NNS"
        return known and not target.tag_.startswith("NNP")
    if word in LINKS:
        return above.head.lower_ != "with"  # "with a side of bread"
    return not (is_place(above) and (word == "with" or above.tag_.startswith("VB")))


def _unseen(conjunct: Word) -> bool:
    """Whether the words joined describe a noun, or whom it is for: "orange & lemon soap"."""
    root = conjunct
    while root.dep_ in ("conj", "appos") and root.head.i != root.i:
        root = root.head
    if root.dep_ != "pobj":
        return root.dep_ in ("compound", "nmod")
    made = root.head.head.lower_ if root.head.lower_ == "of" else ""
    return root.head.lower_ == "for" or made in ("made", "out")


def _below(token: Word) -> Iterator[Word]:
    """All that depends on what follows a word: "in his hand"."""
    for right in token.rights:
        yield from right.lefts
        yield right
        yield from _below(right)


def _bare_modifier(doc: Sequence[Word], found: _Found) -> Word | None:
    """The noun between a conjunction and a name that it modifies, if nothing else is there."""
    first = min([*_modifiers(found.head), found.begin], key=lambda t: t.i)
    bare = first.i < found.begin.i and first.dep_ == "compound" and first.tag_ in NOUNS
    joined = first.i > 0 and doc[first.i - 1].lower_ in ("and", "&", ",")
    return first if bare and joined else None


def _one_dish(doc: Sequence[Word], first: _Found, second: _Found) -> bool:
    """Whether two names of food are one dish: "peanut and ginger chicken"."""
    if {first.entity.category, second.entity.category} != {"food_kitchen"}:
        return False
    determined = any(t.dep_ in _QUANTIFYING for t in first.head.lefts)
    return not determined and _bare_modifier(doc, second) is not None


def _one_person(first: _Found, second: _Found) -> bool:
    """Whether two roles name one person: "the singer and composer performs"."""
    if {first.entity.category, second.entity.category} != {"people"}:
        return False
    at = first.head
    while at.dep_ == "conj" and at.head.i != at.i:
        at = at.head
    determined = any(t.dep_ in ("det", "poss") for t in second.head.lefts)
    return at.dep_ == "nsubj" and at.head.tag_ == "VBZ" and not determined


def _stands(first: _Found, second: _Found, relation: str, token: Word) -> bool:
    """Whether a preposition says that the two are there, beside or on each other."""
    one, other = first.entity, second.entity
    if second.head.head.dep_ == "pcomp" and one.animate:
        # "sleeping with his phone on", but not "near a wall with pots hanging"
        return any(t.lower_ in POSSESSIVES for t in second.head.lefts)
    if relation == "on" and one.animate and other.name in ("door", "window"):
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


def _complement(token: Word, conjunct: Word) -> Word:
    """The noun that a conjunct really joins where it attaches to a verb: "there is a cat and …"."""
    if token.tag_ in NOUNS:
        return token
    nouns = [t for t in token.rights if t.dep_ in ("attr", "dobj") and t.i < conjunct.i]
    return nouns[-1] if nouns else token


def _coordinator(doc: Sequence[Word], token: Word) -> str:
    """The word or character right before a conjunct's phrase, or its conjunction, or ","."""
    start = min([*_modifiers(token), token], key=lambda t: t.i).i
    if start and doc[start - 1].lower_ in COORDINATORS | set(PUNCTUATION):
        return doc[start - 1].lower_
    words = [t.lower_ for t in token.head.rights if t.dep_ == "cc" and t.i < token.i]
    return words[-1] if words else ","


def _relation(doc: Sequence[Word], token: Word) -> str:
    """The preposition with the words that belong to it: "next to", "to the left of"."""
    start, at = token.i, token.head
    while at.i < start and (is_place(at) or at.dep_ == "prep"):
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
        head=found.head.text,
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
