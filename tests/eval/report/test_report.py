"""The site that `report` writes: its numbers, its texts, its filters, and what it refuses."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import math
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from huggingface_hub import eval_result_entries_to_yaml, parse_eval_result_entries
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from counterprior.eval.core import Case
from counterprior.eval.engine.run import MadeImage, Run, RunError, RunHeader
from counterprior.eval.report.exports import FORMS
from counterprior.eval.report.gallery import FILTERS, flags
from counterprior.eval.report.numbers import show
from counterprior.eval.report.site import ReportSettings, write_report
from counterprior.eval.report.svg import Axis
from counterprior.eval.results.contents import read_contents
from counterprior.eval.results.leaderboard import leaderboards, paired
from counterprior.eval.results.risk import risk_curves
from counterprior.eval.stats.abstention import risk_coverage
from counterprior.eval.suites import SUITES
from counterprior.eval.suites.headlines import HEADLINES, Item

HOSTILE = """</script><script>alert(1)</script><img src=x onerror="alert('2')"> & "quoted" \u2028"""
PIXELS = {"kind": "pixels", "version": "1"}
OTHER = {"kind": "other", "model": "<b>bold</b>"}
QUESTIONS = {"t2i_homogenization": "order", "i2i_correctness": "binding"}
LABELS = {
    "t2i_homogenization": ["first_left", "first_right", "invalid"],
    "i2i_correctness": ["correct", "wrong", "invalid"],
}

Say = Callable[[int, str, str], Mapping[str, Any]]
"""From case number, variant and probe to the fields of a verdict."""


def _seed() -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (64, 48), "blue").save(buffer, "PNG")
    return buffer.getvalue()


SEED = _seed()
SOURCE = f"sources/{hashlib.sha256(SEED).hexdigest()}.png"


def cases_of(suite: str, rows: int) -> list[Case]:
    variants = ("plain", "swapped") if suite == "t2i_homogenization" else ("aligned", "reverse")
    groups = [{"pair_type": "A-A"}, {"pair_type": "H-H"}]
    return [
        Case(f"{suite}-{row:03}", variant, row, 0, f"{HOSTILE} {row}", (f"a/{row}", "a", str(row))
             if suite == "t2i_homogenization" else (f"a/{row}",), groups[row % 2], source=SOURCE
             if suite == "i2i_correctness" and row else "")
        for row in range(rows)
        for variant in variants
    ]  # fmt: skip


def make_run(
    root: Path, suite: str, rows: int, judges: list[tuple[Mapping[str, str], Say]], **header: Any
) -> Path:
    """A judged run; the first case's picture is missing, the second's is no picture."""
    cases = cases_of(suite, rows)
    told = RunHeader(suite, "somewhere/secret", "d" * 64, rows, 1, None,
                     {"kind": "folder", "name": HOSTILE})  # fmt: skip
    run = Run.start(root, replace(told, **header), cases)
    for folder in ("images", "sources"):
        (root / folder).mkdir(exist_ok=True)
    (root / SOURCE).write_bytes(SEED)
    made = {}
    with run.image_log() as log:
        for number, case in enumerate(cases):
            image = MadeImage(case.id, "missing", message="/secret/path")
            if number:
                path = root / "images" / f"{case.id}.png"
                Image.new("RGB", (64, 48), (number % 256, 90, 40)).save(path)
                if number == 1:
                    path.write_bytes(b"no picture")
                digest = hashlib.sha256(path.read_bytes()).hexdigest()
                image = MadeImage(case.id, "made", f"images/{case.id}.png", digest)
            made[case.id] = image
            log.append(image.__dict__)
    for identity, say in judges:
        with run.judge({**identity, "persona": "standard"}).log() as log:
            for number, case in enumerate(cases):
                image = made[case.id]
                if number < 2:
                    label = "missing" if number == 0 else "error"
                    log.append(verdict(suite, case, image, "original", {"label": label}, ""))
                    continue
                for probe in ("original", "mirror"):
                    said = say(number, case.variant, probe)
                    log.append(verdict(suite, case, image, probe, said, QUESTIONS[suite]))
    return root


def verdict(
    suite: str, case: Case, made: MadeImage, probe: str, said: Mapping[str, Any], question: str
) -> dict[str, Any]:
    labels = LABELS[suite]
    return {
        "key": f"{case.id}/{probe}",
        "case": case.id,
        "image": made.sha256,
        "question": question,
        "probe": probe,
        "labels": labels,
        "answers": {str(number): label for number, label in enumerate(labels, 1)},
        "raw": f"I say {HOSTILE}",
        **said,
    }


def biased(share: float, seed: int) -> Say:
    """Says that the prior holds in this share of the cases; every ninth is invalid."""
    drawn = np.random.default_rng(seed).random(10_000)

    def say(number: int, variant: str, probe: str) -> dict[str, Any]:
        if number % 9 == 8:
            return {"label": "invalid"}
        first = bool(drawn[number] < share)
        if probe == "mirror" and number % 7 == 3:
            first = not first
        label = "first_left" if first else "first_right"
        return {"label": label, "probabilities": {label: 0.5 + drawn[number] / 2}}

    return say


def correct(aligned: float, reverse: float, seed: int) -> Say:
    drawn = np.random.default_rng(seed).random(10_000)

    def say(number: int, variant: str, probe: str) -> dict[str, Any]:
        share = aligned if variant == "aligned" else reverse
        return {"label": "correct" if drawn[number] < share else "wrong"}

    return say


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Three generators on one suite under two judges, two on another; read only."""
    root = tmp_path_factory.mktemp("runs")
    found = {}
    for name, share in (("fair", 0.5), ("leaning", 0.55), ("biased", 0.97)):
        judges = [(PIXELS, biased(share, 1)), (OTHER, biased(share, 2))]
        found[name] = make_run(root / name, "t2i_homogenization", 60, judges)
    for name, reverse in (("steady", 0.9), ("falling", 0.3)):
        judges = [(PIXELS, correct(0.95, reverse, 3))]
        found[name] = make_run(root / name, "i2i_correctness", 40, judges)
    return found


