"""What the verdicts on a clip's frames say together: one verdict, and how they change."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise

from ..core import INVALID, Verdict

FrameVerdicts = Mapping[int, Mapping[tuple[str, str], Verdict]]
"""Number of a frame -> (question, probe) -> verdict."""


def clip_verdicts(frames: FrameVerdicts) -> dict[tuple[str, str], Verdict]:
    """(question, probe) -> the verdict of most frames."""
    keys = dict.fromkeys(key for number in sorted(frames) for key in frames[number])
    return {key: majority(in_time(frames, key)) for key in keys}


def in_time(frames: FrameVerdicts, key: tuple[str, str]) -> list[Verdict]:
    """The verdicts on one question by one probe, in the order of time."""
    return [frames[number][key] for number in sorted(frames) if key in frames[number]]


def majority(verdicts: Sequence[Verdict]) -> Verdict:
    """The label of most frames that have one; `invalid` where two labels are as frequent.

    Where more frames failed than have a label it is the most frequent failure, of two the first in
    the alphabet. Numbers and probabilities are means over the frames that have them. `raw` tells
    the counts.
    """
    counts = Counter(verdict.label for verdict in verdicts)
    answered = [verdict for verdict in verdicts if not verdict.failed]
    failed = [verdict.label for verdict in verdicts if verdict.failed]
    if len(failed) > len(answered):
        label = min(set(failed), key=lambda one: (-counts[one], one))
    else:
        labels = [verdict.label for verdict in answered]
        first, *others = sorted(set(labels), key=lambda one: -counts[one])
        tied = bool(others) and counts[others[0]] == counts[first]
        label = INVALID if tied else first
    if label in failed:
        return Verdict(label, _told(counts))
    numbers = [verdict.number for verdict in answered if verdict.number is not None]
    shares = [verdict.probabilities for verdict in answered if verdict.probabilities is not None]
    return Verdict(
        label,
        _told(counts),
        number=sum(numbers) / len(numbers) if numbers else None,
        probabilities=_mean_shares(shares) if shares else None,
    )


def share(verdicts: Sequence[Verdict], label: str, scored: Collection[str]) -> float | None:
    """Share of the frames with a scored label that have this one, in [0, 1]; None without any."""
    labels = _scored(verdicts, scored)
    return labels.count(label) / len(labels) if labels else None


def changes(verdicts: Sequence[Verdict], scored: Collection[str]) -> int | None:
    """How often the scored label changes from one frame to the next that has one; None where fewer
    than two frames have one.

    Frames between, in which two walk past each other, say, are no changes of their own.
    """
    labels = _scored(verdicts, scored)
    if len(labels) < 2:
        return None
    return sum(a != b for a, b in pairwise(labels))


def _scored(verdicts: Sequence[Verdict], scored: Collection[str]) -> list[str]:
    return [verdict.label for verdict in verdicts if verdict.label in scored]


def _told(counts: Counter[str]) -> str:
    return json.dumps(dict(sorted(counts.items())))


def _mean_shares(shares: Sequence[Mapping[str, float]]) -> dict[str, float]:
    labels = dict.fromkeys(label for one in shares for label in one)
    return {label: sum(one.get(label, 0.0) for one in shares) / len(shares) for label in labels}
