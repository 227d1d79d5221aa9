"""The tables of SpatialBench-UC for several methods at once, as rows: CSV files and pages.

Main results, abstention by reason, prompts and counterfactual pairs, relations, calibration before
and after, and risk against coverage where people labeled some of the images. Percent, unless a
column says otherwise; an undefined number is None.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import UsageError
from ...human_labels import read_labels
from ...parsing import RowError
from ..geometry.boxes import RELATIONS, Size
from ..geometry.checker.decide import REASONS, CheckedImage
from ..geometry.checker.rules import CheckerRules
from ..geometry.checker.summary import PAIRS, summarize
from ..judges.checker.analyze import analyze
from ..judges.checker.run import PUBLISHED_SIZE, check_file
from ..stats.clusters import cluster_interval
from .names import slugify

PlainTable = list[dict[str, Any]]
"""Rows with the same columns."""

_WORTH: Mapping[str, Mapping[str, float]] = {
    "pass": {"PASS": 1, "FAIL": 0, "UNDECIDABLE": 0},
    "coverage": {"PASS": 1, "FAIL": 1, "UNDECIDABLE": 0},
    "pass_decided": {"PASS": 1, "FAIL": 0},
}
"""Rate -> value of each verdict in it; verdicts without a value are excluded."""


@dataclass(frozen=True)
class CheckedMethod:
    """One method's images under the checker."""

    name: str
    file: Path
    """Its detections."""
    rules: CheckerRules
    checked: Sequence[CheckedImage]
    before: Sequence[CheckedImage] = ()
    """The same images before calibration; empty unless requested."""

    @property
    def metrics(self) -> dict[str, Any]:
        """As `check` writes it."""
        return {
            **summarize(self.checked),
            "detections_sha256": sha256(self.file.read_bytes()).hexdigest(),
            "rules": self.rules.model_dump(mode="json", exclude={"detector", "output"}),
        }


@dataclass(frozen=True)
class CheckReport:
    """Everything that several checked methods are compared by."""

    methods: Sequence[CheckedMethod]
    tables: Mapping[str, PlainTable]
    """File name without its ending -> rows."""
    curves: Mapping[str, Mapping[str, Any]]
    """Method, or `all` -> result of `analyze` on its labeled images; empty without labels."""
    left_out: Sequence[str]
    """Labeled samples that belong to none of the methods."""


@dataclass(frozen=True)
class CheckInputs:
    """Files and settings of a report."""

    methods: Sequence[str]
    """``METHOD=FILE`` of samples with their detections, each."""
    rules: Path | None = None
    """checker.yaml; None for the published, calibrated rules."""
    before: Sequence[str] = ()
    """``METHOD=FILE`` of the same samples before calibration; empty for the same files."""
    before_rules: Path | None = None
    """The rules before calibration; without them there is no table of calibration."""
    labels: Path | None = None
    """People's labels of some of the samples."""
    size: Size = PUBLISHED_SIZE
    """Size of images whose row has none."""


def check_report(inputs: CheckInputs) -> CheckReport:
    """Checks every method and puts the tables together.

    Raises UsageError for a method without a name, twice, or unknown before calibration, RowError
    for samples that two methods share or that can't be used.
    """
    files = _named(inputs.methods)
    before = _named(inputs.before)
    if unknown := sorted(set(before) - set(files)):
        raise UsageError(
            f"--before names {unknown[0]!r}, which is none of {', '.join(files)}",
            code="unknown-reference",
        )
    if before and inputs.before_rules is None:
        raise UsageError(
            "--before needs --before-rules, the checker.yaml of that time", code="missing-option"
        )
    rules = CheckerRules.load(inputs.rules)
    methods: list[CheckedMethod] = []
    method_of: dict[str, str] = {}
    for name, file in files.items():
        checked = check_file(file, rules, inputs.size)
        for image in checked:
            previous = method_of.setdefault(image.sample.sample_id, name)
            if previous != name:
                raise RowError(
                    f"{file}: sample_id: {image.sample.sample_id!r} is in {previous} too",
                    code="duplicate-id",
                )
        earlier: list[CheckedImage] = []
        if inputs.before_rules is not None:
            old = CheckerRules.load(inputs.before_rules)
            earlier = check_file(before.get(name, file), old, inputs.size)
        methods.append(CheckedMethod(name, file, rules, checked, earlier))
    curves, left_out = _human(methods, inputs.labels)
    tables = {
        "main": [_main(m) for m in methods],
        "abstention": [_abstention(m) for m in methods],
        "prompts": [_prompts(m) for m in methods],
        "pairs": [_pairs(m) for m in methods],
        "relations": [_relations(m) for m in methods],
        "calibration": [row for m in methods if m.before for row in _calibration(m)],
        "audit": [_audit(name, analysis) for name, analysis in curves.items()],
        "risk_coverage": [
            row for name, analysis in curves.items() for row in _risks(name, analysis)
        ],
    }
    return CheckReport(methods, {n: t for n, t in tables.items() if t}, curves, left_out)


