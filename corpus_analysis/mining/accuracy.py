"""How true the miner's pairs are, against captions that were read instead of parsed.

`gold/captions.jsonl` holds the reading of captions from four sources, in several draws: where
each name stands and what links it to another. The captions are not in it: they are known by their
digests and read from the user's own copies. `tools/draw_gold.py` tells how they were drawn and
read. The sample is stratified, so a rate is weighted by how many captions of its source each one
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
from ...eval.stats.intervals import Interval
from ...schema import Struct
from ...tables import parse, read_json, read_rows
from ..captions.extract import CaptionMention, CaptionPair
from ..captions.miner import Miner, MinerSettings
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
}
"""Draws in one half as a whole: they were held out until their mistakes were read."""


class GoldMention(Struct):
    """A name as a reader found it in the normalized caption."""

    name: str
    """Lower case; the shortest name that says what kind of thing it is: "teddy bear", but "dog"."""
    start: int
    """Offset of its first character."""
    category: str = ""
    """Category that it must have, where the word has several; empty for any."""

    def fits(self, found: CaptionMention) -> bool:
        """Whether the miner found this name, or a longer one with the same head, of this kind.

        A reader may also name the measure and the miner what it holds: "slice" of a cake.
        """
        end = self.start + len(self.name)
        begin = found.end - len(found.phrase)
        if self.name in found.quantifier.lower().split():
            return begin <= self.start and end <= found.start
        return (
            found.end == end and found.start <= self.start and self.category in ("", found.category)
        )


class GoldPair(Struct):
    """Two things that a caption links, in mention order."""

    first: GoldMention
    """The one mentioned first."""
    relation: str
    """The linking words, lower case."""
    second: GoldMention
    """The other one."""

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
    """Number of the draw, from 1: captions of a later one were read when the rules of an earlier
    one were there."""
    stratum: Literal["pair", "nouns", "fewer"]
    """When it was drawn: the miner found a pair; none, but two nouns; fewer nouns."""
    weight: float
    """Captions of the source that it stands for."""
    pairs: tuple[GoldPair, ...]
    """Pairs that the caption states: not to find one is a miss."""
    also: tuple[GoldPair, ...]
    """Pairs that follow from it, or that readers may disagree on: never right, wrong or missed."""

    @property
    def half(self) -> Half:
        """By digest, so that it is known before anything is read; some draws are in one half."""
        return WHOLE.get(self.draw) or half_of(self.digest)


@dataclass(frozen=True, kw_only=True)
class PairShare(Estimate):
    """Share of pairs that are right or found, each weighted by its caption; over captions."""

    hits: int
    """Of `n` pairs, those right or found."""

    def to_json(self) -> dict[str, Any]:
        """Counts, value and interval; None where there is no pair."""
        return {"n": self.n, "hits": self.hits, **super().to_json()}


@dataclass(frozen=True)
class Truth:
    """Precision and recall of one group of captions or pairs."""

    group: str
    """All, a source or a pattern."""
    captions: int
    """Captions that were read."""
    precision: PairShare
    """Of the pairs found, how many the caption states; `open` ones left out."""
    recall: PairShare
    """Of the pairs stated, how many were found."""
    open: int
    """Pairs found that readers may disagree on."""


@dataclass(frozen=True)
class TruthReport:
    """What a miner makes of the captions that were read."""

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
    """Digest and pair, of the pairs that were not found; shown for the tuned half only."""


@dataclass(frozen=True)
class _Judged:
    """One pair, found or stated."""

    digest: str
    source: str
    pattern: str
    weight: float
    hit: bool
    said: str


def read_gold(path: Path = GOLD) -> list[GoldCaption]:
    """The captions that were read. Raises RowError for a row that doesn't fit."""
    return [parse(GoldCaption, row, path, number) for number, row in read_rows(path)]


def digest_of(caption: str) -> str:
    """What a caption is known by."""
    return hashlib.sha256(caption.encode()).hexdigest()[:16]


def half_of(digest: str) -> Half:
    """The half of the captions that one belongs to."""
    return "tuned" if digest < "8" else "held-out"


