"""Plots as SVG, drawn by Matplotlib: curves, scatter plots, histograms, bars.

Every function returns a figure. `inline` gives it the colors of the page on which it stands, light
or dark; `as_file` makes a file of its own. The same numbers give the same bytes.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple
from xml.etree import ElementTree

from markupsafe import Markup

from ..core import Score
from ..results.risk import Curve
from ..stats.estimate import Estimate
from ..stats.intervals import NOTHING, Interval
from .strips import SERIES, PlotPoint

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLORS = "#0b62b0 #b8480a #00795a #9a3f86 #7a6200 #1f7fa8 #c22f45 #4d4f9e".split()
"""Colors of the series, as `style.css` has them for a light page."""
INK, FAINT, LINE, GROUND = "#1a1d21", "#59616b", "#d7dbe0", "#fefefe"
PAGE = {
    **{color: f"var(--s{number})" for number, color in enumerate(COLORS)},
    **{INK: "var(--text)", FAINT: "var(--faint)", LINE: "var(--line)", GROUND: "var(--ground)"},
}
"""Color -> the page's own."""
MARKERS = "os^D"
WIDTH = 6.8
"""Width of a figure, inches of 72 points."""
SVG = "http://www.w3.org/2000/svg"
STYLE: Any = {
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 10,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.edgecolor": FAINT,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": LINE,
    "grid.linewidth": 0.8,
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "legend.frameon": False,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
}


class CurvePoint(NamedTuple):
    """An estimate at one value of what was varied."""

    x: float
    estimate: Estimate
    """Not drawn where it is undefined."""

    @property
    def y(self) -> float:
        """The estimate's value."""
        return self.estimate.value


def curve_plot(
    series: Mapping[str, Sequence[CurvePoint]], label: str, logarithmic: bool = False
) -> Figure:
    """Returns a line with whiskers for every series.

    label: what x is; logarithmic: whether x is drawn in powers of two.
    """
    with _figure(3.4) as (figure, (axes,)):
        if not _curves(axes, series, [*series]):
            return _empty(axes)
        if logarithmic:
            axes.set_xscale("log", base=2)
            axes.xaxis.set_major_formatter("{x:g}")
        axes.set_xlabel(label)
        if len(series) > 1:
            figure.legend(loc="outside right upper")
        return figure


