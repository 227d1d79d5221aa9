"""Finds captions that can't hold a pair, without a parser.

Lossless by construction: `extract.Extractor` accepts two mentions only if both end in a head word
between non-letters, their names are distinct, and `triggered` holds for the text between them.
Every test here is weaker than these three conditions together.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from .ontology import BROAD, SOMEBODY, Ontology, OntologyError

if TYPE_CHECKING:
    import pyarrow as pa

SPATIAL = frozenset(
    "near beside next with by on under behind above below over beneath underneath alongside "
    "against atop around outside between among amongst amid upon opposite past along".split()
)
"""Prepositions that link two things on their own."""

PLACES = frozenset(
    "next near close adjacent front top side left right middle rear behind back edge "
    "opposite".split()
)
"""Parts of multiword prepositions: next to, in front of, on the left of."""

COORDINATORS = frozenset("and or plus vs versus".split())
"""Words that can coordinate two noun phrases. Others (as, but, like, than) on their own linked none
in 25,840 captions of LAION and CC3M."""

PUNCTUATION = ",;&+/"
"""Characters that can coordinate. Others ("Falchion Knife | Rust Coat") only separate fields of alt
text, although the parser calls a few of them conjuncts (1 pair in 196 on LAION)."""

_PUNCTUATION = frozenset(PUNCTUATION)
TRIGGERS = SPATIAL | PLACES | COORDINATORS | set(PUNCTUATION)
"""Every pair has one of these between its halves."""

_JOINED = (
    r"(?:shirts?|pieces?|ups?|like|style|free|size|sized|length|made|aged|old|neck|sleeved?|"
    r"year|winning|looking|century|high|heeled|headed|eyed|"
    r"haired|legged|shaped|themed|(?!(?:red|bed|shed|sled|seed|weed|limited|framed|used)(?![a-z]))[a-z]+ed)"
    r"(?![a-z])"
)
"""What a hyphen between spaces joins to the word before it: CC3M writes "a t - shirt"."""
_FIELD = (
    r"[|:\u2022!?]|(?<=\s)[\u2013\u2014.](?=\s)"
    rf"|(?<=\s)(?<!\bt )-(?=\s)(?! {_JOINED})"
)
"""What separates the fields of alt text, or sentences: nothing is linked across it."""

_PREFIX = 4
"""Letters of a head that RE2 compares: with five of them its automaton outgrows its memory, and the
pass takes ten times as long. `may_hold_pair` compares the rest."""
_FAR = 15
"""Most words between the heads of two linked things."""
_NEAR = 4
"""The same if only one mark of punctuation links them: what is further apart is no list."""
_AHEAD = 8
"""Words after a name in which a list goes on."""
_LISTING = frozenset((",", "&", "+", "and", "or"))
_AGENTS = frozenset(
    "surrounded flanked accompanied parked seated standing stands sitting sits".split()
)
_DETERMINERS = frozenset("a an the his her its their my our some two three".split())
"""Before and after a "by" that may say a place; one before a name says who made it."""
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
    """
    words = _WORD.findall(between.lower())
    if _FIELDS.search((between + head).lower()) is not None:
        return False
    linked = any(word in TRIGGERS and _links(words, at) for at, word in enumerate(words))
    marks = [word for word in words if word in _PUNCTUATION]
    far = _FAR if linked else _NEAR if len(marks) == 1 else -1
    if sum(map(str.isalpha, words)) > far:
        return False
    return linked or marks[0] != "," or _goes_on(_WORD_OR_FIELD.findall(after.lower()), 0)


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


def _links(words: Sequence[str], at: int) -> bool:
    """Whether a trigger is a word that may link two things where it stands."""
    if words[at] == "by":
        after = words[at + 1] if at + 1 < len(words) else ""
        return after in _DETERMINERS or (at > 0 and words[at - 1] in _AGENTS)
    return words[at].isalpha()


