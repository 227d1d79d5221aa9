"""From a parsed caption to its pairs: coordination and explicit prepositions.

Plain functions over tokens, so that the rules can be tested without a model; spaCy's `Token` has
everything that `Word` names. Labels are those of spaCy's English models.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from .ontology import CaptionEntity, Ontology, distinct
from .prefilter import COORDINATORS, PLACES, PUNCTUATION, SPATIAL, triggered


class Word(Protocol):
    """A token of a dependency tree."""

    i: int
    idx: int
    text: str
    lower_: str
    tag_: str
    dep_: str

    @property
    def head(self) -> Word: ...
    @property
    def lefts(self) -> Iterable[Word]: ...
    @property
    def rights(self) -> Iterable[Word]: ...
    @property
    def left_edge(self) -> Word: ...
    @property
    def right_edge(self) -> Word: ...


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


NOUNS = frozenset(("NN", "NNS", "NNP", "NNPS"))

QUANTITIES = frozenset(
    "pair couple group bunch herd flock pack crowd row line stack pile set team trio dozen dozens "
    "number lot lots variety hundreds thousands handful".split()
)
"""Before "of X" they quantify X and are not entities: "a couple of dogs" shows dogs."""

DEPICTIONS = frozenset(
    "photo photograph picture image portrait painting drawing sketch illustration shot view "
    "snapshot closeup print".split()
)
"""Before "of X" they depict X: in "photo of a cat and a dog", the parser joins photo and dog."""

_LINKS = frozenset(("to", "of", "from"))
"""Last words of multiword prepositions, after the place word."""
_CLIMBED = frozenset(("advmod", "prep", "pobj", "acl", "amod", "prt"))
_CLAUSES = frozenset(("relcl", "advcl", "conj", "xcomp"))
_QUANTIFYING = frozenset(("det", "nummod", "predet", "poss", "quantmod"))
_MODIFYING = _QUANTIFYING | {"amod", "compound", "nmod", "nounmod", "advmod"}
_RELATIVE = frozenset(("WDT", "WP"))
_MAX_CLIMB = 6
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


class Extractor:
    """The extraction rules for one ontology."""

    def __init__(self, ontology: Ontology) -> None:
        self.ontology = ontology

    def pairs(self, doc: Sequence[Word], text: str) -> list[CaptionPair]:
        """Every pair of one parsed caption; `text` is what was parsed.

        A pair is two nouns of the ontology, neither a kind of the other, linked both by the tree
        and by a trigger in the text between them.
        """
        found = []
        for token in doc:
            if token.dep_ == "conj" or _listed(token):
                link = self._coordination(doc, text, token)
            elif token.dep_ == "prep":
                link = self._preposition(doc, text, token)
            else:
                continue
            if link is None:
                continue
            first, second, pattern, relation = link
            if (
                first.head.i < second.head.i
                and distinct(first.entity, second.entity)
                and triggered(text[_end(first.head) : second.head.idx])
            ):
                found.append(
                    CaptionPair(
                        first=_mention(text, first),
                        second=_mention(text, second),
                        pattern=pattern,
                        relation=relation,
                        sentence=_sentence(text, token),
                    )
                )
        return found

    def _coordination(
        self, doc: Sequence[Word], text: str, token: Word
    ) -> tuple[_Found, _Found, Pattern, str] | None:
        """A conjunct and the nearest earlier conjunct of its chain that is an entity."""
        second = self._resolve(doc, text, token)
        if second is None:
            return None
        earlier = token.head
        while True:
            first = self._resolve(doc, text, _complement(earlier, token))
            if first is not None:
                return first, second, "coordination", _coordinator(doc, token)
            if earlier.dep_ != "conj" and not _listed(earlier):
                return None
            earlier = earlier.head

    def _preposition(
        self, doc: Sequence[Word], text: str, token: Word
    ) -> tuple[_Found, _Found, Pattern, str] | None:
        """The object of a spatial preposition and the noun that the phrase modifies."""
        word = token.lower_
        if word not in SPATIAL and not (word in _LINKS and token.head.lower_ in PLACES):
            return None
        target = next((t for t in token.rights if t.dep_ == "pobj"), None)
        second = None if target is None else self._resolve(doc, text, target)
        if second is None:
            return None
        subject = _subject(token.head)
        first = None if subject is None else self._resolve(doc, text, subject)
        if first is None:
            return None
        return first, second, "preposition", _relation(doc, token)

    def _resolve(self, doc: Sequence[Word], text: str, token: Word) -> _Found | None:
        """The entity that a noun names, looking through "a pair of" and "photo of"."""
        word = token.lower_
        if word in QUANTITIES or word in DEPICTIONS:
            of = next((t for t in token.rights if t.dep_ == "prep" and t.lower_ == "of"), None)
            inner = of and next((t for t in of.rights if t.dep_ == "pobj"), None)
            found = self._resolve(doc, text, inner) if inner else None
            if found is not None:
                quantity = found.quantity or (token if word in QUANTITIES else None)
                return _Found(found.entity, found.head, found.begin, quantity)
        return self._named(doc, text, token)

    def _named(self, doc: Sequence[Word], text: str, token: Word) -> _Found | None:
        """The longest name that ends in a token; it may be written with hyphens.

        A one-word name must be tagged as a noun; "fire hydrant" counts whatever its tag.
        """
        forms = self.ontology.by_last.get(token.lower_)
        if forms is None or not _stands_alone(text, token):
            return None
        for form in forms:
            if not form.before and token.tag_ not in NOUNS:
                return None
            at = token.i
            for word in form.before:
                at -= 2 if at > 1 and doc[at - 1].lower_ == "-" else 1
                if at < 0 or doc[at].lower_ != word:
                    break
            else:
                return _Found(form.entity, token, doc[at], None) if form.entity else None
        return None


def _stands_alone(text: str, token: Word) -> bool:
    """Whether the token is a whole word of the text, not a piece that the tokenizer cut off."""
    before, after = text[: token.idx][-1:].lower(), text[_end(token) :][:1].lower()
    return not ("a" <= before[-1:] <= "z" or "a" <= after[:1] <= "z")


def _subject(token: Word) -> Word | None:
    """The noun that a prepositional phrase modifies, climbing from the word it attaches to."""
    for _ in range(_MAX_CLIMB):
        place = token.lower_ in PLACES
        if token.tag_ in NOUNS and not place:
            return token
        if place or token.dep_ in _CLIMBED:
            above = token.head
        else:
            subject = next((t for t in token.lefts if t.dep_ in ("nsubj", "nsubjpass")), None)
            if subject is not None:
                relative = token.dep_ == "relcl" and subject.tag_ in _RELATIVE
                return token.head if relative else subject
            if token.dep_ not in _CLAUSES:
                return None
            above = token.head
        if above.i == token.i:
            return None
        token = above
    return None


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
    while at.i < start and (at.lower_ in PLACES or at.dep_ == "prep"):
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