@pytest.fixture(scope="module")
def labels(runs: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What people say of the first thirty cases of the homogenization suite."""
    path = tmp_path_factory.mktemp("labels") / "labels.csv"
    rows = [f"{case.id},{run.images()[case.id].sha256},order,{('first_left', 'first_right')[n % 2]}"
            for run in map(Run.open, runs.values()) if run.header.suite == "t2i_homogenization"
            for n, case in enumerate(run.cases()[2:32]) if case.id in run.images()]  # fmt: skip
    path.write_text("\n".join(["case,image,question,label", *rows]) + "\n")
    return path


@pytest.fixture(scope="module")
def site(runs: dict[str, Path], labels: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of all of them; read only."""
    out = tmp_path_factory.mktemp("site") / "site"
    forms = ("inspect", "hub")
    settings = ReportSettings(
        tuple(runs.values()), out, labels, title=HOSTILE, export=forms, dataset="a/b@v1.0.0"
    )
    assert write_report(settings) == out / "index.html"
    return out


VOID = {"meta", "img", "input", "br", "link", "hr"}


class Page(HTMLParser):
    """A page as a list of (tag, attributes, text); fails where elements are not nested."""

    def __init__(self, path: Path) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str], list[str]]] = []
        self.path: list[int] = []
        self.parents: list[int | None] = []
        self.feed(path.read_text("utf-8"))
        self.close()
        assert not self.path, f"{path.name}: {self.elements[self.path[-1]][0]} is not closed"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.parents.append(self.path[-1] if self.path else None)
        self.elements.append((tag, {name: value or "" for name, value in attrs}, []))
        if tag not in VOID:
            self.path.append(len(self.elements) - 1)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.path and self.elements[self.path[-1]][0] == tag, f"</{tag}> at {self.getpos()}"
        self.path.pop()

    def handle_data(self, data: str) -> None:
        for number in self.path:
            self.elements[number][2].append(data)

    def all(self, tag: str) -> list[tuple[dict[str, str], str]]:
        return [(attributes, "".join(text)) for name, attributes, text in self.elements
                if name == tag]  # fmt: skip

    def within(self, number: int, tag: str) -> Iterator[tuple[dict[str, str], str]]:
        """Elements of a tag below the one with this number."""
        for place, (name, attributes, text) in enumerate(self.elements):
            above = self.parents[place]
            while above is not None and above != number:
                above = self.parents[above]
            if above == number and name == tag:
                yield attributes, "".join(text)


