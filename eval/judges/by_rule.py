"""Judges by rule: a detector finds the subjects of a question, and a metric measures them.

``METRIC:DETECTOR`` takes the detector's spec as it is; options that begin with ``rule.`` are the
rule's: ``pse:owl:MODEL?revision=COMMIT&rule.convention=authors``. Each row of
`geometry.metrics.METRICS` is such a judge.

A subject that was not found is a verdict (`invalid`, with the number that the metric's paper gives
it), because metrics score the image, not the detector. A detector that can't look (a class that it
does not know, an image that it can't read) is a failure (`error`).
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

from pydantic import Field

from ...errors import DataError, UsageError
from ...specs import Options, Spec
from ..core import Question, Verdict, describe
from ..detectors import Detector, Request, open_detector
from ..detectors.cache import Cached
from ..detectors.depth import DepthEstimator, open_depth
from ..geometry.boxes import BETWEEN, DISTANCES, Convention
from ..geometry.detections import Measurement, Sighting
from ..geometry.metrics import METRICS, Metric
from . import CallPlan

PREFIX = "rule."
"""Prefix of the options that are the rule's."""
FIRST = {
    "horizontal": "left_of",
    "vertical": "above",
    "depth": "in_front_of",
    "occlusion": "hidden_by",
    "falling": "upper_left",
    "rising": "lower_left",
    "distance": "near",
    "enclosure": "inside",
    "middle": "between",
}
"""Axis -> relation of the subject that comes first on it to the other."""
REVERSED = {
    "right_of": "left_of",
    "below": "above",
    "behind": "in_front_of",
    "lower_right": "upper_left",
    "upper_right": "lower_left",
    "surrounding": "inside",
}
"""Relations whose subject comes second on its axis, and the relation that it then is."""
DETECTIONS = "detections"
"""Folder beside the ledgers, shared by every rule: no image is searched twice."""


class RuleOptions(Options, extra="allow"):
    """The options of a rule; all others are the detector's."""

    undeclared: ClassVar[str] = "options of the detector"

    convention: Annotated[Convention, Field(alias="rule.convention")] = "paper"
    """Whether to follow the paper or its authors' program if they differ."""
    depth: Annotated[str, Field(alias="rule.depth")] = ""
    """Spec of a depth estimator, for relations in depth."""

    @classmethod
    def takes(cls, name: str) -> bool:
        return not name.startswith(PREFIX)


class RuleJudge(ABC):
    """A detector and a rule."""

    kind: str
    """Kind of the spec and of the identity."""
    relations: Collection[str]
    """The relations that the rule measures."""
    version: str = "1"
    """Raised whenever the same detections get another verdict."""
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
        return cls(*open_adapters(spec.argument, options, plan))

    def identity(self) -> dict[str, str]:
        detector = self.detector.identity()
        return {
            "kind": self.kind,
            "name": describe(detector),
            "version": self.version,
            "convention": self.settings.convention,
            **{f"detector_{name}": value for name, value in detector.items()},
            **({f"depth_{n}": v for n, v in self.depth.identity().items()} if self.depth else {}),
        }

    @abstractmethod
    def measure(self, sighting: Sighting, relation: str) -> Measurement:
        """Whether, and how far, the first subject is `relation` of the second.

        Raises DataError for an image that can't be measured.
        """

    def judge(self, questions: Iterable[Question]) -> Iterator[tuple[Question, Verdict]]:
        for batch in _batches(questions, self.detector.batch_size):
            if len(batch) > 1:
                self._detect_batch(batch)
            for question in batch:
                yield question, self.verdict(question)

    def verdict(self, question: Question) -> Verdict:
        """The rule's answer to a question."""
        try:
            sighting, relation = self._look(question)
            if relation:
                return self._judge_stated(question, sighting, relation)
            return self._judge_open(question, sighting)
        except (DataError, UsageError) as error:
            return Verdict("error", f"{self.kind}: {error}")

    def _detect_batch(self, questions: Sequence[Question]) -> None:
        """Detects in a whole batch; a failure is reported when its question is judged."""
        requests = [_request(question) for question in questions if _axis(question)]
        try:
            self.detector.detect(requests)
        except (DataError, UsageError):
            return

    def _look(self, question: Question) -> tuple[Sighting, str]:
        """The detections and the stated relation, whose subjects are then in its order."""
        axis = _axis(question)
        if axis is None:
            raise UsageError(
                f"can't answer questions of the task {question.task}", code="unsupported"
            )
        relation = question.facts.get("relation", "")
        if (relation or FIRST[axis]) not in self.relations:
            raise UsageError(f"has no rule for {relation or FIRST[axis]!r}", code="unsupported")
        (detections,) = self.detector.detect([_request(question)])
        names = question.subjects
        if relation:
            names = question.facts["a"], question.facts["b"]
        if axis == "middle":
            names = names[0], *names[1].split("|")
        seen = [[found for found in detections if found.label == name] for name in names]
        sighting = Sighting(
            question.images[-1],
            a=seen[0],
            b=seen[1],
            c=seen[2] if len(seen) > 2 else (),
            estimate_depth=self.depth.nearness if self.depth else None,
            names=tuple(names),
            case=question.case,
            digest=question.digest,
        )
        return sighting, relation

    def _judge_stated(self, question: Question, sighting: Sighting, relation: str) -> Verdict:
        """The label of the stated relation, or of its reverse if both are there and it fails."""
        if relation in DISTANCES:  # the first label is that of near
            which = DISTANCES.index(relation)
        elif relation == BETWEEN:
            which = 0
        else:
            which = int(question.subjects[0] != sighting.names[relation in REVERSED])
        held, failed = question.labels[which], question.labels[1 - which]
        measured = self.measure(sighting, relation)
        label = question.labels[2]
        if measured.holds is not None:
            label = held if measured.holds else failed
        return Verdict(label, _evidence(sighting, measured, relation), measured.number)

    def _judge_open(self, question: Question, sighting: Sighting) -> Verdict:
        """The label of whichever subject comes first; neither if both or none would."""
        relation = FIRST[question.facts.get("axis", "horizontal")]
        orders = self.measure(sighting, relation), self.measure(sighting.swapped(), relation)
        holding = [which for which, measured in enumerate(orders) if measured.holds]
        which = holding[0] if len(holding) == 1 else 2
        measured = (
            max(orders, key=lambda measured: measured.number) if which == 2 else orders[which]
        )
        evidence = _evidence(sighting, measured, relation)
        return Verdict(question.labels[which], evidence, measured.number)


