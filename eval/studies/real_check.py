"""`judge-check --images`: judges on images of real generators that readers have labeled.

The images are the user's, in a folder; the labels are rows of a release, or of the user's own file.
`judge-check --drawn` asks the same about drawn images of rising difficulty.
The run's `scores.json` has the judge's confusion with the readers, so that `score --card` corrects
other runs of spatial prompts by its error rates on real images.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ...errors import DataError
from ...human_labels import UNIFORM
from ...parsing import write_rows
from ...progress import Progress, silent
from ...release import sha256_file
from ...schema import RealGold
from ..core import Generator, ImageRequest, Judge
from ..engine.costs import Cost
from ..engine.data import Rows, read_rows
from ..engine.evaluation import RunSettings
from ..engine.run import Run
from ..engine.steps import Done, JudgeSettings, evaluate_run
from ..results.scoring import JudgedRun, ScoreSettings, score_run, write_results
from ..suites.real import RealGoldSuite
from .graded_gold import GradedImages

LABELS = "labels.jsonl"
"""File of the readers' settled labels, in the form of labels of human annotators."""
DRAWN = "drawn_gold"
"""Folder of the run on drawn images."""
SOURCE = "the folder `images` of github.com/microsoft/VISOR"


class RealImages(Generator):
    """The images of a folder that rows are about, compared with their digests."""

    def __init__(self, folder: Path, rows: Sequence[RealGold], digest: str) -> None:
        """digest: logical digest of the rows.

        Raises DataError where no image is there, and for a file that is another image.
        """
        self._files = {row.id: folder / row.image_file for row in rows}
        self._digest = digest
        self.missing = [row for row in rows if not self._files[row.id].is_file()]
        if len(self.missing) == len(rows):
            raise DataError(
                f"{folder}: has none of the {len(rows):,} images, e.g. {rows[0].image_file}",
                f"name the folder that they lie in, as {SOURCE}",
                code="no-such-file",
            )
        there = (row for row in rows if row.image_sha256 and self._files[row.id].is_file())
        changed = [r for r in there if sha256_file(self._files[r.id]) != r.image_sha256]
        if changed:
            raise DataError(
                f"{folder}: {len(changed):,} files are not the images that were read, e.g. "
                f"{changed[0].image_file}: their SHA-256 differs",
                f"take the files as published, of {SOURCE}",
                code="changed-file",
            )

    @property
    def notes(self) -> list[str]:
        """How many images are missing, by generator."""
        if not self.missing:
            return []
        models = Counter(row.model or "unknown" for row in self.missing)
        counts = ", ".join(f"{n:,} of {model}" for model, n in sorted(models.items()))
        return [
            f"{len(self.missing):,} of {len(self._files):,} images are missing and excluded: "
            f"{counts}; they are in {SOURCE}"
        ]

    def identity(self) -> dict[str, str]:
        return {"kind": "gold", "rows": self._digest}

    def generate(self, request: ImageRequest) -> Path:
        """Raises FileNotFoundError for an image that the folder lacks."""
        if request.case is None or request.case.row not in self._files:
            raise FileNotFoundError("only images that readers have labeled are here")
        path = self._files[request.case.row]
        if not path.is_file():
            raise FileNotFoundError(f"{path} is not there")
        return path


@dataclass(frozen=True)
class CheckedOnReal:
    """Results of judges on real images."""

    judged: Sequence[JudgedRun]
    """Scores and cards, one for each judge."""
    done: Done
    """Counts of questions and costs."""
    notes: Sequence[str]
    """What is missing."""


def check_on_real(
    data: str,
    images: Path,
    out: Path,
    judges: Sequence[Judge | str],
    *,
    revision: str | None = None,
    limit: int | None = None,
    cost: Cost | None = None,
    progress: Progress = silent,
) -> CheckedOnReal:
    """Asks judges about images of a folder that readers have labeled; run again, it continues.

    data: a release with these labels, or a file of `audit merge --kind real`. Writes `scores.json`
    and the labels into a folder of `out`. limit: images to sample. Raises DataError as `RealImages`
    and what `evaluate_run` does.
    """
    suite = RealGoldSuite.name
    rows = read_rows(data, suite, revision)
    labeled = [row for row in rows.rows if isinstance(row, RealGold)]
    folder = RealImages(images, labeled, rows.digest)
    settings = RunSettings(suite=suite, data=data, out=out / suite, revision=revision, limit=limit)
    return _check(settings, rows, folder, judges, cost, progress, folder.notes)


def check_on_drawn(
    out: Path,
    judges: Sequence[Judge | str],
    *,
    revision: str | None = None,
    limit: int | None = None,
    cost: Cost | None = None,
    progress: Progress = silent,
) -> CheckedOnReal:
    """Asks judges the same about drawn images, from easy to hard; run again, it continues.

    Writes into the folder `DRAWN` of `out`. limit: images to sample, over all levels. Raises what
    `evaluate_run` does.
    """
    drawn = GradedImages()
    rows = Rows.of(drawn.rows)
    settings = RunSettings(
        suite=RealGoldSuite.name, data=DRAWN, out=out / DRAWN, revision=revision, limit=limit
    )
    return _check(settings, rows, drawn, judges, cost, progress, [])


def _check(
    settings: RunSettings,
    rows: Rows,
    images: Generator,
    judges: Sequence[Judge | str],
    cost: Cost | None,
    progress: Progress,
    notes: Sequence[str],
) -> CheckedOnReal:
    """Asks, scores, and records each judge's confusion with the labels."""
    asked = JudgeSettings(revision=settings.revision, despite_failures=True)
    done = evaluate_run(settings, images, judges, asked, cost, progress, rows=rows)
    judged = score_run(done.run.root, ScoreSettings(labels=_write_labels(done.run)))
    write_results([run.result for run in judged])
    return CheckedOnReal(judged, done, notes)


def _write_labels(run: Run) -> Path:
    """The settled labels of the images of a run, so that its judges' error rates are recorded."""
    images, present = run.images(), run.present()
    path = run.root / LABELS
    write_rows(
        path,
        (
            {
                "case": case.id,
                "question": question,
                "label": label,
                "annotator": "readers",
                "image": images[case.id].sha256,
                "draw": UNIFORM,
            }
            for case in run.cases()
            for question, label in case.key.items()
            if case.id in present
        ),
    )
    return path
