"""What is compared with human labels, known by the paths that are named."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...errors import UsageError
from .sampling import is_run


@dataclass(frozen=True)
class LabeledSource:
    """One kind of results that human labels say something about."""

    name: str
    title: str
    """As an error names it."""
    options: frozenset[str]
    """Options that are about it, besides --labels."""
    labeled_apart: bool = True
    """Whether the labels are in a file of their own."""

    def check_options(self, passed: Iterable[str]) -> None:
        """Raises UsageError for an option that is about another kind, or missing labels."""
        passed = set(passed)
        known = self.options | ({"--labels"} if self.labeled_apart else set())
        if needless := sorted(passed - known):
            raise UsageError(
                f"{needless[0]} says nothing of {self.title}",
                "leave it out",
                code="conflicting-options",
            )
        if self.labeled_apart and "--labels" not in passed:
            raise UsageError(
                f"{self.title} are compared with human labels",
                "name their file with --labels",
                code="missing-option",
            )


VERDICTS = LabeledSource("verdicts", "verdicts of the checker", frozenset({"--sample", "--out"}))
RUNS = LabeledSource("runs", "judged runs", frozenset({"--judge"}))
SCORES = LabeledSource("scores", "scores", frozenset({"--metric", "--threshold", "--clusters"}))
RATINGS = LabeledSource("ratings", "ratings", frozenset(), labeled_apart=False)


def kind_of(sources: Sequence[str]) -> LabeledSource:
    """The kind of what is named: METHOD=FILE each, folders of runs, one file of scores, or one
    folder of ratings. Raises UsageError for anything else, and for kinds that are mixed."""
    paths = [Path(source) for source in sources]
    if all(map(is_run, paths)):
        return RUNS
    if len(paths) == 1 and paths[0].is_dir():
        return RATINGS
    if len(paths) == 1 and (paths[0].is_file() or "=" not in sources[0]):
        return SCORES
    if all("=" in source for source in sources):
        return VERDICTS
    raise UsageError(
        f"{', '.join(sources)}: these are not of one kind",
        "name verdicts as METHOD=FILE, judged runs, one file of scores or one folder of ratings",
        code="unsupported",
    )
