"""`judge-check`: a judge on gold images, before it judges anybody."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

from PIL import Image

from ...errors import DataError
from ...images import ImageError, opened
from ...progress import Progress, silent
from ...schema import T2ICorrectnessGold
from ..core import Generator, ImageRequest, Judge
from ..engine.costs import Cost
from ..engine.data import read_rows
from ..engine.evaluation import RunSettings
from ..engine.steps import Done, evaluate_run
from ..generators import ENCODED
from ..results.judge_card import JudgeCard
from ..results.judge_check import JudgeCheck, check_of, write_checks
from ..results.scoring import JudgedRun, ScoreSettings, score_run, write_results
from ..suites.gold import T2ICorrectnessGoldSuite


class GoldImages(Generator):
    """The images of the rows themselves."""

    def __init__(self, rows: Mapping[str, T2ICorrectnessGold], digest: str) -> None:
        """rows: by id; digest: of all of them."""
        self._rows = rows
        self._digest = digest

    def identity(self) -> dict[str, str]:
        return {"kind": "gold", "rows": self._digest}

    def generate(self, request: ImageRequest) -> Image.Image:
        """Raises FileNotFoundError for a request of no row."""
        case = request.case
        if case is None or case.row not in self._rows:
            raise FileNotFoundError("gold images are those of the rows of their config")
        data = self._rows[case.row].image.bytes
        try:
            with opened(BytesIO(data)) as image:
                image.load()
        except ImageError as error:
            raise DataError(f"the gold image of {case.row} {error}") from None
        image.info[ENCODED] = data
        return image


@dataclass(frozen=True)
class CheckedJudges:
    """What `judge-check` found."""

    checks: Sequence[JudgeCheck]
    """One a judge."""
    judged: Sequence[JudgedRun]
    """Scores and cards of the same judges, in the same order."""
    done: Done
    """What was asked, and what it cost."""

    @property
    def cards(self) -> list[JudgeCard]:
        """The judges' cards."""
        return [judged.result.card for judged in self.judged]


def check_judges(
    data: str,
    out: Path,
    judges: Sequence[Judge | str],
    *,
    revision: str | None = None,
    limit: int | None = None,
    cost: Cost | None = None,
    progress: Progress = silent,
) -> CheckedJudges:
    """Asks judges about the gold images of a release; run again, it continues.

    Writes `judge_check.json` and `scores.json` into `out`. limit: images to sample, with all of
    their pair. Raises ReleaseError for a release without gold images, and what `evaluate_run` does.
    """
    suite = T2ICorrectnessGoldSuite.name
    found = read_rows(data, suite, revision)
    rows = {row.id: row for row in found.rows if isinstance(row, T2ICorrectnessGold)}
    settings = RunSettings(suite=suite, data=data, out=out, revision=revision, limit=limit)
    images = GoldImages(rows, found.digest)
    done = evaluate_run(settings, images, judges, cost=cost, progress=progress, found=found)
    judged = score_run(out, ScoreSettings())
    checks = [check_of(one, rows) for one in judged]
    write_checks(out, checks)
    write_results([one.result for one in judged])
    return CheckedJudges(checks, judged, done)
