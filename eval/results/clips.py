"""Scores of clips besides the suite's own: over time, from the verdicts on their frames.

The suite's own scores take the label of most frames. Here each is one share of clips, or of frames,
for the label that counts most, so that first, last, most and all frames can be compared.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ..clips.together import changes, in_time, majority, share
from ..core import ORIGINAL, Outcome, Score, Verdict, count_excluded
from ..suites.base import Suite
from ..suites.scoring import in_groups, mean_score
from ..suites.worths import Worth

SHORT = "short"
"""Reason why a clip has no changes: fewer than two of its frames have a label."""
STILL = "image"
"""Reason why an image has none: it is not a clip."""

MEANINGS = {
    "first_frame": "Share of clips whose first judged frame is judged {label}.",
    "last_frame": "Share of clips whose last judged frame is judged {label}.",
    "most_frames": "Share of clips of which most frames are judged {label}; a tie is excluded.",
    "frame_share": "Share of a clip's frames with an answer that are judged {label}, as a mean "
    "over clips.",
    "changed": "Share of clips in which the answer changes at least once from one judged frame to "
    "the next that has one.",
    "changes": "How often the answer changes within a clip, as a mean over clips.",
}
"""End of a score's name, after the question -> one sentence for the reader."""


def clip_scores(suite: Suite[Any], outcomes: Sequence[Outcome]) -> list[Score]:
    """The scores over time of every question about clips; empty without clips.

    All are of the original probe.
    """
    if not any(outcome.frames for outcome in outcomes):
        return []
    return in_groups(outcomes, lambda subset, group: _of_group(suite.worths, subset, group))


def score_meanings(suite: Suite[Any] | type[Suite[Any]]) -> dict[str, str]:
    """Score -> one sentence for the reader, those over time included."""
    over_time = {
        f"{question}_{end}": text.format(label=_label(worth))
        for question, worth in suite.worths.items()
        for end, text in MEANINGS.items()
    }
    return {**suite.meanings, **over_time}


def _label(worth: Worth) -> str:
    """The label that counts most."""
    return max(worth.values, key=lambda label: worth.values[label])


def _of_group(
    worths: Mapping[str, Worth], outcomes: Sequence[Outcome], group: str
) -> Iterator[Score]:
    for question, worth in worths.items():
        key = (question, ORIGINAL)
        eligible = [o for o in outcomes if not o.verdicts or key in o.verdicts]
        if not any(key in outcome.verdicts for outcome in eligible):
            continue
        label = _label(worth)
        verdicts_by_clip = [in_time(outcome.frames, key) for outcome in eligible]
        chosen: dict[str, Callable[[Sequence[Verdict]], Verdict]] = {
            "first_frame": lambda verdicts: verdicts[0],
            "last_frame": lambda verdicts: verdicts[-1],
            "most_frames": majority,
        }
        for end, choose in chosen.items():
            clip_labels = [
                (choose(v) if v else _none(o)).label
                for v, o in zip(verdicts_by_clip, eligible, strict=True)
            ]
            matches = [
                float(clip_label == label) if clip_label in worth.values else None
                for clip_label in clip_labels
            ]
            yield _mean(f"{question}_{end}", matches, eligible, group, clip_labels)
        shares = [share(verdicts, label, worth.values) for verdicts in verdicts_by_clip]
        why = [_none(o, v).label for v, o in zip(verdicts_by_clip, eligible, strict=True)]
        yield _mean(f"{question}_frame_share", shares, eligible, group, why)
        change_counts = [changes(verdicts, worth.values) for verdicts in verdicts_by_clip]
        why = [
            SHORT if verdicts else _none(o).label
            for verdicts, o in zip(verdicts_by_clip, eligible, strict=True)
        ]
        several = [None if n is None else float(n > 0) for n in change_counts]
        yield _mean(f"{question}_changed", several, eligible, group, why)
        most = max((len(verdicts) - 1 for verdicts in verdicts_by_clip), default=1)
        yield _mean(
            f"{question}_changes", change_counts, eligible, group, why, most=max(1, most), unit="1"
        )


def _none(outcome: Outcome, verdicts: Sequence[Verdict] = ()) -> Verdict:
    """Reason why a clip has no value: its frames' verdict, its status, or that it is an image."""
    if verdicts:
        return majority(verdicts)
    return Verdict(STILL if outcome.verdicts else outcome.verdict("").label)


def _mean(
    name: str,
    values: Sequence[float | None],
    outcomes: Sequence[Outcome],
    group: str,
    why: Sequence[str],
    *,
    most: float = 1,
    unit: str = "%",
) -> Score:
    """The mean over clips with a value in [0, most]; the others are left out as `why` says."""
    left_out = [reason for value, reason in zip(values, why, strict=True) if value is None]
    return mean_score(
        name,
        np.array([math.nan if value is None else value for value in values], dtype=float),
        outcomes,
        ends=(0, most),
        unit=unit,
        group=group,
        excluded=count_excluded(left_out, ()),
    )
