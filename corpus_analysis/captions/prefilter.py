"""Finds captions that can't hold a pair, without a parser.

Lossless by construction: `extract.Extractor` accepts two mentions only if both end in a head word
between non-letters, their names differ, and `triggered` holds for the text between them; the
beginning of a list is accepted only if it ends in two of which that is true.
Every test here is weaker than these three conditions together.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from .ontology import Ontology, OntologyError
from .words import LINKS, MOVING

if TYPE_CHECKING:
    import pyarrow as pa

SPATIAL = frozenset(
    "near beside next with by on under behind above below over beneath underneath alongside "
    "against atop around outside between among amongst amid upon opposite past along".split()
)
"""Prepositions that link two things on their own."""

PLACES = frozenset(
    "next near close adjacent front top side sides left right middle rear behind back edge "
    "opposite".split()
)
"""Parts of multiword prepositions: next to, in front of, on the left of."""

COORDINATORS = frozenset("and or plus vs versus".split())
"""Words that can coordinate two noun phrases. Others (as, but, like, than) on their own linked none
in 25,840 captions of LAION and CC3M."""

PUNCTUATION = ",;&+/"
"""Characters that can coordinate. Others ("Falchion Knife | Rust Coat") only separate fields of alt
text, although the parser calls a few of them conjuncts (1 pair in 196 on LAION)."""

HAVING = frozenset(("has", "have", "had", "having"))
"""Verbs that link a thing to the things on it, before such words: "a table has a cup on it"."""
ITSELF = frozenset(("it", "them"))

_PUNCTUATION = frozenset(PUNCTUATION)
TRIGGERS = SPATIAL | PLACES | COORDINATORS | set(PUNCTUATION)
"""Every pair has one of these between its halves."""
LINK = (
    rf"(?s)(?:^|[^a-z])(?:{'|'.join(sorted(t for t in TRIGGERS if t.isalpha()))})(?:$|[^a-z])"
    rf"|[{PUNCTUATION.replace(',', '')}]|,.*,"
)
"""RE2 for lower-case text: a trigger. A comma links only in a list, which goes on with another one,
or with what is a trigger itself."""

_JOINED = (
    r"(?:shirts?|pieces?|ups?|like|style|free|size|sized|length|made|aged|old|neck|sleeved?|"
    r"year|winning|looking|century|high|toed?|heeled|headed|eyed|"
    r"haired|legged|shaped|themed|(?!(?:red|bed|shed|sled|seed|weed|limited|framed|used)(?![a-z]))[a-z]+ed)"
    r"(?![a-z])"
)
"""Words that a spaced hyphen joins to the word before it: CC3M writes "a t - shirt"."""
_FIELD = (
    r"[|:\u2022!?]|(?<=\s)[\u2013\u2014.](?=\s)"
    rf"|(?<=\s)(?<!\bt )-(?=\s)(?! {_JOINED})"
)
"""Separators of sentences and of alt text's fields: nothing is linked across them."""
_ENDS = frozenset("|:\u2022!?-\u2013\u2014.")
"""The characters of `_FIELD`."""

_FAR = 15
"""Most words between the heads of two linked things."""
_NEAR = 4
"""The same if only one mark of punctuation links them: what is further apart is no list."""
_PHRASE = 6
"""Most words between the last link and the head of the second thing."""
_AHEAD = 8
"""Words after a name in which a list goes on."""
_LISTING = frozenset((",", "&", "+", "and", "or"))
_LINKING = SPATIAL | COORDINATORS
_AGENTS = (
    frozenset("surrounded flanked accompanied parked seated standing stands sitting sits".split())
    | MOVING
)
_DETERMINERS = frozenset("a an the his her its their my our some two three".split())
"""Before and after a "by" that may say a place; one before a name says who made it."""
_CUTS = frozenset(
    "for from into during after before who which is are was were he she it they we you".split()
)
"""Words that end what a link may link: "with pockets for girls" is no girl with something."""
_LINKED = TRIGGERS | HAVING
_TELLING = TRIGGERS | HAVING | LINKS | _CUTS | _ENDS
"""Words with which `_Read` does more than count them."""
_MAX_HAD = 14
"""Most words between what a thing has and "on it"."""
_REACH = 8
"""Words and hyphens before the last word of a name, at most."""
_FIELDS = re.compile(_FIELD)
_WORD = re.compile(rf"[a-z]+|[{PUNCTUATION}]")
_WORD_OR_FIELD = re.compile(rf"[a-z]+|[{PUNCTUATION}]|{_FIELD}")


