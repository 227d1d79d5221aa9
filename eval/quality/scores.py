"""Scores of a run's images, recorded as they come: `RUN/scorers/SCORER/scores.jsonl`.

A score is known by prompt, image bytes and scorer: nothing is scored twice, and an image that was
made anew is scored anew. A shard of a run writes `scores.I-of-N.jsonl` instead.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ...agents.budget import BudgetError
from ...errors import DataError, RunFailed
from ...images import ImageError, open_image
from ...progress import Progress, silent
from ...storage import RecordLog, read_records, write_json
from ...tables import MALFORMED, parse_as
from ..checkpoints.placement import LoadError
from ..core import BY, Case, check_by, describe, identity_digest
from ..engine.costs import Cost, count_images
from ..engine.records import RunShard, shard_log
from ..engine.run import Run, RunError, recorded_bytes
from ..judges import CallPlan
from ..scorers import Scorer, as_scorer, open_scorer

if TYPE_CHECKING:
    from PIL.Image import Image

FOLDER = "scorers"
HEADER = "scorer.json"
SCORES = shard_log("scores", None)


class PairToScore(NamedTuple):
    """A prompt and the bytes of an image."""

    case: str
    """Id of the first case that they are of."""
    prompt: str
    image: str
    """SHA-256 of the image's file."""

    @property
    def key(self) -> str:
        """Of prompt and image."""
        return hashlib.sha256(json.dumps([self.prompt, self.image]).encode()).hexdigest()[:24]


class ScoredPair(NamedTuple):
    """What a scorer made of a pair."""

    value: float
    """NaN where it failed."""
    error: str = ""
    """Why it failed."""


@dataclass
class ScoreLog:
    """The scores of one scorer in one run."""

    root: Path
    """Folder."""
    identity: Mapping[str, str]
    """The scorer."""
    shard: RunShard | None = None
    """Which part of its run this process scores; None for all of it."""

    @classmethod
    def of(cls, run: Run, identity: Mapping[str, str]) -> ScoreLog:
        """The log of a scorer, which need not be there."""
        root = run.root / FOLDER / f"{identity['kind']}-{identity_digest(identity)}"
        return cls(root, dict(identity), run.shard)

    @classmethod
    def start(cls, run: Run, identity: Mapping[str, str]) -> ScoreLog:
        """The log of a scorer, made where it isn't there."""
        log = cls.of(run, identity)
        if not (log.root / HEADER).exists():
            write_json(log.root / HEADER, dict(identity))
        return log

    @classmethod
    def open(cls, root: Path) -> ScoreLog:
        """A log that is there. Raises DataError for a damaged one."""
        try:
            plain = json.loads((root / HEADER).read_text("utf-8"))
        except (OSError, *MALFORMED) as error:
            raise DataError(f"{root / HEADER} is damaged: {error}") from None
        return cls(root, parse_as(dict[str, str], plain, str(root / HEADER)))

    @property
    def name(self) -> str:
        """The scorer in a few words."""
        return describe(self.identity)

    @cached_property
    def newest(self) -> dict[str, ScoredPair]:
        """The newest record of every pair, by key, whoever wrote it; a score beats a failure."""
        found: dict[str, ScoredPair] = {}
        digest = identity_digest(self.identity)
        for path in sorted(self.root.glob("scores*.jsonl")):
            for number, record in enumerate(read_records(path), 1):
                check_by(record, digest, f"{path}:{number}")
                try:
                    value = record.get("value")
                    scored = ScoredPair(
                        math.nan if value is None else float(value), record.get("error", "")
                    )
                    if not scored.error or record["key"] not in found:
                        found[record["key"]] = scored
                except MALFORMED as error:
                    raise DataError(f"{path}:{number}: no score ({error})") from None
        return found

    def add(self, log: RecordLog, pair: PairToScore, scored: ScoredPair) -> None:
        """Records a score, or why there is none."""
        told = {"error": scored.error} if scored.error else {"value": scored.value}
        by = identity_digest(self.identity)
        log.append({"key": pair.key, "case": pair.case, "image": pair.image, **told, BY: by})
        self.newest[pair.key] = scored

    def needs(self, pair: PairToScore) -> bool:
        """Whether there is no score yet, or only a failure."""
        known = self.newest.get(pair.key)
        return known is None or bool(known.error)

    def of_cases(self, run: Run, cases: Sequence[Case]) -> dict[str, ScoredPair]:
        """Case -> what the scorer made of its present image; no entry where it made nothing."""
        present = run.present(cases)
        found = {}
        for case in cases:
            if case.id in present:
                scored = self.newest.get(PairToScore(case.id, case.prompt, present[case.id]).key)
                if scored is not None:
                    found[case.id] = scored
        return found


