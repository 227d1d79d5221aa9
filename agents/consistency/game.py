"""The game: tell, draw, judge, tell again, compare, review; what is rejected once more (ACON 3).

Only this module decides who sees what. The teller sees the image, never the drawing. The drawer
sees only the caption. No model judges its own caption, and the reviewer answers the questions
without their key. The reader answers them from the caption alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeVar

from ...errors import UsageError
from ...progress import Progress, silent
from ...schema import Struct
from ..caller import Answer, Call, Caller
from ..chat import ImagePart
from ..hygiene import one_line, text_fault
from ..roles import Role
from .answers import Asked, ImageComparison, ItemReview, Judgment, Reading, Screening, Telling
from .material import material_faults

SCREENER = Role("consistency/screener", Screening, 300)
TELLER = Role("consistency/teller", Telling, 1_500)
JUDGE = Role("consistency/judge", Judgment, 400)
COMPARER = Role("consistency/comparer", ImageComparison, 3_000)
REVIEWER = Role("consistency/reviewer", ItemReview, 1_000)
READER = Role("consistency/reader", Reading, 1_000)

SENTENCE = 400
"""Longest sentence of a caption, in characters."""

A = TypeVar("A", bound=Struct)

Drawer = Callable[[str, int], bytes]
"""Caption and seed -> the drawing, encoded as PNG. Raises UndrawnError."""


class UndrawnError(Exception):
    """A caption that the drawer refuses or can't draw; it isn't tried again."""


Fate = Literal["accepted", "screened", "recaptioned", "disputed", "discarded", "failed"]


@dataclass(frozen=True)
class GivenImage:
    """An image to play with."""

    name: str
    """Where it came from, e.g. its file name."""
    data: bytes
    """PNG, RGB."""

    @property
    def sha256(self) -> str:
        """SHA-256 of the PNG; identifies the item."""
        return hashlib.sha256(self.data).hexdigest()

    @property
    def seed(self) -> int:
        """The drawer's seed, a function of the image."""
        return int(self.sha256[:8], 16) % 2**31


@dataclass(frozen=True)
class ReviewedAnnotation:
    """One cycle's annotation of an image, as it was reviewed."""

    key: tuple[str, ...]
    """Right answers of the 16 questions, `yes` or `no`."""
    answers: tuple[tuple[str, ...], ...]
    """Each reviewer's own answers: `yes`, `no` or `unclear`."""
    objections: tuple[str, ...]
    """Of the reviewers and the reader that object; empty if it was accepted."""


@dataclass
class GameItem:
    """One image on its way through the game."""

    image: GivenImage
    """The original."""
    calls: list[str] = field(default_factory=list)
    """Ledger ids."""
    caption: str = ""
    """The caption that was found good, or the last one."""
    tellings: int = 0
    """Number of captions written so far, in all cycles."""
    teller: int = 0
    """Who wrote the caption: 0 for the author, 1 for the partner."""
    cycle: int = 1
    """Cycle of annotation, from 1."""
    reviewed: list[ReviewedAnnotation] = field(default_factory=list)
    """Annotations that were reviewed, one of each cycle that came so far."""
    comparison: ImageComparison | None = None
    """Questions and edits."""
    fate: Fate | Literal[""] = ""
    """`accepted`; `screened` out; `recaptioned` too often; `disputed` by a reviewer in the last
    cycle, so that a person decides; `discarded`: both of two reviewers object there; `failed`: a
    role gave no usable answer. Empty while the game goes on."""
    why: str = ""
    """The reason, unless accepted."""
    drawing: bytes = b""
    """Drawing made from the caption."""

    def questions(self) -> list[Asked]:
        """The ten questions, then the two of each edit."""
        return _questions_of(self.comparison) if self.comparison else []

    def end(self, fate: Fate, why: str = "") -> None:
        """Ends the game for this item."""
        self.fate, self.why = fate, one_line(why, 300)

    @property
    def id(self) -> str:
        """Start of the ids of its calls in this cycle."""
        stem = f"image/{self.image.sha256[:16]}"
        return stem if self.cycle == 1 else f"{stem}/cycle{self.cycle}"

    def annotate_again(self) -> None:
        """Starts the next cycle; the rejected annotation is shown to those who write."""
        self.cycle += 1
        self.fate, self.why, self.drawing = "", "", b""


