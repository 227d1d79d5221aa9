"""`dose:`: what organisms of several shares of captions predict for another share.

The conditions of a line are shares of captions, which a score's name lists in their order, in
percent: ``dose:gain:60/75/90``. See `stats.gain` for the one number that is fitted to them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ....errors import UsageError
from ...core import Outcome, Score
from ...stats.bootstrap import Array
from ...stats.gain import Doses
from ...suites.columns import cluster_numbers
from .replicates import columns_of
from .scope import LabeledRun, ScoreInputs

NAMES = ("gain:*", "predicted:*", "error:*")


def find(name: str, scope: ScoreInputs) -> Score | None:
    """Computes a score of a line whose conditions are shares of captions.

    ``gain:SHARES``: the gain of images over captions, on the log odds; ``predicted:SHARE:SHARES``:
    the order effect, in percent, that one more training with captions of that share would have;
    ``error:SHARE:SHARES``: the order effect of a condition, less what the other ones predict. None
    without as many trainings in each condition. Raises UsageError for a malformed name, for other
    shares than the line has conditions, and for shares that predict nothing.
    """
    kind, *numbers = name.split(":")
    captions = _shares(name, numbers[-1])
    asked = [_shares(name, text) for text in numbers[:-1]]
    if [len(of_name) for of_name in asked] != ([] if kind == "gain" else [1]):
        raise UsageError(
            f"dose:{name} is not written as `dose:gain:60/75/90` or `dose:{kind}:75:60/75/90`",
            code="bad-option",
        )
    runs: dict[int, list[LabeledRun]] = {}
    for condition, cell in zip(scope.conditions, scope.cells, strict=False):
        runs.setdefault(condition, []).append(cell)
    if len(runs) != len(captions):
        raise UsageError(
            f"dose:{name} lists {len(captions)} shares of captions for a line of {len(runs)} "
            "conditions",
            "list as many generators in the line, one for each share, in the same order",
            code="wrong-count",
        )
    if len({len(of_share) for of_share in runs.values()}) > 1:
        return None
    doses, excluded = _doses(captions, [*runs.values()], scope)
    estimate = (
        doses.gain()
        if kind == "gain"
        else doses.predicted(asked[0][0])
        if kind == "predicted"
        else doses.error(asked[0][0])
    )
    facts = {"name": f"dose:{name}", "excluded": dict(sorted(excluded.items()))}
    if kind == "gain":
        return Score.of(estimate, unit="1", **facts)
    return Score.of(estimate.scaled(100), unit="%", **facts)


def _doses(
    captions: Sequence[float], runs: Sequence[Sequence[LabeledRun]], scope: ScoreInputs
) -> tuple[Doses, dict[str, int]]:
    """The images of all runs, by condition and training; and those that don't count, by label."""
    blocks: list[Array] = []
    trainings: list[int] = []
    outcomes: list[Outcome] = []
    excluded: dict[str, int] = {}
    for condition, of_share in enumerate(runs):
        for training, run in enumerate(of_share):
            columns = columns_of("order_effect", run, scope)
            orders = columns.values.shape[1]
            block = np.full((len(columns.values), orders * len(runs)), np.nan)
            block[:, condition * orders : (condition + 1) * orders] = columns.values
            blocks.append(block)
            trainings += [training] * len(block)
            outcomes += columns.outcomes
            for label, count in columns.excluded.items():
                excluded[label] = excluded.get(label, 0) + count
    members = cluster_numbers(outcomes)
    return Doses(captions, np.concatenate(blocks), members, np.array(trainings)), excluded


def _shares(name: str, text: str) -> list[float]:
    try:
        return [float(share) / 100 for share in text.split("/")]
    except ValueError:
        raise UsageError(
            f"dose:{name}: {text!r} is no list of percentages such as 60/75/90", code="bad-option"
        ) from None
