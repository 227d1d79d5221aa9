"""Questions about images: which are open, asked here or by workers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from PIL import Image

from ...agents.budget import Budget, PriceTable
from ...images import ImageError
from ...schema import Row
from ..clips.frames import USUAL, FrameChoice
from ..core import Case, Judge, Question, Verdict, is_mirrored
from ..judges import CallPlan, as_judge
from ..questions.asking import ask_together
from ..store.verdicts import Answered, OpenQuestion, VerdictLog, answers
from ..suites import open_suite
from ..suites.base import Suite
from ..workers.tasks import Numbered, check_same
from .frames import numbers_of, shown_frames
from .making import read_source
from .run import CaseResult, recorded_bytes

_BLANK = Image.new("RGB", (1, 1))


@dataclass(frozen=True)
class CaseToJudge:
    """An image with open questions."""

    row: Row
    """Its row; without the seed image where it goes to a worker."""
    case: Case
    """The requested image: prompt, seed and source."""
    image: CaseResult
    """Made."""
    question_ids: frozenset[str]
    """Ids of the open questions."""


CaseAnswers = list[Answered] | CaseResult
"""Outcome of a case to judge: answers, or an image `error` if its file can't be read any more."""


@dataclass(frozen=True)
class Asking:
    """The questions about a run's images: how they are worded, and which frames they show."""

    root: Path
    """Folder of the run."""
    suite: str
    """Config."""
    persona: str
    """How free questions are answered."""
    probes: tuple[str, ...]
    """Names from `core.PROBES`."""
    frames: str = USUAL
    """Choice of frames of a clip, as text of a `FrameChoice`."""
    together: bool = False
    """Whether one question shows all frames of a clip; else each is asked about."""

    def open_suite(self) -> Suite[Any]:
        """The suite, which words the questions."""
        return open_suite(self.suite, self.persona)

    @property
    def choice(self) -> FrameChoice:
        """Choice of frames of a clip. Raises UsageError for a malformed text."""
        return FrameChoice(self.frames)

    def planned(self, suite: Suite[Any], row: Row, case: Case, image: CaseResult) -> list[Question]:
        """All questions about a case's image, or its clip's frames, over blank images: what is
        asked does not depend on pixels, so only what is needed is decoded."""
        blank = self._questions(suite, row, case, [_BLANK] * (2 if case.source else 1))
        of_frames = [[replace(q, frame=n) for q in blank] for n in numbers_of(self.choice, image)]
        return self._by_frame(of_frames)

    def unanswered(
        self, suite: Suite[Any], row: Row, case: Case, image: CaseResult, log: VerdictLog | None
    ) -> tuple[list[Question], int]:
        """The planned questions that have no verdict in a log, and how many have one."""
        planned = self.planned(suite, row, case, image)
        open_questions = [
            q for q in planned if log is None or log.needs(OpenQuestion(q, image.sha256))
        ]
        return open_questions, len(planned) - len(open_questions)

    def questions(self, suite: Suite[Any], piece: CaseToJudge) -> list[OpenQuestion]:
        """The open questions about an image, a clip or a text. Raises ImageError where it can't be
        read."""
        if piece.image.is_text:
            return self._about_text(suite, piece)
        source = read_source(self.root, piece.case)
        before = [] if source is None else [source.convert("RGB")]
        of_frames = [
            [
                replace(q, frame=number, digest="" if is_mirrored(q.probe) else digest)
                for q in self._questions(suite, piece.row, piece.case, [*before, image])
            ]
            for number, image, digest in shown_frames(self.root, piece.image, self.choice)
        ]
        questions = (q for q in self._by_frame(of_frames) if q.id in piece.question_ids)
        return [OpenQuestion(q, piece.image.sha256) for q in questions]

    def _by_frame(self, of_frames: Sequence[Sequence[Question]]) -> list[Question]:
        """Joins the questions about the frames of a clip if one question shows all of them."""
        if self.together and of_frames[0] and of_frames[0][0].frame is not None:
            return [ask_together(same_question) for same_question in zip(*of_frames, strict=True)]
        return [q for of_frame in of_frames for q in of_frame]

    def _about_text(self, suite: Suite[Any], piece: CaseToJudge) -> list[OpenQuestion]:
        try:
            text = recorded_bytes(self.root, piece.image).decode()
        except UnicodeError as error:
            raise ImageError(f"can't be read: {error}", code="unreadable-image") from None
        return [
            OpenQuestion(replace(q, text=text), piece.image.sha256)
            for q in self._questions(suite, piece.row, piece.case, [])
            if q.id in piece.question_ids
        ]

    def _questions(
        self, suite: Suite[Any], row: Row, case: Case, images: Sequence[Image.Image]
    ) -> list[Question]:
        return [q for probe in self.probes for q in suite.questions(row, case, images, probe)]


def unreadable(case: Case, error: ImageError) -> CaseResult:
    """The record of an image that was one when it was made."""
    return CaseResult(case.id, "error", message=f"the image {error}")


@dataclass(frozen=True)
class AskJudge:
    """The task of workers that judge images."""

    asking: Asking
    """The questions; the folder is absolute."""
    judge: Any
    """Spec, or the judge itself."""
    identity: dict[str, str]
    """Identity of the judge."""
    bundle: int
    """Images at a time."""
    ledgers: Path
    """Folder of the ledgers, absolute: a judge by rule keeps its detections beside them."""

    def open(self) -> JudgeWorker:
        """Raises RunFailed where the judge is another one in a worker."""
        # Who pays by the call is asked from the first process: nothing may be paid here.
        nothing = Budget(PriceTable({}), Decimal(0))
        judge = as_judge(self.judge, CallPlan(self.ledgers, nothing))
        check_same(self.identity, judge.identity(), "judge")
        return JudgeWorker(judge, self.asking)

    def lost(self, piece: CaseToJudge, deaths: int) -> CaseAnswers:
        """The verdicts on an image on which that many workers died."""
        suite = self.asking.open_suite()
        planned = self.asking.planned(suite, piece.row, piece.case, piece.image)
        failed = Verdict("error", f"{deaths} workers died judging it")
        return [
            Answered.of(OpenQuestion(question, piece.image.sha256), failed)
            for question in planned
            if question.id in piece.question_ids
        ]


class JudgeWorker:
    """Judges images in a worker."""

    def __init__(self, judge: Judge, asking: Asking) -> None:
        self._judge = judge
        self._asking = asking
        self._suite = asking.open_suite()

    def do(self, work: Sequence[Numbered[CaseToJudge]]) -> Iterator[Numbered[CaseAnswers]]:
        results: dict[int, CaseAnswers] = {}
        open_questions: list[OpenQuestion] = []
        of_case = {}
        for number, piece in work:
            try:
                open_questions += self._asking.questions(self._suite, piece)
                results[number], of_case[piece.case.id] = [], number
            except ImageError as error:
                results[number] = unreadable(piece.case, error)
        for answered in answers(self._judge, open_questions):
            case_answers = results[of_case[answered.case]]
            assert isinstance(case_answers, list)
            case_answers.append(answered)
        yield from results.items()

    def finish(self) -> Iterable[Numbered[CaseAnswers]]:
        return ()
