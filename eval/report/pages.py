"""The HTML pages of a report, from its contents."""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib import resources
from itertools import combinations, product
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from ...printable import printable
from ...schema import CANARY
from ..core import ALL, ORIGINAL, Score, describe
from ..questions import read_prompt
from ..results.changes import NO_MARGIN, reported_quality
from ..results.clips import score_meanings
from ..results.contents import RunContents
from ..results.judge_card import JudgeCard
from ..results.judge_check import gold_counts
from ..results.leaderboard import Leaderboard
from ..results.marks import legends, marks_of
from ..results.names import brief, short_judges
from ..results.risk import risk_curves
from ..results.scoring import JudgedRun, Result
from ..results.tables import FEW, few, population_text, read_order
from ..stats.agreement import cohen_kappa
from ..stats.estimate import share_of
from ..suites import open_suite
from . import numbers
from .overview import axis_of, overview, rank_all
from .plots import inline, risk_plot, scatter_plot
from .strips import PlotPoint, Strips, counted, dot_plot, key

EXAMPLE_RUNS = 3
"""Generators whose images the first page shows."""


def render_pages(
    title: str,
    runs: Sequence[RunContents],
    boards: Sequence[Leaderboard],
    galleries: Mapping[str, Mapping[str, Any]],
    judge_names: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Every page by file name.

    galleries: slug of a run, or suite of several runs -> its data, see `gallery`; judge_names: as
    in `short_judges`.
    """
    suites = by_suite(runs)
    identities = {j.result.judge: j.result.card.identity for run in runs for j in run.judged}
    by_description = {describe(identity): name for name, identity in identities.items()}
    short = short_judges(identities, judge_names)
    # A leaderboard names its judge by the description that all of its runs share.
    short |= {description: short[name] for description, name in by_description.items()}
    compared = [suite for suite in suites if suite in galleries]
    site = {
        "title": title,
        "suites": list(suites),
        "compared": compared,
        "runs": runs,
        "short": short,
    }
    views: list[dict[str, Any]] = [
        {"board": board, "ranked": rank_all(board), "axis": axis_of(board)} for board in boards
    ]
    lines = overview(runs, boards)
    standings = [standing for board in boards for standing in board.standings]
    marks = marks_of(standing.score for standing in standings)
    index = render(
        "index.html",
        site=site,
        views=views,
        lines=lines,
        marks=marks,
        examples=_examples(galleries[compared[0]], compared[0]) if compared else None,
    )
    pages = {"index.html": index}
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
            marks=marks_of(s for run in members for j in run.judged for s in j.result.scores),
            population=population_text(suite),
        )
        pages[f"{suite}-judges.html"] = render(
            "judges.html",
            site=site,
            suite=suite,
            judged=[judged for run in members for judged in run.judged],
            behavior=_behavior(judges),
            risk=inline(risk_plot(curves), f"{suite}: risk against coverage") if curves else None,
            curves=curves,
            asked=_prompt_texts(members),
            kappas=_kappas(members),
        )
        if suite in compared:
            pages[f"compare-{suite}.html"] = render(
                "gallery.html", site=site, suite=suite, run=None, data=galleries[suite]
            )
    for run in runs:
        pages[f"gallery-{run.slug}.html"] = render(
            "gallery.html", site=site, suite=run.suite.name, run=run, data=galleries[run.slug]
        )
    return pages


def by_suite(runs: Sequence[RunContents]) -> dict[str, list[RunContents]]:
    """Suite -> its runs, by name."""
    suites: dict[str, list[RunContents]] = {}
    for run in sorted(runs, key=lambda run: run.suite.name):
        suites.setdefault(run.suite.name, []).append(run)
    return suites


def _examples(data: Mapping[str, Any], suite: str) -> dict[str, Any] | None:
    """Images for the first page: of the first item that generators draw differently, else of the
    first, in every order of mention by `EXAMPLE_RUNS` generators; None without a thumbnail."""
    by_item: dict[str, list[Mapping[str, Any]]] = {}
    for image in data["images"]:
        if image["thumbnail"]:
            by_item.setdefault(image["item"], []).append(image)
    if not by_item:
        return None
    apart = (images for images in by_item.values() if any("apart" in i["flags"] for i in images))
    images = next(apart, next(iter(by_item.values())))
    shown = list(dict.fromkeys(image["run"] for image in images))[:EXAMPLE_RUNS]
    return {
        "suite": suite,
        "item": images[0]["item"],
        "images": [i for i in images if i["run"] in shown][: 2 * EXAMPLE_RUNS],
        "names": [run["name"] for run in data["runs"]],
    }


def _kappas(runs: Sequence[RunContents]) -> list[dict[str, Any]]:
    """Agreement of each two judges on each question, over the images of all runs that both judged:
    n, share of equal labels, and Cohen's kappa. Failures are no labels."""
    labels: dict[tuple[str, str], dict[tuple[str, str], str]] = {}
    for run in runs:
        for judged in run.judged:
            for outcome in judged.outcomes:
                for (question, probe), verdict in outcome.verdicts.items():
                    if probe == ORIGINAL and not verdict.failed:
                        of_judge = labels.setdefault((question, judged.result.judge), {})
                        of_judge[run.name, outcome.case.id] = verdict.label
    rows = []
    for (first, of_first), (second, of_second) in combinations(sorted(labels.items()), 2):
        shared = [case for case in of_first if case in of_second]
        if first[0] != second[0] or not shared:
            continue
        names = sorted({*of_first.values(), *of_second.values()})
        matrix = np.zeros((len(names), len(names)))
        for case in shared:
            matrix[names.index(of_first[case]), names.index(of_second[case])] += 1
        rows.append(
            {
                "question": first[0],
                "judges": (first[1], second[1]),
                "n": len(shared),
                "same": float(np.trace(matrix) / len(shared)),
                "kappa": cohen_kappa(matrix),
            }
        )
    return rows


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
        marks=numbers.marks,
        legends=legends,
        marks_of=marks_of,
        count=numbers.count,
        p_value=numbers.p_value,
        describe=describe,
        gold_counts=gold_counts,
        embedded=_embedded,
        key=key,
        read_order=read_order,
        few_groups=_few,
        brief=brief,
        population=lambda suite: open_suite(suite).population,
    )
    scripts = {name: _asset(f"{name}.js") for name in ("page", "gallery")}
    environment.globals.update(
        style=_asset("style.css"),
        scripts=scripts,
        script_hashes=[_hash(script) for script in scripts.values()],
        canary=CANARY,
        isnan=math.isnan,
        no_margin=NO_MARGIN,
    )
    return environment


