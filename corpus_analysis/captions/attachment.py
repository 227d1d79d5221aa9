"""Attachment of a prepositional phrase: the noun that it modifies, and the nouns that share it."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from typing import Protocol

from .prefilter import HAVING, PLACES, SPATIAL
from .words import ACTING, DEPICTIONS, DOING, LINKS, MOVING, NO_ACTS, POSTURES, QUANTITIES


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


NOUNS = frozenset(("NN", "NNS", "NNP", "NNPS"))

PARTS = frozenset(
    "hood bonnet roof branch limb base bottom foot end tip corner arm armrest lap shoulder "
    "shoulders head bow stern deck hand paw tail backs".split()
)
"""Parts that stand for the whole after a preposition: "on the hood of a car"."""

POSSESSIVES = frozenset(("his", "her", "their"))

_CLIMBED = frozenset(("advmod", "prep", "agent", "pobj", "acl", "amod", "acomp", "prt"))
_CLAUSES = frozenset(("relcl", "advcl", "conj", "xcomp", "pcomp"))
_FINITE = frozenset(("ROOT", "conj", "ccomp", "relcl", "advcl"))
_SUBJECTS = ("nsubj", "nsubjpass")
_POINTING = frozenset(("this", "these", "it"))
_SHOWING = frozenset(
    "contain contains show shows depict depicts feature features include includes".split()
)
_NEAR = frozenset(("next", "close", "adjacent"))
_RELATIVE = frozenset(("WDT", "WP"))
_DONE = ACTING | DOING | MOVING | POSTURES
"""Verbs that the tagger takes for nouns, although they have a subject."""
_MAX_CLIMB = 6


def is_place(token: Word) -> bool:
    """Whether a word belongs to a preposition of several words: "left" in "on the left of"."""
    if token.lower_ == "top" and token.head.lower_ == "in":
        return False  # "a woman in a blue top"
    if token.lower_ in PLACES:
        return True
    return token.lower_ in PARTS and token.dep_ == "pobj" and token.head.lower_ in SPATIAL


def is_placing(token: Word) -> bool:
    """Whether a word and "of" or "to" are a preposition: "in front of", "outside of"."""
    return is_place(token) or token.lower_ == "outside"


def above_of(doc: Sequence[Word], token: Word) -> Word:
    """Head of a preposition; for "with", the noun right before it rather than its place.

    "To the right of a plate with toast on it", where the parser chose "right".
    """
    before = doc[token.i - 1]
    of = before.head
    if token.lower_ == "to" and before.lower_ in _NEAR and of.i == token.head.i:
        return before  # "sitting next to", where the parser joins both words to the verb
    placed = before.dep_ == "pobj" and of.lower_ in LINKS and of.head.i == token.head.i
    return before if token.lower_ == "with" and placed and is_place(token.head) else token.head


def is_no_act(token: Word) -> bool:
    """Whether the parser takes a thing after a preposition for an act: "next to building"."""
    return token.dep_ == "pcomp" and token.lower_ in NO_ACTS


def subject_of(token: Word, is_name: Callable[[Word], bool]) -> Word | None:
    """The noun that a phrase modifies, climbing from the word that it attaches to.

    is_name: whether a token that isn't tagged as a noun ends a name.
    """
    for _ in range(_MAX_CLIMB):
        place = is_place(token)
        noun = token.tag_ in NOUNS and token.dep_ != "acl"  # "a girl playing on a bed"
        noun = noun or is_no_act(token)
        if not place and (noun or is_name(token)):
            acts = (t for t in token.lefts if t.dep_ == "nsubj" and token.lower_ in _DONE)
            return next(acts, token)  # "a drone flies over a house"
        if place or token.dep_ in _CLIMBED:
            above = token.head
        else:
            subject = _verb_subject(token) or _acting(token)
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


def _verb_subject(verb: Word) -> Word | None:
    """A verb's subject; what there is, or is had, in "there is a cat", "this is a cat", "the image
    shows a cat" and "he has food"."""
    subjects = [t for t in verb.lefts if t.dep_ in _SUBJECTS]
    pointing = any(t.dep_ == "expl" for t in verb.lefts) or (
        bool(subjects) and subjects[-1].lower_ in _POINTING
    )
    depicts = verb.lower_ in _SHOWING and bool(subjects) and subjects[-1].lower_ in DEPICTIONS
    if pointing or depicts or verb.lower_ in HAVING:
        there = next((t for t in verb.rights if t.dep_ in ("attr", "dobj")), None)
        if there is not None:
            return there
    return subjects[-1] if subjects else None


