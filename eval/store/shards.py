"""Shards of a run or study: the cases they own, the files they write, and the locks they hold.

A process that has all of a run writes `images.jsonl`; shard 1 of 2 writes `images.1-of-2.jsonl`.
"""

from __future__ import annotations

from pathlib import Path

from ...errors import InUseError, UsageError
from ...storage import Lock

RunShard = tuple[int, int]
"""Number of a shard and the count of shards, from (1, N) to (N, N)."""


def parse_shard(text: str) -> RunShard:
    """The shard that ``I/N`` names. Raises UsageError for anything else.

    >>> parse_shard("2/8")
    (2, 8)
    """
    number, _, count = text.partition("/")
    if number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count):
        return int(number), int(count)
    raise UsageError(f"shard {text!r}: write I/N with I from 1 to N, e.g. 2/8", code="bad-option")


def shard_log(stem: str, shard: RunShard | None) -> str:
    """The file that a process writes.

    >>> shard_log("images", None), shard_log("images", (1, 2))
    ('images.jsonl', 'images.1-of-2.jsonl')
    """
    return f"{stem}.jsonl" if shard is None else f"{stem}.{shard[0]}-of-{shard[1]}.jsonl"


def shard_logs(folder: Path, stem: str) -> list[Path]:
    """The log of a whole run, there or not, and those of its shards that are there."""
    return [folder / shard_log(stem, None), *sorted(folder.glob(f"{stem}.*-of-*.jsonl"))]


def shard_name(shard: RunShard) -> str:
    """A shard in words.

    >>> shard_name((2, 8))
    'shard 2/8'
    """
    return f"shard {shard[0]}/{shard[1]}"


def owns_row(shard: RunShard | None, row: int) -> bool:
    """Whether a shard has the cases of the row with this number, from 0. The seeds of a prompt stay
    together."""
    return shard is None or shard_of_row(row, shard[1]) == shard[0]


def shard_of_row(row: int, count: int) -> int:
    """Number of the shard that has a row, from 1: every Nth row."""
    return row % count + 1


class RunLock:
    """Keeps others out of a run, or of a study: one process has all of it, or one each shard."""

    def __init__(self, root: Path, shard: RunShard | None = None, kind: str = "run") -> None:
        """Raises InUseError where another process has the run, this shard of it, or a shard of
        another number of shards, which may own the same cases."""
        place = f"the {kind} {root}"
        self._held: list[Lock] = []
        try:
            self._held.append(Lock(root / f"{kind}.lock", place, shared=shard is not None))
            if shard is not None:
                count_lock = root / f"{kind}.of-{shard[1]}.lock"
                self._held.append(Lock(count_lock, place, shared=True))
                # After our own: of two that start together, at least one sees the other.
                for path in sorted(root.glob(f"{kind}.of-*.lock")):
                    if path != count_lock:
                        _refuse_shards(path, place)
                shard_text = f"{shard_name(shard)} of {place}"
                self._held.append(Lock(root / f"{kind}.{shard[0]}-of-{shard[1]}.lock", shard_text))
        except BaseException:
            self.release()
            raise

    def __enter__(self) -> RunLock:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def release(self) -> None:
        """Lets the next process in."""
        while self._held:
            self._held.pop().release()


def _refuse_shards(path: Path, place: str) -> None:
    try:
        Lock(path, place).release()
    except InUseError:
        count = path.stem.rpartition("-")[2]
        raise InUseError(
            f"{place} is in use by shards of {count}; wait for their end, or run shards of {count}",
            code="in-use",
        ) from None