class Prefilter:
    """Keeps captions with two different heads and a trigger between them."""

    def __init__(self, ontology: Ontology) -> None:
        self.heads = {
            word: frozenset(f.entity.name for f in forms if f.entity)
            for word, forms in ontology.by_last.items()
            if any(f.entity for f in forms)
        }
        """Last word of a form -> the names that end with it; several end with "bear"."""
        self._kinds = {n: e.kinds & BROAD for n, e in ontology.entities.items() if e.kinds & BROAD}
        self._longer = {
            word: (
                frozenset(f.entity.name for f in forms if f.entity and not f.before),
                _by_nearest((f.before, f.entity.name) for f in forms if f.entity and f.before),
            )
            for word, forms in ontology.by_last.items()
            if word in self.heads and any(f.before for f in forms)
        }
        """Of words that end names of several words: the name of the word alone, the longer ones
        by the word before it."""
        if SOMEBODY in self.heads:  # a name of its own, which no role is a kind of
            one = f"one {SOMEBODY}"
            self.heads[SOMEBODY] = frozenset({one})
            self._kinds[one] = frozenset({SOMEBODY})
            self._longer.pop(SOMEBODY, None)
        # `may_hold_pair` reads a word as one or the other.
        if both := TRIGGERS & set(self.heads):
            raise OntologyError(
                f"the ontology names {sorted(both)}, which link entities; rename them"
            )
        long = {word[:_PREFIX] for word in self.heads if len(word) > _PREFIX}
        short = _trie(w for w in self.heads if len(w) <= _PREFIX and w not in long)
        long_head, short_head = f"(?:{_trie(long)})", f"(?:{short})"
        first = f"(?:{short_head}[^a-z]|{long_head})"
        second = f"(?:{short_head}(?:$|[^a-z])|{long_head})"
        self.two_heads = rf"(?s)(?:^|[^a-z]){first}(?:.*[^a-z])?{second}"
        """RE2 for lower-case printable ASCII; `s`, since the text may contain a line break."""
        self.trigger = rf"(?:^|[^a-z])(?:{_trie(t for t in TRIGGERS if t.isalpha())})(?:$|[^a-z])"
        self.trigger += rf"|[{PUNCTUATION}]"
        """RE2 for the same text: a trigger anywhere."""

    def may_hold_pair(self, text: str) -> bool:
        """The exact test, on one normalized text."""
        words = _WORD_OR_FIELD.findall(text.lower())
        places = [at for at, word in enumerate(words) if word in self.heads]
        if len(places) < 2 or TRIGGERS.isdisjoint(words[places[0] : places[-1]]):
            return False
        named: list[tuple[int, int, frozenset[str]]] = []  # heads so far, with both counts
        number = marks = by_word = 0  # words and marks read; the number of the last trigger
        mark = ""
        for at in range(places[0], places[-1] + 1):  # nothing outside can link anything
            word = words[at]
            own = self.heads.get(word)
            if own is not None:
                number += 1
                if word in self._longer:
                    own = self._names(words, at)
                for earlier, marked, names in named:
                    linked = by_word > earlier
                    far = _FAR if linked else _NEAR if marks - marked == 1 else -1
                    if number - earlier - 1 > far or not self._differ(names, own):
                        continue
                    if linked or mark != "," or _goes_on(words, at + 1):
                        return True
                named.append((number, marks, own))
            elif word in _PUNCTUATION:
                mark, marks = word, marks + 1
            elif word.isalpha():
                number += 1
                if word in TRIGGERS and _links(words, at):
                    by_word = number
            else:  # a field ends here, and with it every link
                named.clear()
        return False

    def _differ(self, linked: frozenset[str], own: frozenset[str]) -> bool:
        """Whether two of the names are distinct, as in `ontology.summed_up`."""
        for name in own:
            kinds = self._kinds.get(name, frozenset())
            for other in linked:
                if other != name and other not in kinds and name not in self._kinds.get(other, ()):
                    return True
        return False

    def _names(self, words: list[str], at: int) -> frozenset[str]:
        """What a word may name: the name of the word alone, and longer ones that are spelled out.

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

        Two cheap patterns: a single one that also checks the order takes eight times as long, and
        `may_hold_pair` checks the survivors anyway.
        """
        import pyarrow.compute as pc

        lower = pc.ascii_lower(captions)
        return pc.and_(
            pc.match_substring_regex(lower, self.two_heads),
            pc.match_substring_regex(lower, self.trigger),
        )


def _by_nearest(
    forms: Iterable[tuple[tuple[str, ...], str]],
) -> dict[str, list[tuple[tuple[str, ...], str]]]:
    """Names of several words by the word before the last."""
    found: dict[str, list[tuple[tuple[str, ...], str]]] = {}
    for before, name in forms:
        found.setdefault(before[0], []).append((before, name))
    return found


def _trie(words: Iterable[str]) -> str:
    """An alternation with shared prefixes, which RE2 scans fifty times as fast as a flat one.

    >>> _trie(["cat", "cats", "cow"])
    'c(?:at(?:s)?|ow)'
    """
    tree: dict[str, list[str]] = {}
    for word in sorted(set(words)):
        tree.setdefault(word[:1], []).append(word[1:])
    optional = "" in tree
    tree.pop("", None)
    branches = [letter + _trie(rests) for letter, rests in tree.items()]
    if not branches:
        return ""
    joined = "|".join(branches)
    if optional:
        return f"(?:{joined})?"
    return joined if len(branches) == 1 else f"(?:{joined})"
