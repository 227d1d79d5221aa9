"""Verdicts on a clip's frames merged: one verdict of the majority, and changes over time."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise

from ..core import INVALID, Verdict

FrameVerdicts = Mapping[int, Mapping[tuple[str, str], Verdict]]
"""Number of a frame -> (question, probe) -> verdict."""


def clip_verdicts(frames: FrameVerdicts) -> dict[tuple[str, str], Verdict]:
    """Returns (question, probe) -> verdict of the majority of frames."""
    keys = dict.fromkeys(key for number in sorted(frames) for key in frames[number])
    return {key: majority(in_time(frames, key)) for key in keys}


def in_time(frames: FrameVerdicts, key: tuple[str, str]) -> list[Verdict]:
    """Returns the verdicts on one question by one probe, in order of time."""
    return [frames[number][key] for number in sorted(frames) if key in frames[number]]


def majority(verdicts: Sequence[Verdict]) -> Verdict:
    """Returns the most frequent label of a clip's frames; `invalid` for a tie.

    If more frames failed than have a label, it is the most frequent failure, the first in the
    alphabet for a tie. Numbers and probabilities are means over the frames that have them. `raw`
    holds the counts.
    """
    counts = Counter(verdict.label for verdict in verdicts)
    answered = [verdict for verdict in verdicts if not verdict.failed]
    failed = [verdict.label for verdict in verdicts if verdict.failed]
    if len(failed) > len(answered):
        label = min(set(failed), key=lambda candidate: (-counts[candidate], candidate))
    else:
        labels = [verdict.label for verdict in answered]
        first, *runners_up = sorted(set(labels), key=lambda candidate: -counts[candidate])
        tied = bool(runners_up) and counts[runners_up[0]] == counts[first]
        label = INVALID if tied else first
    if label in failed:
        return Verdict(label, _counts_text(counts))
    numbers = [verdict.number for verdict in answered if verdict.number is not None]
    shares = [verdict.probabilities for verdict in answered if verdict.probabilities is not None]
    return Verdict(
        label,
        _counts_text(counts),
        number=sum(numbers) / len(numbers) if numbers else None,
        probabilities=_mean_shares(shares) if shares else None,
    )


def share(verdicts: Sequence[Verdict], label: str, scored: Collection[str]) -> float | None:
    """Share of the frames with a scored label that have this one, in [0, 1]; None without any."""
    labels = _scored(verdicts, scored)
    return labels.count(label) / len(labels) if labels else None


def changes(verdicts: Sequence[Verdict], scored: Collection[str]) -> int | None:
    """Number of changes of the scored label between successive frames that have one; None if fewer
    than two frames have one.

    Frames in between without a scored label, e.g. as two figures cross, count as no change.
    """
    labels = _scored(verdicts, scored)
    if len(labels) < 2:
        return None
    return sum(a != b for a, b in pairwise(labels))


def _scored(verdicts: Sequence[Verdict], scored: Collection[str]) -> list[str]:
    return [verdict.label for verdict in verdicts if verdict.label in scored]


def _counts_text(counts: Counter[str]) -> str:
    return json.dumps(dict(sorted(counts.items())))


def _mean_shares(shares: Sequence[Mapping[str, float]]) -> dict[str, float]:
    labels = dict.fromkeys(label for frame_shares in shares for label in frame_shares)
    return {
        label: sum(frame_shares.get(label, 0.0) for frame_shares in shares) / len(shares)
        for label in labels
    }
