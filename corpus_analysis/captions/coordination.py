"""Things that a caption joins: "and", lists, a slash."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from .attachment import NOUNS, Word, conjuncts, is_listed, noun_above, object_of, root_of
from .names import (
    AND,
    BEFORE_NOUNS,
    DETERMINERS,
    QUANTIFYING,
    CaptionWords,
    Link,
    NamedThing,
    NameResolver,
    ends_field,
    in_set,
    is_noun,
    modifiers,
)
from .prefilter import COORDINATORS, PUNCTUATION, SPATIAL
from .words import ACTING, COATED, LINKS, QUANTITIES

_JOINING = AND | {","}
_ADJECTIVES = frozenset(("JJ", "VBN"))
_DESCRIBING = _ADJECTIVES | {"JJR"}
_FINITE = frozenset(("MD", "VBD", "VBP", "VBZ"))
_MAX_COMMAS = 2
"""Most things of a list without "and"; longer lists are keywords."""


class Coordination:
    """The rules of coordination for one ontology."""

    def __init__(self, resolver: NameResolver) -> None:
        self._resolver = resolver

    def of_neighbors(self, doc: CaptionWords, joined: set[int]) -> Iterator[Link]:
        """Names with only a conjunction between them, which the tree links to nothing.

        "A white dress and brown boots", where the parser makes "brown" the conjunct. The subject of
        a verb begins a clause: "a man is on a bench and a dog lies below".
        """
        if _JOINING.isdisjoint(token.lower_ for token in doc):
            return
        for token in doc:
            if token.i not in joined and self._may_end_list(doc, token):
                link = self._to_neighbor(doc, token)
                if link is not None:
                    yield link

    def _may_end_list(self, doc: CaptionWords, token: Word) -> bool:
        """Whether a word may be the second of two joined names, rather than a modifier."""
        if token.lower_ not in self._resolver.ontology.by_last or token.dep_ == "poss":
            return False
        if not is_noun(doc, token):
            return False
        modifies = token.dep_ == "compound" and not ends_field(doc, token)
        return not modifies or in_set(doc, token) or _is_doing(token)

    def _to_neighbor(self, doc: CaptionWords, token: Word) -> Link | None:
        """Link of a name to the one before its conjunction, if nothing else is between."""
        second = self._resolver.resolve(doc, token)
        conjunction = None if second is None else self._conjunction(doc, second)
        if second is None or conjunction is None or second.head.i != token.i:
            return None
        at = conjunction.i - 1
        before = doc[at - 1] if doc[at].text == "," and at else doc[at]
        if not is_noun(doc, before):
            return None
        clause = token.dep_ in ("nsubj", "nsubjpass") and not _is_participle(token.head)
        if (clause or _only_describes(before)) and not _modifies_conjunct(before, token):
            return None
        first = self._resolver.resolve(doc, before)
        if first is None or first.head.i != before.i:
            return None
        if conjunction.text == "," and before.lower_ in QUANTITIES:
            return None  # "a couple, a man and a woman"
        if _is_made_of(before) and _is_bare_content(before, token):
            return None
        past = token.head.tag_ == "VBD" and token.head.i == token.i - 1
        if past and first.entity.category != second.entity.category:
            return None  # "a jacket and checkered dress", but not "on a bench and played guitar"
        return first, second, "coordination", conjunction.lower_

    def _conjunction(self, doc: Sequence[Word], second: NamedThing) -> Word | None:
        """The conjunction before a name, with at most four words between that name nothing.

        A comma is one where a list goes on: "a fridge, a trash can and an oven".
        """
        name = second.begin
        for at in range(name.i - 1, max(name.i - 6, 0), -1):
            word = doc[at]
            if word.lower_ in AND or (word.text == "," and _list_goes_on(doc, name)):
                return word
            named = word.tag_ in NOUNS and self._resolver.is_name(word)
            named = named and doc[at + 1].lower_ not in COATED  # "a chocolate frosted donut"
            if named and second.entity.animate and doc[at - 1].text != ",":
                named = self._resolver.is_animate(word)  # "actor and tv producer"
            # "with storage beautiful kitchen islands"
            ends = word.tag_ in NOUNS and doc[at + 1].tag_ in ("JJ", "DT", "PRP$", "CD")
            if word.tag_ not in BEFORE_NOUNS or named or ends or _has_object(doc, word):
                return None
        return None

    def of_conjunct(self, doc: CaptionWords, token: Word) -> Iterator[Link]:
        """A conjunct and the nearest earlier conjunct of its chain that is an entity."""
        second = self._resolver.resolve(doc, token)
        coordinator = _coordinator(doc, token)
        if second is None or not coordinator or _only_describes(token):
            return
        if coordinator == "," and _is_keyword(doc, token):
            return
        earlier = token.head
        listed = [t for t in earlier.rights if t.dep_ == "appos" and t.i < token.i]
        if listed and token.dep_ == "conj" and self._resolver.resolve(doc, listed[-1]) is not None:
            earlier = listed[-1]  # "a violin, a suitcase, and a candle"
        else:
            earlier = self._last_conjunct_before(doc, earlier, token)
        while True:
            first = self._resolver.resolve(doc, _complement(earlier, token))
            first = first or self._last_content(doc, earlier, token)
            if first is not None:
                nearer = self._joined_thing(doc, earlier, token, first, second)
                if nearer is not None:
                    yield nearer, second, "coordination", coordinator
                return
            quantified = any(t.dep_ in QUANTIFYING for t in token.lefts)
            if second.entity.animate and quantified and earlier.tag_ in ("NN", "NNS"):
                # "a girl making a sign with her hand and a woman"
                above = noun_above(earlier, self._resolver.ends_name)
                living = None if above is None else self._resolver.resolve(doc, above)
                if living is not None and living.entity.animate and coordinator == "and":
                    yield living, second, "coordination", coordinator
                    return
            # Only neighbors are linked, but "and" also reaches over what isn't known.
            if coordinator == "," or (earlier.dep_ != "conj" and not is_listed(earlier)):
                return
            earlier = earlier.head

    def list_beginnings(self, doc: CaptionWords, links: Sequence[Link]) -> Iterator[Link]:
        """Beginning of a list of which the tree has only the end, with or without commas: "a sink a
        tub and a toilet", "a bookcase, comforter and window".

        links: what is linked otherwise; only what precedes one of two joined things is added.
        """
        joined = {later.head.i for _, later, pattern, _ in links if pattern == "coordination"}
        for first, second, _, relation in list(links):
            start = min([*modifiers(second.head), second.begin], key=lambda t: t.i).i
            if relation not in AND or start < 2 or doc[start - 1].lower_ not in AND:
                continue
            if first.plain.name == second.plain.name:
                continue  # the prefilter need not have seen two
            at = start - 3 if doc[start - 2].text == "," and start > 2 else start - 2
            last = self._resolver.resolve(doc, doc[at]) or first
            listed = [last]
            while (before := self._just_before(doc, listed[-1])) is not None:
                listed.append(before)
            if all(earlier.head.i != first.head.i for earlier in listed):
                continue
            for later, earlier in pairwise(listed):
                if later.head.i in joined:
                    continue
                yield earlier, later, "coordination", ","
            if last.head.i != first.head.i:
                yield last, second, "coordination", relation

    def _just_before(self, doc: CaptionWords, later: NamedThing) -> NamedThing | None:
        """The name right before a name of the same list, with at most a comma, its article and its
        adjectives between."""
        at = later.begin.i - 1
        kind = doc[at].tag_ == "NN" and doc[at].dep_ == "compound" and at > 1
        at -= kind  # "incense sticks"
        while at > 0 and doc[at].tag_ in _DESCRIBING:
            at -= 1
        determined = at > 0 and doc[at].tag_ in DETERMINERS
        at -= determined
        if at > 0 and doc[at].text == ",":
            at, determined = at - 1, doc[at - 1].lower_ not in QUANTITIES
        elif kind:
            return None
        if at < 0:
            return None
        before = doc[at]
        plural = before.tag_ == later.head.tag_ == "NNS"
        if not (is_noun(doc, before) and (determined or plural)):
            return None
        first = self._resolver.resolve(doc, before)
        if first is None or first.head.i != before.i:
            return None
        return first if first.entity.animate == later.entity.animate else None

    def of_two_subjects(self, doc: CaptionWords, token: Word) -> Iterator[Link]:
        """Two subjects of one verb with "and" between: "a plate of rice and a cup of tea are"."""
        before = [t for t in token.head.lefts if t.dep_ == token.dep_ and t.i < token.i]
        if not before and token.head.dep_ == "conj" and token.head.head.tag_ in NOUNS:
            before = [token.head.head]  # "a man in a suit and a woman in a dress standing"
        words = [t for t in before[-1].rights if t.dep_ == "cc"] if before else []
        if not words or words[-1].i + 1 != min([*modifiers(token), token], key=lambda t: t.i).i:
            return
        first = self._resolver.resolve(doc, before[-1])
        second = self._resolver.resolve(doc, token)
        if first is not None and second is not None:
            yield first, second, "coordination", words[-1].lower_

    def _last_conjunct_before(self, doc: CaptionWords, noun: Word, conjunct: Word) -> Word:
        """The last of the things joined to a noun that stands before a conjunct, if the parser
        joins each of them to the first: "embroidery and a skirt, a clutch"."""
        for joined in reversed([t for t in noun.rights if t.dep_ == "conj" and t.i < conjunct.i]):
            if joined.tag_ in NOUNS and self._resolver.resolve(doc, joined) is not None:
                return joined
        return noun

    def _last_content(self, doc: CaptionWords, place: Word, conjunct: Word) -> NamedThing | None:
        """The last of the things that a place comes with, to which more is joined: "a room with a
        couch on a rug, and a lamp", "a look featuring dresses, cardigan and shoes"."""
        if place.tag_ not in NOUNS:
            return None
        for right in place.rights:
            target, at_hand = _comes_with(right) if right.i < conjunct.i else (None, False)
            at_hand = at_hand or (right.dep_ == "prep" and right.lower_ in SPATIAL)
            if target is not None and at_hand:
                things = [t for t in (target, *conjuncts(target)) if t.i < conjunct.i]
                thing = (self._resolver.resolve(doc, t) for t in reversed(things))
                return next((content for content in thing if content is not None), None)
        return None

    def _joined_thing(
        self,
        doc: CaptionWords,
        noun: Word,
        conjunct: Word,
        first: NamedThing,
        second: NamedThing,
    ) -> NamedThing | None:
        """The thing that a conjunct joins: a noun, or what that comes with, wears or holds; None if
        it is not an entity.

        "A bike with a bag and a lamp", "a dog wearing a tie and a hat", "a man in a shirt and tie".
        The parser mostly joins the noun itself, which is right for "a man with a hat and a woman".
        """
        couple = first.entity.animate and second.entity.animate
        if second.entity.animate and not first.entity.animate and _in_clause(second.head):
            # "a man eating a donut and a woman eating a cake"
            above = noun_above(first.head, self._resolver.ends_name)
            living = None if above is None else self._resolver.resolve(doc, above)
            if living is not None and living.entity.animate:
                return living
        for right in noun.rights:
            if right.i > conjunct.i:
                break
            target, at_hand = _comes_with(right)
            if target is None or not right.i < target.i < conjunct.i:
                continue
            if right.lower_ == "of" and _is_filled(doc, conjunct):
                continue  # "a plate of rice and a bowl of soup"
            if right.lower_ == "of" and _is_bare_content(target, conjunct):
                continue  # "a bottle of wine and a glass"
            inner = self._resolver.resolve(doc, target)
            if inner is None and right.lower_ == "with" and not first.entity.animate:
                return first if second.entity.animate else None
            if inner is None and right.lower_ == "in" and "garment" in second.entity.kinds:
                return None  # "an actor in a black top and jeans"
            if inner is None or (couple and not inner.entity.animate):
                continue
            alike = inner.entity.category == second.entity.category
            if right.lower_ in SPATIAL and not at_hand:
                alike = alike and first.entity.category != second.entity.category
            if alike or (at_hand and not second.entity.animate):
                return inner
        return first


