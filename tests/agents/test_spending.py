"""The spending log: what several processes spend together, and what the dead ones left open."""

import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pytest
from refusals import raises

from counterprior.agents.budget import Budget, BudgetError, Price, PriceTable
from counterprior.agents.chat import ChatRequest, Completion, Usage
from counterprior.agents.ledger import LedgerError
from counterprior.agents.spending import Charge
from counterprior.errors import DataError, InUseError
from counterprior.eval.engine.costs import Cost
from counterprior.eval.engine.settling import settle

TABLE = PriceTable({"openai:m": Price(Decimal(0), Decimal(1_000_000))})
WHO = {"kind": "openai", "model": "m", "provider": "custom"}
ONE = Charge(Decimal(1))


def budget(path: Path, cap: int | None = 10, table: PriceTable = TABLE) -> Budget:
    return Budget(table, None if cap is None else Decimal(cap), path / "ledgers" / "spending.jsonl")


def test_nothing_is_made_before_something_is_spent(tmp_path: Path) -> None:
    spent = budget(tmp_path)
    assert spent.spent == 0 and not list(tmp_path.iterdir())
    spent.hold(ONE, "image")
    names = {p.name for p in (tmp_path / "ledgers").iterdir() if p.suffix != ".lease"}
    assert names == {"spending.lock", "spending.jsonl"}


def test_budgets_of_one_run_share_their_spending(tmp_path: Path) -> None:
    first, second = budget(tmp_path), budget(tmp_path)
    hold = first.hold(Charge(Decimal(6)), "image")
    with raises("over-budget", "6.0000", "0.0000", error=BudgetError):
        second.hold(Charge(Decimal(5)), "image")
    first.settle([hold], "images", Charge(Decimal(2)))
    second.hold(Charge(Decimal(5)), "image")
    assert first.spent == 7 and second.spent == 2


SPEND = """
import os, sys
from decimal import Decimal
from pathlib import Path
from counterprior.agents.budget import Budget, BudgetError, PriceTable
from counterprior.agents.spending import Charge
from counterprior.agents.threads import in_threads

budget = Budget(PriceTable({}), Decimal(300), Path(sys.argv[1]))
budget.hold(Charge(Decimal(0)), "nothing")  # the log is open before it forks
print("ready", flush=True)
sys.stdin.readline()
forked = os.fork() if sys.argv[2] == "fork" else 1

def spend(number):
    try:
        hold = budget.hold(Charge(Decimal(1)), "image")
    except BudgetError:
        return 0
    budget.settle([hold], "images", Charge(Decimal(1)))
    return 1

os.write(1, b"%d\\n" % sum(in_threads(spend, range(400), 4)))  # in one piece, unbuffered or not
if not forked:
    os._exit(0)
os.wait() if sys.argv[2] == "fork" else None
"""


@pytest.mark.parametrize(("how", "processes"), [("spawn", 3), ("fork", 1)])
def test_processes_at_once_never_pass_the_cap(how: str, processes: int, tmp_path: Path) -> None:
    log = tmp_path / "spending.jsonl"
    command = [sys.executable, "-c", SPEND, str(log), how]
    pipe = subprocess.PIPE
    running = [
        subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) for _ in range(processes)
    ]
    for process in running:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
    made = []
    for process in running:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in running:
        out, _ = process.communicate()
        assert process.returncode == 0
        made += [int(word) for word in out.split() if word != "ready"]
    assert sum(made) == 300 and len(made) == (2 if how == "fork" else processes)
    assert Budget(PriceTable({}), None, log).spent == 300


def test_an_attempt_without_an_outcome_counts_in_every_later_run(tmp_path: Path) -> None:
    budget(tmp_path).hold(Charge(Decimal(4)), "image")  # and the process dies
    for _ in range(2):
        again = budget(tmp_path)
        assert again.spent == 4
        with raises("over-budget", error=BudgetError):
            again.hold(Charge(Decimal("6.01")), "image")


def test_a_line_that_was_being_written_is_cut_off(tmp_path: Path) -> None:
    budget(tmp_path).hold(ONE, "image")
    log = tmp_path / "ledgers" / "spending.jsonl"
    whole = log.read_bytes()
    log.write_bytes(whole + b'{"intent": "' + b"x" * 500)
    later = budget(tmp_path)
    assert later.spent == 1
    later.release([later.hold(ONE, "image")])
    assert log.read_bytes().startswith(whole + b'{"in') and budget(tmp_path).spent == 1
    assert log.read_bytes().endswith(b"}\n")


@pytest.mark.parametrize(
    "line",
    [
        b"x",
        b"\x00\x01",
        b"\xff",
        b"[" * 100_000,
        b"7",
        b'{"usd":"-1","found":"a"}',
        b'{"usd":"NaN","found":"a"}',
        b'{"lost":3}',
        b'{"intent":"c","usd":"1"}',
    ],
)
def test_a_damaged_line_is_named(tmp_path: Path, line: bytes) -> None:
    budget(tmp_path).hold(ONE, "image")
    log = tmp_path / "ledgers" / "spending.jsonl"
    log.write_bytes(log.read_bytes() + line + b"\n")
    with raises("damaged-log", ":2:", "spending.jsonl", error=DataError):
        budget(tmp_path).hold(ONE, "image")


