"""Metrics of checked runs as Markdown tables that say where each number comes from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .decide import REASONS
from .summary import PAIRS, RELATIONS


def markdown(runs: Mapping[str, Mapping[str, Any]]) -> str:
    """Main, abstention, prompt and pair tables of named runs (`metrics.json`), with provenance.

    A number that nothing defines is a dash. Rates in %.
    """
    tables = [
        _table(
            "Images",
            ("images", "pass", "coverage", "pass of decided", "mean confidence"),
            {
                name: (
                    str(one["total_samples"]),
                    _percent(one["pass_rate_overall"]),
                    _percent(one["coverage"]),
                    _percent(one["pass_rate_conditional"]),
                    "-" if one["mean_confidence"] is None else f"{one['mean_confidence']:.3f}",
                )
                for name, one in runs.items()
            },
        ),
        _table(
            "Pass by relation",
            RELATIONS,
            {
                name: [
                    _percent(one["by_relation"].get(relation, {}).get("pass_rate_overall"))
                    for relation in RELATIONS
                ]
                for name, one in runs.items()
            },
        ),
        _table(
            "Undecidable, by reason",
            ("all", *REASONS),
            {
                name: [
                    _percent(one["undecidable_rate"]),
                    *(
                        _share(one["undecidable_reasons"].get(reason, 0), one["total_samples"])
                        for reason in REASONS
                    ),
                ]
                for name, one in runs.items()
            },
        ),
        _table(
            "Prompts and counterfactual pairs",
            ("prompts", "best of K", "all of K", "pairs", *PAIRS),
            {name: _prompts(one) for name, one in runs.items()},
        ),
        _table(
            "Where the numbers come from",
            ("detections (SHA-256)", "margin", "detection score", "stability assumed for"),
            {
                name: (
                    one["detections_sha256"][:16],
                    str(one["rules"]["geometry"]["margin"]),
                    str(one["rules"]["thresholds"]["detection_score"]),
                    str(one["assumed_stability"]),
                )
                for name, one in runs.items()
            },
        ),
    ]
    return "\n".join(tables)


def _prompts(one: Mapping[str, Any]) -> list[str]:
    if "best_of_k" not in one:
        return ["0", *"-" * (3 + len(PAIRS))]
    pairs = one["counterfactual_pairs"]
    return [
        str(one["prompts"]),
        _percent(one["best_of_k"]["pass_rate"]),
        _percent(one["all_of_k"]["pass_rate"]),
        str(pairs["count"]),
        *(_share(pairs[name], pairs["count"]) for name in PAIRS),
    ]


def _table(title: str, columns: Any, rows: Mapping[str, Any]) -> str:
    lines = [
        f"| {title} | {' | '.join(columns)} |",
        "| --- |" + " ---: |" * len(columns),
        *(f"| {name} | {' | '.join(cells)} |" for name, cells in rows.items()),
    ]
    return "\n".join(lines) + "\n"


def _share(part: int, whole: int) -> str:
    return _percent(part / whole if whole else None)


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.2f}"
