"""What a judge can't answer about a suite, said before the first image is made."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from ...errors import UsageError
from ..clips.frames import USUAL
from ..core import Judge, Question, probes_of
from .asking import Asking
from .evaluation import Evaluation

_log = logging.getLogger(__name__)


@runtime_checkable
class Particular(Protocol):
    """A judge that answers only some kinds of questions."""

    tasks: frozenset[str]
    """Values of `core.Task`."""


@runtime_checkable
class Objecting(Protocol):
    """A judge that knows by the question alone that it can't answer it."""

    def objection(self, question: Question) -> str:
        """Why it can't answer a question, whatever the image; empty if it may."""
        ...


def objection_to(judge: Judge | None, question: Question) -> str:
    """Why a judge can't answer a question, whatever the image; empty if it may."""
    if isinstance(judge, Particular) and question.task not in judge.tasks:
        return question.task
    return judge.objection(question) if isinstance(judge, Objecting) else ""


@dataclass
class Objections:
    """Questions about a suite that a judge can't answer."""

    count: int = 0
    of: int = 0
    """All questions."""
    first: str = ""
    """Why it can't answer the first of them."""

    def add(self, reason: str) -> None:
        """Counts a question; reason: why it can't be answered, empty if it may be."""
        self.of += 1
        self.count += bool(reason)
        self.first = self.first or reason

    def text(self, suite: str) -> str:
        """All of them in words; empty without any."""
        if not self.count:
            return ""
        some = "the" if self.count == self.of else f"{self.count:,} of {self.of:,}"
        return f"can't answer {some} questions of {suite} ({self.first})"


def check_questions(
    judges: Iterable[Judge],
    look: Evaluation,
    controls: Sequence[str] = (),
    persona: str = "standard",
    frames: str = USUAL,
) -> None:
    """Warns of questions about a run that a judge can't answer, whatever its images.

    Raises UsageError for a judge that can answer none.
    """
    for judge in judges:
        if not isinstance(judge, Particular | Objecting):
            continue
        asking = Asking(look.run.root, look.suite.name, persona, probes_of(controls), frames)
        suite, objections = asking.open_suite(), Objections()
        for case, image in look.expected():
            for question in asking.planned(suite, look.rows[case.row], case, image):
                objections.add(objection_to(judge, question))
        if problem := objections.text(look.suite.name):
            text = f"{judge.identity()['kind']} {problem}"
            if objections.count == objections.of:
                raise UsageError(text, "choose another judge or suite", code="unsupported")
            _log.warning("%s", text)
