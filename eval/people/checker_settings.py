"""`counterprior audit calibrate`: the checker's settings that fit human labels best.

The published calibration chose the settings and reported them on the same 200 labels, and its
optimum lies on the grid's edge. Here the same choice is also made on some prompts and reported on
others, and an edge is named.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from ...errors import DataError, UsageError
from ...human_labels import read_labels
from ...parsing import RowError
from ...storage import write_json
from ..geometry.boxes import Size
from ..geometry.checker.decide import check
from ..geometry.checker.recorded import CheckerSample, read_samples
from ..geometry.checker.rules import CheckerRules
from ..judges.checker.analyze import human_verdicts
from ..stats.risk_control import all_at_once, exceeds_p_value, in_sequence, least_items

MARGINS = (0.03, 0.05, 0.07, 0.10)
SCORES = (0.2, 0.3, 0.4)
TAUS = (0.3, 0.5, 0.7)
"""The published grid."""
FOLDS = 5
REPEATS = 20
_WEIGHTS = (10.0, 2.0, 0.5)
"""Weights of false passes, risk and lost coverage."""


class GridSetting(NamedTuple):
    """A point of the grid."""

    margin: float
    """Margin of the geometry."""
    detection_score: float
    """Least score of a detection."""
    tau: float
    """Least confidence of a verdict that is acted on."""


GRID = tuple(GridSetting(*point) for point in product(MARGINS, SCORES, TAUS))


class Decision(NamedTuple):
    """A verdict on one image under one setting, with the human label."""

    verdict: str
    """The checker's."""
    kept: bool
    """Whether its confidence reaches tau."""
    human: str
    """PASS, FAIL or UNDECIDABLE."""


class Objective(NamedTuple):
    """Objective to minimize: J = 10 false passes + 2 risk + 0.5 (1 - coverage)."""

    false_pass: float
    """Human FAIL among accepted PASS, human UNDECIDABLE in the denominator; 1 without any."""
    risk: float
    """Wrong verdicts among accepted ones with a human decision; 0 if none is accepted."""
    coverage: float
    """Accepted verdicts among all labeled images."""
    j: float
    """The sum."""


def objective(decisions: Sequence[Decision]) -> Objective:
    """J as published. Raises DataError without any decision."""
    if not decisions:
        raise DataError("no labeled image to calibrate on", code="nothing-to-do")
    accepted = [d for d in decisions if d.kept and d.verdict != "UNDECIDABLE"]
    passes = [d for d in accepted if d.verdict == "PASS"]
    false_pass = sum(d.human == "FAIL" for d in passes) / len(passes) if passes else 1.0
    scored = [d for d in accepted if d.human != "UNDECIDABLE"]
    wrong = sum(d.verdict != d.human for d in scored)
    # As published: the risk is 0 if nothing is accepted, 1 if no accepted one has a human label.
    risk = wrong / len(scored) if scored else float(bool(accepted))
    coverage = len(accepted) / len(decisions)
    j = _WEIGHTS[0] * false_pass + _WEIGHTS[1] * risk + _WEIGHTS[2] * (1 - coverage)
    return Objective(false_pass, risk, coverage, j)


Table = Mapping[GridSetting, Mapping[str, Decision]]
"""Setting -> sample -> decision."""


def decide_all(
    samples: Sequence[tuple[CheckerSample, Size]],
    human: Mapping[str, str],
    rules: CheckerRules,
    grid: Sequence[GridSetting] = GRID,
) -> tuple[Table, int]:
    """Every labeled sample under every setting, and how many had to assume their stability."""
    table: dict[GridSetting, dict[str, Decision]] = {setting: {} for setting in grid}
    assumed: set[str] = set()
    for margin, score in sorted({(s.margin, s.detection_score) for s in grid}):
        moved = rules.moved(margin, score)
        for sample, size in samples:
            if sample.sample_id not in human:
                continue
            checked = check(sample, size, moved)
            if checked.assumed:
                assumed.add(sample.sample_id)
            for setting in grid:
                if (setting.margin, setting.detection_score) == (margin, score):
                    table[setting][sample.sample_id] = Decision(
                        checked.verdict, checked.confidence >= setting.tau, human[sample.sample_id]
                    )
    return table, len(assumed)


def best_setting(table: Table, samples: Sequence[str]) -> GridSetting:
    """The first of the grid with the least J on the named samples."""
    return min(table, key=lambda setting: objective([table[setting][n] for n in samples]).j)


def fold_rounds(
    groups: Iterable[str], folds: int, repeats: int, seed: int, of: str
) -> Iterator[dict[str, int]]:
    """Group -> its fold, drawn anew for each repeat.

    of: description of the groups, with {} for their number. Raises UsageError for fewer groups
    than folds, or less than two folds.
    """
    ordered = sorted(set(groups))
    if not 2 <= folds <= len(ordered):
        raise UsageError(f"{folds} folds for {of.format(len(ordered))}", code="out-of-range")
    rng = random.Random(seed)
    for _ in range(repeats):
        rng.shuffle(ordered)
        yield {name: number % folds for number, name in enumerate(ordered)}


