"""Seed pictures of the I2I suites: drawn by any generator, in parallel, independent of order."""

from __future__ import annotations

import hashlib
import multiprocessing
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor

from ..eval.core import Generator, ImageRequest
from ..eval.generators import draw, open_generator
from ..images import encode_png
from ..schema import EncodedImage, SeededRow

_CHUNK = 25
_generator: Generator | None = None


def draw_seeds(
    rows: list[SeededRow], generator: str, jobs: int, progress: Callable[[int], None]
) -> list[SeededRow]:
    """The rows with their seed picture, each drawn from `seed_prompt` with the row's first seed.

    `generator` is a spec such as ``render:``; `progress` is told how many were drawn since the last
    call. The pictures depend on the rows alone, not on `jobs`. Raises what the generator raises.
    """
    requests = [(row.seed_prompt, row.seeds[0]) for row in rows]
    drawn: list[SeededRow] = []
    for row, encoded in zip(rows, _draw_all(requests, generator, jobs), strict=True):
        drawn.append(
            row.model_copy(
                update={
                    "seed_image": EncodedImage(bytes=encoded, path=f"{row.id}.png"),
                    "image_sha256": hashlib.sha256(encoded).hexdigest(),
                    "seed_source": generator.partition(":")[0],
                }
            )
        )
        progress(1)
    return drawn


def _draw_all(requests: list[tuple[str, int]], generator: str, jobs: int) -> Iterator[bytes]:
    if jobs == 1:
        _open(generator)
        yield from map(_draw, requests)
        return
    # Spawned, not forked: pyarrow and the progress bar have threads, which fork would break.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, context, initializer=_start, initargs=(generator,)) as pool:
        try:
            yield from pool.map(_draw, requests, chunksize=_CHUNK)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)  # an interrupt waits for no chunk
            raise


def _start(generator: str) -> None:
    """A worker leaves interrupts to the process that started it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _open(generator)


def _open(generator: str) -> None:
    global _generator
    _generator = open_generator(generator)


def _draw(request: tuple[str, int]) -> bytes:
    assert _generator is not None
    return encode_png(draw(_generator, ImageRequest(*request)))
