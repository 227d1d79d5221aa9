"""Money of paid calls, set aside and spent: an append-only file that all processes of a run share.

Before an attempt that may be billed, its worst case is appended as an *intent*; afterwards a line
closes it with what it cost. An intent that nothing closes counts at its worst case, on every later
run too, until a person settles it: a kill, a cut connection or a time-out frees no money.

Whoever appends holds the file's lock and has read what others appended, so that no two processes
give out the same money. Where two append at once all the same, because the disk's locks do not
work, both lines stay whole, at least one process notices it, and its run ends. An append reaches
the system at once, but not the disk: a process that dies loses nothing. A power cut may lose the
last lines; what they closed is found again in the ledgers, whose answers are on disk, and attempts
that are known to be lost are synced. So it forgets at most the attempts that were under way.

{"intent": CALL, "in": SOURCE, "usd": "0.05"}                         its id is its first byte
{"closes": [IDS], "in": SOURCE, "usd": "0.01", "recorded": true}      what they came to together
{"lost": [IDS]}                                                       may be billed; nobody waits
{"found": SOURCE, "usd": "2.5"}                                       in a ledger, not in this file
{"price": MODEL, "of": {"input": "1", "output": "2"}}                 what it counts at

A line of spaces stands in place of one that could not be read, see `engine.repair`.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, field
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from ..errors import DataError, RunFailed
from ..storage import Lock, Turns, append_bytes
from .chat import Usage

SPENDING = "spending.jsonl"
"""Name of the file in a folder of ledgers."""

MARGIN = 2
"""How much more than seen a source may cost that once cost more than its worst case: what a server
adds to one answer it adds to a longer one as well."""

LEAST = Decimal("1e-9")
"""US dollars below which two sums are the same: sums of long decimals differ in their last digit
by the order of the summands."""


def spending_file(ledger: Path) -> Path:
    """Where the money of a ledger that stands alone is: beside it."""
    return ledger.with_name(f"{ledger.stem}.{SPENDING}")


def is_ledger(path: Path) -> bool:
    """Whether a JSONL file among ledgers is one, and not the money of one."""
    return path.name != SPENDING and not path.name.endswith(f".{SPENDING}")


@dataclass(frozen=True)
class Charge:
    """Cost in US dollars, or the usage to price later."""

    usd: Decimal | None
    """None if no price is known."""
    identity: Mapping[str, str] = field(default_factory=dict)
    """Without a price: what answers."""
    usage: Usage | None = None
    """Without a price: the tokens of a call."""
    image: str = ""
    """Without a price: `image` or `edit`, a field of `ImagePrice`."""

    def to_record(self) -> dict[str, Any]:
        """Plain values, those that say something."""
        if self.usd is not None:
            return {"usd": str(self.usd)}
        unpriced = (
            {"image": self.image} if self.image else {"usage": asdict(self.usage or Usage(0, 0))}
        )
        return {"identity": dict(self.identity), **unpriced}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Charge:
        """The inverse of `to_record`. Raises ValueError, KeyError or TypeError for others."""
        if "usd" in record:
            return cls(read_usd(record["usd"]))
        identity = {str(name): str(value) for name, value in record["identity"].items()}
        if "image" in record:
            return cls(None, identity, image=str(record["image"]))
        return cls(None, identity, Usage(**record["usage"]))


FREE = Charge(Decimal(0))


def is_spending_line(record: Mapping[str, Any]) -> bool:
    """Whether a record can be a line of the file."""
    try:
        if "lost" in record:
            return all(type(number) is int for number in record["lost"])
        if "price" in record:
            return isinstance(record["price"], str) and bool(_read_units(record["of"]))
        Charge.from_record(record)
        numbers = record.get("closes", ())
        is_named = isinstance(record["found" if "found" in record else "in"], str)
        return is_named and all(type(number) is int for number in numbers)
    except (ValueError, KeyError, TypeError, AttributeError):
        return False


def read_usd(text: Any) -> Decimal:
    """An amount as files hold it. Raises ValueError unless it is a number of 0 or more."""
    try:
        usd = Decimal(text) if isinstance(text, str) else None
    except InvalidOperation:
        usd = None
    if usd is None or not usd.is_finite() or usd < 0:
        raise ValueError(f"{text!r} is not an amount of money")
    return usd


def _read_units(units: Mapping[str, Any]) -> dict[str, Decimal]:
    """What a model's units cost. Raises ValueError or AttributeError for anything else."""
    return {name: read_usd(usd) for name, usd in units.items()}


