"""Workers: processes that do pieces of work here, or Ray actors on a cluster; `farm` feeds either.

A piece is sent when its worker has room, and its result comes back as soon as it is there, so work
is taken as it is needed and results don't depend on how many workers there are. A worker that dies
costs the pieces that it had: others get them. This module imports nothing heavy, because a worker
imports it before it knows its device.
"""

from __future__ import annotations

import json
import os
import pickle
import re
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from multiprocessing import Pipe, parent_process
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, Generic, Literal, Protocol, TypeVar

from ...errors import RunFailed, UsageError

W = TypeVar("W")
R = TypeVar("R")
_W = TypeVar("_W", contravariant=True)
_R = TypeVar("_R", covariant=True)

WorkerEngine = Literal["local", "ray"]
ENGINES = ("local", "ray")

DEATHS = 3
"""Workers that may die on one piece of work before it counts as failed."""
AHEAD = 2
"""Bundles that a worker has at a time: it does one while the next is on its way."""

Numbered = tuple[int, W]
"""A piece of work with its number."""


def as_engine(name: str) -> WorkerEngine:
    """The engine of a name. Raises UsageError for none."""
    if name not in ENGINES:
        raise UsageError(f"no engine {name!r}: choose from {', '.join(ENGINES)}")
    return "ray" if name == "ray" else "local"


@dataclass(frozen=True)
class Scale:
    """How many processes share a run, and which part of it is this one's."""

    workers: int = 1
    """Processes that make images or judge them, besides this one, if there are several."""
    devices: tuple[str, ...] = ()
    """Values of CUDA_VISIBLE_DEVICES, one worker each in turn; empty for all that are visible."""
    shard: tuple[int, int] | None = None
    """Part I of N of the run's rows, as (I, N); None for all. Every Nth row, seeds together."""
    engine: WorkerEngine = "local"
    """Processes on this machine, or actors on the Ray cluster at RAY_ADDRESS."""

    def __post_init__(self) -> None:
        if self.workers < 1:
            raise UsageError(f"workers={self.workers}: give at least 1")
        as_engine(self.engine)
        if self.shard is not None and not 1 <= self.shard[0] <= self.shard[1]:
            raise UsageError(f"shard {self.shard}: give (I, N) with I from 1 to N")
        if self.devices and self.engine == "ray":
            raise UsageError("--engine ray gives out its devices itself: drop --devices")

    @property
    def alone(self) -> bool:
        """Whether all is done in this process."""
        return self.workers == 1 and not self.devices and self.engine == "local"


HERE = Scale()
"""All in this process."""


class TaskWorker(Protocol[_W, _R]):
    """What a worker process does, with all that it has loaded."""

    def do(self, work: Sequence[Numbered[_W]]) -> Iterable[Numbered[_R]]:
        """Results that are ready, of these pieces or of earlier ones, in any order."""
        ...

    def finish(self) -> Iterable[Numbered[_R]]:
        """All results that are still due."""
        ...


class WorkerTask(Protocol[_W, _R]):
    """What is sent to every worker: must be picklable."""

    def open(self) -> TaskWorker[_W, _R]:
        """Called once in each worker, with its device set. What it raises ends the farm."""
        ...

    @property
    def bundle(self) -> int:
        """Pieces that are sent together."""
        ...

    def lost(self, piece: _W, deaths: int) -> _R:
        """The result of a piece on which so many workers died."""
        ...


def farm(
    task: WorkerTask[W, R], work: Iterable[W], scale: Scale
) -> Generator[tuple[W, R], None, None]:
    """Each piece of work with its result, as soon as it is there, in any order.

    Raises what a worker raises, UsageError for a task that can't be sent to another process,
    RunFailed where workers die without doing anything.
    """
    try:
        payload = pickle.dumps(task)
    except Exception as error:  # whatever the user's own objects make of it
        raise UsageError(
            f"this can't be sent to worker processes ({error}): give a spec, e.g. "
            f"python:MODULE:FACTORY, or use one worker"
        ) from None
    crew = _crew(payload, scale)
    try:
        yield from _Farm(task, work, crew, scale.workers).run()
    finally:
        crew.close()


@dataclass(eq=False)
class Hand(Generic[W]):
    """A worker as the farm sees it."""

    number: int
    """From 0; a worker in place of a dead one has the same."""
    link: Any
    """What the crew reaches it by."""
    ready: bool = False
    """Whether it has opened its task."""
    sent: deque[list[Numbered[W]]] = field(default_factory=deque)
    """Bundles that it has not come back from, an empty one to finish; the first is in work."""
    due: dict[int, W] = field(default_factory=dict)
    """Pieces without a result."""


