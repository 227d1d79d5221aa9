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
from ..questions import read_prompt
from ..results.changes import reported_quality
from ..results.clips import score_meanings
from ..results.contents import RunContents
from ..results.judge_card import JudgeCard
from ..results.judge_check import gold_counts
from ..results.leaderboard import Leaderboard
from ..results.names import brief, short_judges
from ..results.risk import risk_curves
from ..results.scoring import JudgedRun, Result
from ..results.tables import FEW, few, read_order
from ..stats.intervals import NOTHING, wilson
from . import numbers
from .gallery import FILTERS
from .overview import overview, rank_all
from .plots import inline, risk_plot, scatter_plot
from .strips import PlotPoint, Strips, counted, dot_plot, key


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
    identities = {j.result.judge: j.result.card.identity for run in runs for j in run.judged}
    known = {describe(identity): name for name, identity in identities.items()}
    short = short_judges(identities)
    # A leaderboard names its judge by what all of its runs call it.
    short |= {told: short[name] for told, name in known.items()}
    site = {"title": title, "suites": list(suites), "runs": runs, "short": short}
    views: list[dict[str, Any]] = [{"board": board, "ranked": rank_all(board)} for board in boards]
    lines = overview(runs, boards)
    pages = {"index.html": render("index.html", site=site, views=views, lines=lines)}
    for suite, members in suites.items():
        curves = risk_curves(members)
        judges = _by_judge(members)
        headline = members[0].suite.headline
        pages[f"{suite}.html"] = render(
            "suite.html",
            site=site,
            suite=suite,
            about=headline,
            runs=members,
            views=[view for view in views if view["board"].suite == suite],
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
            risk=inline(risk_plot(curves), f"{suite}: risk against coverage") if curves else None,
            curves=curves,
            asked=_asked(members),
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
        key=key,
        read_order=read_order,
        few_groups=_few,
        brief=brief,
    )
    scripts = {name: _asset(f"{name}.js") for name in ("page", "gallery")}
    environment.globals.update(
        style=_asset("style.css"),
        scripts=scripts,
        script_hashes=[_hash(script) for script in scripts.values()],
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


def _hash(script: str) -> str:
    """As a Content-Security-Policy names a script."""
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _embedded(value: object) -> Markup:
    """JSON that can stand in a script element: no text of it can end the element."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return Markup(text)


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


def _name(run: JudgedRun) -> str:
    return brief(run.name, run.result.run.suite)


def _few(judged: JudgedRun) -> set[str]:
    """The groups of a run that are too small to be shown at once."""
    found = few(judged.result.scores)
    return {f"{column}={value}" for column, values in found.items() for value in values}


def _asked(runs: Sequence[RunContents]) -> dict[str, str]:
    """Name of a prompt -> its text, where the judges had this version of it."""
    versions = {
        (name, version)
        for run in runs
        for judged in run.judged
        for name, version in judged.result.card.prompts.items()
    }
    known = {name: read_prompt(name) for name, version in sorted(versions)}
    return {name: p.text for name, p in known.items() if (name, p.version) in versions}


def _slopes(
    judges: Mapping[str, Sequence[JudgedRun]], names: tuple[str, str]
) -> list[tuple[str, Strips]]:
    """Two scores of each run under each judge."""
    found = []
    for judge, judged in judges.items():
        rows = [
            (_name(run), [PlotPoint(run.whole[name], number, name) for name in names])
            for number, run in enumerate(judged)
            if names[0] in run.whole
        ]
        if rows:
            title = f"{' (hollow) to '.join(names)}".replace("_", " ")
            found.append((judge, dot_plot(rows, title, linked=True)))
    return found


def _quality(runs: Sequence[RunContents]) -> dict[str, Any] | None:
    """Quality beside bias, with a figure for each judge and scorer; None where nobody scored."""
    reports = reported_quality(runs)
    if not reports:
        return None
    suite = runs[0].suite
    shown = {run.name: brief(run.name, suite.name) for run in runs}
    judged = {run.name: {one.result.judge: one for one in run.judged} for run in runs}
    scored = {run.name: {one.scorer: one.score for one in run.quality} for run in runs}
    figures = []
    judges = dict.fromkeys(judge for parts in judged.values() for judge in parts)
    scorers = dict.fromkeys(scorer for parts in scored.values() for scorer in parts)
    for judge, scorer in product(judges, scorers):
        points = [
            (
                PlotPoint(judged[name][judge].whole[suite.headline.score], number, shown[name]),
                PlotPoint(scored[name][scorer], number, shown[name]),
            )
            for number, name in enumerate(judged)
            if judge in judged[name] and scorer in scored[name]
        ]
        if points:
            bias = f"{suite.headline.score.replace('_', ' ')} by {judge}"
            title = f"{scorer} over {bias}"
            plot = inline(scatter_plot(points, _arrows(runs)), title)
            n = counted([one for pair in points for one in pair])
            figures.append({"judge": judge, "scorer": scorer, "n": n, "plot": plot})
    return {"reports": reports, "figures": figures, "names": list(shown.values())}


def _arrows(runs: Sequence[RunContents]) -> list[tuple[int, int]]:
    """Places of a generator's run and of itself under a method."""
    names = {run.name: number for number, run in enumerate(runs)}
    plain = {
        json.dumps(dict(run.run.header.generator), sort_keys=True): number
        for number, run in enumerate(runs)
    }
    found = []
    for number, run in enumerate(runs):
        made = {k: v for k, v in run.run.header.generator.items() if k != "method"}
        base = names.get(run.base, plain.get(json.dumps(made, sort_keys=True)))
        if base is not None and base != number:
            found.append((base, number))
    return found


def _forests(
    judges: Mapping[str, Sequence[JudgedRun]], names: Sequence[str]
) -> list[dict[str, Any]]:
    """The scores of every group under each judge: a figure for each score and column, pair types
    first, and apart one of the groups that are too small to say much."""
    found = []
    for (judge, judged), name in product(judges.items(), names):
        parts: dict[str, dict[str, list[PlotPoint]]] = {}
        for number, run in enumerate(judged):
            for score in read_order(run.result.scores):
                if score.name == name and score.group != ALL:
                    column, _, value = score.group.partition("=")
                    points = parts.setdefault(column, {}).setdefault(value, [])
                    points.append(PlotPoint(score, number, _name(run)))
        shown = [_name(run) for run in judged]
        for column, rows in parts.items():
            lines = [(value.replace("_", " "), points) for value, points in rows.items()]
            small = [line for line in lines if max(p.score.n for p in line[1]) < FEW]
            title = f"{name} by {column}".replace("_", " ")
            found.append(
                {
                    "judge": judge,
                    "plot": dot_plot([x for x in lines if x not in small], title, shown),
                    "small": dot_plot(small, title, shown),
                }
            )
    return found


def _behavior(judges: Mapping[str, Sequence[JudgedRun]]) -> list[tuple[str, Strips]]:
    """How every judge fared under the controls, drawn over its runs."""
    found = []
    for judge, judged in judges.items():
        rows: dict[str, list[PlotPoint]] = {}
        for number, run in enumerate(judged):
            for label, score in _card_scores(run.result.card):
                points = rows.setdefault(label, [])
                if not math.isnan(score.value):
                    points.append(PlotPoint(score, number, _name(run)))
        drawn = [(label, points) for label, points in rows.items() if points]
        title = f"behavior of {judge}, as shares"
        found.append((judge, dot_plot(drawn, title, [_name(run) for run in judged])))
    return found


def _card_scores(card: JudgeCard) -> Iterator[tuple[str, Score]]:
    """What is drawn of a judge's card, by label; NaN where it is undefined."""
    yield "parsed", Score(card.parse_rate, n=card.asked, name="parsed", unit="1")
    yield (
        "first-named",
        Score(card.first_named, n=card.asked, name="first_named", unit="1", null=0.5),
    )
    for name, how in _CONTROLS.items():
        found = card.probes.get(name)
        share, n = (found.consistency, found.n) if found and found.n else (math.nan, 0)
        ends = wilson(round(share * n), n) if n else NOTHING
        yield f"same {how}", Score(share, ends, n, name=name, unit="1")


_CONTROLS = {"mirror": "when mirrored", "swap": "when swapped", "mirror_swap": "under both"}


def public(result: Result, name: str) -> dict[str, Any]:
    """A result without the paths of the machine that it was made on."""
    plain = replace(result, folder=name).to_json()
    plain["run"] = {key: value for key, value in plain["run"].items() if key != "data"}
    return plain
