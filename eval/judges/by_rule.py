"""What judges by rule share: a detector finds the subjects of a question, and a rule measures them.

``RULE:DETECTOR`` takes the detector's spec as it is; options that begin with ``rule.`` are the
rule's: ``pse:owl:MODEL?revision=COMMIT&rule.convention=authors``.

A subject that was not found is a verdict (`invalid`, with the number that the rule's paper gives
it), because the rules score the image, not the detector. A detector that can't look (a class that
it doesn't know, an image that it can't read) is a failure (`error`).
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, ClassVar, NamedTuple, Self

import numpy as np
from PIL.Image import Image
from pydantic import Field

from ...errors import DataError, UsageError
from ...specs import Options, Spec
from ..core import Question, Verdict, describe
from ..detectors import Detection, Detector, Mask, Request, open_detector
from ..detectors.cache import Cached
from ..detectors.depth import DepthEstimator, Nearness, open_depth
from ..geometry.boxes import Box, Convention, Size
from . import CallPlan

PREFIX = "rule."
"""Of the options that are the rule's."""
FIRST = {
    "horizontal": "left_of",
    "vertical": "above",
    "depth": "in_front_of",
    "occlusion": "hidden_by",
}
"""What the subject that comes first on an axis is of the other."""
REVERSED = {"right_of": "left_of", "below": "above", "behind": "in_front_of"}
"""Relations whose subject comes second on its axis, and the relation that it then is."""
DETECTIONS = "detections"
"""Folder beside the ledgers, shared by every rule: nothing is looked at twice."""


class Measured(NamedTuple):
    """What a rule says of one stated relation."""

    holds: bool | None
    """Whether it holds; None where the rule abstains."""
    number: float
    """How far it holds, in [0, 1]."""
    why: str = ""
    """In a few words, where the number doesn't say it."""


@dataclass(frozen=True)
class Sighting:
    """What was found of two subjects in one image."""

    image: Image
    """RGB."""
    a: Sequence[Detection]
    """Of the first subject, best first."""
    b: Sequence[Detection]
    """Of the second subject, best first."""
    depth: DepthEstimator | None = None
    """For relations in depth."""
    names: tuple[str, str] = ("", "")
    """Of the two subjects."""
    case: str = ""
    """Id of the case."""
    digest: str = ""
    """SHA-256 of the image's file, where it is known."""

    @property
    def size(self) -> Size:
        return Size(*self.image.size)

    @property
    def has_both(self) -> bool:
        return bool(self.a and self.b)

    @property
    def best(self) -> tuple[Detection, Detection]:
        """The surest detection of each."""
        return self.a[0], self.b[0]

    @property
    def boxes(self) -> tuple[Box, Box]:
        """Of the surest detections."""
        return self.a[0].box, self.b[0].box

    def swapped(self) -> Sighting:
        """The same with the subjects exchanged."""
        return Sighting(
            self.image,
            a=self.b,
            b=self.a,
            depth=self.depth,
            names=self.names[::-1],
            case=self.case,
            digest=self.digest,
        )

    @cached_property
    def nearness(self) -> Nearness:
        """Depth map (H, W), larger is nearer. Raises UsageError where nobody estimates depth."""
        if self.depth is None:
            raise UsageError(
                "a relation in depth needs an estimator: add rule.depth=SPEC", code="missing-option"
            )
        return self.depth.nearness(self.image, [*self.a, *self.b])

    def mask(self, found: Sequence[Detection]) -> Mask:
        """The union of some detections, shape (H, W); one without a mask counts as its box."""
        masks = [self._boxed(one) if one.mask is None else one.mask for one in found]
        return masks[0] if len(masks) == 1 else np.logical_or.reduce(masks)

    def _boxed(self, one: Detection) -> Mask:
        mask = np.zeros((self.image.height, self.image.width), bool)
        x1, y1, x2, y2 = (round(side) for side in one.box)
        mask[y1 : max(y2, y1 + 1), x1 : max(x2, x1 + 1)] = True
        return mask


class RuleOptions(Options, extra="allow"):
    """The options of a rule; all others are the detector's."""

    others: ClassVar[str] = "options of the detector"

    convention: Annotated[Convention, Field(alias="rule.convention")] = "paper"
    """Which one applies where the paper and its authors' program differ."""
    depth: Annotated[str, Field(alias="rule.depth")] = ""
    """Spec of a depth estimator, for relations in depth."""

    @classmethod
    def takes(cls, name: str) -> bool:
        return not name.startswith(PREFIX)