def calibrate(
    samples: Sequence[tuple[CheckerSample, Size]],
    human: Mapping[str, str],
    rules: CheckerRules,
    *,
    grid: Sequence[GridSetting] = GRID,
    folds: int = FOLDS,
    repeats: int = REPEATS,
    seed: int = 0,
) -> dict[str, Any]:
    """The best setting, its J on the labels it was chosen on, and J on labels it wasn't.

    Folds hold whole prompts, because images of one prompt are alike. Each fold's images are decided
    with the setting chosen on the other folds, and J is computed over all of them together. Raises
    DataError where no sample has a label, UsageError for fewer labeled prompts than folds.
    """
    table, assumed = decide_all(samples, human, rules, grid)
    labeled = list(table[grid[0]])
    chosen = best_setting(table, labeled)
    in_sample = objective([table[chosen][name] for name in labeled])
    prompts = {item.sample_id: item.prompt_id for item, _ in samples if item.sample_id in human}
    rounds, picks = [], dict.fromkeys(table, 0)
    for fold in fold_rounds(prompts.values(), folds, repeats, seed, "{} labeled prompts"):
        held_out: list[Decision] = []
        for number in range(folds):
            setting = best_setting(table, [n for n in labeled if fold[prompts[n]] != number])
            picks[setting] += 1
            held_out += [table[setting][n] for n in labeled if fold[prompts[n]] == number]
        rounds.append(objective(held_out))
    mean = Objective(*(sum(values) / repeats for values in zip(*rounds, strict=True)))
    spread = [item.j for item in rounds]
    return {
        "labeled": len(labeled),
        "chosen": chosen._asdict(),
        "in_sample": in_sample._asdict(),
        "cross_validated": mean._asdict()
        | {"j_least": min(spread), "j_most": max(spread), "folds": folds, "repeats": repeats},
        "optimism": mean.j - in_sample.j,
        "chosen_in_folds": [
            {"setting": setting._asdict(), "share": count / (folds * repeats)}
            for setting, count in sorted(picks.items(), key=lambda item: -item[1])
            if count
        ],
        "warnings": _warnings(chosen, grid, samples, human, assumed),
        "grid": [
            setting._asdict() | objective([decisions[name] for name in labeled])._asdict()
            for setting, decisions in table.items()
        ],
    }


class Promise(NamedTuple):
    """A risk that the accepted verdicts shall not exceed."""

    risk: float
    """Share of wrong verdicts among accepted ones that people decide, in (0, 1)."""
    delta: float
    """Probability that the promise is broken, in (0, 1)."""

    def check(self) -> None:
        """Raises UsageError for a value outside of (0, 1)."""
        for name, value in self._asdict().items():
            if not 0 < value < 1:
                raise UsageError(
                    f"--{name} {value}: is not between 0 and 1",
                    "give a share, e.g. 0.1",
                    code="out-of-range",
                )


FINE_TAUS = tuple(round(0.05 * step, 2) for step in range(20))
"""Confidences that a promised risk is sought over."""
SPARE = 1.5
"""Expected accepted images, in units of those that are needed if none is wrong, at which the
sequence of settings begins."""
ENOUGH_UNLABELED = 30
"""Unlabeled prompts from which the settings can be put in order."""


def promised(
    samples: Sequence[tuple[CheckerSample, Size]],
    human: Mapping[str, str],
    rules: CheckerRules,
    promise: Promise,
    seed: int = 0,
) -> dict[str, Any]:
    """The settings whose risk is at most `promise.risk`, with probability 1 - `promise.delta`.

    Learn then test (Angelopoulos et al. 2021), with one labeled image of each prompt, drawn before
    anything is decided, as images of one prompt err together. Settings are tested one after the
    other, the strictest first, until one fails. Their order is how many images of unlabeled prompts
    they accept, which no label decides; without enough of these, all are tested at once (Holm).
    `chosen` accepts the most images of all that pass; None if none does. `label_prompts` is the
    number of labeled prompts from which a first setting is tested.
    """
    promise.check()
    rng = random.Random(seed)
    by_prompt: dict[str, list[str]] = {}
    for sample, _ in samples:
        by_prompt.setdefault(sample.prompt_id, []).append(sample.sample_id)
    labeled = {p: sorted(n for n in names if n in human) for p, names in by_prompt.items()}
    drawn = [rng.choice(names) for _, names in sorted(labeled.items()) if names]
    if not drawn:
        raise DataError("no labeled image to calibrate on", code="nothing-to-do")
    unlabeled = {p: names for p, names in by_prompt.items() if not labeled[p]}
    spare = [n for names in unlabeled.values() for n in names]
    ordered = len(unlabeled) >= ENOUGH_UNLABELED
    grid = (
        [GridSetting(*point) for point in product(MARGINS, SCORES, FINE_TAUS)] if ordered else GRID
    )
    looked_at = {*drawn, *(spare if ordered else ())}
    table, _ = decide_all(
        [pair for pair in samples if pair[0].sample_id in looked_at],
        {name: human.get(name, "UNDECIDABLE") for name in looked_at},
        rules,
        grid,
    )
    least = least_items(promise.risk, promise.delta)
    sequence, rates = list(grid), dict[GridSetting, float]()
    if ordered:
        rates = {s: _accepted(table[s], spare) / len(spare) for s in grid}
        begin = SPARE * least / len(drawn)
        sequence = sorted(
            (s for s in grid if rates[s] >= begin),
            key=lambda s: (rates[s], -s.margin, -s.detection_score, -s.tau),
        )
    counts = {s: _wrong([table[s][name] for name in drawn]) for s in sequence}
    p_values = [exceeds_p_value(*counts[s], promise.risk) for s in sequence]
    safe = (in_sequence if ordered else all_at_once)(p_values, promise.delta)
    tested = [
        {
            **setting._asdict(),
            "wrong": counts[setting][0],
            "decided": counts[setting][1],
            "coverage": _accepted(table[setting], drawn) / len(drawn),
            "p_value": p_values[place],
        }
        for place, setting in enumerate(sequence)
    ]
    passed = [tested[place] for place in safe]
    return {
        "risk": promise.risk,
        "delta": promise.delta,
        "prompts": len(drawn),
        "order": f"{len(spare):,} images of unlabeled prompts" if ordered else "all at once (Holm)",
        "settings": len(sequence),
        "passed": len(passed),
        "chosen": max(passed, key=lambda point: point["coverage"]) if passed else None,
        "first": tested[0] if tested else None,
        "label_prompts": _enough_prompts(rates, least) if ordered else None,
        "holds": "for prompts that are drawn as the labeled ones were",
    }


