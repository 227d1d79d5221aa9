"""The whole path from text to parsed words without spaCy's pipeline, by the same model.

Word types, token vectors, tags and trees are computed by batch, with NumPy; no spaCy document is
made. `parser.load_parser` uses this only if it agrees with spaCy on a sample of captions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .attachment import Word
from .common_words import CommonWords
from .fast_tok2vec import FastTok2Vec, Indices, UnknownLayout, Vectors, parts, with_space
from .fast_transitions import FastTransitions
from .fast_words import FastWords
from .light_word import LightWord, LooseWord, link, reattach

if TYPE_CHECKING:
    from spacy.language import Language

_DECORATED = "||"
"""In labels of arcs that were moved to make a tree projective: two in 10,000."""
_ROOT = "ROOT"
_TOKENS_AT_ONCE = 4_000
"""Tokens of captions that go through the model together. New memory is slow to get, so what a part
needs is kept small for the next to use again; but a few captions alone, the longest of a batch,
advance as slowly as hundreds."""


class FastParser:
    """Texts to parsed words."""

    def __init__(self, nlp: Language, tok2vec: FastTok2Vec, common: CommonWords) -> None:
        """Raises UnknownLayout if the pipeline is not that of the 3.8 models."""
        if nlp.pipe_names != ["tok2vec", "tagger", "parser"]:
            raise UnknownLayout(f"the pipes are {nlp.pipe_names}")
        self.nlp: Any = nlp
        self.tok2vec = tok2vec
        self.common = common
        tagger: Any = nlp.get_pipe("tagger")
        try:
            (softmax,) = (node for node in tagger.model.walk() if node.name == "softmax")
        except ValueError:
            raise UnknownLayout("the tagger has another layout") from None
        self.tagger = softmax.get_param("W").T.copy(), softmax.get_param("b")
        self.tags: Sequence[str] = tagger.labels
        self.transitions = FastTransitions(nlp.get_pipe("parser"), _TOKENS_AT_ONCE)
        labels = enumerate(self.transitions.labels)
        self._decorated = frozenset(move for move, label in labels if _DECORATED in label)
        self._forget()

    def _forget(self) -> None:
        self.words = FastWords(self.nlp, self.common)
        self.rows = np.full(1024, -1)
        """Code of a word -> its row in `vectors`, -1 if it has none yet."""
        self.vectors = np.empty((1024, self.tok2vec.width), np.float32)
        self.known = 0
        """Rows of `vectors` in use."""

    def parse(self, texts: Sequence[str]) -> list[Sequence[Word]]:
        """The words of each text."""
        if self.words.full():
            self._forget()
        codes = self.words.codes(texts)
        # The longest first: they share the many transitions that they take.
        order = sorted(range(len(texts)), key=lambda at: -len(codes[at]))
        lengths = np.array([len(codes[at]) for at in order], np.int64)
        flat = np.array([code for at in order for code in codes[at]], np.int64)
        W, bias = self.tagger
        found: list[Sequence[Word]] = [()] * len(texts)
        for captions, tokens in parts(lengths, _TOKENS_AT_ONCE):
            vectors = self.tok2vec.encode(self._embed(flat[tokens]), lengths[captions])
            tags = (vectors @ W + bias).argmax(1).tolist()
            heads, moves = self.transitions.parse(vectors, lengths[captions])
            rows, labels, start = heads.tolist(), moves.tolist(), 0
            for at in order[captions]:
                end = start + len(codes[at])
                ours = slice(start, end)
                found[at] = self._words(codes[at], tags[ours], rows[ours], labels[ours], start)
                start = end
        return found

    def _words(
        self, codes: Sequence[int], tags: list[int], heads: list[int], moves: list[int], start: int
    ) -> list[LightWord]:
        """The words of one caption."""
        texts, lower, names = self.words.texts, self.words.lower, self.tags
        labels = self.transitions.labels
        projective = self._decorated.isdisjoint(moves)
        make = LightWord if projective else LooseWord
        words: list[LightWord] = []
        idx = 0
        for i, code in enumerate(codes):
            number = code >> 1
            dep = labels[moves[i]] if heads[i] >= 0 else _ROOT
            text = texts[number]
            words.append(make(i, idx, text, lower[number], names[tags[i]], dep))
            idx += len(text) + (code & 1)
        link(words, [head - start for head in heads])
        if not projective:
            reattach(words, _DECORATED)
        return words

    def _embed(self, codes: Indices) -> Vectors:
        """The vectors of words, those of new types computed."""
        types = 2 * len(self.words.texts)
        if types > len(self.rows):
            self.rows = np.concatenate([self.rows, np.full(2 * types - len(self.rows), -1)])
        found = self.rows[codes]
        if found.min() < 0:
            new = np.unique(codes[found < 0])
            needed = self.known + len(new)
            if needed > len(self.vectors):
                more = np.empty((2 * needed, self.tok2vec.width), np.float32)
                more[: self.known] = self.vectors[: self.known]
                self.vectors = more
            self.vectors[self.known : needed] = self._vectors(new)
            self.rows[new] = np.arange(self.known, needed)
            self.known = needed
            found = self.rows[codes]
        vectors: Vectors = self.vectors[found]
        return vectors

    def _vectors(self, codes: Indices) -> Vectors:
        """Those of new types: from the table, or computed."""
        words = self.words
        numbers, spaced = (codes >> 1).tolist(), codes & 1
        table = np.array([words.rows[number] for number in numbers])
        common = table >= 0
        rare = (~common).nonzero()[0].tolist()
        found = np.empty((len(codes), self.tok2vec.width), np.float32)
        found[common] = self.common.vectors[2 * table[common] + spaced[common]]
        if rare:
            attributes = [words.attributes[numbers[at]] for at in rare]
            found[rare] = self.tok2vec.mixed(with_space(attributes, spaced[rare].astype(bool)))
        return found
