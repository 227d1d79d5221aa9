"""`counterprior audit calibrate`: the checker's settings that suit people's labels best.

The published calibration chose the settings and reported them on the same 200 labels, and its
optimum lies on the grid's edge. Here the same choice is also made on some prompts and reported on
others, and an edge is named.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, astuple, dataclass
from itertools import product
from typing import Any

from ...errors import DataError, UsageError
from ..rules.boxes import Size
from ..rules.checker.decide import check
from ..rules.checker.recorded import CheckerSample
from ..rules.checker.rules import CheckerRules

MARGINS = (0.03, 0.05, 0.07, 0.10)
SCORES = (0.2, 0.3, 0.4)
TAUS = (0.3, 0.5, 0.7)
"""The published grid."""
FOLDS = 5
REPEATS = 20
_WEIGHTS = (10.0, 2.0, 0.5)
"""Of false passes, risk and lost coverage."""


@dataclass(frozen=True)
class GridSetting:
    """A point of the grid."""

    margin: float
    """Of the geometry."""
    detection_score: float
    """Least score of a detection."""
    tau: float
    """Least confidence of a verdict that is acted on."""


GRID = tuple(GridSetting(*point) for point in product(MARGINS, SCORES, TAUS))


@dataclass(frozen=True)
class Decision:
    """An image under one setting, and what people say."""

    verdict: str
    """The checker's."""
    kept: bool
    """Whether its confidence reaches tau."""
    human: str
    """PASS, FAIL or UNDECIDABLE."""


@dataclass(frozen=True)
class Objective:
    """What is minimized: J = 10 false passes + 2 risk + 0.5 (1 - coverage)."""

    false_pass: float
    """Human FAIL among kept PASS, human UNDECIDABLE in the denominator; 1 where none is kept."""
    risk: float
    """Wrong ones among kept verdicts that people decided; 0 where nothing is kept."""
    coverage: float
    """Kept verdicts among all labeled images."""
    j: float
    """The sum."""


def objective(decisions: Sequence[Decision]) -> Objective:
    """J as published. Raises DataError without any decision."""
    if not decisions:
        raise DataError("no labeled image to calibrate on")
    kept = [d for d in decisions if d.kept and d.verdict != "UNDECIDABLE"]
    passes = [d for d in kept if d.verdict == "PASS"]
    false_pass = sum(d.human == "FAIL" for d in passes) / len(passes) if passes else 1.0
    scored = [d for d in kept if d.human != "UNDECIDABLE"]
    wrong = sum(d.verdict != d.human for d in scored)
    # As published: nothing kept is no risk, but kept verdicts that people decided none of are all.
    risk = wrong / len(scored) if scored else float(bool(kept))
    coverage = len(kept) / len(decisions)
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
    labeled = [(one, size) for one, size in samples if one.sample_id in human]
    for margin, score in sorted({(s.margin, s.detection_score) for s in grid}):
        moved = rules.moved(margin, score)
        for sample, size in labeled:
            found = check(sample, size, moved)
            if found.assumed:
                assumed.add(sample.sample_id)
            for setting in grid:
                if (setting.margin, setting.detection_score) == (margin, score):
                    table[setting][sample.sample_id] = Decision(
                        found.verdict, found.confidence >= setting.tau, human[sample.sample_id]
                    )
    return table, len(assumed)


def best_setting(table: Table, names: Sequence[str]) -> GridSetting:
    """The first of the grid with the least J on the named samples."""
    return min(table, key=lambda setting: objective([table[setting][n] for n in names]).j)


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
    names = list(next(iter(table.values())))
    prompts = {one.sample_id: one.prompt_id for one, _ in samples}
    chosen = best_setting(table, names)
    in_sample = objective([table[chosen][name] for name in names])
    rounds, picks = _cross_validate(table, prompts, folds, repeats, seed)
    mean = _mean(rounds)
    spread = [one.j for one in rounds]
    return {
        "labeled": len(names),
        "chosen": asdict(chosen),
        "in_sample": asdict(in_sample),
        "cross_validated": asdict(mean)
        | {"j_least": min(spread), "j_most": max(spread), "folds": folds, "repeats": repeats},
        "optimism": mean.j - in_sample.j,
        "chosen_in_folds": [
            {"setting": asdict(setting), "share": count / sum(picks.values())}
            for setting, count in sorted(picks.items(), key=lambda item: -item[1])
        ],
        "warnings": warnings(chosen, table, samples, human, assumed),
        "grid": [
            asdict(setting) | asdict(objective([decisions[name] for name in names]))
            for setting, decisions in table.items()
        ],
    }


def _mean(rounds: Sequence[Objective]) -> Objective:
    columns = zip(*(astuple(one) for one in rounds), strict=True)
    return Objective(*(sum(values) / len(rounds) for values in columns))


def _cross_validate(
    table: Table, prompts: Mapping[str, str], folds: int, repeats: int, seed: int
) -> tuple[list[Objective], dict[GridSetting, int]]:
    """J on held-out prompts, once per repeat, and how often each setting was chosen."""
    names = list(next(iter(table.values())))
    groups = sorted({prompts[name] for name in names})
    if not 2 <= folds <= len(groups):
        raise UsageError(f"{folds} folds for {len(groups)} labeled prompts")
    rng = random.Random(seed)
    rounds, picks = [], dict.fromkeys(table, 0)
    for _ in range(repeats):
        rng.shuffle(groups)
        fold = {group: number % folds for number, group in enumerate(groups)}
        held_out: list[Decision] = []
        for number in range(folds):
            rest = [name for name in names if fold[prompts[name]] != number]
            setting = best_setting(table, rest)
            picks[setting] += 1
            held_out += [table[setting][n] for n in names if fold[prompts[n]] == number]
        rounds.append(objective(held_out))
    return rounds, {setting: count for setting, count in picks.items() if count}


def warnings(
    chosen: GridSetting,
    table: Table,
    samples: Sequence[tuple[CheckerSample, Size]],
    human: Mapping[str, str],
    assumed: int,
) -> list[str]:
    """What the calibration can't know: edges of the grid, settings that move nothing."""
    found = []
    for name in ("margin", "detection_score", "tau"):
        values = sorted({getattr(setting, name) for setting in table})
        value = getattr(chosen, name)
        if len(values) > 1 and value in (values[0], values[-1]):
            end = "smallest" if value == values[0] else "largest"
            found.append(
                f"{name} = {value} is the {end} of the grid: the optimum may lie beyond it"
            )
    scores = [
        one.score
        for sample, _ in samples
        if sample.sample_id in human
        for one in sample.detectors.primary.detections
    ]
    tried = sorted({setting.detection_score for setting in table})
    if scores and len(tried) > 1 and min(scores) >= tried[-1]:
        found.append(
            f"no recorded detection scores below {min(scores):.2f}: detection_score decides "
            f"nothing in {tried}; record detections with a lower threshold"
        )
    if assumed:
        found.append(
            f"{assumed} samples had no recorded stability under some setting, taken as 1: measure "
            f"it with the smallest margin"
        )
    return found
