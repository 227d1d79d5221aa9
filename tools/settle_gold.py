"""Turns two readings of a draw into rows of `corpus_analysis/gold/captions.jsonl`.

    python tools/settle_gold.py differences DRAWN A B > differences.txt
    python tools/settle_gold.py rows DRAWN A B --settled settled.json > rows.jsonl

DRAWN is `drawn.jsonl` of `draw_gold.py`; A and B hold one line per caption, by its number there:

    20: cat [on] desk; desk [next to] chair ?? cat [near] chair

The pairs that it states, then, after "??", those that are open. A pair that both state is stated.
One that only one states is a difference: a third reader sees all of them, without who said what,
and says of each "stated", "open" or "none", in JSON by the caption's number:

    {"20": {"pair": ["cat", "on", "desk"], "settled": "stated"}}

or a list of such objects. All other pairs that either wrote are open. Two of one kind ("a truck
next to other trucks") are no pair: an image does not tell which is which.

Readers write names with their compounds. The row keeps the shortest that says what it is: the
longest end of it that the ontology knows as a name, or that is said to be no real one ("toy dog"),
else the last word, which then is enough for the miner. So a compound that the ontology doesn't know
counts as right if the miner finds its head. Where it stands is the place with the linking words
between the two names and the fewest other characters.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple


class Pair(NamedTuple):
    """Two names as a reader wrote them, with what links them; lower case."""

    first: str
    relation: str
    second: str

    def same(self, other: Pair) -> bool:
        """Whether both end in the same words; compounds, links and order may differ."""
        return self.ends() == other.ends()

    def ends(self) -> tuple[str, str]:
        first, second = sorted(name.split()[-1] for name in (self.first, self.second))
        return first, second


class Reading(NamedTuple):
    """What one reader made of one caption."""

    stated: list[Pair]
    open: list[Pair]

    def says(self, pair: Pair) -> str:
        """ "stated", "open" or "none"."""
        if any(pair.same(one) for one in self.stated):
            return "stated"
        return "open" if any(pair.same(one) for one in self.open) else "none"


def parse(line: str) -> tuple[int, Reading]:
    number, _, rest = line.rstrip("\n").partition(":")
    stated, _, undecided = rest.partition("??")
    return int(number), Reading(list(_pairs(stated, line)), list(_pairs(undecided, line)))


def _pairs(text: str, line: str) -> Iterator[Pair]:
    for part in filter(str.strip, text.split(";")):
        found = re.fullmatch(r"\s*(.+?)\s*\[(.*?)\]\s*(.+?)\s*", part)
        if found is None:
            raise SystemExit(f"not a pair: {part.strip()!r} in {line.strip()!r}")
        pair = Pair(*(group.lower() for group in found.groups()))
        if not one_kind(pair):
            yield pair


def one_kind(pair: Pair) -> bool:
    """Whether it names one kind of thing twice, as "a truck next to other trucks"."""
    from counterprior.corpus_analysis.captions.ontology import Ontology

    surface = Ontology.read().surface
    first, second = (surface.get(short(name), name) for name in (pair.first, pair.second))
    return first == second


def read(path: Path) -> dict[int, Reading]:
    return dict(parse(line) for line in path.read_text().splitlines() if line.strip())


def every(readings: Iterable[Reading]) -> list[Pair]:
    """All pairs of a caption, each once, with the shorter name where readers differ."""
    found: list[Pair] = []
    for pair in (p for reading in readings for p in (*reading.stated, *reading.open)):
        for at, other in enumerate(found):
            if pair.same(other):
                if pair.first.split()[-1] != other.first.split()[-1]:
                    pair = Pair(pair.second, pair.relation, pair.first)
                first = min(pair.first, other.first, key=len)
                second = min(pair.second, other.second, key=len)
                found[at] = Pair(first, other.relation, second)
                break
        else:
            found.append(pair)
    return found


def differs(pair: Pair, a: Reading, b: Reading) -> bool:
    """Whether exactly one reader states a pair."""
    return (a.says(pair) == "stated") != (b.says(pair) == "stated")


def short(name: str) -> str:
    """The shortest end of a name that says what it is."""
    from counterprior.corpus_analysis.captions.ontology import Ontology
    from counterprior.corpus_analysis.captions.words import FAKE, STUFFED, TOYS

    ontology = Ontology.read()
    words = name.split()
    if "of" in words and words[-1] not in ontology.by_last:
        words = words[: words.index("of")]  # "statue of liberty"
    head = ontology.surface.get(words[-1])
    real = head is not None and not (head.animate or head.category == "vehicles")
    for at in range(len(words) - 1):
        rest = " ".join(words[at:])
        unreal = STUFFED | TOYS if real else FAKE | STUFFED | TOYS  # a "cardboard box" is a box
        if rest in ontology.surface or words[at] in unreal:
            return rest
    return words[-1]


def mention(name: str, start: int, text: str) -> dict[str, object]:
    """A name, from where it starts in the text; cut to its shortest end."""
    kept = short(name)
    at = start + name.rindex(kept)
    return {"name": text[at : at + len(kept)].lower(), "start": at}


def place(pair: Pair, text: str) -> tuple[int, int] | None:
    """Where the two names start, the first before the second; None if they don't."""

    def starts(name: str) -> list[int]:
        bounded = rf"(?<![a-z]){re.escape(name)}(?![a-z])"
        return [found.start() for found in re.finditer(bounded, text.lower())]

    found = []
    for first in starts(pair.first):
        end = first + len(pair.first)
        for second in starts(pair.second):
            if second >= end:
                gap = text.lower()[end:second]
                found.append((pair.relation not in gap, len(gap), first, second))
    return min(found)[2:] if found else None


