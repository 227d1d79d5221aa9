"""The first table of a report: generators down, suites across."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from ..core import describe
from ..results.contents import RunContents
from ..results.leaderboard import Leaderboard, Standing
from .strips import PlotPoint, ValueAxis, strip


@dataclass(frozen=True)
class Ranked:
    """A standing with its strip over the axis of its leaderboard."""

    standing: Standing
    strip: Markup


@dataclass(frozen=True)
class OverviewLine:
    """One generator, in all suites that it ran on."""

    name: str
    about: str
    """The generator in a few words."""
    cells: Sequence[Sequence[Ranked]]
    """For each leaderboard; several where judges are mixed, none where it did not run."""


def overview(runs: Sequence[RunContents], boards: Sequence[Leaderboard]) -> list[OverviewLine]:
    """A line for each generator, best mean rank first, with a cell for each leaderboard."""
    ranked = [rank_all(board) for board in boards]
    lines = []
    for name, of_suites in _generators(runs).items():
        names = {suite: run.name for suite, run in of_suites.items()}
        cells = [
            [one for one in part if names.get(board.suite) == one.standing.judged.name]
            for board, part in zip(boards, ranked, strict=True)
        ]
        about = describe(next(iter(of_suites.values())).run.header.generator)
        lines.append(OverviewLine(name, about, cells))
    return sorted(lines, key=_mean_rank)


def rank_all(board: Leaderboard) -> list[Ranked]:
    """The standings of a leaderboard with their strips."""
    axis = ValueAxis.of([standing.score for standing in board.standings])
    return [Ranked(one, _strip(one, axis)) for one in board.standings]


def _strip(standing: Standing, axis: ValueAxis) -> Markup:
    return strip(PlotPoint(standing.score, 0, standing.name), axis)


def _mean_rank(line: OverviewLine) -> tuple[float, str]:
    ranks = [one.standing.best for cell in line.cells for one in cell if one.standing.best]
    return (sum(ranks) / len(ranks) if ranks else float(len(line.cells) + 1e6), line.name)


def _generators(runs: Sequence[RunContents]) -> dict[str, Mapping[str, RunContents]]:
    """Name -> suite -> its run. Runs of two suites are of one generator where their generators have
    one identity, or one name in one study: elsewhere a folder's name says nothing."""
    found: dict[str, dict[str, RunContents]] = {}
    for run in runs:
        last = run.name.rpartition("/")[2]
        made = dict(run.run.header.generator)
        for name, others in found.items():
            alike = any(
                dict(other.run.header.generator) == made
                or (name == last and _study(other) == _study(run) is not None)
                for other in others.values()
            )
            if run.suite.name not in others and alike:
                others[run.suite.name] = run
                break
        else:
            found[run.name if last in found else last] = {run.suite.name: run}
    return {name: of_suites for name, of_suites in found.items()}


def _study(run: RunContents) -> Path | None:
    """The folder of a study's runs that a run lies in."""
    suite = run.run.root.absolute().parent
    return suite.parent if suite.name == run.suite.name else None
