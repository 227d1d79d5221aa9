"""Precision and recall of the miner's pairs, against captions that people read.

`gold/captions.jsonl` holds the reading of captions from four sources, in several draws: where
each name stands and what links it to another. The captions are not in it: they are known by their
digests and read from the user's own copies. `tools/draw_gold.py` describes how they were drawn
and read. The sample is stratified, so a rate is weighted by how many captions of its source each
stands for. Rules may be tuned on one half of the captions only; the rates of the other half are the
ones to believe.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from ...eval.stats.clusters import cluster_interval
from ...eval.stats.estimate import Estimate
from ...parsing import parse, read_json, read_rows
from ...schema import Struct
from ..captions.extract import CaptionMention, CaptionPair
from ..captions.miner import Miner
from ..captions.prefilter import COORDINATORS, PUNCTUATION
from ..sources.columns import SourceError

GOLD = Path(__file__).parents[1] / "gold" / "captions.jsonl"
"""The reading that ships with the package."""

Half = Literal["tuned", "held-out"]
"""Captions that rules may be tuned on, and captions that they may not."""

WHOLE: dict[int, Half] = {
    3: "tuned",
    4: "tuned",
    5: "tuned",
    6: "tuned",
    7: "tuned",
    8: "tuned",
    9: "tuned",
    10: "held-out",
    11: "tuned",
    12: "tuned",
    13: "held-out",
    14: "held-out",
    15: "held-out",
    16: "held-out",
}
"""Draws in one half as a whole: they were held out until their mistakes were read."""


class GoldMention(Struct):
    """A name as a reader marked it in the normalized caption."""

    name: str
    """Lower case; the shortest name that says what kind of thing it is: "teddy bear", but "dog"."""
    start: int
    """Offset of its first character."""
    category: str = ""
    """Category that it must have, where the word has several; empty for any."""

    def fits(self, mention: CaptionMention) -> bool:
        """Whether a mined mention is this name, or a longer one with the same head, of this kind.

        A reader may also name the measure and the miner what it holds: "slice" of a cake.
        """
        end = self.start + len(self.name)
        begin = mention.end - len(mention.phrase)
        if self.name in mention.quantifier.lower().split():
            return begin <= self.start and end <= mention.start
        return (
            mention.end == end
            and mention.start <= self.start
            and self.category in ("", mention.category)
        )


class GoldPair(Struct):
    """Two things that a caption links, in mention order."""

    first: GoldMention
    """The thing mentioned first."""
    relation: str
    """The linking words, lower case."""
    second: GoldMention
    """The thing mentioned second."""

    @property
    def pattern(self) -> str:
        """How they are linked, as in `CaptionPair`."""
        linked = self.relation in COORDINATORS | set(PUNCTUATION)
        return "coordination" if linked else "preposition"

    def fits(self, pair: CaptionPair) -> bool:
        """Whether a mined pair is this one; the linking words may differ."""
        return self.first.fits(pair.first) and self.second.fits(pair.second)


class GoldCaption(Struct):
    """The reading of a caption."""

    digest: str
    """First 16 hex digits of the SHA-256 of the raw caption."""
    source: str
    """Corpus that it was drawn from."""
    draw: int
    """Number of the draw, from 1: captions of a later draw were read when the rules tuned on
    earlier ones existed."""
    stratum: Literal["pair", "nouns", "fewer"]
    """When it was drawn: the miner found a pair; none, but two nouns; fewer nouns."""
    weight: float
    """Number of captions of the source that it stands for."""
    pairs: tuple[GoldPair, ...]
    """Pairs that the caption states: not to mine one is a miss."""
    also: tuple[GoldPair, ...]
    """Pairs that follow from it, or that readers may disagree on: never right, wrong or missed."""

    @property
    def half(self) -> Half:
        """Half by digest, so fixed before anything is read; some draws are in one half."""
        return WHOLE.get(self.draw) or half_of(self.digest)


@dataclass(frozen=True, kw_only=True)
class PairShare(Estimate):
    """Share of pairs that are right or were mined, weighted by caption; interval over captions."""

    hits: int
    """Pairs among `n` that are right or were mined."""

    def to_json(self) -> dict[str, Any]:
        """Counts, value and interval; None without pairs."""
        return {"n": self.n, "hits": self.hits, **super().to_json()}


@dataclass(frozen=True)
class Truth:
    """Precision and recall of one group of captions or pairs."""

    group: str
    """All, a source or a pattern."""
    captions: int
    """Captions that were read."""
    precision: PairShare
    """Share of mined pairs that the caption states, `open` ones excluded."""
    recall: PairShare
    """Share of stated pairs that were mined."""
    open: int
    """Mined pairs that readers may disagree on."""


@dataclass(frozen=True)
class TruthReport:
    """Comparison of a miner with the captions that were read."""

    half: Half
    model: str
    missing: int
    """Captions of this half that are in none of the files."""
    sampled: tuple[Truth, ...]
    """Each pair counts once: rates in the sample, most of whose captions have pairs."""
    weighted: tuple[Truth, ...]
    """Each pair counts for its caption's weight: rates in the sources."""
    wrong: tuple[tuple[str, str], ...]
    """Digest and pair, of the pairs that are wrong; shown for the tuned half only."""
    missed: tuple[tuple[str, str], ...]
    """Digest and pair, of the pairs that were not mined; shown for the tuned half only."""


