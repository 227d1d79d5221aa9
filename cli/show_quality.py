"""Prints image quality beside bias."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .console import UNPROVEN, WRONG, console, new_table, print_json, print_note

if TYPE_CHECKING:
    from rich.table import Table

    from ..eval.engine.image_scores import ScoreLog, ScoringTally
    from ..eval.results.changes import QualityReport
    from ..eval.results.distances import SetDistance
    from ..eval.results.gate import Gate, ImagePairs


def print_scoring(run: Path, scored: Sequence[tuple[ScoreLog, ScoringTally]]) -> None:
    """Prints the counts of scored, known and failed images of a run."""
    for log, tally in scored:
        counts = [f"{tally.scored:,} scored"]
        counts += [f"{tally.recorded:,} were there"] if tally.recorded else []
        counts += [f"{tally.failed:,} failed"] if tally.failed else []
        frames = f" (frames {log.choice.text} of {tally.clips:,} clips)" if tally.clips else ""
        print_note(f"{run}, {log.name}: {'; '.join(counts)}{frames}")
        if tally.first_error:
            print_note(f"the first failure: {tally.first_error}")


def print_ratings(ratings: Mapping[str, Any], as_json: bool) -> None:
    """Prints people's ratings: each field's means, and every two runs; or as JSON."""
    if as_json:
        print_json(ratings)
        return
    from ..eval.people.ratings import interval_of
    from ..eval.stats.estimate import interval_text, p_text, value_text

    output = console(width=140)
    output.print(_annotators(ratings), highlight=False)
    for field, field_ratings in ratings["fields"].items():
        if "runs" in field_ratings:
            columns = ("mean", "95 % CI", "images")
            table = new_table("run", *columns, numbers=columns, title=f"{field}, 1 to 7")
            for run, mean in field_ratings["runs"].items():
                value = value_text(_number(mean["mean"]), "1", "-")
                table.add_row(run, value, interval_text(interval_of(mean), "1"), f"{mean['n']:,}")
            output.print(table)
        name = "difference" if "runs" in field_ratings else "preference"
        votes = () if "runs" in field_ratings else ("first better", "even", "second better")
        columns = (*votes, name, "95 % CI", "Wilcoxon p", "Holm", "cases", "clusters")
        title = (
            f"{field}: second - first" if "runs" in field_ratings else f"{field}: second over first"
        )
        table = new_table("first", "second", *columns, numbers=columns, title=title)
        for pair in field_ratings["pairs"]:
            table.add_row(
                pair["first"],
                pair["second"],
                *(f"{pair[vote.replace(' ', '_')]:,}" for vote in votes),
                value_text(_number(pair[name]), "1", "-"),
                interval_text(interval_of(pair), "1"),
                p_text(_number(pair["p_value"])),
                p_text(_number(pair.get("adjusted"))),
                f"{pair['n']:,}",
                f"{pair['clusters']:,}",
            )
        if field_ratings["pairs"]:
            output.print(table)


def _annotators(ratings: Mapping[str, Any]) -> str:
    labels = ", ".join(
        f"{who} {n:,} of {ratings['items']:,}" for who, n in ratings["labels"].items()
    )
    alpha = ", ".join(
        f"{name} {'-' if value is None else f'{value:.3f}'}"
        for name, value in ratings["alpha"].items()
    )
    return f"labeled: {labels}\nKrippendorff's alpha (ordinal): {alpha}"


def _number(value: float | None) -> float:
    return math.nan if value is None else value


def print_quality(report: QualityReport, distances: Sequence[SetDistance], as_json: bool) -> None:
    """Prints every run's scores, the changes against the first run, and distances to its images."""
    if as_json:
        from ..eval.core import without_nan

        sets = without_nan(distances)
        print_json({**report.to_json(), "distances": sets})
        return
    from ..eval.results.marks import marked_value
    from ..eval.results.tables import exclusions_text
    from ..eval.stats.estimate import interval_text

    output = console(width=140 if len(report.columns) < 11 else 180)
    numbers = ("value", "95 % CI", "n")
    title = f"{report.suite}: bias and quality"
    table = new_table("run", "score", *numbers, "excluded", numbers=numbers, title=title)
    for run, scores in report.runs.items():
        for score in scores:
            table.add_row(
                run,
                score.name,
                marked_value(score),
                interval_text(score.interval, score.unit),
                f"{score.n:,}",
                exclusions_text(score),
            )
    output.print(table)
    if report.changes:
        output.print(_changes(report))
    for legend in report.legends:
        output.print(legend, style="dim", highlight=False)
    if distances:
        output.print(_distances(distances))
        for warning in dict.fromkeys(
            distance.warning for distance in distances if distance.warning
        ):
            output.print(warning, style="dim", highlight=False)