def row_of(pair: Pair, text: str) -> dict[str, object]:
    """A pair with the places of its names, in the order of their mention.

    A reader may turn it around: "meerkats with the sun behind them" has the sun behind meerkats.
    Ends the program if the names are not there.
    """
    at = place(pair, text)
    if at is None:
        pair = Pair(pair.second, pair.relation, pair.first)
        at = place(pair, text)
    if at is None:
        raise SystemExit(f"{pair} is not in {text!r}")
    return {
        "first": mention(pair.first, at[0], text),
        "relation": pair.relation,
        "second": mention(pair.second, at[1], text),
    }


def rows(
    drawn: list[dict[str, object]],
    a: dict[int, Reading],
    b: dict[int, Reading],
    settled: dict[tuple[int, tuple[str, str]], str],
) -> Iterator[dict[str, object]]:
    """Rows of the gold file, in the order of their digests within the draw."""
    from counterprior.corpus_analysis.captions.text import normalize

    for number, one in sorted(enumerate(drawn), key=lambda item: str(item[1]["digest"])):
        text = normalize(str(one["caption"]))
        found: dict[str, list[dict[str, object]]] = {"stated": [], "open": [], "none": []}
        for pair in every((a[number], b[number])):
            word = "stated" if a[number].says(pair) == "stated" else "open"
            if differs(pair, a[number], b[number]):
                if (number, pair.ends()) not in settled:
                    raise SystemExit(f"{number}: {pair} is not settled")
                word = settled[number, pair.ends()]
            found[word].append(row_of(pair, text))
        head = {name: one[name] for name in ("digest", "source", "draw", "stratum")}
        weight = round(float(str(one["weight"])), 4)
        yield head | {"weight": weight, "pairs": found["stated"], "also": found["open"]}


def read_settled(path: Path) -> dict[tuple[int, tuple[str, str]], str]:
    """(number, last words of the two names) -> what the third reader says."""
    found = {}
    for number, said in json.loads(path.read_text()).items():
        for one in said if isinstance(said, list) else [said]:
            pair = Pair(*(part.lower() for part in one["pair"]))
            if one["settled"] not in ("stated", "open", "none"):
                raise SystemExit(f"{path}, {number}: settled is {one['settled']!r}")
            found[int(number), pair.ends()] = one["settled"]
    return found


def agreement(a: dict[int, Reading], b: dict[int, Reading]) -> str:
    """How far two readers agree on what is stated, over all pairs that either wrote."""
    counts = Counter(
        (a[n].says(pair) == "stated", b[n].says(pair) == "stated")
        for n in a
        for pair in every((a[n], b[n]))
    )
    both, first, second = counts[True, True], counts[True, False], counts[False, True]
    total = counts.total()
    chance = (both + first) * (both + second) + (total - both - first) * (total - both - second)
    agreed = (both + counts[False, False]) * total
    # Of pairs that are all stated by both, chance says the same: kappa is not defined.
    kappa = f"{(agreed - chance) / (total**2 - chance):.3f}" if total**2 > chance else "undefined"
    return (
        f"stated by both {both}, by the first only {first}, by the second only {second}, "
        f"by neither {counts[False, False]}; kappa {kappa}; "
        f"F1 {2 * both / (2 * both + first + second):.3f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=("differences", "rows"))
    parser.add_argument("drawn", type=Path)
    parser.add_argument("readings", type=Path, nargs=2)
    parser.add_argument("--settled", type=Path, help="what the third reader says, with `rows`")
    options = parser.parse_args()
    drawn = [json.loads(line) for line in options.drawn.read_text().splitlines()]
    a, b = map(read, options.readings)
    for reading in (a, b):
        if missing := set(range(len(drawn))) ^ set(reading):
            raise SystemExit(f"a reading lacks, or has too many: {sorted(missing)}")
    print(agreement(a, b), file=sys.stderr)
    if options.what == "rows":
        settled = read_settled(options.settled) if options.settled else {}
        for row in rows(drawn, a, b, settled):
            print(json.dumps(row))
        return
    for number, one in enumerate(drawn):
        pairs = [p for p in every((a[number], b[number])) if differs(p, a[number], b[number])]
        if pairs:
            print(f"{number}\t{one['caption']}")
        for pair in pairs:
            print(f"\t{pair.first} [{pair.relation}] {pair.second}")


if __name__ == "__main__":
    main()
