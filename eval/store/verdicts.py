"""The verdicts of one judge: what was answered is read, what is asked is recorded."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from ...errors import RunFailed
from ...parsing import Digest, parse_as
from ..clips.frames import USUAL
from ..core import Judge, Question, Verdict, describe, identity_digest
from .answers import AnswerLog, keep_identity, read_identity
from .shards import RunShard, shard_log
from .shared import RecordParser, VerdictParser, is_digest, is_text

HEADER = "judge.json"
VERDICTS = shard_log("verdicts", None)


def judging_identity(judge: Mapping[str, str], persona: str, frames: str = USUAL) -> dict[str, str]:
    """Identity of a folder of verdicts: the judge, its persona and the frames that it is shown.

    frames: which frames of a clip, as text of a `FrameChoice`; the usual ones go without saying.
    """
    frame_entry = {} if frames == USUAL else {"frames": frames}
    return {**judge, "persona": persona, **frame_entry}


class JudgeFailed(RunFailed):
    """A judge of which every call failed, where the message holds the first cause, or of whose
    answers none counts."""

    questions = 0
    """How many calls those were."""


class OpenQuestion(NamedTuple):
    """A question about the bytes of one image."""

    question: Question
    """The question."""
    image: str
    """SHA-256 of the image's file."""

    @property
    def key(self) -> str:
        """Hash of question and image, 24 hex digits; a changed image or prompt gives another."""
        q = self.question
        words = [q.case, self.image, q.name, q.probe, q.prompt]
        frame = [] if q.frame is None else [q.frame]
        return hashlib.sha256(json.dumps([*words, *frame]).encode()).hexdigest()[:24]


@dataclass(frozen=True, slots=True)
class Answered:
    """A recorded verdict."""

    key: str
    """Hash of question and image, see `OpenQuestion.key`."""
    case: str
    """Id of the case."""
    image: Digest
    """SHA-256 of the image's file."""
    question: str
    """Name of the question."""
    probe: str
    """One of `core.PROBES`."""
    labels: tuple[str, ...]
    """Labels if the answer is the first-named subject, the second, or neither."""
    answers: Mapping[str, str]
    """Answer as it had to be written -> label."""
    sided: bool
    """Whether the question named two subjects."""
    verdict: Verdict
    """The judge's verdict."""
    frame: int | None = None
    """Number of the frame of a clip, from 0; None for an image."""

    @classmethod
    def of(cls, open_question: OpenQuestion, verdict: Verdict) -> Answered:
        q = open_question.question
        return cls(
            key=open_question.key,
            case=q.case,
            image=open_question.image,
            question=q.name,
            probe=q.probe,
            labels=q.labels,
            answers=dict(q.answers),
            sided=bool(q.subjects),
            verdict=verdict,
            frame=q.frame,
        )

    def to_record(self) -> dict[str, Any]:
        plain = {name: getattr(self, name) for name in _PLAIN}
        frame = {} if self.frame is None else {"frame": self.frame}
        return {**plain, **frame, "labels": list(self.labels), **self.verdict.to_record()}

    @classmethod
    def from_record(cls, record: Mapping[str, Any], place: str = "a verdict") -> Answered:
        """The inverse of `to_record`. Raises DataError, naming the place, for anything else."""
        of_verdict = Verdict.__dataclass_fields__
        fields = {name: value for name, value in record.items() if name not in of_verdict}
        verdict = {name: value for name, value in record.items() if name in of_verdict}
        return parse_as(cls, {**fields, "verdict": verdict}, place)

    @classmethod
    def parser(cls) -> Callable[[dict[str, Any]], Answered]:
        """As `AlikePayload.parser`."""
        answers = RecordParser(cls, {"key": is_text, "case": is_text, "image": is_digest})
        verdicts = VerdictParser()

        def parse(record: dict[str, Any]) -> Answered:
            plain = {name: record.pop(name) for name in _OF_VERDICT if name in record}
            verdict = verdicts.parsed(plain)
            record.pop("verdict", None)
            return answers.parsed(
                record,
                lambda: parse_as(cls, {**record, "verdict": verdict}, ""),
                verdict=verdict,
            )

        return parse


_OF_VERDICT = tuple(Verdict.__dataclass_fields__)
_PLAIN = ("key", "case", "image", "question", "probe", "answers", "sided")


@dataclass
class Tally:
    """Counts of verdicts."""

    labels: Counter[str] = field(default_factory=Counter)
    """New verdicts by label."""
    recorded: int = 0
    """Verdicts that were recorded before."""
    errors: Counter[str] = field(default_factory=Counter)
    """Verdicts `error` by their text, in the order of the first of each."""

    @property
    def first_error(self) -> str:
        """Text of the first verdict `error`; empty for none."""
        return next(iter(self.errors), "")