def pages(site: Path) -> dict[str, Page]:
    return {path.name: Page(path) for path in sorted(site.glob("*.html"))}


def scores_of(runs: Mapping[str, Path]) -> dict[tuple[str, str, str, str], dict[str, Any]]:
    """Run, judge, score and group -> what scores.json says."""
    return {
        (name, result["judge"], score["name"], score["group"]): score
        for name, root in runs.items()
        for result in json.loads((root / "scores.json").read_text())
        for score in result["scores"]
    }


def test_pages_are_whole_linked_and_accessible(site: Path, runs: dict[str, Path]) -> None:
    found = pages(site)
    expected = {"index.html", *(f"gallery-{name}.html" for name in runs)}
    for suite in ("t2i_homogenization", "i2i_correctness"):
        expected |= {f"{suite}.html", f"{suite}-judges.html"}
    assert set(found) == expected
    for name, page in found.items():
        (html, _), *_ = page.all("html")
        assert html["lang"] == "en"
        assert len(page.all("h1")) == len(page.all("main")) == 1
        levels = [int(tag[1]) for tag, _, _ in page.elements if re.fullmatch(r"h[1-6]", tag)]
        assert all(b - a <= 1 for a, b in pairwise(levels)), name
        for attributes, _ in page.all("svg"):
            assert attributes["role"] == "img" and attributes["aria-label"]
        for attributes, _ in page.all("th"):
            assert attributes["scope"] in ("row", "col")
        ids = [attributes["id"] for _, attributes, _ in page.elements if "id" in attributes]
        assert len(ids) == len(set(ids))
        for attributes, _ in page.all("a"):
            target = attributes["href"].split("#")[0]
            assert not target or (site / target).is_file(), (name, target)
        assert sum("aria-current" in attributes for attributes, _ in page.all("a")) == 1, name


def test_every_score_on_the_pages_is_the_one_of_scores_json(
    site: Path, runs: dict[str, Path]
) -> None:
    scores, seen = scores_of(runs), set()
    for name in ("index.html", "t2i_homogenization.html", "i2i_correctness.html"):
        page = Page(site / name)
        for number, (tag, about, _) in enumerate(page.elements):
            if tag != "tr" or "data-score" not in about:
                continue
            key = (about["data-run"], about["data-judge"], about["data-score"],
                   about["data-group"])  # fmt: skip
            score = scores[key]
            seen.add((name, key))
            for place, (cell, attributes, _) in enumerate(page.elements):
                if cell == "td" and page.parents[place] == number and "data-field" in attributes:
                    check_cell(attributes["data-field"], list(page.within(place, "data")), score)
    for suite in ("t2i_homogenization", "i2i_correctness"):
        on_page = {key for name, key in seen if name == f"{suite}.html"}
        names = {run for run, root in runs.items() if Run.open(root).header.suite == suite}
        assert on_page == {key for key in scores if key[0] in names}
    headlines = {key for name, key in seen if name == "index.html"}
    assert {key[2] for key in headlines} == {"hom", "accuracy_reverse"}
    assert len(headlines) == 3 * 2 + 2


def check_cell(field: str, numbers: list[tuple[dict[str, str], str]], score: Any) -> None:
    if field == "groups":
        return
    expected = score[field]
    if field == "excluded":
        expected = [count for count in expected.values() if count]
    expected = expected if isinstance(expected, list) else [expected]
    expected = [value for value in expected if value is not None]
    assert [float(attributes["value"]) for attributes, _ in numbers] == expected, field
    for attributes, text in numbers:
        if text.startswith("<"):
            assert float(attributes["value"]) < float(text[1:])
            continue
        digits = len(text.partition(".")[2])
        assert (
            abs(float(text.replace(",", "")) - float(attributes["value"])) <= 0.5001 * 10**-digits
        )
        assert digits == (0 if field in ("n", "excluded") else
                          3 if field == "p_value" or score["unit"] == "1" else 1)  # fmt: skip


