"""How many CPUs a process may use, and processes that use them."""

from __future__ import annotations

import multiprocessing
import os
import signal
from concurrent.futures import ProcessPoolExecutor


def available_cpus() -> int:
    """CPUs that this process may use, at least 1: fewer than the machine has e.g. under Slurm."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def spawned(jobs: int) -> ProcessPoolExecutor:
    """So many processes to work in, which leave interrupts to the one that started them.

    Spawned, not forked: pyarrow and the progress bar have threads, which fork would break.
    """
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(jobs, context, initializer=_ignore_interrupts)


def _ignore_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
