"""Scores of a run's images, recorded as they come: `RUN/scorers/SCORER/scores.jsonl`.

A score is known by prompt, image bytes and scorer: nothing is scored twice, and an image that was
made anew is scored anew. Of a clip each chosen frame is scored, and the clip's score is their mean.
A shard of a run writes `scores.I-of-N.jsonl` instead.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, NamedTuple

from ...agents.budget import BudgetError
from ...errors import DataError, RunFailed
from ...images import ImageError
from ...parsing import parse_as
from ...progress import Progress, silent
from ..checkpoints.placement import LoadError
from ..clips.frames import USUAL, FrameChoice
from ..core import Case, describe, identity_digest
from ..judges import CallPlan
from ..scorers import RecordedScorer, Scorer, as_scorer
from ..store.answers import AnswerLog, answerer_folder, keep_identity, read_identity
from ..store.shards import RunShard, shard_log
from .costs import Cost, call_plan, count_images
from .frames import numbers_of, shown_frames
from .run import CaseResult, Run, RunError

if TYPE_CHECKING:
    from PIL.Image import Image

FOLDER = "scorers"
HEADER = "scorer.json"
SCORES = shard_log("scores", None)


def scoring_identity(scorer: Mapping[str, str], frames: str = USUAL) -> dict[str, str]:
    """Identity of a folder of scores: the scorer and the frames that it is shown.

    frames: which frames of a clip, as text of a `FrameChoice`; the usual ones go without saying.
    """
    return {**scorer, **({} if frames == USUAL else {"frames": frames})}


class PairToScore(NamedTuple):
    """A prompt and the bytes of an image, or a frame of a clip."""

    case: str
    """Id of the first case that they are of."""
    prompt: str
    image: str
    """SHA-256 of the image's file."""
    frame: int | None = None
    """Number of the frame of a clip, from 0; None for an image."""

    @property
    def key(self) -> str:
        """Hash of prompt, image and frame, 24 hex digits."""
        frame = [] if self.frame is None else [self.frame]
        words = json.dumps([self.prompt, self.image, *frame])
        return hashlib.sha256(words.encode()).hexdigest()[:24]


@dataclass(frozen=True)
class ScoredPair:
    """The score of a pair, or the mean of a clip's."""

    value: float
    """NaN where it failed."""
    error: str = ""
    """Why it failed."""
    key: str = ""
    """See `PairToScore.key`; empty for a mean."""
    case: str = ""
    """As `PairToScore.case`."""
    image: str = ""
    """As `PairToScore.image`."""
    frame: int | None = None
    """As `PairToScore.frame`."""

    def to_record(self) -> dict[str, Any]:
        about = {"key": self.key, "case": self.case, "image": self.image}
        frame = {} if self.frame is None else {"frame": self.frame}
        return about | frame | ({"error": self.error} if self.error else {"value": self.value})

    @classmethod
    def from_record(cls, record: dict[str, Any], place: str) -> ScoredPair:
        """The inverse of `to_record`. Raises DataError for anything else."""
        if record.get("value") is None:
            record["value"] = math.nan
        return parse_as(cls, record, place)


