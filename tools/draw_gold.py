"""Draws the captions of `corpus_analysis/gold/captions.jsonl` for a reader, captions only.

    python tools/draw_gold.py COCO=FILE LAION-400M=FILE CC3M=FILE PartiPrompts=FILE \\
        --number 2 --each 110 --out FOLDER

Of each source, 40 % are captions in which the miner finds a pair, 50 % ones in which it finds none
and the tagger two nouns, and 10 % others, in the order of a digest that the draw's number seeds;
captions must pass the quality gate and be in no earlier draw, and with `--half held-out` in the
half of all captions from which no noun of the ontology was taken. What a reader sees is
`FOLDER/tuned.txt` and, when the rules are finished, `FOLDER/held-out.txt`: shuffled, without source
or stratum. `FOLDER/drawn.jsonl` holds both, with the weight of each caption: how many of its source
(or half, or of the corpus that the file is a sample of) in its stratum, read before or not, it
stands for. A draw is made before the rules that it
measures are written; one with them has other strata. From the second draw to the eighth, weights
were of unread captions only, which holds too few pairs when most of these have been read.

How it was read. One reader (a language model) read every caption before it saw what the miner
makes of it, then all of them again in reverse order, and settled the differences in a third look:
the two readings agreed on 263 pairs, one had a pair alone, and 39 pairs were stated to the one and
open to the other. So this is one reader's view, read twice, and not the agreement of several.
The second draw was read once, by the same rules: its tuned half before any rule was changed, its
held-out half when all were finished.
Later draws were read by two models that knew nothing of each other, and settled by
`settle_gold.py`; those since the eleventh had the rules in `reading_captions.md`, the others these:

- A thing is a person, animal, vehicle, piece of furniture, dish, device, garment, belonging, plant
  or building: what has an outline and could stand beside another. Not: rooms, streets, fields,
  walls, water, snow, parts of a body or thing, logos, names of persons.
- A depiction is looked through where the caption describes the image ("a painting of two dogs"),
  and a thing of its own inside it ("a room with a painting of a dog"). A compound means its head
  ("tattoo fish and flowers t-shirt" is a t-shirt). Toys and stuffed animals are not the animal.
- Stated are: neighbors in a coordination ("A, B and C": A and B, B and C), and the subject and
  object of a preposition of place or "with"; the subject of a verb with several subjects is each
  of them. Prepositions of containment and direction (in, at, from, out of) state no pair.
- Open are: what follows but is not said (A and C above), ambiguous attachment, parts ("a castle
  with a tower"), ingredients of one dish, several names of one product, tools ("plays with
  chalk").
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
from collections import defaultdict
from pathlib import Path

SHARES = {"pair": 0.4, "nouns": 0.5, "fewer": 0.1}
"""Of the captions of a source, by stratum."""


def order(number: int, caption: str) -> str:
    return hashlib.sha256(f"counterprior gold {number}\n{caption}".encode()).hexdigest()


def strata(captions: list[str]) -> dict[str, list[str]]:
    """Captions that pass the quality gate, by stratum."""
    import pyarrow as pa

    from counterprior.corpus_analysis.captions.attachment import NOUNS
    from counterprior.corpus_analysis.captions.gate import QualityGate
    from counterprior.corpus_analysis.captions.miner import Miner
    from counterprior.corpus_analysis.captions.text import normalize

    reasons = QualityGate().reasons(pa.array(captions)).to_pylist()
    passed = [c for c, reason in zip(captions, reasons, strict=True) if reason is None]
    miner = Miner()
    docs = miner.parser.nlp.pipe(map(normalize, passed), batch_size=1000)
    found: dict[str, list[str]] = defaultdict(list)
    for caption, mined, doc in zip(passed, miner(pa.array(passed)), docs, strict=True):
        nouns = sum(t.tag_ in NOUNS and t.dep_ != "compound" for t in doc)
        paired = mined is not None and mined.pairs
        found["pair" if paired else "nouns" if nouns > 1 else "fewer"].append(caption)
    return found


def main() -> None:
    from counterprior.corpus_analysis.captions.text import normalize
    from counterprior.corpus_analysis.mining.accuracy import (
        digest_of,
        half_of,
        read_captions,
        read_gold,
    )

    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("sources", nargs="+", help="NAME=FILE")
    parser.add_argument("--number", type=int, required=True, help="of the draw, from 1")
    parser.add_argument("--each", type=int, default=150, help="captions of each source")
    parser.add_argument("--half", choices=("tuned", "held-out"), help="draw from this half only")
    parser.add_argument(
        "--of", type=int, help="captions in the corpus, if the file is a sample of it"
    )
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    if options.of and len(options.sources) > 1:
        parser.error("--of is the size of one corpus: draw from one source at a time")
    earlier = {gold.digest for gold in read_gold() if gold.draw < options.number}
    drawn = []
    for source in options.sources:
        name, _, file = source.partition("=")
        every = dict.fromkeys(read_captions(Path(file)))
        digests = {caption: digest_of(caption) for caption in every}
        if options.half:
            digests = {c: d for c, d in digests.items() if half_of(d) == options.half}
        for stratum, captions in strata(list(digests)).items():
            unread = [c for c in captions if digests[c] not in earlier]
            ordered = sorted(unread, key=lambda caption: order(options.number, caption))
            chosen = ordered[: round(SHARES[stratum] * options.each)]
            if not chosen and stratum == "pair":
                raise SystemExit(f"{name}: all captions with a pair were read; leave it out")
            weight = len(captions) / max(1, len(chosen)) * (options.of or len(every)) / len(every)
            drawn += [
                {"digest": digest_of(c), "source": name, "stratum": stratum, "weight": weight}
                | {"draw": options.number, "caption": c}
                for c in chosen
            ]
    random.Random(1).shuffle(drawn)
    options.out.mkdir(parents=True, exist_ok=True)
    with (options.out / "drawn.jsonl").open("w") as rows:
        rows.writelines(json.dumps(row) + "\n" for row in drawn)
    for half in ("tuned", "held-out"):
        with (options.out / f"{half}.txt").open("w") as blind:
            for number, row in enumerate(drawn):
                if half_of(row["digest"]) == half:
                    blind.write(f"{number}\t{normalize(row['caption'])}\n")


if __name__ == "__main__":
    main()
