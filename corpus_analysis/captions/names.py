"""Names in a caption: the entity of the ontology that a noun stands for, if any."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from .attachment import NOUNS, Word, conjuncts, is_no_act, root_of
from .ontology import CaptionEntity, Ontology, SurfaceForm
from .prefilter import PLACES
from .words import (
    ACTING,
    BOATS,
    COATED,
    COLORS,
    DEPICTIONS,
    DOING,
    FAKE,
    FIGURES,
    GAMES,
    GARNISHES,
    GROUPS,
    HANDLING,
    HUES,
    IDIOMS,
    IMPRINTS,
    NO_ACTS,
    PICKING,
    PLAYED,
    PRODUCTS,
    QUANTITIES,
    RESTING,
    SETS,
    STUFFED,
    STUFFS,
    TAKING,
    TOYS,
)

Pattern = Literal["coordination", "preposition"]

QUANTIFYING = frozenset(("det", "nummod", "predet", "poss", "quantmod"))
_MODIFYING = QUANTIFYING | {"amod", "compound", "nmod", "nounmod", "advmod"}
BEFORE_NOUNS = frozenset("DT PRP$ CD JJ JJR JJS VBN VBD VBG NN NNP HYPH".split())
"""Tags of what may stand between a conjunction and its noun."""
DETERMINERS = frozenset(("DT", "PRP$", "CD"))
AND = frozenset(("and", "&", "+", "or"))
_SHOWN = frozenset(("ROOT", "nsubj", "nsubjpass", "attr", "appos", "dep"))
"""Where a depiction is the image itself, rather than a thing in it."""
_SHAKEN = ["and", "pepper"]
"""After "salt", where shakers are named: "salt and pepper shakers"."""
_POSED = (["for", "the"], ["for", "a"], ["at", "the"])
"""Before the camera of who takes the image: "posing for the camera"."""
_VERSIONS = frozenset("version versions series set collection kind piece example".split())
"""Before "of a drawing of", they are the drawing."""


@dataclass(frozen=True)
class NamedThing:
    """An entity with the tokens that name it."""

    entity: CaptionEntity
    head: Word
    begin: Word
    """First token of the name."""
    quantity: Word | None
    """The partitive noun before it; None if there is none."""
    plain: CaptionEntity
    """The entity of the name alone, which the prefilter reads: "dog" for a toy dog."""


class CaptionWords(tuple[Word, ...]):
    """The words of one caption, made once: spaCy makes a token anew each time it is asked for."""

    text: str
    """The text that was parsed."""
    resolved: dict[int, NamedThing | None]
    """Results of `NameResolver.resolve` by the position of the word; several rules need them."""

    def __new__(cls, words: Iterable[Word], text: str) -> CaptionWords:
        self = super().__new__(cls, words)
        self.text, self.resolved = text, {}
        return self


Link = tuple[NamedThing, NamedThing, Pattern, str]
"""Two mentions, how they are linked, and by which words."""


class NameResolver:
    """The names of one ontology, as the words of a caption give them."""

    def __init__(self, ontology: Ontology) -> None:
        self.ontology = ontology
        self._spelled = {
            (*reversed(form.before), last)
            for last, forms in ontology.by_last.items()
            for form in forms
            if form.before and form.entity
        }
        """Names of several words, word by word."""
        self._begins = frozenset(words[0] for words in self._spelled)
        forms = [(last, form) for last, some in ontology.by_last.items() for form in some]
        self._alone = {last: (form,) for last, form in forms if not form.before}
        """Names of one word."""
        self._eaten = frozenset(
            last for last, form in forms if form.entity and form.entity.category == "food_kitchen"
        )
        """Words that end the name of a food."""
        self._longer: dict[tuple[str, str], list[SurfaceForm]] = {}
        """The last two words of longer forms -> those, longest first."""
        for last, form in forms:
            if form.before:
                self._longer.setdefault((form.before[0], last), []).append(form)

    def ends_name(self, token: Word) -> bool:
        """Whether a token ends a name of several words, whatever its tag: "bird feeder"."""
        word = token.lower_
        if word in self._alone and _is_named(token):
            return True
        near = (self._longer.get((t.lower_, word), ()) for t in token.lefts)
        return any(len(form.before) == 1 for forms in near for form in forms)

    def is_name(self, token: Word) -> bool:
        """Whether a word alone is a name: "corn", but not "pop", which ends "soda pop"."""
        return token.lower_ in self._alone

    def is_animate(self, token: Word) -> bool:
        """Whether a word alone is the name of somebody or of an animal."""
        entity = self.ontology.surface.get(token.lower_)
        return entity is not None and entity.animate

    def as_kind(self, thing: NamedThing, name: str, begin: Word) -> NamedThing:
        """The mention as a thing of another kind, which the ontology must name."""
        return replace(thing, entity=self.ontology.entities[name], begin=begin)

    def resolve(self, doc: CaptionWords, token: Word) -> NamedThing | None:
        """The entity that a noun names, looking through "a pair of" and "photo of"."""
        if token.i not in doc.resolved:
            doc.resolved[token.i] = self._look_up(doc, token)
        return doc.resolved[token.i]

    def _look_up(self, doc: CaptionWords, token: Word) -> NamedThing | None:
        token = self._last_word(doc, token)
        word, figure = token.lower_, _figure(token)
        if any(t.lower_ == "no" for t in token.lefts) or _is_image(token):
            return None
        if word == "skies" and doc[token.i - 1].lower_ not in ("on", "some"):
            return None  # but "a man on skies"
        if word == "camera" and [t.lower_ for t in doc[max(0, token.i - 2) : token.i]] in _POSED:
            return None
        if figure is not None:
            return self.named(doc, figure)
        depicts = _is_shown(token)
        if word in QUANTITIES or word in PICKING or depicts:
            of = next((t for t in token.rights if t.dep_ == "prep" and t.lower_ == "of"), None)
            inner = of and next((t for t in of.rights if t.dep_ == "pobj"), None)
            thing = self.resolve(doc, inner) if inner else None
            if thing is not None:
                quantity = thing.quantity or (None if depicts else token)
                return replace(thing, quantity=quantity)
            if depicts or (of is not None and word in GROUPS):
                return None  # "picture with a dog" is the image; "a group of letters" is no people
        return self.named(doc, token)

    def named(self, doc: CaptionWords, token: Word) -> NamedThing | None:
        """The longest name that ends in a token; it may be written with hyphens.

        A one-word name must be tagged as a noun; "fire hydrant" counts whatever its tag.
        """
        word = token.lower_
        if word not in self.ontology.by_last:
            return None
        if not _stands_alone(doc.text, token) or _modifies(doc, token):
            return None
        if _in_idiom(doc, token) or _is_color(doc, token) or _is_quoted(doc, token):
            return None
        near = doc[_index_before(doc, token.i)].lower_
        for form in (*self._longer.get((near, word), ()), *self._alone.get(word, ())):
            if not form.before and (not is_noun(doc, token) or _is_stuff(doc, token)):
                return None
            at = token.i
            for before in form.before:
                at = _index_before(doc, at)
                if at < 0 or doc[at].lower_ != before or not _stands_alone(doc.text, doc[at]):
                    break
            else:
                if form.entity is None:
                    return None
                if form.entity.category == "people" and token.tag_.startswith("VB"):
                    return None  # "dice an onion and cook in butter"
                if form.entity.name in PRODUCTS and self._is_imprint(doc, token, doc[at]):
                    return None
                return self._of_its_kind(NamedThing(form.entity, token, doc[at], None, form.entity))
        return None

    def _is_imprint(self, doc: Sequence[Word], token: Word, begin: Word) -> bool:
        """Whether a caption ends in what it is printed on: "bird on a fence greeting card"."""
        before = doc[token.left_edge.i : begin.i] if _ends_caption(doc, token) else ()
        named = (self.ontology.surface.get(t.lower_) for t in before if t.tag_ in NOUNS)
        return any(
            entity and entity.category != "food_kitchen" for entity in named
        )  # "a coffee mug"

    def _last_word(self, doc: Sequence[Word], token: Word) -> Word:
        """The last word of the name that a token begins, where the parser splits "fire hydrant"."""
        word = token.lower_
        if word in IMPRINTS and _ends_caption(doc, token) and doc[token.i - 1].head.i == token.i:
            return doc[token.i - 1]  # "a bulldog near window photo"
        if word in self._begins:
            words: tuple[str, ...] = (word,)
            for last in doc[token.i + 1 : token.i + 4]:  # "in front of the Arc de Triomphe"
                words = (*words, last.lower_)
                if words in self._spelled:
                    return last
        near = doc[token.i - 1].lower_ if token.i else ""
        if any(_follows(doc, token, form.before) for form in self._longer.get((near, word), ())):
            return token  # "a cutting board", but not "a dog stand" for "a hot dog stand"
        # "a lady cutting pizza", "a beach feeding seagulls", but not "a horse riding helmet"
        named = word in self.ontology.by_last and word not in self._eaten and word not in RESTING
        return token if named and token.tag_ != "NNS" else _noun_of(token)

    def _of_its_kind(self, thing: NamedThing) -> NamedThing | None:
        """The mention, unless a modifier says that it only looks like one: "a plastic horse".

        Toys and stuffed animals are entities of their own.
        """
        for word in thing.head.lefts:
            if word.i >= thing.begin.i or word.dep_ not in ("amod", "compound", "nmod"):
                continue
            if word.lower_ in STUFFED:
                return self.as_kind(thing, "stuffed animal", word)
            if word.lower_ in TOYS:
                return self.as_kind(thing, "toy", word)
            real = not (thing.entity.animate or thing.entity.category == "vehicles")
            real = real or (word.lower_ == "wooden" and thing.entity.name in BOATS)
            if word.lower_ in FAKE and not real:
                return None
        return thing


def _stands_alone(text: str, token: Word) -> bool:
    """Whether the token is a whole word of the text, not a piece that the tokenizer cut off."""
    start, stop = token.idx, end(token)
    before = text[start - 1].lower() if start else ""
    after = text[stop].lower() if stop < len(text) else ""
    return not ("a" <= before[-1:] <= "z" or "a" <= after[:1] <= "z")


def _is_stuff(doc: Sequence[Word], token: Word) -> bool:
    """Whether a word says what something is made of: "glass" alone, but not "glass of wine"."""
    if token.lower_ == "salt" and [t.lower_ for t in doc[token.i + 1 : token.i + 3]] == _SHAKEN:
        return doc[min(token.i + 3, len(doc) - 1)].lower_ in ("shaker", "shakers")
    alone = not any(t.dep_ in _MODIFYING for t in token.lefts)
    filled = token.i + 1 < len(doc) and doc[token.i + 1].lower_ == "of"
    if filled and token.lower_ in ("bed", "beds"):
        return True  # "chicken on a bed of rice"
    after = doc[token.i + 1] if token.i + 1 < len(doc) else token
    if token.lower_ in STUFFS and after.tag_ == "NNS" and after.dep_ != "conj":
        return True  # "a cake and paper plates"
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
    if after is not None and after.text == "-" and after.idx == end(token):
        joined = doc[token.i + 2] if token.i + 2 < len(doc) else None
        return joined is not None and joined.idx == after.idx + 1 and joined.text.isalpha()
    if after is None or after.idx != end(token) + 1 or not after.text.isalpha():
        return False
    if after.lower_ in GARNISHES or after.lower_ == "drawn":
        return True  # "a cake with cream cheese frosting", "a horse drawn wagon"
    if after.lower_ in COATED and token.tag_ in ("NN", "NNP") and token.i + 2 < len(doc):
        return doc[token.i + 2].tag_ in NOUNS  # "a chocolate frosted donut"
    if after.lower_ == "like" and token.i + 2 < len(doc):
        return doc[token.i + 2].tag_ in NOUNS  # "deer like animals"
    if in_set(doc, token) or (after.lower_ in IMPRINTS and _ends_caption(doc, after)):
        return False
    if token.text[0].isupper() and after.text[0].isupper():  # "Three Pigs and the Wolf Posters"
        return after.tag_ in NOUNS and after.lower_ not in IMPRINTS
    return (
        after.tag_ == "NN"
        and after.dep_ not in ("ROOT", "conj", "appos", "npadvmod")
        and (after.lower_ in NO_ACTS or not after.lower_.endswith("ing"))
    )


def in_set(doc: Sequence[Word], token: Word) -> bool:
    """Whether a word is the last of what makes up a set: "a washer and dryer set"."""
    at = token.i
    return (
        at + 1 < len(doc)
        and doc[at + 1].lower_ in SETS
        and (at + 2 == len(doc) or doc[at + 2].tag_ not in NOUNS)
        and any(word.lower_ in AND for word in doc[max(0, at - 2) : at])
    )


def _is_named(token: Word) -> bool:
    """Whether what is tagged as no noun is what a caption is about: "the stable with horses",
    "kitten on a laptop"."""
    if token.tag_ in NOUNS or token.dep_ not in ("ROOT", "nsubj") or token.lower_ in COLORS:
        return False
    if token.tag_ == "JJ" and any(t.dep_ == "det" for t in token.lefts):
        return True
    return not token.i and any(
        t.i == 1 and (t.tag_ in ("IN", "CC", "VBG") or t.text == ",") for t in token.rights
    )


def is_noun(doc: Sequence[Word], token: Word) -> bool:
    """Whether a word is tagged as a noun, or as a verb where none can be: "a cap and tie"."""
    if token.tag_ in NOUNS or is_no_act(token) or token.tag_ == "PRP":  # "an elf"
        return True
    if token.tag_ in ("JJ", "RB") and token.dep_ in ("pobj", "dobj"):  # "with a stove top oven"
        hued = token.lower_ in COLORS | HUES  # "on surfboard", but not "in orange"
        return not hued or any(t.dep_ in _MODIFYING for t in token.lefts)
    if _is_named(token):
        return True
    at = token.i
    before_act = token.head.i == at + 1 and token.head.lower_ in ACTING
    if before_act and token.tag_ in ("JJ", "RB") and token.lower_ not in COLORS | HUES:
        return True  # "on a surfboard riding a wave"
    after = doc[at + 1].lower_ if at + 1 < len(doc) else ""
    if token.tag_ == "JJ" and token.dep_ == "amod" and at and doc[at - 1].tag_ == "DT":
        # "glasses, a vest, and tie", "a tub and large sink"
        return after == "," or (after in AND and token.lower_ not in COLORS | HUES)
    listed = token.tag_ == "JJ" and token.dep_ == "conj" and token.head.tag_ in NOUNS
    if listed and doc[at - 1].text == "," == after:
        return True  # "a pear, orange, and"
    verb = token.tag_ in ("VB", "VBP", "VBZ") or (
        token.tag_ in ("JJ", "RB") and token.dep_ == "conj"
    )
    if not verb or token.i < 2 or doc[token.i - 1].lower_ not in AND or token.lower_ in COLORS:
        return False
    after = doc[token.i + 1].tag_ if token.i + 1 < len(doc) else "."
    before = doc[token.i - 3] if doc[token.i - 2].text == "," and token.i > 2 else doc[token.i - 2]
    joined = before.tag_ in NOUNS or _is_named(before)
    return joined and after in (".", ",", ":", "IN", "CC", "VBG")


def ends_field(doc: Sequence[Word], token: Word) -> bool:
    """Whether a word is the last of its field: "a cat and a dog - stock photo"."""
    after = doc[token.i + 1].text if token.i + 1 < len(doc) else ""
    return bool(after) and after in "-|\u2013\u2014"


def _ends_caption(doc: Sequence[Word], token: Word) -> bool:
    """Whether no word follows."""
    return not any(t.text.isalpha() for t in doc[token.i + 1 :])


def _in_idiom(doc: Sequence[Word], token: Word) -> bool:
    """Whether a word is half of an idiom: "rock & roll"."""
    at = token.i
    if at > 1 and doc[at - 1].lower_ in AND and (doc[at - 2].lower_, token.lower_) in IDIOMS:
        return True
    joined = at + 2 < len(doc) and doc[at + 1].lower_ in AND
    return joined and (token.lower_, doc[at + 2].lower_) in IDIOMS


def _is_color(doc: Sequence[Word], token: Word) -> bool:
    """Whether a thing's name is a color here, next to another one: "orange & green"."""
    if token.lower_ not in HUES or any(t.dep_ in QUANTIFYING for t in token.lefts):
        return False
    after = [word.lower_ for word in doc[token.i + 1 : token.i + 3]]
    before = [word.lower_ for word in reversed(doc[max(0, token.i - 2) : token.i])]
    return any(
        near and (near[0] in COLORS or (near[0] in AND | {","} and near[-1] in COLORS))
        for near in (before, after)
    )


