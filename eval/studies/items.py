"""`counterprior study items`: difficulty and discrimination of prompts over several generators.

The generators of finished runs are the persons of an item response model, the prompts its items. A
prompt of several seeds is one item, whose answer is their mean: seeds are no independent evidence
about it. Several judges of the same images show which prompts one of them reads otherwise.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import DataError, UsageError
from ...parsing import csv_text, parse_as
from ...progress import Progress, silent
from ...storage import write_json, write_whole
from ..core import without_nan
from ..engine.run import RunError
from ..results.contents import RunContents, read_contents
from ..results.scoring import JudgedRun, ScoreSettings
from ..stats.comparison import ALPHA, false_discovery
from ..stats.estimate import Estimate
from ..stats.intervals import LEVEL, NOTHING, Interval, normal_quantile
from ..stats.items import (
    ItemModel,
    choose_items,
    fit_items,
    item_fit,
    judge_shifts,
    linked_score,
)
from ..suites.base import Suite
from .folder import FILE, Study
from .status import judged_runs

TABLE = "items.csv"
MODEL = "items.json"
SHORT_FORM = "short-form.txt"
LEAST_GENERATORS = 5
LEAST_ITEMS = 20
FOLDS = 10
"""Parts of the generators that are left out in turn to measure the error of a short form."""
_COMPARED = (100, 300)
"""Numbers of random prompts that a short form is compared with."""


@dataclass(frozen=True)
class ItemSettings:
    """What is analyzed."""

    suite: str = ""
    """Config; needed only where the runs are of several."""
    judges: tuple[str, ...] = ()
    """Judges; the first of them is the one that the model is fitted to. All where empty."""
    short_form: int | None = None
    """Number of prompts of a short form; None for no short form."""
    partial: bool = False
    """Whether runs count that are not judged completely."""


@dataclass(frozen=True)
class GeneratorItems:
    """One generator on all items."""

    name: str
    right: float | None
    """Share right of the items that have an answer, in [0, 1]."""
    ability: float
    """Logits; the mean over generators is 0."""
    missing: int
    """Items without an answer."""


@dataclass(frozen=True)
class ItemResult:
    """One prompt over all generators."""

    item: str
    """Id, as in a short form: row and variant."""
    prompt: str
    cluster: str
    n: int
    """Generators with an answer."""
    right: float | None
    """Mean of their answers, in [0, 1]."""
    difficulty: float
    """Log odds that a generator of average ability is wrong."""
    difficulty_error: float
    discrimination: float
    """1 for the usual prompt, below 0 where better generators are wrong more often."""
    discrimination_error: float
    discrimination_interval: tuple[float, float]
    """95 %."""
    infit: float | None
    outfit: float | None
    flags: tuple[str, ...] = ()
    """`negative`, `misfit`, and `judge:NAME` where that judge reads the prompt otherwise."""
    judges: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Other judge -> `shift` in logits, with `interval`, `p_value`, `adjusted` and `n`."""


@dataclass(frozen=True)
class ChosenPrompts:
    """Prompts that stand for all, and the error of a score that is estimated from them."""

    items: tuple[str, ...]
    error: float
    """Root mean square difference, in [0, 1], of the score of a generator that the model has not
    seen, estimated from these prompts, from its score over all."""
    random_errors: Mapping[int, float]
    """Number of prompts -> the same of the mean of so many random ones."""
    folds: int
    """Groups of generators that were left out in turn, each with a short form of its own."""


@dataclass(frozen=True)
class ItemReport:
    """Items, generators and short form of a suite."""

    suite: str
    rows_sha256: str
    judge: str
    generators: Sequence[GeneratorItems]
    items: Sequence[ItemResult]
    spread: float
    """Standard deviation of the discriminations of usual prompts."""
    odd: float
    """Share of prompts whose discrimination follows no rule."""
    short_form: ChosenPrompts | None = None
    format: int = 1

    def to_json(self) -> dict[str, Any]:
        """Plain values; NaN as None."""
        plain: dict[str, Any] = without_nan(vars(self))
        return plain


@dataclass(frozen=True)
class _Answers:
    """Answers of generators to items under each judge."""

    suite: Suite[Any]
    generators: tuple[str, ...]
    items: tuple[str, ...]
    prompts: tuple[str, ...]
    clusters: tuple[str, ...]
    by_judge: Mapping[str, NDArray[np.float64]]
    """Judge -> shape (generators, items), in [0, 1]; NaN without an answer. The first is that of
    the model."""
    rows_sha256: str


