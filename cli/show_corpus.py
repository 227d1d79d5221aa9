"""Prints the results of mining, flip sets, controls and audits of corpora."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

from .console import console, new_table, print_json, print_note

if TYPE_CHECKING:
    from ..corpus_analysis.alignment.control.result import BoxControl
    from ..corpus_analysis.alignment.flips import FlipSet
    from ..corpus_analysis.alignment.rates import Alignment
    from ..corpus_analysis.mining.accuracy import PairShare, TruthReport
    from ..corpus_analysis.mining.mine_source import Funnel
    from ..corpus_analysis.pipeline import Finished
    from ..eval.stats.estimate import Estimate


def print_mined(finished: Finished, out: Path) -> None:
    """Prints the counts of each stage, the reasons for drops, and the layout of the images."""
    funnel, output = finished.funnel, console(width=100)
    numbers = ("captions", "share")
    table = new_table("stage", *numbers, numbers=numbers, title=f"captions in {out}")
    for name, count in _stages(funnel):
        table.add_row(name, f"{count:,}", f"{count / max(funnel.rows, 1):.2%}")
    output.print(table)
    output.print(f"{funnel.pairs:,} pairs; {funnel.model}, {funnel.speedup}")
    if finished.images is not None:
        reasons = ", ".join(
            f"{name} {count:,}" for name, count in finished.images["reasons"].items()
        )
        output.print(f"{finished.images['addresses']:,} images: {reasons}")
        output.print(f"{finished.images['pairs_distinct']:,} pairs with an image of their own")
    if finished.alignment is not None:
        output.print(_alignment(finished.alignment))
        output.print(f"page: {out / 'index.html'}")
    for file, damage in funnel.damaged.items():
        print_note(f"{file} is damaged, and mined without what is lost: {damage}")
    for warning in finished.warnings:
        print_note(warning)


def _stages(funnel: Funnel) -> list[tuple[str, int]]:
    dropped = [(f"  dropped: {reason}", count) for reason, count in funnel.dropped.items() if count]
    return [
        ("read", funnel.rows),
        *dropped,
        ("passed the quality gate", funnel.passed),
        ("passed the prefilter", funnel.candidates),
        ("parsed", funnel.parsed),
        ("  parser failed", funnel.errors),
        ("with a pair", funnel.captions),
    ]


def _alignment(alignment: Alignment) -> str:
    rate = alignment.single_probe
    return (
        f"{alignment.funnel['valid']:,} show the two side by side; first-mentioned on the left in "
        f"{rate.aligned:,} of {rate.n:,}: {_share(rate.rate)}, 95 % {_range(rate.by_pair)} for "
        f"other pairs of things, {_range(rate.by_image)} for other images of these pairs"
    )


def print_flips(flip_set: FlipSet, out: Path) -> None:
    """Prints the number of pairs in each category, and the reasons for drops."""
    for name, count in flip_set.categories.items():
        print(f"{count:6,}  {name}")
    dropped = ", ".join(
        f"{reason} {count:,}" for reason, count in flip_set.dropped.items() if count
    )
    print(f"{flip_set.pairs:,} pairs, {2 * flip_set.pairs:,} images in {out}; not taken: {dropped}")


def print_control(control: BoxControl, out: Path, as_json: bool) -> None:
    """Prints the rate of every subset and the bias of a judge; or as JSON."""
    from ..corpus_analysis.alignment.control.subsets import SUBSETS

    if as_json:
        print_json(control.to_json())
        return
    # Other images that name the same pairs, and other pairs.
    columns = ("left", "n", "images", "95 %, these pairs", "95 %, other pairs", "guesses")
    table = new_table("pairs", *columns, numbers=columns, title="first-mentioned on the left")
    for name, rate in control.subsets.items():
        intervals = _range(rate.by_image), _range(rate.by_pair)
        counts = f"{rate.n:,}", f"{rate.images:,}", *intervals, f"{rate.guessed:,}"
        table.add_row(SUBSETS[name].says, _share(rate.rate), *counts)
    output = console(width=120)
    output.print(table)
    funnel = ", ".join(f"{name} {count:,}" for name, count in control.funnel.items())
    output.print(funnel, highlight=False)
    if control.judge is not None:
        bias = control.judge
        output.print(
            f"the judge says {_share(bias.by_judge.value)} of {bias.by_judge.n:,}, the boxes "
            f"{_share(bias.by_boxes.value)}; it adds {100 * bias.bias.value:+.1f} points "
            f"({_range(bias.bias.interval)}, for other images of these pairs), its four probes "
            f"{100 * bias.four_probes.value:+.1f}; with {bias.unboxed.n:,} pairs without boxes, "
            f"corrected: {_share(bias.corrected.value)} ({_range(bias.corrected.interval)})"
        )
    output.print(f"page: {out / 'index.html'}")


def _share(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.1%}"


def _range(interval: tuple[float, float]) -> str:
    low, high = interval
    return "-" if math.isnan(low) else f"{low:.1%} to {high:.1%}"


def print_truth(report: TruthReport, as_json: bool) -> None:
    """Prints precision and recall of mined pairs, in the sample and the sources; or as JSON."""
    if as_json:
        from ..eval.core import without_nan

        print_json(without_nan(report))
        return
    output = console(width=120)
    columns = ("captions", "right", "precision", "found", "recall", "open")
    titles = {"sample": report.sampled, "sources, by weight": report.weighted}
    for title, rows in titles.items():
        table = new_table("group", *columns, numbers=columns, title=f"{report.half} half: {title}")
        for row in rows:
            rates = (*_counted(row.precision), *_counted(row.recall))
            table.add_row(row.group, f"{row.captions:,}", *rates, f"{row.open:,}")
        output.print(table)
    for name, mistakes in {"wrong": report.wrong, "missed": report.missed}.items():
        for digest, pair in mistakes:
            print(f"{name}  {digest}  {pair}")
    output.print(f"{report.model}; open: readers may disagree, neither right, wrong nor missed")
    if report.missing:
        print_note(f"{report.missing} captions of this half are in none of the files")


def _counted(share: PairShare) -> tuple[str, str]:
    return f"{share.hits} of {share.n}", _percent(share) if share.n else "-"


def _percent(share: Estimate) -> str:
    """Returns a share in [0, 1] as percent, with its interval."""
    low, high = share.interval
    return f"{share.value:.1%} ({low:.1%} to {high:.1%})"
