"""What a report is made of: runs with their names, results and outcomes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..core import Outcome
from ..engine.judging import outcomes
from ..engine.run import JudgeFolder, Run, RunError
from ..suites.scores import ALL, Score
from .corrected import Labels
from .scoring import Result, run_labels, score_runs


@dataclass(frozen=True)
class JudgedRun:
    """One run under one judge."""

    name: str
    """Name of the run, unique in the report."""
    slug: str
    """The same for file names and fragments."""
    result: Result
    """Scores and judge card."""
    outcomes: Sequence[Outcome]
    """Every case with what the judge said, by case id."""

    @property
    def whole(self) -> dict[str, Score]:
        """The scores of the whole config, by name."""
        return {score.name: score for score in self.result.scores if score.group == ALL}


@dataclass(frozen=True)
class RunContents:
    """One run with all of its judges."""

    name: str
    """Unique in the report: the folder's name, longer where two are alike."""
    slug: str
    """The same for file names."""
    run: Run
    """The folder."""
    judged: Sequence[JudgedRun]
    """One a judge, by the judge's name."""
    told: Labels
    """(case, question) -> what people said."""

    @property
    def suite(self) -> str:
        return self.run.header.suite


def read_contents(
    roots: Sequence[Path], labels: Path | None, across_judges: bool
) -> list[RunContents]:
    """Scores the runs and gathers what a report shows of them.

    Raises RunError where a run is given twice, nobody has judged it, or the runs of a suite were
    not judged alike, unless `across_judges`.
    """
    resolved = [root.resolve() for root in roots]
    twice = [str(root) for root, count in Counter(resolved).items() if count > 1]
    if twice:
        raise RunError(f"{', '.join(twice)}: given twice")
    results = score_runs(roots, labels, across_judges)
    names = _names(resolved)
    return [
        _contents(
            run := Run.open(root),
            name,
            [r for r in results if r.folder == str(root)],
            run_labels(run, labels, len(roots) > 1),
        )
        for root, name in zip(roots, names, strict=True)
    ]


def _contents(run: Run, name: str, results: Iterable[Result], told: Labels) -> RunContents:
    folders: Mapping[str, JudgeFolder] = {folder.name: folder for folder in run.judges()}
    slug = slugify(name)
    judged = [
        JudgedRun(name, slug, result, sorted(outcomes(run, folders[result.judge]), key=_case_id))
        for result in results
    ]
    return RunContents(name, slug, run, judged, told)


def _case_id(outcome: Outcome) -> str:
    return outcome.case.id


def _names(roots: Sequence[Path]) -> list[str]:
    """The shortest ends of the paths that tell the runs apart, also as file names."""
    longest = max(len(root.parts) for root in roots)
    for length in range(1, longest + 1):
        names = ["/".join(root.parts[-length:]).strip("/") for root in roots]
        if len({slugify(name) for name in names}) == len(names):
            return names
    # Names that differ in signs only: a number tells them apart.
    return [f"{root.name} ({number})" for number, root in enumerate(roots, 1)]


def slugify(name: str) -> str:
    """A name as part of a file name, in lower case so that no file system merges two.

    >>> slugify("runs/SDXL base 1.0")
    'runs-sdxl-base-1.0'
    """
    return re.sub(r"[^a-z0-9._]+", "-", name.lower()).strip("-.") or "run"


def describe(identity: Mapping[str, str]) -> str:
    """A generator or judge in one line.

    >>> describe({"kind": "render", "order_bias": "1"})
    'render order_bias=1'
    """
    others = [f"{name}={value}" for name, value in identity.items() if name != "kind"]
    return " ".join([identity["kind"], *others])