def subject_before(verb: Word) -> Word | None:
    """A verb's own subject, or the noun that its clause is about: "a desk that has"."""
    subject = next((t for t in verb.lefts if t.dep_ in _SUBJECTS), None)
    if verb.dep_ in ("acl", "relcl") and (subject is None or subject.tag_ in _RELATIVE):
        return verb.head
    return subject


def _acting(verb: Word) -> Word | None:
    """Actor of a verb of which the parser takes it for a part: "a dragon landing on a roof",
    "a bus drives through a street"."""
    before = [t for t in verb.lefts if t.dep_ in ("compound", "npadvmod") and t.tag_ in NOUNS]
    finite = verb.tag_ in ("VBZ", "VBD") and verb.dep_ in _FINITE
    alone = verb.tag_ == "VBG" and verb.dep_ == "ROOT"  # "a blender laying on a table"
    acts = verb.lower_ in ACTING or finite or alone
    return before[-1] if before and acts else None


def noun_above(token: Word, is_name: Callable[[Word], bool]) -> Word | None:
    """The noun that a noun's own phrase or verb is about: the man in "a man on a bench"."""
    token = root_of(token, ("conj", "appos"))
    if token.dep_ not in ("pobj", "dobj") or token.head.i == token.i:
        return None
    return subject_of(token.head, is_name)


def sharing(subject: Word, before: Word) -> Iterator[Word]:
    """The other conjuncts of a subject that precede a word: "a cat and a dog sit on a couch".

    The parser may make the first one a modifier: "a laptop and three phones on a table".
    """
    root = root_of(subject)
    while is_listed(root) and root.tag_ in ("NN", "NNS"):
        root = root_of(root.head)  # "a fork, a chop, beans and an egg on a plate"
    for dependent in root.lefts:
        if (
            dependent.dep_ == "nmod"
            and dependent.tag_ in NOUNS
            and any(t.dep_ == "cc" for t in dependent.rights)
        ):
            yield dependent
    held = (t for of in root.rights if of.lower_ == "of" for t in of.rights if t.dep_ == "pobj")
    beside = (
        noun
        for t in held
        for noun in conjuncts(t)
        if any(a.dep_ in ("det", "nummod") for a in noun.lefts)
    )
    for noun in (root, *conjuncts(root), *beside):
        if noun.i != subject.i and noun.i < before.i:
            yield noun


def root_of(noun: Word, joined: Container[str] = ("conj",)) -> Word:
    """The first of the words that a noun is joined to by these labels."""
    while noun.dep_ in joined and noun.head.i != noun.i:
        noun = noun.head
    return noun


def is_listed(token: Word) -> bool:
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


def conjuncts(token: Word) -> Iterator[Word]:
    """The later conjuncts of a word, in order."""
    for right in token.rights:
        if right.dep_ == "conj" or (right.tag_ in ("NN", "NNS") and is_listed(right)):
            yield right
            yield from conjuncts(right)


def object_of(token: Word) -> Word | None:
    """Object of a preposition; it may be in a clause: "with his phone on"."""
    for below in token.rights:
        if below.dep_ == "pobj":
            whose = next((t for t in below.lefts if t.dep_ == "poss"), None)
            return whose if whose is not None and below.lower_ in PARTS | {"back"} else below
        if is_no_act(below):
            return below
        if below.dep_ == "pcomp":
            return next((t for t in below.lefts if t.dep_ in _SUBJECTS), None)
    return None
