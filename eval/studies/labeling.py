"""Images of a study for human annotators: its runs, and the scores of its table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ...errors import UsageError
from .status import judged_runs, the_study


def runs_to_label(
    paths: Sequence[Path], kind: str
) -> tuple[list[Path], Mapping[str, Sequence[str]] | None]:
    """Returns the paths, or in place of a study's folder its runs with the scores of its table.

    The scores are by suite, and None for paths without a study. Raises UsageError for a study among
    other paths or for another kind than `judge`, RunError for one that isn't done.
    """
    study = the_study(paths)
    if study is None:
        return list(paths), None
    if kind != "judge":
        raise UsageError(
            f"{study.root} is a study, of which only --kind judge can be labeled",
            f"name folders of {study.root}/runs",
            code="unsupported",
        )
    columns = study.file.table.columns if study.file.table else ()
    scores = {
        suite: [column.score for column in columns if suite in column.suites]
        for suite in study.file.suites
    }
    return judged_runs(study), scores