def _modifies_conjunct(noun: Word, conjunct: Word) -> bool:
    """Whether the parser makes the first of two joined names a modifier of the second, or of what
    that modifies, too."""
    if noun.dep_ != "nmod":
        return False
    goes_on = conjunct.dep_ == "nmod" and any(t.dep_ == "cc" for t in conjunct.rights)
    return noun.head.i == conjunct.i or (goes_on and noun.head.i == conjunct.head.i)


def _has_object(doc: Sequence[Word], word: Word) -> bool:
    """Whether a participle is a verb with an object: "holding a flag", "wearing glasses"."""
    if word.tag_ != "VBG":
        return False
    return doc[word.i + 1].tag_ in DETERMINERS or (
        word.dep_ not in ("amod", "compound") and any(t.dep_ == "dobj" for t in word.rights)
    )


def _only_describes(conjunct: Word) -> bool:
    """Whether the words joined describe a noun, or whom it is for: "orange & lemon soap"."""
    root = root_of(conjunct, ("conj", "appos"))
    if root.dep_ != "pobj":
        describes = root.dep_ in ("compound", "nmod") and root.head.lower_ not in ACTING | {"side"}
        return describes and not _is_list(root)
    source = root.head.head.lower_ if root.head.lower_ == "of" else ""
    return root.head.lower_ == "for" or source in ("made", "out")