def as_csv(table: PlainTable) -> str:
    """Rows as CSV; None is an empty field."""
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(table[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows({k: _plain(v) for k, v in row.items()} for row in table)
    return text.getvalue()


def _plain(value: Any) -> Any:
    return "" if value is None else round(value, 10) if isinstance(value, float) else value


def _named(specs: Sequence[str]) -> dict[str, Path]:
    files: dict[str, Path] = {}
    for spec in specs:
        name, _, file = spec.rpartition("=")
        if not name or "/" in name:
            raise UsageError(f"{spec!r} has no name: write METHOD=FILE", code="missing-option")
        if slugify(name) in map(slugify, files):
            raise UsageError(
                f"method {name!r} occurs twice, or differs only in punctuation", code="duplicate-id"
            )
        files[name] = Path(file)
    return files


def _main(method: CheckedMethod) -> dict[str, Any]:
    """T5: rates of passed and of decided images and the confidence, with intervals over prompts."""
    metrics = method.metrics
    row: dict[str, Any] = {"method": method.name, "images": metrics["total_samples"]}
    for name, (value, low, high) in _rates(method.checked).items():
        row |= {name: value, f"{name}_low": low, f"{name}_high": high}
    return {**row, "mean_confidence (0 to 1)": metrics["mean_confidence"]}


def _rates(checked: Sequence[CheckedImage]) -> dict[str, tuple[float | None, ...]]:
    """Each rate with its 95 % interval over prompts, whose images are alike, in percent."""
    prompts = np.array([image.sample.prompt_id for image in checked])
    rates = {}
    for name, worth in _WORTH.items():
        values = [worth.get(image.verdict, math.nan) for image in checked]
        (rate,) = cluster_interval(values, prompts, (0, 1))
        rates[name] = tuple(_percent(value) for value in (rate.value, *rate.interval))
    return rates


def _percent(value: float | None) -> float | None:
    return None if value is None or math.isnan(value) else 100 * float(value)


def _abstention(method: CheckedMethod) -> dict[str, Any]:
    """T6: why images are undecidable, of all images."""
    metrics = method.metrics
    n = metrics["total_samples"]
    counts = metrics["undecidable_reasons"]
    return {
        "method": method.name,
        "undecidable": _percent(metrics["undecidable_rate"]),
        **{reason: _percent(counts.get(reason, 0) / n) if n else None for reason in REASONS},
    }


def _prompts(method: CheckedMethod) -> dict[str, Any]:
    """T7: shares of prompts with at least one image that passes, and with all images passing."""
    metrics = method.metrics
    best, every = metrics.get("best_of_k", {}), metrics.get("all_of_k", {})
    return {
        "method": method.name,
        "prompts": metrics.get("prompts", 0),
        "images_per_prompt": metrics.get("images_per_prompt", 0),
        "best_of_k": _percent(best.get("pass_rate")),
        "all_of_k": _percent(every.get("pass_rate")),
    }


def _pairs(method: CheckedMethod) -> dict[str, Any]:
    """Counterfactual pairs: an arrangement said in both ways, best of K."""
    counts = method.metrics.get("counterfactual_pairs", {})
    n = counts.get("count", 0)
    shares = {name: _percent(counts[name] / n) if n else None for name in PAIRS}
    return {"method": method.name, "pairs": n, **shares}


def _relations(method: CheckedMethod) -> dict[str, Any]:
    by_relation = method.metrics["by_relation"]
    return {
        "method": method.name,
        **{
            relation: _percent(by_relation.get(relation, {}).get("pass_rate_overall"))
            for relation in RELATIONS
        },
    }


def _calibration(method: CheckedMethod) -> PlainTable:
    """Before and after calibration, and the change."""
    old, new = (_calibrated(summarize(images)) for images in (method.before, method.checked))
    rows = []
    for name, after in new.items():
        before = old[name]
        change = None if before is None or after is None else after - before
        row = {"method": method.name, "number": name, "before": before, "after": after}
        rows.append({**row, "change": change})
    return rows


def _calibrated(metrics: Mapping[str, Any]) -> dict[str, float | None]:
    best = metrics.get("best_of_k", {})
    return {
        "pass": _percent(metrics["pass_rate_overall"]),
        "coverage": _percent(metrics["coverage"]),
        "pass_decided": _percent(metrics["pass_rate_conditional"]),
        "prompt_pass": _percent(best.get("pass_rate")),
        "mean_confidence (0 to 1)": metrics["mean_confidence"],
    }


def _human(
    methods: Sequence[CheckedMethod], labels: Path | None
) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """Checker against human annotators, for all methods together and for each with labels."""
    if labels is None:
        return {}, []
    all_labels = read_labels(labels)
    rows = {m.name: [image.to_row() for image in m.checked] for m in methods}
    sample_ids = {row["sample_id"] for method_rows in rows.values() for row in method_rows}
    matched = [label for label in all_labels if label.case in sample_ids]
    analyses = {
        "all": analyze([row for method_rows in rows.values() for row in method_rows], matched)
    }
    for name, method_rows in rows.items():
        samples = {row["sample_id"] for row in method_rows}
        of_method = [label for label in matched if label.case in samples]
        if of_method and len(methods) > 1:
            analyses[name] = analyze(method_rows, of_method)
    return analyses, sorted({label.case for label in all_labels} - sample_ids)


def _audit(name: str, analysis: Mapping[str, Any]) -> dict[str, Any]:
    """Reliability of the verdicts by the labels; shares in [0, 1]."""
    plain = analysis["risk"]["human_undecidable_excluded"]
    counted = analysis["risk"]["human_undecidable_counted"]
    ends = analysis["kappa"]["interval"] or (None, None)
    return {
        "method": name,
        "labeled": analysis["labeled"],
        "kappa": analysis["kappa"]["value"],
        "kappa_low": ends[0],
        "kappa_high": ends[1],
        "coverage": plain["coverage"],
        "risk": plain["risk"],
        "evaluated": plain["evaluated"],
        "risk_undecidable_counted": counted["risk"],
        "evaluated_undecidable_counted": counted["evaluated"],
    }


def _risks(name: str, analysis: Mapping[str, Any]) -> PlainTable:
    return [
        {"method": name, "risk_of": kind, **point}
        for kind, curve in analysis["risk_coverage"].items()
        for point in curve["points"]
    ]
