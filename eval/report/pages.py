"""The pages of a report, from what it is made of to HTML."""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from ...schema import CANARY
from ..core import ALL, Score, describe
from ..results.contents import RunContents
from ..results.judge_card import JudgeCard
from ..results.leaderboard import Leaderboard
from ..results.risk import Curve
from ..results.scoring import JudgedRun, Result
from ..stats.intervals import NOTHING, wilson
from . import numbers
from .gallery import FILTERS
from .plots import PlotPoint, interval_plot, legend, risk_plot, slope_plot


@dataclass(frozen=True)
class Site:
    """Everything that the pages show."""

    title: str
    """Of the site."""
    runs: Sequence[RunContents]
    """In the order given."""
    boards: Sequence[Leaderboard]
    """By suite."""
    curves: Mapping[str, Sequence[Curve]]
    """Suite -> risk-coverage curves."""
    galleries: Mapping[str, Mapping[str, Any]]
    """Slug of a run -> what `gallery.gallery` made of it."""

    @property
    def suites(self) -> dict[str, list[RunContents]]:
        """The runs of each suite, in order."""
        found: dict[str, list[RunContents]] = {}
        for run in self.runs:
            found.setdefault(run.suite.name, []).append(run)
        return dict(sorted(found.items()))


def render_pages(report: Site) -> dict[str, str]:
    """Every page by file name."""
    site = {"title": report.title, "suites": list(report.suites), "runs": report.runs}
    pages = {"index.html": _render("index.html", site=site, boards=_board_views(report.boards))}
    for suite, runs in report.suites.items():
        pages[f"{suite}.html"] = _render(
            "suite.html",
            site=site,
            suite=suite,
            runs=runs,
            boards=_board_views([board for board in report.boards if board.suite == suite]),
            slopes=_slopes(runs),
            forests=_forests(runs),
            meanings=_meanings(runs),
        )
        pages[f"{suite}-judges.html"] = _render(
            "judges.html",
            site=site,
            suite=suite,
            judged=[judged for run in runs for judged in run.judged],
            behavior=_behavior(runs),
            risk=risk_plot(report.curves[suite], f"{suite}: risk against coverage")
            if report.curves[suite]
            else None,
            curves=report.curves[suite],
        )
    for run in report.runs:
        pages[f"gallery-{run.slug}.html"] = _render(
            "gallery.html", site=site, run=run, data=report.galleries[run.slug], flags=FILTERS
        )
    return pages


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader(__package__, "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        number=numbers.number,
        interval=numbers.interval,
        count=numbers.count,
        p_value=numbers.p_value,
        describe=describe,
        embedded=_embedded,
    )
    script = _asset("gallery.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    environment.globals.update(
        style=_asset("style.css"),
        script=script,
        script_hash=digest,
        canary=CANARY,
        isnan=math.isnan,
    )
    return environment


def _render(template: str, **values: Any) -> str:
    return _environment().get_template(template).render(**values)


def _asset(name: str) -> Markup:
    """A file of ours that is put into pages as it is."""
    return Markup(resources.files(__package__).joinpath("templates", name).read_text("utf-8"))


