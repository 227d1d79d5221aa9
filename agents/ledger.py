"""The call ledger: an append-only JSONL file of every paid model call.

A call is identified by its *logical* id (`r07/critic/attempt0`, or a judge's item, seed and probe),
so neither parallel work nor an SDK upgrade disturbs it. If id and specification match a recorded
call, its answer is used and nothing is paid. If only the id matches, `DriftError` shows a diff.

A call may have several answers: one that was an `error` and was made again, or those of two
processes that a disk without locks let in. The first that is no error is the one that is used, else
the newest; all of them were paid.

Lines are ASCII JSON with sorted keys. `run` lines hold the inputs of a whole run, so that a replay
needs nothing else. `batch` lines name batches that were sent. `text` lines hold what calls share
(system prompts, schemas, long parts of questions); call lines refer to them by SHA-256.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO, cast, get_args

from ..errors import DataError
from ..storage import Lock, RecordError, append_bytes, cut_torn_line, read_places, write_whole
from .chat import CallOutcome, ChatRequest, Completion, Usage
from .spending import Charge, read_usd

DIFF_LINES = 60
"""Lines of a diff that an error message shows."""

SHARED_FROM = 2000
"""Length in characters from which a part of a question is stored as a text of its own."""


class LedgerError(DataError):
    """A ledger that can't be read or written; the message names file and line."""


class DriftError(LedgerError):
    """A recorded call is made again with another specification."""


@dataclass(frozen=True)
class CallRecord:
    """One recorded call."""

    id: str
    """Its logical id."""
    spec: str
    """SHA-256 of identity and request."""
    identity: Mapping[str, str]
    """Identity of the answerer."""
    role: str
    """Role that asked."""
    completion: Completion
    """The response."""
    usd: str | None
    """Its price in US dollars as a decimal; None if none is known. Attempts that were lost
    before it are in the spending log."""

    @property
    def cost(self) -> Charge:
        """Cost, as the spending log counts it."""
        if self.usd is not None:
            return Charge(Decimal(self.usd))
        return Charge(None, self.identity, self.completion.usage or Usage(0, 0))


