"""Prints the effects of methods against the prior, and what learned judges answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .console import console, new_table, print_json


def print_best_of(result: Mapping[str, Any], as_json: bool) -> None:
    """Prints scores over N, by the judge that chose and by each other judge; or as JSON."""
    if as_json:
        print_json(result)
        return
    judges = list(result["curve"][0]["others"])
    table = new_table(
        "N", "by who chose", *(cell for j in judges for cell in (j, "95 % CI")), "cases"
    )
    for point in result["curve"]:
        other_cells = [
            cell
            for j in judges
            for cell in (
                _number(point["others"][j], 3),
                _ends(point["other_intervals"][j], 3),
            )
        ]
        table.add_row(
            str(point["n"]), _number(point["chosen"], 3), *other_cells, str(point["cases"])
        )
    console(width=120).print(table)


def print_tuned(result: Mapping[str, Any], as_json: bool) -> None:
    """Prints the recipe of a training and its validation curve; or as JSON."""
    if as_json:
        print_json(result)
        return
    recipe = result["recipe"]
    print(
        f"{result['steps']:,} steps on {result['images']:,} images with {recipe['optimizer']}, "
        f"rank {recipe['rank']}, learning rate {recipe['learning_rate']:g}"
    )
    if not result["validation"]:
        return
    table = new_table("step", "Hom", "95 % CI", "first left", "first right", "excluded")
    for point in result["validation"]:
        table.add_row(
            str(point["step"]),
            _number(point["hom"]),
            _ends(point["interval"]),
            str(point["first_left"]),
            str(point["first_right"]),
            _counts(point["excluded"]),
        )
    console(width=120).print(table)


def print_learned_judge(about: Mapping[str, Any], as_json: bool) -> None:
    """Prints what a learned judge answers where the truth is known, in percent; or all as JSON."""
    from ..eval.stats.estimate import share_of

    if as_json:
        print_json(about)
        return
    answers = ("first_left", "first_right", "invalid")
    table = new_table("image", "truth", *answers, "right, 95 %", "n")
    for row in about["answers"]:
        right = share_of(row[row["truth"]], row["n"])
        shares = (_number(100 * row[answer] / row["n"]) for answer in answers)
        ends: list[float | None] = [100 * end for end in right.interval]
        table.add_row(row["condition"], row["truth"], *shares, _ends(ends), str(row["n"]))
    console(width=120).print(table)


def _number(value: float | None, digits: int = 1) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def _ends(interval: list[float | None], digits: int = 1) -> str:
    if interval[0] is None:
        return "-"
    return " to ".join(_number(end, digits) for end in interval)


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{number} {label}" for label, number in counts.items())
