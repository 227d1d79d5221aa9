"""Questions about images: which are open, asked here or by workers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from PIL import Image

from ...agents.budget import Budget, PriceTable
from ...images import ImageError, open_image
from ...schema import Row
from ..core import Case, Judge, Question, Verdict, is_mirrored
from ..judges import CallPlan, as_judge
from ..suites import open_suite
from ..suites.base import Suite
from .making import check_same, read_source
from .run import MadeImage, image_path
from .verdicts import Answered, OpenQuestion, answers
from .workers import Numbered

_BLANK = Image.new("RGB", (1, 1))


@dataclass(frozen=True)
class CaseToJudge:
    """An image with open questions."""

    row: Row
    """Its row; without the seed image where it goes to a worker."""
    case: Case
    """What was asked for."""
    image: MadeImage
    """Made."""
    names: frozenset[str]
    """Ids of the open questions."""


CaseAnswers = list[Answered] | MadeImage
"""What became of a case to judge; an image `error` where the file can't be read any more."""


@dataclass(frozen=True)
class Asking:
    """What a run's images are asked."""

    root: Path
    """Folder of the run."""
    suite: str
    """Config."""
    persona: str
    """How free questions are answered."""
    probes: tuple[str, ...]
    """Of `core.PROBES`."""

    def open_suite(self) -> Suite[Any]:
        """The suite, which words the questions."""
        return open_suite(self.suite, self.persona)

    def planned(self, suite: Suite[Any], row: Row, case: Case) -> list[Question]:
        """All questions about a case, over blank images: what is asked does not depend on pixels,
        so only what is needed is decoded."""
        return self._questions(suite, row, case, [_BLANK] * 2)

    def questions(self, suite: Suite[Any], piece: CaseToJudge) -> list[OpenQuestion]:
        """The open questions about an image or a text. Raises ImageError where it can't be read."""
        if piece.image.is_text:
            return self._about_text(suite, piece)
        opened = open_image(image_path(self.root, piece.image))
        source = read_source(self.root, piece.case)
        images = [opened] if source is None else [source, opened]
        digest = piece.image.sha256
        return [
            OpenQuestion(q if is_mirrored(q.probe) else replace(q, digest=digest), digest)
            for q in self._questions(suite, piece.row, piece.case, images)
            if q.id in piece.names
        ]

    def _about_text(self, suite: Suite[Any], piece: CaseToJudge) -> list[OpenQuestion]:
        try:
            text = image_path(self.root, piece.image).read_text("utf-8")
        except (OSError, UnicodeError) as error:
            raise ImageError(f"can't be read: {error}") from None
        return [
            OpenQuestion(replace(q, text=text), piece.image.sha256)
            for q in self._questions(suite, piece.row, piece.case, [])
            if q.id in piece.names
        ]

    def _questions(
        self, suite: Suite[Any], row: Row, case: Case, images: Sequence[Image.Image]
    ) -> list[Question]:
        shown = [image.convert("RGB") for image in images]
        return [q for probe in self.probes for q in suite.questions(row, case, shown, probe)]


def unreadable(case: Case, error: ImageError) -> MadeImage:
    """The record of an image that was one when it was made."""
    return MadeImage(case.id, "error", message=f"the image {error}")


@dataclass(frozen=True)
class AskJudge:
    """The task of workers that judge images."""

    asking: Asking
    """What is asked; its folder is absolute."""
    judge: Any
    """Spec, or the judge itself."""
    identity: dict[str, str]
    """Who judges."""
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
        planned = self.asking.planned(self.asking.open_suite(), piece.row, piece.case)
        failed = Verdict("error", f"{deaths} workers died judging it")
        return [
            Answered.of(OpenQuestion(question, piece.image.sha256), failed)
            for question in planned
            if question.id in piece.names
        ]


class JudgeWorker:
    """Judges images in a worker."""

    def __init__(self, judge: Judge, asking: Asking) -> None:
        self._judge = judge
        self._asking = asking
        self._suite = asking.open_suite()

    def do(self, work: Sequence[Numbered[CaseToJudge]]) -> Iterator[Numbered[CaseAnswers]]:
        found: dict[int, CaseAnswers] = {}
        asked: list[OpenQuestion] = []
        of_case = {}
        for number, piece in work:
            try:
                asked += self._asking.questions(self._suite, piece)
                found[number], of_case[piece.case.id] = [], number
            except ImageError as error:
                found[number] = unreadable(piece.case, error)
        for answered in answers(self._judge, asked):
            said = found[of_case[answered.case]]
            assert isinstance(said, list)
            said.append(answered)
        yield from found.items()

    def finish(self) -> Iterable[Numbered[CaseAnswers]]:
        return ()
