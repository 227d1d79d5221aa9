"""Changes of runs against a base run, in bias and in image quality, on the same cases."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import UsageError
from ..core import Score, without_nan
from ..engine.run import Run, RunError
from ..stats.comparison import Comparison, adjust
from ..stats.equivalence import EQUIVALENT, LOST, NOT_WORSE, UNDECIDED, LossClaim, claims
from ..stats.estimate import Estimate, interval_text, p_text, value_text
from ..stats.intervals import Interval
from ..stats.means import cluster_mean
from ..suites import open_suite
from ..suites.scoring import factor_of
from .contents import RunContents
from .leaderboard import paired
from .marks import legends, marks_of, signs
from .names import short_names
from .quality import ImageQuality, read_quality
from .scoring import JudgedRun, ScoreSettings, score_runs


@dataclass(frozen=True, kw_only=True)
class QualityChange(Comparison):
    """A score of a run less that of the base run, on the cases that both have; its p-value is
    adjusted over all runs under one scorer."""

    scorer: str
    """The scorer, or the judge whose headline score it is."""
    score: str
    """Name of the score."""
    kind: str
    """`bias` or `quality`."""
    better: str
    """`higher` or `lower`."""
    unit: str
    before: float
    """The base run's, over everything that it has."""
    after: float
    """The run's, over everything that it has."""
    marks: tuple[str, ...] = ()
    """Marks of either of them."""
    unsigned: bool = False
    """Whether it is a difference of magnitudes, like Hom, of which one may be 0."""
    margin: float = math.nan
    """Largest loss, in its unit, that doesn't matter, as stated before; NaN if none was."""
    claim: LossClaim | None = None
    """What is shown about a loss of that size; None without a margin."""

    @property
    def gain(self) -> Estimate:
        """The change, positive if the run is better."""
        if self.better == "higher":
            return self
        low, high = self.interval
        return replace(self, value=-self.value, interval=Interval(-high, -low))

    @property
    def scorer_kind(self) -> str:
        """First word of the scorer's name: the kind of its spec."""
        return re.split("[: ]", self.scorer, maxsplit=1)[0]

    @property
    def claim_text(self) -> str:
        """The claim in words; a dash without a margin."""
        return "-" if self.claim is None else claim_text(self.claim, self.margin, self.unit)

    def to_json(self) -> dict[str, Any]:
        """Plain values; NaN as None."""
        plain: dict[str, Any] = without_nan(
            {
                "run": self.first,
                "scorer": self.scorer,
                "score": self.score,
                "kind": self.kind,
                "better": self.better,
                "unit": self.unit,
                "before": self.before,
                "after": self.after,
                "difference": self.value,
                "interval": self.interval,
                "p_value": self.p_value,
                "adjusted": self.adjusted,
                "n": self.n,
                "marks": self.marks,
                "margin": self.margin,
                "claim": self.claim.verdict if self.claim else None,
                "claim_p": self.claim.p_value if self.claim else math.nan,
            }
        )
        return plain


def claim_text(claim: LossClaim, margin: float, unit: str) -> str:
    """A claim in words. margin: largest loss that doesn't matter, in the unit."""
    size = value_text(margin, unit)
    words = {
        EQUIVALENT: f"equivalent within ±{size}",
        NOT_WORSE: f"not worse by more than {size}",
        LOST: f"lost more than {size}",
        UNDECIDED: f"undecided at {size}",
    }
    return f"{words[claim.verdict]} (p {p_text(claim.p_value)})"


NUMBERS = ("before", "after", "difference", "95 % CI", "p", "Holm", "pairs")
"""Columns that are aligned to the right."""
COLUMNS = ("run", "what", "by", *NUMBERS)
NO_MARGIN = (
    "A large p does not show that nothing was lost: that takes a margin, stated before looking at "
    "the runs"
)
"""Legend of changes without a margin."""


