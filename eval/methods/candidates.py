"""The candidates of a run of `best-of`: a log, and their images in a folder for each case."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from ...parsing import parse_as
from ...specs import Spec
from ..core import Generator
from ..store.answers import AnswerLog
from ..store.verdicts import VerdictLog

FOLDER = "candidates"
EarlierImages = Callable[[str, int], bytes | None]
"""Case and number of a candidate -> the bytes of its image; None if it must be drawn."""


@runtime_checkable
class Searching(Protocol):
    """A method that draws candidates, and takes those that are there."""

    inner: Generator
    """The generator that draws them."""
    earlier: EarlierImages
    """Images that another run has drawn."""


@dataclass(frozen=True)
class Candidate:
    """One of a case's images."""

    case: str
    """Id of the case."""
    number: int
    """Number of the candidate, from 0."""
    seed: int
    """Seed of the image."""
    sha256: str = ""
    """SHA-256 of its PNG; empty without an image."""
    score: float = math.nan
    """Score by the judge or scorer that chooses; NaN if undecided."""
    problem: str = ""
    """Reason of a missing image."""
    usd: str = ""
    """Price of the image, US dollars; empty if it was free or its price is unknown."""

    @property
    def refused(self) -> bool:
        """Whether the model declined: the candidate is never tried again."""
        return self.problem.startswith("refused")

    def to_record(self) -> dict[str, Any]:
        plain = {k: v for k, v in vars(self).items() if v != ""}
        return plain | {"score": None if math.isnan(self.score) else self.score}

    @classmethod
    def from_record(cls, record: dict[str, Any], place: str) -> Candidate:
        """The inverse of `to_record`. Raises DataError for anything else."""
        if record.get("score", "") is None:
            record["score"] = math.nan
        return parse_as(cls, record, place)


def candidate_path(root: Path, candidate: Candidate) -> Path:
    """Path of a candidate's image in a run."""
    return root / FOLDER / candidate.case / f"{candidate.number}.png"


def candidate_seed(seed: int, number: int) -> int:
    """Seed of a candidate, in [0, 2**31); the first candidate has the case's seed.

    Further seeds are hashed, so that no two cases share candidates.
    """
    if number == 0:
        return seed
    digest = hashlib.sha256(f"candidate {number} of {seed}".encode()).digest()
    return int.from_bytes(digest[:4], "big") % 2**31


def candidate_log(root: Path) -> AnswerLog[Candidate]:
    """Log of a run's candidates, by case."""
    return AnswerLog(root, "candidates", Candidate, key="case", in_memory=True)


def read_candidates(root: Path) -> list[Candidate]:
    """Every candidate of a run, those of a case in the order in which they were made. Raises
    DataError."""
    return list(candidate_log(root).every())


def best_of(candidates: list[Candidate]) -> Candidate | None:
    """The one with the highest score, the first of equal ones; None where no score is a number."""
    scored = [c for c in candidates if c.sha256 and not math.isnan(c.score)]
    return max(scored, key=lambda c: (c.score, -c.number), default=None)


def drawn_candidate(root: Path) -> EarlierImages:
    """Reader of a run's candidates: the image of a case and number, by its bytes; None unless they
    are there as recorded."""
    log = candidate_log(root)

    def image_of(case: str, number: int) -> bytes | None:
        for candidate in log.of(case):
            if candidate.number == number and candidate.sha256:
                path = candidate_path(root, candidate)
                data = path.read_bytes() if path.is_file() else b""
                if hashlib.sha256(data).hexdigest() == candidate.sha256:
                    return data
        return None

    return image_of


def choosers(generator: Mapping[str, str]) -> list[Spec]:
    """Specs of the judges and scorers that chose the images of a generator with `best-of`.

    generator: its identity.

    >>> choosers({"kind": "render", "method": "best-of:4?by=faulty:pixels?name=0.1"})
    [Spec(kind='faulty', argument='pixels', options={'name': '0.1'})]
    """
    methods = generator.get("method", "").split(" + ")
    return [
        Spec.parse(method.partition("?by=")[2])
        for method in methods
        if method.startswith("best-of:")
    ]


def chose(root: Path, generator: Mapping[str, str], judge: VerdictLog) -> bool:
    """Whether a judge chose among the candidates of a run: it has judged all of them.

    Other judges see only those that are the best of some number (`counterprior study best-of`).
    Without candidates, as in a published run, a judge of the same kind counts as one that chose.
    """
    if all(spec.kind != judge.identity["kind"] for spec in choosers(generator)):
        return False
    scored = (c for c in read_candidates(root) if not math.isnan(c.score))
    return all(any(a.image == c.sha256 for a in judge.of(c.case).values()) for c in scored)