@dataclass(frozen=True)
class _Judged:
    """A mined or stated pair, and whether the other side has it."""

    digest: str
    source: str
    pattern: str
    weight: float
    hit: bool
    text: str


def read_gold(path: Path = GOLD) -> list[GoldCaption]:
    """Reads the gold captions. Raises RowError for a row that doesn't fit."""
    return [parse(GoldCaption, row, path, number) for number, row in read_rows(path)]


def digest_of(caption: str) -> str:
    """Digest that identifies a caption."""
    return hashlib.sha256(caption.encode()).hexdigest()[:16]


def half_of(digest: str) -> Half:
    """Half that a caption belongs to."""
    return "tuned" if digest < "8" else "held-out"


def check_pairs(
    files: Sequence[Path],
    half: Half,
    gold: Path = GOLD,
    *,
    reference: bool = False,
    draw: int | None = None,
) -> TruthReport:
    """Mines the captions of one half that the files contain, and compares.

    reference: parse every caption by plain spaCy. draw: number of the only draw to take, None for
    all of them. Raises SourceError if a file has no
    column `caption` or no caption that was read, DataError for an unreadable file, ModelMissing
    without spaCy.
    """
    import pyarrow as pa

    wanted = (g for g in read_gold(gold) if g.half == half and draw in (None, g.draw))
    read = {g.digest: g for g in wanted}
    texts: dict[str, str] = {}
    for file in files:
        texts.update((d, c) for c in read_captions(file) if (d := digest_of(c)) in read)
    if not texts:
        raise SourceError(
            f"{', '.join(map(str, files))}: none of the {len(read)} captions of {gold}; "
            "name the files of the sources that it was drawn from",
            code="different-rows",
        )
    miner = Miner(prefilter=not reference, fast=not reference)
    mined = miner(pa.array(list(texts.values())))
    mined_pairs: list[_Judged] = []
    stated: list[_Judged] = []
    undecided: list[_Judged] = []
    for digest, mined_caption in zip(texts, mined, strict=True):
        _compare(
            read[digest],
            mined_caption.pairs if mined_caption else (),
            mined_pairs,
            stated,
            undecided,
        )
    captions = [read[digest] for digest in texts]
    listed = half == "tuned"
    return TruthReport(
        half,
        miner.parser.model,
        len(read) - len(texts),
        _groups(captions, mined_pairs, stated, undecided, lambda judged: 1.0),
        _groups(captions, mined_pairs, stated, undecided, lambda judged: judged.weight),
        tuple((j.digest, j.text) for j in mined_pairs if listed and not j.hit),
        tuple((j.digest, j.text) for j in stated if listed and not j.hit),
    )


