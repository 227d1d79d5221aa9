"""Scores that earlier commands computed from a run, taken where all that decides them is the same.

Each is kept with a digest of what it was computed from: the bytes of the run's records and
verdicts, which images are still the recorded ones, labels. Code of another version keeps others.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import platform
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, fields
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pydantic
import scipy

from ...human_labels import SAMPLE
from ...kept import Kept, digest_of_code, kept_for
from ...parsing import RowError, parse_as
from ..engine.run import CHECKED, Run
from .scoring import SCORES, Result, ScoreSettings

SCORED_BY = ("*.py", "agents", "eval", "scenes")
"""Files of the package that decide scores; of a folder, all."""
T = TypeVar("T")


@cache
def scoring_digest() -> str:
    """SHA-256 over all that scores: this package's files, the libraries, the kind of machine."""
    libraries = (np.__version__, scipy.__version__, pydantic.VERSION)
    return digest_of_code(SCORED_BY, [*libraries, platform.python_version(), platform.machine()])


def kept_scores() -> Kept:
    """What the scoring code of this package keeps for this user."""
    return kept_for("scores", scoring_digest())


class ScoresOfRun:
    """What is computed from a run as it is now, or was computed before."""

    def __init__(self, run: Run) -> None:
        """Looks at the run's files, and then holds it: what is written meanwhile is in no digest
        of what is computed from it."""
        files = _digest_of(_files_of(run))
        self.run = run.held()
        present = json.dumps([*run.present().items()])
        self.digest = hashlib.sha256(f"{files} {present}".encode()).hexdigest()
        """SHA-256 over all that is computed from: its records, verdicts and present images."""
        self._files = files
        self._kept = kept_scores()

    def computed(
        self, name: str, kind: Any, compute: Callable[[], T], others: Sequence[Path] = ()
    ) -> T:
        """What a computation returns, as `computed`. others: files elsewhere that it reads, too."""
        read = _digest_of(others)

        def is_same() -> bool:
            return self.is_same() and _digest_of(others) == read

        return computed(name, f"{self.digest} {read}", kind, compute, is_same, self._kept)

    def is_same(self) -> bool:
        """Whether nobody has written to its files since they were looked at."""
        return _digest_of(_files_of(self.run)) == self._files

    def results(
        self, settings: ScoreSettings, several: bool, compute: Callable[[], list[Result]]
    ) -> list[Result]:
        """What `score_run` returns, without the outcomes behind it."""
        if settings.card is not None or settings.gold is not None:
            return compute()  # other runs decide, too
        labels = settings.labels
        others = [labels, labels.with_name(SAMPLE)] if labels else []
        name = kept_name("results", self.run.root, asdict(settings), several)
        return self.computed(name, list[Result], compute, others)


def _files_of(run: Run) -> list[Path]:
    """The records and verdicts of a run."""
    own = (path for glob in ("*.json*", "verdicts/*/*.json*") for path in run.root.glob(glob))
    # What was computed, and when this machine last looked, decides nothing.
    return sorted(path for path in own if path.name not in (SCORES, CHECKED))


def _digest_of(paths: Iterable[Path]) -> str:
    """SHA-256 over files, by their names and the names of their folders; some may be missing."""
    digest = hashlib.sha256()
    for path in paths:
        content = b"missing"
        with suppress(OSError), path.open("rb") as file:
            content = hashlib.file_digest(file, "sha256").digest()
        digest.update(f"{path.parent.name}/{path.name}\0".encode() + content)
    return digest.hexdigest()


def kept_name(kind: str, *subject: Any) -> str:
    """Name of what is kept of one kind, e.g. the scores of a folder by some settings.

    A relative folder is another one elsewhere.
    """
    plain = json.dumps([kind, os.getcwd(), *subject], default=str, sort_keys=True)
    return hashlib.sha256(plain.encode()).hexdigest()


def computed(
    name: str,
    inputs: str,
    kind: Any,
    compute: Callable[[], T],
    is_same: Callable[[], bool],
    kept: Kept | None = None,
) -> T:
    """What a computation returns, or returned before, from the same inputs.

    name: see `kept_name`; the newest value of each is kept. inputs: digest of all that it reads.
    kind: type of the value. is_same: whether what it has read is still the same when it ends; else
    nothing is kept. kept: `kept_scores`, where they are open already.
    """
    kept = kept or kept_scores()
    before = kept.get(name)
    if before is not None and before.startswith(inputs.encode()):
        value: T = _parsed(kind, before[len(inputs) :])
        return value
    value = compute()
    data = _plain(value)
    if is_same() and _returns(kind, data):
        kept.put(name, inputs.encode() + data)
    return value


def _plain(value: Any) -> bytes:
    return json.dumps(value, default=_fields_of).encode()


def _fields_of(record: Any) -> dict[str, Any]:
    return {field.name: getattr(record, field.name) for field in fields(record)}


def _parsed(kind: Any, data: bytes) -> Any:
    constants = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
    # The one NaN of the module, so that a score equals that which was computed.
    return parse_as(kind, json.loads(data, parse_constant=constants.get), "a kept score")


def _returns(kind: Any, data: bytes) -> bool:
    """Whether a value comes back as it was, e.g. no 1 as 1.0."""
    try:
        return _plain(_parsed(kind, data)) == data
    except RowError:
        return False
