"""The first table of a report: generators down, suites across."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

from markupsafe import Markup

from ..core import describe
from ..results.contents import RunContents
from ..results.leaderboard import Leaderboard, Standing
from .strips import PlotPoint, ValueAxis, end_numbers, strip


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
    """Short description of the generator."""
    cells: Sequence[Sequence[Ranked]]
    """For each leaderboard; several where judges are mixed, empty where it did not run."""


def overview(runs: Sequence[RunContents], boards: Sequence[Leaderboard]) -> list[OverviewLine]:
    """A line for each generator, with a cell for each leaderboard.

    Best mean rank first; where these tie, in the mean order of their scores.
    """
    ranked = [rank_all(board) for board in boards]
    lines = []
    for name, of_suites in _generators(runs).items():
        run_names = {suite: run.name for suite, run in of_suites.items()}
        cells = [
            [entry for entry in entries if run_names.get(board.suite) == entry.standing.judged.name]
            for board, entries in zip(boards, ranked, strict=True)
        ]
        about = describe(next(iter(of_suites.values())).run.header.generator)
        lines.append(OverviewLine(name, about, cells))
    places = {id(entry): place for entries in ranked for place, entry in enumerate(entries)}

    def order(line: OverviewLine) -> tuple[float, float, str]:
        entries = [entry for cell in line.cells for entry in cell if entry.standing.best]
        if not entries:
            return math.inf, math.inf, line.name
        return (
            mean(entry.standing.best for entry in entries),
            mean(places[id(entry)] for entry in entries),
            line.name,
        )

    return sorted(lines, key=order)


def rank_all(board: Leaderboard) -> list[Ranked]:
    """The standings of a leaderboard with their strips."""
    axis = _axis(board)
    return [Ranked(standing, _strip(standing, axis)) for standing in board.standings]


def axis_of(board: Leaderboard) -> Markup:
    """The ends of the axis of a leaderboard's strips."""
    return end_numbers(_axis(board))


def _axis(board: Leaderboard) -> ValueAxis:
    return ValueAxis.of([standing.score for standing in board.standings])


def _strip(standing: Standing, axis: ValueAxis) -> Markup:
    return strip(PlotPoint(standing.score, 0, standing.name), axis)


def _generators(runs: Sequence[RunContents]) -> dict[str, Mapping[str, RunContents]]:
    """Name -> suite -> its run. Runs of two suites are of one generator where their generators have
    one identity, or one name in one study: otherwise a folder's name identifies nothing."""
    by_name: dict[str, dict[str, RunContents]] = {}
    for run in runs:
        last = run.name.rpartition("/")[2]
        identity = dict(run.run.header.generator)
        for name, members in by_name.items():
            alike = any(
                dict(member.run.header.generator) == identity
                or (name == last and _study(member) == _study(run) is not None)
                for member in members.values()
            )
            if run.suite.name not in members and alike:
                members[run.suite.name] = run
                break
        else:
            by_name[run.name if last in by_name else last] = {run.suite.name: run}
    return {name: of_suites for name, of_suites in by_name.items()}


def _study(run: RunContents) -> Path | None:
    """The folder of a study's runs that a run lies in."""
    suite = run.run.root.absolute().parent
    return suite.parent if suite.name == run.suite.name else None
