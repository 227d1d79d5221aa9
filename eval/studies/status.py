"""Status of every cell of a study."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any, Literal, NamedTuple

from ...errors import UsageError
from ..core import Score
from ..engine.run import Run, RunError
from ..results.kept_scores import ScoresOfRun, kept_name
from ..store.verdicts import Answered, VerdictLog
from .events import StudyEvents
from .folder import FILE, Study
from .running import running_score
from .spec import Cell

State = Literal["waiting", "images", "verdicts", "failed", "done"]
"""State of a cell: not begun; images or verdicts under way; ended by a cause; complete."""


@dataclass(frozen=True)
class CellStatus:
    """Progress of one cell."""

    cell: Cell
    state: State
    cases: int = 0
    """Images of the run; 0 if it has not begun."""
    images: Mapping[str, int] = field(default_factory=dict)
    """Images by what became of them: `made`, `missing`, `refused`, `error`."""
    unmade: str = ""
    """How many images could not be made, and why the first; empty without any."""
    verdicts: Mapping[str, int] = field(default_factory=dict)
    """Answers about the present images, or scores: `answered`, and failures by name."""
    questions: int = 0
    """Count of all questions; 0 until they are counted."""
    cause: str = ""
    """Error that ended it; empty unless it failed."""
    errors: Mapping[str, int] = field(default_factory=dict)
    """Texts of the errors of answers and scores, with how many have each."""
    lost: str = ""
    """Shards that are incomplete, in words; empty without any."""
    running: Score | None = None
    """Headline of the first clusters of the random order, all of them once it is done; its interval
    holds at all moments at once. None where nothing is judged, or the order is not random."""

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        running = self.running and self.running.to_json() | {"clusters": self.running.clusters}
        return {**vars(self), "cell": vars(self.cell), "running": running}

    @property
    def gap(self) -> str:
        """Missing images or verdicts, in a few words; empty if the cell is done."""
        if self.state == "done":
            return ""
        if self.state == "failed":
            return f"failed: {self.cause}"
        if self.state == "waiting":
            return "not begun"
        image_count, answer_count = sum(self.images.values()), sum(self.verdicts.values())
        if image_count < self.cases:
            return (
                f"{self.cases - image_count:,} of {self.cases:,} images were never made{self.lost}"
            )
        images = self.images.get("made", 0)
        if self.cell.scorer:
            return f"scored in part: {answer_count:,} of {images:,} images{self.lost}"
        return f"judged in part: {answer_count:,} answers about {images:,} images{self.lost}"


def study_status(study: Study, scores: bool = False) -> list[CellStatus]:
    """The status of every cell, by generator, suite and judge; `scores`: also what they score so
    far."""
    return [status for _, statuses in iter_runs(study, scores) for status in statuses]


def iter_runs(
    study: Study, scores: bool = False, for_scoring: bool = False
) -> Iterator[tuple[RunImages | None, list[CellStatus]]]:
    """Yields each run that a study has or will have, None until it begins, with the statuses of its
    cells. for_scoring: with the answers that were read for them."""
    events = StudyEvents(study.root)
    for _, of_run in groupby(study.cells, lambda cell: cell.folder):
        cells = list(of_run)
        run = study.run_of(cells[0])
        images = None if run is None else RunImages.of(run, for_scoring)
        yield images, [_status(study, cell, images, events, scores) for cell in cells]


class RunImages(NamedTuple):
    """A run's images, which are looked at once for all of its cells."""

    run: Run
    present: Mapping[str, str]
    """Case -> SHA-256 of its present image."""
    counts: Mapping[str, int]
    """Images by what became of them."""
    scores: ScoresOfRun
    """What was computed from them and the verdicts before."""
    answers: dict[Path, list[Answered]] | None
    """Folder of a judge -> its answers about the present images, where they were read; None if
    nobody needs them again."""

    @classmethod
    def of(cls, run: Run, for_scoring: bool) -> RunImages:
        """Looks at the images of a run."""
        scores = ScoresOfRun(run)
        held = scores.run
        counts = Counter(image.status for image in held.images().values())
        answers = dict[Path, list[Answered]]() if for_scoring else None
        return cls(held, held.present(), dict(sorted(counts.items())), scores, answers)