class RuleJudge(ABC):
    """A detector and a rule."""

    KIND: ClassVar[str]
    VERSION: ClassVar[str] = "1"
    """Raised whenever the same detections give another verdict."""
    RELATIONS: ClassVar[frozenset[str]]
    """The relations that the rule measures."""
    DETECTOR: ClassVar[str] = ""
    """Spec of the detector where none is named; empty where one must be."""
    argument: ClassVar[str] = "DETECTOR"
    options: ClassVar[type[Options]] = RuleOptions

    def __init__(
        self,
        detector: Detector,
        settings: RuleOptions | None = None,
        depth: DepthEstimator | None = None,
        cache: Path | None = None,
    ) -> None:
        """settings: of this rule's `options`. cache: folder of the detections; None to keep none on
        disk."""
        self.settings: Any = settings or self.options()
        self.cache = cache
        self.detector = Cached(detector, cache)
        self.depth = depth

    @classmethod
    def from_spec(cls, spec: Spec, options: RuleOptions, plan: CallPlan | None = None) -> Self:
        """Raises UsageError for a bad spec of a detector or depth estimator."""
        inner = Spec.parse(spec.argument or cls.DETECTOR)
        text = str(Spec(inner.kind, inner.argument, options.rest))
        cache = plan.ledgers.parent / DETECTIONS if plan else None
        depth = open_depth(options.depth, cache) if options.depth else None
        return cls(open_detector(text), options, depth, cache)

    def identity(self) -> dict[str, str]:
        detector = self.detector.identity()
        return {
            "kind": self.KIND,
            "name": describe(detector),
            "version": self.VERSION,
            "convention": self.settings.convention,
            **{f"detector_{name}": value for name, value in detector.items()},
            **({f"depth_{n}": v for n, v in self.depth.identity().items()} if self.depth else {}),
        }

    @abstractmethod
    def measure(self, seen: Sighting, relation: str) -> Measured:
        """Whether, and how far, the first subject is `relation` of the second.

        Raises DataError for an image that can't be measured.
        """

    def judge(self, questions: Iterable[Question]) -> Iterator[tuple[Question, Verdict]]:
        for batch in _batches(questions, self.detector.batch_size):
            if len(batch) > 1:
                self._look_ahead(batch)
            for question in batch:
                yield question, self.verdict(question)

    def verdict(self, question: Question) -> Verdict:
        """What the rule says of one question."""
        try:
            seen, claim = self._seen(question)
            return self._claimed(question, seen, claim) if claim else self._open(question, seen)
        except (DataError, UsageError) as error:
            return Verdict("error", f"{self.KIND}: {error}")

    def _look_ahead(self, questions: Sequence[Question]) -> None:
        """Detects in a whole batch; one that fails is told of when it is judged."""
        asked = [_request(q) for q in questions if _axis(q)]
        try:
            self.detector.detect(asked)
        except (DataError, UsageError):
            return

    def _seen(self, question: Question) -> tuple[Sighting, str]:
        """What was found, and the stated relation, whose subjects are then in its order."""
        axis = _axis(question)
        if axis is None:
            raise UsageError(
                f"can't answer questions of the task {question.task}", code="unsupported"
            )
        relation = question.facts.get("relation", "")
        if (relation or FIRST[axis]) not in self.RELATIONS:
            raise UsageError(f"has no rule for {relation or FIRST[axis]!r}", code="unsupported")
        (found,) = self.detector.detect([_request(question)])
        a, b = question.subjects
        if relation:
            a, b = question.facts["a"], question.facts["b"]
        seen = Sighting(
            question.images[-1],
            a=[one for one in found if one.label == a],
            b=[one for one in found if one.label == b],
            depth=self.depth,
            names=(a, b),
            case=question.case,
            digest=question.digest,
        )
        return seen, relation

    def _claimed(self, question: Question, seen: Sighting, relation: str) -> Verdict:
        """The label of the stated relation, or of its reverse where both are there and it fails."""
        first = seen.names[relation in REVERSED]
        held = question.labels[0 if question.subjects[0] == first else 1]
        failed = question.labels[1 if question.subjects[0] == first else 0]
        found = self.measure(seen, relation)
        label = question.labels[2] if found.holds is None else held if found.holds else failed
        return Verdict(label, _evidence(seen, found, relation), found.number)

    def _open(self, question: Question, seen: Sighting) -> Verdict:
        """The label of whichever subject comes first; neither where both or none would."""
        relation = FIRST[question.facts.get("axis", "horizontal")]
        both = self.measure(seen, relation), self.measure(seen.swapped(), relation)
        holding = [which for which, found in enumerate(both) if found.holds]
        which = holding[0] if len(holding) == 1 else 2
        found = max(both, key=lambda one: one.number) if which == 2 else both[which]
        evidence = _evidence(seen, found, relation)
        return Verdict(question.labels[which], evidence, found.number)


def _batches(questions: Iterable[Question], size: int) -> Iterator[list[Question]]:
    """Questions in their order, `size` at a time, taken as they are needed."""
    left = iter(questions)
    while batch := list(islice(left, size)):
        yield batch


def _axis(question: Question) -> str | None:
    """The axis that a question is about; None for a question of another kind."""
    if question.task not in ("order", "arrangement") or len(question.subjects) != 2:
        return None
    return question.facts.get("axis", "horizontal")


def _request(question: Question) -> Request:
    """Everything that the prompt names is looked for at once: its questions share the answer."""
    names = question.facts.get("objects", "")
    queries = tuple(names.split("|")) if names else question.subjects
    return Request(question.images[-1], queries, question.case, question.digest)


def _evidence(seen: Sighting, found: Measured, relation: str) -> str:
    """What the verdict rests on, as JSON: relation, number, reason, and every box."""
    sides: dict[str, Any] = {
        name: [[round(one.score, 4), *(round(side, 1) for side in one.box)] for one in group]
        for name, group in zip(seen.names, (seen.a, seen.b), strict=True)
    }
    plain = {"relation": relation, "number": round(found.number, 6), "found": sides}
    return json.dumps(plain | ({"why": found.why} if found.why else {}), ensure_ascii=False)