def curve_panels(
    panels: Mapping[str, Mapping[str, Sequence[CurvePoint]]], label: str, ticks: Sequence[str]
) -> Figure:
    """Returns a plot of the curves of each quantity, two in a row; a series has one color in all.

    panels: title of a quantity -> its series; label: what x is; ticks: names of x = 0, 1, ...
    """
    names = list(dict.fromkeys(name for series in panels.values() for name in series))
    columns = min(2, len(panels))
    rows = -(-len(panels) // columns) if panels else 1
    height = 2.3 * rows + 0.2 * len(names) if len(panels) > 1 else 2.8 + 0.2 * len(names)
    with _figure(height, rows, max(1, columns)) as (figure, places):
        for axes in places[len(panels) :]:
            axes.set_axis_off()
        drawn = False
        for axes, (title, series) in zip(places, panels.items(), strict=False):
            drawn |= _curves(axes, series, names, apart=0.08)
            axes.set_title(title)
            axes.set_xticks(range(len(ticks)), ticks)
            axes.set_xlabel(label)
        if not drawn:
            return _empty(places[0])
        if len(names) > 1:
            by_name = {
                text: handle
                for axes in places
                for handle, text in zip(*axes.get_legend_handles_labels(), strict=True)
            }
            shown = [name for name in names if name in by_name]
            figure.legend([by_name[name] for name in shown], shown, loc="outside lower left")
        return figure


def _curves(
    axes: Axes, series: Mapping[str, Sequence[CurvePoint]], names: Sequence[str], apart: float = 0
) -> bool:
    """Draws the series, each in the color of its place among the names; whether there was a point.

    apart: distance on x between two series, so that their whiskers can be told apart.
    """
    drawn = False
    for place, (name, row) in enumerate(series.items()):
        points = [p for p in row if not math.isnan(p.y)]
        if not points:
            continue
        drawn = True
        number = names.index(name)
        color, marker = COLORS[number % SERIES], MARKERS[number % len(MARKERS)]
        aside = apart * (place - (len(series) - 1) / 2)
        xs, ys = [p.x + aside for p in points], [p.y for p in points]
        axes.plot(xs, ys, color=color)
        axes.plot([], [], color=color, marker=marker, markeredgecolor=GROUND, label=name)
        for x, p in zip(xs, points, strict=True):
            _whiskers(axes, x, p.y, color, up=p.estimate.interval)
            _mark(axes, x, p.y, color, marker, f"{name}: {p.y:.3g} at {p.x:g}")
    return drawn


def pair_plot(values: Mapping[tuple[str, str], float], label: str) -> Figure:
    """Returns a heat map of scores of pairs (ACON, Figures 4 and 5): a square with its number for
    each, framed where both are the same model.

    values: names of row and column -> score. label: what the scores are.
    """
    rows, columns = (list(dict.fromkeys(pair[axis] for pair in values)) for axis in (0, 1))
    with _figure(1.2 + 0.42 * max(1, len(rows))) as (figure, (axes,)):
        known = {pair: value for pair, value in values.items() if not math.isnan(value)}
        if not known:
            return _empty(axes)
        grid = [[values.get((row, column), math.nan) for column in columns] for row in rows]
        image = axes.imshow(grid, cmap="Blues", aspect="auto")
        middle = (min(known.values()) + max(known.values())) / 2
        for (row, column), value in known.items():
            x, y = columns.index(column), rows.index(row)
            color = GROUND if value > middle else INK
            axes.text(x, y, f"{value:.1f}", ha="center", va="center", color=color)
            if row == column:
                sides = [x - 0.48, x + 0.48, x + 0.48, x - 0.48, x - 0.48]
                heights = [y - 0.46, y - 0.46, y + 0.46, y + 0.46, y - 0.46]
                axes.plot(sides, heights, color=COLORS[1], linewidth=2)
        axes.grid(visible=False)
        axes.set_xticks(range(len(columns)), columns)
        axes.set_yticks(range(len(rows)), rows)
        figure.colorbar(image, label=label)
        return figure


def score_scatter(
    points: Mapping[str, tuple[Score, Score]],
    printed: Mapping[str, tuple[float, float]],
    labels: tuple[str, str],
) -> Figure:
    """Returns two scores of each generator against each other, with their intervals
    (SpatialBench-UC, Figure 4).

    printed: what the paper has in the same places, drawn as crosses. labels: of both axes.
    """
    with _figure(3.8) as (figure, (axes,)):
        for number, name in enumerate(dict.fromkeys((*points, *printed))):
            color = COLORS[number % SERIES]
            drawn = False
            if name in points and not any(math.isnan(score.value) for score in points[name]):
                first, second = points[name]
                x, y = first.value, second.value
                _whiskers(axes, x, y, color, first.interval, second.interval)
                _mark(
                    axes, x, y, color, MARKERS[number % len(MARKERS)], f"{name}: {x:.1f}, {y:.1f}"
                )
                axes.plot([], [], color=color, marker=MARKERS[number % len(MARKERS)], label=name)
                drawn = True
            if name in printed:
                paper_label = None if drawn else f"{name} (paper)"
                axes.plot(*printed[name], "x", color=color, markersize=9, label=paper_label)
        axes.set_xlabel(labels[0])
        axes.set_ylabel(labels[1])
        if points or printed:
            figure.legend(loc="outside right upper")
        return figure


def scatter_plot(
    points: Sequence[tuple[PlotPoint, PlotPoint]], arrows: Sequence[tuple[int, int]] = ()
) -> Figure:
    """Returns a figure of two scores of every series against each other, with their intervals.

    arrows: series that a line joins, e.g. a generator and itself under a method.
    """
    drawn = [p for p in points if not any(math.isnan(point.score.value) for point in p)]
    places = {a.series: (a.score.value, b.score.value) for a, b in drawn}
    with _figure(4.2) as (figure, (axes,)):
        for before, after in arrows:
            if before in places and after in places:
                ends = zip(places[before], places[after], strict=True)
                axes.plot(*ends, color=COLORS[after % SERIES], linestyle="--", linewidth=1.2)
        for first, second in drawn:
            x, y = places[first.series]
            color = COLORS[first.series % SERIES]
            _whiskers(axes, x, y, color, first.score.interval, second.score.interval)
            marker = MARKERS[first.series % len(MARKERS)]
            _mark(axes, x, y, color, marker, f"{first.hint}; {second.hint}")
        if drawn and drawn[0][0].score.unit == "%":
            axes.xaxis.set_major_formatter("{x:g} %")
        return figure


def risk_plot(curves: Sequence[Curve], legend: bool = False) -> Figure:
    """Returns the share of wrong answers among those kept, as fewer are kept.

    legend: whether the figure names its curves; on a report's page, a list beside it does.
    """
    with _figure(3.6) as (figure, (axes,)):
        for c in curves:
            color = COLORS[c.series % SERIES]
            if not len(c.curve.risk):
                continue
            axes.plot(c.curve.coverage, c.curve.risk, color=color, label=c.name)
            x, y = float(c.curve.coverage[-1]), float(c.curve.risk[-1])
            hint = f"{c.name}: {y:.1%} of all wrong, n = {c.n:,}"
            _mark(axes, x, y, color, MARKERS[c.series % len(MARKERS)], hint)
        axes.set_xlim(0, 1.02)
        axes.set_ylim(bottom=0)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(lambda value, _: f"{value:.0%}")
        if legend:
            axes.set_xlabel("coverage")
            axes.set_ylabel("risk")
            figure.legend(loc="outside lower left")
        return figure


def course_plot(
    choices: Sequence[str], regret: Sequence[float], pulls: Mapping[str, int]
) -> Figure:
    """Returns the course of a bandit: pulls of each generator, and regret (PSE, Fig. 6).

    choices: name of the generator pulled in each round; regret: of the rounds, cumulative; pulls:
    in all, with the one that each generator has before the first round.
    """
    with _figure(5.2, rows=2) as (figure, (above, below)):
        rounds = range(len(choices) + 1)
        for number, (name, total) in enumerate(pulls.items()):
            counts = accumulate((int(choice == name) for choice in choices), initial=1)
            color = COLORS[number % SERIES]
            label = f"{shortened(name, 70)}: {total} pulls"
            above.step(rounds, list(counts), where="post", color=color, label=label)
        above.set_title("pulls by round")
        below.plot(rounds, [0.0, *regret], color=INK)
        below.set_title("regret by round")
        figure.legend(loc="outside lower left")
        return figure


def guidance_plot(record: Mapping[str, Any], prompt: str) -> Figure:
    """Returns what guidance did to one image (PSE, Fig. 5): the loss and each relation's PoS before
    every update, and the maps of both things, projected onto the relation's axis.

    record: what `psg` reports with ``maps=true``. prompt: of the image, above the figure.
    """
    names = [" ".join(relation).replace("_", " ") for relation in record["relations"]]
    updates = range(len(record["losses"]))
    panels = [
        (number, axis)
        for number in range(len(names))
        for axis in (record["maps"][0][number][0] if record["maps"] else ())
    ]
    with _figure(2 * 1.7 + 2.4 * len(panels), rows=2 + len(panels)) as (figure, rows):
        loss, scores, *maps = rows
        loss.plot(updates, record["losses"], color=INK)
        loss.set_title(f"{shortened(prompt, 80)}: loss before each update")
        for number, name in enumerate(names):
            course = [of_update[number] for of_update in record["pos"]]
            scores.plot(updates, course, color=COLORS[number % SERIES], label=name)
        scores.set_title(f"PoS: {', '.join(map(str, names))}")
        for axes in (loss, scores):
            axes.set_xlabel("update")
        for axes, (number, axis) in zip(maps, panels, strict=True):
            _ridges(axes, [update[number] for update in record["maps"]], axis)
            first, _, second = record["relations"][number]
            where = "left to right" if axis == "x" else "top to bottom"
            axes.set_title(f"maps of {first} and {second}, {where}")
            for color, thing in zip(COLORS, (first, second), strict=False):
                axes.plot([], [], color=color, label=thing)
            axes.legend(loc="upper right")
        return figure


RIDGES = 8
"""Updates whose maps are drawn, at most."""


def _ridges(
    axes: Axes, updates: Sequence[Sequence[Mapping[str, Sequence[float]]]], axis: str
) -> None:
    """Draws the projected maps of two things above each other, the last update on top."""
    most = max(max(profile[axis]) for both in updates for profile in both) or 1.0
    count = min(RIDGES, len(updates))
    shown = sorted({round(n * (len(updates) - 1) / max(1, count - 1)) for n in range(count)})
    for height, update in enumerate(shown):
        for color, profile in zip(COLORS, updates[update], strict=False):
            curve = [height + 0.9 * share / most for share in profile[axis]]
            axes.plot(range(len(curve)), curve, color=color)
    axes.set_yticks(range(len(shown)), [f"update {update}" for update in shown])
    axes.set_xlabel("position")


def difference_plot(limits: Mapping[str, Mapping[str, Any]]) -> Figure:
    """Returns histograms of each judge's scores less human annotators' (CF-World, Fig. 5).

    limits: judge -> what `results.selection.score_differences` returns. Bars are numbers of images
    at the middle of their bin; the line is the mean difference, dashed lines are the limits of
    agreement.
    """
    from matplotlib.ticker import MaxNLocator

    with _figure(0.7 + 2.1 * len(limits), rows=len(limits)) as (figure, rows):
        for number, (axes, (judge, summary)) in enumerate(zip(rows, limits.items(), strict=True)):
            middles, counts = zip(*summary["histogram"], strict=True)
            axes.bar(middles, counts, width=0.1, color=COLORS[number % SERIES])
            axes.axvline(summary["mean"], color=INK)
            for limit in summary["limits"]:
                if not math.isnan(limit):
                    axes.axvline(limit, color=INK, linestyle="--")
            share = f"{100 * summary['within_0.125']:.0f} % within 0.125"
            title = f"{judge}: mean {summary['mean']:+.3f}, {share}, n {summary['n']}"
            axes.set_title(title)
            axes.set_xlim(-1.0625, 1.0625)
            axes.xaxis.set_major_formatter(lambda value, _: f"{value:+g}" if value else "0")
            axes.yaxis.set_major_locator(MaxNLocator(3, integer=True))
        caption = "judge less annotators; line: mean, dashed: limits of agreement"
        rows[-1].set_xlabel(caption)
        return figure


def interval_plot(
    rows: Sequence[tuple[str, Score, int]], label: str, ends: tuple[float, float], chance: float
) -> Figure:
    """Returns a score with its interval for every row: name, score, number of its series. A
    score's wide interval is a thin line below; n stands on the right.

    label: what is measured; ends: of its axis; chance: its value without an effect.
    """
    with _figure(0.9 + 0.26 * max(1, len(rows))) as (figure, (axes,)):
        axes.axvline(chance, color=INK, linestyle="--", linewidth=1)
        for place, (name, score, series) in enumerate(rows):
            color, (low, high) = COLORS[series % SERIES], score.interval
            _whiskers(axes, score.value, place, color, across=score.interval)
            _whiskers(axes, score.value, place + 0.2, FAINT, across=score.wide)
            if not math.isnan(score.value):
                hint = f"{name}: {score.value:.1f} ({low:.1f} to {high:.1f}), n = {score.n:,}"
                _mark(axes, score.value, place, color, MARKERS[series % len(MARKERS)], hint)
            beside = axes.get_yaxis_transform()
            axes.text(1.01, place, f"n = {score.n:,}", transform=beside, va="center", color=FAINT)
        axes.set_yticks(range(len(rows)), [name for name, _, _ in rows])
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.set_xlim(*ends)
        axes.set_xlabel(label)
        return figure


def count_plot(rows: Sequence[tuple[str, int]], label: str) -> Figure:
    """Returns a bar for every count on a logarithmic scale, with the count at its end.

    label: what is counted.
    """
    with _figure(0.9 + 0.26 * max(1, len(rows))) as (figure, (axes,)):
        counts = [count for _, count in rows]
        bars = axes.barh(range(len(rows)), counts, left=1, color=COLORS[0])  # log(1) is 0
        axes.bar_label(bars, [f"{count:,}" for _, count in rows], padding=4)
        axes.set_yticks(range(len(rows)), [name for name, _ in rows])
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.set_xscale("log")
        axes.set_xlim(left=1)
        axes.margins(x=0.1)
        axes.grid(visible=False)
        axes.tick_params(axis="x", which="both", bottom=False, labelbottom=False)
        axes.set_xlabel(label)
        return figure


def inline(figure: Figure, title: str) -> Markup:
    """Returns a figure for a page, in the page's colors.

    title: what a screen reader says; the numbers stand in a table beside the figure.
    """
    return on_page(_svg(figure, title))


def on_page(svg: str) -> Markup:
    """Returns the text of an SVG file as a part of a page, in the page's colors."""
    # HTML knows the namespace, and pages hold no address of any other site.
    text = re.sub(r' xmlns(:\w+)?="[^"]+"', "", svg).replace("xlink:href", "href")
    for color, variable in PAGE.items():
        text = text.replace(color, variable)
    return Markup(text)


def as_file(figure: Figure, title: str) -> str:
    """Returns a figure as an SVG file, which ends with a line feed."""
    return _svg(figure, title) + "\n"


@contextmanager
def _figure(
    height: float, rows: int = 1, columns: int = 1
) -> Iterator[tuple[Figure, Sequence[Axes]]]:
    """A figure in our style and its axes, row by row; its height in inches."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(STYLE):
        figure = Figure((WIDTH, height), layout="constrained")
        places = range(1, rows * columns + 1)
        yield figure, [figure.add_subplot(rows, columns, place) for place in places]


def _empty(axes: Axes) -> Figure:
    axes.set_axis_off()
    axes.text(0, 0.5, "no score to draw", transform=axes.transAxes)
    figure = axes.get_figure(root=True)
    assert figure is not None
    return figure


def _mark(axes: Axes, x: float, y: float, color: str, marker: str, hint: str) -> None:
    """Draws a point whose hint shows under the mouse."""
    (mark,) = axes.plot([x], [y], marker, color=color, markeredgecolor=GROUND, zorder=3)
    mark.set_gid(f"mark {hint}")


def _whiskers(
    axes: Axes, x: float, y: float, color: str, across: Interval = NOTHING, up: Interval = NOTHING
) -> None:
    """Draws the intervals of a point; none where they are NaN."""
    if not math.isnan(across.low):
        axes.plot(across, (y, y), color=color, linewidth=1.5, alpha=0.75, gid="whisker")
    if not math.isnan(up.low):
        axes.plot((x, x), up, color=color, linewidth=1.5, alpha=0.75, gid="whisker")


def _svg(figure: Figure, title: str) -> str:
    """The figure as an SVG element with its title, the hints of its marks, and no identifier
    that nothing refers to: a page may hold several figures."""
    import matplotlib

    buffer = io.BytesIO()
    with matplotlib.rc_context({**STYLE, "svg.hashsalt": title}):
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    text = buffer.getvalue().decode("utf-8")
    ElementTree.register_namespace("", SVG)
    ElementTree.register_namespace("xlink", "http://www.w3.org/1999/xlink")
    root = ElementTree.fromstring(text)
    # A style would hold for the whole page; clips are not needed, as all lies within its axes.
    unwanted = {f"{{{SVG}}}{name}" for name in ("metadata", "style", "clipPath")}
    for parent in root.iter():
        for child in list(parent):
            if child.tag in unwanted:
                parent.remove(child)
    root.attrib.update({"role": "img", "aria-label": title})
    used = set(re.findall(r'href="#([^"]+)', text))
    for element in root.iter():
        element.attrib.pop("clip-path", None)
        name = element.get("id", "")
        if name.startswith("mark "):
            ElementTree.SubElement(element, f"{{{SVG}}}title").text = name.removeprefix("mark ")
        if name.partition(" ")[0] in ("mark", "whisker"):
            element.set("class", name.partition(" ")[0])
        if name not in used:
            element.attrib.pop("id", None)
    return ElementTree.tostring(root, encoding="unicode")


def shortened(text: str, most: int) -> str:
    """At most `most` characters.

    >>> shortened("counterfactual", 8)
    'counter…'
    """
    return text if len(text) <= most else text[: most - 1] + "…"
