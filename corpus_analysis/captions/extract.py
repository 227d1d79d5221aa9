"""From a parsed caption to its pairs: coordination and explicit prepositions.

Plain functions over tokens, so that the rules can be tested without a model; spaCy's `Token` has
everything that `Word` names. Labels are those of spaCy's English models.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .attachment import Word, is_listed
from .coordination import Coordination
from .names import (
    QUANTIFYING,
    CaptionWords,
    Link,
    NamedThing,
    NameResolver,
    Pattern,
    end,
    modifiers,
)
from .ontology import Ontology, distinct
from .prefilter import COORDINATORS, PUNCTUATION, triggered
from .prepositions import Prepositions

_ONE_KIND = frozenset((",", "or", "plus", "against", "over", "by"))
"""Relations after which a name and its kind are one thing, or a role that somebody plays."""

_ALONE = frozenset(("on", "outside"))
"""Prepositions with a single object: "sitting on a chair and looking at a book"."""


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


_SPATIAL_WORDS = re.compile(
    r"(?<![a-z])(left|right|above|below|top|bottom|upper|lower|front|behind|beside|next to|"
    r"between|middle|center|centre|foreground|background)(?![a-z])"
)


def spatial_words(text: str) -> list[str]:
    """The layout words of a caption, lower case, in order, each once.

    >>> spatial_words("Left: a cat. Right: a dog, on the left of a tree")
    ['left', 'right']
    """
    return list(dict.fromkeys(_SPATIAL_WORDS.findall(text.lower())))


class Extractor:
    """The extraction rules for one ontology."""

    def __init__(self, ontology: Ontology) -> None:
        self.ontology = ontology
        self._resolver = NameResolver(ontology)
        self._coordination = Coordination(self._resolver)
        self._prepositions = Prepositions(self._resolver)

    def pairs(self, words: Sequence[Word], text: str) -> list[CaptionPair]:
        """Every pair of one parsed caption; `text` is what was parsed.

        A pair is two nouns of the ontology with different names, linked both by the tree and by a
        trigger in the text between them, or in a list that ends in two such. Each two are one pair.
        """
        doc = CaptionWords(words, text)
        pairs: list[CaptionPair] = []
        links: list[Link] = []
        linked_heads: set[tuple[int, int]] = set()
        joined: set[int] = set()  # heads that a coordination has linked to what is before
        begun = self._coordination.list_beginnings(doc, links)
        for some in (
            self._by_tree(doc),
            self._coordination.of_neighbors(doc, joined),
            begun,
            _shared_objects(links),
        ):
            for link in some:
                first, second, pattern, relation = link
                heads = first.head.i, second.head.i
                if heads in linked_heads or heads[0] >= heads[1]:
                    continue
                if some is not begun and not _linked(text, first, second):
                    continue
                linked_heads.add(heads)
                links.append(link)  # of two of a kind too, for what is joined to the second
                if not _are_distinct(first, second, relation):
                    continue
                if pattern == "coordination":
                    joined.add(second.head.i)
                sentence = _sentence(text, second.head)
                halves = _mention(text, first), _mention(text, second)
                pairs.append(CaptionPair(*halves, pattern, relation, sentence))
        return pairs

    def mentions(self, words: Sequence[Word], text: str) -> list[CaptionMention]:
        """Every entity that a parsed text names, linked to another or not, in order.

        Each noun counts once; "no dog" names none.
        """
        doc = CaptionWords(words, text)
        things: dict[int, NamedThing] = {}
        for token in doc:
            if token.lower_ in self.ontology.by_last:
                thing = self._resolver.resolve(doc, token)
                if thing is not None:
                    things.setdefault(thing.head.i, thing)
        return [_mention(text, things[at]) for at in sorted(things)]

    def _by_tree(self, doc: CaptionWords) -> Iterator[Link]:
        """Links along the arcs of the tree."""
        for token in doc:
            link = token.dep_
            if link == "conj" and token.tag_ == "IN":  # "on a board and on a ramp"
                yield from self._prepositions.of_preposition(doc, token)
            elif link == "conj" or (link == "appos" and is_listed(token)):
                yield from self._coordination.of_conjunct(doc, token)
            elif link in ("prep", "agent"):
                yield from self._prepositions.of_preposition(doc, token)
            elif link in ("nsubj", "nsubjpass"):
                yield from self._coordination.of_two_subjects(doc, token)


def _shared_objects(links: Sequence[Link]) -> Iterator[Link]:
    """Links to what is joined to a preposition's object: the plums in "a bowl with bananas and
    plums". Not after "on" and "outside": each thing has one place there."""
    links = list(links)
    after: dict[int, list[NamedThing]] = {}
    for first, second, pattern, _ in links:
        if pattern == "coordination":
            after.setdefault(first.head.i, []).append(second)
    for first, second, pattern, relation in links:
        shared = pattern == "preposition" and _ALONE.isdisjoint(relation.split())
        later = [second] if shared else []
        while later:
            for joined in after.get(later.pop(0).head.i, ()):
                later.append(joined)
                repeated = (
                    joined.entity.name == second.entity.name
                )  # "a plate of … and a plate of …"
                if not repeated:
                    yield first, joined, "preposition", relation


def _linked(text: str, first: NamedThing, second: NamedThing) -> bool:
    """Whether the text between two mentions links them."""
    start, stop = second.head.idx, end(second.head)
    return triggered(text[end(first.head) : start], text[stop:], text[start:stop])


def _are_distinct(first: NamedThing, second: NamedThing, relation: str) -> bool:
    """Whether two mentions name two things, which may be one a kind of the other: "a dog and a
    puppy", "a man near people", but not "hats, cap".

    So are CC3M's "person", which stands for a name, and a role: "person and groom".
    """
    entity, second_entity = first.entity, second.entity
    if entity.name == second_entity.name or first.plain.name == second.plain.name:
        return False
    if distinct(entity, second_entity) and distinct(first.plain, second.plain):
        return True
    if relation in _ONE_KIND:
        return False
    if relation == "with" and entity.category == "food_kitchen":
        return False  # "meat with beef"
    joined = relation in COORDINATORS | set(PUNCTUATION) | {"with"}
    # "cakes & wedding cakes"
    return not (joined and entity.name.split(" ")[-1] == second_entity.name.split(" ")[-1])


def _mention(text: str, thing: NamedThing) -> CaptionMention:
    start = min([*modifiers(thing.head), thing.begin], key=lambda t: t.i)
    if thing.quantity is not None:
        begin = min([*modifiers(thing.quantity), thing.quantity], key=lambda t: t.i)
        quantifier = text[begin.idx : start.idx].strip()
        start = begin
    else:
        quantifier = " ".join(t.lower_ for t in thing.head.lefts if t.dep_ in QUANTIFYING)
    return CaptionMention(
        name=thing.entity.name,
        category=thing.entity.category,
        head=text[thing.head.idx : end(thing.head)],
        phrase=text[start.idx : end(thing.head)],
        quantifier=quantifier,
        start=thing.begin.idx,
        end=end(thing.head),
    )


def _sentence(text: str, token: Word) -> str:
    """The text of the tree that a token belongs to."""
    while token.head.i != token.i:
        token = token.head
    return text[token.left_edge.idx : end(token.right_edge)]