@dataclass(frozen=True)
class Reply:
    """What a worker sends: results of a bundle, or why it can't go on."""

    results: Sequence[Numbered[Any]] = ()
    error: BaseException | None = None
    opened: bool = False
    """Whether it only says that it has opened its task."""


class Crew(Protocol):
    """Where workers live."""

    def hire(self, number: int) -> Hand[Any]:
        """Starts a worker."""
        ...

    def send(self, hand: Hand[Any], bundle: list[Numbered[Any]]) -> None:
        """Gives a worker a bundle; it may be dead already."""
        ...

    def receive(self, hands: Sequence[Hand[Any]]) -> list[tuple[Hand[Any], Reply | None]]:
        """Waits for replies; None for each worker that died."""
        ...

    def close(self) -> None:
        """Ends all workers."""
        ...


def _crew(payload: bytes, scale: Scale) -> Crew:
    if scale.engine == "local":
        return _Processes(payload, scale.devices or visible_devices())
    from .on_ray import RayActors

    return RayActors(payload, scale.workers)


class _Farm(Generic[W, R]):
    def __init__(self, task: WorkerTask[W, R], work: Iterable[W], crew: Crew, workers: int) -> None:
        self._task = task
        self._new = enumerate(work)
        self._crew = crew
        self._workers = workers
        self._again: deque[Numbered[W]] = deque()
        self._deaths: dict[int, int] = {}
        self._in_vain = 0

    def run(self) -> Iterator[tuple[W, R]]:
        hands: list[Hand[W]] = []
        while True:
            hands += self._hire(hands)
            for hand in hands:
                self._fill(hand)
            busy = [hand for hand in hands if hand.sent]
            if not busy:
                return
            for hand, reply in self._crew.receive(busy):
                if reply is None:
                    hands.remove(hand)
                    yield from self._bury(hand)
                elif reply.error is not None:
                    raise reply.error
                elif reply.opened:
                    hand.ready = True
                else:
                    hand.sent.popleft()
                    for number, result in reply.results:
                        self._in_vain = 0
                        yield hand.due.pop(number), result

    def _hire(self, hands: Sequence[Hand[W]]) -> list[Hand[W]]:
        """New workers in the free places, as far as there is work for them."""
        free = set(range(self._workers)) - {hand.number for hand in hands}
        hired = []
        for number in sorted(free):
            bundle = self._next()
            if not bundle:
                break
            hand: Hand[W] = self._crew.hire(number)
            self._give(hand, bundle)
            hired.append(hand)
        return hired

    def _fill(self, hand: Hand[W]) -> None:
        while len(hand.sent) < AHEAD and (bundle := self._next()):
            self._give(hand, bundle)
        if hand.due and not hand.sent:  # there is nothing more for it
            self._give(hand, [])

    def _give(self, hand: Hand[W], bundle: list[Numbered[W]]) -> None:
        hand.due.update(bundle)
        hand.sent.append(bundle)
        self._crew.send(hand, bundle)

    def _next(self) -> list[Numbered[W]]:
        if self._again:  # one at a time, to find the piece that kills
            return [self._again.popleft()]
        return list(islice(self._new, self._task.bundle))

    def _bury(self, hand: Hand[W]) -> Iterator[tuple[W, R]]:
        """Takes back what a dead worker had; a piece that killed several fails."""
        self._in_vain += 1
        if self._in_vain > DEATHS * self._workers:
            raise RunFailed(
                f"workers died {self._in_vain} times in a row and did nothing, with "
                f"{len(hand.due):,} pieces of work under way; were they killed, or out of memory? "
                f"Run the same command again, perhaps with fewer --workers"
            )
        in_work = {number for number, _ in hand.sent[0]} if hand.sent and hand.ready else set()
        for number, piece in hand.due.items():
            self._deaths[number] = self._deaths.get(number, 0) + (number in in_work)
            if self._deaths[number] >= DEATHS:
                yield piece, self._task.lost(piece, DEATHS)
            else:
                self._again.append((number, piece))


_START = """
import json, sys
sys.path[:] = json.loads(sys.argv[1])
from counterprior.eval.workers.farm import serve
serve(int(sys.argv[2]))
"""