def analyze_items(
    sources: Sequence[Path],
    out: Path,
    settings: ItemSettings | None = None,
    progress: Progress = silent,
) -> ItemReport:
    """Fits the model to runs and studies, and writes it to a folder as a table, as JSON, and as a
    list of the prompts of a short form.

    Raises UsageError for too few generators or items, for a suite without right and wrong images,
    and for several suites of which none is chosen; RunError for runs that can't be compared.
    """
    settings = settings or ItemSettings()
    answers = _read(sources, settings)
    report = _report(answers, settings, progress)
    write_json(out / MODEL, report.to_json())
    write_whole(out / TABLE, _csv(report))
    if report.short_form:
        write_whole(out / SHORT_FORM, "".join(f"{item}\n" for item in report.short_form.items))
    return report


def _read(sources: Sequence[Path], settings: ItemSettings) -> _Answers:
    runs = _runs(sources, settings)
    if len(runs) < LEAST_GENERATORS:
        raise UsageError(
            f"{len(runs)} generators on {runs[0].suite.name}: {LEAST_GENERATORS} are needed at "
            f"least",
            "add runs of other generators; 10 to 30 give usable discriminations",
            code="too-few-items",
        )
    return _answers(runs, settings)


def _runs(sources: Sequence[Path], settings: ItemSettings) -> list[RunContents]:
    """The runs of one suite with right and wrong images."""
    roots: list[Path] = []
    for source in sources:
        is_study = (source / FILE).exists()
        study_runs = judged_runs(Study.open(source), settings.partial) if is_study else [source]
        roots += [root for root in study_runs if root not in roots]
    scoring = ScoreSettings(
        judges=settings.judges, across_judges=True, partial=settings.partial, groups=False
    )
    contents = read_contents(roots, scoring)
    by_suite: dict[str, list[RunContents]] = defaultdict(list)
    for run in contents:
        if run.suite.has_right_images:
            by_suite[run.suite.name].append(run)
    if not by_suite:
        names = ", ".join(sorted({run.suite.name for run in contents}))
        raise UsageError(
            f"{names} has no right and wrong images: its items have no difficulty",
            code="unsupported",
        )
    name = settings.suite or next(iter(by_suite))
    if name not in by_suite or (not settings.suite and len(by_suite) > 1):
        raise UsageError(
            f"--suite {settings.suite!r}: the runs are of {', '.join(by_suite)}",
            "choose one of them",
            code="unknown-name" if settings.suite else "missing-option",
        )
    return by_suite[name]


def _answers(runs: Sequence[RunContents], settings: ItemSettings) -> _Answers:
    suite = runs[0].suite
    judged_by = [
        {
            json.dumps(dict(judged.result.card.comparable), sort_keys=True): judged
            for judged in run.judged
        }
        for run in runs
    ]
    shared = [key for key in judged_by[0] if all(key in of_run for of_run in judged_by)]
    if not shared:
        raise RunError(
            f"no judge judged all {len(runs)} runs of {suite.name}",
            "judge them alike, or name fewer runs",
            code="different-judges",
        )
    names = {key: judged_by[0][key].result.judge for key in shared}
    if settings.judges:
        order = list(settings.judges)
        shared.sort(key=lambda key: next((n for n, w in enumerate(order) if w in names[key]), 0))
    prompts: dict[str, tuple[str, str]] = {}
    for run in runs:
        for outcome in run.judged[0].outcomes:
            case = outcome.case
            prompts.setdefault(case.item, (case.prompt, case.clusters[0]))
    items = tuple(sorted(prompts))
    if len(items) < LEAST_ITEMS:
        raise UsageError(
            f"{len(items)} prompts: {LEAST_ITEMS} are needed at least",
            "use runs of more rows",
            code="too-few-items",
        )
    by_judge = {
        names[key]: np.array([_row(suite, of_run[key], items) for of_run in judged_by])
        for key in shared
    }
    generators = tuple(run.name for run in runs)
    first = next(iter(by_judge.values()))
    for generator, row in zip(generators, first, strict=True):
        if np.isnan(row).all():
            raise RunError(f"{generator}: none of its images has a score", code="nothing-judged")
    return _Answers(
        suite=suite,
        generators=generators,
        items=items,
        prompts=tuple(prompts[item][0] for item in items),
        clusters=tuple(prompts[item][1] for item in items),
        by_judge=by_judge,
        rows_sha256=runs[0].run.header.rows_sha256,
    )