def test_every_number_of_the_judges_cards_is_the_one_of_scores_json(
    site: Path, runs: dict[str, Path]
) -> None:
    cards = {(name, result["judge"]): result["card"] for name, root in runs.items()
             for result in json.loads((root / "scores.json").read_text())}  # fmt: skip
    seen = set()
    for path in site.glob("*-judges.html"):
        page = Page(path)
        for number, (tag, about, _) in enumerate(page.elements):
            if tag != "section":
                continue
            card = cards[about["data-run"], about["data-judge"]]
            seen.add((about["data-run"], about["data-judge"]))
            for place, (row, attributes, _) in enumerate(page.elements):
                if row == "tr" and "data-field" in attributes and inside(page, place, number):
                    value: Any = card
                    for key in attributes["data-field"].split("."):
                        value = value[key]
                    shown = [float(a["value"]) for a, _ in page.within(place, "data")]
                    expected = (
                        [value["consistency"], value["n"]] if isinstance(value, dict) else [value]
                    )
                    assert shown == [e for e in expected if e is not None]
                if row == "table" and "data-question" in attributes and inside(page, place, number):
                    agreement = card["agreement"][attributes["data-question"]]
                    shown = [float(a["value"]) for a, _ in page.within(place, "data")]
                    cells = [n for line in agreement["matrix"] for n in line]
                    head = [agreement[name] for name in ("kappa", "low", "high", "n")]
                    assert shown == [*head, *cells]
    assert seen == set(cards)
    assert any(card["agreement"] for card in cards.values())


def inside(page: Page, place: int, number: int) -> bool:
    above = page.parents[place]
    while above is not None and above != number:
        above = page.parents[above]
    return above == number


def test_hostile_texts_stay_texts(site: Path) -> None:
    for name, page in pages(site).items():
        scripts = page.all("script")
        assert len(scripts) == (2 if name.startswith("gallery") else 0), name
        assert not any("alert" in text for attributes, text in scripts if "type" not in attributes)
        assert not page.all("img") and not page.all("b" if name.endswith("judges.html") else "i2")
        for _, attributes, _ in page.elements:
            assert not any(attribute.startswith("on") for attribute in attributes)
        assert page.all("title")[0][1].endswith(HOSTILE)
    page = Page(site / "gallery-fair.html")
    (data,) = [text for attributes, text in page.all("script") if "type" in attributes]
    picture = json.loads(data)["pictures"][4]
    assert picture["prompt"] == f"{HOSTILE} 2"
    assert picture["answers"][0][0]["raw"] == f"I say {HOSTILE}"


def test_nothing_points_outside(site: Path) -> None:
    for path in sorted(site.glob("*.html")):
        text, page = path.read_text(), Page(path)
        assert not re.search(r"(?:https?|ftp|wss?):", text), path.name
        assert "@import" not in text and "url(" not in text
        for _, attributes, _ in page.elements:
            for name in ("src", "href", "action", "poster", "srcset"):
                assert not re.match(r"\w+:|//|/", attributes.get(name, "")), path.name
        policy = next(a["content"] for a, _ in page.all("meta") if "http-equiv" in a)
        assert policy.startswith("default-src 'none'; img-src 'self' file:;")
        for attributes, script in page.all("script"):
            if "type" not in attributes:
                digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
                assert f"script-src 'sha256-{digest}'" in policy
    assert "secret" not in "".join(path.read_text() for path in site.glob("*.*"))


