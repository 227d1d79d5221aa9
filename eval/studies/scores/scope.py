"""What a score of a table may look at: its own cells, and those around them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ...core import Outcome
from ...results.judge_card import Labels
from ...results.scoring import JudgedRun


@dataclass(frozen=True)
class LabeledRun:
    """One run under one judge, with what people said."""

    judged: JudgedRun
    labels: Labels

    @property
    def suite(self) -> str:
        """Its config."""
        return self.judged.result.run.suite

    @property
    def outcomes(self) -> Sequence[Outcome]:
        """Every case with what the judge said, by case id."""
        return self.judged.outcomes


@dataclass(frozen=True)
class ScoreInputs:
    """The cells that one number of a table is made of."""

    own: Sequence[LabeledRun]
    """Several where suites or generators are pooled."""
    base: LabeledRun | None = None
    """Of the same generator without a method, on the same suite under the same judge."""
    rivals: Mapping[str, LabeledRun] = field(default_factory=dict)
    """Generator -> its cell on the same suite under the same judge, those with a method too."""
    name: str = ""
    """The generator's, among the rivals."""
    by_verdict: bool = False
    """Whether a judge's labels count where it also measures a number."""
