"""Does a prior grow or fade when a model is retrained on its own images?

    python benchmarks/recaptioning.py ORGANISM --out DIR [--guidance 2] [--gain 1.4]
        [--kept 0.5 --captioner 0.5]

ORGANISM is a folder of `counterprior organism train`: generation 0. Each generation draws the
neutral prompts of `trained.jsonl`, two orders of mention with two seeds each, and the next one
begins as it and is trained on these images alone. A caption is the image's prompt in the share
`--kept`. The others are written afresh by a captioner that sees who stands where (the judge
`pixels`) and names the left one first in the share `--captioner`; it leaves out images in which it
does not see both. One line a generation: the order effect of its images, and what is expected.
Seeded; killed, it goes on with the same command. The recipe `organism-loop` reads three chains:

    python benchmarks/recaptioning.py organisms/75-1 --guidance 1 --out loops/kept-g1
    python benchmarks/recaptioning.py organisms/75-1 --guidance 2 --out loops/kept-g2
    python benchmarks/recaptioning.py organisms/75-1 --kept 0.5 --captioner 0.5 --out loops/half-g1

Expected: with s the share of images with the first-mentioned on the left, m the share of prompts
that are kept and q the captioner's, captions name the left one first in the share m s + (1 - m) q,
and images follow with the gain `--gain` on the log odds of it (`eval/stats/gain.py`). Left out, it
is the guidance: guidance w draws from p(x|c)^w p(x)^(1 - w) up to a factor (Ho and Salimans 2022),
which multiplies the log odds by w if p(x) has no side. The order effect is 100 (2 s - 1).
"""

from __future__ import annotations

import argparse
import math
import random
from pathlib import Path

from counterprior import evaluate
from counterprior.eval.api import Evaluated
from counterprior.eval.checkpoints.shipped import ABOUT, MODEL
from counterprior.eval.organisms.corpus import Corpus
from counterprior.eval.organisms.data import CaptionShares
from counterprior.eval.organisms.organism import Organism, OrganismPlan
from counterprior.eval.stats.gain import with_gain
from counterprior.parsing import read_json, write_rows

SEEDS = 2
"""Images of each prompt."""


def expected(share: float, kept: float, captioner: float, gain: float) -> float:
    """Share of the next generation's images with the first-mentioned on the left.

    >>> [round(expected(*s), 3) for s in ((0.75, 1, 0.5, 1), (0.75, 1, 0.5, 2), (0.9, 0.5, 0.5, 1))]
    [0.75, 0.9, 0.7]
    """
    return float(with_gain(gain, kept * share + (1 - kept) * captioner))


def drawn(organism: Path, out: Path, guidance: float) -> Evaluated:
    """Images of the prompts of trained pairs, judged by their pixels."""
    return evaluate(
        "t2i_homogenization",
        f"diffusers:{organism / MODEL}?steps=12&guidance={guidance:g}",
        "pixels",
        data=str(organism / "trained.jsonl"),
        seeds=SEEDS,
        out=out,
        unchecked=True,
    )


def write_corpus(
    images: Evaluated, run: Path, out: Path, kept: float, captioner: float
) -> dict[str, int]:
    """Writes `captions.jsonl`; returns how many images it has, and how many are left out."""
    rows, unseen = [], 0
    for outcome in images.outcomes:
        case, label = outcome.case, outcome.label("order")
        rng = random.Random(f"{out.name}/{case.id}")
        caption = case.prompt
        if rng.random() >= kept:
            if label not in ("first_left", "first_right"):
                unseen += 1
                continue
            left_first = rng.random() < captioner
            if left_first != (label == "first_left"):
                caption = swapped(case.prompt)
        rows.append({"image": str((run / "images" / case.file).resolve()), "caption": caption})
    out.mkdir(parents=True, exist_ok=True)
    write_rows(out / "captions.jsonl", rows)
    return {"images": len(rows), "excluded": unseen}


def swapped(prompt: str) -> str:
    """The prompt with its two animals in the other order.

    >>> swapped("One cow and one guinea pig.")
    'One guinea pig and one cow.'
    """
    first, second = prompt[:-1].lower().split(" and ")
    return f"{second.capitalize()} and {first}."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("organism", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--guidance", type=float, default=1)
    parser.add_argument("--gain", type=float)
    parser.add_argument("--kept", type=float, default=1)
    parser.add_argument("--captioner", type=float, default=0.5)
    parser.add_argument("--generations", type=int, default=3)
    parser.add_argument("--steps", type=int, default=300)
    options = parser.parse_args()
    organism, share = options.organism, math.nan
    size = read_json(organism / ABOUT)["size"]
    for generation in range(options.generations + 1):
        run = options.out / f"run-{generation}"
        images = drawn(organism, run, options.guidance)
        effect, valid = images.scores["order_effect"], images.scores["valid"]
        low, high = effect.interval
        print(
            f"{generation} expected {100 * (2 * share - 1):.1f} order effect {effect.value:.1f} "
            f"[{low:.1f}, {high:.1f}] n {effect.n} valid {valid.value:.1f}",
            flush=True,
        )
        if math.isnan(share):
            share = (1 + effect.value / 100) / 2
        gain = options.guidance if options.gain is None else options.gain
        share = expected(share, options.kept, options.captioner, gain)
        if generation == options.generations:
            break
        child = options.out / f"generation-{generation + 1}"
        counts = write_corpus(
            images, run, options.out / f"corpus-{generation + 1}", options.kept, options.captioner
        )
        print(f"  corpus: {counts}", flush=True)
        corpus = Corpus.read(options.out / f"corpus-{generation + 1}" / "captions.jsonl")
        plan = OrganismPlan.of(
            CaptionShares(), size, generation + 1, options.steps, organism, corpus=corpus
        )
        Organism(plan, child, organism, corpus).train(every=50)
        organism = child


if __name__ == "__main__":
    main()