class Ledger:
    """The recorded calls of one run, by id; safe to use from threads, by one process at a time."""

    def __init__(
        self, path: Path, *, read_only: bool = False, siblings: Iterable[Path] = ()
    ) -> None:
        """Opens or creates the file; a last line without its line feed is dropped.

        siblings: ledgers of the same run, whose calls are found here too, as they are now; what is
        appended goes into this one. Raises LedgerError if a file is damaged, InUseError if another
        process writes this one.
        """
        self.path = path
        self._lock = threading.Lock()
        self._syncing = threading.Lock()
        self._synced = 0
        self._places: dict[str, tuple[int, int]] = {}
        self._repeated: dict[str, list[tuple[int, int]]] = {}
        """Call -> its answers in the order of the file, where there are several."""
        self._failed: set[str] = set()
        self._texts: dict[str, str] = {}
        self._runs: dict[str, Any] = {}
        self._batches: dict[str, dict[str, str]] = {}
        if read_only and not path.is_file():
            raise LedgerError(
                f"{path}: no such ledger; record one by a run without --replay", code="no-such-file"
            )
        # The lock is on the ledger itself; it may be reached through a link.
        self._claim = None if read_only else Lock(path.resolve(), str(path))
        self._siblings: list[Ledger] = []
        try:
            self._end = self._load()
            for elder in siblings:
                self._siblings.append(Ledger(elder, read_only=True))
        except BaseException:
            for opened in self._siblings:
                opened.close()
            self._release()
            raise
        # Not a `RecordLog`: threads share one wait for the disk here, and need a record's place.
        self._file: BinaryIO | None = None if read_only else path.open("a+b", buffering=0)
        self._reader = path.open("rb")
        if self._file is not None:
            cut_torn_line(self._file)

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, call_id: str) -> bool:
        return call_id in self._places or any(call_id in elder for elder in self._siblings)

    def close(self) -> None:
        """Closes the file and lets another process use it."""
        for elder in self._siblings:
            elder.close()
        self._reader.close()
        if self._file is not None:
            self._file.close()
        self._release()

    def _release(self) -> None:
        if self._claim is not None:
            self._claim.release()
            self._claim = None

    def has_run(self, run: str) -> bool:
        """Whether inputs of a run are recorded."""
        return run in self._runs

    def inputs(self, run: str) -> Any:
        """The recorded inputs of a run. Raises LedgerError if no run of that name is recorded."""
        if run not in self._runs:
            raise LedgerError(f"{self.path}: has no recorded run of {run}", code="not-recorded")
        return self._runs[run]

    def bind(self, run: str, inputs: Any) -> None:
        """Records the inputs of a run. Raises DriftError if other inputs are recorded for it."""
        inputs = json.loads(_dump(inputs))
        if run not in self._runs:
            with self._lock:
                self._write(_dump({"run": run, "inputs": inputs}))
                self._runs[run] = inputs
        elif self._runs[run] != inputs:
            raise DriftError(
                self._changed(f"the run of {run}", self._runs[run], inputs), code="changed-call"
            )

    def open_batch(self, batch: str, calls: Mapping[str, str]) -> None:
        """Records that calls were sent as a batch, on disk when this returns.

        calls: id -> `spec_hash`. It replaces an earlier record of the same batch.
        """
        with self._lock:
            self._write(_dump({"batch": batch, "calls": dict(calls)}))
            self._batches[batch] = dict(calls)
            end = self._end
        self._sync(end)

    def batches(self) -> dict[str, dict[str, str]]:
        """Batches that were sent, with the ids of their calls and what each asked, as `spec_hash`;
        empty where an earlier version sent it."""
        return dict(self._batches)

    def find(
        self, call_id: str, identity: Mapping[str, str], request: ChatRequest
    ) -> CallRecord | None:
        """The recorded call, or None. Raises DriftError if its specification was another."""
        holder = self._holder(call_id)
        if holder is None:
            return None
        record = holder.record(call_id)
        if record.spec != spec_hash(identity, request):
            line = holder._line(*holder._places[call_id])
            raise DriftError(holder._drift(line, identity, request), code="changed-call")
        return record

    def record(self, call_id: str) -> CallRecord:
        """A call that is recorded in this file. Raises LedgerError if its line is damaged."""
        return self._at(call_id, self._places[call_id])

    def _at(self, call_id: str, place: tuple[int, int]) -> CallRecord:
        try:
            return _record(self._line(*place))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise LedgerError(
                f"{self._where(place)}: call {call_id} can't be read; restore the line, or run "
                "`counterprior doctor FILE --repair` to ask again",
                code="damaged-log",
            ) from None

    def cost_of(self, name: str) -> Charge | None:
        """Returns the cost of an answer of this file by its name; None if the file lacks it."""
        call_id, _, number = name.partition(_ANSWER)
        places = self._answers(call_id)
        at = int(number) - 1 if number.isdecimal() else 0
        return self._at(call_id, places[at]).cost if at < len(places) else None

    def next_name(self, call_id: str) -> str:
        """Name of the next answer to a call, by which its money is set aside: the call's id for the
        first, `ID/answer2` for the second."""
        return _name(call_id, len(self._answers(call_id)))

    def _answers(self, call_id: str) -> list[tuple[int, int]]:
        """Places of all answers to a call in this file."""
        if call_id in self._repeated:
            return self._repeated[call_id]
        return [self._places[call_id]] if call_id in self._places else []

    def _holder(self, call_id: str) -> Ledger | None:
        holders = [ledger for ledger in (self, *self._siblings) if call_id in ledger._places]
        good = (ledger for ledger in holders if call_id not in ledger._failed)
        return next(good, holders[0] if holders else None)

    def _where(self, place: tuple[int, int]) -> str:
        before = os.pread(self._reader.fileno(), place[0], 0)
        return f"{self.path}:{before.count(10) + 1}"

    def append(
        self,
        call_id: str,
        identity: Mapping[str, str],
        request: ChatRequest,
        completion: Completion,
        usd: str | None,
    ) -> None:
        """Records a call, on disk when this returns. Raises LedgerError for an id that is recorded
        with an answer other than an error."""
        if self._file is None:
            raise LedgerError(
                f"{self.path}: opened for replay, can't record {call_id}", code="not-recorded"
            )
        form, texts = _form(request)
        line = _dump(
            {
                "id": call_id,
                "spec": spec_hash(identity, request),
                "identity": dict(identity),
                "request": form,
                "completion": {**asdict(completion), "raw": dict(completion.raw)},
                "usd": usd,
            }
        )
        with self._lock:
            if call_id in self._places and call_id not in self._failed:
                raise LedgerError(
                    f"{self.path}: call {call_id} is recorded already", code="duplicate-id"
                )
            for sha, text in texts.items():
                if sha not in self._texts:
                    self._write(_dump({"text": text}))
                    self._texts[sha] = text
            self._add(call_id, self._write(line), completion.outcome)
            end = self._end
        self._sync(end)

    def records(self) -> Iterator[CallRecord]:
        """Every call of this file, sorted by id."""
        for call_id in sorted(self._places):
            yield self.record(call_id)

    def costs(self) -> Iterator[tuple[str, Charge]]:
        """Every answer of this file, by its name, with what it cost."""
        for call_id in sorted(self._places):
            for number, place in enumerate(self._answers(call_id)):
                yield _name(call_id, number), self._at(call_id, place).cost

    def identities(self, role: str | None = None) -> list[dict[str, str]]:
        """The models that answered `role`, or anybody, each once."""
        identities = {_dump(r.identity) for r in self.records() if role in (None, r.role)}
        return [json.loads(identity) for identity in sorted(identities)]

    def canonical_lines(self) -> Iterator[str]:
        """The ledger in its published form: runs, texts, calls, each sorted.

        It doesn't depend on the order of the calls, or on whether they were sent in a batch.
        """
        for run in sorted(self._runs):
            yield _dump({"run": run, "inputs": self._runs[run]})
        for sha in sorted(self._texts):
            yield _dump({"text": self._texts[sha]})
        for call_id in sorted(self._places):
            yield _dump(self._line(*self._places[call_id]))

    def publish(self, path: Path) -> None:
        """Writes the canonical form, whole or not at all."""
        write_whole(path, "".join(line + "\n" for line in self.canonical_lines()))

    def _load(self) -> int:
        """Indexes every whole line; returns where they end, in bytes."""
        end = number = 0
        try:
            for place, line in read_places(self.path):
                number += 1
                self._index(place, line)
                end = sum(place)
        except RecordError as error:
            raise LedgerError(str(error), code="damaged-log") from None
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            if isinstance(error, LedgerError):
                raise
            raise LedgerError(
                f"{self.path}:{number}: not a ledger line; restore it, or run "
                "`counterprior doctor FILE --repair`",
                code="damaged-log",
            ) from None
        return end

    def _index(self, place: tuple[int, int], line: Mapping[str, Any]) -> None:
        if "batch" in line:
            calls = line["calls"]
            specs = calls if isinstance(calls, dict) else dict.fromkeys(calls, "")
            self._batches[_text(line["batch"])] = {_text(n): _text(s) for n, s in specs.items()}
        elif "run" in line:
            self._runs[_text(line["run"])] = line["inputs"]
        elif "text" in line:
            self._texts[_sha(line["text"])] = line["text"]
        else:
            completion = line.get("completion")
            outcome = completion.get("outcome", "") if isinstance(completion, dict) else ""
            self._add(_text(line["id"]), place, outcome, line)

    def _add(
        self,
        call_id: str,
        place: tuple[int, int],
        outcome: str,
        line: Mapping[str, Any] | None = None,
    ) -> None:
        """Notes an answer to a call, the newest. line: as it is read from the file."""
        if earlier := self._answers(call_id):
            if line is not None and any(_read_line(self.path, *at) == line for at in earlier):
                return  # copied, not paid twice
            self._repeated[call_id] = [*earlier, place]
        if not earlier or call_id in self._failed:
            self._places[call_id] = place
            self._failed.discard(call_id)
            if outcome == "error":
                self._failed.add(call_id)

    def _write(self, line: str) -> tuple[int, int]:
        assert self._file is not None
        raw = line.encode("ascii") + b"\n"
        place = (self._end, len(raw))
        self._end = append_bytes(self._file.fileno(), raw, self._end, self.path)
        return place

    def _sync(self, end: int) -> None:
        """Waits until the file is on disk up to `end`; one wait serves all threads that queue."""
        assert self._file is not None
        with self._syncing:
            if self._synced < end:
                written = self._end
                os.fsync(self._file.fileno())
                self._synced = written

    def _line(self, start: int, length: int) -> dict[str, Any]:
        # pread leaves no file position behind, so threads need no lock.
        return cast(dict[str, Any], json.loads(os.pread(self._reader.fileno(), length, start)))

    def _drift(
        self, line: Mapping[str, Any], identity: Mapping[str, str], request: ChatRequest
    ) -> str:
        recorded = dict(line["request"])
        recorded["system"] = self._texts.get(recorded["system"], recorded["system"])
        recorded["user"] = [
            self._texts.get(p["text"], p) if isinstance(p, dict) and "text" in p else p
            for p in recorded["user"]
        ]
        if schema := self._texts.get(recorded["schema"] or ""):
            recorded["schema"] = json.loads(schema)
        before = {"identity": line["identity"], "request": recorded}
        after = {"identity": dict(identity), "request": request.spec()}
        return self._changed(f"call {line['id']}", before, after)

    def _changed(self, subject: str, before: Any, after: Any) -> str:
        lines = (_readable(before), _readable(after))
        diff = list(difflib.unified_diff(*lines, "recorded", "asked now", n=1, lineterm=""))
        hidden = len(diff) - DIFF_LINES
        excerpt = "\n".join(
            diff[:DIFF_LINES] + ([f"... {hidden} more lines"] if hidden > 0 else [])
        )
        return (
            f"{self.path}: {subject} was recorded with another specification. Undo the change, or "
            f"start a new ledger and pay again:\n{excerpt}"
        )


