"""Workers: processes that do pieces of work here, or Ray actors on a cluster; `farm` feeds either.

A piece is sent when its worker has room, and its result comes back as soon as it is ready, so work
is taken as it is needed and results don't depend on the number of workers. If a worker dies, others
repeat the pieces that it had. This module imports nothing heavy, because a worker imports it before
its device is set.
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
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

from ...errors import RunFailed, UsageError
from .tasks import (
    Numbered,
    Reply,
    WorkerHandle,
    WorkerPool,
    WorkerTask,
    do_bundle,
    open_task,
)

W = TypeVar("W")
R = TypeVar("R")

WorkerEngine = Literal["local", "ray"]
ENGINES = ("local", "ray")

DEATHS = 3
"""Workers that may die on the same piece of work before it counts as failed."""
AHEAD = 2
"""Bundles that a worker has at a time: it works on one while the next is on its way."""


def as_engine(name: str) -> WorkerEngine:
    """Returns the engine of this name. Raises UsageError if there is none."""
    if name not in ENGINES:
        raise UsageError(
            f"no engine {name!r}", f"choose from {', '.join(ENGINES)}", code="unknown-name"
        )
    return "ray" if name == "ray" else "local"


@dataclass(frozen=True)
class Scale:
    """Number of processes that share a run, and the part of it that is this process's."""

    workers: int = 1
    """Worker processes, besides this one."""
    devices: tuple[str, ...] = ()
    """Values of CUDA_VISIBLE_DEVICES, one for each worker in turn; empty for all visible ones."""
    shard: tuple[int, int] | None = None
    """Part I of N of the work, as (I, N), i.e. every Nth row or file; None for all of it."""
    engine: WorkerEngine = "local"
    """Processes on this machine, or actors on the Ray cluster at RAY_ADDRESS."""

    def __post_init__(self) -> None:
        if self.workers < 1:
            raise UsageError(f"workers={self.workers}", "give at least 1", code="out-of-range")
        as_engine(self.engine)
        if self.shard is not None and not 1 <= self.shard[0] <= self.shard[1]:
            raise UsageError(
                f"shard {self.shard}", "give (I, N) with I from 1 to N", code="out-of-range"
            )
        if self.devices and self.engine == "ray":
            raise UsageError(
                "--engine ray assigns the devices itself",
                "drop --devices",
                code="conflicting-options",
            )

    @property
    def in_process(self) -> bool:
        """Whether this process does all the work, without workers."""
        return self.workers == 1 and not self.devices and self.engine == "local"


IN_PROCESS = Scale()
"""No workers: this process does all the work."""


def farm(
    task: WorkerTask[W, R],
    work: Iterable[W],
    scale: Scale,
    *,
    ahead: int = AHEAD,
    gpus: bool = True,
    on_death: Callable[[int], None] | None = None,
) -> Generator[tuple[W, R], None, None]:
    """Yields each piece of work with its result, as soon as it is ready, in any order.

    ahead: bundles that a worker has at a time; 1 for pieces of many seconds, so that none waits
    behind another while a worker is free. gpus: whether Ray gives workers a share of a GPU, where
    the cluster has any, instead of a CPU. on_death: called with the number of workers that have
    died, whenever one does.

    Raises what a worker raises, UsageError for a task that can't be sent to another process, and
    RunFailed if workers die without doing anything.
    """
    try:
        payload = pickle.dumps(task)
    except Exception as error:  # whatever the user's own objects raise
        raise UsageError(
            f"this can't be sent to worker processes ({error})",
            "give a spec, e.g. python:MODULE:FACTORY, or use one worker",
            code="cannot-pickle",
        ) from None
    pool = _open_pool(payload, scale, gpus)
    try:
        yield from _Farm(task, work, pool, scale.workers, ahead, on_death).run()
    finally:
        pool.close()


def _open_pool(payload: bytes, scale: Scale, gpus: bool) -> WorkerPool:
    if scale.engine == "local":
        return _Processes(payload, scale.devices or visible_devices())
    from .on_ray import RayActors

    return RayActors(payload, scale.workers, gpus)