def render(template: str, **values: Any) -> str:
    """A template of this room with its values, escaped."""
    return printable(_environment().get_template(template).render(**values))


def _asset(name: str) -> Markup:
    """A file of this package that goes into pages unchanged."""
    return Markup(resources.files(__package__).joinpath("templates", name).read_text("utf-8"))


def _hash(script: str) -> str:
    """Hash of a script, as in a Content-Security-Policy."""
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _embedded(value: object) -> Markup:
    """JSON that is safe in a script element: no text in it can end the element."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return Markup(text)


def _meanings(runs: Sequence[RunContents]) -> dict[str, str]:
    """Score -> its meaning, for the scores of a suite's runs, in the suite's order."""
    score_names = {
        score.name for run in runs for judged in run.judged for score in judged.result.scores
    }
    meanings = score_meanings(runs[0].suite)
    return {name: text for name, text in meanings.items() if name in score_names}


def _by_judge(runs: Sequence[RunContents]) -> dict[str, list[JudgedRun]]:
    by_judge: dict[str, list[JudgedRun]] = {}
    for run in runs:
        for judged in run.judged:
            by_judge.setdefault(judged.result.judge, []).append(judged)
    return dict(sorted(by_judge.items()))


def _name(run: JudgedRun) -> str:
    return brief(run.name, run.result.run.suite)


def _few(judged: JudgedRun) -> set[str]:
    """The groups of a run that are too small to be shown at once."""
    small = few(judged.result.scores)
    return {f"{column}={value}" for column, values in small.items() for value in values}


def _prompt_texts(runs: Sequence[RunContents]) -> dict[str, str]:
    """Name of a prompt -> its text, if the judges used its present version."""
    versions = {
        (name, version)
        for run in runs
        for judged in run.judged
        for name, version in judged.result.card.prompts.items()
    }
    prompts = {name: read_prompt(name) for name, version in sorted(versions)}
    return {name: p.text for name, p in prompts.items() if (name, p.version) in versions}


def _slopes(
    judges: Mapping[str, Sequence[JudgedRun]], score_names: tuple[str, str]
) -> list[tuple[str, Strips]]:
    """Two scores of each run under each judge."""
    plots = []
    for judge, judged in judges.items():
        rows = [
            (_name(run), [PlotPoint(run.whole[name], number, name) for name in score_names])
            for number, run in enumerate(judged)
            if score_names[0] in run.whole
        ]
        if rows:
            title = f"{' (hollow) to '.join(score_names)}".replace("_", " ")
            plots.append((judge, dot_plot(rows, title, linked=True)))
    return plots


def _quality(runs: Sequence[RunContents]) -> dict[str, Any] | None:
    """Quality beside bias, with a figure for each judge and scorer; None without scorers."""
    reports = reported_quality(runs)
    if not reports:
        return None
    suite = runs[0].suite
    labels = {run.name: brief(run.name, suite.name) for run in runs}
    judged = {run.name: {entry.result.judge: entry for entry in run.judged} for run in runs}
    scored = {run.name: {entry.scorer: entry.score for entry in run.quality} for run in runs}
    figures = []
    judges = dict.fromkeys(judge for of_run in judged.values() for judge in of_run)
    scorers = dict.fromkeys(scorer for of_run in scored.values() for scorer in of_run)
    for judge, scorer in product(judges, scorers):
        points = [
            (
                PlotPoint(judged[name][judge].whole[suite.headline.score], number, labels[name]),
                PlotPoint(scored[name][scorer], number, labels[name]),
            )
            for number, name in enumerate(judged)
            if judge in judged[name] and scorer in scored[name]
        ]
        if points:
            bias = f"{suite.headline.score.replace('_', ' ')} by {judge}"
            title = f"{scorer} over {bias}"
            plot = inline(scatter_plot(points, _arrows(runs)), title)
            n = counted([entry for pair in points for entry in pair])
            figures.append({"judge": judge, "scorer": scorer, "n": n, "plot": plot})
    return {"reports": reports, "figures": figures, "names": list(labels.values())}


def _arrows(runs: Sequence[RunContents]) -> list[tuple[int, int]]:
    """Places of a generator's run and of itself under a method."""
    places = {run.name: number for number, run in enumerate(runs)}
    plain = {
        json.dumps(dict(run.run.header.generator), sort_keys=True): number
        for number, run in enumerate(runs)
    }
    arrows = []
    for number, run in enumerate(runs):
        generator = {k: v for k, v in run.run.header.generator.items() if k != "method"}
        base = places.get(run.base, plain.get(json.dumps(generator, sort_keys=True)))
        if base is not None and base != number:
            arrows.append((base, number))
    return arrows