def _is_doing(noun: Word) -> bool:
    """Whether a noun that is said to modify a verb does it: "two women and a child walk"."""
    verb = noun.head
    return verb.i == noun.i + 1 and verb.tag_.startswith("VB")


def _is_participle(verb: Word) -> bool:
    """Whether a verb only describes its subject: "a dog, and people wading"."""
    alone = not any(t.dep_ in ("aux", "auxpass") for t in verb.lefts)
    alone = alone and verb.dep_ != "pcomp"  # "despite her boyfriend turning"
    return verb.tag_ == "VBG" and alone and not any(t.dep_ == "dobj" for t in verb.rights)


def _is_list(first: Word) -> bool:
    """Whether the parser takes a list for what its last thing is made of, since that has an
    adjective: "a stove, refrigerator and wooden cabinets"."""
    *_, last = (first, *conjuncts(first))
    return last.tag_ in _ADJECTIVES and last.i + 1 == first.head.i


def _is_filled(doc: Sequence[Word], noun: Word) -> bool:
    """Whether "of" follows a noun, or belongs to it."""
    after = doc[noun.i + 1].lower_ if noun.i + 1 < len(doc) else ""
    return after == "of" or any(t.lower_ == "of" for t in noun.rights)


def _is_keyword(doc: Sequence[Word], token: Word) -> bool:
    """Whether a word stands in a long list without "and" and without an article: keywords."""
    if any(t.dep_ in QUANTIFYING for t in token.lefts):
        return False
    words = [t.lower_ for t in doc]
    return words.count(",") > _MAX_COMMAS and AND.isdisjoint(words)


