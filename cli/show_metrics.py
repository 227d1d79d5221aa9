"""Prints metrics, and how far they agree with people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .console import print_json


def print_metrics(metrics: Mapping[str, Any], as_json: bool) -> None:
    """Prints nested metrics, one number a line with its dotted name; or as JSON."""
    if as_json:
        print_json(metrics)
        return
    for name, value in _flattened(metrics, ""):
        print(f"{name:<44} {_shown(value)}")


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