def _is_quoted(doc: Sequence[Word], token: Word) -> bool:
    """Whether a word is in quotation marks, after the caption's start: "a shirt with 'Rocks!'"."""
    at = token.i
    while at > 0 and doc[at].tag_ != "''":
        if doc[at].tag_ == "``":
            return any(t.tag_ == "''" or t.text == "'" for t in doc[token.i + 1 :])
        at -= 1
    return False


def _figure(token: Word) -> Word | None:
    """The statue that a horse is, or the drawing that it is in: "a drawing of a horse"."""
    token = root_of(token)
    if token.dep_ != "pobj" or token.head.lower_ != "of":
        return None
    above = token.head.head
    return above if above.lower_ in FIGURES | DEPICTIONS and not _is_shown(above) else None


def _is_shown(token: Word) -> bool:
    """Whether a word is the image itself, or one that is being taken: "a picture of a cat"."""
    taken = token.dep_ == "dobj" and token.head.lower_ in TAKING
    if token.dep_ == "pobj" and token.head.lower_ == "of" and token.lower_ in DEPICTIONS:
        above = token.head.head  # "a version of an illustration of a woman"
        return above.lower_ in _VERSIONS and above.dep_ in _SHOWN
    return token.lower_ in DEPICTIONS and (taken or token.dep_ in _SHOWN)


