"""Pages of this room: one HTML file each, with SVG plots, without scripts or external files."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from ...eval.core import PROBES
from .rates import Alignment, Rate

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #1c2330; max-width: 860px; margin: 2rem auto;
       padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.15rem; margin-top: 2.2rem; }
.big { font-size: 2.4rem; font-weight: 650; } .dim { color: #667085; }
table { border-collapse: collapse; width: 100%; } td, th { text-align: left; padding: .25rem .6rem;
border-bottom: 1px solid #e4e7ec; vertical-align: top; } td.n { text-align: right;
font-variant-numeric: tabular-nums; } svg { max-width: 100%; height: auto; }
"""
_INK, _DIM, _BAR, _GRID = "#1c2330", "#667085", "#3767b1", "#d0d5dd"
_ROW = 24
_MOST = 14
"""Most rows in a plot; alignment.json has all of them."""


def render_page(result: Alignment, title: str) -> str:
    """Returns the whole page as HTML; text from captions is escaped."""
    single, control = result.single_probe, result.controls
    parts = [
        f"<h1>{escape(title)}: is the first-mentioned thing on the left?</h1>",
        f'<p class="big">{percent(single.rate)}</p>',
        f"<p>of {single.n:,} pairs of things that a caption names and its image shows side by "
        f"side. 95 % intervals: {interval(single.wilson)} if pairs were independent, "
        f"{interval(single.by_pair)} over entity pairs, {interval(single.by_host)} over image "
        f"hosts. Without an order effect, half would be. "
        f"Judge: {escape(identity_text(result.judge))}.</p>",
        "<h2>How the question was asked</h2>",
        _forest(
            {
                "one probe (the paper's)": single,
                "pairs whose four probes agree": result.consistent,
                **{n: r for n, r in result.groups["all"].items() if n != "all"},
            }
        ),
        f"<p>Mean of the four probes: {percent(result.four_probes['rate'])} "
        f"({interval(result.four_probes['by_pair'])}, n = {result.four_probes['n']:,}). "
        f"Mirrored images: {percent(control['mirrored_rate'])} as shown; "
        f"{percent(control['flips'])} of the answers flip as they should. Side bias: "
        f"{_signed(control['side_bias'])}; name bias: {_signed(control['name_bias'])}. The gate "
        f"gives the same answer for {percent(control['gate_unchanged'])} of the mirrored images. "
        f"Entity pairs mentioned in both orders ({result.both_orders['entity_pairs']:,}): "
        f"{percent(result.both_orders['rate'])}.</p>",
        "<h2>Pairs left at each stage</h2>",
        _funnel(_stages(result.funnel)),
        _reasons(result.funnel),
    ]
    for name, rates in result.groups.items():
        if name != "all":
            parts += [f"<h2>By {escape(name)}</h2>", _forest(rates)]
    parts += ["<h2>Published rates</h2>", _published(result.published)]
    parts += ["<h2>Example pairs</h2>", _examples(result.examples)]
    return document(title, parts)


def document(title: str, parts: Iterable[str]) -> str:
    """Returns a whole HTML page with the style of this room."""
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{_STYLE}</style>{''.join(parts)}</html>\n"
    )


def _stages(funnel: Mapping[str, Any]) -> list[tuple[str, int]]:
    captions, images = funnel["captions"], funnel["images"]
    return [
        ("captions read", captions["rows"]),
        ("passed the quality gate", captions["passed"]),
        ("parsed", captions["parsed"]),
        ("captions with a pair", captions["captions"]),
        ("pairs", captions["pairs"]),
        ("pairs with a known image", images["pairs_with_source"]),
        ("pairs with an image", images["pairs_with_image"]),
        ("not a duplicate", images["pairs_distinct"]),
        ("two things side by side", funnel["valid"]),
        ("four probes agree", funnel["consistent"]),
    ]


def _funnel(stages: list[tuple[str, int]]) -> str:
    """Bars on a logarithmic scale, since the first stage is thousands of times the last."""
    top = math.log10(max(2, max(count for _, count in stages)))
    rows = []
    for number, (name, count) in enumerate(stages):
        y = _ROW * number
        width = 430 * math.log10(count + 1) / top if count else 0
        rows.append(
            f'<text x="250" y="{y + 16}" text-anchor="end" fill="{_INK}">{escape(name)}</text>'
            f'<rect x="260" y="{y + 4}" width="{width:.1f}" height="16" fill="{_BAR}"/>'
            f'<text x="{268 + width:.1f}" y="{y + 16}" fill="{_DIM}">{count:,}</text>'
        )
    return (
        _svg(_ROW * len(stages) + 4, rows) + '<p class="dim">The bars have a logarithmic scale.</p>'
    )


