"""Contents of a report: runs with their names, results and outcomes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ...progress import Progress, silent
from ..engine.run import Run, RunError
from ..suites import open_suite
from ..suites.base import Suite
from .judge_card import Labels
from .names import short_names, slugify
from .parallel import score_results
from .quality import ImageQuality, read_quality
from .scoring import JudgedRun, ScoreSettings, run_labels, with_outcomes


@dataclass(frozen=True)
class RunContents:
    """One run with all of its judges."""

    name: str
    """Unique in the report: the folder's name, longer where two are alike."""
    slug: str
    run: Run
    suite: Suite[Any]
    judged: Sequence[JudgedRun]
    """One for each judge, by the judge's name."""
    labels: Labels
    """(case, question) -> label by human annotators."""
    quality: Sequence[ImageQuality] = ()
    """One for each scorer, by the scorer's name."""
    base: str = ""
    """Name of the run that its quality is compared with; of the suite's first if empty."""
    margins: Mapping[str, float] = field(default_factory=dict)
    """Largest losses that don't matter, see `with_claims`."""

    @property
    def present(self) -> dict[str, str]:
        """Case -> SHA-256 of its present image."""
        return self.run.present()


def read_contents(
    roots: Sequence[Path],
    settings: ScoreSettings,
    bases: Mapping[Path, Path] | None = None,
    margins: Mapping[str, float] | None = None,
    progress: Progress = silent,
) -> list[RunContents]:
    """Scores the runs, or takes their kept scores, and gathers what a report shows of them; writes
    nothing into them.

    bases: run -> the run that its quality is compared with, itself for a base; margins: of changes
    in quality and bias. Raises RunError where a run is listed twice, nobody has judged it, or the
    runs of a suite were not judged alike, unless `across_judges`.
    """
    resolved = [root.resolve() for root in roots]
    twice = [str(root) for root, count in Counter(resolved).items() if count > 1]
    if twice:
        raise RunError(f"{', '.join(twice)}: listed twice", code="duplicate-id")
    results = score_results(roots, settings, progress)
    contents = []
    name_by_root = dict(zip(roots, short_names(resolved), strict=True))
    for root, name in name_by_root.items():
        run, slug = Run.open(root).held(), slugify(name)
        of_run = [result for result in results if result.folder == str(root)]
        judged = [
            replace(judged_run, name=name, slug=slug)
            for judged_run in with_outcomes(run, of_run, settings)
        ]
        labels = run_labels(run, settings.labels, len(roots) > 1)
        suite = open_suite(run.header.suite)
        contents.append(
            RunContents(
                name,
                slug,
                run=run,
                suite=suite,
                judged=judged,
                labels=labels,
                quality=read_quality(run),
                base=name_by_root.get(bases[root], "-") if bases else "",
                margins=margins or {},
            )
        )
    return contents
