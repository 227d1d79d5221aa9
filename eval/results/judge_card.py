"""A judge's card: its identity and behaviour, stored with every result that depends on it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..clips.together import majority
from ..core import CONTROLS, MIRROR_SWAP, ORIGINAL, Verdict, without_nan
from ..questions import read_prompt
from ..stats.agreement import cohen_kappa, confusion, observed_agreement
from ..stats.estimate import Estimate
from ..store.verdicts import Answered
from ..suites.base import Suite
from ..suites.worths import Worth

GoldLabels = dict[str, dict[str, int]]
"""Content of gold images -> label by a judge -> number of images."""

RecognizedLabels = Mapping[str, tuple[float, float, float]]
"""Label -> share of images of which it is true that a judge recognizes, and its 95 % interval."""

Labels = Mapping[tuple[str, str], str]
"""(Case, question) -> label by human annotators."""


@dataclass(frozen=True)
class ProbeReport:
    """Consistency of a judge under one control."""

    n: int
    """Questions with a label both times."""
    consistency: float
    """Share with the same label, in [0, 1]; NaN without any."""


@dataclass(frozen=True)
class HumanAgreement:
    """A judge against human annotators: how often each pair of labels occurs."""

    labels: Sequence[str]
    """Labels of the rows and columns, in order."""
    matrix: Sequence[Sequence[int]]
    """Rows are the annotators' labels, columns the judge's."""

    @classmethod
    def of_pairs(
        cls, pairs: Sequence[tuple[str, str]], labels: Sequence[str] = ()
    ) -> HumanAgreement:
        """From the annotators' and the judge's label of each item.

        labels: of the rows and columns; if empty, the labels that occur, sorted.
        """
        ordered = list(labels) or sorted({label for pair in pairs for label in pair})
        people, judge = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
        return cls(ordered, confusion(people, judge, ordered).tolist())

    @property
    def kappa(self) -> Estimate:
        """Cohen's; its value is NaN where undefined."""
        return cohen_kappa(self.matrix)

    @property
    def observed(self) -> float:
        """Share of equal labels, in [0, 1]; NaN without items."""
        return observed_agreement(self.matrix)

    @property
    def n(self) -> int:
        """Items that both labeled."""
        return sum(map(sum, self.matrix))

    def to_json(self) -> dict[str, Any]:
        """Plain values with kappa and its interval; NaN as None."""
        kappa = self.kappa
        ends = {"low": kappa.interval.low, "high": kappa.interval.high}
        plain: dict[str, Any] = without_nan(
            {**vars(self), "kappa": kappa.value, **ends, "n": kappa.n}
        )
        return plain

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> HumanAgreement:
        """The inverse of `to_json`."""
        return cls(record["labels"], record["matrix"])


@dataclass(frozen=True)
class JudgeCard:
    """Facts about a judge that a reader needs before believing a score."""

    identity: Mapping[str, str]
    """Kind, model, server, revision, settings."""
    prompts: Mapping[str, str]
    """Prompt -> version."""
    asked: int
    failures: Mapping[str, int]
    """Questions without a label, by reason."""
    parse_rate: float
    """Share of answers that were one of the allowed ones, in [0, 1]."""
    probability_share: float
    """Share of answers with probabilities, in [0, 1]; scores that weigh answers use them."""
    first_named: float
    """Share of answers for the subject named first; 0.5 without a name bias, NaN where the
    questions name none."""
    digits: Mapping[str, float]
    """Share of each written answer; even without a bias."""
    side_bias: float
    """Tendency to say that the prior holds, whatever the image shows, from image and mirror image;
    in [-1, 1], 0 without one; NaN without the control `mirror`."""
    probes: Mapping[str, ProbeReport]
    """Probe -> report."""
    agreement: Mapping[str, HumanAgreement]
    """Question -> agreement with human annotators, for questions with labels."""
    gold: Mapping[str, GoldLabels] = field(default_factory=dict)
    """Its labels of gold images: `all`, and each group, e.g. a domain; empty if it was not
    checked."""
    latent: Mapping[str, RecognizedLabels] = field(default_factory=dict)
    """Question -> what it recognizes, by all raters of the run together; empty unless asked for."""

    @property
    def comparable(self) -> Mapping[str, str]:
        """The judge and its prompts: two results are comparable only if these are equal."""
        return comparable_of(self.identity, self.prompts)