class _Farm(Generic[W, R]):
    """Hands work to workers, and to others what dead ones had."""

    def __init__(
        self,
        task: WorkerTask[W, R],
        work: Iterable[W],
        pool: WorkerPool,
        workers: int,
        ahead: int,
        on_death: Callable[[int], None] | None,
    ) -> None:
        self._task = task
        self._unsent = enumerate(work)
        self._pool = pool
        self._workers = workers
        self._ahead = ahead
        self._on_death = on_death
        self._requeued: deque[Numbered[W]] = deque()
        self._deaths_on_piece: dict[int, int] = {}
        self._deaths = 0
        self._deaths_in_a_row = 0

    def run(self) -> Iterator[tuple[W, R]]:
        workers: list[WorkerHandle[W]] = []
        while True:
            workers += self._start_workers(workers)
            for worker in workers:
                self._fill(worker)
            busy = [worker for worker in workers if worker.bundles]
            if not busy:
                return
            for worker, reply in self._pool.receive(busy):
                if reply is None:
                    workers.remove(worker)
                    yield from self._requeue_lost(worker)
                elif reply.error is not None:
                    raise reply.error
                elif reply.opened:
                    worker.ready = True
                else:
                    worker.bundles.popleft()
                    for number, result in reply.results:
                        self._deaths_in_a_row = 0
                        yield worker.pending.pop(number), result

    def _start_workers(self, running: Sequence[WorkerHandle[W]]) -> list[WorkerHandle[W]]:
        """Starts the workers that are missing, as far as there is work for them."""
        missing = set(range(self._workers)) - {worker.number for worker in running}
        started = []
        for number in sorted(missing):
            bundle = self._next_bundle()
            if not bundle:
                break
            worker: WorkerHandle[W] = self._pool.start(number)
            self._send(worker, bundle)
            started.append(worker)
        return started

    def _fill(self, worker: WorkerHandle[W]) -> None:
        while len(worker.bundles) < self._ahead and (bundle := self._next_bundle()):
            self._send(worker, bundle)
        if worker.pending and not worker.bundles:  # no more work for it
            self._send(worker, [])

    def _send(self, worker: WorkerHandle[W], bundle: list[Numbered[W]]) -> None:
        worker.pending.update(bundle)
        worker.bundles.append(bundle)
        self._pool.send(worker, bundle)

    def _next_bundle(self) -> list[Numbered[W]]:
        if self._requeued:  # one at a time, to find the piece that kills
            return [self._requeued.popleft()]
        return list(islice(self._unsent, self._task.bundle))

    def _requeue_lost(self, dead: WorkerHandle[W]) -> Iterator[tuple[W, R]]:
        """Requeues the pieces of a dead worker; yields those that killed too many as failed."""
        self._deaths += 1
        self._deaths_in_a_row += 1
        if self._deaths_in_a_row > DEATHS * self._workers:
            raise RunFailed(
                f"workers died {self._deaths_in_a_row} times in a row without a result, with "
                f"{len(dead.pending):,} pieces of work pending; were they killed, or out of "
                f"memory?",
                "run the same command again, perhaps with fewer --workers",
                code="workers-died",
            )
        if self._on_death is not None:
            self._on_death(self._deaths)
        in_work = {number for number, _ in dead.bundles[0]} if dead.bundles and dead.ready else ()
        for number, piece in dead.pending.items():
            deaths = self._deaths_on_piece.get(number, 0) + (number in in_work)
            self._deaths_on_piece[number] = deaths
            if deaths >= DEATHS:
                yield piece, self._task.lost(piece, DEATHS)
            else:
                self._requeued.append((number, piece))


_START = """
import json, sys
sys.path[:] = json.loads(sys.argv[1])
from counterprior.eval.workers.farm import serve
serve(int(sys.argv[2]), int(sys.argv[3]))
"""


class _Processes:
    """Processes on this machine, each with its device; they end with this one.

    Not of `multiprocessing`, which would import the user's script again in each, and run what that
    holds without a guard.
    """

    def __init__(self, payload: bytes, devices: Sequence[str]) -> None:
        self._payload = payload
        self._devices = devices
        self._links: list[_Link] = []

    def start(self, number: int) -> WorkerHandle[Any]:
        ours, theirs = Pipe()
        environment = dict(os.environ)
        if self._devices:
            environment["CUDA_VISIBLE_DEVICES"] = self._devices[number % len(self._devices)]
        arguments = [json.dumps(sys.path), str(theirs.fileno()), str(os.getpid())]
        process = subprocess.Popen(
            [sys.executable, "-c", _START, *arguments],
            env=environment,
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
        )
        theirs.close()  # otherwise `receive` would not notice its end
        link = _Link(ours, process)
        self._links.append(link)
        self._try_to_send(link, self._payload)
        return WorkerHandle(number, link)

    def send(self, worker: WorkerHandle[Any], bundle: list[Numbered[Any]]) -> None:
        self._try_to_send(worker.link, pickle.dumps(bundle))

    def receive(
        self, workers: Sequence[WorkerHandle[Any]]
    ) -> list[tuple[WorkerHandle[Any], Reply | None]]:
        by_connection = {worker.link.connection: worker for worker in workers}
        replies: list[tuple[WorkerHandle[Any], Reply | None]] = []
        for connection in wait(list(by_connection)):
            assert isinstance(connection, Connection)
            worker = by_connection[connection]
            try:
                replies.append((worker, pickle.loads(connection.recv_bytes())))
            except (EOFError, OSError):
                worker.link.end()
                self._links.remove(worker.link)
                replies.append((worker, None))
        return replies

    def close(self) -> None:
        for link in self._links:
            link.end()

    @staticmethod
    def _try_to_send(link: _Link, data: bytes) -> None:
        with suppress(OSError):  # it is dead: `receive` reports it
            link.connection.send_bytes(data)


@dataclass(eq=False)
class _Link:
    connection: Connection
    process: subprocess.Popen[bytes]

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        self.connection.close()


def visible_devices() -> tuple[str, ...]:
    """GPUs that this process may use, as CUDA_VISIBLE_DEVICES names them; empty without GPUs."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        return tuple(name.strip() for name in visible.split(",") if name.strip())
    files = [path.name for path in Path("/dev").glob("nvidia*")]
    numbers = (re.fullmatch(r"nvidia(\d+)", name) for name in files)
    return tuple(str(n) for n, _ in enumerate(filter(None, numbers)))


def serve(file: int, parent: int) -> None:
    """Runs a worker process: reads its task and bundles from an open file of this number."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles it and ends this process
    end_with_parent(parent)
    connection = Connection(file)
    try:
        worker, reply = open_task(connection.recv_bytes())
        connection.send_bytes(reply)
        while worker is not None:
            connection.send_bytes(do_bundle(worker, pickle.loads(connection.recv_bytes())))
    except (EOFError, BrokenPipeError):
        return  # the parent is gone, or needs nothing more


def end_with_parent(parent: int) -> None:
    """Ends this process when its parent, of this id, is gone: a killed run must leave no writer."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.3)
        os._exit(1)

    threading.Thread(target=watch, daemon=True, name="end-with-parent").start()
