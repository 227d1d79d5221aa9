"""Logs with lines that can't be read: what is right stays, and the rest is moved aside.

Two processes that write one log on a disk whose locks do not work, or a sync that mixed two copies,
leave lines that are no records. What they answered is not recorded any more, so the command that
made the folder asks for it again.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...agents.ledger import is_ledger_line
from ...agents.spending import SPENDING, is_ledger, is_spending_line
from ...errors import UsageError
from ...storage import Lock, write_whole
from ..store.shards import RunLock
from .run import CASES, HEADER, LEDGERS

DAMAGED = ".damaged"
"""Ending of the file that unreadable lines are moved to."""

_WHOLE = (CASES, "manifest.jsonl")
"""Files that are written whole: the command that wrote them writes them again."""


@dataclass(frozen=True)
class Repaired:
    """A log that had lines which can't be read."""

    path: Path
    """The log."""
    lines: int
    """How many of them were moved."""
    kept: int
    """How many lines are left."""

    def __str__(self) -> str:
        return (
            f"{self.path}: {self.lines:,} lines can't be read and are in {self.path.name}{DAMAGED} "
            f"now; {self.kept:,} are kept"
        )


def repair(path: Path) -> list[Repaired]:
    """Moves the unreadable lines of all logs of a run, study or race, or of an author's ledger,
    to files beside them.

    A line of spending is replaced by spaces, since others name it by its place. Raises UsageError
    where there is no log, InUseError while another process writes here.
    """
    with ExitStack() as held:
        if path.is_file():
            logs = [path, path.with_name(f"{path.stem}.{SPENDING}")]
        else:
            logs = [log for log in sorted(path.rglob("*.jsonl")) if log.name not in _WHOLE]
            for kind in ("study", "race"):
                if (path / f"{kind}.lock").exists():
                    held.enter_context(RunLock(path, kind=kind))
            for header in sorted(path.rglob(HEADER)):  # of a study, each run may be judged alone
                held.enter_context(RunLock(header.parent))
        logs = [log for log in logs if log.is_file()]
        if not logs:
            raise UsageError(f"{path}: there is no log to repair", code="no-such-file")
        for log in logs:
            if log.name.endswith(SPENDING):
                held.enter_context(Lock(log.with_suffix(".lock"), f"the money in {log}"))
            elif log.parent.name == LEDGERS or path.is_file():
                held.enter_context(Lock(log.resolve(), str(log)))
        return [done for log in logs if (done := _repair_log(log)) is not None]


def _repair_log(log: Path) -> Repaired | None:
    is_money = not is_ledger(log)
    is_right = is_spending_line if is_money else _checks(log)
    kept: list[bytes] = []
    moved: list[bytes] = []
    for line in _lines(log.read_bytes()):
        if not line.endswith(b"\n") or _is_record(line, is_right) or (line.isspace() and is_money):
            kept.append(line)  # a torn last line is cut off by who appends next
            continue
        moved.append(line)
        if is_money:
            kept.append(b" " * (len(line) - 1) + b"\n")
    if not moved:
        return None
    aside = log.with_name(f"{log.name}{DAMAGED}")
    before = aside.read_bytes() if aside.exists() else b""
    write_whole(aside, before + b"".join(moved))
    write_whole(log, b"".join(kept))
    return Repaired(log, len(moved), len(kept) - (len(moved) if is_money else 0))


def _checks(log: Path) -> Callable[[dict[str, Any]], bool]:
    """What a record of a log must be: of a ledger a line of it, of others any object."""
    with log.open("rb") as file:
        has_calls = b'"completion"' in file.read(1 << 20)
    return is_ledger_line if log.parent.name == LEDGERS or has_calls else bool


def _lines(data: bytes) -> list[bytes]:
    *whole, torn = data.split(b"\n")
    return [line + b"\n" for line in whole] + ([torn] if torn else [])


def _is_record(line: bytes, is_right: Callable[[dict[str, Any]], bool]) -> bool:
    try:
        record = json.loads(line.decode("utf-8"))
    except (ValueError, RecursionError):
        return False
    return isinstance(record, dict) and is_right(record)
