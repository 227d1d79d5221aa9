"""The cap by the server's own tally, whatever is lost, killed, run again and run at once."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from refusals import raises

from counterprior.agents.backends.usage import read_usage
from counterprior.agents.budget import BudgetError
from counterprior.agents.caller import Call, Caller
from counterprior.agents.chat import BackendError, ChatRequest, Completion, Permit, Usage, always
from counterprior.agents.ledger import Ledger
from counterprior.agents.retry import (
    RetryPolicy,
    TransientError,
    UnreadableAnswerError,
    UnreadableError,
)
from counterprior.agents.spending import SpendingLog
from counterprior.eval.core import Case, GeneratorError, ImageRequest
from counterprior.eval.engine.costs import Cost
from counterprior.eval.engine.settling import settle
from counterprior.eval.generators import PaidByImage
from counterprior.eval.generators.paid import PaidGenerator

MOST = 10
"""Tokens of an answer, at one dollar each."""
IMAGE = Decimal(4)
PRICES = "scripted:s: {input: 0, output: 1000000}\nopenai-image:i: {image: 4, edit: 4}\n"
LOWER = "scripted:s: {input: 0, output: 1000}\nopenai-image:i: {image: 1, edit: 4}\n"
CALLS = 8
"""Of each of two shards."""

TROUBLES = [
    "lost",
    "rejected",
    "unreadable",
    "killed early",
    "killed late",
    "silent",
    "zeros",
    "half",
    "address",
]


class Killed(BaseException):
    """The process is gone: from here on it writes nothing."""


@dataclass
class Server:
    """What was billed, by the one who bills it."""

    rng: random.Random
    trouble: float
    """Share of attempts that end badly."""
    kinds: list[str]
    """How they end."""
    hidden: int = 0
    """Tokens of reasoning that each answer bills beside its own."""
    shown: bool = False
    """Whether an answer of it is recorded, so that clients can know what it adds."""
    billed: Decimal = Decimal(0)
    meanwhile: list[Any] = field(default_factory=list)
    """What another process does while a call is on its way."""

    def attempt(self, cost: Decimal) -> str:
        """How an attempt ends. Raises what a client sees when it ends badly."""
        if self.meanwhile and self.rng.random() < 0.5:
            self.meanwhile.pop()()
        kind = self.rng.choice(self.kinds) if self.rng.random() < self.trouble else "ok"
        if self.hidden and not self.shown:
            kind = "ok"
        if kind == "killed early":
            raise Killed
        if kind == "rejected":
            raise TransientError("HTTP 500")
        self.billed += cost
        if kind == "killed late":
            raise Killed
        if kind == "lost":
            raise TransientError("cut", billed=True)
        if kind == "unreadable":
            raise UnreadableError("torn")
        return kind


class Model:
    """A chat model behind the server."""

    def __init__(self, server: Server) -> None:
        self.server = server

    def identity(self) -> dict[str, str]:
        return {"kind": "scripted", "model": "s", "provider": "none"}

    def check(self) -> None: ...

    def complete(self, request: ChatRequest, permit: Permit = always) -> Completion:
        def attempt() -> Completion:
            tokens = self.server.rng.randint(1, MOST)
            kind = self.server.attempt(Decimal(tokens + self.server.hidden))
            total = 1 + tokens + self.server.hidden
            honest = {"prompt_tokens": 1, "completion_tokens": tokens, "total_tokens": total}
            report = {
                "silent": None,
                "zeros": {"prompt_tokens": 0, "completion_tokens": 0},
                "half": {"prompt_tokens": 1},
            }.get(kind, honest)
            return Completion("ok", "1", read_usage(report), {})

        try:
            return RetryPolicy(3).run(attempt, permit)[0]
        except UnreadableAnswerError as error:
            return Completion("error", str(error), None, {})


class Painter(PaidByImage):
    """An image model behind the same server."""

    def __init__(self, server: Server) -> None:
        self.server = server

    def identity(self) -> dict[str, str]:
        return {"kind": "openai-image", "model": "i"}

    def generate(self, request: ImageRequest, permit: Permit = always) -> Image.Image:
        try:
            kind, _ = RetryPolicy(3).run(lambda: self.server.attempt(IMAGE), permit)
        except UnreadableAnswerError as error:
            raise GeneratorError(str(error)) from None
        if kind == "address":
            error = GeneratorError("the answer is an address that can't be fetched")
            error.ends_run = True
            raise error
        return Image.new("RGB", (1, 1))


class Process:
    """One process of a run: it judges its shard and makes images, until it is killed."""

    def __init__(self, root: Path, server: Server, shard: tuple[int, int], cap: Decimal) -> None:
        self.server, self.dead = server, False
        cost = Cost(1, float(cap), root / "prices.yaml")
        self.plan = cost.plan(root, shard)
        self.ledger = self.plan.ledger("judge")
        self.caller = Caller(
            Model(server), self.ledger, self.plan.budget, concurrency=1, stop_on_outage=False
        )
        self.painter = PaidGenerator(Painter(server), self.plan.budget)
        self.todo = [f"{shard[0]}/{number}" for number in range(CALLS)]

    def step(self) -> bool:
        """One call or image; False where nothing is left to do, or to do it with."""
        if self.dead or not self.todo:
            return False
        name = self.todo[0]
        try:
            if self.server.rng.random() < 0.3:
                case = Case(name, "v", 0, 0, "p", ())
                self.painter.generate(ImageRequest("p", 0, case=case))
            else:
                self.caller.call(name, ChatRequest("judge", "s", (name,), MOST), str)
                self.server.shown = True
        except Killed:
            self.dead = True
        except BudgetError:
            return False
        except (BackendError, GeneratorError):
            pass
        self.todo.pop(0)
        return not self.dead

    def close(self) -> None:
        self.ledger.close()


@pytest.fixture
def dying(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """Kills a process at any write: before it, after it, or not; a dead process writes nothing."""
    state: dict[str, Any] = {"rng": random.Random(0), "share": 0.0, "dead": set()}
    monkeypatch.setattr("counterprior.agents.retry._sleep", lambda seconds: None)

    def deadly(owner: type, name: str) -> None:
        real = getattr(owner, name)

        def write(self: Any, *given: Any) -> Any:
            if id(self) in state["dead"]:
                raise Killed
            server, point = state["server"], state["rng"].random()
            share = 0 if server.hidden and not server.shown else state["share"]
            if point < share:
                raise Killed
            done = real(self, *given)
            if point < 2 * share:
                raise Killed
            return done

        monkeypatch.setattr(owner, name, write)

    deadly(SpendingLog, "_append")
    deadly(Ledger, "_write")
    yield state


def started(root: Path, server: Server, shard: tuple[int, int], cap: Decimal) -> Iterator[Process]:
    """A process, unless it is killed before its first call."""
    with suppress(Killed):
        yield Process(root, server, shard, cap)


def bury(process: Process, dying: dict[str, Any]) -> None:
    """What is left of a killed process may write nothing when its objects go."""
    dying["dead"] |= {id(process.plan.budget.log), id(process.ledger)}
    process.close()


def play(root: Path, seed: int, dying: dict[str, Any], hidden: int = 0) -> tuple[Server, Decimal]:
    """A run of two shards with losses, kills, reruns, and a person who settles now and then and who
    takes a file of lower prices now and then, once calls counted at the right ones.

    hidden: tokens that the server adds to each answer, its first one included, which arrives whole
    and is recorded. Until then nobody knows of them: the cap is one that the first of each shard
    fits.
    """
    rng = random.Random(seed)
    kinds = rng.sample(TROUBLES, rng.choice([1, 1, 2, len(TROUBLES)]))
    server = Server(rng, rng.choice([0.0, 0.2, 0.6, 0.95]), kinds)
    cap = Decimal(rng.randint(12, 120))
    if hidden:
        server.hidden, cap = hidden, cap + 2 * (hidden + MOST)
    root.mkdir()
    (root / "prices.yaml").write_text(PRICES)
    dying |= {"rng": rng, "share": rng.choice([0.0, 0.02, 0.1]), "dead": set(), "server": server}
    graves = []
    for attempt in range(4):
        is_lower = attempt > 0 and rng.random() < 0.2 and knows_prices(root)
        (root / "prices.yaml").write_text(LOWER if is_lower else PRICES)
        running = [p for number in (1, 2) for p in started(root, server, (number, 2), cap)]
        going = bool(running)
        while going:
            server.meanwhile = [running[-1].step] if len(running) == 2 else []
            going = running[0].step()
            server.meanwhile = []
            going = running[-1].step() or going
            assert server.billed <= cap, f"seed {seed}: {server.billed} billed under a cap of {cap}"
        dying["share"], share = 0.0, dying["share"]
        for process in running:
            bury(process, dying)
        graves.append(running)  # objects, whose ids must not be used again
        running = []
        if rng.random() < 0.2 and (root / "ledgers" / "spending.jsonl").exists():
            release_users(graves)
            found = settle(root, prices=root / "prices.yaml")
            (root / "prices.yaml").write_text(PRICES)
            settle(root, max(Decimal(0), server.billed - found.spent + found.worst))
        dying["share"] = share
    return server, cap


def knows_prices(root: Path) -> bool:
    """Whether both models were asked at their prices: a first price is believed."""
    log = root / "ledgers" / "spending.jsonl"
    return log.exists() and log.read_text().count('"price"') == 2


def release_users(graves: list[list[Process]]) -> None:
    """The system closes the files of dead processes."""
    for processes in graves:
        for process in processes:
            process.plan.budget.log.finish()


@pytest.mark.slow
@pytest.mark.parametrize(
    "seeds", [range(30), pytest.param(range(30, 1060), marks=pytest.mark.lane)], ids=len
)
def test_no_schedule_passes_the_cap(seeds: range, tmp_path: Path, dying: dict[str, Any]) -> None:
    used = []
    for seed in seeds:
        server, cap = play(tmp_path / str(seed), seed, dying)
        used.append(server.billed / cap)
    # A cap that lets nothing through would hold as well.
    assert sum(share > Decimal("0.6") for share in used) > len(seeds) / 2


@pytest.mark.slow
@pytest.mark.parametrize(
    "seeds", [range(12), pytest.param(range(12, 212), marks=pytest.mark.lane)], ids=len
)
def test_hidden_tokens_pass_no_cap(seeds: range, tmp_path: Path, dying: dict[str, Any]) -> None:
    for seed in seeds:
        play(tmp_path / str(seed), seed, dying, hidden=random.Random(seed).randint(MOST, 8 * MOST))


class Threaded:
    """A chat model that several threads ask at once, and that bills `tokens` for each answer."""

    def __init__(self, tokens: int) -> None:
        self.tokens = tokens
        self.billed = 0
        self.at_once = self.most_at_once = 0
        self._lock = threading.Lock()

    def identity(self) -> dict[str, str]:
        return {"kind": "scripted", "model": "s", "provider": "none"}

    def check(self) -> None: ...

    def complete(self, request: ChatRequest, permit: Permit = always) -> Completion:
        with self._lock:
            self.billed += self.tokens
            self.at_once += 1
            self.most_at_once = max(self.at_once, self.most_at_once)
        time.sleep(0.01)
        with self._lock:
            self.at_once -= 1
        return Completion("ok", "1", Usage(1, self.tokens), {})


def spend(model: Threaded, cap: int, root: Path) -> None:
    """Asks 40 questions from 8 threads. Raises BudgetError where the cap ends that."""
    (root / "prices.yaml").write_text(PRICES)
    plan = Cost(8, cap, root / "prices.yaml").plan(root)
    with plan.ledger("judge") as ledger:
        asks = [Call(str(n), ChatRequest("judge", "s", (str(n),), MOST), str) for n in range(40)]
        Caller(model, ledger, plan.budget, concurrency=8).call_many(asks)


def test_a_cap_waits_for_what_is_under_way(tmp_path: Path) -> None:
    model = Threaded(3)
    with raises("over-budget", "--max-usd", error=BudgetError):
        spend(model, 60, tmp_path)
    # It stops only where one call more, at its worst, would not fit.
    assert 60 - MOST < model.billed <= 60
    assert model.most_at_once > 1


def test_threads_that_all_want_a_second_attempt_do_not_wait_for_each_other(tmp_path: Path) -> None:
    class Lossy(Threaded):
        def complete(self, request: ChatRequest, permit: Permit = always) -> Completion:
            permit()
            return super().complete(request, permit)

    with raises("over-budget", "without an outcome", error=BudgetError):
        spend(Lossy(3), 85, tmp_path)


@pytest.mark.parametrize("tokens", [43, 1000])
def test_answers_longer_than_asked_pass_no_cap_but_by_the_first(
    tokens: int, tmp_path: Path
) -> None:
    model = Threaded(tokens)
    with raises("over-budget", error=BudgetError):
        spend(model, 200, tmp_path)
    assert model.billed <= max(200, tokens)