@dataclass(frozen=True)
class Intent:
    """An attempt that may be billed."""

    id: int
    """First byte of its line."""
    source: str
    """Where its answer will be recorded: a ledger's name, or a log of images."""
    call: str
    """Id of its call or image."""
    worst: Decimal
    """The most that it can cost, US dollars; 0 if no price is known."""
    is_priced: bool = True


def _without_shard(source: str) -> str:
    """A ledger's name, the same for all shards of a run."""
    return _SHARD.sub("", source)


_SHARD = re.compile(r"(\.\d+-of-\d+)?\.jsonl$")

Value = Callable[[Charge], Decimal | None]
"""A charge in US dollars; None, or an error, where it has no known price."""


class SpendingError(RunFailed):
    """A file of spending that can't be written or read: it ends a run, and is no failure of the one
    call or image that it would have been of."""


class SpendingLog:
    """The file, and what it comes to; safe to use from threads and processes."""

    def __init__(self, path: Path | None, value: Value, alone: bool = False) -> None:
        """Nothing is opened or made before the first turn; without a path nothing outlives it.

        `alone` keeps all other processes out: what is open then is nobody's.
        """
        self.path = path
        self._alone = alone
        self._value = value
        self._threads = threading.Lock()
        self._file: int | None = None
        self._turns: Turns | None = None
        self._owner = 0
        self._ends: list[Callable[[], object]] = []
        self._end = self._lines = 0
        self.closed = Decimal(0)
        """Cost of all closed intents, and of the calls found in ledgers."""
        self.unpriced = 0
        """How many of the closed intents and of the sums from ledgers have no known price."""
        self.prices: dict[str, dict[str, Decimal]] = {}
        """Model (`kind:model`) -> what its units were last counted at, by name, US dollars."""
        self._factors: dict[str, Decimal] = {}
        self._held: dict[str, Decimal] = {}  # source -> worst cases of its open intents
        self.open: dict[int, Intent] = {}
        """Intents that nothing has closed, by id."""
        self.lost: set[int] = set()
        """Open intents whose answers nobody waits for."""
        self.recorded: dict[str, Decimal] = {}
        """Source -> the part of its recorded costs that this file knows of."""

    @property
    def held(self) -> Decimal:
        """Worst cases of the open intents, US dollars, each raised by what its source is known to
        cost above them."""
        return self._raised(self._held)

    def held_for(self, intents: Iterable[int]) -> Decimal:
        """The same for some of them."""
        sums: dict[str, Decimal] = {}
        for intent in intents:
            source = self.open[intent].source
            sums[source] = sums.get(source, Decimal(0)) + self.open[intent].worst
        return self._raised(sums)

    def _raised(self, sums: Mapping[str, Decimal]) -> Decimal:
        return sum((usd * self.factor(source) for source, usd in sums.items()), Decimal(0))

    def factor(self, source: str) -> Decimal:
        """What to multiply worst cases of a source by, in all shards: 1 until an answer cost more
        than its worst case, then `MARGIN` times the most that one did."""
        return self._factors.get(_without_shard(source), Decimal(1))

    def is_known(self, source: str) -> bool:
        """Whether a source has had an answer that was no free rejection."""
        return _without_shard(source) in self._factors

    @property
    def total(self) -> Decimal:
        """Upper bound of the money spent, US dollars, as far as the file was read."""
        return self.closed + self.held

    @property
    def exists(self) -> bool:
        """Whether anything was ever written."""
        return self._file is not None or (self.path is not None and self.path.exists())

    @contextmanager
    def turn(self) -> Iterator[None]:
        """This thread's turn to write: all that others wrote is read, and nobody else writes.

        Raises DataError for a damaged file, InUseError if another process keeps all others out,
        SpendingError if the disk fails.
        """
        with self._threads:
            try:
                file = self._opened()
                with nullcontext() if self._turns is None else self._turns.turn(file):
                    self._read(file)
                    yield
            except OSError as error:
                raise SpendingError(
                    f"{error.filename or self.path}: {(error.strerror or str(error)).lower()}: "
                    f"nothing is paid that can't be recorded; mend that and run the same command "
                    f"again",
                    code="cannot-record",
                ) from error

    def intend(self, source: str, call: str, worst: Charge) -> Intent:
        """Appends an intent to spend; call it only while holding the turn (`turn()`)."""
        place = self._end
        self._append({"intent": call, "in": source, **worst.to_record()})
        return self.open[place]

    def close(
        self, intents: Sequence[int], source: str, cost: Charge, recorded: bool = False
    ) -> None:
        """Closes intents with what they came to together; in a turn.

        `recorded` where that cost is in the source as well.
        """
        line = {"closes": list(intents), "in": source, **cost.to_record()}
        self._append(line | ({"recorded": True} if recorded else {}))

    def lose(self, intents: Sequence[int]) -> None:
        """Leaves intents open for a person to settle, on disk; in a turn."""
        self._append({"lost": list(intents)})
        os.fsync(self._opened())

    def settle(self, usd: Decimal) -> None:
        """Closes all that is open with what it came to together, on disk; in a turn."""
        self.close(list(self.open), "", Charge(usd))
        os.fsync(self._opened())

    def count_at(self, prices: Mapping[str, Mapping[str, Decimal]]) -> None:
        """Records what the units of models count at from here on, where it changes; in a turn."""
        for model, units in prices.items():
            if self.prices.get(model) != units:
                of = {name: str(usd) for name, usd in units.items()}
                self._append({"price": model, "of": of})

    def find(self, source: str, missing: Decimal) -> None:
        """Counts what a source recorded that this file doesn't know of; in a turn."""
        self._append({"found": source, **Charge(missing).to_record()})

    def finish(self) -> None:
        """Closes the file and lets a person settle; the next turn opens it again."""
        with self._threads:
            for end in self._ends:
                end()
            self._ends, self._file = [], None

    def _opened(self) -> int:
        if self._file is not None and self._owner != os.getpid() and self.path is not None:
            self._file = None  # a forked process shares its parent's lock: it needs its own
        if self._file is None:
            self._owner = os.getpid()
            if self.path is None:
                number, name = tempfile.mkstemp()
                os.unlink(name)
            else:
                flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
                self.path.parent.mkdir(parents=True, exist_ok=True)
                subject = f"the money in {self.path}"
                used = Lock(self.path.with_suffix(".lock"), subject, shared=not self._alone)
                self._ends.append(weakref.finalize(self, used.release))
                number = os.open(self.path, flags, 0o644)
                self._turns = Turns(self.path)
            # Nobody ends a budget: its files are closed when nobody holds it.
            self._ends.append(weakref.finalize(self, os.close, number))
            self._file = number
        return self._file

    def _append(self, line: Mapping[str, Any]) -> None:
        file = self._opened()
        data = json.dumps(line, sort_keys=True, separators=(",", ":")).encode() + b"\n"
        if self.path is None:  # nobody else has it
            os.lseek(file, self._end, os.SEEK_SET)
        append_bytes(file, data, self._end, self.path or Path(SPENDING))
        self._read(file)

    def _read(self, file: int) -> None:
        """Reads what was appended since; a last line without its line feed is cut off."""
        size = os.fstat(file).st_size
        if size == self._end:
            return
        *lines, torn = os.pread(file, size - self._end, self._end).split(b"\n")
        for line in lines:
            try:
                if not line.isspace():
                    self._apply(json.loads(line))
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
                raise DataError(
                    f"{self.path}:{self._lines + 1}: not a line of spending; restore the file, "
                    "or run `counterprior doctor FOLDER --repair`",
                    code="damaged-log",
                ) from None
            self._end += len(line) + 1
            self._lines += 1
        if torn:  # who wrote it has died: writers hold the lock
            os.ftruncate(file, self._end)

    def _apply(self, line: Mapping[str, Any]) -> None:
        if "lost" in line:
            self.lost |= self.open.keys() & set(line["lost"])
            return
        if "price" in line:
            self.prices[str(line["price"])] = _read_units(line["of"])
            return
        value = self._value(Charge.from_record(line))
        usd = value or Decimal(0)
        if "intent" in line:
            intent = Intent(self._end, str(line["in"]), str(line["intent"]), usd, value is not None)
            self.open[self._end] = intent
            self._held[intent.source] = self._held.get(intent.source, Decimal(0)) + usd
            return
        source = str(line["found"] if "found" in line else line["in"])
        worst = Decimal(0)
        for number in line.get("closes", ()):
            self.lost.discard(number)
            if closed := self.open.pop(number, None):
                worst += closed.worst
                self._held[closed.source] -= closed.worst
        if line.get("recorded") and (usd or not worst):  # a free rejection shows nothing
            above = MARGIN * usd / worst if worst and usd > worst else Decimal(1)
            self._factors[_without_shard(source)] = max(above, self.factor(source))
        self.closed += usd
        self.unpriced += value is None
        if line.get("recorded") or "found" in line:
            self.recorded[source] = self.recorded.get(source, Decimal(0)) + usd