def test_the_gallery_has_every_picture_and_its_filters(site: Path, runs: dict[str, Path]) -> None:
    page = Page(site / "gallery-biased.html")
    (data,) = [json.loads(t) for a, t in page.all("script") if "type" in a]
    run = Run.open(runs["biased"])
    assert [p["id"] for p in data["pictures"]] == [case.id for case in run.cases()]
    judges = [folder.name for folder in run.judges()]
    assert data["judges"] == judges and len(judges) == 2
    missing, broken, *others = data["pictures"]
    assert (missing["status"], missing["thumbnail"], missing["flags"]) == (
        "missing",
        "",
        ["failure"],
    )
    assert (broken["status"], broken["thumbnail"], broken["flags"]) == ("made", "", ["failure"])
    thumbnails = {p["thumbnail"] for p in others}
    for name in thumbnails:
        with Image.open(site / name) as small:
            assert small.format == "WEBP" and max(small.size) <= 256
    said = [biased(0.97, 1), biased(0.97, 2)]
    expected = []
    for number in range(2, 120):
        answers = [[{"question": "order", "probe": probe} | dict(say(number, "", probe))
                    for probe in ("original", "mirror")] for say in said]  # fmt: skip
        first = {a[0]["label"] for a in answers}
        flipped = any(a[0]["label"] != a[1]["label"] for a in answers)
        expected.append([flag for flag, holds in (
            ("disagreement", len(first) > 1), ("flipped", flipped), ("invalid", "invalid" in first),
        ) if holds])  # fmt: skip
    assert [p["flags"] for p in others] == expected
    assert {f["flag"]: f["count"] for f in data["filters"]} == {
        flag: sum(flag in p["flags"] for p in data["pictures"]) for flag in FILTERS
    }
    assert all(f["count"] for f in data["filters"])
    shown = {a["value"] for a, _ in page.all("input") if a.get("name") == "flag"}
    assert shown == {"", *FILTERS}
    assert others[0]["answers"][0][0]["probability"] == pytest.approx(
        biased(0.97, 2)(2, "", "original")["probabilities"][others[0]["answers"][0][0]["label"]]
    ) or judges[0].startswith("pixels")


def test_an_edit_stands_beside_its_source(site: Path) -> None:
    page = Page(site / "gallery-steady.html")
    (data,) = [json.loads(t) for a, t in page.all("script") if "type" in a]
    *without, shown = [data["pictures"][number] for number in (0, 1, 5)]
    assert [(p["edit"], p["source"]) for p in without] == [(False, "")] * 2
    assert shown["edit"] and shown["source"] != shown["thumbnail"]
    with Image.open(site / shown["source"]) as small:
        assert small.convert("RGB").getpixel((30, 20))[2] > 200
    drawn = json.loads(next(t for a, t in Page(site / "gallery-biased.html").all("script") if a))
    assert not any(p["edit"] for p in drawn["pictures"])


def answer(label: str, probe: str = "original", question: str = "order") -> dict[str, str]:
    return {"label": label, "probe": probe, "question": question}


@pytest.mark.parametrize(
    ("answers", "made", "expected"),
    [
        ([[answer("first_left")]], True, []),
        ([[answer("first_left")], [answer("first_left")]], True, []),
        ([[answer("first_left")], [answer("first_right")]], True, ["disagreement"]),
        ([[answer("first_left")], [answer("unparsed")]], True, ["failure"]),
        ([[answer("invalid")], [answer("first_left")]], True, ["disagreement", "invalid"]),
        ([[answer("yes", question="a"), answer("no", question="b")]], True, []),
        ([[answer("first_left"), answer("first_right", "mirror")]], True, ["flipped"]),
        ([[answer("first_left"), answer("invalid", "swap")]], True, ["flipped"]),
        ([[answer("first_left"), answer("refused", "mirror")]], True, ["failure"]),
        ([[answer("refused"), answer("first_left", "mirror")]], True, ["failure"]),
        ([[answer("first_left")], []], True, []),
        ([[], []], True, ["failure"]),
        ([[answer("missing", question="")]], False, ["failure"]),
    ],
)
def test_flags(answers: list[list[dict[str, str]]], made: bool, expected: list[str]) -> None:
    assert flags(answers, made) == expected


def test_every_suite_has_a_headline_score() -> None:
    assert set(HEADLINES) == set(SUITES)


