"""`judge`: every question about every picture, asked once."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL.Image import Image

from ...images import ImageError, open_image
from ...schema import Row
from ..core import ORIGINAL, PROBES, Case, Outcome
from ..judges import Judge, Question, Verdict
from ..suites import EvalSuite, open_suite, source_image
from .data import Rows, read_rows, sample_rows
from .run import JudgeFolder, MadeImage, Run, RunError

Progress = Callable[[str, int, int], None]
"""Told stage, done and total."""


@dataclass(frozen=True)
class JudgeSettings:
    """How a run is judged."""

    run: Path
    """Folder of the run."""
    probes: tuple[str, ...] = ()
    """Controls to ask besides the question itself, of `cases.PROBES`."""
    persona: str = "standard"
    """How free questions are answered, of `suites.PERSONAS`."""
    revision: str | None = None
    """Tag or commit, where the run's data are a repository."""


def judge_run(
    settings: JudgeSettings,
    judge: Judge,
    progress: Progress = lambda stage, done, total: None,
    found: Rows | None = None,
) -> JudgeFolder:
    """Asks what has no verdict yet and records each verdict as it comes.

    A verdict is known by question, picture and judge: a picture that was made anew is judged anew,
    and no question is asked twice. Failures of the judge itself (`error`) are asked again. `found`
    are the rows, where they are not to be read from the run's data. Raises RunError where these are
    no longer those that the run was started with.
    """
    run = Run.open(settings.run)
    unknown = set(settings.probes) - set(PROBES)
    if unknown:
        raise ValueError(f"no probe {sorted(unknown)}: choose from {', '.join(PROBES)}")
    suite = open_suite(run.header.suite, settings.persona)
    rows = _rows(run, found or read_rows(run.header.data, run.header.suite, settings.revision))
    folder = run.judge({**judge.identity(), "persona": settings.persona})
    images = run.images()
    # A judge's error is worth another try; what is wrong with a picture stays wrong.
    done = {r["key"] for r in folder.verdicts() if r["label"] != "error" or not r["question"]}
    waiting = [case for case in run.cases() if case.id in images]
    heads: dict[str, dict[str, Any]] = {}

    def open_questions() -> Iterator[Question]:
        """What has no verdict yet, one case's pictures in memory at a time."""
        for number, case in enumerate(waiting):
            progress("verdicts", number, len(waiting))
            asked = _questions(run, suite, rows[case.row], case, images[case.id], settings)
            for question, head in asked:
                if head["key"] in done:
                    continue
                if isinstance(question, Verdict):
                    log.append(head | _plain(question))
                else:
                    heads[question.id] = head
                    yield question

    with folder.log() as log:
        for question, verdict in judge.judge(open_questions()):
            log.append(heads.pop(question.id) | _plain(verdict))
    progress("verdicts", len(waiting), len(waiting))
    return folder


def outcomes(run: Run, folder: JudgeFolder) -> list[Outcome]:
    """Every case of a run with what one judge said of its present picture."""
    images = run.images()
    labels: dict[str, dict[tuple[str, str], str]] = {}
    for record in folder.verdicts():
        made = images.get(record["case"])
        if made is not None and record["image"] == made.sha256:
            labels.setdefault(record["case"], {})[record["question"], record["probe"]] = record[
                "label"
            ]
    return [Outcome(case, labels.get(case.id, {})) for case in run.cases()]


def _rows(run: Run, found: Rows) -> Mapping[str, Row]:
    if found.digest != run.header.rows_sha256:
        raise RunError(
            f"{run.header.data}, {run.header.suite}: the rows are not those that {run.root} was "
            f"started with; judge it with the release of that time"
        )
    return {row.id: row for row in sample_rows(found.rows, run.header.limit)}


def _questions(
    run: Run, suite: EvalSuite, row: Row, case: Case, made: MadeImage, settings: JudgeSettings
) -> Iterator[tuple[Question | Verdict, dict[str, Any]]]:
    """Each question about a case with the head of its record; a verdict where none can be asked."""
    images: Sequence[Image] = ()
    failure: Verdict | None = None
    if made.status != "made":
        failure = Verdict(made.status, made.message)
    else:
        try:
            picture = open_image(run.image_path(made))
            source = source_image(row)
            images = (picture,) if source is None else (source.convert("RGB"), picture)
        except ImageError as error:
            failure = Verdict("error", f"the picture {error}")
    if failure is not None:
        yield failure, _head(case, made, "", ORIGINAL, "")
        return
    for probe in (ORIGINAL, *settings.probes):
        for question in suite.questions(row, case, images, probe):
            name = question.id.split("/")[1]
            meaning = {"answers": dict(question.answers), "labels": list(question.labels)}
            yield question, _head(case, made, name, probe, question.prompt) | meaning


def _head(case: Case, made: MadeImage, question: str, probe: str, prompt: str) -> dict[str, Any]:
    digest = hashlib.sha256(
        json.dumps([case.id, made.sha256, question, probe, prompt]).encode()
    ).hexdigest()
    return {
        "key": digest[:24],
        "case": case.id,
        "image": made.sha256,
        "question": question,
        "probe": probe,
    }


def _plain(verdict: Verdict) -> dict[str, Any]:
    plain: dict[str, Any] = {"label": verdict.label, "raw": verdict.raw}
    if verdict.probabilities is not None:
        plain["probabilities"] = dict(verdict.probabilities)
    if verdict.mass is not None:
        plain["mass"] = verdict.mass
    return plain
