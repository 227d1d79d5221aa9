"""Shows the progress of a command: bars on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING

from ..progress import Progress
from .console import safe_console

if TYPE_CHECKING:
    from rich.progress import Progress as Bars
    from rich.progress import TaskID

LONGEST_SILENCE = 60
"""Seconds after which the next report of a stage is printed, however little is done."""


@contextmanager
def progress_bar() -> Iterator[Progress]:
    """Yields the callback for reports of stages; they are shown on stderr."""
    if not sys.stderr.isatty():
        yield plain_lines()
        return
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
    from rich.progress import Progress as Bars

    name, pace = TextColumn("{task.description}"), TextColumn("{task.fields[pace]}")
    with Bars(
        name, BarColumn(), MofNCompleteColumn(), pace, console=safe_console(stderr=True)
    ) as bars:
        yield _bars(bars)


def plain_lines() -> Progress:
    """Prints a line for each tenth of a stage, and for a report after a minute of silence."""
    paces: dict[str, Pace] = {}
    printed: dict[str, tuple[int, float]] = {}

    def show(stage: str, done: int, total: int) -> None:
        now, tenth = monotonic(), 10 * done // max(total, 1)
        pace = _updated_pace(paces, stage, done, now)
        last, at = printed.get(stage, (-1, now))
        if tenth != last or now - at >= LONGEST_SILENCE:
            printed[stage] = tenth, now
            texts = f"{stage}: {done}/{total}", pace.text(done, total, now)
            print(", ".join(filter(None, texts)), file=sys.stderr, flush=True)

    return show


def _bars(bars: Bars) -> Progress:
    paces: dict[str, Pace] = {}
    tasks: dict[str, TaskID] = {}

    def show(stage: str, done: int, total: int) -> None:
        now = monotonic()
        text = _updated_pace(paces, stage, done, now).text(done, total, now)
        if stage not in tasks:
            tasks[stage] = bars.add_task(stage, pace="")
        bars.update(tasks[stage], completed=done, total=total, pace=text)

    return show


def _updated_pace(paces: dict[str, Pace], stage: str, done: int, now: float) -> Pace:
    pace = paces.setdefault(stage, Pace(done, now))
    pace.report(done, now)
    return pace


class Pace:
    """Speed of a stage over its last 60 reports or 60 seconds, whichever is longer.

    A resumed stage passes its finished items at once. So items that are done at the first report
    or in the second after it do not count.
    """

    def __init__(self, done: int, now: float) -> None:
        self._restart(done, now)

    def report(self, done: int, now: float) -> None:
        """Records the items done at a time in seconds; keeps at most one report a second."""
        if done < self._reports[-1][1]:
            self._restart(done, now)
        elif now - self._begun < 1:
            self._reports[0] = (now, done)
        elif now - self._reports[-1][0] >= 1:
            self._reports.append((now, done))

    def text(self, done: int, total: int, now: float) -> str:
        """Returns the rate and the remaining time; empty before there is a rate.

        >>> pace = Pace(done=100, now=0)
        >>> pace.text(done=120, total=1700, now=6.5)
        '3.1/s, 9 min left'
        """
        since, before = self._reports[0]
        if now - since < 1 or done <= before:
            return ""
        rate = (done - before) / (now - since)
        time_left = f", {duration((total - done) / rate)} left" if done < total else ""
        return f"{rate:.1f}/s{time_left}" if rate >= 1 else f"{60 * rate:.1f}/min{time_left}"

    def _restart(self, done: int, now: float) -> None:
        self._begun = now
        self._reports = deque([(now, done)], maxlen=60)


def duration(seconds: float) -> str:
    """A time in one or two units.

    >>> [duration(s) for s in (8.4, 59.9, 500, 5400, 200_000)]
    ['8 s', '1 min', '8 min', '1 h 30 min', '2 d 8 h']
    """
    minutes, hours = round(seconds / 60), round(seconds / 3600)
    if round(seconds) < 60:
        return f"{round(seconds)} s"
    if minutes < 60:
        return f"{minutes} min"
    if hours < 48:
        return f"{minutes // 60} h {minutes % 60} min"
    return f"{hours // 24} d {hours % 24} h"