def test_the_leaderboard_tells_apart_what_the_pairs_tell_apart(runs: dict[str, Path]) -> None:
    contents = read_contents(list(runs.values()), None, False)
    boards = leaderboards(contents, False)
    assert [board.suite for board in boards] == ["i2i_correctness", *["t2i_homogenization"] * 2]
    board = next(b for b in boards[1:] if b.judge.startswith("pixels"))
    groups = {standing.name: standing.groups for standing in board.standings}
    assert [s.name for s in board.standings][-1] == "biased"
    assert groups["fair"] == groups["leaning"] == "A" and groups["biased"] == "B"
    values = {s.name: s.score.value for s in board.standings}
    assert len(board.comparisons) == 3
    for pair in board.comparisons:
        # All three have values for the same cases here, so the difference is that of the scores.
        assert pair.difference == pytest.approx(values[pair.first] - values[pair.second])
        assert pair.interval.low <= pair.difference <= pair.interval.high
        assert pair.adjusted >= pair.p_value
        assert (pair.adjusted < 0.05) == ("biased" in (pair.first, pair.second))
    assert [s.name for s in boards[0].standings] == ["steady", "falling"]


def test_runs_under_other_judges_or_rows_are_refused(runs: dict[str, Path], tmp_path: Path) -> None:
    one = make_run(tmp_path / "one", "t2i_homogenization", 6, [(PIXELS, biased(0.5, 1))])
    other = make_run(tmp_path / "other", "t2i_homogenization", 6, [(OTHER, biased(0.5, 1))])
    with pytest.raises(RunError, match=r"one was judged by .*: their scores can't be compared"):
        write_report(ReportSettings((runs["steady"], other, one), tmp_path / "site"))
    index = write_report(ReportSettings((one, other), tmp_path / "site", across_judges=True))
    assert "judged by different judges" in index.read_text()
    boards = json.loads((tmp_path / "site" / "report.json").read_text())["leaderboards"]
    assert [len(board["standings"]) for board in boards] == [2]
    foreign = make_run(tmp_path / "foreign", "t2i_homogenization", 6, [(PIXELS, biased(0.5, 1))],
                       rows_sha256="e" * 64)  # fmt: skip
    with pytest.raises(RunError, match="are of different rows"):
        write_report(ReportSettings((one, foreign), tmp_path / "site"))
    with pytest.raises(RunError, match="given twice"):
        write_report(ReportSettings((one, one), tmp_path / "site"))


def test_a_run_without_a_usable_answer_is_unranked(runs: dict[str, Path], tmp_path: Path) -> None:
    silent = make_run(tmp_path / "silent", "t2i_homogenization", 60,
                      [(PIXELS, lambda *_: {"label": "unparsed"}),
                       (OTHER, lambda *_: {"label": "refused"})])  # fmt: skip
    (board, _) = leaderboards(read_contents([silent, runs["fair"]], None, False), False)
    assert [(s.name, s.groups) for s in board.standings] == [("fair", "A"), ("silent", "")]
    assert board.comparisons == []
    index = write_report(ReportSettings((silent, runs["fair"]), tmp_path / "site"))
    assert "unranked" in index.read_text() and "undefined" in index.read_text()


signs = st.lists(st.tuples(*[st.sampled_from([1.0, -1.0, math.nan])] * 2), min_size=1, max_size=30)


