"""The core that every engine runs: captions in, pairs out, row by row.

It knows no files, URLs or engines. The result depends only on the settings: batch sizes, shards
and engines change no row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .attachment import Word
from .extract import CaptionPair, Extractor, spatial_words
from .ontology import Ontology
from .parser import Parser, load_parser
from .prefilter import Prefilter
from .text import DIRTY, hard_rows, normalize, readable

if TYPE_CHECKING:
    import pyarrow as pa

BATCH = 1000
"""Captions parsed at once; batches of 64 cost nearly three times as much."""


@dataclass(frozen=True)
class Mined:
    """The pairs of one caption."""

    text: str
    """The normalized text, to which all offsets refer."""
    pairs: tuple[CaptionPair, ...]
    """Pairs in the order of their links in the sentence; of what the miner gives, empty only if
    there is an error."""
    tokens: int
    """Number of tokens in the parsed caption."""
    spatial: tuple[str, ...]
    """The layout words of the caption; empty if it holds no pair."""
    error: str
    """Why the caption could not be parsed; empty if it was."""


@dataclass
class Counts:
    """Totals of a miner so far."""

    candidates: int = 0
    """Captions that passed the prefilter."""
    parsed: int = 0
    """Captions that were parsed; one that comes again counts again."""
    tokens: int = 0
    """Tokens that were parsed."""
    errors: int = 0
    """Captions that could not be parsed."""


class Miner:
    """Captions to pairs. Loading takes seconds: make one per process."""

    def __init__(
        self, *, prefilter: bool = True, fast: bool = True, ontology: Ontology | None = None
    ) -> None:
        """Loads the parser; neither `prefilter` nor `fast` changes a pair.

        prefilter: skip the parser for captions that can't hold a pair. fast: use the fast tok2vec.
        Raises ModelMissing if spaCy or its model is not installed.
        """
        self.ontology = ontology or Ontology.read()
        self.parser: Parser = load_parser(fast)
        self.prefilter = Prefilter(self.ontology) if prefilter else None
        self.extractor = Extractor(self.ontology)
        self.counts = Counts()

    def __call__(self, captions: pa.StringArray) -> list[Mined | None]:
        """One entry per caption, in order; None if it holds no pair or is null."""
        results: list[Mined | None] = [None] * len(captions)
        texts = self.candidates(captions)
        # Of one caption that many images have, all are counted and one is parsed.
        mined = self._mined(list(dict.fromkeys(text for _, text in texts)))
        for row, text in texts:
            result = mined[text]
            self.counts.parsed += 1
            self.counts.tokens += result.tokens
            self.counts.errors += bool(result.error)
            if result.pairs or result.error:
                results[row] = result
        return results

    def candidates(self, captions: pa.StringArray) -> list[tuple[int, str]]:
        """Index and normalized text of the rows to parse."""
        import pyarrow.compute as pc

        if self.prefilter is None:
            texts = [(i, normalize(c)) for i, c in enumerate(captions.to_pylist()) if c]
            self.counts.candidates += len(texts)
            return texts
        # Hard rows are normalized and tested in Python; RE2 filters all others first.
        wanted = pc.or_(hard_rows(captions), self.prefilter.candidates(captions))
        rows = pc.indices_nonzero(pc.fill_null(wanted, False))
        chosen = captions.take(rows)
        dirty = pc.match_substring_regex(chosen, DIRTY)
        texts = []
        for row, caption, changed in zip(
            rows.to_pylist(), chosen.to_pylist(), dirty.to_pylist(), strict=True
        ):
            text = normalize(caption) if changed else caption
            if self.prefilter.may_hold_pair(text):
                texts.append((row, text))
        self.counts.candidates += len(texts)
        return texts

    def _mined(self, texts: list[str]) -> dict[str, Mined]:
        """Pairs of each text; all texts differ."""
        mined = {}
        for text, (words, error) in zip(texts, self._parse(texts), strict=True):
            pairs = () if words is None else tuple(self.extractor.pairs(words, text))
            tokens = 0 if words is None else len(words)
            spatial = tuple(spatial_words(text)) if pairs else ()
            mined[text] = Mined(text, pairs, tokens, spatial, error)
        return mined

    def _parse(self, texts: list[str]) -> Iterator[tuple[Sequence[Word] | None, str]]:
        """The words of each text, or None and an error, in order.

        If a batch raises, its captions are parsed one by one, and only the bad one gets an error.
        """
        for start in range(0, len(texts), BATCH):
            batch = [readable(text) for text in texts[start : start + BATCH]]
            parsed: list[tuple[Sequence[Word] | None, str]]
            try:
                parsed = [(words, "") for words in self.parser.parse(batch)]
            except Exception:  # third-party code: one caption must not end a run
                parsed = [self._parse_one(text) for text in batch]
            yield from parsed

    def _parse_one(self, text: str) -> tuple[Sequence[Word] | None, str]:
        try:
            return self.parser.parse([text])[0], ""
        except Exception as error:
            return None, f"{type(error).__name__}: {error}"