class MetricJudge(RuleJudge):
    """A detector and a row of `METRICS`."""

    def __init__(
        self,
        metric: Metric,
        detector: Detector,
        settings: RuleOptions | None = None,
        depth: DepthEstimator | None = None,
        cache: Path | None = None,
    ) -> None:
        super().__init__(detector, settings, depth, cache)
        self.metric = metric
        self.kind, self.version, self.relations = metric.name, metric.version, metric.relations

    @classmethod
    def from_spec(cls, spec: Spec, options: RuleOptions, plan: CallPlan | None = None) -> Self:
        metric = METRICS[spec.kind]
        return cls(metric, *open_adapters(spec.argument or metric.detector, options, plan))

    def measure(self, sighting: Sighting, relation: str) -> Measurement:
        return self.metric.function(sighting, relation, self.settings.convention)


def open_adapters(
    detector: str, options: RuleOptions, plan: CallPlan | None
) -> tuple[Detector, RuleOptions, DepthEstimator | None, Path | None]:
    """Detector, settings, depth estimator and cache of a judge, from the spec of its detector.

    Raises UsageError for a bad spec of a detector or depth estimator.
    """
    inner = Spec.parse(detector)
    text = str(Spec(inner.kind, inner.argument, options.rest))
    cache = plan.ledgers.parent / DETECTIONS if plan else None
    depth = open_depth(options.depth, cache) if options.depth else None
    return open_detector(text), options, depth, cache


def _batches(questions: Iterable[Question], size: int) -> Iterator[list[Question]]:
    """Questions in their order, `size` at a time, taken as they are needed."""
    remaining = iter(questions)
    while batch := list(islice(remaining, size)):
        yield batch


def _axis(question: Question) -> str | None:
    """The axis that a question is about; None for a question of another kind."""
    if question.task not in ("order", "arrangement") or len(question.subjects) != 2:
        return None
    return question.facts.get("axis", "horizontal")


def _request(question: Question) -> Request:
    """A request for everything that the prompt names: its questions share the detections."""
    names = question.facts.get("objects", "")
    queries = tuple(names.split("|")) if names else question.subjects
    return Request(question.images[-1], queries, question.case, question.digest)


def _evidence(sighting: Sighting, measured: Measurement, relation: str) -> str:
    """The verdict's grounds as JSON: relation, number, reason, and every box."""
    boxes: dict[str, Any] = {
        name: [[round(d.score, 4), *(round(side, 1) for side in d.box)] for d in detections]
        for name, detections in zip(
            sighting.names, (sighting.a, sighting.b, sighting.c), strict=False
        )
    }
    evidence = {"relation": relation, "number": round(measured.number, 6), "found": boxes}
    return json.dumps(
        evidence | ({"why": measured.why} if measured.why else {}), ensure_ascii=False
    )
