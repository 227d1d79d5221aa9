"""`judge-check` of judges by rule: what does the detector miss of things that are there?

The judge is asked about composed images, a run of the suite in a folder of its name. `score --gold`
corrects other runs of the suite by the detection rates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import DataError, UsageError
from ...progress import Progress, silent
from ...schema import Row
from ..core import Case, ImageRequest, Judge, describe
from ..engine.costs import Cost
from ..engine.data import Rows, read_rows, row_fields
from ..engine.evaluation import RunSettings
from ..engine.steps import Done, JudgeSettings, evaluate_run
from ..generators.composed import CutOuts, Drawings, KnownImages
from ..judges import as_judge
from ..results.detectability import (
    ClassRate,
    DetectorCheck,
    class_rates,
    detector_check,
    write_detector_checks,
)
from ..results.scoring import ScoreSettings, score_run, write_results
from ..suites import SUITES
from ..suites.spatial import SpatialSuite

COMPOSED = tuple(
    name
    for name, suite in SUITES.items()
    if issubclass(suite, SpatialSuite) and suite.can_be_composed
)
"""Suites whose judges are checked on composed images."""
SEEDS = 4
"""Composed images of each prompt."""


@dataclass(frozen=True)
class CheckedDetectors:
    """Results of `judge-check` on composed images of one suite."""

    suite: str
    checks: Sequence[DetectorCheck]
    """One check per judge."""
    done: Done
    """Counts of questions and costs."""
    notes: Sequence[str]
    """Classes that have no rate of their own, and folders that are not used."""

    def rates(self, check: DetectorCheck) -> list[ClassRate]:
        """The rates of a judge, of all classes first."""
        return class_rates(check)


def check_detectors(
    data: str,
    out: Path,
    judges: Sequence[Judge | str],
    suite: str,
    *,
    cutouts: Path | None = None,
    revision: str | None = None,
    limit: int | None = None,
    cost: Cost | None = None,
    progress: Progress = silent,
) -> CheckedDetectors:
    """Asks judges by rule about composed images of a suite's classes; run again, it continues.

    Writes `detectability.json` and `scores.json` into a folder of `out`. cutouts: folder of images,
    `CLASS/*.png`; the renderer's drawings if None. limit: prompts to sample. Raises UsageError for
    another suite, DataError for cut-outs of no class of the suite, and what `evaluate_run` does.
    """
    if suite not in COMPOSED:
        raise UsageError(
            f"no images can be composed for {suite}",
            f"choose from {', '.join(COMPOSED)}",
            code="unsupported",
        )
    generator: CutOuts | Drawings = CutOuts(cutouts) if cutouts else Drawings()
    rows = read_rows(data, suite, revision)
    classes = {name for row in rows.rows for name in _names(row)}
    shown = [row for row in rows.rows if generator.can_show(_names(row))]
    if not shown:
        folders = ", ".join(getattr(generator, "classes", ()))
        raise DataError(
            f"{cutouts}: no folder is named for a class of {suite} ({folders})",
            f"choose from {', '.join(sorted(classes))}",
            code="unknown-class",
        )
    with (cost or Cost()).plan(out / suite) as plan:
        opened = [as_judge(judge, plan) for judge in judges]
        for judge in opened:
            if "detector_kind" not in judge.identity():
                raise UsageError(
                    f"{describe(judge.identity())} records no detections",
                    "check a judge by rule, e.g. `checker:DETECTOR`",
                    code="unsupported",
                )
        settings = RunSettings(
            suite=suite, data=data, out=out / suite, revision=revision, seeds=SEEDS, limit=limit
        )
        done = evaluate_run(
            settings,
            generator,
            opened,
            JudgeSettings(revision=revision, despite_failures=True),
            plan,
            progress,
            rows=Rows.of(shown),
        )
    judged = score_run(done.run.root, ScoreSettings())
    rows_by_id = {row.id: row for row in shown}
    things = {case.id: _things(generator, rows_by_id[case.row], case) for case in done.run.cases()}
    checks = [
        detector_check(run.result.judge, run.result.card.comparable, run.outcomes, things, done.run)
        for run in judged
    ]
    write_detector_checks(done.run.root, checks)
    write_results([run.result for run in judged])
    return CheckedDetectors(suite, checks, done, _notes(generator, classes))


def _names(row: Row) -> tuple[str, str]:
    fields = row_fields(row)
    return fields["object_a"], fields["object_b"]


def _things(generator: KnownImages, row: Row, case: Case) -> dict[str, tuple[str, float]]:
    request = ImageRequest(case.prompt, case.seed, case=case, fields=row_fields(row))
    return {thing.name: (thing.cutout, thing.size) for thing in generator.things(request)}


def _notes(generator: Any, classes: set[str]) -> list[str]:
    """Classes without images, and images without a class."""
    notes = []
    missing = sorted(name for name in classes if not generator.can_show([name]))
    if missing:
        notes.append(
            f"{len(missing):,} of {len(classes):,} classes have no image, so that their rate is "
            f"that of all others: {', '.join(missing)}"
        )
    if isinstance(generator, CutOuts):
        unused = sorted(name for name in generator.classes if name not in classes)
        if unused:
            notes.append(f"folders of no class of the suite, not used: {', '.join(unused)}")
        if generator.empty:
            notes.append(f"folders without an image: {', '.join(generator.empty)}")
        single = sum(generator.classes.get(name) == 1 for name in classes)
        if single:
            notes.append(
                f"{single:,} classes have one cut-out: others of them may be seen more or less "
                "often; five or more tell"
            )
    else:
        notes.append(
            "the images are drawings in two sizes; real objects need --cutouts, and the rates "
            "apply to images that look like the composed ones"
        )
    return notes
