"""The pages of a report, from what it is made of to HTML."""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib import resources
from itertools import product
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from ...schema import CANARY
from ..core import ALL, Score, describe
from ..results.changes import reported_quality
from ..results.clips import score_meanings
from ..results.contents import RunContents
from ..results.judge_card import JudgeCard
from ..results.judge_check import gold_counts
from ..results.leaderboard import Leaderboard
from ..results.risk import risk_curves
from ..results.scoring import JudgedRun, Result
from ..stats.intervals import NOTHING, wilson
from . import numbers
from .gallery import FILTERS
from .plots import PlotPoint, interval_plot, legend, risk_plot, scatter_plot, slope_plot


def render_pages(
    title: str,
    runs: Sequence[RunContents],
    boards: Sequence[Leaderboard],
    galleries: Mapping[str, Mapping[str, Any]],
) -> dict[str, str]:
    """Every page by file name; galleries: slug of a run -> what `gallery.gallery` made of it."""
    suites: dict[str, list[RunContents]] = {}
    for run in sorted(runs, key=lambda run: run.suite.name):
        suites.setdefault(run.suite.name, []).append(run)
    site = {"title": title, "suites": list(suites), "runs": runs}
    pages = {"index.html": render("index.html", site=site, boards=_board_views(boards))}
    for suite, members in suites.items():
        curves = risk_curves(members)
        judges = _by_judge(members)
        headline = members[0].suite.headline
        pages[f"{suite}.html"] = render(
            "suite.html",
            site=site,
            suite=suite,
            runs=members,
            boards=_board_views([board for board in boards if board.suite == suite]),
            slopes=_slopes(judges, headline.slope) if headline.slope else [],
            forests=_forests(judges, headline.broken_down),
            quality=_quality(members),
            meanings=_meanings(members),
        )
        pages[f"{suite}-judges.html"] = render(
            "judges.html",
            site=site,
            suite=suite,
            judged=[judged for run in members for judged in run.judged],
            behavior=_behavior(judges),
            risk=risk_plot(curves, f"{suite}: risk against coverage") if curves else None,
            curves=curves,
        )
    for run in runs:
        pages[f"gallery-{run.slug}.html"] = render(
            "gallery.html", site=site, run=run, data=galleries[run.slug], flags=FILTERS
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
        gold_counts=gold_counts,
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


def render(template: str, **values: Any) -> str:
    """A template of this room with its values, escaped."""
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
    known = score_meanings(runs[0].suite)
    return {name: text for name, text in known.items() if name in shown}


def _by_judge(runs: Sequence[RunContents]) -> dict[str, list[JudgedRun]]:
    found: dict[str, list[JudgedRun]] = {}
    for run in runs:
        for judged in run.judged:
            found.setdefault(judged.result.judge, []).append(judged)
    return dict(sorted(found.items()))


def _slopes(
    judges: Mapping[str, Sequence[JudgedRun]], names: tuple[str, str]
) -> list[tuple[str, Markup]]:
    """Two scores of each run under each judge."""
    found = []
    for judge, judged in judges.items():
        pairs = [
            (
                PlotPoint(run.whole[names[0]], number, run.name),
                PlotPoint(run.whole[names[1]], number, run.name),
            )
            for number, run in enumerate(judged)
            if names[0] in run.whole
        ]
        if pairs:
            title = f"accuracy by {judge}, from aligned to reverse order of mention"
            found.append((judge, slope_plot(pairs, ("aligned, %", "reverse, %"), title)))
    return found


def _quality(runs: Sequence[RunContents]) -> dict[str, Any] | None:
    """Quality beside bias, with a figure for each judge and scorer; None where nobody scored."""
    reports = reported_quality(runs)
    if not reports:
        return None
    suite = runs[0].suite
    judged = {run.name: {one.result.judge: one for one in run.judged} for run in runs}
    scored = {run.name: {one.scorer: one.score for one in run.quality} for run in runs}
    figures = []
    judges = dict.fromkeys(judge for parts in judged.values() for judge in parts)
    scorers = dict.fromkeys(scorer for parts in scored.values() for scorer in parts)
    for judge, scorer in product(judges, scorers):
        points = [
            (
                PlotPoint(judged[name][judge].whole[suite.headline.score], number, name),
                PlotPoint(scored[name][scorer], number, name),
            )
            for number, name in enumerate(judged)
            if judge in judged[name] and scorer in scored[name]
        ]
        if points:
            bias = f"{suite.headline.score.replace('_', ' ')} by {judge}"
            title = f"{scorer} over {bias}"
            figures.append({"title": title, "plot": scatter_plot(points, (bias, scorer), title)})
    return {
        "reports": reports,
        "figures": figures,
        "legend": legend([run.name for run in runs]),
    }


def _forests(
    judges: Mapping[str, Sequence[JudgedRun]], names: Sequence[str]
) -> list[dict[str, Any]]:
    """The scores of every group under each judge: a figure for each score and column."""
    found = []
    for (judge, judged), name in product(judges.items(), names):
        parts: dict[str, dict[str, list[PlotPoint]]] = {}
        for number, run in enumerate(judged):
            for score in run.result.scores:
                if score.name == name and score.group != ALL:
                    column, _, value = score.group.partition("=")
                    points = parts.setdefault(column, {}).setdefault(value, [])
                    points.append(PlotPoint(score, number, run.name))
        for column, rows in parts.items():
            title = f"{name} by {column}, judged by {judge}".replace("_", " ")
            lines = [(value.replace("_", " "), points) for value, points in rows.items()]
            found.append(_figure(title, lines, judged))
    return found


def _behavior(judges: Mapping[str, Sequence[JudgedRun]]) -> list[dict[str, Any]]:
    """How every judge fared under the controls, drawn over its runs."""
    found = []
    for judge, judged in judges.items():
        rows: dict[str, list[PlotPoint]] = {}
        for number, run in enumerate(judged):
            for label, score in _card_scores(run.result.card):
                points = rows.setdefault(label, [])
                if not math.isnan(score.value):
                    points.append(PlotPoint(score, number, run.name))
        drawn = [(label, points) for label, points in rows.items() if points]
        found.append(_figure(f"behavior of {judge}, as shares", drawn, judged))
    return found


def _figure(
    title: str, rows: Sequence[tuple[str, Sequence[PlotPoint]]], judged: Sequence[JudgedRun]
) -> dict[str, Any]:
    plot = interval_plot(rows, title)
    return {"title": title, "plot": plot, "legend": legend([run.name for run in judged])}


def _card_scores(card: JudgeCard) -> Iterator[tuple[str, Score]]:
    """What is drawn of a judge's card, by label; NaN where it is undefined."""
    yield "parsed", Score("parsed", card.parse_rate, NOTHING, card.asked, "1")
    yield "first-named", Score("first_named", card.first_named, NOTHING, card.asked, "1", null=0.5)
    for name, how in _CONTROLS.items():
        found = card.probes.get(name)
        share, n = (found.consistency, found.n) if found and found.n else (math.nan, 0)
        ends = wilson(round(share * n), n) if n else NOTHING
        yield f"same {how}", Score(name, share, ends, n, "1")


_CONTROLS = {"mirror": "when mirrored", "swap": "when swapped", "mirror_swap": "under both"}


def public(result: Result, name: str) -> dict[str, Any]:
    """A result without the paths of the machine that it was made on."""
    plain = replace(result, folder=name).to_json()
    plain["run"] = {key: value for key, value in plain["run"].items() if key != "data"}
    return plain
