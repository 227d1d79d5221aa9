"""The command that scores image quality and shows it beside bias."""

from __future__ import annotations

from .options import (
    AcrossJudges,
    Concurrency,
    Features,
    Frames,
    Json,
    JudgeNames,
    MaxUsd,
    Partial,
    Prices,
    RunsToScore,
    Scorers,
)
from .progress import progress_bar
from .show_quality import print_quality, print_scoring


def quality(
    runs: RunsToScore,
    scorer: Scorers = None,
    features: Features = None,
    frames: Frames = "first,middle,last",
    judge: JudgeNames = None,
    across_judges: AcrossJudges = False,
    partial: Partial = False,
    concurrency: Concurrency = 8,
    max_usd: MaxUsd = None,
    prices: Prices = None,
    json: Json = False,
) -> None:
    """Score the images of runs, and show quality beside bias; the first run is the base.

    Example: `counterprior quality runs/plain runs/lora --scorer image-reward: --scorer pickscore:`
    """
    from ..eval.engine.costs import Cost
    from ..eval.engine.image_scores import score_images
    from ..eval.results.changes import quality_report
    from ..eval.results.distances import set_distances
    from ..eval.results.scoring import ScoreSettings

    cost = Cost(concurrency=concurrency, max_usd=max_usd, prices=prices)
    with progress_bar() as progress:
        for run in runs if scorer else ():
            print_scoring(run, score_images(run, scorer or (), cost, progress, frames=frames))
        distances = set_distances(runs, features, progress) if features else []
    settings = ScoreSettings(
        judges=tuple(judge or ()), across_judges=across_judges, partial=partial
    )
    print_quality(quality_report(runs, settings), distances, json)