def print_gate(gate: Gate, as_json: bool) -> None:
    """Prints whether two builds draw alike. Exits with 1 where they differ, with 3 if undecided."""
    from ..eval.results.gate import DIFFERENT
    from ..eval.stats.equivalence import EQUIVALENT

    if as_json:
        print_json(gate.to_json())
    else:
        _show_gate(gate)
    if gate.decision != EQUIVALENT:
        raise SystemExit(WRONG if gate.decision == DIFFERENT else UNPROVEN)


def _show_gate(gate: Gate) -> None:
    from ..eval.stats.equivalence import UNDECIDED
    from ..eval.stats.estimate import interval_text, p_text, value_text

    output = console(width=140)
    numbers = (gate.base, gate.run, "difference", "95 % CI", "n", "p")
    title = f"{gate.suite}: {gate.run} against {gate.base}, within ±{gate.margin:g} points?"
    table = new_table("score", "judge", *numbers, "verdict", numbers=numbers, title=title)
    for drift in gate.drifts:
        table.add_row(
            drift.score,
            drift.judge,
            *(value_text(value, "%") for value in (drift.before, drift.after, drift.value)),
            interval_text(drift.interval, "%"),
            f"{drift.n:,}",
            p_text(drift.claim.p_value),
            drift.claim.verdict,
        )
    output.print(table)
    output.print(_images_text(gate.images), highlight=False)
    more = ""
    if gate.decision == UNDECIDED:
        more = ": the rows are too few"
        if not math.isinf(gate.factor):
            more += f"; about {gate.factor:.1f} times as many would decide, if the differences stay"
    output.print(f"{gate.decision}{more}", highlight=False)


def _images_text(images: ImagePairs) -> str:
    from ..eval.stats.estimate import value_text

    text = (
        f"images: {images.both:,} of the same prompt and seed, {images.same_bytes:,} with the same "
        f"bytes; pixels of {images.compared:,} compared, {images.same_pixels:,} the same"
    )
    if images.psnr.n:
        text += f"; PSNR where they differ {images.psnr.text('%')} dB"
    if not math.isnan(images.ssim.value):
        text += f"; SSIM {images.ssim.text('1')}, least {value_text(images.least_ssim, '1')}"
    elif images.psnr.n:
        from ..extras import install_command

        text += f"; SSIM needs scikit-image: {install_command('gate')}"
    excluded = ", ".join(f"{reason} {n:,}" for reason, n in images.excluded.items())
    return f"{text}; not compared: {excluded}" if excluded else text


def _distances(distances: Sequence[SetDistance]) -> Table:
    from ..eval.stats.estimate import interval_text, value_text

    numbers = ("value", "95 % CI", "images", "dimensions")
    title = f"distance of sets of images to those of {distances[0].base}"
    table = new_table("run", "", "features by", *numbers, numbers=numbers, title=title)
    for distance in distances:
        table.add_row(
            distance.run,
            distance.name if math.isnan(distance.bandwidth) else f"rke ({distance.bandwidth:g})",
            distance.extractor,
            value_text(distance.value, "1"),
            interval_text(distance.interval, "1"),
            f"{distance.n:,}",
            f"{distance.dimensions:,}",
        )
    return table


def _changes(report: QualityReport) -> Table:
    from ..eval.results.changes import NUMBERS

    table = new_table(*report.columns, numbers=NUMBERS, title=report.title)
    for row in report.rows():
        table.add_row(*row)
    return table
