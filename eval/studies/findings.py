"""`counterprior audit findings`: what the readers' labels of real images say of their generators.

How far readers agree; what of the two things a prompt names is there; whether the first-mentioned
is drawn more often than the other (PSE, Figure 13); and whether it stands further left where the
prompt says only above or below. Each over all images and by generator.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

import numpy as np

from ...errors import DataError
from ...readings import AXES, SHOWN, UNSETTLED
from ...schema import RealGold
from ...storage import write_whole
from ..core import ALL, INVALID, Score
from ..engine.data import read_rows
from ..report.plots import as_file, interval_plot
from ..results.scoring import with_q_values
from ..stats.agreement import clustered_kappa
from ..stats.bootstrap import Array
from ..stats.comparison import sign_flip
from ..suites.columns import cluster_numbers, pair_numbers
from ..suites.real import CONDITIONS, MERGED, RealGoldSuite, condition_of
from ..suites.scoring import mean_score, paired_difference
from . import detected
from .detected import HORIZONTAL, VERTICAL, outcomes_of, read_detections, stated_label
from .real_check import RealImages

MEANINGS = {
    "kappa_presence": "Cohen's kappa of the first two readers: is a thing there, fused with the "
    "other, or absent? A and B together.",
    "kappa_merged": "The same of whether an image has fused things.",
    "kappa_left": "The same of which is further left, where both readers see both things.",
    "kappa_upper": "The same of which is higher.",
    "kappa_front": "The same of which is in front.",
    "both_there": "Share of images that show both things, each by itself (VISOR's object accuracy, "
    "with readers in place of a detector).",
    "one_there": "Share that show one of them.",
    "neither_there": "Share that show none.",
    "merged": "Share in which the two are fused into one.",
    "first_there": "Share of images that show the thing that the prompt mentions first.",
    "second_there": "Share that show the other one.",
    "first_more_often": "Difference of these two, in points of percent; p by flipping the signs of "
    "pairs of objects.",
    "holds_unconditional": "Share of all images with the relation that the prompt states (VISOR's "
    "uncond).",
    "holds_if_both": "The same of images that show both things.",
    "holds_if_clear": "The same of those of them that have a clear order on that axis. VISOR's "
    "cond takes any distance of centers for an order.",
    "first_left": "Of prompts that say only above or below: share of images in which the "
    "first-mentioned is further left, of those in which one clearly is. 50 without an effect; p by "
    "flipping the signs of pairs.",
    "first_higher": "Of prompts that say only left or right: the same of which is higher.",
    "first_in_front": "Of all prompts: the same of which is in front.",
    **detected.MEANINGS,
}
"""Score -> what it is."""
TABLES = {
    "agreement": tuple(name for name in MEANINGS if name.startswith("kappa_")),
    "presence": ("both_there", "one_there", "neither_there", "merged"),
    "existence": ("first_there", "second_there", "first_more_often"),
    "relation": ("holds_unconditional", "holds_if_both", "holds_if_clear"),
    "order": ("first_left", "first_higher", "first_in_front"),
    **detected.TABLES,
}
"""Title of a table -> its scores; those by a detector only with recorded detections."""


@dataclass(frozen=True)
class Findings:
    """Everything that the labels say."""

    scores: Sequence[Score]
    """Over all images and for each generator, groups `model=NAME`."""
    notes: Sequence[str]
    """Who read, what is missing, what was not looked at."""

    def of(self, name: str) -> list[Score]:
        """The scores of a name, all images last."""
        return sorted((s for s in self.scores if s.name == name), key=lambda s: s.group == ALL)

    def figures(self) -> Iterator[tuple[str, str]]:
        """Name and SVG of each figure."""
        for name, shown, ends, chance, label in (
            ("both-there", "both_there", (0, 100), math.nan, "images that show both things, %"),
            ("existence", "first_more_often", (-30, 30), 0.0, "first-mentioned - other there, %"),
            ("order", "first_left", (0, 100), 50.0, "first-mentioned further left, %"),
        ):
            rows = [(_model(score), score, place) for place, score in enumerate(self.of(shown))]
            yield name, as_file(interval_plot(rows, label, ends, chance), MEANINGS[shown])

    def write(self, folder: Path) -> None:
        """Writes the figures, `finding-NAME.svg`."""
        folder.mkdir(parents=True, exist_ok=True)
        for name, svg in self.figures():
            write_whole(folder / f"finding-{name}.svg", svg)


def _model(score: Score) -> str:
    return score.group.partition("=")[2] or "all"


def find(
    data: str,
    images: Path | None = None,
    revision: str | None = None,
    detections: Path | None = None,
) -> Findings:
    """Computes all findings from the labels of a release, or of a file of `audit merge`.

    images: folder of the images, to compare their digests; their pixels are not looked at.
    detections: file of `spatial detect`, to compare a detector with the readers. Raises DataError
    for labels of fewer than two readers, and as `RealImages` and `read_detections`.
    """
    rows = read_rows(data, RealGoldSuite.name, revision)
    labeled = [row for row in rows.rows if isinstance(row, RealGold)]
    if not labeled or any(len(row.readers) < 2 for row in labeled):
        raise DataError(f"{data}: findings need two readers of each image", code="too-few-items")
    readers = Counter(
        f"{name} ({kind})"
        for row in labeled
        for name, kind in zip(row.readers, row.reader_kinds, strict=True)
    )
    notes = ["read by " + ", ".join(f"{name}: {n:,} images" for name, n in sorted(readers.items()))]
    if images is None:
        notes.append("the images were not compared with their digests: name them with --images")
    else:
        notes += RealImages(images, labeled, rows.digest).notes or [
            f"all {len(labeled):,} images are there, with the digests of the labels"
        ]
    groups = {ALL: labeled} | {
        f"model={model}": [row for row in labeled if row.model == model]
        for model in sorted({row.model for row in labeled} - {""})
    }
    scores = [score for group, members in groups.items() for score in _scores(members, group)]
    if detections is not None:
        searched = read_detections(detections, labeled)
        scores += detected.scores_of(searched)
        kinds = sorted({image.sample.detectors.primary.type for image in searched})
        notes.append(f"detector: {', '.join(kinds)}; {detections.name}")
    return Findings(with_q_values(scores), notes)


def _scores(rows: Sequence[RealGold], group: str) -> Iterator[Score]:
    yield from _agreement(rows, group)
    for condition in CONDITIONS:
        name = condition if condition == MERGED else f"{condition}_there"
        yield _share(name, rows, lambda row, c=condition: _is(condition_of(row), c), group)  # type: ignore[misc]
    yield _share("first_there", rows, lambda row: _is(row.a_shown, "there"), group)
    yield _share("second_there", rows, lambda row: _is(row.b_shown, "there"), group)
    yield _more_often(rows, group)
    stated = [row for row in rows if row.relation]
    yield _share("holds_unconditional", stated, _holds, group)
    both = [row for row in stated if condition_of(row) == "both"]
    yield _share("holds_if_both", both, _holds, group)
    clear = [row for row in both if stated_label(row) != INVALID]
    yield _share("holds_if_clear", clear, _holds, group)
    for name, column, relations in (
        ("first_left", "further_left", VERTICAL),
        ("first_higher", "higher", HORIZONTAL),
        ("first_in_front", "in_front", (*VERTICAL, *HORIZONTAL)),
    ):
        asked = [row for row in rows if row.relation in relations]
        yield _order(name, asked, column, group)


def _agreement(rows: Sequence[RealGold], group: str) -> Iterator[Score]:
    """Kappa of the first two readers of each image."""

    def pairs(column: str, of: Sequence[RealGold] = rows) -> list[list[str]]:
        return [getattr(row, column)[:2] for row in of]

    things = pairs("a_read") + pairs("b_read")
    both = [
        row
        for row in rows
        if all(SHOWN[v] == "there" for v in chain(row.a_read[:2], row.b_read[:2]))
    ]
    compared: dict[str, tuple[Sequence[RealGold], list[list[str]]]] = {
        "presence": ([*rows, *rows], [[SHOWN[seen] for seen in pair] for pair in things]),
        "merged": (
            rows,
            [
                [str(MERGED in seen) for seen in zip(row.a_read[:2], row.b_read[:2], strict=True)]
                for row in rows
            ],
        ),
        **{axis: (both, pairs(f"{axis}_read", both)) for axis in AXES},
    }
    for name, (of, labels) in compared.items():
        first, second = ([pair[reader] for pair in labels] for reader in range(2))
        kappa = clustered_kappa(first, second, cluster_numbers(outcomes_of(of)))
        yield Score.of(kappa, name=f"kappa_{name}", unit="1", group=group)


def _is(label: str, wanted: str) -> float:
    """1 or 0; NaN for what is unsettled."""
    return math.nan if label == UNSETTLED else float(label == wanted)


def _holds(row: RealGold) -> float:
    """Whether the stated relation holds, 0 where not both things are there; NaN if unsettled."""
    return _is(stated_label(row), "holds")


def _share(
    name: str, rows: Sequence[RealGold], value: Callable[[RealGold], float], group: str
) -> Score:
    values = np.array([value(row) for row in rows], dtype=float)
    return mean_score(name, values, outcomes_of(rows), group=group, excluded=_left_out(values))


def _left_out(values: Array) -> Mapping[str, int]:
    unsettled = int(np.isnan(values).sum())
    return {UNSETTLED: unsettled} if unsettled else {}


def _more_often(rows: Sequence[RealGold], group: str) -> Score:
    outcomes = outcomes_of(rows)
    there = np.array([[_is(s, "there") for s in (row.a_shown, row.b_shown)] for row in rows])
    gaps = there[:, 0] - there[:, 1]
    score = paired_difference(
        "first_more_often", there, cluster_numbers(outcomes), group=group, excluded=_left_out(gaps)
    )
    return replace(score, p_value=sign_flip(gaps, pair_numbers(outcomes)).p_value)


def _order(name: str, rows: Sequence[RealGold], column: str, group: str) -> Score:
    """Share of images with a clear order in which the first-mentioned comes first."""
    first = {"A": 1.0, "B": 0.0}
    labels = [getattr(row, column) for row in rows]
    values = np.array([first.get(label, math.nan) for label in labels], dtype=float)
    outcomes = outcomes_of(rows)
    counts = Counter(label for label in labels if label not in first)
    names = {"none": "not_both_there", "same": "no_clear_order", UNSETTLED: UNSETTLED}
    clear = ~np.isnan(values)
    kept = [outcome for outcome, counted in zip(outcomes, clear, strict=True) if counted]
    score = mean_score(
        name,
        values[clear],
        kept,
        group=group,
        excluded={names[label]: n for label, n in sorted(counts.items())},
    )
    test = sign_flip(2 * values[clear] - 1, pair_numbers(kept))
    return replace(score, null=50.0, p_value=test.p_value)
