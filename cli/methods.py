"""Commands that study methods against the prior: the best of N, tuned models."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument

from ..errors import UsageError
from .console import print_note
from .options import (
    CallOptions,
    Further,
    Input,
    Json,
    MaxUsd,
    Model,
    Output,
    Prices,
    Sampling,
)
from .progress import progress_bar
from .show_methods import print_best_of, print_tuned

if TYPE_CHECKING:
    from ..eval.studies.tuning import TuneSettings


def best_of(
    run: Annotated[Path, Argument(help="Folder of a run with --method best-of:N?by=JUDGE.")],
    calls: CallOptions,
    judge: Annotated[
        list[str] | None, Model("--judge", help="Spec of a judge that did not choose; repeatable.")
    ] = None,
    json: Json = False,
) -> None:
    """Show what the best of N seeds gains, under the judge that chose and under others.

    Example: `counterprior study best-of runs/best --judge openai:MODEL`
    """
    from ..eval.studies.best_of import best_of_curve

    with progress_bar() as progress:
        curve = best_of_curve(run, judge or (), calls.cost(), progress)
    print_best_of(curve, json)
    print_note(f"plot: {run / 'best_of.html'}")


def tune(
    flips: Annotated[Path, Input(help="Flip set, as `counterprior corpus flips` writes it.")],
    out: Annotated[Path, Output(help="Folder of the weights; run again to continue.")],
    model: Annotated[
        str, Model(help="Model to tune: a folder, repository or diffusers:... spec.")
    ] = "",
    judge: Annotated[str, Model(help="Judge of the validation curve: spec.")] = "",
    export: Annotated[
        str, Output(help="`imagefolder`: write the images for other trainers instead.")
    ] = "",
    mirrored: Annotated[bool, Further(help="Train on the mirror images too.")] = True,
    held_out: Annotated[int, Further(min=0, help="Pairs for the validation curve.")] = 50,
    steps: Annotated[int, Sampling(min=1, help="Updates.")] = 10_000,
    rank: Annotated[int, Further(min=1, help="Rank and alpha for linear layers.")] = 32,
    conv_rank: Annotated[int, Further(min=1, help="Rank and alpha for convolutions.")] = 16,
    learning_rate: Annotated[float, Further(help="Learning rate.")] = 1e-4,
    optimizer: Annotated[str, Further(help="adamw8bit (bitsandbytes) or adamw.")] = "adamw8bit",
    size: Annotated[
        int, Further(min=32, help="Side of a square with the images' area, pixels.")
    ] = 512,
    seed: Annotated[int, Sampling(min=0, help="Seed of weights, order, times and noise.")] = 0,
    validate_every: Annotated[int, Further(min=1, help="Steps between validations.")] = 1000,
    checkpoint_every: Annotated[int, Further(min=1, help="Steps between checkpoints.")] = 250,
    gradient_checkpointing: Annotated[
        bool, Further("--gradient-checkpointing", help="Slower, but needs less memory.")
    ] = False,
    max_usd: MaxUsd = None,
    prices: Prices = None,
    json: Json = False,
) -> None:
    """Train a LoRA on mirrored pairs, so that mention order carries no layout.

    Example: `counterprior tune --flips data/flips --model black-forest-labs/FLUX.1-dev --out lora`
    """
    from ..eval.engine.costs import Cost as Paid
    from ..eval.methods.tuning.recipe import LoraRecipe
    from ..eval.studies.tuning import TuneSettings

    settings = TuneSettings(
        flips=flips,
        model=model,
        out=out,
        recipe=LoraRecipe(
            rank=rank,
            alpha=rank,
            conv_rank=conv_rank,
            conv_alpha=conv_rank,
            steps=steps,
            learning_rate=learning_rate,
            optimizer=optimizer,
            size=size,
            mirrored=mirrored,
            held_out=held_out,
            seed=seed,
        ),
        judge=judge,
        validate_every=validate_every,
        checkpoint_every=checkpoint_every,
        gradient_checkpointing=gradient_checkpointing,
        cost=Paid(max_usd=max_usd, prices=prices),
    )
    _tune(settings, export, json)


def _tune(settings: TuneSettings, export: str, json: bool) -> None:
    """Trains, or writes the images for other trainers."""
    from ..eval.studies.tuning import export as export_images
    from ..eval.studies.tuning import tune as train

    if export not in ("", "imagefolder"):
        raise UsageError(f"--export {export!r}: write imagefolder", code="unknown-name")
    if export:
        print_note(f"{export_images(settings):,} captioned images in {settings.out / 'train'}")
        return
    if not settings.model:
        raise UsageError("which model? give --model", code="missing-option")
    with progress_bar() as progress:
        result = train(settings, progress)
    print_tuned(result, json)
    weights, plots = settings.out, settings.out / "tuning.html"
    print_note(f"weights: {weights}, for --method lora:{weights}; plots: {plots}")
