"""The page of the control: one HTML file, without scripts or external files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from typing import TYPE_CHECKING

from ..page import STYLE, interval, percent
from .subsets import SUBSETS, LeftFirst

if TYPE_CHECKING:
    from .box_control import BoxControl
    from .judge_bias import JudgeHabit, JudgeMeasure

_MEASURES = {
    "said": "first-mentioned on the left, says the judge",
    "true": "the same pairs, by the boxes",
    "habit": "what the judge adds",
    "four_probes": "what the mean of its four probes adds",
    "agrees": "agrees with the boxes",
    "left_if_left": "says left where it is left",
    "left_if_right": "says left where it is right",
    "unboxed": "images without boxes, says the judge",
    "corrected": "all images, corrected by the boxes (PPI++)",
}


def render_control(found: BoxControl, title: str) -> str:
    """The whole page as HTML; names from files are escaped."""
    rates = {SUBSETS[name].says: rate for name, rate in found.subsets.items()}
    parts = [
        f"<h1>{escape(title)}: do people name the left one first?</h1>",
        "<p>Captions and boxes by people, without a language model. Without an order effect, half "
        "of the first-mentioned would be on the left. The rate depends on which pairs count and "
        "which box a word gets, so all of these are to be read together.</p>",
        _rates(rates),
        "<h2>By what is said, boxes that the words single out</h2>",
        *(f"<h3>{escape(name)}</h3>{_rates(part)}" for name, part in found.groups.items()),
        "<h2>From captions to boxes</h2>",
        _table(("stage", "count"), [(k, f"{v:,}") for k, v in found.funnel.items()]),
        "<h2>How boxes were chosen</h2>",
        _table(("way", "boxes"), [(k, f"{v:,}") for k, v in found.matched.items()]),
        '<p class="dim">single: the only one of its class; group: all, as the words are plural; '
        "touching: the only one that touches the other thing; largest: a guess.</p>",
    ]
    if found.judge is not None:
        parts += ["<h2>A judge on the same images</h2>", _judge(found.judge)]
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{STYLE}</style>{''.join(parts)}</html>\n"
    )


def _rates(rates: Mapping[str, LeftFirst]) -> str:
    rows = [
        (
            name,
            percent(rate.rate),
            f"{rate.n:,}",
            f"{rate.images:,}",
            interval(rate.by_image),
            interval(rate.by_pair),
            f"{rate.guessed:,}",
            f"{rate.level:,}",
        )
        for name, rate in rates.items()
    ]
    header = ("pairs", "left", "n", "images", "95 % by image", "by entity pair", "guesses", "level")
    return _table(header, rows)


def _judge(found: JudgeHabit) -> str:
    who = ", ".join(f"{key} {value}" for key, value in found.judge.items())
    rows = [(says, *_measured(getattr(found, name))) for name, says in _MEASURES.items()]
    gate = [
        (boxes, said, f"{count:,}")
        for boxes, counts in found.gate.items()
        for said, count in counts.items()
    ]
    gate += [("no side", label, f"{count:,}") for label, count in found.failed.items()]
    return (
        f"<p>Judge: {escape(who)}.</p>"
        + _table(("measure", "value", "n", "95 % by image"), rows)
        + _table(("boxes say", "the judge", "pairs"), gate)
    )


def _measured(one: JudgeMeasure) -> tuple[str, str, str]:
    return percent(one.value), f"{one.n:,}", interval(one.interval)


def _table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    head = "".join(f"<th>{escape(h)}</th>" for h in header)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<table><tr>{head}</tr>{body}</table>"
