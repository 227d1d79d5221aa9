"""`judge-check`: a judge on gold images, before it judges anybody.

`check_judges` is the command. `CheckFirst` is the same for `eval` and studies: before a judge is
asked about a run of a suite with gold images, it is asked about those of the run's rows, once. Each
config of gold images is a run of its own, in a folder of its name.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import Any

from PIL import Image

from ...errors import DataError, UsageError
from ...images import ImageError, opened
from ...progress import Progress, silent
from ...release import ReleaseError, has_config
from ...schema import GoldRow
from ...storage import Lock
from ..core import KNOWN_TRUTH, Generator, ImageRequest, Judge
from ..engine.costs import Cost
from ..engine.data import Rows, read_rows, release_at
from ..engine.evaluation import Evaluation, RunSettings
from ..engine.steps import Done, JudgeSettings, evaluate_run, generate, judge_run
from ..generators import ENCODED
from ..judges import CallPlan
from ..results.judge_card import JudgeCard, comparable_of, prompt_versions
from ..results.judge_check import (
    CHECK,
    JudgeCheck,
    check_of,
    find_check,
    read_checks,
    write_checks,
)
from ..results.scoring import JudgedRun, ScoreSettings, score_run, write_results
from ..store.verdicts import judging_identity
from ..suites import SUITES, open_gold
from ..suites.base import PERSONAS
from ..suites.gold import GoldSuite
from ..workers.farm import IN_PROCESS, Scale

FOLDER = "gold"
"""Default folder, in a run or a study, of its judges' verdicts on gold images."""


class GoldImages(Generator):
    """Generator that returns the gold images of rows."""

    def __init__(self, rows: Rows) -> None:
        self._rows = _by_id(rows)
        self._digest = rows.digest

    def identity(self) -> dict[str, str]:
        return {"kind": "gold", "rows": self._digest}

    def generate(self, request: ImageRequest) -> Image.Image:
        """Raises FileNotFoundError for a request without a row of the config."""
        case = request.case
        if case is None or case.row not in self._rows:
            raise FileNotFoundError("gold images are those of the rows of their config")
        data = self._rows[case.row].image.bytes
        try:
            with opened(BytesIO(data)) as image:
                image.load()
        except ImageError as error:
            raise DataError(
                f"the gold image of {case.row} {error}", code="unreadable-image"
            ) from None
        image.info[ENCODED] = data
        return image


@dataclass(frozen=True)
class CheckedJudges:
    """Results of `judge-check` on one config of gold images."""

    suite: GoldSuite[Any]
    """Suite of the images."""
    checks: Sequence[JudgeCheck]
    """One check per judge."""
    judged: Sequence[JudgedRun]
    """Scores and cards of the same judges, in the same order."""
    done: Done
    """Counts of questions and costs."""

    @property
    def cards(self) -> list[JudgeCard]:
        """The judges' cards."""
        return [judged.result.card for judged in self.judged]


def check_judges(
    data: str,
    out: Path,
    judges: Sequence[Judge | str],
    *,
    suites: Collection[str] = (),
    persona: str = PERSONAS[0],
    revision: str | None = None,
    limit: int | None = None,
    cost: Cost | None = None,
    progress: Progress = silent,
) -> list[CheckedJudges]:
    """Asks judges about the gold images of a release; run again, it continues.

    Writes `judge_check.json` and `scores.json` into a folder of `out` for each config of gold
    images. suites: those whose judges are checked; where empty, all that have gold images there.
    limit: images of each config to sample, with all of their pair or group. The cap of `cost` is
    one for all configs. Raises UsageError for a suite without gold images, ReleaseError for a
    release without, and what `evaluate_run` does.
    """
    golds = {name: gold for name in SUITES if (gold := open_gold(name, persona))}
    if unknown := [name for name in suites if name not in golds]:
        raise UsageError(
            f"{unknown[0]} has no gold images: choose from {', '.join(golds)}", code="no-gold"
        )
    release = release_at(data, revision)
    chosen = [golds[name] for name in suites] or [
        gold for gold in golds.values() if has_config(release[0], gold.name, release[1])
    ]
    if not chosen:
        raise ReleaseError(f"{data} has no gold images: build it with all configs", code="no-gold")
    checked = []
    with (cost or Cost()).plan(out) as plan:
        for gold in chosen:
            rows = read_rows(data, gold.name, revision)
            settings = RunSettings(
                suite=gold.name, data=data, out=out / gold.name, revision=revision, limit=limit
            )
            judge_settings = JudgeSettings(
                persona=persona, revision=revision, despite_failures=True
            )
            done = evaluate_run(
                settings, GoldImages(rows), judges, judge_settings, plan, progress, rows=rows
            )
            checked.append(_checked(gold, rows, done))
    return checked


