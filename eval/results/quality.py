"""Image quality of a run, by its scorers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..checkpoints.registry import PYTHON, spec_identity
from ..core import Score
from ..engine.image_scores import ScoredPair, ScoreLog, scorers_of
from ..engine.run import Run
from ..methods.candidates import choosers
from ..stats.means import cluster_deviation, cluster_mean
from .marks import SCORER_CHOSE

NOT_SCORED = "not_scored"
"""Reason for images that the scorer has not seen yet."""


@dataclass(frozen=True)
class ImageQuality:
    """Image quality of one run by one scorer."""

    scorer: str
    """Short name of the scorer, for clips with its choice of frames; unique in the run."""
    identity: Mapping[str, str]
    """Identity of the scorer; two runs are compared only where it is the same."""
    score: Score
    """The mean over images, with the images without a score by reason."""
    deviation: Score
    """Standard deviation of the same scores."""
    values: Mapping[str, float]
    """Case -> score."""
    clusters: Mapping[str, str]
    """Case -> its narrowest cluster."""
    frames: str = ""
    """Frames whose mean is a clip's score, as text of a `FrameChoice`; empty without clips."""


def read_quality(run: Run) -> list[ImageQuality]:
    """Image quality of a run by each of its scorers; empty without scorers."""
    logs, cases = scorers_of(run), run.cases()
    images = run.images()
    clips = any(image.frames for image in images.values())
    name_by_folder = _unique(logs, clips)
    qualities = []
    for log in logs:
        scored = log.of_cases(run, cases)
        values = {
            case: image_score.value for case, image_score in scored.items() if not image_score.error
        }
        excluded = Counter(
            _reason(scored.get(case.id), images[case.id].status if case.id in images else "missing")
            for case in cases
            if case.id not in values
        )
        clusters = {case.id: case.clusters[0] for case in cases}
        groups = [clusters[case] for case in values]
        mean, spread = (f([*values.values()], groups) for f in (cluster_mean, cluster_deviation))
        score = Score.of(
            mean,
            name=name_by_folder[log.root],
            unit="1",
            marks=(SCORER_CHOSE,) if _chose(run, log) else (),
            n=len(values),
            excluded=dict(sorted(excluded.items())),
        )
        qualities.append(
            ImageQuality(
                score.name,
                log.identity,
                score,
                deviation=replace(
                    score,
                    value=spread.value,
                    interval=spread.interval,
                    warning=spread.warning,
                ),
                values=values,
                clusters=clusters,
                frames=log.choice.text if clips else "",
            )
        )
    return qualities


def _chose(run: Run, log: ScoreLog) -> bool:
    """Whether a scorer chose the images of a run among candidates."""
    return any(
        spec.kind == log.identity["kind"]
        and (spec.kind != PYTHON or spec_identity(spec)["name"] == log.identity.get("name"))
        for spec in choosers(run.header.generator)
    )


def _reason(scored: ScoredPair | None, status: str) -> str:
    """Reason why a case has no score."""
    if status != "made":
        return status
    return NOT_SCORED if scored is None else "error"


def _unique(logs: Sequence[ScoreLog], clips: bool) -> dict[Path, str]:
    """Folder -> name; with the folder's own where two scorers are described alike.

    clips: whether the run has any; a clip's score is the mean of its frames, which the name says.
    """
    descriptions = {
        log.root: f"{log.name} (mean of {log.choice.text})" if clips else log.name for log in logs
    }
    counts = Counter(descriptions.values())
    return {
        root: name if counts[name] == 1 else f"{name} ({root.name})"
        for root, name in descriptions.items()
    }
