"""The core that every engine runs: captions in, pairs out, one row for one row.

Knows no file, no URL and no engine. A `Miner` is a pure function of its settings: batch sizes,
shards and engines never change a row.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from .extract import Extractor, Pair, spatial_words
from .ontology import Ontology
from .parser import Parser, load_parser
from .prefilter import Prefilter
from .text import DIRTY, hard, normalise

if TYPE_CHECKING:
    import pyarrow as pa

BATCH = 1000
"""Captions parsed at once: 64 cost nearly three times as much."""


@dataclass(frozen=True)
class Mined:
    """What one caption holds."""

    text: str
    """The normalised text, to which all offsets refer."""
    pairs: tuple[Pair, ...]
    """In the order of their link in the sentence; empty only where `error` is not."""
    tokens: int
    """Tokens of the parser."""
    spatial: tuple[str, ...]
    """The caption's words that speak of layout."""
    error: str
    """Why the caption could not be parsed; empty where it could."""

    def record(self) -> dict[str, Any]:
        """As nested plain Python."""
        return asdict(self)


@dataclass(frozen=True)
class MinerSettings:
    """How captions are mined; none of it changes a pair."""

    prefilter: bool = True
    """Whether captions that can't hold a pair skip the parser."""
    fast: bool = True
    """Whether spaCy is sped up."""


@dataclass
class Counts:
    """What a miner did so far."""

    candidates: int = 0
    """Captions that passed the prefilter."""
    parsed: int = 0
    """Captions that were parsed."""
    tokens: int = 0
    """Tokens that were parsed."""
    errors: int = 0
    """Captions that could not be parsed."""


class Miner:
    """Captions to pairs. Loading takes seconds: make one a process."""

    def __init__(self, settings: MinerSettings, ontology: Ontology | None = None) -> None:
        """Raises ModelMissing where spaCy or its model isn't installed."""
        self.settings = settings
        self.ontology = ontology or Ontology.read()
        self.parser: Parser = load_parser(settings.fast)
        self.prefilter = Prefilter(self.ontology)
        self.extractor = Extractor(self.ontology)
        self.counts = Counts()

    def __call__(self, captions: pa.StringArray) -> list[Mined | None]:
        """One entry a caption, in order; None where it holds no pair (or is null)."""
        found: list[Mined | None] = [None] * len(captions)
        texts = self.candidates(captions)
        for (row, text), (doc, error) in zip(
            texts, self._parse([t for _, t in texts]), strict=True
        ):
            pairs = () if doc is None else tuple(self.extractor.pairs(doc, text))
            if pairs or error:
                tokens = 0 if doc is None else len(doc)
                found[row] = Mined(text, pairs, tokens, tuple(spatial_words(text)), error)
        return found

    def candidates(self, captions: pa.StringArray) -> list[tuple[int, str]]:
        """Number and normalised text of the rows that are to be parsed."""
        import pyarrow.compute as pc

        if not self.settings.prefilter:
            texts = [(i, normalise(c)) for i, c in enumerate(captions.to_pylist()) if c]
            self.counts.candidates += len(texts)
            return texts
        # Hard rows are normalised and tested in Python; all others meet RE2 first.
        hard_rows = pc.match_substring_regex(captions, hard())
        wanted = pc.or_(hard_rows, self.prefilter.candidates(captions))
        rows = pc.indices_nonzero(pc.fill_null(wanted, False))
        chosen = captions.take(rows)
        dirty = pc.match_substring_regex(chosen, DIRTY)
        texts = []
        for row, caption, changed in zip(
            rows.to_pylist(), chosen.to_pylist(), dirty.to_pylist(), strict=True
        ):
            text = normalise(caption) if changed else caption
            if self.prefilter.may_hold_pair(text):
                texts.append((row, text))
        self.counts.candidates += len(texts)
        return texts

    def _parse(self, texts: list[str]) -> Iterator[tuple[Any, str]]:
        """The parsed document and an error, of which one is empty, for each text in order.

        When a batch raises, its captions are parsed one by one and only the bad one gets an error.
        """
        nlp = self.parser.nlp
        for start in range(0, len(texts), BATCH):
            batch = texts[start : start + BATCH]
            try:
                docs = [(doc, "") for doc in nlp.pipe(batch, batch_size=BATCH)]
            except Exception:  # the parser is foreign code; one caption must not end a run
                docs = [self._parse_one(text) for text in batch]
            for doc, error in docs:
                self.counts.parsed += 1
                self.counts.tokens += 0 if doc is None else len(doc)
                self.counts.errors += bool(error)
                yield doc, error

    def _parse_one(self, text: str) -> tuple[Any, str]:
        try:
            return self.parser.nlp(text), ""
        except Exception as error:
            return None, f"{type(error).__name__}: {error}"
