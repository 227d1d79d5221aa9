"""Words of a parsed caption as plain Python objects: what `attachment.Word` names, and no more.

Asking one of spaCy's tokens for an attribute or its neighbors makes new objects each time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .attachment import Word

_NONE: list[Word] = []
"""Shared by all words on a side of which nothing hangs; never added to."""


class LightWord:
    """One word of a projective tree."""

    __slots__ = ("dep_", "head", "i", "idx", "lefts", "lower_", "rights", "tag_", "text")

    def __init__(self, i: int, idx: int, text: str, lower: str, tag: str, dep: str) -> None:
        self.i = i
        self.idx = idx
        self.text = text
        self.lower_ = lower
        self.tag_ = tag
        self.dep_ = dep
        self.head: Word = self
        self.lefts: list[Word] = _NONE
        self.rights: list[Word] = _NONE

    @property
    def left_edge(self) -> Word:
        """The first word of its subtree."""
        word: Word = self
        while word.lefts:
            word = next(iter(word.lefts))
        return word

    @property
    def right_edge(self) -> Word:
        """The last word of its subtree."""
        word: Word = self
        while rights := list(word.rights):
            word = rights[-1]
        return word


class LooseWord(LightWord):
    """One word of a tree of which an arc may cross another: what depends on it may be anywhere."""

    __slots__ = ()

    @property
    def left_edge(self) -> Word:
        """The first word of its subtree."""
        return min(self._subtree(), key=lambda word: word.i)

    @property
    def right_edge(self) -> Word:
        """The last word of its subtree."""
        return max(self._subtree(), key=lambda word: word.i)

    def _subtree(self) -> list[Word]:
        found: list[Word] = [self]
        for word in found:  # which grows
            found += (*word.lefts, *word.rights)
        return found


def link(words: Sequence[LightWord], heads: Sequence[int]) -> None:
    """Links each word to its head and back. `heads`: positions, negative for a root."""
    for word, head in zip(words, heads, strict=True):
        if head < 0:
            continue
        above = words[head]
        word.head = above
        side = above.lefts if head > word.i else above.rights
        if side:
            side.append(word)
        elif head > word.i:
            above.lefts = [word]
        else:
            above.rights = [word]


def reattach(words: Sequence[LightWord], mark: str) -> None:
    """Gives each word with two labels, "own||head's", the head that it has in a tree in which arcs
    may cross: the first word with the second label below the one that it hangs on, by level.

    As spaCy's `nonproj.deprojectivize` does.
    """
    for word in words:
        if mark not in word.dep_:
            continue
        word.dep_, label = word.dep_.split(mark)
        level = [word.head]
        while level:
            below = [t for above in level for t in (*above.lefts, *above.rights)]
            level = [t for t in below if t.i != word.i and not t.text.isspace()]
            head = next((t for t in level if t.dep_ == label), None)
            if head is not None:
                word.head = head
                break
    for word in words:
        below = [t for t in words if t.head is word and t is not word]
        word.lefts = [t for t in below if t.i < word.i]
        word.rights = [t for t in below if t.i > word.i]


def unlink(words: Iterable[Word]) -> None:
    """Takes light words apart, which else only the garbage collector could free."""
    for word in words:
        if not isinstance(word, LightWord):
            return  # a document of spaCy's
        del word.head, word.lefts, word.rights