def _forests(
    judges: Mapping[str, Sequence[JudgedRun]], score_names: Sequence[str]
) -> list[dict[str, Any]]:
    """The scores of every group under each judge: a figure for each score and column, pair types
    first, and a second one of the groups that are too small to inform."""
    figures = []
    for (judge, judged), name in product(judges.items(), score_names):
        by_column: dict[str, dict[str, list[PlotPoint]]] = {}
        for number, run in enumerate(judged):
            for score in read_order(run.result.scores):
                if score.name == name and score.group != ALL:
                    column, _, value = score.group.partition("=")
                    points = by_column.setdefault(column, {}).setdefault(value, [])
                    points.append(PlotPoint(score, number, _name(run)))
        run_names = [_name(run) for run in judged]
        for column, rows in by_column.items():
            lines = [(value.replace("_", " "), points) for value, points in rows.items()]
            small = [line for line in lines if max(p.score.n for p in line[1]) < FEW]
            title = f"{name} by {column}".replace("_", " ")
            figures.append(
                {
                    "judge": judge,
                    "plot": dot_plot([x for x in lines if x not in small], title, run_names),
                    "small": dot_plot(small, title, run_names),
                }
            )
    return figures


def _behavior(judges: Mapping[str, Sequence[JudgedRun]]) -> list[tuple[str, Strips]]:
    """Behavior of every judge under the controls, over its runs."""
    plots = []
    for judge, judged in judges.items():
        rows: dict[str, list[PlotPoint]] = {}
        for number, run in enumerate(judged):
            for label, score in _card_scores(run.result.card):
                points = rows.setdefault(label, [])
                if not math.isnan(score.value):
                    points.append(PlotPoint(score, number, _name(run)))
        drawn = [(label, points) for label, points in rows.items() if points]
        title = f"behavior of {judge}, as shares"
        plots.append((judge, dot_plot(drawn, title, [_name(run) for run in judged])))
    return plots


def _card_scores(card: JudgeCard) -> Iterator[tuple[str, Score]]:
    """(Label, score) of the points of a judge's card; NaN where undefined."""
    yield "parsed", Score(card.parse_rate, n=card.asked, name="parsed", unit="1")
    yield (
        "first-named",
        Score(card.first_named, n=card.asked, name="first_named", unit="1", null=0.5),
    )
    for name, how in _CONTROLS.items():
        probe = card.probes.get(name)
        same = (
            share_of(round(probe.consistency * probe.n), probe.n)
            if probe and probe.n
            else share_of(0, 0)
        )
        yield f"same {how}", Score.of(same, name=name, unit="1")


_CONTROLS = {"mirror": "when mirrored", "swap": "when swapped", "mirror_swap": "under both"}


def public(result: Result, name: str) -> dict[str, Any]:
    """A result without the paths of the machine that it was made on."""
    plain = replace(result, folder=name).to_json()
    plain["run"] = {key: value for key, value in plain["run"].items() if key != "data"}
    return plain