@dataclass
class ScoreLog:
    """The scores of one scorer in one run."""

    root: Path
    """Folder."""
    identity: Mapping[str, str]
    """The scorer, and the frames that it is shown; see `scoring_identity`."""
    shard: RunShard | None = None
    """Shard of the run that this process scores; None for the entire run."""

    @classmethod
    def of(cls, run: Run, identity: Mapping[str, str]) -> ScoreLog:
        """The log of a scorer, which need not be there."""
        return cls(answerer_folder(run.root / FOLDER, identity), dict(identity), run.shard)

    @classmethod
    def start(cls, run: Run, identity: Mapping[str, str]) -> ScoreLog:
        """The log of a scorer, made where it isn't there."""
        log = cls.of(run, identity)
        keep_identity(log.root / HEADER, identity)
        return log

    @classmethod
    def open(cls, root: Path) -> ScoreLog:
        """A log that is there. Raises DataError for a damaged one."""
        return cls(root, read_identity(root / HEADER))

    @property
    def name(self) -> str:
        """The scorer in a few words."""
        return describe(self.identity)

    @property
    def choice(self) -> FrameChoice:
        """Choice of the frames of a clip that are scored."""
        return FrameChoice(self.identity.get("frames", USUAL))

    @cached_property
    def answers(self) -> AnswerLog[ScoredPair]:
        """Its scores, by `PairToScore.key`."""
        by = identity_digest(self.identity)
        return AnswerLog(
            self.root,
            "scores",
            ScoredPair,
            shard=self.shard,
            by=by,
            in_memory=True,
            sessions=False,
        )

    def find(self, key: str) -> ScoredPair | None:
        """The newest score of a pair, else its first failure, whoever wrote it."""
        recorded = self.answers.of(key)
        scores = (scored for scored in reversed(recorded) if not scored.error)
        return next(scores, recorded[0] if recorded else None)

    def add(self, pair: PairToScore, scored: ScoredPair) -> None:
        """Records a score, or why there is none."""
        case, image, frame = pair.case, pair.image, pair.frame
        self.answers.append(replace(scored, key=pair.key, case=case, image=image, frame=frame))

    def needs(self, pair: PairToScore) -> bool:
        """Whether there is no score yet, or only a failure."""
        recorded = self.find(pair.key)
        return recorded is None or bool(recorded.error)

    def pairs(self, run: Run, cases: Sequence[Case]) -> dict[str, list[PairToScore]]:
        """Case -> what is scored of its present image, or of its clip's frames in the order of
        time. Raises UsageError for a frame that a clip doesn't have."""
        present, images = run.present(cases), run.images()
        return {
            case.id: self.pairs_of(case, images[case.id]) for case in cases if case.id in present
        }

    def pairs_of(self, case: Case, image: CaseResult) -> list[PairToScore]:
        """The pairs of one image, or of a clip's frames. Raises UsageError as `pairs`."""
        return [
            PairToScore(case.id, case.prompt, image.sha256, number)
            for number in numbers_of(self.choice, image)
        ]

    def of_cases(self, run: Run, cases: Sequence[Case]) -> dict[str, ScoredPair]:
        """Case -> what the scorer made of its present image, or of its clip: the mean of its
        frames, the first failure where one has none. No entry where it is not scored to the end."""
        of_case = {}
        for case, pairs in self.pairs(run, cases).items():
            recorded = (self.find(pair.key) for pair in pairs)
            scored = [score for score in recorded if score is not None]
            if len(scored) == len(pairs):
                failed = (score for score in scored if score.error)
                mean = ScoredPair(fmean(score.value for score in scored))
                of_case[case] = next(failed, mean)
        return of_case


@dataclass
class ScoringTally:
    """Counts of scored images, or frames of clips."""

    scored: int = 0
    """New scores."""
    recorded: int = 0
    """Scores that were recorded before."""
    failed: int = 0
    """Pairs without a score."""
    first_error: str = ""
    clips: int = 0
    """How many clips the frames are of; 0 where all are images."""


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
    frames: str = USUAL,
) -> list[tuple[ScoreLog, ScoringTally]]:
    """Scores the images of a run, or of a shard of it, that have no score yet.

    frames: which frames of a clip, as text of a `FrameChoice`. Raises RunError for a run that is
    not complete, UsageError for a bad spec or choice, ScorerFailed where a scorer could score
    nothing, BudgetError where a cap ends the run.
    """
    FrameChoice(frames)
    run = Run.open(root, shard)
    run.check_complete()
    if replaced := run.replaced():
        raise RunError(
            f"{root}: {len(replaced):,} images were replaced since they were made; run "
            f"`counterprior generate` again first",
            code="changed-file",
        )
    with call_plan(cost, root, shard) as plan, run.lock():
        count_images(plan, run)
        opened = [as_scorer(scorer, plan) for scorer in scorers]
        return [_score(run, scorer, frames, progress) for scorer in opened]