@dataclass
class ScoringTally:
    """What came of scoring."""

    scored: int = 0
    """New scores."""
    known: int = 0
    """Scores that were there."""
    failed: int = 0
    """Pairs without a score."""
    first_error: str = ""


class ScorerFailed(RunFailed):
    """A scorer that could score nothing; the message holds the first cause."""

    questions = 0
    """Pairs that it could not score."""


def scorers_of(run: Run) -> list[ScoreLog]:
    """Every scorer that has scored here, by name."""
    folders = sorted(path.parent for path in (run.root / FOLDER).glob(f"*/{HEADER}"))
    return [ScoreLog.open(folder) for folder in folders]


def score_images(
    root: Path,
    scorers: Sequence[Scorer | str],
    cost: Cost | CallPlan | None = None,
    progress: Progress = silent,
    shard: RunShard | None = None,
) -> list[tuple[ScoreLog, ScoringTally]]:
    """Scores the images of a run, or of a shard of it, that have no score yet.

    Raises RunError for a run that is not complete, UsageError for a bad spec, ScorerFailed where a
    scorer could score nothing, BudgetError where a cap ends the run.
    """
    run = Run.open(root, shard)
    run.check_complete()
    if replaced := run.replaced():
        raise RunError(
            f"{root}: {len(replaced):,} images were replaced since they were made; run "
            f"`counterprior generate` again first"
        )
    plan = cost if isinstance(cost, CallPlan) else (cost or Cost()).plan(root, shard)
    count_images(plan, run)
    opened = [open_scorer(s, plan) if isinstance(s, str) else as_scorer(s) for s in scorers]
    with run.lock():
        return [_score(run, scorer, progress) for scorer in opened]


def _score(run: Run, scorer: Scorer, progress: Progress) -> tuple[ScoreLog, ScoringTally]:
    log = ScoreLog.start(run, scorer.identity())
    cases = run.own_cases()
    present, tally, done = run.present(cases), ScoringTally(), 0
    pairs = {
        pair.key: pair
        for case in reversed(cases)
        if case.id in present
        for pair in [PairToScore(case.id, case.prompt, present[case.id])]
    }
    with RecordLog(log.root / shard_log("scores", run.shard)) as records:
        progress(log.name, 0, len(pairs))
        for block in _blocks(list(reversed(pairs.values())), getattr(scorer, "batch", 1)):
            waiting = {pair.key for pair in block if log.needs(pair)}
            tally.known += len(block) - len(waiting)
            if waiting:
                # A block is scored whole also where a part of it is known: the last digits of a
                # score depend on the batch, and a killed run must give those of one that was not.
                for pair, scored in zip(block, _scored(run, scorer, block), strict=True):
                    if pair.key in waiting:
                        log.add(records, pair, scored)
                        _count(tally, scored)
            done += len(block)
            progress(log.name, done, len(pairs))
    if tally.failed and not (tally.scored or tally.known):
        failed = ScorerFailed(
            f"{log.name}: no image of {run.root} could be scored; the first: {tally.first_error}"
        )
        failed.questions = tally.failed
        raise failed
    return log, tally


def _blocks(pairs: Sequence[PairToScore], size: int) -> Iterator[Sequence[PairToScore]]:
    return (pairs[start : start + size] for start in range(0, len(pairs), size))


def _count(tally: ScoringTally, scored: ScoredPair) -> None:
    tally.scored += not scored.error
    tally.failed += bool(scored.error)
    tally.first_error = tally.first_error or scored.error


def _scored(run: Run, scorer: Scorer, block: Sequence[PairToScore]) -> list[ScoredPair]:
    images: list[Image | str] = []
    for pair in block:
        try:
            data = recorded_bytes(run.root, run.images()[pair.case])
            images.append(open_image(BytesIO(data)))
        except ImageError as error:  # it was an image when it was made
            images.append(f"the image {error}")
    opened = [(p.prompt, i) for p, i in zip(block, images, strict=True) if not isinstance(i, str)]
    values = iter(_values(scorer, opened))
    return [ScoredPair(math.nan, i) if isinstance(i, str) else next(values) for i in images]


def _values(scorer: Scorer, pairs: Sequence[tuple[str, Image]]) -> list[ScoredPair]:
    """One for each pair; one that fails costs the others nothing."""
    if not pairs:
        return []
    try:
        found = scorer.score(pairs)
        if len(found) != len(pairs):
            raise DataError(f"{len(found)} scores for {len(pairs)} images")
    except (LoadError, BudgetError):
        raise
    except Exception as error:  # a model's own code may raise anything
        if len(pairs) > 1:
            return [_values(scorer, [pair])[0] for pair in pairs]
        return [ScoredPair(math.nan, f"{type(error).__name__}: {error}")]
    return [
        ScoredPair(float(value))
        if math.isfinite(value)
        else ScoredPair(math.nan, f"the score is {value}")
        for value in found
    ]