class _Processes:
    """Processes on this machine, each with its device; they end with this one.

    Interpreters of their own: `multiprocessing` would import the user's script again in each, and
    run what stands in it without a guard.
    """

    def __init__(self, payload: bytes, devices: Sequence[str]) -> None:
        self._payload = payload
        self._devices = devices
        self._all: list[_Link] = []

    def hire(self, number: int) -> Hand[Any]:
        ours, theirs = Pipe()
        environment = dict(os.environ)
        if self._devices:
            environment["CUDA_VISIBLE_DEVICES"] = self._devices[number % len(self._devices)]
        process = subprocess.Popen(
            [sys.executable, "-c", _START, json.dumps(sys.path), str(theirs.fileno())],
            env=environment,
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
        )
        theirs.close()  # else its end would not be noticed
        link = _Link(ours, process)
        self._all.append(link)
        hand: Hand[Any] = Hand(number, link)
        self._try(ours.send_bytes, self._payload)
        return hand

    def send(self, hand: Hand[Any], bundle: list[Numbered[Any]]) -> None:
        self._try(hand.link.connection.send_bytes, pickle.dumps(bundle))

    def receive(self, hands: Sequence[Hand[Any]]) -> list[tuple[Hand[Any], Reply | None]]:
        by_connection = {hand.link.connection: hand for hand in hands}
        found: list[tuple[Hand[Any], Reply | None]] = []
        for connection in wait(list(by_connection)):
            assert isinstance(connection, Connection)
            hand = by_connection[connection]
            try:
                found.append((hand, pickle.loads(connection.recv_bytes())))
            except (EOFError, OSError):
                hand.link.end()
                self._all.remove(hand.link)
                found.append((hand, None))
        return found

    def close(self) -> None:
        for link in self._all:
            link.end()

    @staticmethod
    def _try(send: Any, data: bytes) -> None:
        with suppress(OSError):  # it is dead: `receive` will tell
            send(data)


@dataclass(eq=False)
class _Link:
    connection: Connection
    process: subprocess.Popen[bytes]

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        self.connection.close()


def visible_devices() -> tuple[str, ...]:
    """The GPUs that this process may use, as CUDA_VISIBLE_DEVICES names them; none without GPUs."""
    told = os.environ.get("CUDA_VISIBLE_DEVICES")
    if told is not None:
        return tuple(part.strip() for part in told.split(",") if part.strip())
    found = [path.name for path in Path("/dev").glob("nvidia*")]
    numbers = (re.fullmatch(r"nvidia(\d+)", name) for name in found)
    return tuple(str(n) for n, _ in enumerate(filter(None, numbers)))


def serve(number: int) -> None:
    """The life of a worker process, which hears of its work by an open file."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles it and ends this process
    end_with_parent()
    connection = Connection(number)
    try:
        worker, reply = opened(connection.recv_bytes())
        connection.send_bytes(reply)
        while worker is not None:
            connection.send_bytes(done(worker, pickle.loads(connection.recv_bytes())))
    except (EOFError, BrokenPipeError):
        return  # the parent is gone, or needs nothing more


def opened(payload: bytes) -> tuple[TaskWorker[Any, Any] | None, bytes]:
    """The worker of a pickled task, and the reply that says so, pickled; without it, the error."""
    try:
        worker = pickle.loads(payload).open()
    except BaseException as error:
        return None, _failed(error)
    return worker, pickle.dumps(Reply(opened=True))


def done(worker: TaskWorker[Any, Any], bundle: list[Numbered[Any]]) -> bytes:
    """The reply to a bundle, pickled; the empty one asks for all that is still due."""
    try:
        return pickle.dumps(Reply(list(worker.do(bundle) if bundle else worker.finish())))
    except BaseException as error:
        return _failed(error)


def _failed(error: BaseException) -> bytes:
    """The reply that carries an error, pickled; one that can't be is told in words."""
    if isinstance(error, AttributeError) and "__main__" in str(error):
        error = UsageError(
            f"workers can't import this from __main__ ({error}): put it into a module, and give "
            f"python:MODULE:FACTORY"
        )
    error.add_note("in a worker:\n" + "".join(traceback.format_exception(error)))
    try:
        data = pickle.dumps(Reply(error=error))
        pickle.loads(data)
        return data
    except Exception:
        told = RunFailed(f"a worker failed: {type(error).__name__}: {error}")
        return pickle.dumps(Reply(error=told))


def check_same(expected: dict[str, str], found: dict[str, str], what: str) -> None:
    """Raises RunFailed where a worker opens something else than the run is of."""
    changed = [k for k in {**expected, **found} if expected.get(k) != found.get(k)]
    if changed:
        name = changed[0]
        raise RunFailed(
            f"the {what} is another one in a worker: {name} is {found.get(name)}, and "
            f"{expected.get(name)} in this process; give workers the same libraries and devices"
        )


def end_with_parent() -> None:
    """Ends this process when its parent is gone: a killed run must leave no writing worker."""
    parent = os.getppid()
    # Of a pool's worker; it may have gone before this line, when `parent` is somebody else already.
    starter = parent_process()

    def watch() -> None:
        while os.getppid() == parent and (starter is None or starter.is_alive()):
            time.sleep(0.3)
        os._exit(1)

    threading.Thread(target=watch, daemon=True, name="end-with-parent").start()
