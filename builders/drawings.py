"""Drawings: each made once, in several processes, and kept in the user's cache for later runs.

A drawing depends on its request and on the code that draws alone. Neither the order of work nor the
number of processes changes an image, nor does what was kept: without it, drawing only takes longer.
"""

from __future__ import annotations

import hashlib
import logging
import platform
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import NamedTuple, Protocol

from PIL import features

from ..cpus import spawned
from ..errors import DataError
from ..kept import Kept, digest_of_code, kept_for

DRAWN_BY = (
    *("scenes", "images.py", "builders/gold.py", "builders/seeds.py", "builders/bank.py"),
    *("parsing.py", "eval/generators/__init__.py", "eval/generators/render.py"),
)
"""Files of the package that decide what a request gives; of a folder, all."""
LEAST_AGAIN = 16
SHARE_AGAIN = 50
"""Of the kept drawings that a run takes, so many at least, and one of so many, are drawn again."""

_CHUNK = 25
_TEXTS = "bank"
"""Kind of a bank's files. Starting processes takes longer than parsing the few that most runs need:
these are parsed in others only where images are drawn there."""
_MOST = 8192
_log = logging.getLogger(__name__)


class DrawingRequest(Protocol):
    """An image to draw, a number to find by images, or a bank file to parse.

    It can be sent to another process.
    """

    @property
    def key(self) -> str:
        """Its kind, then all that decides it, besides the code; empty if it must not be kept."""
        ...

    def draw(self) -> bytes:
        """The encoded image, the number as text, or the parsed values as JSON."""
        ...


def kept_here() -> Kept:
    """The drawings kept for this user by the code of this package."""
    return kept_for("drawings", code_digest())


@cache
def code_digest() -> str:
    """SHA-256 over all that draws: this package's files, the libraries, the kind of machine."""
    import fontTools
    import matplotlib
    import numpy as np
    import PIL
    import yaml

    libraries = [f"{name} {features.version(name)}" for name in ("zlib", "freetype2")]
    versions = (
        PIL.__version__,
        fontTools.version,
        matplotlib.__version__,
        np.__version__,
        yaml.__version__,
        platform.python_version(),
        platform.machine(),
    )
    return digest_of_code(DRAWN_BY, [*libraries, *versions])


class DrawingCounts(NamedTuple):
    """How the images of a run came about, by kind."""

    drawn: Counter[str]
    """What was drawn."""
    taken: Counter[str]
    """What earlier runs drew."""
    again: Counter[str]
    """What of this was drawn again, and came out the same."""