def test_recorded_costs_count_without_the_log(tmp_path: Path) -> None:
    recorded = [("a", ONE), ("b", Charge(None, WHO, Usage(1, 2)))]
    first = budget(tmp_path)
    first.settle([first.hold(ONE, "call", "l", call="a")], "l", ONE)
    first.restore("l", recorded)
    assert first.spent == 3
    second = budget(tmp_path)
    second.restore("l", recorded)
    assert second.spent == 3
    # What another process has recorded, but not yet closed, is not counted twice.
    first.hold(ONE, "call", "l", call="c")
    second.restore("l", [*recorded, ("c", ONE)])
    assert second.spent == 4


def test_the_next_owner_of_a_ledger_settles_its_open_attempts(tmp_path: Path) -> None:
    dead = budget(tmp_path)
    for call in ("answered", "answered", "lost"):
        dead.hold(Charge(Decimal(2)), "call", "l", call=call)
    dead.hold(Charge(Decimal(2)), "call", "another", call="answered")
    heir = budget(tmp_path, cap=100)
    mine = heir.hold(Charge(Decimal(5)), "call", "l", call="mine")
    for _ in range(2):
        heir.adopt("l", {"answered": ONE}.get)
        # The first attempt at `answered` was lost, as a second followed.
        assert heir.spent == 1 + 2 + 2 + 2
    assert len(heir.log.lost) == 2 and mine.intent not in heir.log.lost


def test_an_unpriced_attempt_counts_when_there_is_a_price(tmp_path: Path) -> None:
    free = budget(tmp_path, None, PriceTable({}))
    worst = Charge(None, WHO, Usage(5, 7))
    done = free.hold(worst, "call", "l", call="a")
    free.hold(worst, "call", "l", call="b")
    free.settle([done], "l", Charge(None, WHO, Usage(5, 3)))
    assert free.spent == 0
    assert budget(tmp_path).spent == 10
    with raises("no-price", "openai:m", error=BudgetError):
        budget(tmp_path, 10, PriceTable({})).hold(ONE, "image")


def test_a_person_settles_what_is_open(tmp_path: Path) -> None:
    dead = budget(tmp_path)
    for call in ("a", "b"):
        dead.hold(Charge(Decimal(2)), "call", "l", call=call)
    with raises("in-use", "ledgers/spending.jsonl", error=InUseError):
        settle(tmp_path)
    dead.log.finish()
    found = settle(tmp_path)
    assert [attempt.call for attempt in found.attempts] == ["a", "b"]
    assert (found.worst, found.spent, found.settled) == (4, 4, None)
    assert settle(tmp_path, Decimal("0.5")).settled == Decimal("0.5")
    later = budget(tmp_path)
    assert later.spent == Decimal("0.5") and settle_fails(tmp_path)
    later.hold(ONE, "image")
    later.log.finish()
    assert settle(tmp_path, worst=True).settled == 1
    assert settle(tmp_path).attempts == () and budget(tmp_path).spent == Decimal("1.5")


def test_what_is_open_counts_as_the_cap_counts_it(tmp_path: Path) -> None:
    dead = budget(tmp_path, cap=100)
    above = dead.hold(Charge(Decimal(2)), "call", "l", call="a")
    dead.settle([above], "l", Charge(Decimal(6)))  # the server bills three times what was asked
    dead.hold(Charge(Decimal(2)), "call", "l", call="b")
    dead.log.finish()
    found = settle(tmp_path)
    assert (found.worst, found.spent) == (12, 18)
    assert settle(tmp_path, worst=True).settled == 12
    assert budget(tmp_path, cap=100).spent == 18


def settle_fails(path: Path) -> bool:
    with raises("in-use", "ledgers/spending.jsonl", error=InUseError):
        settle(path)
    return True


def test_shards_have_ledgers_of_their_own_and_read_all(tmp_path: Path) -> None:
    ask = ChatRequest("judge", "s", ("u",), 5)
    done = Completion("ok", "1", Usage(1, 1), {})
    plans = [Cost().plan(tmp_path, (number, 2)) for number in (1, 2)]
    both = [plan.ledger("judge") for plan in plans]
    for number, ledger in enumerate(both):
        ledger.append(f"call-{number}", WHO, ask, done, "1")
        ledger.close()
    names = sorted(p.name for p in (tmp_path / "ledgers").iterdir() if "spending" not in p.name)
    assert names == ["judge.1-of-2.jsonl", "judge.2-of-2.jsonl"]
    for shard in (None, (1, 2), (3, 3)):
        ledger = Cost().plan(tmp_path, shard).ledger("judge")
        assert all(ledger.find(f"call-{n}", WHO, ask) for n in (0, 1)) and "call-1" in ledger
        with raises("changed-call", "another specification", error=LedgerError):
            ledger.find("call-1", WHO, ChatRequest("judge", "other", ("u",), 5))
        ledger.close()
    assert Cost().plan(tmp_path).budget.spent == 2
