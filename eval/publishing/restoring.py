"""From a publication back to runs: what was published can be scored again, to the last digit."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from ...errors import CounterpriorError
from ...parsing import parse_as, write_rows
from ...release import Problem
from ..core import Case, Verdict
from ..engine.run import TEXTS, CaseResult, Run, RunHeader
from ..results.judge_check import JudgeCheck, write_checks
from ..results.names import slugify
from ..results.scoring import ScoreSettings, score_run
from ..store.verdicts import VERDICTS, Answered, VerdictLog
from ..suites import open_suite
from .building import ENCODING, score_columns
from .publication import (
    COLUMNS,
    JUDGE_COLUMNS,
    RUN_COLUMNS,
    Publication,
    PublishedRun,
    iter_rows,
    read_publication,
)

_CASE_COLUMNS = [name for name in COLUMNS["images"] if name not in ENCODING]
"""All columns of `images` but the image itself and what follows from it."""


class Recomputed(NamedTuple):
    """Result of scoring the published verdicts again."""

    problems: list[Problem]
    """Every score that differs from the published one."""
    notes: list[str]
    """Comparisons that could not be made, with reasons."""


def restore_run(root: Path, publication: Publication, run: PublishedRun, out: Path) -> Run:
    """Restores a published run to a run folder without image files: it can be scored, not judged.

    Raises ReleaseError for an unreadable file, UsageError for an unknown suite, RowError for a bad
    judge's check.
    """
    open_suite(run.suite)
    header = RunHeader(
        suite=run.suite,
        data=run.data,
        rows_sha256=run.rows_sha256,
        rows=run.rows,
        seeds=run.seeds,
        limit=run.limit,
        generator=run.identity,
        where=run.where,
    )
    rows = list(rows_of(root, publication, run, "images", _CASE_COLUMNS))
    restored = Run.start(out, header, [_case(row) for row in rows])
    write_rows(out / "images.jsonl", [_image(row) for row in rows])
    verdicts: dict[str, list[dict[str, Any]]] = {judge.id: [] for judge in run.judges}
    for row in rows_of(root, publication, run, "verdicts"):
        verdicts[row["judge_id"]].append(_answered(row).to_record())
    for judge in run.judges:
        log = VerdictLog.start(out / "verdicts" / judge.id, judge.identity)
        write_rows(log.root / VERDICTS, verdicts[judge.id])
    places = [(judge.check, f"the check of {judge.name}") for judge in run.judges if judge.check]
    if places:
        write_checks(out, [parse_as(JudgeCheck, check, place) for check, place in places])
    return restored


def restore_runs(root: Path, out: Path, name: str) -> list[Path]:
    """Restores every run of a publication to the folder NAME/SUITE/GENERATOR in `out`, in the order
    of the publication. Raises as `restore_run`, and as `read_publication`."""
    publication, folder = read_publication(root), out / slugify(name)
    return [
        restore_run(root, publication, run, folder / run.suite / slugify(run.generator)).root
        for run in publication.runs
    ]


def recompute(root: Path) -> Recomputed:
    """Scores every published run again from its published verdicts and compares.

    Scores of another version of this package are not compared: their definition may differ.
    """
    publication = read_publication(root)
    made_with = publication.made_with.get("counterprior", "")
    if made_with != metadata.version("counterprior"):
        return Recomputed([], [f"scores not recomputed: counterprior {made_with} computed them"])
    problems: list[Problem] = []
    for run in publication.runs:
        try:
            with TemporaryDirectory() as folder:
                out = restore_run(root, publication, run, Path(folder) / "run").root
                judged = {
                    judged_run.log.root.name: judged_run.result
                    for judged_run in score_run(out, ScoreSettings())
                }
        except (CounterpriorError, LookupError, TypeError, ValueError) as error:
            # Whatever somebody put into the tables is a problem of theirs, not a crash here.
            reason = " ".join(str(error).split()) or type(error).__name__
            problems.append(Problem("verdicts", f"can't be scored: {reason}", run.name))
            continue
        published: dict[str, dict[ScoreKey, Any]] = {judge.id: {} for judge in run.judges}
        for row in rows_of(root, publication, run, "scores"):
            published.setdefault(row["judge_id"], {})[row["score"], row["group"]] = row
        for judge in run.judges:
            recomputed = {}
            if (result := judged.get(judge.id)) is not None:
                rows = [score_columns(score, result.cases) for score in result.scores]
                recomputed = {(row["score"], row["group"]): row for row in rows}
            place = f"{run.name}, {judge.name}"
            problems += _differences(place, published[judge.id], recomputed)
    return Recomputed(problems, [])


ScoreKey = tuple[str, str]
"""Name and group of a score."""


def _differences(
    place: str, published: Mapping[ScoreKey, Any], recomputed: Mapping[ScoreKey, Any]
) -> Iterator[Problem]:
    """Every score that only one of the two has, or that differs in any column."""
    for key in dict.fromkeys([*published, *recomputed]):
        stated, computed = published.get(key, {}), recomputed.get(key, {})
        for column in {**stated, **computed}:
            if column in {**RUN_COLUMNS, **JUDGE_COLUMNS}:
                continue
            if stated.get(column) != computed.get(column) or (column in stated) != (
                column in computed
            ):
                message = (
                    f"{' '.join(key)} is {stated.get(column)} as published, but the published "
                    f"verdicts give {computed.get(column)}"
                )
                yield Problem("scores", message, place, column)
                break


def rows_of(
    root: Path,
    publication: Publication,
    run: PublishedRun,
    config: str,
    columns: Sequence[str] | None = None,
) -> Iterator[dict[str, Any]]:
    """The rows of one run in a config."""
    files = [file for file in publication.of(config) if run.name in file.runs]
    for row in iter_rows(root, files, columns):
        if (row["suite"], row["generator"]) == (run.suite, run.generator):
            yield row


def _case(row: Mapping[str, Any]) -> Case:
    return Case(
        row=row["row"],
        variant=row["variant"],
        seed=row["seed"],
        number=row["number"],
        prompt=row["prompt"],
        clusters=tuple(row["clusters"]),
        groups=json.loads(row["groups"]),
        weights=json.loads(row["weights"]),
        source=row["source"],
        key=json.loads(row.get("right_labels") or "{}"),
    )


def _image(row: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the record of an image, as in a run."""
    has_image = row["status"] == "made"
    file = f"{TEXTS}/{row['case']}.txt" if row.get("text") else f"images/{row['case']}.png"
    return CaseResult(
        case=row["case"],
        status=row["status"],
        file=file if has_image else "",
        sha256=row["sha256"],
        message=row["message"],
        report=row["report"],
        frames=row.get("frames") or 0,
        fps=row.get("rate") or 0.0,
    ).to_record()


def _answered(row: Mapping[str, Any]) -> Answered:
    shares = row["probabilities"]
    return Answered(
        key=row["key"],
        case=row["case"],
        image=row["image_sha256"],
        question=row["question"],
        probe=row["probe"],
        labels=tuple(row["labels"]),
        answers=json.loads(row["answers"]),
        sided=row["sided"],
        verdict=Verdict(
            label=row["label"],
            raw=row["raw"],
            number=row["number"],
            probabilities=json.loads(shares) if shares else None,
            mass=row["mass"],
            usd=row["usd"],
        ),
        frame=row.get("frame"),
    )