def comparable_of(identity: Mapping[str, str], prompts: Mapping[str, str]) -> dict[str, str]:
    """Identity of a judge across runs: its settings and the versions of its prompts."""
    return {**identity, **{f"prompt {n}": v for n, v in prompts.items()}}


def prompt_versions(suite: Suite[Any]) -> dict[str, str]:
    """Prompt of a suite -> its version."""
    return {name: read_prompt(name).version for name in sorted(suite.prompts)}


AskedAbout = tuple[str, str, int | None]
"""Case, question, and the frame of a clip."""


def judge_card(
    identity: Mapping[str, str],
    suite: Suite[Any],
    verdicts: Iterable[Answered],
    labels: Labels | None = None,
) -> JudgeCard:
    """The card of a judge from its newest verdict on every question about the present images.

    labels: (case, question) -> label by human annotators.
    """
    records = list(verdicts)
    failures = Counter(a.verdict.label for a in records if a.verdict.failed)
    answered = [a for a in records if not a.verdict.failed]
    parsed = len(answered) + failures["unparsed"]
    sided = [a for a in answered if a.sided and a.verdict.label in a.labels[:2]]
    digits = Counter(
        next((d for d, means in a.answers.items() if means == a.verdict.label), "")
        for a in answered
    )
    by_probe: dict[str, dict[AskedAbout, str]] = {}
    for a in answered:
        by_probe.setdefault(a.probe, {})[a.case, a.question, a.frame] = a.verdict.label
    original = by_probe.get(ORIGINAL, {})
    probes = {}
    for probe, probed in by_probe.items():
        same = [original[key] == probed[key] for key in original.keys() & probed.keys()]
        probes[probe] = ProbeReport(len(same), _mean(same))
    return JudgeCard(
        identity=dict(identity),
        prompts=prompt_versions(suite),
        asked=len(records),
        failures=dict(sorted(failures.items())),
        parse_rate=len(answered) / parsed if parsed else math.nan,
        probability_share=_mean([a.verdict.probabilities is not None for a in answered]),
        first_named=_mean([a.verdict.label == a.labels[0] for a in sided]),
        digits={d: n / len(answered) for d, n in sorted(digits.items())},
        side_bias=_side_bias(suite.worths, original, by_probe.get("mirror", {})),
        probes={p: probes[p] for p in (*CONTROLS, MIRROR_SWAP) if p in probes},
        agreement=_agreement(labels_of(records), labels) if labels else {},
    )


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else math.nan


def labels_of(answers: Iterable[Answered]) -> dict[tuple[str, str], str]:
    """(case, question) -> label of the image, or of most frames of the clip; no failures."""
    verdicts: dict[tuple[str, str], list[Verdict]] = {}
    for a in answers:
        if a.probe == ORIGINAL:
            verdicts.setdefault((a.case, a.question), []).append(a.verdict)
    together = {
        key: answered[0] if len(answered) == 1 else majority(answered)
        for key, answered in verdicts.items()
    }
    return {key: verdict.label for key, verdict in together.items() if not verdict.failed}


def _side_bias(
    worths: Mapping[str, Worth],
    original: Mapping[AskedAbout, str],
    mirrored: Mapping[AskedAbout, str],
) -> float:
    """Half the difference of "the prior holds" between image and mirror image, as +1 and -1."""
    differences = []
    for key in original.keys() & mirrored.keys():
        worth = worths[key[1]]
        labels = original[key], mirrored[key]
        if worth.prior and worth.values.keys() >= set(labels):
            signs = [1 if label == worth.prior else -1 for label in labels]
            differences.append((signs[0] - signs[1]) / 2)
    return _mean(differences)


def _agreement(
    original: Mapping[tuple[str, str], str], labels: Labels
) -> dict[str, HumanAgreement]:
    """Question -> agreement on the items that both labeled."""
    pairs: dict[str, list[tuple[str, str]]] = {}
    for key in sorted(labels.keys() & original.keys()):
        pairs.setdefault(key[1], []).append((labels[key], original[key]))
    return {question: HumanAgreement.of_pairs(pairs[question]) for question in sorted(pairs)}
