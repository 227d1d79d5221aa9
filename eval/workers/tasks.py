"""What a worker does and answers, whichever pool it is of: tasks, bundles of work, replies.

This module imports nothing heavy, because a worker imports it before its device is set.
"""

from __future__ import annotations

import pickle
import traceback
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from ...errors import RunFailed, UsageError

W = TypeVar("W")
_W = TypeVar("_W", contravariant=True)
_R = TypeVar("_R", covariant=True)

Numbered = tuple[int, W]
"""A piece of work with its number."""


class TaskWorker(Protocol[_W, _R]):
    """The work of one process, with the models that it has loaded."""

    def do(self, work: Sequence[Numbered[_W]]) -> Iterable[Numbered[_R]]:
        """Results that are ready, of these pieces or of earlier ones, in any order."""
        ...

    def finish(self) -> Iterable[Numbered[_R]]:
        """All remaining results."""
        ...


class WorkerTask(Protocol[_W, _R]):
    """Picklable description of the work, sent to every worker."""

    def open(self) -> TaskWorker[_W, _R]:
        """Called once in each worker, with its device set. An exception in it ends the farm."""
        ...

    @property
    def bundle(self) -> int:
        """Number of pieces that are sent together."""
        ...

    def lost(self, piece: _W, deaths: int) -> _R:
        """Result of a piece on which this many workers died."""
        ...


@dataclass(eq=False)
class WorkerHandle(Generic[W]):
    """A worker as the farm sees it."""

    number: int
    """From 0; the replacement of a dead worker has the same."""
    link: Any
    """The pool's connection to it."""
    ready: bool = False
    """Whether it has opened its task."""
    bundles: deque[list[Numbered[W]]] = field(default_factory=deque)
    """Bundles without a reply, an empty one to finish; it works on the first."""
    pending: dict[int, W] = field(default_factory=dict)
    """Pieces without a result."""


@dataclass(frozen=True)
class Reply:
    """A worker's message: the results of a bundle, or the error that stopped it."""

    results: Sequence[Numbered[Any]] = ()
    error: BaseException | None = None
    opened: bool = False
    """Whether it only reports that the task is open."""


class WorkerPool(Protocol):
    """Starts workers on one machine or a cluster, and talks to them."""

    def start(self, number: int) -> WorkerHandle[Any]:
        """Starts a worker."""
        ...

    def send(self, worker: WorkerHandle[Any], bundle: list[Numbered[Any]]) -> None:
        """Sends a worker a bundle; it may be dead already."""
        ...

    def receive(
        self, workers: Sequence[WorkerHandle[Any]]
    ) -> list[tuple[WorkerHandle[Any], Reply | None]]:
        """Waits for replies; None for each worker that died."""
        ...

    def close(self) -> None:
        """Ends all workers."""
        ...


def open_task(payload: bytes) -> tuple[TaskWorker[Any, Any] | None, bytes]:
    """Opens a pickled task; returns its worker, None if that failed, and the pickled reply."""
    try:
        worker = pickle.loads(payload).open()
    except BaseException as error:
        return None, _error_reply(error)
    return worker, pickle.dumps(Reply(opened=True))


def do_bundle(worker: TaskWorker[Any, Any], bundle: list[Numbered[Any]]) -> bytes:
    """Returns the pickled reply to a bundle; an empty one asks for all remaining results."""
    try:
        return pickle.dumps(Reply(list(worker.do(bundle) if bundle else worker.finish())))
    except BaseException as error:
        return _error_reply(error)


def _error_reply(error: BaseException) -> bytes:
    """Returns the pickled reply that carries an error, or its text if it can't be pickled."""
    if isinstance(error, AttributeError) and "__main__" in str(error):
        error = UsageError(
            f"workers can't import this from __main__ ({error})",
            "put it into a module, and give python:MODULE:FACTORY",
            code="cannot-pickle",
        )
    error.add_note("in a worker:\n" + "".join(traceback.format_exception(error)))
    try:
        data = pickle.dumps(Reply(error=error))
        pickle.loads(data)
        return data
    except Exception:
        failure = RunFailed(
            f"a worker failed: {type(error).__name__}: {error}", code="workers-died"
        )
        return pickle.dumps(Reply(error=failure))


def check_same(expected: dict[str, str], opened: dict[str, str], noun: str) -> None:
    """Raises RunFailed if a worker opened something other than what the run's identity says."""
    changed = [k for k in {**expected, **opened} if expected.get(k) != opened.get(k)]
    if changed:
        name = changed[0]
        raise RunFailed(
            f"the {noun} of a worker differs: {name} is {opened.get(name)}, and "
            f"{expected.get(name)} in this process",
            "give workers the same libraries and devices",
            code="different-workers",
        )