def _row(suite: Suite[Any], judged: JudgedRun, items: Sequence[str]) -> list[float]:
    """Mean over seeds of what one generator got right of each item; NaN without an answer."""
    values = defaultdict(list)
    for outcome in judged.outcomes:
        value = suite.correctness(outcome)
        if not math.isnan(value):
            values[outcome.case.item].append(value)
    return [float(np.mean(values[item])) if item in values else math.nan for item in items]


def _report(answers: _Answers, settings: ItemSettings, progress: Progress) -> ItemReport:
    (judge, table), *others = answers.by_judge.items()
    rasch = fit_items(table, discriminations=False)
    model = fit_items(table)
    fit = item_fit(table, rasch)
    misfits = false_discovery(fit.p_values.tolist())
    shifts: dict[str, list[dict[str, Any]]] = {}
    for name, other in others:
        of_judge = judge_shifts(table, other)
        adjusted = false_discovery([shift.p_value for shift in of_judge])
        shifts[name] = [
            {
                "shift": shift.value,
                "interval": [end if math.isfinite(end) else None for end in shift.interval],
                "p_value": shift.p_value,
                "adjusted": p_value,
                "n": shift.n,
            }
            for shift, p_value in zip(of_judge, adjusted, strict=True)
        ]
    items = []
    with_answer = ~np.isnan(table)
    for number, item in enumerate(answers.items):
        n = int(with_answer[:, number].sum())
        low, high = model.slope_intervals[number].tolist()
        flags = ["negative"] if high < 0 else []
        flags += ["misfit"] if misfits[number] < ALPHA else []
        flags += [f"judge:{name}" for name in shifts if shifts[name][number]["adjusted"] < ALPHA]
        items.append(
            ItemResult(
                item=item,
                prompt=answers.prompts[number],
                cluster=answers.clusters[number],
                n=n,
                right=float(np.nanmean(table[:, number])) if n else None,
                difficulty=float(model.difficulties[number]),
                difficulty_error=float(model.intercept_errors[number]),
                discrimination=float(model.slopes[number]),
                discrimination_error=float(model.slope_errors[number]),
                discrimination_interval=(low, high),
                infit=float(fit.infit[number]),
                outfit=float(fit.outfit[number]),
                flags=tuple(flags),
                judges={name: shifts[name][number] for name in shifts},
            )
        )
    generators = [
        GeneratorItems(
            name,
            right=float(np.nanmean(row)),
            ability=float(ability),
            missing=int(np.isnan(row).sum()),
        )
        for name, row, ability in zip(answers.generators, table, model.abilities, strict=True)
    ]
    return ItemReport(
        suite=answers.suite.name,
        rows_sha256=answers.rows_sha256,
        judge=judge,
        generators=generators,
        items=items,
        spread=model.spread,
        odd=model.odd,
        short_form=_short_form(answers, table, model, settings.short_form, progress),
    )


def _short_form(
    answers: _Answers,
    table: NDArray[np.float64],
    model: ItemModel,
    count: int | None,
    progress: Progress,
) -> ChosenPrompts | None:
    """The short form of all generators, and its error, for which each fold has one of its own."""
    if count is None:
        return None
    if not 0 < count < len(answers.items):
        raise UsageError(
            f"--short-form {count}: there are {len(answers.items)} prompts", code="out-of-range"
        )
    folds = min(FOLDS, len(table))
    squares: list[float] = []
    for fold in range(folds):
        progress("generators left out", fold, folds)
        left_out = np.arange(len(table)) % folds == fold
        of_others = fit_items(table[~left_out], start=model)
        chosen = choose_items(of_others, count, answers.clusters)
        for row in table[left_out]:
            asked = np.full(len(row), np.nan)
            asked[chosen] = row[chosen]
            score, _ = linked_score(asked, of_others)
            squares.append((score - float(np.nanmean(row))) ** 2)
    progress("generators left out", folds, folds)
    numbers = sorted({count, *(n for n in _COMPARED if n < len(answers.items))})
    chosen = choose_items(model, count, answers.clusters)
    return ChosenPrompts(
        items=tuple(answers.items[number] for number in sorted(chosen)),
        error=math.sqrt(float(np.nanmean(squares))),
        random_errors={n: _random_error(table, n) for n in numbers},
        folds=folds,
    )


def _random_error(table: NDArray[np.float64], count: int) -> float:
    """Root mean square error of the mean of random items without replacement.

    A single answer has no variance, so generators with fewer than two are left out.
    """
    table = table[(~np.isnan(table)).sum(axis=1) > 1]
    answered = (~np.isnan(table)).sum(axis=1)
    variance = np.nanvar(table, axis=1, ddof=1) / count * np.maximum(0, 1 - count / answered)
    return math.sqrt(float(variance.mean()))


