"""Does any rule of the caption miner move the share of first-mentioned things on the left?

    python benchmarks/order_share.py INSTANCES CAPTIONS [--runs 2000]

INSTANCES and CAPTIONS are the files of `counterprior corpus control`: people's boxes, and their
captions of the same photographs. Each rule (a function of the modules of `RULES`) is left out in
turn: it finds no link, no noun, or is false. The captions are parsed once; pairs of the subset
`all` are compared, each with the largest boxes of its classes. A line for each rule that changes a
pair: pairs that count without it, their share, the shift in points, and its 95 % interval, which
holds for all rules together (bootstrap by image, largest deviation of any rule). The exit code is 1
if an interval is without 0.

The last lines are of rules with a planted fault, which tell what would be seen: the miner loses a
pair in twenty, or in five, only where the first-mentioned thing is on the right. Where captions of
`corpus accuracy` are among CAPTIONS, the pairs that annotators state are compared with the mined
pairs of the same captions, too. Seeded.
"""

from __future__ import annotations

import argparse
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
from numpy.typing import NDArray

from counterprior.corpus_analysis.alignment.control.boxed_pairs import match, side
from counterprior.corpus_analysis.captioning.people import HumanCaption, read_people
from counterprior.corpus_analysis.captions import (
    coordination,
    extract,
    prepositions,
    subjects,
    support,
)
from counterprior.corpus_analysis.captions.extract import CaptionMention, CaptionPair, Extractor
from counterprior.corpus_analysis.captions.miner import Miner
from counterprior.corpus_analysis.captions.ontology import Ontology
from counterprior.corpus_analysis.captions.text import readable
from counterprior.corpus_analysis.mining.accuracy import GoldMention, digest_of, read_gold
from counterprior.eval.geometry.instances import Instances

RULES = (coordination, prepositions, subjects, support, extract)
NEUTRAL: Mapping[str, Callable[..., Any]] = {
    "Iterator[Link]": lambda *_: iter(()),
    "bool": lambda *_: False,
    "| None": lambda *_: None,
}
"""What a rule that is left out returns, by the end of its return type."""
PLANTED = {"a pair in twenty": 20, "a pair in five": 5}
BATCH = 1000
"""Captions parsed between two reports of progress."""
Counts = NDArray[np.int64]
"""By image: pairs with the first on the left, and pairs that count."""


class Rule(NamedTuple):
    """A function of the miner."""

    owner: ModuleType | type
    name: str
    neutral: Callable[..., Any]

    def __str__(self) -> str:
        return f"{self.owner.__name__.rpartition('.')[2]}.{self.name}"

    def left_out(self) -> ExitStack:
        """A context in which it is left out, in every module that imports it, too."""
        function = vars(self.owner)[self.name]
        stack = ExitStack()
        for owner in {self.owner, *RULES}:
            if vars(owner).get(self.name) is function:
                stack.enter_context(mock.patch.object(owner, self.name, self.neutral))
        return stack


def rules() -> Iterator[Rule]:
    """Every function of the miner's rules whose return type has a neutral value."""
    for module in RULES:
        classes = [value for value in vars(module).values() if inspect.isclass(value)]
        for owner in (module, *classes):
            for name, function in vars(owner).items():
                if not inspect.isfunction(function) or function.__module__ != module.__name__:
                    continue
                returns = str(function.__annotations__.get("return", ""))
                for end, neutral in NEUTRAL.items():
                    if returns.endswith(end):
                        yield Rule(owner, name, neutral)


class Parsed(NamedTuple):
    """A caption that may hold a pair."""

    caption: HumanCaption
    text: str
    words: Sequence[Any]


class Shares:
    """Counts by image of pairs that count, and of those with the first on the left."""

    def __init__(self, boxes: Instances) -> None:
        self._images = {image.id: image for image in boxes.images}
        self._classes = {name for image in boxes.images for name in {*image.boxes, *image.crowds}}
        self._rows = {image: row for row, image in enumerate(self._images)}

    def side(self, image: str, pair: CaptionPair) -> float:
        """1 if the first is on the left, 0 if on the right, 0.5 if the pair doesn't count."""
        matched = match(pair, self._images[image], self._classes)
        return 0.5 if isinstance(matched, str) else side(*(half.largest for half in matched))

    def counts(self, pairs: Iterable[tuple[str, CaptionPair]]) -> Counts:
        """Array (images, 2)."""
        totals = np.zeros((len(self._rows), 2), np.int64)
        for image, pair in pairs:
            if (left := self.side(image, pair)) != 0.5:
                totals[self._rows[image]] += (int(left), 1)
        return totals


def mined(parsed: Sequence[Parsed], extractor: Extractor) -> list[tuple[str, CaptionPair]]:
    """Image and pair of all pairs, in the order of the captions."""
    return [(p.caption.image, pair) for p in parsed for pair in extractor.pairs(p.words, p.text)]


def share(counts: Counts) -> float:
    left, n = counts.sum(axis=0)
    return float(left / n)