@given(signs)
def test_two_runs_are_compared_on_what_both_have(values: list[tuple[float, float]]) -> None:
    headline = HEADLINES["t2i_homogenization"]
    first = {n: Item((a,), str(n // 2)) for n, (a, _) in enumerate(values)}
    second = {n: Item((b,), str(n // 2)) for n, (_, b) in enumerate(values)}
    both = [(a, b) for a, b in values if not math.isnan(a + b)]
    drawn, n = paired(first, second | {"only here": Item((1.0,), "x")}, headline)
    assert n == len(both)
    if both:
        a, b = np.array(both).T
        assert drawn.estimate[0] == pytest.approx(abs(a.mean()) - abs(b.mean()))
        back, _ = paired(second, first, headline)
        assert back.estimate[0] == pytest.approx(-drawn.estimate[0])
        same, _ = paired(first, first, headline)
        assert same.estimate[0] == 0 and same.p_value() == 1
    else:
        assert math.isnan(drawn.estimate[0])


def test_ratios_are_compared_as_ratios_of_means() -> None:
    levels = {0: (0.9, 0.6, 0.2), 1: (0.7, 0.5, 0.1), 2: (0.8, 0.2, 0.3)}
    better = {key: Item(values, str(key)) for key, values in levels.items()}
    worse = {key: Item((l1, l2 / 2, l3), str(key)) for key, (l1, l2, l3) in levels.items()}
    drawn, n = paired(better, worse, HEADLINES["counterfactual"])
    assert n == 3
    assert drawn.estimate[0] == pytest.approx((1.3 / 3 - 0.65 / 3) / math.sqrt(2.4 / 3))


def test_risk_and_coverage_are_those_of_the_labelled_answers(
    runs: dict[str, Path], labels: Path, site: Path
) -> None:
    told = {(case.id, "order"): ("first_left", "first_right")[number % 2]
            for number, case in enumerate(Run.open(runs["fair"]).cases()[2:32])}  # fmt: skip
    (contents,) = read_contents([runs["fair"]], labels, False)
    curves = risk_curves([replace(contents, told=told)])
    assert len(curves) == 2
    curve = next(c for c in curves if "pixels" in c.name)
    said = [(number, biased(0.5, 1)(number, "", "original")) for number in range(2, 32)]
    known = [(n, v) for n, v in said if "probabilities" in v]
    sure = [v["probabilities"][v["label"]] for _, v in known]
    right = [v["label"] == ("first_left", "first_right")[n % 2] for n, v in known]
    assert curve.n == len(known) < 30
    expected = risk_coverage(sure, right)
    assert curve.curve.area == pytest.approx(expected.area)
    assert np.allclose(curve.curve.risk, expected.risk)
    page = (site / "t2i_homogenization-judges.html").read_text()
    assert f'<data value="{curve.curve.area!r}">' in page
    assert "Risk and coverage" not in (site / "i2i_correctness-judges.html").read_text()


def files(root: Path) -> dict[str, bytes]:
    return {p.relative_to(root).as_posix(): p.read_bytes() for p in root.rglob("*") if p.is_file()}


def test_a_report_is_written_again_to_the_byte_and_cleans_up(
    runs: dict[str, Path], labels: Path, site: Path, tmp_path: Path
) -> None:
    out = tmp_path / "again"
    forms = ("inspect", "hub")
    settings = ReportSettings(
        tuple(runs.values()), out, labels, title=HOSTILE, export=forms, dataset="a/b@v1.0.0"
    )
    write_report(settings)
    assert files(out) == files(site)
    kept = {path: path.stat().st_mtime_ns for path in (out / "thumbnails").iterdir()}
    write_report(replace(settings, runs=(runs["fair"],), export=()))
    left = files(out)
    assert {name for name in left if name.endswith(".html")} == {
        "index.html", "t2i_homogenization.html", "t2i_homogenization-judges.html",
        "gallery-fair.html",
    }  # fmt: skip
    assert not any(name.startswith("export/") for name in left)
    for path in (out / "thumbnails").iterdir():
        assert path.stat().st_mtime_ns == kept[path]


def test_a_folder_that_is_no_report_is_left_alone(runs: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("precious")
    with pytest.raises(RunError, match="is not empty and no report"):
        write_report(ReportSettings((runs["fair"],), tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_runs_of_one_name_are_told_apart(tmp_path: Path) -> None:
    roots = [make_run(tmp_path / parent / "run", "t2i_homogenization", 4, [(PIXELS, biased(1, 1))])
             for parent in ("a", "A b")]  # fmt: skip
    contents = read_contents(roots, None, False)
    assert [(c.name, c.slug) for c in contents] == [("a/run", "a-run"), ("A b/run", "a-b-run")]


def test_exports_say_what_the_scores_say(site: Path, runs: dict[str, Path]) -> None:
    scores = scores_of(runs)
    found = sorted((site / "export" / "hub").rglob("*.yaml"))
    assert len(found) == 8
    excluded = 0
    for path in found:
        written = yaml.safe_load(path.read_text())
        (parsed,) = parse_eval_result_entries(written)
        assert eval_result_entries_to_yaml([parsed]) == written
        assert (parsed.dataset_id, parsed.dataset_revision) == ("a/b", "v1.0.0")
        run, (entry,) = path.parts[-3], written
        headline = HEADLINES[entry["dataset"]["task_id"]]
        judge = next(key[1] for key in scores if key[0] == run and path.stem.endswith(key[1]))
        score = scores[run, judge, headline.score, "all"]
        assert entry["value"] == score["value"]
        notes = entry["notes"].split("; ")
        shown = " to ".join(show(end, score["unit"]) for end in score["interval"])
        assert f"n = {score['n']}" in notes
        assert f"95 % interval {shown}" in notes or "95 % interval -" in notes
        left_out = ", ".join(f"{name} {n}" for name, n in sorted(score["excluded"].items()))
        assert f"left out: {left_out or 'nothing'}" in notes
        excluded += bool(left_out)
    assert excluded
    logs = sorted((site / "export" / "inspect").glob("*.json"))
    assert len(logs) == 8
    for path in logs:
        log = json.loads(path.read_text())
        assert log["version"] == 2 and log["status"] == "success"
        judge = log["results"]["scores"][0]["scorer"]
        run = next(key[0] for key in scores if key[1] == judge and f"{key[0]}-{judge}" in path.name)
        for entry in log["results"]["scores"]:
            score = scores[run, judge, entry["name"].split()[0], entry["params"]["group"]]
            value = entry["metrics"].get("value", {"value": None})["value"]
            assert (value, entry["scored_samples"]) == (score["value"], score["n"])
        assert log["samples"][0]["scores"]["picture"]["value"] == "missing"
        assert log["samples"][0]["scores"]["picture"]["metadata"]["failure"]


def test_an_export_that_lacks_something_says_so(runs: dict[str, Path], tmp_path: Path) -> None:
    settings = ReportSettings((runs["fair"],), tmp_path / "site")
    for changes, reason in (
        ({"export": ("pdf",)}, f"choose from {', '.join(FORMS)}"),
        ({"export": ("hub",)}, "--dataset NAMESPACE/NAME"),
        ({"dataset": "dist/a/b"}, "write NAMESPACE/NAME"),
        ({"dataset": "a/b"}, "the release's tag"),
        ({"dataset": "a/b@main"}, "the release's tag"),
        ({"dataset": "a/b@5503434"}, "its 40 digits"),
    ):
        with pytest.raises(ValueError, match=reason):
            write_report(replace(settings, **changes))
    assert not (tmp_path / "site").exists()


def test_ticks_are_round_and_inside() -> None:
    assert Axis(-100, 100, 0, 1).ticks() == [-100, -50, 0, 50, 100]
    assert Axis(0, 1.37, 0, 1).ticks() == [0, 0.25, 0.5, 0.75, 1, 1.25]
    assert Axis(0, 100, 10, 110)(250) == 110


def test_the_command(
    text_release: Path, tmp_path: Path, cli: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    done = cli("eval", "--suite", "t2i_homogenization", "--data", text_release, "--limit", 4,
               "--generator", "render:?order_bias=1", "--judge", "pixels", "--out",
               tmp_path / "run")  # fmt: skip
    assert done.returncode == 0, done.stderr
    done = cli("report", tmp_path / "run", "--out", tmp_path / "site", "--export", "inspect")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(tmp_path / "site" / "index.html")
    scores = json.loads((tmp_path / "run" / "scores.json").read_text())[0]["scores"]
    report = json.loads((tmp_path / "site" / "report.json").read_text())
    assert report["results"][0]["scores"] == scores
    assert report["results"][0]["folder"] == "run"
    assert str(tmp_path) not in "".join(p.read_text() for p in (tmp_path / "site").glob("*.*"))
    done = cli("report", tmp_path, "--out", tmp_path / "other")
    assert done.returncode == 2 and "is no run" in done.stderr
