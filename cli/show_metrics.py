"""Prints metrics, and how far they agree with people."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from .console import console, print_json, table


def print_metrics(metrics: Mapping[str, Any], as_json: bool) -> None:
    """Prints nested metrics, one number a line with its dotted name; or as JSON."""
    if as_json:
        print_json(metrics)
        return
    for name, value in _flattened(metrics, ""):
        print(f"{name:<44} {_shown(value)}")


def print_analysis(found: Mapping[str, Any], as_json: bool) -> None:
    """Prints a checker against people: the counts first, then every other number; or as JSON."""
    if as_json:
        print_json(found)
        return
    counted, kappa = found["confusion"], found["kappa"]
    title = f"checker (rows) and people, {found['labeled']:,} images"
    _print_matrix(title, counted["labels"], counted["counts"])
    print(f"kappa {_estimate(kappa['value'], kappa['interval'])}")
    rest = {name: value for name, value in found.items() if name not in ("confusion", "kappa")}
    print_metrics(rest, False)
    for pair in found["annotators"]["pairs"]:
        value = _estimate(pair["kappa"], pair["interval"])
        print(f"kappa of {pair['first']} and {pair['second']}: {value}, {pair['n']:,} images")


def print_selection(found: Mapping[str, Any], as_json: bool) -> None:
    """Prints each judge against people, pooled, by metric and by run; or as JSON."""
    if as_json:
        from ..eval.core import without_nan

        print_json(without_nan(found))
        return
    for judge, told in found.items():
        for one in told["confusions"]:
            kappa = _estimate(one["kappa"], one["interval"])
            title = f"{judge}, {one['name']}: people (rows) and judge, kappa {kappa}"
            _print_matrix(title, one["labels"], one["matrix"])
        scores = told["scores"]
        if scores is None:
            print(f"{judge}: images of these runs have no score of their own")
            continue
        print(
            f"{judge}: people's score - the judge's, {scores['n']:,} images: mean "
            f"{_estimate(scores['mean'], scores['interval'])}, limits of agreement "
            f"{_estimate(None, scores['limits'])}, within 0.125: {scores['within_0.125']:.1%}"
        )
        most = max(count for _, count in scores["histogram"])
        for edge, count in scores["histogram"]:
            if count:
                print(f"{edge:+7.3f} {count:>6,} {'#' * math.ceil(40 * count / most)}")


def print_tables(
    tables: Mapping[str, Sequence[Mapping[str, Any]]], page: Path, as_json: bool
) -> None:
    """Prints tables of rows, but not the points of curves; or all as JSON."""
    if as_json:
        print_json(tables)
        return
    for name, rows in tables.items():
        if name == "risk_coverage":
            continue
        columns = [column.replace("_", " ") for column in rows[0]]
        shown = table(*columns, numbers=columns[1:], title=name)
        for row in rows:
            shown.add_row(*(_cell(value) for value in row.values()))
        console(width=180).print(shown)
    print(page)


def _cell(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def _print_matrix(title: str, labels: Sequence[str], counts: Sequence[Sequence[int]]) -> None:
    shown = table("", *labels, numbers=labels, title=title)
    for label, row in zip(labels, counts, strict=True):
        shown.add_row(label, *(f"{count:,}" for count in row))
    console(width=120).print(shown)


def _estimate(value: float | None, interval: Sequence[float] | None) -> str:
    """A number with its interval; a dash for what is undefined."""
    known = "" if value is None else "-" if math.isnan(value) else f"{value:.3f}"
    if interval is None or math.isnan(interval[0]):
        return known or "-"
    return f"{known} ({interval[0]:.3f} to {interval[1]:.3f})".strip()


def _shown(value: object) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_shown, value))}]"
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
        print(f"{row['metric']}: {row['n']} images ({left_out})")
        for name, estimate in row["estimates"].items():
            value, ends = estimate["value"], estimate["interval"]
            shown = "-" if value is None else f"{value:.4f}"
            between = f"[{ends[0]:.4f}, {ends[1]:.4f}]" if ends else ""
            print(f"  {name:<12} {shown:>8} {between}")
