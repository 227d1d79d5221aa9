"""Page of a mined corpus, and the text of its shares and intervals."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

from markupsafe import Markup

from ...eval.core import PROBES, Score
from ...eval.report.plots import count_plot, inline, interval_plot
from ...eval.report.single_page import single_page, table
from .rates import Alignment, Rate

_MOST = 14
"""Most rows of a plot; alignment.json has all."""


def render_page(result: Alignment, title: str) -> str:
    """Returns the whole page as HTML; text from captions is escaped."""
    single, control = result.single_probe, result.controls
    sections = [
        f"<h1>{escape(title)}: is the first-mentioned thing on the left?</h1>",
        f'<p class="big">{percent(single.rate)}</p>',
        f"<p>of {single.n:,} pairs of things that a caption names and its image shows side by "
        f"side. 95 % intervals: {interval(single.by_pair)} for other items (other pairs of "
        f"things), {interval(single.by_image)} for these items (other images that name the same "
        f"pairs), {interval(single.by_host)} for these items on other image hosts. Without an "
        f"order effect, half would be. "
        f"Judge: {escape(identity_text(result.judge))}.</p>",
        "<h2>How the question was asked</h2>",
        _forest(
            {
                "one probe (the paper's)": single,
                "pairs whose four probes agree": result.consistent,
                **{n: r for n, r in result.groups["all"].items() if n != "all"},
            },
            "How the question was asked",
        ),
        f"<p>Mean of the four probes: {percent(result.four_probes['rate'])} "
        f"({interval(result.four_probes['by_pair'])} for other items, "
        f"n = {result.four_probes['n']:,}). "
        f"Mirrored images: {percent(control['mirrored_rate'])} as shown; "
        f"{percent(control['flips'])} of the answers flip as they should. Side bias: "
        f"{_signed(control['side_bias'])}; name bias: {_signed(control['name_bias'])}. The gate "
        f"gives the same answer for {percent(control['gate_unchanged'])} of the mirrored images. "
        f"Entity pairs mentioned in both orders ({result.both_orders['entity_pairs']:,}): "
        f"{percent(result.both_orders['rate'])}.</p>",
        "<h2>Pairs remaining at each stage</h2>",
        _funnel(_stages(result.funnel)),
        _reasons(result.funnel),
    ]
    for name, rates in result.groups.items():
        if name != "all":
            sections += [f"<h2>By {escape(name)}</h2>", _forest(rates, f"By {name}")]
    sections += ["<h2>Published rates</h2>", _published(result.published)]
    sections += ["<h2>Example pairs</h2>", _examples(result.examples)]
    return single_page(title, sections)


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


def _funnel(stages: list[tuple[str, int]]) -> Markup:
    """Bars on a logarithmic scale, since the first stage is thousands of times the last."""
    return inline(count_plot(stages, "counts, on a logarithmic scale"), "counts of each stage")


def _forest(rates: Mapping[str, Rate], title: str) -> str:
    """Plots a row for each rate with its intervals; one half is marked."""
    nonempty = [(name, rate) for name, rate in rates.items() if rate.n]
    if not nonempty:
        return '<p class="undefined">No pair.</p>'
    rows = [(name, _as_score(name, rate), 0) for name, rate in nonempty[:_MOST]]
    figure = interval_plot(rows, "first-mentioned thing on the left, percent", (0, 100), chance=50)
    note = "" if len(nonempty) <= _MOST else " Most frequent groups; alignment.json has all."
    lines = (
        "95 % intervals. Thick line: these items (other images that name the same pairs of "
        "things); thin line: other items (other pairs)."
    )
    return f'{inline(figure, title)}<p class="undefined">{lines}{note}</p>'


def _as_score(name: str, rate: Rate) -> Score:
    """The rate in percent, its interval over images, and over entity pairs as the wide one."""
    these, others = rate.by_image.scaled(100), rate.by_pair.scaled(100)
    return Score(name=name, value=100 * rate.rate, interval=these, n=rate.n, unit="%", wide=others)


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
        (
            "corpus (OTS-Bench, Table 5)",
            "rate (95 % Wilson interval, ours, as if pairs were independent)",
            "pairs",
        ),
        rows,
    )


def _examples(examples: Iterable[Mapping[str, Any]]) -> str:
    rows = [
        (e["caption"], f"{e['first']} | {e['relation']} | {e['second']}", e["answers"]["original"])
        for e in examples
    ]
    return table(("caption", "pair", "answer"), rows)


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
