"""Calls through ledger, budget, backend and validator."""

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from refusals import raises

from counterprior.agents.backends.replay import ReplayBackend
from counterprior.agents.backends.scripted import ScriptedBackend
from counterprior.agents.budget import Budget, BudgetError, Price, PriceTable, Spending
from counterprior.agents.caller import Call, Caller
from counterprior.agents.chat import BackendError, ChatRequest, Completion, Usage
from counterprior.agents.ledger import Ledger
from counterprior.agents.session import SessionSettings, open_session

Make = Callable[..., Caller]
Script = Callable[[ChatRequest], str | Completion]
PRICES = PriceTable({"scripted:s": Price(Decimal(0), Decimal(1_000_000))})
"""One dollar an output token."""


def ask(text: str = "u", **fields: bool) -> ChatRequest:
    return ChatRequest("scout", "system", (text,), 10, **fields)  # type: ignore[arg-type]


def number(text: str) -> int:
    if not text.isdigit():
        raise ValueError(f"{text!r} is no number")
    return int(text)


class Counted:
    """A script that counts what it was asked."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.asked: list[ChatRequest] = []

    def __call__(self, request: ChatRequest) -> str | Completion:
        self.asked.append(request)
        return self.script(request)


@pytest.fixture
def caller() -> Iterator[Make]:
    """Makes callers, and closes their ledgers in the end."""
    ledgers = []

    def make(path: Path, script: Script, max_usd: int | None = None, **options: Any) -> Caller:
        cap = None if max_usd is None else Decimal(max_usd)
        budget = Budget(PRICES, cap, path / "spending.jsonl")
        ledgers.append(Ledger(path / "ledger.jsonl"))
        budget.restore("ledger.jsonl", ledgers[-1].costs())
        backend = ScriptedBackend(script, "s")
        return Caller(backend, ledgers[-1], budget, **options)

    yield make
    for ledger in ledgers:
        ledger.close()


def test_a_valid_answer_is_paid_once_and_replayed(caller: Make, tmp_path: Path) -> None:
    script = Counted(lambda request: "7")
    first = caller(tmp_path, script)
    answer = first.call("a", ask(), number)
    assert (answer.status, answer.value, answer.calls) == ("ok", 7, ("a/attempt0",))
    assert first.call("a", ask(), number) == answer
    assert len(script.asked) == 1


def test_a_rejected_answer_is_asked_for_once_more(caller: Make, tmp_path: Path) -> None:
    script = Counted(lambda request: "7" if "no number" in str(request.user[-1]) else "seven")
    answer = caller(tmp_path, script).call("a", ask(), number)
    assert (answer.value, answer.calls) == (7, ("a/attempt0", "a/attempt1"))
    again = script.asked[1].user
    assert again[0] == "u" and "seven" in str(again[-1]) and len(again) == 2


def test_two_rejected_answers_are_recorded_as_failed(caller: Make, tmp_path: Path) -> None:
    script = Counted(lambda request: "seven")
    failing = caller(tmp_path, script)
    answer = failing.call("a", ask(), number)
    assert (answer.status, answer.value) == ("invalid", None)
    assert "'seven' is no number" in answer.problem
    assert failing.call("a", ask(), number) == answer
    assert len(script.asked) == 2 and len(failing.ledger) == 2


@pytest.mark.parametrize("outcome", ["refused", "truncated", "error"])
def test_other_outcomes_are_paid_and_not_asked_again(
    caller: Make, tmp_path: Path, outcome: str
) -> None:
    done = Completion(outcome, "7", Usage(5, 5), {})  # type: ignore[arg-type]
    script = Counted(lambda request: done)
    used = caller(tmp_path, script, max_usd=100)
    answer = used.call("a", ask(), number)
    assert (answer.status, answer.value) == (outcome, None)
    assert len(script.asked) == 1 and used.budget.spent == 5


def test_a_cut_answer_counts_where_it_may(caller: Make, tmp_path: Path) -> None:
    script = Counted(lambda request: Completion("truncated", "7", None, {}))
    assert caller(tmp_path, script).call("a", ask(may_be_cut=True), number).value == 7


def test_many_calls_keep_their_order_and_show_progress(caller: Make, tmp_path: Path) -> None:
    def script(request: ChatRequest) -> str:
        time.sleep(0.02 if request.user[0] in ("0", "3") else 0)
        return str(request.user[0])

    seen: list[tuple[str, int, int]] = []
    calls = [Call(f"c{n}", ask(str(n)), number) for n in range(40)]
    answers = caller(tmp_path, script).call_many(calls, "write", lambda *told: seen.append(told))
    assert [a.value for a in answers] == list(range(40))
    assert seen[-1] == ("write", 40, 40)


def test_no_more_calls_than_allowed_are_under_way(caller: Make, tmp_path: Path) -> None:
    under_way, most, lock = 0, 0, threading.Lock()

    def script(request: ChatRequest) -> str:
        nonlocal under_way, most
        with lock:
            under_way += 1
            most = max(most, under_way)
        time.sleep(0.01)
        with lock:
            under_way -= 1
        return "1"

    calls = [Call(f"c{n}", ask(), number) for n in range(30)]
    caller(tmp_path, script, concurrency=3).call_many(calls)
    assert most == 3


def test_the_ledger_is_the_same_for_every_concurrency(caller: Make, tmp_path: Path) -> None:
    published = []
    for concurrency in (1, 8):
        folder = tmp_path / str(concurrency)
        used = caller(folder, lambda r: str(r.user[0]), concurrency=concurrency)
        used.call_many([Call(f"c{n}", ask(str(n)), number) for n in range(50)])
        published.append("\n".join(used.ledger.canonical_lines()))
    assert published[0] == published[1]


def test_an_outage_stops_the_run_and_keeps_what_is_paid(caller: Make, tmp_path: Path) -> None:
    def script(request: ChatRequest) -> str:
        if request.user[0] == "13":
            raise BackendError("the server is gone")
        return "1"

    calls = [Call(f"c{n}", ask(str(n)), number) for n in range(200)]
    used = caller(tmp_path, script, max_usd=10_000)
    with raises("run-failed", "gone", error=BackendError):
        used.call_many(calls)
    assert 8 <= len(used.ledger) < 60
    used.ledger.close()
    resumed = Counted(lambda request: "1")
    paid = len(used.ledger)
    used = caller(tmp_path, resumed, max_usd=10_000)
    assert used.budget.spent == paid
    assert len(used.call_many(calls)) == 200
    assert len(resumed.asked) == 200 - paid


def test_an_outage_may_be_an_answer_that_the_ledger_forgets(caller: Make, tmp_path: Path) -> None:
    def script(request: ChatRequest) -> str:
        raise BackendError("the server is gone")

    used = caller(tmp_path, script, stop_on_outage=False)
    answers = used.call_many([Call("a", ask(), number), Call("b", ask(), number)])
    assert [a.status for a in answers] == ["error", "error"]
    assert "gone" in answers[0].problem and len(used.ledger) == 0


def test_the_cap_stops_before_the_call(caller: Make, tmp_path: Path) -> None:
    script = Counted(lambda request: Completion("ok", "1", Usage(1, 10), {}))
    used = caller(tmp_path, script, max_usd=35)
    with raises("over-budget", error=BudgetError):
        used.call_many([Call(f"c{n}", ask(), number) for n in range(9)])
    assert len(script.asked) == 3 and used.budget.spent == 30
    used.ledger.close()
    # A resumed run counts what was paid before.
    again = caller(tmp_path, script, max_usd=35)
    with raises("over-budget", error=BudgetError):
        again.call("new", ask(), number)
    assert len(script.asked) == 3


def test_a_call_that_was_not_made_frees_its_reservation(caller: Make, tmp_path: Path) -> None:
    def script(request: ChatRequest) -> str:
        if request.user[0] == "gone":
            raise BackendError("the server is gone")
        return "1"

    used = caller(tmp_path, script, max_usd=10)  # one call's worst case
    for _ in range(3):
        with raises("run-failed", "gone", error=BackendError):
            used.call("a", ask("gone"), number)
    assert used.call("b", ask(), number).value == 1


def test_lost_attempts_of_a_failed_call_are_paid(caller: Make, tmp_path: Path) -> None:
    def script(request: ChatRequest) -> str:
        raise BackendError("gave up", lost_attempts=2)

    used = caller(tmp_path, script, max_usd=25)  # a call's worst case is 10
    with raises("run-failed", "gave up", error=BackendError):
        used.call("a", ask(), number)
    assert used.budget.spent == used.budget.spending.usd == 20
    with raises("over-budget", error=BudgetError):
        used.call("b", ask(), number)


def test_a_run_says_what_its_calls_came_to(caller: Make, tmp_path: Path) -> None:
    answers = {
        "good": Completion("ok", "7", Usage(1, 2), {}, lost_attempts=1),
        "bad": Completion("ok", "seven", Usage(1, 1), {}),
        "no": Completion("refused", "no", Usage(1, 1), {}),
        "cut": Completion("truncated", "7", Usage(1, 3), {}),
        "wrong": Completion("error", "what?", Usage(0, 0), {}),
    }

    def script(request: ChatRequest) -> Completion:
        if request.user[0] == "gone":
            raise BackendError("gone")
        return answers[str(request.user[0])]

    calls = [Call(name, ask(name), number) for name in (*answers, "gone")]
    used = caller(tmp_path, script, stop_on_outage=False)
    used.call_many(calls)
    counted = Spending(calls=6, retries=1, refused=1, invalid=2, errors=2, usd=Decimal(18))
    assert used.budget.spending == counted and used.budget.spent == 18
    used.ledger.close()
    again = caller(tmp_path, script, stop_on_outage=False)
    again.call_many(calls)
    replayed = replace(counted, calls=0, retries=0, usd=Decimal(0), replayed=6)
    assert again.budget.spending == replayed and again.budget.spent == 18


def test_two_calls_cant_share_an_id(caller: Make, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="two calls have the id a"):
        caller(tmp_path, lambda r: "1").call_many([Call("a", ask(), number)] * 2)


def test_a_replay_asks_nobody(caller: Make, tmp_path: Path) -> None:
    used = caller(tmp_path, lambda request: "7")
    used.call("a", ask(), number)
    used.ledger.close()
    with Ledger(tmp_path / "ledger.jsonl", read_only=True) as ledger:
        replay = Caller(ReplayBackend.of(ledger), ledger, Budget(PRICES))
        assert replay.author == "scripted:s"
        assert replay.call("a", ask(), number).value == 7
        with raises("not-recorded", "scout", error=BackendError):
            replay.call("b", ask(), number)


def test_a_stream_takes_calls_as_it_needs_them(caller: Make, tmp_path: Path) -> None:
    taken: list[int] = []

    def calls() -> Iterator[tuple[int, Call[int]]]:
        for n in range(10_000):
            taken.append(n)
            yield n, Call(f"c{n}", ask(str(n)), number)

    used = caller(tmp_path, lambda r: str(r.user[0]), concurrency=2)
    answers = used.stream(calls())
    found = [next(answers) for _ in range(5)]
    assert all(key == answer.value for key, answer in found) and len(taken) <= 5 + 3 * 2
    answers.close()  # type: ignore[attr-defined]
    assert len(used.ledger) <= len(taken)


def test_an_error_in_a_stream_stops_new_calls(caller: Make, tmp_path: Path) -> None:
    script = Counted(lambda r: "1" if int(str(r.user[0])) < 20 else _gone())
    used = caller(tmp_path, script, concurrency=2)
    with raises("run-failed", "gone", error=BackendError):
        list(used.stream((n, Call(f"c{n}", ask(str(n)), number)) for n in range(10_000)))
    assert len(used.ledger) + 2 >= 20 and len(script.asked) <= 26


def _gone() -> str:
    raise BackendError("gone")


def test_a_session_counts_what_its_ledger_has_cost(tmp_path: Path) -> None:
    script = tmp_path / "s.json"
    script.write_text('[{"role": "scout", "contains": [], "answer": "4444"}]')
    (tmp_path / "prices.yaml").write_text("scripted:s: {input: 0, output: 1000000}\n")
    settings = SessionSettings(
        tmp_path / "l.jsonl", f"scripted:{script}", max_usd=11, prices=tmp_path / "prices.yaml"
    )
    with open_session(settings) as session:
        session.author().call("a", ask(), number)
        assert session.budget.spent == 1
        assert [(a.role, a.calls, a.usd) for a in session.accounts()] == [("scout", 1, 1)]
    with (
        open_session(replace(settings, max_usd=10.5)) as session,
        raises("over-budget", error=BudgetError),
    ):
        session.author().call("b", ask(), number)
    with open_session(settings) as session:
        session.author().call("b", ask(), number)
        assert session.budget.spent == 2
    with (
        raises("missing-option", "--backend"),
        open_session(SessionSettings(tmp_path / "l.jsonl")),
    ):
        pass
