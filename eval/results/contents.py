"""What a report is made of: runs with their names, results and outcomes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..engine.run import Run, RunError
from ..suites import open_suite
from ..suites.base import Suite
from .judge_card import Labels
from .names import short_names, slugify
from .quality import ImageQuality, read_quality
from .scoring import JudgedRun, ScoreSettings, run_labels, score_runs


@dataclass(frozen=True)
class RunContents:
    """One run with all of its judges."""

    name: str
    """Unique in the report: the folder's name, longer where two are alike."""
    slug: str
    run: Run
    suite: Suite[Any]
    judged: Sequence[JudgedRun]
    """One a judge, by the judge's name."""
    told: Labels
    """(case, question) -> what people said."""
    quality: Sequence[ImageQuality] = ()
    """One a scorer, by the scorer's name."""
    base: str = ""
    """Name of the run that its quality is compared with; of the suite's first where empty."""

    @property
    def present(self) -> dict[str, str]:
        """Case -> SHA-256 of its present image."""
        return self.run.present()


def read_contents(
    roots: Sequence[Path], settings: ScoreSettings, bases: Mapping[Path, Path] | None = None
) -> list[RunContents]:
    """Scores the runs and gathers what a report shows of them; writes nothing.

    bases: run -> the one that its quality is compared with, itself where it is one. Raises RunError
    where a run is given twice, nobody has judged it, or the runs of a suite were not judged alike,
    unless `across_judges`.
    """
    resolved = [root.resolve() for root in roots]
    twice = [str(root) for root, count in Counter(resolved).items() if count > 1]
    if twice:
        raise RunError(f"{', '.join(twice)}: given twice", code="duplicate-id")
    found = score_runs(roots, settings)
    contents = []
    names = dict(zip(roots, short_names(resolved), strict=True))
    for root, name in names.items():
        run, slug = Run.open(root).held(), slugify(name)
        own = [judged for judged in found if judged.result.folder == str(root)]
        judged = [replace(one, name=name, slug=slug) for one in own]
        told = run_labels(run, settings.labels, len(roots) > 1)
        suite = open_suite(run.header.suite)
        contents.append(
            RunContents(
                name,
                slug,
                run=run,
                suite=suite,
                judged=judged,
                told=told,
                quality=read_quality(run),
                base=names.get(bases[root], "-") if bases else "",
            )
        )
    return contents