def _comes_with(right: Word) -> tuple[Word | None, bool]:
    """Noun that a phrase or clause adds to another, and whether that has, wears or holds it.

    "A bust next to an egg", "a man in a shirt", "a bike with a bag", "a dog wearing a tie".
    """
    if right.dep_ == "acl" and right.tag_ == "VBG":
        return next((t for t in right.rights if t.dep_ == "dobj"), None), True
    if right.dep_ == "acl" and right.lower_ == "made":
        return next((object_of(t) for t in right.rights if t.dep_ == "prep"), None), True
    if right.lower_ in ("with", "in", "of"):
        return object_of(right), right.lower_ == "with"
    if right.lower_ in SPATIAL:
        return object_of(next((t for t in right.rights if t.lower_ in LINKS), right)), False
    return None, False


def _list_goes_on(doc: Sequence[Word], name: Word) -> bool:
    """Whether a list goes on after the name that begins here: "…, a trash can and an oven"."""
    while name.dep_ == "compound" and name.head.i > name.i:
        name = name.head
    after = name.i + 1
    listed = name.dep_ in ("appos", "nmod") or (name.tag_ == "JJ" and name.dep_ == "amod")
    if not listed or after + 1 >= len(doc):
        return False
    # but not "the choir, a recent winner, will sing"
    is_clause = doc[after].text == "," and doc[after + 1].tag_ in _FINITE
    return doc[after].lower_ in AND | {","} and not is_clause


def _is_bare_content(held: Word, conjunct: Word) -> bool:
    """Whether something without an article is in what a conjunct with one is joined to."""
    bare = not any(t.dep_ in QUANTIFYING for t in held.lefts) and held.tag_[-1] != "S"
    return bare and any(t.tag_ in DETERMINERS for t in conjunct.lefts)


def _is_made_of(noun: Word) -> bool:
    """Whether a noun only says of what another one is: the brick in "a wall of brick"."""
    return noun.dep_ == "pobj" and noun.head.lower_ == "of" and noun.head.head.tag_ in NOUNS


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
    start = min([*modifiers(token), token], key=lambda t: t.i).i
    if start and doc[start - 1].lower_ in COORDINATORS | set(PUNCTUATION):
        return doc[start - 1].lower_
    if start and doc[start - 1].text in "-:(/":
        return ""  # of another field
    words = [t for t in token.head.rights if t.dep_ == "cc" and t.i < token.i]
    if not words:
        return ","
    between = (doc[at] for at in range(words[-1].i + 1, start))
    return "" if any(t.tag_ in NOUNS for t in between) else words[-1].lower_