class DrawingRun:
    """The drawings of one run."""

    def __init__(self, kept: Kept | None = None, jobs: int = 1) -> None:
        """Without `kept` every image is drawn, and none is left for later runs."""
        self._kept = kept
        self._jobs = jobs
        self._pool: ProcessPoolExecutor | None = None
        self._begun: dict[str, tuple[Future[list[bytes]], int]] = {}
        self._waiting: dict[str, _Named] = {}  # bank files, until there is a pool
        self._made: dict[str, bytes] = {}
        self.counts = DrawingCounts(Counter(), Counter(), Counter())
        """How its images came about."""

    def begin(self, requests: Sequence[DrawingRequest]) -> None:
        """Starts drawing what will be asked for and was not kept, in other processes if several.

        Of what was kept, a sample is drawn again first. If one differs, nothing kept is used.
        """
        named = {known.name: known for request in requests if (known := _named(request))}
        self._made.update(self._from_kept(named))
        missing = self._not_begun(named)
        if self._jobs == 1 or len(missing) < _CHUNK:
            return
        if self._pool is None:
            if all(known.kind == _TEXTS for known in missing):
                self._waiting |= named
                return
            self._pool = spawned(self._jobs)
            missing = self._not_begun(self._waiting | named)
        for start in range(0, len(missing), _CHUNK):
            chunk = missing[start : start + _CHUNK]
            future = self._pool.submit(_draw, [known.request for known in chunk])
            for place, known in enumerate(chunk):
                self._begun[known.name] = future, place

    def _not_begun(self, named: dict[str, _Named]) -> list[_Named]:
        """Those of which there is no drawing, and nobody makes one."""
        return [
            known
            for name, known in named.items()
            if name not in self._made and name not in self._begun
        ]

    def __call__(self, request: DrawingRequest) -> bytes:
        """The image of a request. Raises what its `draw` raises."""
        known = _named(request)
        if known is None:
            return request.draw()
        name = known.name
        if name in self._made:
            return self._made[name]
        if name in self._begun:
            future, place = self._begun.pop(name)
            try:
                data = future.result()[place]
            except DataError:  # of any of those that it was drawn with
                data = request.draw()
            return self._note(known, data)
        if self._kept and (kept := self._kept.get(name)) is not None:
            self.counts.taken[known.kind] += 1
            return self._remember(name, kept)
        return self._note(known, request.draw())

    def kept(self, requests: Sequence[DrawingRequest]) -> list[bytes | None]:
        """What earlier runs drew of some requests, a sample of it drawn again; None for the others,
        which are not drawn."""
        asked = [_named(request) for request in requests]
        kept = self._from_kept({known.name: known for known in asked if known})
        return [
            None if known is None else kept.get(known.name, self._made.get(known.name))
            for known in asked
        ]

    def text(self, kind: str) -> str:
        """How many images of a kind were drawn; empty for none.

        >>> DrawingRun().text("gold")
        ''
        """
        drawn, again = self.counts.drawn[kind], self.counts.again[kind]
        if not (total := drawn + self.counts.taken[kind]):
            return ""
        return (
            f"; of {total:,} {kind} images {drawn + again:,} drawn again, all others kept drawings"
        )

    def _from_kept(self, named: dict[str, _Named]) -> dict[str, bytes]:
        """Name -> kept drawing of each request that has one and was not asked for before."""
        if self._kept is None:
            return {}
        wanted = [n for n in named if n not in self._made and n not in self._begun]
        kept = {n: data for n in wanted if (data := self._kept.get(n)) is not None}
        count = min(len(kept), max(LEAST_AGAIN, len(kept) // SHARE_AGAIN))
        sample = random.Random("drawn again").sample(sorted(kept), count)
        for name in sample:
            if named[name].request.draw() != kept[name]:
                _log.warning("what is kept in the cache is wrong: all is made again")
                self._kept.clear()
                return {}
        self.counts.taken.update(named[name].kind for name in kept)
        self.counts.again.update(named[name].kind for name in sample)
        return kept

    def _note(self, known: _Named, data: bytes) -> bytes:
        self.counts.drawn[known.kind] += 1
        if self._kept:
            self._kept.put(known.name, data)
        return self._remember(known.name, data)

    def _remember(self, name: str, data: bytes) -> bytes:
        while len(self._made) >= _MOST:
            del self._made[next(iter(self._made))]
        self._made[name] = data
        return data

    def close(self, wait: bool = True) -> None:
        """Ends the processes; an interrupt (`wait` is false) waits for no chunk."""
        if self._pool:
            self._pool.shutdown(wait=wait, cancel_futures=True)
            self._pool = None
        self._begun.clear()


class _Named(NamedTuple):
    """A request that may be kept. Its key, which may take long to make, is made once."""

    name: str
    """Digest of the key."""
    kind: str
    """Kind that the key begins with."""
    request: DrawingRequest


def _named(request: DrawingRequest) -> _Named | None:
    """The request by name; None if it must not be kept."""
    key = request.key
    if not key:
        return None
    return _Named(hashlib.sha256(key.encode()).hexdigest(), key.partition(" ")[0], request)


def _draw(requests: Sequence[DrawingRequest]) -> list[bytes]:
    return [request.draw() for request in requests]


_current: ContextVar[DrawingRun | None] = ContextVar("drawings", default=None)


def drawings() -> DrawingRun:
    """The drawings of the block of `drawing` that runs, else those of this process."""
    return _current.get() or _of_process()


@cache
def _of_process() -> DrawingRun:
    return DrawingRun(kept_here())


@contextmanager
def drawing_beside(*, use_kept: bool) -> Iterator[DrawingCounts]:
    """Draws in a process of its own within the block; yields counts for `count_drawn` there."""
    with drawing(use_kept=use_kept) as run:
        yield run.counts


def count_drawn(others: DrawingCounts) -> None:
    """Counts the images of another process as those of this one's run."""
    for own, other in zip(drawings().counts, others, strict=True):
        own.update(other)


@contextmanager
def drawing(jobs: int = 1, *, use_kept: bool = True) -> Iterator[DrawingRun]:
    """Draws in `jobs` processes within the block; without `use_kept` takes nothing from earlier
    runs, and leaves nothing."""
    run = DrawingRun(kept_here() if use_kept else None, jobs)
    token = _current.set(run)
    try:
        yield run
    except BaseException:
        run.close(wait=False)
        raise
    finally:
        _current.reset(token)
        run.close()