def triggered(between: str, after: str = "", head: str = "") -> bool:
    """Whether the text between two mentions links them; a comma does where a list goes on after.

    head: the last word of the second, to which a hyphen may join what is before.

    >>> triggered(" and a "), triggered(" in front of the "), triggered(" | "), triggered("andy")
    (True, True, False, False)
    >>> triggered(" and more - "), triggered(" and semi-wild ")
    (False, True)
    >>> triggered(", a big old ", " and a tree"), triggered(", a big old ", " in a tree")
    (True, False)
    >>> triggered(" and a t - ", "", "shirt"), triggered(" and a vase - ", "", "lamp")
    (True, False)
    >>> triggered(" with "), triggered(" with pockets for "), triggered(" back for a ")
    (True, False, False)
    >>> triggered(" has a ", " on it", "cup"), triggered(" has a ", " on a tray", "cup")
    (True, False)
    """
    if _FIELDS.search((between + head).lower()) is not None:
        return False
    words = _WORD.findall(between.lower())
    stop = len(words)
    if not HAVING.isdisjoint(words):
        words += _WORD_OR_FIELD.findall((head + after).lower())
    read = _Read()
    read.through(words, 0, stop)
    return read.links(0, 0) and (
        read.linked > 0 or read.mark != "," or _goes_on(_WORD_OR_FIELD.findall(after.lower()), 0)
    )


class _Read:
    """A caption read so far, as to what links its names. Places are numbers of words read."""

    __slots__ = ("field", "last", "linked", "mark", "marked", "marks", "place", "words")

    def __init__(self) -> None:
        self.words = self.marks = 0
        self.linked = self.place = self.marked = self.field = -1
        """The last word that links or may, the last place, the last mark, the last field's end."""
        self.mark = ""
        self.last = -1
        """The last link; -1 after a word that ends what it may link."""

    def through(self, words: Sequence[str], start: int, stop: int) -> None:
        """Reads words and marks that are no names."""
        for at in range(start, stop):
            word = words[at]
            if word not in _TELLING:
                self.words += 1
            elif word in _PUNCTUATION:
                self.mark, self.marked, self.last = word, self.words, self.words
                self.marks += 1
            elif word in _ENDS:
                self.field = self.words
            else:
                self.words += 1
                if word in _LINKING:
                    if word != "by" or _says_place(words, at):
                        self.linked = self.last = self.words
                elif word in PLACES:
                    self.linked = self.place = self.words
                elif word in LINKS and self.place >= 0:
                    self.last = self.words  # "in front of"
                elif word in _CUTS:
                    self.last = -1
                elif word in HAVING and _is_had(words, at):
                    self.linked = self.last = self.words

    def links(self, words: int, marks: int) -> bool:
        """Whether what was read since a name, with which so many words and marks ended, may link
        it to the next; a slash only joins the name before it."""
        far = _FAR
        if self.linked <= words:
            far = _NEAR if self.marks == marks + 1 else -1
            if self.mark == "/" and self.marked > words:
                return False
        return self.words - words <= far and self.last >= max(words, self.words - _PHRASE)


def _goes_on(words: Sequence[str], start: int) -> bool:
    """Whether a list goes on after a name: its next comma or "and" is a few words away."""
    read = 0
    for word in words[start:]:
        if word in _LISTING:
            return True
        read += word.isalpha()
        if read > _AHEAD or not (word.isalpha() or word in _PUNCTUATION):
            return False
    return False


def _says_place(words: Sequence[str], at: int) -> bool:
    """Whether a "by" may say where something is."""
    after = words[at + 1] if at + 1 < len(words) else ""
    return after in _DETERMINERS or (at > 0 and words[at - 1] in _AGENTS)