def shifts(base: Counts, others: Sequence[Counts], runs: int) -> tuple[NDArray[Any], float]:
    """Standard errors of the shifts in points, and how many of them an interval of all spans."""
    rng = np.random.default_rng(0)
    weights = rng.multinomial(len(base), np.full(len(base), 1 / len(base)), runs)
    left, n = np.moveaxis(weights @ np.stack([base, *others]), 2, 0)
    drawn = 100 * left / n  # (sets, runs)
    moved = drawn[1:] - drawn[0]
    errors = moved.std(axis=1, ddof=1)
    largest = np.max(np.abs(moved - moved.mean(axis=1, keepdims=True)) / errors[:, None], axis=0)
    return errors, float(np.quantile(largest, 0.95))


def planted(
    pairs: Sequence[tuple[str, CaptionPair]], shares: Shares, every: int
) -> list[tuple[str, CaptionPair]]:
    """The pairs without each `every`th of those whose first is on the right."""
    right = [at for at, (image, pair) in enumerate(pairs) if shares.side(image, pair) == 0]
    lost = set(right[::every])
    return [pair for at, pair in enumerate(pairs) if at not in lost]


def as_mined(half: GoldMention) -> CaptionMention | None:
    """A name that an annotator marked, as the miner writes it; None if the ontology lacks it."""
    thing = Ontology.read().surface.get(half.name)
    if thing is None:
        return None
    end = half.start + len(half.name)
    return CaptionMention(
        thing.name, thing.category, half.name.split()[-1], half.name, "", half.start, end
    )


def stated(captions: Iterable[HumanCaption]) -> tuple[set[str], list[tuple[str, CaptionPair]]]:
    """Texts of the captions that were annotated, and image and pair of all pairs they state."""
    gold = {caption.digest: caption for caption in read_gold()}
    annotated = {c.text: c.image for c in captions if digest_of(c.text) in gold}
    pairs = []
    for text, image in annotated.items():
        for pair in gold[digest_of(text)].pairs:
            first, second = as_mined(pair.first), as_mined(pair.second)
            if first is not None and second is not None:
                pairs.append((image, CaptionPair(first, second, "coordination", "", text)))
    return set(annotated), pairs


def parse(captions: Sequence[HumanCaption], miner: Miner) -> list[Parsed]:
    """The captions that may hold a pair, with spaCy's words; progress on standard error."""
    import pyarrow as pa

    chosen = miner.candidates(pa.array([caption.text for caption in captions]))
    parsed: list[Parsed] = []
    for start in range(0, len(chosen), BATCH):
        batch = chosen[start : start + BATCH]
        print(f"parsed: {start:,} of {len(chosen):,}", file=sys.stderr)
        words = miner.parser.parse([readable(text) for _, text in batch])
        parsed += [
            Parsed(captions[at], text, w) for (at, text), w in zip(batch, words, strict=True)
        ]
    return parsed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("instances", type=Path)
    parser.add_argument("captions", type=Path)
    parser.add_argument("--runs", type=int, default=2000, help="of the bootstrap")
    options = parser.parse_args()
    boxes = Instances.read(options.instances)
    ids = {name: image.id for image in boxes.images for name in (image.id, *image.names)}
    captions = read_people(options.captions, ids).captions
    miner = Miner()
    parsed, shares = parse(captions, miner), Shares(boxes)
    pairs = mined(parsed, miner.extractor)
    base = shares.counts(pairs)
    unlike: dict[str, Counts] = {}
    for rule in rules():
        with rule.left_out():
            counts = shares.counts(mined(parsed, Extractor(miner.ontology)))
        if counts[:, 1].sum() and (counts != base).any():
            unlike[str(rule)] = counts
    by_rule = len(unlike)
    for name, every in PLANTED.items():
        unlike[f"planted: {name}"] = shares.counts(planted(pairs, shares, every))
    errors, spans = shifts(base, list(unlike.values()), options.runs)
    print(f"{len(captions):,} captions, {len(boxes.images):,} images, {by_rule} rules that matter")
    print(f"all rules: {100 * share(base):.2f} % of {base[:, 1].sum():,}")
    moved = []
    for at, (name, counts) in enumerate(unlike.items()):
        shift, margin = 100 * (share(counts) - share(base)), spans * errors[at]
        if at < by_rule and abs(shift) > margin:
            moved.append(name)
        print(
            f"{name:40} {counts[:, 1].sum():6,} {100 * share(counts):6.2f} % {shift:+6.2f} "
            f"({shift - margin:+.2f} to {shift + margin:+.2f}){' *' if abs(shift) > margin else ''}"
        )
    texts, by_annotators = stated(captions)
    if by_annotators:
        same = shares.counts(
            (p.caption.image, pair)
            for p in {p.caption.text: p for p in parsed if p.caption.text in texts}.values()
            for pair in miner.extractor.pairs(p.words, p.text)
        )
        annotated = shares.counts(by_annotators)
        (error,), spans = shifts(same, [annotated], options.runs)
        shift = 100 * (share(annotated) - share(same))
        print(
            f"{len(texts):,} annotated captions: stated {100 * share(annotated):.2f} % of "
            f"{annotated[:, 1].sum():,}, mined {100 * share(same):.2f} % of {same[:, 1].sum():,}: "
            f"{shift:+.2f} ({shift - spans * error:+.2f} to {shift + spans * error:+.2f})"
        )
    raise SystemExit(bool(moved))


if __name__ == "__main__":
    main()