def _score(
    run: Run, scorer: Scorer, frames: str, progress: Progress
) -> tuple[ScoreLog, ScoringTally]:
    log = ScoreLog.start(run, scoring_identity(scorer.identity(), frames))
    of_cases = log.pairs(run, run.own_cases())
    # Of several pairs that are alike, the first is scored.
    pairs: dict[str, PairToScore] = {}
    for pair in (pair for of_case in of_cases.values() for pair in of_case):
        pairs.setdefault(pair.key, pair)
    tally, done = ScoringTally(), 0
    tally.clips = sum(of_case[0].frame is not None for of_case in of_cases.values())
    with log.answers:
        progress(log.name, 0, len(pairs))
        for block in _blocks(list(pairs.values()), getattr(scorer, "batch", 1)):
            waiting = {pair.key for pair in block if log.needs(pair)}
            tally.recorded += len(block) - len(waiting)
            if waiting:
                # A block is scored whole also where a part of it is known: the last digits of a
                # score depend on the batch, and a killed run must give those of one that was not.
                block_scores = (
                    _looked_up(scorer, block)
                    if isinstance(scorer, RecordedScorer)
                    else _scored(run, scorer, block, log.choice)
                )
                for pair, scored in zip(block, block_scores, strict=True):
                    if pair.key in waiting:
                        log.add(pair, scored)
                        _count(tally, scored)
            done += len(block)
            progress(log.name, done, len(pairs))
    if tally.failed and not (tally.scored or tally.recorded):
        failed = ScorerFailed(
            f"{log.name}: no image of {run.root} could be scored; the first: {tally.first_error}",
            code="all-failed",
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


def _scored(
    run: Run, scorer: Scorer, block: Sequence[PairToScore], choice: FrameChoice
) -> list[ScoredPair]:
    images: list[Image | str] = []
    for case, pairs in groupby(block, key=lambda pair: pair.case):
        wanted = list(pairs)
        try:
            image_of_frame = {
                frame.number: frame.image
                for frame in shown_frames(run.root, run.images()[case], choice)
            }
            images += [image_of_frame[pair.frame] for pair in wanted]
        except ImageError as error:  # it was an image when it was made
            images += [f"the image {error}"] * len(wanted)
    opened = [(p.prompt, i) for p, i in zip(block, images, strict=True) if not isinstance(i, str)]
    values = iter(_values(scorer, opened))
    return [ScoredPair(math.nan, i) if isinstance(i, str) else next(values) for i in images]


def _looked_up(scorer: RecordedScorer, block: Sequence[PairToScore]) -> list[ScoredPair]:
    return [
        ScoredPair(value, "nobody scored this image" if math.isnan(value) else "")
        for value in scorer.score_digests([pair.image for pair in block])
    ]


def _values(scorer: Scorer, pairs: Sequence[tuple[str, Image]]) -> list[ScoredPair]:
    """One for each pair; one that fails costs the others nothing."""
    if not pairs:
        return []
    try:
        values = [float(value) for value in scorer.score(pairs)]
        if len(values) != len(pairs):
            raise DataError(f"{len(values)} scores for {len(pairs)} images", code="wrong-count")
    except (LoadError, BudgetError):
        raise
    except Exception as error:  # a model's own code may raise anything
        if len(pairs) > 1:
            return [_values(scorer, [pair])[0] for pair in pairs]
        return [ScoredPair(math.nan, f"{type(error).__name__}: {error}")]
    return [
        ScoredPair(value) if math.isfinite(value) else ScoredPair(math.nan, f"the score is {value}")
        for value in values
    ]