@dataclass(frozen=True)
class QualityReport:
    """Runs on one suite, the first of which is the base."""

    suite: str
    base: str
    """Name of the base run: as much of its path as tells the runs apart."""
    runs: Mapping[str, Sequence[Score]]
    """Name -> bias first, then quality."""
    changes: Sequence[QualityChange]
    """Against the base."""

    @property
    def title(self) -> str:
        """Title of the table of changes."""
        return f"{self.suite}: against {self.base}, on the cases that both have"

    @property
    def legends(self) -> list[str]:
        """What the signs behind its numbers mean."""
        scores = [score for of_run in self.runs.values() for score in of_run]
        undecided = [] if all(change.claim for change in self.changes) else [NO_MARGIN]
        return [*legends(marks_of(scores)), *undecided]

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the table of changes, with claims if any has a margin."""
        return (*COLUMNS, "claim") if any(change.claim for change in self.changes) else COLUMNS

    def rows(self) -> list[tuple[str, ...]]:
        """The changes as text, a tuple of `columns` each."""
        return [
            (
                change.first,
                f"{change.score} ({change.better} is better)"
                if change.kind == "bias"
                else "quality",
                change.scorer,
                *(
                    value_text(v, change.unit) + signs(change.marks)
                    for v in (change.before, change.after, change.value)
                ),
                interval_text(change.interval, change.unit),
                *map(p_text, (change.p_value, change.adjusted)),
                f"{change.n:,}",
                *([change.claim_text] if len(self.columns) > len(COLUMNS) else []),
            )
            for change in self.changes
        ]

    def to_json(self) -> dict[str, Any]:
        """Plain values; NaN as None."""
        plain: dict[str, Any] = without_nan(vars(self))
        return plain


def compare_quality(
    base_run: str, base: ImageQuality, qualities: Mapping[str, ImageQuality]
) -> list[QualityChange]:
    """Each run's scores less the base's, paired by case. qualities: run -> quality."""
    changes = []
    for name, quality in qualities.items():
        shared = [case for case in base.values if case in quality.values]
        difference = cluster_mean(
            np.array([quality.values[case] - base.values[case] for case in shared]),
            [base.clusters[case] for case in shared],
        )
        changes.append(
            QualityChange.of(
                difference,
                first=name,
                second=base_run,
                scorer=base.scorer,
                score="mean",
                kind="quality",
                better="higher",
                unit="1",
                before=base.score.value,
                after=quality.score.value,
                marks=marks_of([base.score, quality.score]),
            )
        )
    return adjust(changes)


def compare_bias(
    base_run: str, base: JudgedRun, judged_runs: Mapping[str, JudgedRun]
) -> list[QualityChange]:
    """Each run's headline score less the base's, on the items that both have a value for."""
    headline = open_suite(base.result.run.suite).headline
    before, items = base.whole[headline.score], headline.items(base.outcomes)
    changes = []
    for name, judged in judged_runs.items():
        after = judged.whole[headline.score]
        difference = paired(headline.items(judged.outcomes), items, headline)
        changes.append(
            QualityChange.of(
                difference.scaled(factor_of(before.unit)),
                first=name,
                second=base_run,
                scorer=base.result.judge,
                score=headline.score,
                kind="bias",
                better=headline.better,
                unit=before.unit,
                before=before.value,
                after=after.value,
                marks=marks_of([before, after]),
                unsigned=min(headline.ends) < 0
                and not all(score.interval.low > 0 for score in (before, after)),
            )
        )
    return adjust(changes)


def with_claims(
    changes: Sequence[QualityChange], margins: Mapping[str, float]
) -> list[QualityChange]:
    """Changes under one judge or scorer, with claims where a margin is stated.

    margins: name of a headline score, or name or kind of a scorer -> largest loss that doesn't
    matter.
    """
    first = changes[0]
    names = [first.score] if first.kind == "bias" else [first.scorer, first.scorer_kind]
    margin = next((margins[name] for name in names if name in margins), math.nan)
    if math.isnan(margin):
        return list(changes)
    tested = claims(
        [change.gain for change in changes], margin, [change.unsigned for change in changes]
    )
    return [
        replace(change, margin=margin, claim=claim)
        for change, claim in zip(changes, tested, strict=True)
    ]


def parse_margins(texts: Sequence[str]) -> dict[str, float]:
    """Margins from ``NAME=NUMBER``. Raises UsageError for anything else."""
    margins: dict[str, float] = {}
    for text in texts:
        name, _, number = text.rpartition("=")
        try:
            margin = float(number)
        except ValueError:
            margin = math.nan
        if not name or not 0 < margin < math.inf:
            raise UsageError(
                f"--margin {text!r} has no score and positive number",
                "write e.g. order_bias=5 or image-reward=0.1",
                code="bad-option",
            )
        if name in margins:
            raise UsageError(f"--margin names {name} twice", code="duplicate-option")
        margins[name] = margin
    return margins


def quality_report(
    roots: Sequence[Path], settings: ScoreSettings, margins: Mapping[str, float] | None = None
) -> QualityReport:
    """Scores of each run, its headline under each judge first, and changes against the first run.

    margins: see `with_claims`; UsageError for a name that no change has.
    Runs without a judge have quality alone. Raises RunError for runs of different rows, or judged
    differently, unless `across_judges`.
    """
    resolved = [root.resolve() for root in roots]
    if len(set(resolved)) < len(roots):
        raise UsageError("a run is given twice", code="duplicate-id")
    runs = {name: Run.open(root) for name, root in zip(short_names(resolved), roots, strict=True)}
    check_alike(runs)
    qualities = {name: read_quality(run) for name, run in runs.items()}
    report = quality_report_of(
        _judged(runs, settings), qualities, next(iter(runs.values())).header.suite, margins
    )
    names = dict.fromkeys(
        name
        for c in report.changes
        for name in ([c.score] if c.kind == "bias" else [c.scorer, c.scorer_kind])
    )
    for name in margins or ():
        if name not in names:
            raise UsageError(
                f"--margin {name}=: no change of that name",
                f"choose from {', '.join(names)}" if names else "name two runs with scores",
                code="unknown-name",
            )
    return report


def reported_quality(runs: Sequence[RunContents]) -> list[QualityReport]:
    """Bias and quality of the runs of one suite, as a report shows them; empty without scorers.

    One report for every base, see `RunContents`.
    """
    if not any(run.quality for run in runs):
        return []
    run_names = {run.name for run in runs}
    groups: dict[str, list[RunContents]] = {}
    for run in runs:
        base = run.base or runs[0].name
        if base in run_names:
            groups.setdefault(base, []).append(run)
    reports = []
    for base, members in groups.items():
        members.sort(key=lambda run: run.name != base)
        judged = {
            run.name: {judged_run.result.judge: judged_run for judged_run in run.judged}
            for run in members
        }
        quality = {run.name: run.quality for run in members}
        reports.append(quality_report_of(judged, quality, runs[0].suite.name, runs[0].margins))
    return reports


def quality_report_of(
    judged: Mapping[str, Mapping[str, JudgedRun]],
    qualities: Mapping[str, Sequence[ImageQuality]],
    suite: str,
    margins: Mapping[str, float] | None = None,
) -> QualityReport:
    """Bias and quality of runs on one suite, the first of which is the base.

    judged: run -> judge -> result; qualities: run -> one for each scorer; margins: see
    `with_claims`. Raises RunError where two runs were scored by different versions of a scorer.
    """
    base, *compared = judged
    headline = open_suite(suite).headline.score
    scores = {
        name: [
            *(
                replace(j.whole[headline], name=f"{headline} by {judge}")
                for judge, j in by_judge.items()
            ),
            *(quality.score for quality in qualities[name]),
        ]
        for name, by_judge in judged.items()
    }
    by_rater = [
        compare_bias(base, first, _runs_judged_by(judged, compared, judge))
        for judge, first in judged[base].items()
    ]
    for scored in qualities[base]:
        alike = {name: _same_scorer(scored, name, qualities[name]) for name in compared}
        by_rater.append(compare_quality(base, scored, {n: q for n, q in alike.items() if q}))
    changes = [c for group in by_rater if group for c in with_claims(group, margins or {})]
    return QualityReport(suite, base, scores, changes)


def _runs_judged_by(
    judged: Mapping[str, Mapping[str, Any]], run_names: Iterable[str], judge: str
) -> dict[str, Any]:
    return {name: judged[name][judge] for name in run_names if judge in judged[name]}


def _same_scorer(
    base: ImageQuality, name: str, candidates: Sequence[ImageQuality]
) -> ImageQuality | None:
    """The quality of another run by the same scorer; None if it did not score that run."""
    for candidate in candidates:
        if candidate.identity == base.identity:
            return candidate
    for candidate in candidates:
        if candidate.scorer == base.scorer:
            changed = sorted(
                key
                for key in base.identity.keys() | candidate.identity.keys()
                if base.identity.get(key) != candidate.identity.get(key)
            )
            raise RunError(
                f"{name} was scored by another version of {base.scorer} ({', '.join(changed)}): "
                f"score both runs with the same version",
                code="different-rows",
            )
    return None


def check_alike(runs: Mapping[str, Run]) -> None:
    """Raises RunError for runs of different rows. runs: by name."""
    base, *compared = runs
    first = runs[base].header
    for name in compared:
        header = runs[name].header
        if (header.suite, header.rows_sha256) != (first.suite, first.rows_sha256):
            raise RunError(
                f"{name} and {base} are of different rows: they can't be compared",
                code="different-rows",
            )


def _judged(runs: Mapping[str, Run], settings: ScoreSettings) -> dict[str, dict[str, JudgedRun]]:
    """Run -> judge -> result; empty for a run without verdicts."""
    by_run: dict[str, dict[str, JudgedRun]] = {name: {} for name in runs}
    names_by_root = {
        str(run.root): name
        for name, run in runs.items()
        if settings.judges or any(not judge.is_empty for judge in run.judges())
    }
    for judged_run in (
        score_runs([Path(root) for root in names_by_root], settings) if names_by_root else ()
    ):
        by_run[names_by_root[judged_run.result.folder]][judged_run.result.judge] = judged_run
    return by_run
