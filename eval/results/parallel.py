"""The scores of several runs, on all cores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from ...cpus import available_cpus
from ...errors import CounterpriorError, RunFailed
from ...progress import Progress, silent
from ..engine.run import Run
from ..workers.farm import Scale, farm
from ..workers.tasks import Numbered
from .kept_scores import ScoresOfRun
from .scoring import Result, ScoreSettings, check_comparable, score_run

_LARGE = 4_000_000
"""Bytes of a run's verdicts from which scoring takes longer than starting a worker."""


def score_results(
    roots: Sequence[Path], settings: ScoreSettings, progress: Progress = silent
) -> list[Result]:
    """Returns the results of `score_runs` without the outcomes behind them.

    Large runs are scored at the same time, which changes nothing. Raises what `score_runs` raises.
    """
    score = ScoreOneRun(settings, several=len(roots) > 1)
    large = [root for root in roots if _is_large(root)]
    workers = min(available_cpus(), len(large))
    ahead = _in_workers(score, large, workers, progress) if workers > 1 else {}
    results = [result for root in roots for result in ahead.get(root) or score(root)]
    check_comparable(results, settings.across_judges)
    return results


def _in_workers(
    score: ScoreOneRun, roots: Sequence[Path], workers: int, progress: Progress
) -> Mapping[Path, list[Result] | None]:
    results_by_root = {}
    with suppress(RunFailed), closing(farm(score, roots, Scale(workers))) as scored:
        for number, (root, results) in enumerate(scored, 1):
            results_by_root[root] = results
            progress("score", number, len(roots))
    return results_by_root


@dataclass(frozen=True)
class ScoreOneRun:
    """The task of workers that score runs; a worker yields None for a run that can't be scored,
    and this process tries it again to raise its error."""

    settings: ScoreSettings
    several: bool
    """Whether the labels are of several runs."""
    bundle: int = 1

    def __call__(self, root: Path) -> list[Result]:
        scores = ScoresOfRun(Run.open(root))

        def score() -> list[Result]:
            judged = score_run(root, self.settings, self.several, scores.run)
            return [judged_run.result for judged_run in judged]

        return scores.results(self.settings, self.several, score)

    def open(self) -> ScoreOneRun:
        return self

    def do(self, work: Sequence[Numbered[Path]]) -> Iterator[Numbered[list[Result] | None]]:
        for number, root in work:
            try:
                yield number, self(root)
            except CounterpriorError:
                yield number, None

    def finish(self) -> Iterator[Numbered[list[Result] | None]]:
        yield from ()

    def lost(self, root: Path, deaths: int) -> None:
        """Does nothing: workers died, e.g. out of memory, and this process tries the run itself."""


def _is_large(root: Path) -> bool:
    logs = root.glob("verdicts/*/verdicts*.jsonl")
    return sum(path.stat().st_size for path in logs) > _LARGE