def the_study(paths: Sequence[Path]) -> Study | None:
    """The study, if the folder of one is named; None for other paths. Raises UsageError for a
    study among other paths."""
    studies = [path for path in paths if (path / FILE).is_file()]
    if studies and len(paths) > 1:
        raise UsageError(
            f"{studies[0]} is a study, which is taken alone",
            "name its folder only, or the folders of runs",
            code="unsupported",
        )
    return Study.open(studies[0]) if studies else None


def runs_of_study(
    paths: Sequence[Path], partial: bool = False
) -> tuple[Study | None, Sequence[Path]]:
    """The study that is named, with its `judged_runs`; or None and the paths. Raises as
    `the_study` and `judged_runs`."""
    study = the_study(paths)
    return study, list(paths) if study is None else judged_runs(study, partial)


def judged_runs(study: Study, partial: bool = False) -> list[Path]:
    """The runs whose cells are all done, or with `partial` that are judged at all.

    Raises RunError for none, and without `partial` where some are not done.
    """
    of_run: dict[Path, list[CellStatus]] = {}
    for status in study_status(study):
        of_run.setdefault(study.root / status.cell.folder, []).append(status)
    gaps = [status for statuses in of_run.values() for status in statuses if status.gap]
    if gaps and not partial:
        raise RunError(
            f"{study.root}: {len(gaps):,} of its cells not done, the first {gaps[0].cell}: "
            f"{gaps[0].gap}",
            "run `counterprior study run` again, or say --partial",
            code="incomplete-run",
        )
    runs = [
        root
        for root, statuses in of_run.items()
        if any(status.verdicts and not status.cell.scorer for status in statuses)
    ]
    if not runs:
        raise RunError(f"{study.root}: nothing is judged yet", code="nothing-judged")
    return runs


def _status(
    study: Study, cell: Cell, images: RunImages | None, events: StudyEvents, scores: bool
) -> CellStatus:
    cause = events.cause(cell)
    if images is None:
        return CellStatus(cell, "failed" if cause else "waiting", cause=cause)
    run, present, image_counts = images.run, images.present, images.counts
    log = study.log_of(cell, run)
    if cell.scorer:
        counts, answered, errors = _scored(study, cell, run)
    else:
        counts, answered, errors = _answers(log, images)
    lost = ""
    if events.is_done(cell, run, present):
        state: State = "done"
    else:
        cases = run.cases()
        waiting = [case for case in cases if case.id not in run.images()]
        state = "images" if waiting else "verdicts"
        if not waiting:
            waiting = [case for case in cases if case.id in present and case.id not in answered]
        lost = run.lacking(waiting, log) or events.unfinished(cell)
    if cause and state != "done":
        state = "failed"
    running = None
    if log is not None and answered and scores:
        running = running_score(run, log, present, answered)
    return CellStatus(
        cell,
        state,
        running=running,
        cases=run.count_cases(),
        images=image_counts,
        unmade=run.unmade() if image_counts.get("error") else "",
        verdicts=dict(sorted(counts.items())),
        questions=events.questions(cell),
        cause=cause if state == "failed" else "",
        errors=dict(errors.most_common()),
        lost=lost,
    )


_Answers = tuple[Counter[str], set[str], Counter[str]]
"""Answers or scores by what they are, the cases that have one, and the texts of errors."""


def _scored(study: Study, cell: Cell, run: Run) -> _Answers:
    scores = study.scores_of(cell, run)
    scored = scores.of_cases(run, run.cases()) if scores else {}
    counts = Counter("error" if pair.error else "answered" for pair in scored.values())
    return counts, set(scored), Counter(pair.error for pair in scored.values() if pair.error)


def _answers(log: VerdictLog | None, images: RunImages) -> _Answers:
    if log is None:
        return Counter(), set(), Counter()
    present = images.present

    def count() -> tuple[Counter[str], list[str], Counter[str]]:
        counts, answered, errors = Counter[str](), set[str](), Counter[str]()
        answers = log.present(present)
        if images.answers is not None:
            images.answers[log.root] = answers
        for answer in answers:
            counts[answer.verdict.label if answer.verdict.failed else "answered"] += 1
            answered.add(answer.case)
            if answer.verdict.label == "error":
                errors[answer.verdict.raw] += 1
        return counts, [case for case in present if case not in answered], errors

    kind = tuple[dict[str, int], list[str], dict[str, int]]
    name = kept_name("answers", log.root)
    counts, unanswered, errors = images.scores.computed(name, kind, count)
    return Counter(counts), present.keys() - {*unanswered}, Counter(errors)
