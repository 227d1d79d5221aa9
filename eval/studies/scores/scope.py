"""Inputs of a table's score: its own cells, and those around them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ...core import Outcome
from ...results.judge_card import Labels
from ...results.kept_scores import ScoresOfRun
from ...results.scoring import JudgedRun


@dataclass(frozen=True)
class LabeledRun:
    """One run under one judge, with human labels."""

    judged: JudgedRun
    labels: Labels
    scores: ScoresOfRun | None = None
    """What its scores were taken from; None where they are of no run's folder."""

    @property
    def suite(self) -> str:
        """Config of the run."""
        return self.judged.result.run.suite

    @property
    def outcomes(self) -> Sequence[Outcome]:
        """Every case with the judge's verdicts, by case id."""
        return self.judged.outcomes


@dataclass(frozen=True)
class ScoreInputs:
    """Cells behind one number of a table."""

    cells: Sequence[LabeledRun]
    """Its own cells; several if suites or generators are pooled, or a line has replicates."""
    less: Sequence[LabeledRun] = ()
    """Cells whose number is subtracted, each from the cell in its place; empty for none."""
    conditions: Sequence[int] = ()
    """Number of the condition of each cell, where a line has replicates of several."""
    base: LabeledRun | None = None
    """Cell of the same generator without a method, on the same suite under the same judge."""
    rivals: Mapping[str, LabeledRun] = field(default_factory=dict)
    """Generator -> its cell on the same suite under the same judge, those with a method too."""
    name: str = ""
    """Name of its generator among the rivals."""
    by_verdict: bool = False
    """Whether a judge's labels count even if it measures a number."""