def gold_rows(
    data: str, suite: str, rows: Collection[str], revision: str | None = None
) -> Rows | None:
    """Reads the gold images of some rows of a suite; None if the release has none of them.

    Raises ReleaseError for a release that can't be read.
    """
    gold = open_gold(suite)
    repo, tag = release_at(data, revision)
    if gold is None or not has_config(repo, gold.name, tag):
        return None
    gold_images = read_rows(data, gold.name, revision)
    row_ids = set(rows)
    wanted = [
        row for row in _by_id(gold_images).values() if not row_ids.isdisjoint(gold.sources(row))
    ]
    if len(wanted) == len(gold_images.rows):
        return gold_images
    return Rows.of(wanted) if wanted else None


@dataclass(frozen=True)
class CheckFirst:
    """Checks judges on gold images before they judge a run; a `BeforeAsking`.

    The results are written into the run, where `score` reads them. A judge that answers from a file
    of human labels is not checked.
    """

    folder: Path
    """Folder of the runs on gold images; several runs may share it, also with `judge-check`."""
    specs: Sequence[Judge | str]
    """The judges in the order in which they judge, as workers open them."""
    settings: JudgeSettings
    """How they judge."""
    progress: Progress = silent
    scale: Scale = IN_PROCESS
    """The processes that judge; shards wait until one of them has checked."""
    rows: Collection[str] | None = None
    """Rows whose gold images are judged; those of the run where None."""

    def __call__(self, evaluation: Evaluation, judges: Sequence[Judge], plan: CallPlan) -> None:
        """Raises whatever judging does, and RunError for a folder of other gold images."""
        suite, header = evaluation.suite, evaluation.run.header
        settings = self.settings
        gold = open_gold(suite.name, settings.persona)
        if gold is None:
            return
        folder = self.folder / gold.name
        versions = prompt_versions(suite)
        with Lock(folder.with_name(f"{folder.name}.lock"), str(folder), wait=True):
            unchecked = [
                (judge, spec)
                for judge, spec in zip(judges, self.specs, strict=True)
                if judge.identity()["kind"] not in KNOWN_TRUTH
                and not find_check(
                    folder,
                    comparable_of(
                        judging_identity(judge.identity(), settings.persona, settings.frames),
                        versions,
                    ),
                )
            ]
            if unchecked:
                rows = evaluation.rows.keys() if self.rows is None else self.rows
                gold_images = gold_rows(header.data, suite.name, rows, settings.revision)
                if gold_images is None:
                    return
                self._check(gold, gold_images, header.data, unchecked, plan)
            if (folder / CHECK).exists():
                write_checks(evaluation.run.root, read_checks(folder))

    def _check(
        self,
        gold: GoldSuite[Any],
        rows: Rows,
        data: str,
        judges: Sequence[tuple[Judge, Judge | str]],
        plan: CallPlan,
    ) -> None:
        folder = self.folder / gold.name
        settings = RunSettings(suite=gold.name, data=data, out=folder)
        generate(settings, GoldImages(rows), plan, self._progress, rows)
        done = judge_run(
            folder,
            [judge for judge, _ in judges],
            replace(self.settings, controls=()),
            plan,
            self._progress,
            rows=rows,
            scale=replace(self.scale, shard=None),
            specs=[spec for _, spec in judges],
        )
        _checked(gold, rows, done)

    def _progress(self, stage: str, done: int, total: int) -> None:
        self.progress(f"judge check, {stage}", done, total)


def _by_id(rows: Rows) -> dict[str, GoldRow]:
    return {row.id: row for row in rows.rows if isinstance(row, GoldRow)}


def _checked(gold: GoldSuite[Any], rows: Rows, done: Done) -> CheckedJudges:
    """Scores the judges of a run on gold images, and writes the checks beside its verdicts."""
    judged = score_run(done.run.root, ScoreSettings())
    rows_by_id = _by_id(rows)
    checks = [
        check_of(run.result.judge, run.result.card.comparable, run.outcomes, gold, rows_by_id)
        for run in judged
    ]
    write_checks(done.run.root, checks)
    write_results([run.result for run in judged])
    return CheckedJudges(gold, checks, judged, done)
