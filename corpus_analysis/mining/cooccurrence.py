"""Counts of captions that name two things, and that link them; no captions are stored.

Captions are read, normalized and parsed as the miner does. Only those with words of both are
parsed. Two words are linked if the parse leads from one to the other in a few steps: "a glass
bridge", "a bridge made of glass", "a cat that chases an octopus".
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from ...progress import Progress, silent
from ..captions.ontology import plural
from ..captions.parser import load_parser
from ..captions.text import normalize, readable
from ..sources.shards import SourceSettings, list_shards, read_shard

STEPS = 3
"""Most arcs of the parse between two linked words: bridge, made, of, glass."""


class SeenTogether(NamedTuple):
    """Numbers of captions in which two things occur."""

    first: int
    """Captions that name the first of the two."""
    together: int
    """Captions that name both, anywhere."""
    linked: int
    """Captions whose parse links both."""


@dataclass(frozen=True)
class CaptionCounts:
    """Counts of pairs, and the captions in which they were counted."""

    captions: dict[str, int]
    """Source -> its distinct captions that no earlier source has."""
    digest: str
    """SHA-256 of the normalized captions, sorted, one a line."""
    model: str
    """Name and version of the parser's model."""
    counts: dict[str, SeenTogether]
    """Name of a pair -> its counts."""


def count_together(
    paths: Iterable[str], sought: Mapping[str, tuple[str, str]], progress: Progress = silent
) -> CaptionCounts:
    """Counts the captions of files or Hub datasets that name two things, by the name of the pair.

    sought: pair -> names of both in the singular, "polar bear" and "green".

    Raises SourceError for unreadable sources, ModelMissing without a parser.
    """
    settings = SourceSettings(paths=tuple(paths))
    shards = list_shards(settings)
    texts: set[str] = {""}
    read: Counter[str] = Counter()
    for number, shard in enumerate(shards, 1):
        before = len(texts)
        column = read_shard(shard, settings).column("caption").to_pylist()
        texts.update(normalize(caption) for caption in column if caption)
        read[shard.source] += len(texts) - before
        progress("sources", number, len(shards))
    ordered = sorted(texts - {""})
    parser = load_parser()
    named: Counter[str] = Counter()
    together: Counter[str] = Counter()
    linked: Counter[str] = Counter()
    forms = {name: (_pattern(pair[0]), _pattern(pair[1])) for name, pair in sought.items()}
    for number, text in enumerate(ordered, 1):
        lower = text.lower()
        doc: Any = None
        for name, (first, second) in forms.items():
            if first.search(lower) is None:
                continue
            named[name] += 1
            if second.search(lower) is None:
                continue
            together[name] += 1
            doc = doc or parser.nlp(readable(text))
            linked[name] += _linked(doc, first, second)
        if number % 1000 == 0 or number == len(ordered):
            progress("captions", number, len(ordered))
    digest = hashlib.sha256("\n".join(ordered).encode()).hexdigest()
    counts = {name: SeenTogether(named[name], together[name], linked[name]) for name in sought}
    return CaptionCounts(dict(read), digest, parser.model, counts)


def _pattern(name: str) -> re.Pattern[str]:
    """Matches a name in lower case, in singular or plural, as whole words."""
    singular = re.escape(name.lower()).replace(r"\ ", r"[ -]").replace(r"\-", r"[ -]?")
    plurals = re.escape(plural(name.lower())).replace(r"\ ", r"[ -]").replace(r"\-", r"[ -]?")
    return re.compile(rf"\b(?:{singular}|{plurals})\b")


def _linked(doc: Any, first: re.Pattern[str], second: re.Pattern[str]) -> bool:
    """Whether the parse leads from a word of one name to one of the other in at most `STEPS`."""
    ends = list(_heads(doc, second))
    return any(_steps(a, b) <= STEPS for a in _heads(doc, first) for b in ends if a.i != b.i)


def _heads(doc: Any, name: re.Pattern[str]) -> Iterator[Any]:
    """The last word of every mention, which stands for it in the parse."""
    for match in name.finditer(doc.text.lower()):
        span = doc.char_span(match.start(), match.end(), alignment_mode="expand")
        if span is not None:
            yield span[-1]


def _steps(first: Any, second: Any) -> int:
    """Arcs of the parse between two words; more than `STEPS` if they are unconnected."""
    up = {token.i: steps for steps, token in enumerate((first, *first.ancestors))}
    for steps, token in enumerate((second, *second.ancestors)):
        if token.i in up:
            return steps + up[token.i]
    return STEPS + 1
