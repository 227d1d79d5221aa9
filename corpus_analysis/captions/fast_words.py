"""Captions to word types without spaCy's documents and lexemes: the same tokens, much cheaper.

spaCy splits a caption at its spaces, and each chunk by rules of its language. What a chunk becomes
depends on the chunk alone, so it is looked up here. A chunk of ASCII letters, or of digits, that is
no exception ("cannot") is one token, and a bracket before it or a comma after it another: the rules
cut at marks and between digits and letters only. So are two such words of letters with a mark
between, all three.
Every other chunk is given to spaCy's tokenizer once, together with all that are new in a batch. For
a new word, spaCy would compute 23 attributes and store them; the model reads six. The commonest
words need none, since their vectors are in a table.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib import import_module
from itertools import chain
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc

    from .common_words import CommonWords

_ATTRIBUTES: list[int | str] = ["NORM", "PREFIX", "SUFFIX", "SHAPE", "IS_SPACE"]
_MAX_TYPES = 200_000
"""Most word types kept: about 60 MB, as much again for the vectors of both codes."""

_PLAIN = re.compile("""([("]?)([A-Za-z]+|[0-9]+)([,:;!?)."]?)""")
"""A word and what is always cut off around it; a period only after a small letter or a digit."""

_JOINED = re.compile("([A-Za-z]+)([-/,])([A-Za-z]+)")
"""Two words with a mark at which the rules always cut."""

Attributes = tuple[int, ...]
"""Five, or none."""


class FastWords(dict[str, tuple[int, ...]]):
    """Chunk -> codes of its words, filled as chunks are met.

    A word's code is twice its number, plus one if a space follows.
    """

    def __init__(self, nlp: Language, common: CommonWords) -> None:
        tokenizer: Any = nlp.tokenizer
        self._tokenizer = tokenizer
        self._exceptions = frozenset(tokenizer.rules)
        self._attributes = PlainAttributes(nlp)
        self._common = common.rows
        self._numbers: dict[tuple[str, Attributes], int] = {}
        self._plains: dict[str, int] = {}
        self.texts: list[str] = []
        """Number -> the word as written."""
        self.lower: list[str] = []
        """Number -> the word in lower case."""
        self.attributes: list[Attributes] = []
        """Number -> NORM, PREFIX, SUFFIX, SHAPE and IS_SPACE, as spaCy hashes them; nothing if the
        word is in the table."""
        self.rows: list[int] = []
        """Number -> the word's number in the table of the commonest words, -1 if it has none."""

    def full(self) -> bool:
        """Whether it is time to begin anew."""
        return len(self.texts) > _MAX_TYPES or len(self) > _MAX_TYPES

    def codes(self, texts: Sequence[str]) -> list[Sequence[int]]:
        """The words of each caption."""
        captions = [text.split() for text in texts]
        self._learn(dict.fromkeys(chain.from_iterable(captions)))
        found: list[Sequence[int]] = []
        for text, chunks in zip(texts, captions, strict=True):
            if " ".join(chunks) != text:  # other spaces are words of their own
                found.append(self._codes(self._tokenizer(text)))
                continue
            codes = [code for chunk in chunks for code in self[chunk]]
            if codes:
                codes[-1] -= 1
            found.append(codes)
        return found

    def _learn(self, chunks: Iterable[str]) -> None:
        """Adds those that are new."""
        others = []
        for chunk in chunks:
            if chunk in self:
                continue
            if chunk.isalpha() and chunk.isascii() and chunk not in self._exceptions:
                self[chunk] = (2 * self._plain(chunk) + 1,)
                continue
            cut = _PLAIN.fullmatch(chunk) or _JOINED.fullmatch(chunk)
            if cut is None or self._is_exception(chunk, cut):
                others.append(chunk)
                continue
            pieces = [2 * self._plain(word) for word in cut.groups() if word]
            pieces[-1] += 1
            self[chunk] = tuple(pieces)
        for chunk, codes in zip(others, self._tokenized(others), strict=True):
            self[chunk] = codes

    def _is_exception(self, chunk: str, cut: re.Match[str]) -> bool:
        """Whether something in a chunk is an exception, or may be an abbreviation."""
        if chunk in self._exceptions or (chunk[-1] == "." and chunk[-2].isupper()):
            return True
        if cut.re is _JOINED:
            return False
        first, word, last = cut.groups()
        return not self._exceptions.isdisjoint((word, first + word, word + last))

    def _tokenized(self, chunks: Sequence[str]) -> Iterator[tuple[int, ...]]:
        """What spaCy's tokenizer makes of each, asked once for all of them.

        A plain word after each keeps exceptions of several tokens from reaching into the next.
        """
        codes: list[int] = []
        between = False
        for code in self._codes(self._tokenizer("".join(f"{chunk} and " for chunk in chunks))):
            codes.append(code)
            if code & 1:  # a space follows: the chunk, or the word after it, ends
                if not between:
                    yield tuple(codes)
                between, codes = not between, []

    def _plain(self, word: str) -> int:
        """The number of a word whose attributes are those that spaCy's rules give its letters."""
        if (number := self._plains.get(word)) is None:
            if (row := self._common.get(word)) is not None:
                number = self._add(word, (), row)
            else:
                number = self._number(word, self._attributes(word))
            self._plains[word] = number
        return number

    def _codes(self, doc: Doc) -> list[int]:
        rows = doc.to_array(_ATTRIBUTES).tolist()
        return [
            2 * self._number(token.text, tuple(row)) + bool(token.whitespace_)
            for token, row in zip(doc, rows, strict=True)
        ]

    def _number(self, text: str, attributes: Attributes) -> int:
        if (number := self._numbers.get((text, attributes))) is None:
            known = text in self._common and attributes == self._attributes(text)
            number = self._plain(text) if known else self._add(text, attributes, -1)
            self._numbers[text, attributes] = number
        return number

    def _add(self, text: str, attributes: Attributes, row: int) -> int:
        self.texts.append(text)
        self.lower.append(text.lower())
        self.attributes.append(attributes)
        self.rows.append(row)
        return len(self.texts) - 1


class PlainAttributes:
    """The attributes that spaCy's rules give the letters of a word."""

    def __init__(self, nlp: Language) -> None:
        attrs: Any = import_module("spacy.attrs")
        vocab: Any = nlp.vocab
        self._hashed = vocab.strings.__getitem__
        self._part = cache(self._hashed)  # words share their beginnings, ends and shapes
        self._norm = vocab.lex_attr_getters[attrs.NORM]

    def __call__(self, word: str) -> Attributes:
        part = self._part
        return self._hashed(self._norm(word)), part(word[0]), part(word[-3:]), part(_shape(word)), 0


def _shape(word: str) -> str:
    """Capitals, small letters and digits of a plain word, of each run the first four.

    What spaCy's `word_shape` says of it, in less time.
    """
    if word.islower() and len(word) < 100:
        return "xxxx"[: len(word)]
    if word.istitle() and len(word) < 100:
        return "X" + "xxxx"[: len(word) - 1]
    from spacy.lang.lex_attrs import word_shape

    return word_shape(word)