def _index_before(doc: Sequence[Word], at: int) -> int:
    """Index of the word before one, over a hyphen; -1 before the first."""
    return at - (2 if at > 1 and doc[at - 1].lower_ == "-" else 1)


def _follows(doc: Sequence[Word], token: Word, before: Sequence[str]) -> bool:
    """Whether these words, the last one first, stand right before a word."""
    start = token.i - len(before)
    return start >= 0 and [t.lower_ for t in doc[start : token.i]] == [*reversed(before)]


def _is_image(token: Word) -> bool:
    """Whether a picture is the one that is described: "poses for a picture", "on the left of this
    picture"."""
    if token.lower_ not in DEPICTIONS or token.dep_ != "pobj":
        return False
    above = token.head.head
    if token.head.lower_ == "for":
        return above.tag_.startswith("VB")
    return token.head.lower_ == "of" and above.lower_ in PLACES


def _noun_of(token: Word) -> Word:
    """The noun of a phrase whose verb the tagger took for its head.

    "A couch playing wii" and "a racket waits" aren't nouns with two modifiers.
    """
    modifiers = [t for t in token.lefts if t.dep_ == "compound"]
    if token.lower_ in ACTING:
        before = [t for t in token.lefts if t.dep_ == "amod" and t.tag_ in ("JJ", "RB")]
        if before and before[-1].i == token.i - 1 and not modifiers:
            return before[-1]  # "on a surfboard riding a wave", where it is an adjective
        if modifiers and modifiers[-1].i == token.i - 1:
            return modifiers[-1]  # "a cricketer standing next to a wicket"
        several = [t for t in token.lefts if t.dep_ == "nmod" and t.tag_ in NOUNS]
        *_, token = (token, *several, *(joined for noun in several for joined in conjuncts(noun)))
        return token  # "giraffe and zebra grazing next to plants"
    if token.lower_ in DOING and modifiers and modifiers[-1].i == token.i - 1:
        return modifiers[-1]
    if token.lower_ in RESTING and modifiers and modifiers[-1].i == token.i - 1:
        placed = any(
            t.i == token.i + 1 and (t.dep_ == "prep" or t.lower_ in ("next", "together"))
            for t in token.rights
        )
        placed = placed or modifiers[-1].tag_ == "NNS"  # "milk and cows graze"
        plural = modifiers[-1].tag_ == "NNS" and token.dep_ == "ROOT"  # "4 chairs rest on"
        return modifiers[-1] if placed and (plural or token.dep_ == "conj") else token
    if token.tag_ == "VBG" and modifiers and modifiers[-1].i == token.i - 1:
        return modifiers[-1]  # "sitting on a leather couch messing with a phone"
    for word in modifiers:
        acts = word.lower_.endswith("ing") and word.lower_ not in NO_ACTS
        if word.lower_ in HANDLING or (acts and word.tag_ == "VBG"):
            before = [t for t in modifiers if t.i == word.i - 1]
            if before:
                return before[0]
        inner = word.lefts if acts else ()
        for noun in inner:
            if noun.dep_ == "compound" and noun.i + 1 == word.i:
                return noun
    verb = token.tag_ == "NNS" and token.lower_.endswith("s")
    if verb and modifiers and any(t.lower_ in ("a", "an") for t in token.lefts):
        return modifiers[-1]
    return token


def modifiers(noun: Word) -> list[Word]:
    """First tokens of a noun's modifiers before it; no punctuation."""
    return [t.left_edge for t in noun.lefts if t.dep_ in _MODIFYING]


def end(token: Word) -> int:
    return token.idx + len(token.text)