def read_captions(path: Path) -> Iterable[str]:
    """Reads the column `caption` of a parquet, JSON, JSONL or CSV file, or the captions of COCO's
    `annotations`.

    Raises SourceError if there is no such column, DataError (of a row, RowError) for a file that
    can't be read.
    """
    if path.suffix == ".parquet":
        import pyarrow.parquet as pq

        if "caption" not in pq.read_schema(path).names:
            raise SourceError(f"{path}: has no column 'caption'", code="missing-column")
        column = pq.read_table(path, columns=["caption"])["caption"]
        return [caption for caption in column.to_pylist() if caption]
    coco = read_json(path) if path.suffix == ".json" else None
    if isinstance(coco, dict) and isinstance(coco.get("annotations"), list):
        rows = [row for row in coco["annotations"] if isinstance(row, dict)]
    else:
        rows = [row for _, row in read_rows(path)]
    if not any("caption" in row for row in rows):
        raise SourceError(f"{path}: has no column 'caption'", code="missing-column")
    return [str(row["caption"]) for row in rows if row.get("caption")]


def _compare(
    gold: GoldCaption,
    pairs: Sequence[CaptionPair],
    mined_pairs: list[_Judged],
    stated: list[_Judged],
    undecided: list[_Judged],
) -> None:
    """Adds one caption's pairs to those mined, stated and undecided."""

    def judged(pattern: str, hit: bool, text: str) -> _Judged:
        return _Judged(gold.digest, gold.source, pattern, gold.weight, hit, text)

    for pair in pairs:
        text = f"{pair.first.name} {pair.relation} {pair.second.name}"
        right = any(g.fits(pair) for g in gold.pairs)
        if not right and any(g.fits(pair) for g in gold.also):
            undecided.append(judged(pair.pattern, False, text))
        else:
            mined_pairs.append(judged(pair.pattern, right, text))
    for g in gold.pairs:
        text = f"{g.first.name} {g.relation} {g.second.name}"
        stated.append(judged(g.pattern, any(g.fits(pair) for pair in pairs), text))


def _groups(
    captions: Sequence[GoldCaption],
    mined_pairs: Sequence[_Judged],
    stated: Sequence[_Judged],
    undecided: Sequence[_Judged],
    weight: Callable[[_Judged], float],
) -> tuple[Truth, ...]:
    """Computes the rates of all pairs, of each source and of each pattern."""
    sources = sorted({caption.source for caption in captions})
    kinds = [("all", "")] + [("source", name) for name in sources]
    kinds += [("pattern", name) for name in ("coordination", "preposition")]

    def of(judged: Sequence[_Judged], field: str, name: str) -> list[_Judged]:
        return [j for j in judged if field == "all" or getattr(j, field) == name]

    return tuple(
        Truth(
            name or "all",
            sum(field != "source" or caption.source == name for caption in captions),
            _share(of(mined_pairs, field, name), weight),
            _share(of(stated, field, name), weight),
            len(of(undecided, field, name)),
        )
        for field, name in kinds
    )


def _share(judged: Sequence[_Judged], weight: Callable[[_Judged], float]) -> PairShare:
    """Computes the weighted share of hits, its interval over captions."""
    if not judged:
        return PairShare(math.nan, hits=0)
    weights = np.array([weight(j) for j in judged])
    hits = np.array([j.hit for j in judged], dtype=float)
    (estimate,) = cluster_interval(
        hits, np.array([j.digest for j in judged]), (0.0, 1.0), weights=weights
    )
    return PairShare.of(estimate, n=len(judged), hits=int(hits.sum()))
