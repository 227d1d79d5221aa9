"""Images of a study for human annotators: its runs, and the scores of its table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ...errors import UsageError
from .folder import FILE, Study
from .status import judged_runs


def runs_to_label(
    paths: Sequence[Path], kind: str
) -> tuple[list[Path], Mapping[str, Sequence[str]] | None]:
    """Returns the paths, or in place of a study's folder its runs with the scores of its table.

    The scores are by suite, and None for paths without a study. Raises UsageError for a study among
    other paths or for another kind than `judge`, RunError for one that isn't done.
    """
    studies = [path for path in paths if (path / FILE).is_file()]
    if not studies:
        return list(paths), None
    if len(paths) > 1:
        raise UsageError(
            f"{studies[0]} is a study, which is labeled alone",
            "name its folder only, or the folders of runs",
            code="unsupported",
        )
    if kind != "judge":
        raise UsageError(
            f"{studies[0]} is a study, of which only --kind judge can be labeled",
            f"name folders of {studies[0]}/runs",
            code="unsupported",
        )
    study = Study.open(studies[0])
    columns = study.file.table.columns if study.file.table else ()
    scores = {
        suite: [column.score for column in columns if suite in column.suites]
        for suite in study.file.suites
    }
    return judged_runs(study), scores