def is_ledger_line(line: Mapping[str, Any]) -> bool:
    """Whether a record can be a line of a ledger."""
    try:
        if "batch" in line:
            calls = line["calls"]
            texts = (line["batch"], *calls, *(calls.values() if isinstance(calls, dict) else ()))
            return all(isinstance(text, str) for text in texts)
        if "run" in line:
            return isinstance(line["run"], str) and "inputs" in line
        if "text" in line:
            return isinstance(line["text"], str)
        _record(line)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return False
    return True


_ANSWER = "/answer"


def _name(call_id: str, earlier: int) -> str:
    """Name of an answer to a call that has so many earlier ones."""
    return f"{call_id}{_ANSWER}{earlier + 1}" if earlier else call_id


def _read_line(path: Path, start: int, length: int) -> Any:
    with path.open("rb") as file:
        return json.loads(os.pread(file.fileno(), length, start))


def spec_hash(identity: Mapping[str, str], request: ChatRequest) -> str:
    """SHA-256 of a call's specification: who answers and what is asked."""
    return _sha(_dump({"identity": dict(identity), "request": _form(request)[0]}))


def _record(line: Mapping[str, Any]) -> CallRecord:
    """A line as a call. Raises ValueError, KeyError, TypeError or AttributeError for another."""
    data = line["completion"]
    if data["outcome"] not in get_args(CallOutcome):
        raise ValueError(f"no outcome {data['outcome']!r}")
    completion = Completion(
        outcome=data["outcome"],
        text=_text(data["text"]),
        usage=_usage(data["usage"]),
        raw=data["raw"],
        first_token=tuple((_text(token), float(p)) for token, p in data["first_token"]),
        lost_attempts=_count(data["lost_attempts"]),
    )
    if line["usd"] is not None:
        read_usd(line["usd"])
    return CallRecord(
        line["id"],
        _text(line["spec"]),
        identity={_text(name): _text(value) for name, value in line["identity"].items()},
        role=_text(line["request"]["role"]),
        completion=completion,
        usd=line["usd"],
    )