@dataclass
class VerdictLog:
    """The verdicts of one judge, oldest first, in `judge.json` and `verdicts.jsonl`."""

    root: Path
    """Folder."""
    identity: Mapping[str, str]
    """The judge."""
    shard: RunShard | None = None
    """Shard of its run that this process judges; None for all of it."""
    _of_case: tuple[str, dict[str, Answered]] = field(default=("", {}), repr=False)
    """The case that was looked at last, with its newest verdicts by key."""

    @classmethod
    def start(
        cls, root: Path, identity: Mapping[str, str], shard: RunShard | None = None
    ) -> VerdictLog:
        """Opens a judge's log, and makes its folder if there is none."""
        keep_identity(root / HEADER, identity)
        return cls(root, dict(identity), shard)

    @classmethod
    def open(cls, root: Path) -> VerdictLog:
        """Opens a log that is there. Raises DataError for a damaged one."""
        return cls(root, read_identity(root / HEADER))

    @property
    def name(self) -> str:
        """The judge in a few words, with the folder where two in a run are alike."""
        name = describe(self.identity)
        folders = [path.parent for path in self.root.parent.glob(f"*/{HEADER}")]
        alike = [o for o in folders if describe(json.loads((o / HEADER).read_text())) == name]
        return name if len(alike) < 2 else f"{name} ({self.root.name})"

    @property
    def names(self) -> set[str]:
        """Names that choose this judge on the command line."""
        kind, model = self.identity["kind"], self.identity.get("model", "")
        return {kind, f"{kind}:{model}", describe(self.identity), self.name, self.root.name}

    @cached_property
    def answers(self) -> AnswerLog[Answered]:
        """Its verdicts, case by case."""
        digest = identity_digest(self.identity)
        return AnswerLog(self.root, "verdicts", Answered, key="case", shard=self.shard, by=digest)

    @property
    def is_empty(self) -> bool:
        """Whether it holds no verdict."""
        return self.answers.is_empty

    def __iter__(self) -> Iterator[Answered]:
        """The newest verdict of every question about every image."""
        for case in self.answers:
            yield from self.of(case).values()

    @property
    def newest(self) -> dict[str, Answered]:
        """All that iterating gives, by key; read anew each time."""
        return {answered.key: answered for answered in self}

    def of(self, case: str) -> Mapping[str, Answered]:
        """The newest verdict of every question about every image of a case, by key."""
        if self._of_case[0] != case:
            newest: dict[str, Answered] = {}
            for answered in self.answers.of(case):
                newest.pop(answered.key, None)  # the newest comes last
                newest[answered.key] = answered
            self._of_case = case, newest
        return self._of_case[1]

    def present(self, images: Mapping[str, str]) -> list[Answered]:
        """The newest verdict of every question about the present images: case -> SHA-256."""
        answers = self.answers.read(images)
        return [
            answered
            for case, image in images.items()
            for answered in _about(answers.get(case, ()), image)
        ]

    def iter_present(self, images: Iterable[tuple[str, str]]) -> Iterator[Answered]:
        """Yields the verdicts of `present`, with one case in memory at a time."""
        for case, image in images:
            yield from _about(self.of(case).values(), image)

    def needs(self, open_question: OpenQuestion) -> bool:
        """Whether there is no verdict yet, or only a failure of the judge itself."""
        recorded = self.of(open_question.question.case).get(open_question.key)
        return recorded is None or recorded.verdict.label == "error"

    def add(self, answered: Answered, tally: Tally) -> None:
        """Records a verdict and counts it."""
        self.answers.append(answered)
        if self._of_case[0] == answered.case:
            self._of_case[1].pop(answered.key, None)
            self._of_case[1][answered.key] = answered
        tally.labels[answered.verdict.label] += 1
        if answered.verdict.label == "error":
            tally.errors[answered.verdict.raw] += 1

    def check_answered(self) -> None:
        """Raises JudgeFailed where it holds verdicts and none of them is an answer."""
        failures = Counter[str]()
        for answered in self:
            if not answered.verdict.failed:
                return
            failures[answered.verdict.label] += 1
        check_silence(self.name, failures, failures.total())

    def ask(
        self, judge: Judge, questions: Iterable[OpenQuestion], tally: Tally
    ) -> Iterator[Answered]:
        """Asks every question and records each verdict as it comes, in any order."""
        with self.answers:
            for answered in answers(judge, questions):
                self.add(answered, tally)
                yield answered


def _about(answers: Iterable[Answered], image: str) -> Iterable[Answered]:
    """The newest answer to each question about one image."""
    of_image = (answered for answered in answers if answered.image == image)
    return {(a.question, a.probe, a.frame): a for a in of_image}.values()


def answers(judge: Judge, questions: Iterable[OpenQuestion]) -> Iterator[Answered]:
    """Yields a judge's answer to every question as soon as it arrives, in any order."""
    waiting: dict[str, OpenQuestion] = {}

    def noted() -> Iterator[Question]:
        for open_question in questions:
            waiting[open_question.question.id] = open_question
            yield open_question.question

    for question, verdict in judge.judge(noted()):
        yield Answered.of(waiting.pop(question.id), verdict)


def check_tally(name: str, tally: Tally) -> None:
    """Raises JudgeFailed where something was asked and every call failed."""
    if tally.labels and set(tally.labels) == {"error"} and not tally.recorded:
        failed = JudgeFailed(
            f"{name}: all {tally.labels['error']:,} calls failed; the first: {tally.first_error}",
            "mend that, and run again; what a server rejected is asked again with --retry-failed",
            code="all-failed",
        )
        failed.questions = tally.labels["error"]
        raise failed


def silence(name: str, failures: Mapping[str, int], asked: int) -> str:
    """Sentence on a judge that was asked and gave no answer that counts; else empty.

    failures: failure -> number of its verdicts. asked: number of all of its verdicts.

    >>> silence("pixels", {"refused": 1, "unparsed": 3}, 4)
    'pixels gave no answer that counts: 3 unparsed, 1 refused of 4'
    """
    if not asked or sum(failures.values()) < asked:
        return ""
    counts = ", ".join(f"{n:,} {label}" for label, n in Counter(failures).most_common())
    return f"{name} gave no answer that counts: {counts} of {asked:,}"


def check_silence(name: str, failures: Mapping[str, int], asked: int) -> None:
    """Raises JudgeFailed where `silence` has something to say."""
    if why := silence(name, failures, asked):
        remedy = "read what it answered in its folder of `verdicts`, or name another judge"
        raise JudgeFailed(why, remedy, code="all-failed")