def _csv(report: ItemReport) -> str:
    """A line for each item, hardest first."""
    judges = sorted({name for item in report.items for name in item.judges})
    plain = [
        "item",
        "n",
        "right",
        "difficulty",
        "difficulty_error",
        "discrimination",
        "discrimination_error",
    ]
    columns = [*plain, "discrimination_low", "discrimination_high", "infit", "outfit"]
    columns += [f"shift {name}" for name in judges]
    lines = [[*columns, "flags", "cluster", "prompt"]]
    for item in sorted(report.items, key=lambda item: (-item.difficulty, item.item)):
        numbers = [getattr(item, name) for name in plain[2:]]
        numbers += [*item.discrimination_interval, item.infit, item.outfit]
        numbers += [item.judges[name]["shift"] for name in judges]
        shown = ["" if n is None or math.isnan(n) else f"{n:.4f}" for n in numbers]
        flags = " ".join(item.flags)
        lines.append([item.item, str(item.n), *shown, flags, item.cluster, item.prompt])
    return csv_text(lines)


def read_items(path: Path) -> ItemReport:
    """Reads what `analyze_items` wrote: the file, or the folder that holds it.

    Raises DataError for a file that is missing or holds something else.
    """
    path = path / MODEL if path.is_dir() else path
    try:
        plain = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise DataError(
            f"{path} does not exist",
            "make it with `counterprior study items RUN... --out DIR`",
            code="no-such-file",
        ) from None
    except (OSError, ValueError) as error:
        raise DataError(f"{path} is damaged: {error}", code="damaged-file") from None
    if not isinstance(plain, dict) or plain.get("format") != 1:
        raise DataError(f"{path} is not an item model", code="bad-format")
    return parse_as(ItemReport, plain, str(path))


@dataclass(frozen=True, kw_only=True)
class LinkedScore(Estimate):
    """Share right over all prompts of a model, in [0, 1], of a run of some of them."""

    run: str
    judge: str
    prompts: int
    """Prompts of the model; `n` are those that have an answer."""

    def to_json(self) -> dict[str, Any]:
        """Plain values; NaN as None."""
        facts = {"run": self.run, "judge": self.judge, "n": self.n, "prompts": self.prompts}
        return {**facts, **super().to_json(), "error": self.error}


def linked_scores(
    sources: Sequence[Path], model: Path, settings: ItemSettings | None = None
) -> list[LinkedScore]:
    """What runs of a short form would score over all prompts, by a model that `study items` wrote.

    The standard error is that of the model, or the error of its short form where that is larger.
    Raises RunError for a run of another release or judge, UsageError for one of another suite.
    """
    report = read_items(model)
    fitted = model_of(report)
    settings = replace(settings or ItemSettings(), suite=report.suite)
    measured = report.short_form.error if report.short_form else 0.0
    items = [item.item for item in report.items]
    scores = []
    for run in _runs(sources, settings):
        if run.run.header.rows_sha256 != report.rows_sha256:
            raise RunError(f"{run.name} and {model} are of different rows", code="different-rows")
        judged = next((j for j in run.judged if j.result.judge == report.judge), None)
        if judged is None:
            raise RunError(
                f"{run.name} was not judged by {report.judge}, as {model}", code="different-judges"
            )
        row = np.array(_row(run.suite, judged, items))
        value, error = linked_score(row, fitted)
        n = int((~np.isnan(row)).sum())
        error = max(error, measured) if n < len(items) else error
        half = normal_quantile(LEVEL) * error
        interval = Interval(max(0.0, value - half), min(1.0, value + half))
        scores.append(
            LinkedScore(
                value=value,
                interval=interval if n else NOTHING,
                n=n,
                error=error,
                run=run.name,
                judge=report.judge,
                prompts=len(items),
            )
        )
    return scores


def model_of(report: ItemReport) -> ItemModel:
    """The model of a report, without the parts that only its table shows."""
    items = report.items
    return ItemModel(
        abilities=np.array([generator.ability for generator in report.generators]),
        slopes=np.array([item.discrimination for item in items]),
        slope_errors=np.array([item.discrimination_error for item in items]),
        intercepts=-np.array([item.difficulty for item in items]),
        intercept_errors=np.array([item.difficulty_error for item in items]),
        slope_intervals=np.array([item.discrimination_interval for item in items]),
        spread=report.spread,
        odd=report.odd,
    )
