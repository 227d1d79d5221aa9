"""`switch`: when is the layout decided? Prompts switched at every step (OTS-Bench, Table 7).

A base run shows which prompts are biased: those whose first-mentioned entity stands left in both
orders of mention. These are drawn again with the prompt switched at each step. A2B and B2A succeed
where the layout follows the prompt that was switched to; N2A and N2B are scored by Hom.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ...errors import RunFailed, UsageError
from ...progress import Progress, silent
from ...storage import write_json, write_whole
from ..core import Generator, Outcome, without_nan
from ..engine.costs import Cost
from ..engine.data import Rows, read_rows
from ..engine.evaluation import Evaluation, RunSettings, outcomes
from ..engine.steps import evaluate_run
from ..generators import as_generator
from ..judges import as_judge
from ..methods import PROTOCOLS, apply_methods
from ..report.plots import CurvePoint, curve_plot, figure_page, inline
from ..stats.estimate import Estimate
from ..stats.intervals import Interval, folded
from ..suites import open_suite
from .scores.switched import biased, followed, mean_sign, prior_of

BASE = "base"
RESULT = "result.json"
PLOT = "switch.html"
STEPS = (1, 2, 3, 4, 5)
"""Of the paper."""
COUNT = 500
"""Biased prompts of the paper."""


@dataclass(frozen=True)
class SwitchSettings:
    """What is switched."""

    suite: str
    """Config whose rows have both orders of mention, and a neutral prompt."""
    generator: Generator | str
    judge: str
    data: str
    """Release folder or repository."""
    out: Path
    """Folder: the base run and one run for each protocol and step."""
    protocols: tuple[str, ...] = PROTOCOLS
    steps: tuple[int, ...] = STEPS
    count: int = COUNT
    """Most biased cases."""
    limit: int | None = None
    """Rows to sample; None for all."""
    seeds: int = 1
    cost: Cost = field(default_factory=Cost)


@dataclass(frozen=True)
class Switched:
    """One cell of the table."""

    protocol: str
    """Of `PROTOCOLS`, or `base` without any switch."""
    step: int | None
    """Where the prompt changes; None for the base."""
    success: float
    """Percent of valid images whose layout follows the prompt that was switched to; NaN where
    the protocol starts neutral."""
    success_interval: Interval
    """95 %."""
    hom: float
    """100 |N_L - N_R| / (N_L + N_R)."""
    hom_interval: Interval
    """95 %."""
    n: int
    """Valid images."""
    excluded: Mapping[str, int]
    """The others, by label."""


def run_switches(
    settings: SwitchSettings, progress: Progress = silent, found: Rows | None = None
) -> dict[str, Any]:
    """Every protocol at every step on the biased cases; also written as JSON and as a page.

    What is there is not made again. Raises UsageError for an unknown protocol and a suite whose
    labels say nothing of a prior, RunFailed where no case is biased.
    """
    if unknown := set(settings.protocols) - set(PROTOCOLS):
        raise UsageError(
            f"no protocol {sorted(unknown)[0]!r}: choose from {', '.join(PROTOCOLS)}",
            code="unknown-name",
        )
    suite = open_suite(settings.suite)
    prior = prior_of(suite)
    generator = as_generator(settings.generator)
    found = found or read_rows(settings.data, settings.suite)
    cells = {
        (protocol, step): apply_methods(generator, [f"switch:{protocol}?at={step}"])
        for protocol in settings.protocols
        for step in settings.steps
    }
    base = _settings(settings, BASE)
    done = evaluate_run(
        base, generator, [settings.judge], cost=settings.cost, progress=progress, found=found
    )
    said = outcomes(done.run, done.judged[0][0])
    chosen = biased(said, *prior)[: settings.count]
    if not chosen:
        raise RunFailed(
            f"{base.out}: no prompt puts the first-mentioned left in both orders",
            code="nothing-to-do",
        )
    names = {case.id for case in chosen}
    worth = suite.worths[prior[0]].values
    table = [_cell(BASE, None, [o for o in said if o.case.id in names], prior[0], worth)]
    plan = settings.cost.plan(settings.out)
    judge = as_judge(settings.judge, plan)
    for (protocol, step), switched in cells.items():
        run = _settings(settings, f"{protocol}-{step}")
        with Evaluation.start(run, switched.identity(), found) as evaluation:
            evaluation.check_generator(switched)
            evaluation.make(switched, chosen, progress=progress)
            log, _ = evaluation.ask(judge, cases=chosen, progress=progress)
            table.append(
                _cell(protocol, step, outcomes(evaluation.run, log, chosen), prior[0], worth)
            )
    result = {
        "suite": settings.suite,
        "generator": generator.identity(),
        "biased": len(chosen),
        "of": len(said),
        "cells": [without_nan(asdict(cell)) for cell in table],
    }
    write_json(settings.out / RESULT, result)
    write_whole(settings.out / PLOT, _page(table, settings.protocols))
    return result


def _settings(settings: SwitchSettings, name: str) -> RunSettings:
    return RunSettings(
        settings.suite,
        settings.data,
        settings.out / name,
        seeds=settings.seeds,
        limit=settings.limit,
    )


def _cell(
    protocol: str,
    step: int | None,
    said: Sequence[Outcome],
    question: str,
    worth: Mapping[str, float],
) -> Switched:
    found = mean_sign(said, question, worth)
    # Labels speak of the case's own prompt A: after a2b the layout should be against it.
    toward = {"a2b": -1, "b2a": 1}.get(protocol, 0)
    success = followed(found, toward) if toward else Estimate(math.nan)
    return Switched(
        protocol=protocol,
        step=step,
        success=success.value,
        success_interval=success.interval,
        hom=100 * abs(found.value),
        hom_interval=folded(found.interval.scaled(100)),
        n=found.n,
        excluded=found.excluded,
    )


def _page(table: Sequence[Switched], protocols: Sequence[str]) -> str:
    title = "Prompts switched during denoising"
    success, hom = {}, {}
    for protocol in protocols:
        row = [cell for cell in table if cell.protocol == protocol]
        points = [CurvePoint(c.step or 0, Estimate(c.success, c.success_interval)) for c in row]
        if protocol[0] != "n":
            success[protocol] = points
        hom[protocol] = [CurvePoint(c.step or 0, Estimate(c.hom, c.hom_interval)) for c in row]
    figures = {
        "Success by step, %": inline(curve_plot(success, "step"), f"{title}: success"),
        "Hom by step": inline(curve_plot(hom, "step"), f"{title}: Hom"),
    }
    return figure_page(figures, title)
