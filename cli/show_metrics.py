"""Prints metrics, and their agreement with people."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .console import console, new_table, print_json


def print_metrics(metrics: Mapping[str, Any], as_json: bool) -> None:
    """Prints nested metrics, one number a line with its dotted name; or as JSON."""
    if as_json:
        print_json(metrics)
        return
    for name, value in _flattened(metrics, ""):
        print(f"{name:<44} {_metric_text(value)}")


def print_analysis(analysis: Mapping[str, Any], as_json: bool) -> None:
    """Prints a checker against people: the counts first, then every other number; or as JSON."""
    if as_json:
        print_json(analysis)
        return
    counted, kappa = analysis["confusion"], analysis["kappa"]
    title = f"checker (rows) and people, {analysis['labeled']:,} images"
    _print_matrix(title, counted["labels"], counted["counts"])
    print(f"kappa {_estimate(kappa['value'], kappa['interval'])}")
    _print_warning(kappa["warning"])
    other_metrics = {
        name: value for name, value in analysis.items() if name not in ("confusion", "kappa")
    }
    print_metrics(other_metrics, False)
    for pair in analysis["annotators"]["pairs"]:
        value = _estimate(pair["kappa"], pair["interval"])
        print(f"kappa of {pair['first']} and {pair['second']}: {value}, {pair['n']:,} images")
        _print_warning(pair["warning"])


def print_selection(selection: Mapping[str, Any], as_json: bool) -> None:
    """Prints each judge against people, pooled, by metric and by run; or as JSON."""
    if as_json:
        from ..eval.core import without_nan

        print_json(without_nan(selection))
        return
    for note in dict.fromkeys(note for c in selection.values() for note in c["notes"]):
        print(f"note: {note}")
    for judge, comparison in selection.items():
        for confusion in comparison["confusions"]:
            kappa = _estimate(confusion["kappa"], confusion["interval"])
            title = f"{judge}, {confusion['name']}: people (rows) and judge, kappa {kappa}"
            _print_matrix(title, confusion["labels"], confusion["matrix"])
            _print_warning(confusion["warning"])
        scores = comparison["scores"]
        if scores is None:
            print(f"{judge}: images of these runs have no score of their own")
            continue
        print(
            f"{judge}: the judge's score - people's, {scores['n']:,} images: mean "
            f"{_estimate(scores['mean'], scores['interval'])}, limits of agreement "
            f"{_estimate(None, scores['limits'])}, within 0.125: {scores['within_0.125']:.1%}"
        )
        most = max(count for _, count in scores["histogram"])
        for edge, count in scores["histogram"]:
            if count:
                print(f"{edge:+7.3f} {count:>6,} {'#' * math.ceil(40 * count / most)}")


def _print_matrix(title: str, labels: Sequence[str], counts: Sequence[Sequence[int]]) -> None:
    table = new_table("", *labels, numbers=labels, title=title)
    for label, row in zip(labels, counts, strict=True):
        table.add_row(label, *(f"{count:,}" for count in row))
    console(width=120).print(table)


def _print_warning(warning: str) -> None:
    if warning:
        print(f"  {warning}")


def _estimate(value: float | None, interval: Sequence[float] | None) -> str:
    """Returns a number with its interval; a dash if it is undefined."""
    number = "" if value is None else "-" if math.isnan(value) else f"{value:.3f}"
    if interval is None or math.isnan(interval[0]):
        return number or "-"
    return f"{number} ({interval[0]:.3f} to {interval[1]:.3f})".strip()


def _metric_text(value: object) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_metric_text, value))}]"
    return f"{value:.4f}" if isinstance(value, float) else str(value)


def _flattened(metrics: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, object]]:
    for name, value in metrics.items():
        if isinstance(value, Mapping):
            yield from _flattened(value, f"{prefix}{name}.")
        elif isinstance(value, list) and value and isinstance(value[0], str):
            yield from ((f"{prefix}{name}", item) for item in value)
        elif not isinstance(value, list) or not any(isinstance(v, (dict, list)) for v in value):
            yield prefix + name, "-" if value is None else value


def print_agreement(rows: Sequence[Mapping[str, Any]], as_json: bool) -> None:
    """Prints each metric's agreement with people, each number with its interval; or as JSON."""
    if as_json:
        print_json(rows)
        return
    for row in rows:
        left_out = f"{row['unscored']} without a score, {row['undecided']} undecided by people"
        sampled = f"{row['n']} images"
        if row["clustered_by"]:
            sampled += f" in {row['clusters']} clusters by {row['clustered_by']}"
        print(f"{row['metric']}: {sampled} ({left_out})")
        if row["n"]:
            people, metric = row["yes"]["people"], row["yes"]["metric"]
            print(f"  people pass {people:.4f} of them, the metric {metric:.4f}")
        for name, estimate in row["estimates"].items():
            value, ends = estimate["value"], estimate["interval"]
            number = "-" if value is None else f"{value:.4f}"
            between = f"[{ends[0]:.4f}, {ends[1]:.4f}]" if ends else ""
            print(f"  {name:<12} {number:>8} {between:<18} n {estimate['n']}")
        for warning in row["warnings"]:
            _print_warning(warning)
    if not rows[0]["clustered_by"]:
        print(
            "Intervals take images as independent. If several share a prompt, name the column that "
            "says which: --clusters COLUMN"
        )
