"""`doctor --selftest`: images whose truth is known, through the whole scoring chain, offline.

The renderer draws with a set bias, a judge of pixels looks, faulty judges look with set faults, and
the scores corrected by known labels must hold the truth. Every suite that names trials is run.
"""

from __future__ import annotations

import math
import random
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from ...parsing import write_rows
from ...progress import Progress, silent
from ...scenes.drawing import draw_scene
from ...scenes.scene import Scene
from ...storage import write_whole
from ..clips.frames import FrameChoice
from ..clips.together import majority
from ..core import Case, Generator, Judge, Question, Score, Verdict
from ..engine.costs import Cost
from ..engine.data import Rows
from ..engine.evaluation import Evaluation, RunSettings
from ..generators import open_generator
from ..judges import open_judge
from ..judges.faulty import Faults, FaultyJudge
from ..methods import Method, apply_methods
from ..results.scoring import ScoreSettings, score_run
from ..stats.clusters import cluster_interval
from ..suites import SUITES
from .trials import Trial, clip_scenes, trials_of

GRAIN_ROOM = 12.0
"""Levels of 255 that noise moves a pixel by, at most five times: the renderer's full grain."""
LABELED = 0.5
"""Share of the cases whose truth corrects the rest."""
FAULTY = {
    "pixels": Faults(),
    "names the first": Faults(name=0.2),
    "sees the prior": Faults(side=0.3),
    "swaps, mumbles": Faults(swap=0.1, unparsed=0.1, refuse=0.05),
}
"""Judges of every trial."""


@dataclass(frozen=True)
class Check:
    """One line of the table."""

    trial: str
    """Suite and generator."""
    judge: str
    """Key of `FAULTY`."""
    score: str
    truth: float
    """True value by the generator's settings, in the score's unit."""
    raw: Score
    corrected: Score
    """Corrected by labels of some cases; the same as `raw` if labels can't correct the score."""

    @property
    def holds(self) -> bool:
        """Whether the corrected interval contains the truth."""
        low, high = self.corrected.interval
        return low - 1e-9 <= self.truth <= high + 1e-9


def selftest(progress: Progress = silent, suites: Iterable[str] = tuple(SUITES)) -> list[Check]:
    """Runs all checks of some suites; a check that fails means that the chain is broken."""
    checks: list[Check] = []
    trials = [(suite, trial) for suite in suites for trial in trials_of(suite)]
    for number, (suite, trial) in enumerate(trials):
        progress("trials", number, len(trials))
        with tempfile.TemporaryDirectory(prefix="counterprior-selftest-") as folder:
            checks += _run(suite, trial, Path(folder) / "run")
    progress("trials", len(trials), len(trials))
    return checks


class _Remembering:
    """A judge that looks at every image once, however many faulty judges stand on it."""

    def __init__(self, inner: Judge) -> None:
        self.inner = inner
        self.seen: dict[str, Verdict] = {}

    def identity(self) -> dict[str, str]:
        return self.inner.identity()

    def judge(self, questions: Iterable[Question]) -> Iterator[tuple[Question, Verdict]]:
        for question in questions:
            if question.id not in self.seen:
                ((_, self.seen[question.id]),) = self.inner.judge([question])
            yield question, self.seen[question.id]


def _run(suite: str, trial: Trial, out: Path) -> Iterator[Check]:
    weights = out.with_name("weights")
    if trial.weights:
        write_whole(weights / "render.json", trial.weights)
    methods = [method.format(weights=weights) for method in trial.methods]
    generator = apply_methods(open_generator(trial.generator), methods)
    settings = RunSettings(suite, "selftest", out)
    seeing = _Remembering(open_judge(trial.judge))
    folders = {}
    with Evaluation.start(settings, generator.identity(), Rows.of(trial.rows)) as evaluation:
        if isinstance(generator, Method):
            generator.prepare(out, Cost().plan(out))
        evaluation.make(generator)
        # What judges do is shown by the others: of a method, that its truth is found.
        judges = {"pixels": Faults()} if methods else FAULTY
        for name, faults in judges.items():
            judge = FaultyJudge(seeing, faults) if faults != Faults() else seeing
            folders[evaluation.ask(judge)[0].root] = name
        write_truth(evaluation, generator, out / "truth.jsonl")
        truths = trial.truths(evaluation.cases)
        if trial.grain is not None:
            yield _grain_check(trial.name, trial.grain, evaluation)
    for judged in score_run(out, ScoreSettings(labels=out / "truth.jsonl")):
        who = folders[judged.log.root]
        for name, truth in truths.items():
            uncorrected = name in trial.uncorrected
            if uncorrected and FAULTY[who] != Faults():
                continue
            yield Check(
                trial.name,
                who,
                score=name,
                truth=truth,
                raw=judged.whole[name],
                corrected=judged.whole[name if uncorrected else f"{name}_corrected"],
            )


def _grain_check(name: str, truth: float, evaluation: Evaluation) -> Check:
    """Checks the noise of every image by its difference from the same scene without noise."""
    values = []
    for result in evaluation.run.images().values():
        with Image.open(evaluation.run.image_path(result)) as image:
            clean = np.asarray(draw_scene(Scene.of(image)), float)
            noise = np.asarray(image.convert("RGB"), float) - clean
        # Only pixels far from black and white are not clipped; rounding adds 1/12 level squared.
        noise = noise[(clean > 5 * GRAIN_ROOM) & (clean < 255 - 5 * GRAIN_ROOM)]
        values.append(math.sqrt(max(0.0, float((noise**2).mean()) - (1 / 12 if truth else 0))))
    clusters = [case.clusters[0] for case in evaluation.cases]
    (estimate,) = cluster_interval(values, clusters, (0.0, 255.0))
    score = Score(estimate.value, estimate.interval, n=len(values), name="grain", unit="1")
    return Check(name, "pixels", "grain", truth=truth, raw=score, corrected=score)


def write_truth(evaluation: Evaluation, generator: Generator, path: Path) -> None:
    """Writes labels of some random cases by the renderer's scenes; for a clip, the majority over
    its judged frames."""
    rng = random.Random(0)
    labels = []
    for case in evaluation.cases:
        if rng.random() >= LABELED:
            continue
        scenes = _scenes(evaluation, generator, case)
        row = evaluation.rows[case.row]
        truths = [evaluation.suite.truth(row, case, scene) for scene in scenes]
        for question in truths[0]:
            label = majority([Verdict(truth[question]) for truth in truths]).label
            labels.append({"case": case.id, "question": question, "label": label})
    write_rows(path, labels)


def _scenes(evaluation: Evaluation, generator: Generator, case: Case) -> list[Scene]:
    """Returns the scene of an image, or of each judged frame of a clip."""
    result = evaluation.run.images()[case.id]
    if result.frames:
        return clip_scenes(generator, case, FrameChoice().of(result.frames, result.fps))
    with Image.open(evaluation.run.image_path(result)) as image:
        return [Scene.of(image)]
