"""Captions to word types without spaCy's documents and lexemes: the same tokens, much cheaper.

spaCy splits a caption at its spaces, and each chunk by rules of its language. What a chunk becomes
depends on the chunk alone, so it is looked up here. A chunk of ASCII letters, or of digits, that is
no exception ("cannot") is one token, and a comma after it another: the rules cut at marks and
between digits and letters only. So are two such words of letters with a mark between, all three.
Every other chunk is given to spaCy's tokenizer once. For a new word, spaCy would compute 23
attributes and store them; the model reads six.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc

_ATTRIBUTES: list[int | str] = ["NORM", "PREFIX", "SUFFIX", "SHAPE", "IS_SPACE"]
_MAX_TYPES = 200_000
"""Most word types kept: about 60 MB, as much again for the vectors of both codes."""

_MARKS = ",:;!?)."
"""What is always cut off at the end; a period only after a small letter or a digit."""

_JOINED = re.compile("([A-Za-z]+)([-/,])([A-Za-z]+)")
"""Two words with a mark at which the rules always cut."""

Attributes = tuple[int, int, int, int, int]


class FastWords(dict[str, tuple[int, ...]]):
    """Chunk -> codes of its words, filled as chunks are asked for.

    A word's code is twice its number, plus one if a space follows.
    """

    def __init__(self, nlp: Language) -> None:
        attrs: Any = import_module("spacy.attrs")
        vocab: Any = nlp.vocab
        tokenizer: Any = nlp.tokenizer
        self._tokenizer = tokenizer
        self._exceptions = frozenset(tokenizer.rules)
        self._strings = vocab.strings
        self._norm = vocab.lex_attr_getters[attrs.NORM]
        self._numbers: dict[tuple[str, Attributes], int] = {}
        self._plains: dict[str, int] = {}
        self.texts: list[str] = []
        """Number -> the word as written."""
        self.lower: list[str] = []
        """Number -> the word in lower case."""
        self.attributes: list[Attributes] = []
        """Number -> NORM, PREFIX, SUFFIX, SHAPE and IS_SPACE, as spaCy hashes them."""

    def full(self) -> bool:
        """Whether it is time to begin anew."""
        return len(self.texts) > _MAX_TYPES or len(self) > _MAX_TYPES

    def codes(self, text: str) -> Sequence[int]:
        """The words of a caption."""
        chunks = text.split()
        if " ".join(chunks) != text:  # other spaces are words of their own
            return self._codes(self._tokenizer(text))
        found = [code for chunk in chunks for code in self[chunk]]
        if found:
            found[-1] -= 1
        return found

    def __missing__(self, chunk: str) -> tuple[int, ...]:
        word = chunk.rstrip(_MARKS)
        codes: tuple[int, ...]
        if (
            chunk.isascii()
            and (word.isalpha() or word.isdigit())
            and not (chunk in self._exceptions or word in self._exceptions)
            and len(chunk) - len(word) < 2
            and not (chunk[-1] == "." and word[-1].isupper())
        ):
            codes = (2 * self._plain(word) + 1,)
            if word != chunk:
                codes = (2 * self._plain(word), 2 * self._plain(chunk[-1]) + 1)
        else:
            joined = None if chunk in self._exceptions else _JOINED.fullmatch(chunk)
            if joined is not None:
                *before, last = (2 * self._plain(word) for word in joined.groups())
            else:
                *before, last = self._codes(self._tokenizer(chunk))
            codes = (*before, last + 1)
        self[chunk] = codes
        return codes

    def _plain(self, word: str) -> int:
        """The number of a word whose attributes are those that spaCy's rules give its letters."""
        if (number := self._plains.get(word)) is None:
            strings = self._strings
            norm, shape = strings[self._norm(word)], strings[_shape(word)]
            attributes = norm, strings[word[0]], strings[word[-3:]], shape, 0
            number = self._plains[word] = self._number(word, attributes)
        return number

    def _codes(self, doc: Doc) -> list[int]:
        rows = doc.to_array(_ATTRIBUTES).tolist()
        return [
            2 * self._number(token.text, tuple(row)) + bool(token.whitespace_)
            for token, row in zip(doc, rows, strict=True)
        ]

    def _number(self, text: str, attributes: Attributes) -> int:
        number = self._numbers.setdefault((text, attributes), len(self.texts))
        if number == len(self.texts):
            self.texts.append(text)
            self.lower.append(text.lower())
            self.attributes.append(attributes)
        return number


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