class AnnotationGame:
    """One run over images: stage after stage, with all images of a stage in parallel."""

    def __init__(
        self,
        author: Caller,
        partner: Caller,
        drawer: Drawer,
        tellings: int = 3,
        second: Caller | None = None,
        *,
        cycles: int = 1,
        answerable: bool = False,
    ) -> None:
        """`partner`, a second model, captions after a bad judgment, judges and reviews; `second`, a
        third one, reviews on its own, without the partner's review.

        tellings: captions of a cycle at most. cycles: annotations of an image at most, each after
        reviewers rejected the one before. answerable: whether the partner also answers every
        question from the caption alone, and objects where it can't.

        Raises UsageError if two of the models are the same.
        """
        if author.author == partner.author:
            raise UsageError(
                "the game needs two models: name another one as --reviewer", code="missing-option"
            )
        if second is not None and second.author in (author.author, partner.author):
            raise UsageError(
                "reviews are independent: name a third model as --second-reviewer",
                code="missing-option",
            )
        self._models = (author, partner)
        self._reviewers = (partner,) if second is None else (partner, second)
        self._drawer = drawer
        self._tellings = tellings
        self._cycles = cycles
        self._answerable = answerable

    def run(
        self,
        images: Sequence[GivenImage],
        progress: Progress = silent,
    ) -> list[GameItem]:
        """Every image with its fate, in order; a repeated image is played once."""
        items = list({p.sha256: GameItem(p) for p in images}.values())
        self._screen(items, progress)
        self._annotate(_playing(items), progress)
        for _ in range(1, self._cycles):
            rejected = [item for item in items if item.fate in ("disputed", "discarded")]
            for item in rejected:
                item.annotate_again()
            self._annotate(rejected, progress)
        return items

    def _annotate(self, items: list[GameItem], progress: Progress) -> None:
        """One cycle: captions until one is judged good, questions and edits, reviews."""
        for turn in range(self._tellings):
            self._tell(_playing(items), turn, progress)
        for item in _playing(items):
            if not item.drawing:
                why = f"{self._tellings} captions were judged bad: {item.why}"
                item.end("recaptioned", why)
        self._compare(_playing(items), progress)
        self._review(_playing(items), progress)

    def _screen(self, items: list[GameItem], progress: Progress) -> None:
        author = self._models[0]
        calls = [
            Call(f"{i.id}/screener", SCREENER.request(*_show(i.image.data)), SCREENER.read)
            for i in items
        ]
        for item, answer in _zip(items, author.call_many(calls, "screen", progress)):
            if (screening := _value(item, answer, SCREENER)) is not None:
                reasons = {
                    "not harmless": not screening.harmless,
                    "somebody can be identified": not screening.anonymous,
                    "fewer than two things": screening.objects < 2,
                    "much text": not screening.little_text,
                }
                if failed := [reason for reason, holds in reasons.items() if holds]:
                    item.end("screened", ", ".join(failed))

    def _tell(self, items: list[GameItem], turn: int, progress: Progress) -> None:
        """Captions each image and has it drawn and judged; a good one keeps its drawing."""
        items = [item for item in items if not item.drawing]
        # All of them are in the same cycle; each cycle begins with the other model.
        writer = (turn + items[0].cycle - 1) % 2 if items else 0
        teller, judge = self._models[writer], self._models[1 - writer]
        calls = [
            Call(f"{i.id}/teller{turn}", TELLER.request(*_telling(i)), _read_telling) for i in items
        ]
        for item, answer in _zip(items, teller.call_many(calls, f"tell {turn + 1}", progress)):
            if (telling := _value(item, answer, TELLER)) is not None:
                item.caption = " ".join(telling.sentences)
                item.tellings += 1
                item.teller = writer
        drawn = self._draw([item for item in items if not item.fate], turn, progress)
        judged = [
            Call(f"{i.id}/judge{turn}", JUDGE.request(*_show(i.image.data, drawing)), JUDGE.read)
            for i, drawing in drawn
        ]
        answers = judge.call_many(judged, f"judge {turn + 1}", progress)
        for (item, drawing), judged_answer in zip(drawn, answers, strict=True):
            judgment = _value(item, judged_answer, JUDGE)
            if judgment is not None and judgment.verdict == "good":
                item.drawing, item.why = drawing, ""
            elif judgment is not None:
                item.why = one_line(judgment.reason, 200)

    def _draw(
        self, items: list[GameItem], turn: int, progress: Progress
    ) -> list[tuple[GameItem, bytes]]:
        """The items whose caption can be drawn, with the drawing as PNG; the others have failed."""
        drawn = []
        for number, item in enumerate(items, 1):
            try:
                drawn.append((item, self._drawer(item.caption, item.image.seed)))
            except UndrawnError as error:
                item.end("failed", f"drawer: {error}")
            progress(f"draw {turn + 1}", number, len(items))
        return drawn

    def _compare(self, items: list[GameItem], progress: Progress) -> None:
        calls = [
            Call(
                f"{i.id}/comparer",
                COMPARER.request(*_show(i.image.data, i.drawing), *_rejected_material(i)),
                _read_comparison,
            )
            for i in items
        ]
        for item, answer in _zip(items, self._models[0].call_many(calls, "compare", progress)):
            item.comparison = _value(item, answer, COMPARER)

    def _review(self, items: list[GameItem], progress: Progress) -> None:
        reviews: dict[str, list[ItemReview]] = {}
        for number, reviewer in enumerate(self._reviewers):
            calls = [
                Call(
                    f"{i.id}/reviewer{number + 1 if number else ''}",
                    REVIEWER.request(*_show(i.image.data), _paper(i)),
                    REVIEWER.read,
                )
                for i in items
            ]
            stage = "review again" if number else "review"
            for item, answer in _zip(items, reviewer.call_many(calls, stage, progress)):
                if (review := _value(item, answer, REVIEWER)) is not None:
                    reviews.setdefault(item.image.sha256, []).append(review)
        unanswered = self._read(_playing(items), progress) if self._answerable else {}
        for item in _playing(items):
            of_item = reviews[item.image.sha256]
            of_reviewers = ["; ".join(_objections(item, review)) for review in of_item]
            objections = [text for text in of_reviewers if text]
            everybody = len(objections) == len(self._reviewers) > 1
            if unread := unanswered.get(item.image.sha256, ""):
                objections.append(unread)
            annotation = ReviewedAnnotation(
                key=tuple(_answer_text(question) for question in item.questions()),
                answers=tuple(tuple(review.answers) for review in of_item),
                objections=tuple(objections),
            )
            item.reviewed.append(annotation)
            fate: Fate = "discarded" if everybody else "disputed" if objections else "accepted"
            item.end(fate, " | ".join(objections))

    def _read(self, items: list[GameItem], progress: Progress) -> dict[str, str]:
        """SHA-256 of an image -> its questions that the caption alone does not answer rightly."""
        calls = [Call(f"{i.id}/reader", READER.request(_paper(i)), READER.read) for i in items]
        answers = self._models[1].call_many(calls, "read", progress)
        unanswered = {}
        for item, answer in _zip(items, answers):
            if (reading := _value(item, answer, READER)) is not None:
                wrong = _wrong_answers(item, reading.answers)
                unanswered[item.image.sha256] = "; ".join(f"by the caption, {w}" for w in wrong)
        return unanswered


