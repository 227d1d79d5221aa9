"""Work for threads: several pieces at a time, taken as needed, returned as they are done."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import islice
from typing import TypeVar

W = TypeVar("W")
R = TypeVar("R")


def in_threads(
    function: Callable[[W], R], work: Iterable[W], concurrency: int
) -> Generator[R, None, None]:
    """The function's result for each piece of work, as soon as it is there, in any order.

    Work is taken as it is needed, in the caller's thread, so there may be more than fits into
    memory. If one raises, nothing further starts, and the error is raised when those under way have
    ended. With `concurrency` 1 all runs in the caller's thread, where an interrupt reaches it.
    """
    if concurrency == 1:
        yield from map(function, work)
        return
    waiting = iter(work)
    stop = threading.Event()

    def run(item: W) -> tuple[R] | None:
        if stop.is_set():
            return None
        try:
            return (function(item),)
        except BaseException:
            stop.set()
            raise

    with ThreadPoolExecutor(concurrency) as pool:
        under_way: set[Future[tuple[R] | None]] = set()
        try:
            while True:
                # A short queue, so that an error or an interrupt leaves little behind.
                free = 2 * concurrency - len(under_way)
                under_way |= {pool.submit(run, item) for item in islice(waiting, free)}
                if not under_way:
                    return
                ended, under_way = wait(under_way, return_when=FIRST_COMPLETED)
                for future in ended:
                    if result := future.result():
                        yield result[0]
        finally:
            stop.set()
