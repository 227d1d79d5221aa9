"""How many CPUs a process may use, and processes that use them."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def available_cpus() -> int:
    """CPUs that this process may use, at least 1: fewer than the machine has e.g. under Slurm."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


MOST_SECONDS = 5
"""Seconds in which the thread that looks after terminated processes ends."""


class _QuietPool(ProcessPoolExecutor):
    """Processes that a terminal's interrupt does not reach, started as tasks come.

    They inherit the block of the thread that starts them: one that began to ignore interrupts by
    itself would end in a traceback if the interrupt came while it still starts.
    """

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            return super().submit(fn, *args, **kwargs)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Ends the processes: in the middle of their tasks if nobody waits and none is wanted.

        This process would wait for those tasks when it ends.
        """
        working = list((self._processes or {}).values())
        manager: Any = self._executor_manager_thread
        super().shutdown(wait, cancel_futures=cancel_futures)
        if cancel_futures and not wait:
            for process in working:
                process.terminate()
            # Else the end of this process may write into a pipe that the thread closes just then.
            if manager is not None:
                manager.join(MOST_SECONDS)


def spawned(jobs: int) -> ProcessPoolExecutor:
    """So many processes to work in, which leave interrupts to the one that started them.

    Spawned, not forked: pyarrow and the progress bar have threads, which fork would break.
    """
    return _QuietPool(jobs, multiprocessing.get_context("spawn"))
