"""Events of a study's cells, written by each of its processes and read as one log.

A process that has all of a study writes `cells.jsonl`, each shard `cells.I-of-N.jsonl`. A cell is
done where one process did all of it, or where all shards of one number did their parts, of the
images as they are now. A judge fails in a cell only where it failed on every question: a part in
which all of them were errors is one of a cell that is done, if the judge answered elsewhere.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ...parsing import parse_as
from ..engine.run import Run
from ..store.answers import AnswerLog
from ..store.shards import RunShard, shard_name
from .spec import Cell

NAMED = 3
"""Shards that are named one by one."""


@dataclass(frozen=True)
class StudyEvent:
    """Event of a cell, or of one shard of it."""

    cell: str
    """Its key."""
    state: Literal["begun", "failed", "done"]
    shard: RunShard | None = None
    """None for all of the cell."""
    cause: str = ""
    """Why it failed."""
    asked: list[str] | None = None
    """`Cell.asked` if everything was asked: when it is done, and when it failed because every
    answer was an error."""
    images: str = ""
    """Digest of the images that it was asked about."""
    questions: int = 0
    """Count of questions."""
    errors: int = 0
    """Count of questions that the judge failed on."""

    def to_record(self) -> dict[str, Any]:
        record: dict[str, Any] = {"cell": self.cell, "state": self.state}
        if self.shard:
            record["shard"] = list(self.shard)
        if self.state == "failed":
            record["cause"] = self.cause
        if self.asked is not None:
            fields = ("asked", "images", "questions", "errors")
            record |= {name: getattr(self, name) for name in fields}
        return record

    @classmethod
    def from_record(cls, record: dict[str, Any], place: str) -> StudyEvent:
        """The inverse of `to_record`. Raises DataError for anything else."""
        return parse_as(cls, record, place)


CELLS = "cells"
"""Name of the log of events, and the first part of those of shards."""


class StudyEvents:
    """Every event of a study's cells, as far as this process has read or written it."""

    def __init__(self, root: Path, shard: RunShard | None = None) -> None:
        """shard: which part this process does, if it writes."""
        self.answers = AnswerLog(root, CELLS, StudyEvent, key="cell", shard=shard)
        self._shard = shard

    def add(
        self,
        cell: Cell,
        state: Literal["begun", "failed", "done"],
        cause: str = "",
        **completion: Any,
    ) -> None:
        """Writes an event of a cell, or of this process' shard of it. completion: see
        `completion_record`."""
        self.answers.append(StudyEvent(cell.key, state, self._shard, cause, **completion))

    def completion_record(
        self, cell: Cell, run: Run, questions: int, errors: int
    ) -> dict[str, Any]:
        """Fields of an event after everything was asked, about the images as they are."""
        return {
            "asked": cell.asked,
            "images": _digest(_images_of_shard(run, self._shard)),
            "questions": questions,
            "errors": errors,
        }

    def of(self, cell: Cell) -> dict[RunShard | None, StudyEvent]:
        """The newest event of each shard, or of who did all of it: None.

        What ended in another division of the work has no say any more, unless it was done.
        """
        newest: dict[RunShard | None, StudyEvent] = {}
        for event in self.answers.of(cell.key):
            newest = {
                shard: previous
                for shard, previous in newest.items()
                if previous.state == "done" or _count(shard) == _count(event.shard)
            }
            newest.pop(event.shard, None)  # so that the newest comes last
            newest[event.shard] = event
        return newest

    def is_done(self, cell: Cell, run: Run, present: Mapping[str, str]) -> bool:
        """Whether all of a cell is there. present: the run's images as they are."""
        return next(self._ends(cell, run, present.items), None) is not None

    def is_own_done(self, cell: Cell, run: Run) -> bool:
        """Whether nothing is left of this process' part, and nothing failed that may go better.

        run: opened with this process' shard.
        """
        own_event = self.of(cell).get(self._shard)
        if own_event is not None and _fits(
            own_event, cell, _digest(_images_of_shard(run, self._shard))
        ):
            return not own_event.errors
        ends = self._ends(cell, run, run.iter_present)
        return any(not any(event.errors for event in events) for events in ends)

    def _ends(
        self, cell: Cell, run: Run, present: Callable[[], Iterable[tuple[str, str]]]
    ) -> Iterator[list[StudyEvent]]:
        """Events that together say that all of a cell is there: one, or one of each shard."""
        events = self.of(cell)
        undivided = events.get(None)
        if undivided and undivided.state == "done" and _fits(undivided, cell, _digest(present())):
            yield [undivided]
        for count in {shard[1] for shard in events if shard}:
            shards = [(index, count) for index in range(1, count + 1)]
            if not all(shard in events for shard in shards):
                continue
            shard_of_case = run.shards_of_cases(count)
            digests = {index: ImagesDigest() for index, _ in shards}
            for case, sha in present():
                digests[shard_of_case[case]].add(case, sha)
            shard_events = [events[shard] for shard in shards]
            if any(event.state == "done" for event in shard_events) and all(
                _fits(events[shard], cell, str(digests[shard[0]])) for shard in shards
            ):
                yield shard_events

    def cause(self, cell: Cell) -> str:
        """Errors that ended a cell or shards of it, in words; empty without any."""
        causes: dict[str, list[str]] = {}
        for shard, event in self.of(cell).items():
            if event.state == "failed":
                causes.setdefault(event.cause, []).append(shard_name(shard) if shard else "")
        return "; ".join(f"{_listed(who)}: {why}".removeprefix(": ") for why, who in causes.items())

    def questions(self, cell: Cell) -> int:
        """Questions that were counted when it was done, or its parts; 0 before."""
        counts: dict[int, int] = {}
        for shard, event in self.of(cell).items():
            counts[_count(shard)] = counts.get(_count(shard), 0) + event.questions
        return max(counts.values(), default=0)

    def unfinished(self, cell: Cell) -> str:
        """Shards of a cell that failed or are not done, in words; empty without any."""
        events = self.of(cell)
        newest = next(reversed(events), None)
        count = _count(newest)
        lost = [
            shard_name(shard)
            for shard in ((index, count) for index in range(1, count + 1))
            if shard not in events or events[shard].state != "done"
        ]
        return f" ({_listed(lost)} not done)" if lost else ""


class ImagesDigest:
    """Digest of cases and their images, independent of their order; holds none of them."""

    def __init__(self) -> None:
        self._sum = 0

    def add(self, case: str, sha: str) -> None:
        """sha: of the image's file."""
        digest = hashlib.sha256(f"{case} {sha}".encode()).digest()
        self._sum = (self._sum + int.from_bytes(digest[:8])) % (1 << 64)

    def __str__(self) -> str:
        return f"{self._sum:016x}"


def _images_of_shard(run: Run, shard: RunShard | None) -> Iterator[tuple[str, str]]:
    """The images as they are, of all cases or of those of the shard that a run is opened with."""
    return run.iter_present(run.own_cases() if shard else None)


def _fits(event: StudyEvent, cell: Cell, images: str) -> bool:
    """Whether an event says that everything was asked about the images with this digest, as the
    cell asks it."""
    return event.asked == cell.asked and event.images == images


def _digest(images: Iterable[tuple[str, str]]) -> str:
    """Digest of the images that were judged."""
    digest = ImagesDigest()
    for case, sha in images:
        digest.add(case, sha)
    return str(digest)


def _count(shard: RunShard | None) -> int:
    return shard[1] if shard else 0


def _listed(shards: list[str]) -> str:
    remaining = len(shards) - NAMED
    return ", ".join(shards[:NAMED]) + (f" and {remaining:,} more" if remaining > 0 else "")