def check_pairs(
    files: Sequence[Path],
    half: Half,
    gold: Path = GOLD,
    settings: MinerSettings | None = None,
    *,
    draw: int | None = None,
) -> TruthReport:
    """Mines the captions of one half that the files hold, and compares.

    draw: number of the only draw to take, None for all of them. Raises SourceError if a file has no
    column `caption` or no caption that was read, DataError for one that can't be read, ModelMissing
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
    miner = Miner(settings or MinerSettings())
    mined = miner(pa.array(list(texts.values())))
    found: list[_Judged] = []
    stated: list[_Judged] = []
    undecided: list[_Judged] = []
    for digest, one in zip(texts, mined, strict=True):
        _compare(read[digest], one.pairs if one else (), found, stated, undecided)
    here = [read[digest] for digest in texts]
    shown = half == "tuned"
    return TruthReport(
        half,
        miner.parser.model,
        len(read) - len(texts),
        _groups(here, found, stated, undecided, lambda judged: 1.0),
        _groups(here, found, stated, undecided, lambda judged: judged.weight),
        tuple((j.digest, j.said) for j in found if shown and not j.hit),
        tuple((j.digest, j.said) for j in stated if shown and not j.hit),
    )


def read_captions(path: Path) -> Iterable[str]:
    """The captions of a parquet, JSON, JSONL or CSV file, by its column `caption`; of JSON, also as
    COCO's `annotations`.

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
    found: list[_Judged],
    stated: list[_Judged],
    undecided: list[_Judged],
) -> None:
    """Adds one caption's pairs to what was found, what is stated and what is left open."""

    def judged(pattern: str, hit: bool, said: str) -> _Judged:
        return _Judged(gold.digest, gold.source, pattern, gold.weight, hit, said)

    for pair in pairs:
        said = f"{pair.first.name} {pair.relation} {pair.second.name}"
        right = any(g.fits(pair) for g in gold.pairs)
        if not right and any(g.fits(pair) for g in gold.also):
            undecided.append(judged(pair.pattern, False, said))
        else:
            found.append(judged(pair.pattern, right, said))
    for g in gold.pairs:
        said = f"{g.first.name} {g.relation} {g.second.name}"
        stated.append(judged(g.pattern, any(g.fits(pair) for pair in pairs), said))


def _groups(
    captions: Sequence[GoldCaption],
    found: Sequence[_Judged],
    stated: Sequence[_Judged],
    undecided: Sequence[_Judged],
    weight: Callable[[_Judged], float],
) -> tuple[Truth, ...]:
    """The rates of all pairs, of each source and of each pattern."""
    sources = sorted({caption.source for caption in captions})
    kinds = [("all", "")] + [("source", name) for name in sources]
    kinds += [("pattern", name) for name in ("coordination", "preposition")]

    def of(judged: Sequence[_Judged], field: str, name: str) -> list[_Judged]:
        return [j for j in judged if field == "all" or getattr(j, field) == name]

    return tuple(
        Truth(
            name or "all",
            sum(field != "source" or caption.source == name for caption in captions),
            _share(of(found, field, name), weight),
            _share(of(stated, field, name), weight),
            len(of(undecided, field, name)),
        )
        for field, name in kinds
    )


def _share(judged: Sequence[_Judged], weight: Callable[[_Judged], float]) -> PairShare:
    """The weighted share of hits, resampled by caption."""
    if not judged:
        return PairShare(math.nan, hits=0)
    weights = np.array([weight(j) for j in judged])
    weights /= weights.max()
    hits = np.array([j.hit for j in judged], dtype=float)
    (estimate,) = cluster_interval(
        np.stack([weights * hits, weights], axis=1),
        np.array([j.digest for j in judged]),
        (0.0, 1.0),
        lambda means: means[..., :1] / means[..., 1:],
    )
    low, high = estimate.interval  # of a ratio of means, so it may leave [0, 1]
    ends = Interval(max(0, low), min(1, high))
    return PairShare.of(estimate, interval=ends, n=len(judged), hits=int(hits.sum()))