def _forest(rates: Mapping[str, Rate]) -> str:
    """One row per rate: a dot and its interval on [0, 1], with one half marked."""
    shown = [(name, r) for name, r in rates.items() if r.n][:_MOST]
    if not shown:
        return '<p class="dim">No pair.</p>'
    height = _ROW * len(shown)
    rows = [
        f'<line x1="{_x(t)}" x2="{_x(t)}" y1="0" y2="{height}" stroke="{_GRID}" '
        f'stroke-dasharray="{"0" if t == 0.5 else "2 4"}"/>'
        f'<text x="{_x(t)}" y="{height + 16}" text-anchor="middle" fill="{_DIM}">{t:.0%}</text>'
        for t in (0, 0.25, 0.5, 0.75, 1)
    ]
    for number, (name, r) in enumerate(shown):
        y = _ROW * number + 12
        low, high = r.by_pair if not math.isnan(r.by_pair.low) else r.wilson
        rows.append(
            f'<text x="250" y="{y + 4}" text-anchor="end" fill="{_INK}">{escape(name)}</text>'
            f'<line x1="{_x(r.wilson.low)}" x2="{_x(r.wilson.high)}" y1="{y}" y2="{y}" '
            f'stroke="{_BAR}" stroke-width="2"/>'
            f'<line x1="{_x(low)}" x2="{_x(high)}" y1="{y + 4}" y2="{y + 4}" stroke="{_DIM}"/>'
            f'<circle cx="{_x(r.rate)}" cy="{y}" r="4" fill="{_BAR}"/>'
            f'<text x="620" y="{y + 4}" fill="{_DIM}">{r.rate:.1%} of {r.n:,}</text>'
        )
    note = "" if len(shown) == len(rates) else " Most frequent groups; alignment.json has all."
    lines = "Thick line: 95 % Wilson interval; thin line: 95 % interval over entity pairs."
    return _svg(height + 22, rows) + f'<p class="dim">{lines}{note}</p>'


def _svg(height: int, rows: Iterable[str]) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 780 {height}" width="780" '
        f'height="{height}" font-family="sans-serif" font-size="13">{"".join(rows)}</svg>'
    )


def _x(share: float) -> str:
    return f"{270 + 330 * share:.1f}"


def _reasons(funnel: Mapping[str, Any]) -> str:
    """Why captions and images were dropped, and what the judge said."""
    rows = [("caption", reason, n) for reason, n in funnel["captions"]["dropped"].items() if n]
    rows += [("damaged file", file, 1) for file in funnel["captions"]["damaged"]]
    images = funnel["images"]
    rows += [("image", reason, n) for reason, n in images["reasons"].items()]
    rows += [("opted out by", header, n) for header, n in images["opt_outs"].items()]
    rows += [("pair", name, images[name]) for name in ("duplicate_url", "duplicate_image")]
    for aspect, labels in funnel["stage_1"].items():
        rows += [(f"stage 1, {aspect}", label, n) for label, n in labels.items()]
    for probe in PROBES:
        rows += [(f"stage 2, {probe}", label, n) for label, n in funnel["stage_2"][probe].items()]
    return table(("item", "reason or answer", "count"), rows)


def _published(published: Mapping[str, Any]) -> str:
    rows = [
        (name, f"{percent(p['rate'])} ({interval(p['wilson'])})", p["n"])
        for name, p in published.items()
    ]
    return table(
        ("corpus (OTS-Bench, Table 5)", "rate (95 % Wilson interval, ours)", "pairs"), rows
    )


def _examples(examples: Iterable[Mapping[str, Any]]) -> str:
    rows = [
        (e["caption"], f"{e['first']} | {e['relation']} | {e['second']}", e["answers"]["original"])
        for e in examples
    ]
    return table(("caption", "pair", "answer"), rows)


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Returns an HTML table; text is escaped, whole numbers are aligned at the right."""
    head = "".join(f"<th>{escape(name)}</th>" for name in header)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>"


def _cell(value: object) -> str:
    if isinstance(value, int):
        return f'<td class="n">{value:,}</td>'
    return f"<td>{escape(str(value))}</td>"


def identity_text(identity: Mapping[str, str]) -> str:
    """The identity of a judge for a reader, not escaped."""
    return ", ".join(f"{key} {value}" for key, value in identity.items())


def percent(share: float) -> str:
    """A share for a reader; n/a for NaN."""
    return "n/a" if math.isnan(share) else f"{share:.1%}"


def _signed(share: float) -> str:
    return "n/a" if math.isnan(share) else f"{100 * share:+.1f} points"


def interval(bounds: tuple[float, float]) -> str:
    """An interval of shares for a reader; n/a for NaN."""
    low, high = bounds
    return "n/a" if math.isnan(low) else f"{100 * low:.1f} to {100 * high:.1f} %"
