"""The command that scores image quality and shows it beside bias."""

from __future__ import annotations

from .options import (
    CallOptions,
    Features,
    Frames,
    Json,
    Margins,
    RunsToScore,
    ScoreOptions,
    Scorers,
)
from .progress import progress_bar
from .show_quality import print_quality, print_scoring


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