def _usage(data: Any) -> Usage | None:
    return Usage(**{name: _count(value) for name, value in data.items()}) if data else None


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not text")
    return value


def _count(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise TypeError(f"{value!r} is not a count")
    return value


def _form(request: ChatRequest) -> tuple[dict[str, Any], dict[str, str]]:
    """A request as a call line holds it, and the texts that it refers to by SHA-256."""
    spec = request.spec()
    system, schema = request.system, request.schema.text if request.schema else None
    long = [p for p in spec["user"] if isinstance(p, str) and len(p) >= SHARED_FROM]
    texts = {_shared_sha(t): t for t in (system, schema, *long) if t is not None}
    spec["system"] = _shared_sha(system)
    spec["schema"] = None if schema is None else _shared_sha(schema)
    spec["user"] = [{"text": _shared_sha(p)} if p in long else p for p in spec["user"]]
    return spec, texts


def _dump(value: Any) -> str:
    # ASCII, so that a lone surrogate or a line separator in an answer can't break a line.
    return json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":"))


@lru_cache(maxsize=256)
def _shared_sha(text: str) -> str:
    return _sha(text)


def _sha(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _readable(value: Any) -> list[str]:
    """Lines to diff: one per field, long texts broken at their own line breaks."""
    lines = json.dumps(value, sort_keys=True, ensure_ascii=False, indent=1).splitlines()
    return [piece for line in lines for piece in line.replace("\\n", "\\n\n").splitlines()]
