"""A judge's card: who it is and how it behaved, part of every result that stands on it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ..core import ORIGINAL, PROBES, is_failure
from ..prompts import read_prompt
from ..stats.agreement import cohen_kappa, confusion
from ..suites.asking import INVALID


@dataclass(frozen=True)
class ProbeReport:
    """How a judge fared under one control."""

    n: int
    """Questions with a label both times."""
    consistency: float
    """Share with the same label, in [0, 1]; NaN without any."""


@dataclass(frozen=True)
class Agreement:
    """A judge against people, on one question."""

    labels: Sequence[str]
    """Of the rows and columns."""
    matrix: Sequence[Sequence[int]]
    """Rows are people's labels, columns the judge's."""
    kappa: float
    """Cohen's; NaN where undefined."""
    low: float
    """Lower end of its 95 % interval."""
    high: float
    """Upper end."""
    n: int
    """Items that both labelled."""


@dataclass(frozen=True)
class JudgeCard:
    """What a reader must know of a judge before believing a score."""

    identity: Mapping[str, str]
    """Kind, model, revision, settings."""
    prompts: Mapping[str, str]
    """Prompt -> version."""
    asked: int
    """Questions."""
    failures: Mapping[str, int]
    """Questions without a label, by reason."""
    parse_rate: float
    """Share of answers that were one of the allowed ones, in [0, 1]."""
    first_named: float
    """Share of answers for the subject that was named first; 0.5 without a name bias, NaN where the
    questions name none."""
    digits: Mapping[str, float]
    """Share of each written answer; even without a bias."""
    side_bias: float
    """Tendency to say that the prior holds, whatever is there, from picture and mirrored one; in
    [-1, 1], 0 without one; NaN without the probe `mirror`."""
    probes: Mapping[str, ProbeReport]
    """Control -> report."""
    agreement: Mapping[str, Agreement]
    """Question -> agreement with people, where there are labels."""

    @property
    def comparable(self) -> Mapping[str, str]:
        """What must be equal for two results to be compared: the judge and its prompts."""
        return {**self.identity, **{f"prompt {n}": v for n, v in self.prompts.items()}}

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


SIGN = {"first_left": 1, "first_right": -1, "correct": 1, "wrong": -1, "left_acts": 1,
        "right_acts": -1}  # fmt: skip
"""Whether a label says that the prior holds."""


def judge_card(
    identity: Mapping[str, str],
    prompts: Iterable[str],
    verdicts: Sequence[Mapping[str, Any]],
    labels: Mapping[tuple[str, str], str] | None = None,
) -> JudgeCard:
    """The card of a judge from the newest record of each of its questions.

    labels: (case, question) -> what people said.
    """
    asked = [record for record in verdicts if record["question"]]
    failures = Counter(r["label"] for r in asked if is_failure(r["label"]))
    answered = [r for r in asked if not is_failure(r["label"])]
    parsed = len(answered) / (len(answered) + failures["unparsed"]) if answered else math.nan
    # A free question (yes or no) names no subject.
    sided = [r for r in answered if INVALID in r["labels"] and r["label"] in r["labels"][:2]]
    digits = Counter(
        next((d for d, label in r["answers"].items() if label == r["label"]), "") for r in answered
    )
    by_probe: dict[str, dict[tuple[str, str], str]] = {}
    for r in answered:
        by_probe.setdefault(r["probe"], {})[r["case"], r["question"]] = r["label"]
    original = by_probe.get(ORIGINAL, {})
    return JudgeCard(
        identity=dict(identity),
        prompts={name: read_prompt(name).version for name in sorted(prompts)},
        asked=len(asked),
        failures=dict(sorted(failures.items())),
        parse_rate=parsed,
        first_named=_mean([r["label"] == r["labels"][0] for r in sided]),
        digits={d: n / len(answered) for d, n in sorted(digits.items())},
        side_bias=_side_bias(original, by_probe.get("mirror", {})),
        probes={p: _consistency(original, by_probe[p]) for p in PROBES if p in by_probe},
        agreement=_agreement(original, labels or {}),
    )


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else math.nan


def _consistency(
    original: Mapping[tuple[str, str], str], probed: Mapping[tuple[str, str], str]
) -> ProbeReport:
    both = original.keys() & probed.keys()
    return ProbeReport(len(both), _mean([original[key] == probed[key] for key in both]))


def _side_bias(
    original: Mapping[tuple[str, str], str], mirrored: Mapping[tuple[str, str], str]
) -> float:
    both = [key for key in original.keys() & mirrored.keys()
            if original[key] in SIGN and mirrored[key] in SIGN]  # fmt: skip
    return _mean([(SIGN[original[key]] - SIGN[mirrored[key]]) / 2 for key in both])


def _agreement(
    original: Mapping[tuple[str, str], str], labels: Mapping[tuple[str, str], str]
) -> dict[str, Agreement]:
    found = {}
    for question in sorted({key[1] for key in labels}):
        both = sorted(key for key in labels.keys() & original.keys() if key[1] == question)
        people, judge = [labels[key] for key in both], [original[key] for key in both]
        names = sorted(set(people) | set(judge))
        if not names:
            continue
        matrix = confusion(people, judge, names)
        kappa = cohen_kappa(matrix)
        found[question] = Agreement(names, matrix.tolist(), kappa.value, *kappa.interval, kappa.n)
    return found