def _enough_prompts(rates: Mapping[GridSetting, float], least: int) -> int | None:
    """Labeled prompts from which the setting that accepts the most can be tested."""
    most = max(rates.values())
    return math.ceil(SPARE * least / most) if most else None


def _accepted(decisions: Mapping[str, Decision], names: Sequence[str]) -> int:
    return sum(decisions[n].kept and decisions[n].verdict != "UNDECIDABLE" for n in names)


def _wrong(decisions: Sequence[Decision]) -> tuple[int, int]:
    """Wrong verdicts among accepted ones that people decide, and the number of these."""
    scored = [
        d for d in decisions if d.kept and d.verdict != "UNDECIDABLE" and d.human != "UNDECIDABLE"
    ]
    return sum(d.verdict != d.human for d in scored), len(scored)


def _warnings(
    chosen: GridSetting,
    grid: Sequence[GridSetting],
    samples: Sequence[tuple[CheckerSample, Size]],
    human: Mapping[str, str],
    assumed: int,
) -> list[str]:
    """Limits of the calibration: edges of the grid, settings without an effect."""
    warnings = []
    for name, value, tried in zip(
        GridSetting._fields, chosen, zip(*grid, strict=True), strict=True
    ):
        if min(tried) < max(tried) and value in (min(tried), max(tried)):
            end = "smallest" if value == min(tried) else "largest"
            warnings.append(
                f"{name} = {value} is the {end} of the grid: the optimum may lie beyond it"
            )
    scores = [
        detection.score
        for sample, _ in samples
        if sample.sample_id in human
        for detection in sample.detectors.primary.detections
    ]
    thresholds = sorted({setting.detection_score for setting in grid})
    if scores and len(thresholds) > 1 and min(scores) >= thresholds[-1]:
        warnings.append(
            f"no recorded detection scores below {min(scores):.2f}: detection_score decides "
            f"nothing in {thresholds}; record detections with a lower threshold"
        )
    if assumed:
        warnings.append(
            f"{assumed} samples had no recorded stability under some setting, taken as 1: measure "
            f"it with the smallest margin"
        )
    return warnings


def calibrate_files(
    detections: Sequence[Path],
    labels: Path,
    rules: Path,
    size: Size,
    folds: int,
    out: Path | None,
    promise: Promise | None = None,
) -> dict[str, Any]:
    """The best settings for the labeled samples of all runs together, and those that keep a
    promise.

    Labels of samples that are in none of the files, as of other runs, are left out and listed.
    Raises RowError where two of the files hold the same sample, DataError where no label is left.
    """
    samples = [pair for path in detections for pair in read_samples(path, size)]
    sample_ids = {sample.sample_id for sample, _ in samples}
    if len(sample_ids) < len(samples):
        raise RowError(
            "two of the files have the same sample_id: name each run once", code="duplicate-id"
        )
    all_labels = read_labels(labels)
    human = human_verdicts([label for label in all_labels if label.case in sample_ids], sample_ids)
    loaded = CheckerRules.load(rules)
    if promise is not None:
        promise.check()
    result = calibrate(samples, human, loaded, folds=folds)
    if promise is not None:
        result["promised"] = promised(samples, human, loaded, promise)
    result["left_out"] = sorted({label.case for label in all_labels} - sample_ids)
    if out:
        write_json(out, result)
    return result
