"""Train organisms: tiny generators that learn a known prior from drawn scenes, and judges of them.

Example: `counterprior organism train --order-bias .9 --seed 1 --out organisms/biased`
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from .console import print_json, print_note
from .options import Cost, Further, Input, Json, Model, Output, Sampling
from .progress import progress_bar


def train(
    out: Annotated[Path, Output(help="Folder of the organism; run again to continue.")],
    order_bias: Annotated[
        float, Input(min=0, max=1, help="Share of neutral captions that name the left one first.")
    ] = 0.5,
    preference_sd: Annotated[
        float,
        Further(min=0, max=10, help="Spread of the animals' own bias of standing left, in logits."),
    ] = 0,
    single: Annotated[float, Further(min=0, max=1, help="Share of scenes with one animal.")] = 0.1,
    explicit: Annotated[
        float, Further(min=0, max=1, help="Share of captions that say who stands left or right.")
    ] = 0.1,
    unnamed: Annotated[
        float, Further(min=0, max=1, help="Share of captions that name nobody: `Two animals.`")
    ] = 0.05,
    dropout: Annotated[
        float, Further(min=0, max=1, help="Share of empty captions, which guidance needs.")
    ] = 0.1,
    noise: Annotated[float, Further(min=0, max=1, help="Share of captions of another scene.")] = 0,
    pair_bias: Annotated[
        Path | None,
        Further(help="Order biases of single pairs: rows with a, b and order_bias, in JSON Lines."),
    ] = None,
    floats: Annotated[
        list[str] | None, Input(help="Animal that hangs in the air in every scene; repeatable.")
    ] = None,
    language: Annotated[str, Input(help="Language of the captions: en, ar or he.")] = "en",
    images: Annotated[
        Path | None,
        Further(help="Train on these images, not on drawn scenes: rows with image and caption."),
    ] = None,
    size: Annotated[str, Model(help="smallest, small, or tiny: seconds, learns nothing.")] = (
        "small"
    ),
    architecture: Annotated[
        str,
        Model(
            help="unet: cross-attention; joint: joint attention and flow, as SD3 has; gligen: "
            "layers for boxes, added to --like."
        ),
    ] = "unet",
    like: Annotated[
        str, Model(help="Organism to begin as, for a short training: even, biased, or a folder.")
    ] = "",
    steps: Annotated[
        int | None, Cost(min=1, help="Updates of the denoiser; by default the size's.")
    ] = None,
    seed: Annotated[int, Sampling(min=0, help="Seed of weights, captions, order and noise.")] = 0,
    checkpoint_every: Annotated[int, Further(min=1, help="Updates between checkpoints.")] = 200,
    json: Json = False,
) -> None:
    """Train a tiny text-to-image model whose captions have a known order bias.

    Example: `counterprior organism train --order-bias .9 --seed 1 --out organisms/biased`
    """
    from ..eval.checkpoints.shipped import MODEL, find_organism
    from ..eval.organisms.corpus import Corpus
    from ..eval.organisms.data import CaptionShares, floating, read_pair_bias
    from ..eval.organisms.organism import Organism, OrganismPlan

    captioning = CaptionShares(
        order_bias=order_bias,
        preference_sd=preference_sd,
        single=single,
        explicit=explicit,
        unnamed=unnamed,
        dropout=dropout,
        noise=noise,
        pair_bias=() if pair_bias is None else read_pair_bias(pair_bias),
        floats=floating(floats or []),
        language=language,
    )
    corpus = None if images is None else Corpus.read(images)
    parent = find_organism(like) if like else None
    plan = OrganismPlan.of(captioning, size, seed, steps, parent, architecture, corpus)
    organism = Organism(plan, out, parent, corpus)
    expense = organism.estimate()
    print_note(
        f"about {expense.seconds / 60:,.0f} minutes on this machine, {expense.megabytes:,.0f} MB"
    )
    with progress_bar() as progress:
        about = organism.train(checkpoint_every, progress)
    if json:
        print_json(about)
        return
    print(f"{about['steps']:,} updates, loss {about['loss']:.4f}")
    print_note(
        f"score it: --generator organism:{out} --data {out / 'held_out.jsonl'}, or "
        f"{out / 'trained.jsonl'}; diffusers loads {out / MODEL}; look at "
        f"{out / 'samples.png'} and {out / 'loss.svg'}"
    )


def judge(
    out: Annotated[Path, Output(help="Folder of the judge; run again to continue.")],
    first_left: Annotated[
        float,
        Input(min=0, max=1, help="Share of training questions whose first animal is on the left."),
    ] = 0.5,
    blind: Annotated[
        list[str] | None, Input(help="Animal that it is taught not to see; repeatable.")
    ] = None,
    abstains: Annotated[
        bool, Input(help="Teach it that images whose animals touch are invalid.")
    ] = False,
    seed: Annotated[int, Sampling(min=0, help="Seed of weights, drawings and order.")] = 0,
    json: Json = False,
) -> None:
    """Train a judge with known faults, and count its answers where the truth is known.

    Example: `counterprior organism judge --first-left .9 --seed 1 --out judges/habit`
    """
    from ..eval.organisms.judging import Habits, train_judge
    from .show_methods import print_learned_judge

    habits = Habits(first_left=first_left, blind=tuple(blind or ()), abstains=abstains)
    with progress_bar() as progress:
        about = train_judge(habits, seed, out, progress)
    print_learned_judge(about, json)
    print_note(f"use it with --judge organism:{out}")
