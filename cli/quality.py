"""Commands that compare runs: image quality beside bias, and whether two builds draw alike."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .options import (
    CallOptions,
    EqualityMargin,
    Features,
    Frames,
    Json,
    Margins,
    RunsToScore,
    ScoreOptions,
    Scorers,
)
from .progress import progress_bar
from .show_quality import print_gate, print_quality, print_scoring


def quality(
    runs: RunsToScore,
    judges: ScoreOptions,
    calls: CallOptions,
    scorer: Scorers = None,
    features: Features = None,
    frames: Frames = "first,middle,last",
    margin: Margins = None,
    json: Json = False,
) -> None:
    """Score the images of runs, and show quality beside bias; the first run is the base.

    Example: `counterprior quality runs/plain runs/lora --scorer image-reward: --scorer pickscore:`
    """
    from ..eval.engine.image_scores import score_images
    from ..eval.results.changes import parse_margins, quality_report
    from ..eval.results.distances import set_distances

    margins, cost = parse_margins(margin or ()), calls.cost()
    with progress_bar() as progress:
        for run in runs if scorer else ():
            print_scoring(run, score_images(run, scorer or (), cost, progress, frames=frames))
        distances = set_distances(runs, features, progress) if features else []
    print_quality(quality_report(runs, judges.settings(), margins), distances, json)


def gate(
    base: Annotated[Path, typer.Argument(help="Folder of the judged run of the trusted build.")],
    run: Annotated[Path, typer.Argument(help="Folder of the judged run of the build to let pass.")],
    judges: ScoreOptions,
    margin: EqualityMargin,
    json: Json = False,
) -> None:
    """Decide whether two builds of a generator draw alike: same prompts and seeds, within a margin.

    Exits with 0 if they are equivalent, 1 if they differ by more than the margin, and 3 if the
    rows are too few to say.

    Example: `counterprior gate runs/bf16 runs/fp8 --margin 3`
    """
    from ..eval.results.gate import gate as decide

    with progress_bar() as progress:
        decided = decide((base, run), margin, judges.settings(), progress)
    print_gate(decided, json)
