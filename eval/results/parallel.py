"""The scores of several runs, on all cores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from ...cpus import available_cpus
from ...errors import CounterpriorError, RunFailed
from ...progress import Progress, silent
from ..workers.farm import Numbered, Scale, farm
from .scoring import Result, ScoreSettings, check_comparable, score_run

_LARGE = 4_000_000
"""Bytes of a run's verdicts from which scoring takes longer than starting a worker."""


def score_results(
    roots: Sequence[Path], settings: ScoreSettings, progress: Progress = silent
) -> list[Result]:
    """What `score_runs` finds of several runs, without the outcomes behind it.

    Large runs are scored at the same time, which changes nothing. Raises what `score_runs` raises.
    """
    score = ScoreOneRun(settings, several=len(roots) > 1)
    large = [root for root in roots if _is_large(root)]
    workers = min(available_cpus(), len(large))
    ahead = _in_workers(score, large, workers, progress) if workers > 1 else {}
    found = [result for root in roots for result in ahead.get(root) or score(root)]
    if not settings.across_judges:
        check_comparable(found)
    return found


def _in_workers(
    score: ScoreOneRun, roots: Sequence[Path], workers: int, progress: Progress
) -> Mapping[Path, list[Result] | None]:
    found = {}
    with suppress(RunFailed), closing(farm(score, roots, Scale(workers))) as scored:
        for number, (root, results) in enumerate(scored, 1):
            found[root] = results
            progress("score", number, len(roots))
    return found


@dataclass(frozen=True)
class ScoreOneRun:
    """The task of workers that score runs, and what each does; None where a run can't be scored,
    so that the first of them is tried again by the process that can say why."""

    settings: ScoreSettings
    several: bool
    """Whether the labels are of several runs."""
    bundle: int = 1

    def __call__(self, root: Path) -> list[Result]:
        return [judged.result for judged in score_run(root, self.settings, self.several)]

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
        """Workers died of it, e.g. for want of memory: this process may have enough."""


def _is_large(root: Path) -> bool:
    logs = root.glob("verdicts/*/verdicts*.jsonl")
    return sum(path.stat().st_size for path in logs) > _LARGE
