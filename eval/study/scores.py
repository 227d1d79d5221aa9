"""Scores of a judge against people's labels, pooled over suites, beside those of the suites."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...errors import UsageError
from ..core import FAILURES, Score
from ..results.agree import agreement
from ..results.judge_card import Labels
from ..results.scoring import JudgedRun
from ..stats.agreement import cohen_kappa
from ..stats.intervals import NOTHING, Interval
from ..suites import open_suite
from ..suites.base import Worth
from .layout import PEOPLE

CODES = ("0", "1", "2")
"""Of labels, as OTS-Bench's analysis writes them: invalid; left or as expected; the other."""


@dataclass(frozen=True)
class JudgedCell:
    """One run under one judge, with what people said."""

    judged: JudgedRun
    told: Labels


def find_score(name: str, group: str, entries: Sequence[JudgedCell]) -> Score | None:
    """A score of one entry, or of several against people; None where there is none.

    ``people:kappa`` and ``people:agreement`` are over the three codes of a label;
    ``people:count:1:2`` counts what people call 1 and the judge 2. ``people:spearman`` and the
    others that `results.agree` knows compare the judge's number with the worth of people's label.
    Raises UsageError for another one.
    """
    if name.startswith(PEOPLE):
        return _against_people(name.removeprefix(PEOPLE), entries)
    (entry,) = entries
    scores = entry.judged.result.scores
    return next((s for s in scores if s.name == name and s.group == group), None)


def _against_people(name: str, entries: Sequence[JudgedCell]) -> Score | None:
    if name in ("kappa", "agreement") or name.startswith("count:"):
        matrix, failed = _matrix(entries)
        n = int(matrix.sum())
        if not n:
            return None
        kappa = cohen_kappa(matrix)
        value, interval, unit = kappa.value, kappa.interval, "1"
        if name == "agreement":
            value, interval = kappa.agreement, NOTHING
        elif name.startswith("count:"):
            _, people, judge = name.split(":")
            value, interval = float(matrix[CODES.index(people), CODES.index(judge)]), NOTHING
            unit = "images"
        return Score(name, value, interval, n=n, unit=unit, excluded=failed)
    human, numbers, failed = _numbers(entries)
    if not human:
        return None
    found = agreement(name, numbers, human)
    if name not in found["estimates"]:
        known = ["kappa", "agreement", "count:1:2", *found["estimates"]]
        raise UsageError(f"no score {PEOPLE + name!r}: choose from {', '.join(known)}")
    estimate = found["estimates"][name]
    value = math.nan if estimate["value"] is None else estimate["value"]
    ends = NOTHING if estimate["interval"] is None else Interval(*estimate["interval"])
    left_out = {**failed, "undecided": found["undecided"]}
    return Score(name, value, ends, n=found["n"], unit="1", excluded=_some(left_out))


def _matrix(entries: Sequence[JudgedCell]) -> tuple[NDArray[np.int64], dict[str, int]]:
    """Counts of people's codes (rows) and the judge's, and labels without a code by reason."""
    matrix = np.zeros((3, 3), dtype=np.int64)
    failed: dict[str, int] = {}
    for entry in entries:
        worths = open_suite(entry.judged.result.run.suite).worths
        for question, found in entry.judged.result.card.agreement.items():
            for people, row in zip(found.labels, found.matrix, strict=True):
                for judge, count in zip(found.labels, row, strict=True):
                    lost = next((one for one in (people, judge) if one in FAILURES), "")
                    if lost:
                        failed[lost] = failed.get(lost, 0) + count
                        continue
                    first, second = (_code(worths[question], one) for one in (people, judge))
                    matrix[first, second] += count
    return matrix, _some(failed)


def _code(worth: Worth, label: str) -> int:
    if label not in worth.values:
        return 0
    return 1 if worth.values[label] > 0 else 2


def _numbers(
    entries: Sequence[JudgedCell],
) -> tuple[dict[str, float | None], dict[str, float], dict[str, int]]:
    """People's worth of each labeled image, the judge's number, and images without one by reason.

    The number is what the judge measures; where it measures none, the worth of its label.
    """
    human: dict[str, float | None] = {}
    numbers: dict[str, float] = {}
    failed: dict[str, int] = {}
    for entry in entries:
        header = entry.judged.result.run
        worths = open_suite(header.suite).worths
        outcomes = {outcome.case.id: outcome for outcome in entry.judged.outcomes}
        for (case, question), label in entry.told.items():
            worth, verdict = worths[question], outcomes[case].verdict(question)
            key = f"{entry.judged.result.folder}/{case}/{question}"
            human[key] = _share(worth, worth.values.get(label))
            number = verdict.number
            if number is None:
                number = _share(worth, worth.values.get(verdict.label))
            if number is None:
                failed[verdict.label] = failed.get(verdict.label, 0) + 1
            else:
                numbers[key] = number
    return human, numbers, failed


def _share(worth: Worth, value: float | None) -> float | None:
    """A worth as a share of its range, in [0, 1]."""
    low, high = worth.ends
    return None if value is None else (value - low) / (high - low)


def _some(counts: Mapping[str, int]) -> dict[str, int]:
    return {name: count for name, count in sorted(counts.items()) if count}
