"""Disks whose locks exclude nobody, or that have none: no file is damaged, all money counts."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pytest
from refusals import raises
from typer.testing import CliRunner

from counterprior import leases
from counterprior.agents import ledger as ledgers
from counterprior.agents.budget import Budget, BudgetError, PriceTable
from counterprior.agents.chat import ChatRequest, Completion, Usage
from counterprior.agents.ledger import Ledger
from counterprior.agents.spending import Charge, SpendingLog
from counterprior.cli.main import app
from counterprior.errors import InUseError
from counterprior.eval.engine.repair import repair
from counterprior.eval.engine.settling import settle
from counterprior.eval.store.shards import RunLock
from counterprior.storage import Lock, RecordLog, Turns, read_records


def no_locks(number: int) -> Callable[..., None]:
    def flock(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    return flock


DISKS: dict[str, Callable[..., None]] = {
    "every lock succeeds": lambda *_: None,
    "ENOLCK": no_locks(errno.ENOLCK),
    "ENOSYS": no_locks(errno.ENOSYS),
    "EOPNOTSUPP": no_locks(errno.EOPNOTSUPP),
}


@pytest.fixture(params=DISKS)
def disk(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fcntl, "flock", DISKS[request.param])


def leases_in(folder: Path) -> list[Path]:
    return sorted(folder.glob(f"*{leases.SUFFIX}"))


def test_a_lock_excludes_where_the_disk_does_not(
    disk: None, tmp_path: Path, survived: Callable[[str, bool], None]
) -> None:
    path = tmp_path / "a.lock"
    with Lock(path, "it"), raises("in-use", f"it is in use by process {os.getpid()}"):
        Lock(path, "it")
    shared = Lock(path, "it", shared=True)
    with shared, Lock(path, "it", shared=True), raises("in-use", error=InUseError):
        Lock(path, "it")
    with Lock(path, "it"), raises("in-use", error=InUseError):
        Lock(path, "it", shared=True)
    assert not leases_in(tmp_path)
    survived("disks without locks", True)


TAKE = """
import fcntl, os, sys
from pathlib import Path
from counterprior.storage import Lock
fcntl.flock = lambda *_: None
lock = Lock(Path(sys.argv[1]), "it")
print("held", flush=True)
sys.stdin.read()
os._exit(0)
"""


def test_another_process_is_kept_out_and_its_death_is_noticed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(fcntl, "flock", lambda *_: None)
    path = tmp_path / "a.lock"
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", TAKE, str(path)], **pipes) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == "held\n"
        with raises("in-use", f"process {holder.pid}", error=InUseError):
            Lock(path, "it")
        holder.kill()
        holder.wait()
        assert len(leases_in(tmp_path)) == 1
        with Lock(path, "it"):
            assert len(leases_in(tmp_path)) == 1  # its own
    assert not leases_in(tmp_path)


def foreign(folder: Path, beats: int = 0, age: float = 0.0, **changes: Any) -> Path:
    """A lease of a process on another machine."""
    path = folder / f"a.lock.0123abcd{leases.SUFFIX}"
    owner = {"host": "far", "pid": 1, "started": "1", "system": "another"}
    path.write_text(json.dumps({"beats": f"{beats:010}", "shared": False, **owner, **changes}))
    os.utime(path, (time.time() - age,) * 2)
    return path


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "SILENT", 0.4)
    monkeypatch.setattr(leases, "_GLANCE", 0.01)


def test_a_machine_that_shows_life_is_waited_for(soon: None, tmp_path: Path) -> None:
    foreign(tmp_path)
    over = threading.Event()

    def beat() -> None:
        number = 0
        while not over.wait(0.02):
            foreign(tmp_path, number := number + 1)

    other = threading.Thread(target=beat)
    other.start()
    try:
        with raises("in-use", "process 1 on far", error=InUseError):
            Lock(tmp_path / "a.lock", "it")
    finally:
        over.set()
        other.join()
    assert len(leases_in(tmp_path)) == 1


@pytest.mark.parametrize(
    "changes", [{"age": 0.0}, {"age": 999.0}, {"age": -999.0}, {"pid": "x"}, {"host": 3}]
)
def test_a_machine_that_died_is_not(changes: Any, soon: None, tmp_path: Path) -> None:
    foreign(tmp_path, **changes)
    with Lock(tmp_path / "a.lock", "it"):
        assert [path.name for path in leases_in(tmp_path)] != ["a.lock.0123abcd.lease"]
    assert not leases_in(tmp_path)


def test_a_number_that_another_process_has_by_now_is_not_its_owner(tmp_path: Path) -> None:
    this = vars(leases.Owner.this()) | {"pid": os.getppid(), "started": "1"}
    foreign(tmp_path, **this)
    with Lock(tmp_path / "a.lock", "it"):
        pass


def test_leases_are_kept_alive(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(leases, "BEAT", 0.01)
    monkeypatch.setattr(leases, "_HEARTBEAT", leases._Heartbeat())
    with Lock(tmp_path / "a.lock", "it"):
        (lease,) = leases_in(tmp_path)
        before = lease.read_text()
        for _ in range(500):
            if lease.read_text() != before:
                break
            time.sleep(0.01)
        assert json.loads(lease.read_text()).keys() == json.loads(before).keys()
        assert lease.read_text() > before


def test_two_writers_of_a_log_are_noticed(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    with RecordLog(path) as first, RecordLog(path) as second:
        first.append({"n": 1})
        with raises("in-use", path, "locks of this disk", error=InUseError):
            second.append({"n": 2})
        first.append({"n": 3})
    assert [record["n"] for record in read_records(path)] == [1, 3]


WHO = {"kind": "openai", "model": "m", "provider": "openai"}
ASK = ChatRequest("judge", "Look.", ("Where?",), 10)
DONE = Completion("ok", "1", Usage(1, 1), {})


def test_two_writers_of_a_ledger_are_noticed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(ledgers, "Lock", lambda *_: type("L", (), {"release": lambda _: None})())
    path = tmp_path / "a.jsonl"
    with Ledger(path) as first, Ledger(path) as second:
        first.append("a", WHO, ASK, DONE, "1")
        with raises("in-use", path, error=InUseError):
            second.append("a", WHO, ASK, DONE, "1")
    with Ledger(path) as ledger:
        assert [name for name, _ in ledger.costs()] == ["a"]


def usd(charge: Charge) -> Decimal:
    assert charge.usd is not None
    return charge.usd


def at_once(path: Path, draw: Random) -> tuple[bool, int]:
    """Two processes, as it were, that append lines in each other's turns: whether all of them are
    whole and count, and how often one noticed the other."""
    logs = [SpendingLog(path, usd) for _ in range(2)]
    written = noticed = 0

    def spend(depth: int) -> None:
        nonlocal written, noticed
        log = draw.choice(logs)
        if log._threads.locked():
            return
        try:
            with log.turn():
                while depth and draw.random() < 0.5:
                    spend(depth - 1)  # the other process, within this turn
                intent = log.intend("s", "c", Charge(Decimal(1)))
                written += 1
                assert log.open[intent.id].call == "c"
        except InUseError:
            noticed += 1

    for _ in range(12):
        spend(2)
    after = SpendingLog(path, usd)
    for log in logs:
        log.finish()
    with after.turn():
        well = after.total == written == path.read_bytes().count(b"\n")
    after.finish()
    return well, noticed


def test_two_that_spend_at_once_damage_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, survived: Callable[[str, bool], None]
) -> None:
    monkeypatch.setattr(Turns, "turn", lambda *_: nullcontext())
    ends = [at_once(tmp_path / str(n) / "spending.jsonl", Random(n)) for n in range(40)]
    for well, _ in ends:
        survived("two spenders without locks", well)
    assert all(well for well, _ in ends) and sum(noticed for _, noticed in ends) > 40


def test_a_cap_holds_where_the_disk_has_no_locks(disk: None, tmp_path: Path) -> None:
    path = tmp_path / "ledgers" / "spending.jsonl"

    def spend() -> None:
        budget = Budget(PriceTable({}), Decimal(20), path)  # of a process of its own, as it were
        for _ in range(6):
            with suppress(BudgetError):
                hold = budget.hold(Charge(Decimal(2)), "image", "s")
                budget.settle([hold], "s", Charge(Decimal(1)))
        budget.log.finish()

    threads = [threading.Thread(target=spend) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    after = Budget(PriceTable({}), None, path)
    assert 15 <= after.spent <= 20
    after.log.finish()
    assert not leases_in(path.parent)


def damaged_run(root: Path) -> tuple[Path, Path, Path]:
    """The folder of a run with money, a ledger and verdicts."""
    (root / "ledgers").mkdir(parents=True)
    budget = Budget(PriceTable({}), None, root / "ledgers" / "spending.jsonl")
    ledger, verdicts = root / "ledgers" / "a.jsonl", root / "verdicts" / "j" / "verdicts.jsonl"
    with Ledger(ledger) as calls, RecordLog(verdicts) as log:
        for n in range(4):
            hold = budget.hold(Charge(Decimal(2)), "call", "a.jsonl", call=str(n))
            calls.append(str(n), WHO, ASK, DONE, "1")
            log.append({"case": str(n)})
            if n < 3:
                budget.settle([hold], "a.jsonl", Charge(Decimal(1)))
    budget.log.finish()
    return root / "ledgers" / "spending.jsonl", ledger, verdicts


@pytest.mark.parametrize("file", [0, 1, 2], ids=["spending", "ledger", "verdicts"])
def test_what_is_right_of_a_damaged_log_is_kept(
    file: int, tmp_path: Path, survived: Callable[[str, bool], None]
) -> None:
    pristine = damaged_run(tmp_path / "run")
    path, whole = pristine[file], pristine[file].read_bytes()
    lines = whole.splitlines(keepends=True)
    for number, line in enumerate(lines):
        for spoiled in (b"\x00" * (len(line) - 1) + b"\n", line[: len(line) // 2] + b"\n", b"{}\n"):
            path.write_bytes(b"".join([*lines[:number], spoiled, *lines[number + 1 :]]))
            (repaired,) = repair(tmp_path / "run")
            assert (repaired.path, repaired.lines, repaired.kept) == (path, 1, len(lines) - 1)
            assert path.with_name(f"{path.name}.damaged").read_bytes().endswith(spoiled)
            assert repair(tmp_path / "run") == []
            kept = [one for one in path.read_bytes().splitlines(keepends=True) if one.strip()]
            settled = settle(tmp_path / "run")  # money, ledgers: all can be read again
            well = kept == [*lines[:number], *lines[number + 1 :]] and settled.spent >= 3
            survived("unreadable lines of logs", well)
            assert well
    path.write_bytes(whole)
    path.with_name(f"{path.name}.damaged").unlink()
    assert repair(tmp_path / "run") == [] and path.read_bytes() == whole


def test_a_log_in_use_is_not_repaired(tmp_path: Path) -> None:
    damaged_run(tmp_path / "run")
    ledger = tmp_path / "run" / "ledgers" / "a.jsonl"
    with Ledger(ledger), raises("in-use", ledger, error=InUseError):
        repair(tmp_path / "run")
    (tmp_path / "run" / "run.json").write_text("{}")
    with RunLock(tmp_path / "run"), raises("in-use", tmp_path / "run", error=InUseError):
        repair(tmp_path)  # a study, of which another process judges one run
    (tmp_path / "run" / "run.json").unlink()
    done = CliRunner().invoke(app, ["doctor", str(tmp_path / "run"), "--repair"])
    assert done.exit_code == 0 and "every line of the logs can be read" in done.output, done.output


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """The heartbeat of a test does not outlive it."""
    before = set(leases._HEARTBEAT._leases)
    yield
    assert leases._HEARTBEAT._leases <= before