def _playing(items: list[GameItem]) -> list[GameItem]:
    return [item for item in items if not item.fate]


def _show(*images: bytes) -> list[ImagePart]:
    return [ImagePart(data) for data in images]


def _telling(item: GameItem) -> tuple[str | ImagePart, ...]:
    image = ImagePart(item.image.data)
    if not item.caption:
        return (image,)
    return image, f"A caption that was found wanting:\n<data>\n{item.caption}\n</data>"


def _rejected_material(item: GameItem) -> tuple[str, ...]:
    """The objections to the image's last annotation, for whoever writes the next one."""
    if not item.reviewed or item.comparison is None:
        return ()
    questions = [f"question {n}: {q.question}" for n, q in enumerate(item.questions(), 1)]
    objections = [f"objection: {text}" for text in item.reviewed[-1].objections]
    listed = "\n".join(line.replace("</", "< /") for line in [*questions, *objections])
    return (f"Material that a reviewer rejected:\n<data>\n{listed}\n</data>",)


def _paper(item: GameItem) -> str:
    """Caption, questions and edits for reviewer and reader: without the answers."""
    assert item.comparison is not None
    questions = item.questions()
    lines = [f"Caption: {item.caption}", "Questions about the image:"]
    lines += [f"{n}. {q.question}" for n, q in enumerate(questions[:10], 1)]
    number = 11
    for edit in item.comparison.edits:
        lines.append(f"After the edit: {edit.prompt}")
        for question in edit.questions:
            lines.append(f"{number}. {question.question}")
            number += 1
    return "\n".join(["<data>", *lines, "</data>"])


def _objections(item: GameItem, review: ItemReview) -> list[str]:
    objections = [] if review.caption_faithful else ["the caption is not faithful"]
    objections += [] if review.edits_possible else ["an edit is not possible"]
    return objections + _wrong_answers(item, review.answers)


def _wrong_answers(item: GameItem, answers: Sequence[str]) -> list[str]:
    """`question N: ANSWER` for each answer that is not the key's."""
    both = zip(item.questions(), answers, strict=True)
    return [
        f"question {number}: {answer}"
        for number, (question, answer) in enumerate(both, 1)
        if answer != _answer_text(question)
    ]


def _answer_text(question: Asked) -> str:
    return "yes" if question.answer else "no"


def _read_telling(text: str) -> Telling:
    telling = TELLER.read(text)
    for number, sentence in enumerate(telling.sentences, 1):
        if fault := text_fault(sentence, SENTENCE):
            raise ValueError(f"sentence {number}: {fault}")
        if sentence[-1] not in ".!":
            raise ValueError(f"sentence {number}: does not end with a period")
    return telling


def _read_comparison(text: str) -> ImageComparison:
    comparison = COMPARER.read(text)
    questions = _questions_of(comparison)
    edits = [edit.prompt for edit in comparison.edits]
    faults = material_faults([q.question for q in questions], [q.answer for q in questions], edits)
    if messages := [f"{field}: {fault}" for field, fault in faults]:
        raise ValueError("; ".join(messages))
    return comparison


def _questions_of(c: ImageComparison) -> list[Asked]:
    """The ten questions, then the two of each edit."""
    return [*c.similarities, *c.differences, *(q for e in c.edits for q in e.questions)]


def _value(item: GameItem, answer: Answer[A], role: Role[A]) -> A | None:
    """The answer's value; without one, the item has failed."""
    item.calls += answer.calls
    if answer.value is None:
        item.end("failed", f"{role.short}: {answer.status}: {answer.problem}")
    return answer.value


def _zip(items: list[GameItem], answers: list[Answer[A]]) -> list[tuple[GameItem, Answer[A]]]:
    return list(zip(items, answers, strict=True))