def _embedded(value: object) -> Markup:
    """JSON that can stand in a script element: no text of it can end the element."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return Markup(text)


def _board_views(boards: Sequence[Leaderboard]) -> list[dict[str, Any]]:
    views = []
    for board in boards:
        rows = [
            (standing.name, [PlotPoint(standing.score, 0, standing.name)])
            for standing in board.standings
        ]
        title = f"{board.suite}: {board.headline.score} with 95 % intervals"
        views.append({"board": board, "plot": interval_plot(rows, title)})
    return views


def _meanings(runs: Sequence[RunContents]) -> dict[str, str]:
    """What the scores mean that a suite's runs have, in the suite's order."""
    shown = {score.name for run in runs for judged in run.judged for score in judged.result.scores}
    return {name: text for name, text in runs[0].suite.meanings.items() if name in shown}


def _by_judge(runs: Sequence[RunContents]) -> dict[str, list[JudgedRun]]:
    found: dict[str, list[JudgedRun]] = {}
    for run in runs:
        for judged in run.judged:
            found.setdefault(judged.result.judge, []).append(judged)
    return dict(sorted(found.items()))


def _slopes(runs: Sequence[RunContents]) -> list[tuple[str, Markup]]:
    """Two scores of each run under each judge, where the suite's headline names them."""
    slope = runs[0].suite.headline.slope
    if slope is None:
        return []
    (first, second), found = slope, []
    for judge, judged in _by_judge(runs).items():
        pairs = [
            (
                PlotPoint(run.whole[first], number, run.name),
                PlotPoint(run.whole[second], number, run.name),
            )
            for number, run in enumerate(judged)
            if first in run.whole
        ]
        if pairs:
            title = f"accuracy by {judge}, from aligned to reverse order of mention"
            found.append((judge, slope_plot(pairs, ("aligned, %", "reverse, %"), title)))
    return found


def _forests(runs: Sequence[RunContents]) -> list[dict[str, Any]]:
    """The scores of every group under each judge: a figure for each score and column."""
    found = []
    for judge, judged in _by_judge(runs).items():
        for name in runs[0].suite.headline.broken_down:
            parts: dict[str, dict[str, list[PlotPoint]]] = {}
            for number, run in enumerate(judged):
                for score in run.result.scores:
                    if score.name == name and score.group != ALL:
                        column, _, value = score.group.partition("=")
                        rows = parts.setdefault(column, {})
                        rows.setdefault(value, []).append(PlotPoint(score, number, run.name))
            for column, rows in parts.items():
                title = f"{name} by {column}, judged by {judge}".replace("_", " ")
                lines = [(value.replace("_", " "), points) for value, points in rows.items()]
                plot = interval_plot(lines, title)
                found.append(
                    {"title": title, "plot": plot, "legend": legend([run.name for run in judged])}
                )
    return found


def _behavior(runs: Sequence[RunContents]) -> list[dict[str, Any]]:
    """How every judge fared under the controls, drawn over its runs."""
    found = []
    for judge, judged in _by_judge(runs).items():
        rows = []
        for label, figure in FIGURES.items():
            points = [
                PlotPoint(figure(run.result.card), number, run.name)
                for number, run in enumerate(judged)
            ]
            rows.append((label, [p for p in points if not math.isnan(p.score.value)]))
        title = f"behavior of {judge}, as shares"
        plot = interval_plot([row for row in rows if row[1]], title)
        key = legend([run.name for run in judged])
        found.append({"title": title, "plot": plot, "legend": key})
    return found


def _parsed(card: JudgeCard) -> Score:
    return Score("parsed", card.parse_rate, NOTHING, card.asked, "1")


def _first_named(card: JudgeCard) -> Score:
    return Score("first_named", card.first_named, NOTHING, card.asked, "1", null=0.5)


def _probe(card: JudgeCard, name: str) -> Score:
    report = card.probes.get(name)
    if report is None or not report.n:
        return Score(name, math.nan, NOTHING, 0, "1")
    ends = wilson(round(report.consistency * report.n), report.n)
    return Score(name, report.consistency, ends, report.n, "1")


FIGURES: dict[str, Callable[[JudgeCard], Score]] = {
    "parsed": _parsed,
    "first-named": _first_named,
    "same when mirrored": lambda card: _probe(card, "mirror"),
    "same when swapped": lambda card: _probe(card, "swap"),
    "same under both": lambda card: _probe(card, "mirror_swap"),
}
"""What is drawn of a judge's card."""


def public(result: Result, name: str) -> dict[str, Any]:
    """A result without the paths of the machine that it was made on."""
    plain = replace(result, folder=name).to_json()
    plain["run"] = {key: value for key, value in plain["run"].items() if key != "data"}
    return plain