def _is_had(words: Sequence[str], at: int) -> bool:
    """Whether what something has is somewhere by "it": "has a cup on it", "on top of it"."""
    for end in range(at + 2, min(len(words), at + _MAX_HAD)):
        if words[end] in ITSELF:
            before = words[end - 1]
            return before in SPATIAL or (before in LINKS and words[end - 2] in PLACES)
        if words[end] in _ENDS:
            return False
    return False


class Prefilter:
    """Keeps captions with two different heads and a trigger between them."""

    def __init__(self, ontology: Ontology) -> None:
        self.heads = {
            word: frozenset(f.entity.name for f in forms if f.entity)
            for word, forms in ontology.by_last.items()
            if any(f.entity for f in forms)
        }
        """Last word of a form -> the names that end with it; several end with "bear"."""
        self._longer = {
            word: (
                frozenset(f.entity.name for f in forms if f.entity and not f.before),
                _by_nearest((f.before, f.entity.name) for f in forms if f.entity and f.before),
            )
            for word, forms in ontology.by_last.items()
            if word in self.heads and any(f.before for f in forms)
        }
        """Word that ends names of several words -> names of the word alone, and the longer ones by
        the word before it."""
        # `may_hold_pair` reads a word as one or the other.
        if ambiguous := TRIGGERS & set(self.heads):
            raise OntologyError(
                f"the ontology names {sorted(ambiguous)}, which link entities; rename them",
                code="bad-entry",
            )

    def may_hold_pair(self, text: str) -> bool:
        """The exact test, on one normalized text."""
        words = _WORD_OR_FIELD.findall(text.lower())
        places = [at for at, word in enumerate(words) if word in self.heads]
        if len(places) < 2 or _LINKED.isdisjoint(words[places[0] : places[-1]]):
            return False
        read = _Read()
        named: list[tuple[int, int, frozenset[str]]] = []  # words and marks up to each head
        start = places[0]  # nothing before can link anything
        for at in places:
            read.through(words, start, at)
            word_names = self.heads[words[at]]
            if words[at] in self._longer:
                word_names = self._names_at(words, at)
            for number, marks, earlier_names in reversed(named) if word_names else ():
                if number <= read.field or read.words - number > _FAR:
                    break
                differ = len(word_names) > 1 or word_names != earlier_names
                if not (differ and read.links(number, marks)):
                    continue
                if read.linked > number or read.mark != "," or _goes_on(words, at + 1):
                    return True
            read.words += 1
            if word_names:  # not what is only the end of a longer name
                named.append((read.words, read.marks, word_names))
            start = at + 1
        return False

    def _names_at(self, words: list[str], at: int) -> frozenset[str]:
        """Names that a word may end: the word alone, and longer ones that are spelled out.

        Words of ASCII letters only, so no less than the extraction finds.
        """
        alone, longer = self._longer[words[at]]
        if not at or (words[at - 1] not in longer and words[at - 1] != "-"):
            return alone  # by far the most
        nearest = tuple(word for word in reversed(words[max(0, at - _REACH) : at]) if word != "-")
        forms = longer.get(nearest[0], ()) if nearest else ()
        spelled = [name for before, name in forms if nearest[: len(before)] == before]
        return alone.union(spelled) if spelled else alone

    def candidates(self, captions: pa.StringArray) -> pa.BooleanArray:
        """The RE2 passes over raw captions; null stays null.

        Sound for captions that don't match `text.hard()`: their normalized text has the same words
        of ASCII letters and the same punctuation between them.

        Only what may link is looked for: names are so many that a pattern of their first letters
        would drop 1 in 15 of what is left at most, for five times the time.
        """
        import pyarrow.compute as pc

        return pc.match_substring_regex(pc.ascii_lower(captions), LINK)


def _by_nearest(
    forms: Iterable[tuple[tuple[str, ...], str]],
) -> dict[str, list[tuple[tuple[str, ...], str]]]:
    """Names of several words by the word before the last."""
    forms_by_word: dict[str, list[tuple[tuple[str, ...], str]]] = {}
    for before, name in forms:
        forms_by_word.setdefault(before[0], []).append((before, name))
    return forms_by_word
