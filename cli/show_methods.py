"""Prints what methods against the prior do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .console import console, print_json, table


def print_best_of(found: Mapping[str, Any], as_json: bool) -> None:
    """Prints scores over N, by who chose and by each other judge; or as JSON."""
    if as_json:
        print_json(found)
        return
    judges = list(found["curve"][0]["others"])
    shown = table("N", "by who chose", *(part for j in judges for part in (j, "95 %")), "cases")
    for point in found["curve"]:
        others = [
            part
            for j in judges
            for part in (
                _number(point["others"][j], 3),
                _ends(point["other_intervals"][j], 3),
            )
        ]
        shown.add_row(str(point["n"]), _number(point["chosen"], 3), *others, str(point["cases"]))
    console(width=120).print(shown)


def print_tuned(found: Mapping[str, Any], as_json: bool) -> None:
    """Prints what was trained and the validation curve; or as JSON."""
    if as_json:
        print_json(found)
        return
    recipe = found["recipe"]
    print(
        f"{found['steps']:,} steps on {found['images']:,} images with {recipe['optimizer']}, "
        f"rank {recipe['rank']}, learning rate {recipe['learning_rate']:g}"
    )
    if not found["validation"]:
        return
    shown = table("step", "Hom", "95 %", "first left", "first right", "left out")
    for point in found["validation"]:
        shown.add_row(
            str(point["step"]),
            _number(point["hom"]),
            _ends(point["interval"]),
            str(point["first_left"]),
            str(point["first_right"]),
            _counts(point["excluded"]),
        )
    console(width=120).print(shown)


def _number(value: float | None, digits: int = 1) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def _ends(interval: list[float | None], digits: int = 1) -> str:
    if interval[0] is None:
        return "-"
    return " to ".join(_number(end, digits) for end in interval)


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{number} {label}" for label, number in counts.items())
