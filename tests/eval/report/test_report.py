"""The site that `report` writes: its numbers, its texts, its filters, and what it refuses."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import math
import os
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from huggingface_hub import eval_result_entries_to_yaml, parse_eval_result_entries
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from refusals import assert_refused, raises

from counterprior.errors import UsageError
from counterprior.eval.core import Case, Verdict
from counterprior.eval.engine.run import CaseResult, Replacement, Run, RunError, RunHeader
from counterprior.eval.report.exports import FORMS
from counterprior.eval.report.gallery import FILTERS, flags, make_thumbnails
from counterprior.eval.report.overview import overview
from counterprior.eval.report.site import write_report
from counterprior.eval.report.strips import ValueAxis
from counterprior.eval.results.contents import RunContents, read_contents
from counterprior.eval.results.leaderboard import Leaderboard, leaderboards, paired
from counterprior.eval.results.names import slugify
from counterprior.eval.results.risk import risk_curves
from counterprior.eval.results.scoring import Result, ScoreSettings, score_runs
from counterprior.eval.stats.abstention import risk_coverage
from counterprior.eval.stats.estimate import LOG_ODDS, Estimate, value_text
from counterprior.eval.store.verdicts import VERDICTS, Answered
from counterprior.eval.suites import SUITES, open_suite, scoring
from counterprior.eval.suites.base import Item
from counterprior.printable import printable
from counterprior.storage import RecordLog

HOSTILE = """</script><script>alert(1)</script><img src=x onerror="alert('2')"> & "quoted" \u2028"""
PIXELS = {"kind": "pixels", "version": "1"}
OTHER = {"kind": "other", "model": "<b>bold</b>"}
NAMES = ["other:<b>bold</b>", "pixels"]
"""Of the judges, as the pages show them."""
QUESTIONS = {"t2i_homogenization": "order", "i2i_correctness": "binding"}
LABELS = {
    "t2i_homogenization": ["first_left", "first_right", "invalid"],
    "i2i_correctness": ["correct", "wrong", "invalid"],
}

Say = Callable[[int, str, str], Verdict]
"""From case number, variant and probe to a verdict."""


def _seed() -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (64, 48), "blue").save(buffer, "PNG")
    return buffer.getvalue()


SEED = _seed()
SOURCE = f"sources/{hashlib.sha256(SEED).hexdigest()}.png"


def cases_of(suite: str, rows: int) -> list[Case]:
    drawn = suite == "t2i_homogenization"
    variants = ("plain", "swapped") if drawn else ("aligned", "reverse")
    groups = [{"pair_type": "A-A"}, {"pair_type": "H-H"}]
    return [
        Case(
            row=f"{suite}-{row:03}",
            variant=variant,
            seed=row,
            number=0,
            prompt=f"{HOSTILE} {row}",
            clusters=(f"a{row}/b{row}", f"a{row}", f"b{row}") if drawn else (f"a/{row}",),
            groups=groups[row % 2],
            source=SOURCE if row and not drawn else "",
        )
        for row in range(rows)
        for variant in variants
    ]


def make_run(
    root: Path, suite: str, rows: int, judges: list[tuple[Mapping[str, str], Say]], **header: Any
) -> Path:
    """A judged run; the first case's image is missing, the judges fail on the second's."""
    cases = cases_of(suite, rows)
    told = RunHeader(
        suite=suite,
        data="somewhere/secret",
        rows_sha256="d" * 64,
        rows=rows,
        seeds=1,
        limit=None,
        generator={"kind": "folder", "name": HOSTILE},
    )
    run = Run.start(root, replace(told, **header), cases)
    for folder in ("images", "sources"):
        (root / folder).mkdir(exist_ok=True)
    (root / SOURCE).write_bytes(SEED)
    with run.results as results:
        for number, case in enumerate(cases):
            results.append(made_image(root, case, number))
    for identity, say in judges:
        judge = run.judge({**identity, "persona": "standard"})
        with RecordLog(judge.root / VERDICTS) as log:
            for number, case in enumerate(cases[1:], 1):
                image = run.images()[case.id]
                for probe in ("original", "mirror") if number > 1 else ("original",):
                    said = say(number, case.variant, probe) if number > 1 else Verdict("error")
                    log.append(answered(suite, case, image, probe, said).to_record())
    return root


def made_image(root: Path, case: Case, number: int) -> CaseResult:
    if not number:
        return CaseResult(case.id, "missing", message="/secret/path")
    path = root / "images" / case.file
    Image.new("RGB", (64, 48), (number % 256, 90, 40)).save(path)
    if number == 1:
        path.write_bytes(b"no image")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return CaseResult(case.id, "made", f"images/{case.file}", digest)


def answered(suite: str, case: Case, made: CaseResult, probe: str, said: Verdict) -> Answered:
    labels = LABELS[suite]
    return Answered(
        key=f"{case.id}/{probe}",
        case=case.id,
        image=made.sha256,
        question=QUESTIONS[suite],
        probe=probe,
        labels=tuple(labels),
        answers={str(number): label for number, label in enumerate(labels, 1)},
        sided=True,
        verdict=replace(said, raw=f"I say {HOSTILE}"),
    )


def biased(share: float, seed: int) -> Say:
    """Says that the prior holds in this share of the cases; every ninth is invalid."""
    drawn = np.random.default_rng(seed).random(10_000)

    def say(number: int, variant: str, probe: str) -> Verdict:
        if number % 9 == 8:
            return Verdict("invalid")
        first = bool(drawn[number] < share)
        if probe == "mirror" and number % 7 == 3:
            first = not first
        label = "first_left" if first else "first_right"
        return Verdict(label, probabilities={label: 0.5 + drawn[number] / 2})

    return say


def correct(aligned: float, reverse: float, seed: int) -> Say:
    drawn = np.random.default_rng(seed).random(10_000)

    def say(number: int, variant: str, probe: str) -> Verdict:
        share = aligned if variant == "aligned" else reverse
        return Verdict("correct" if drawn[number] < share else "wrong")

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
    rows = [
        f"{case.id},{run.images()[case.id].sha256},order,{('first_left', 'first_right')[n % 2]}"
        for run in map(Run.open, runs.values())
        if run.header.suite == "t2i_homogenization"
        for n, case in enumerate(run.cases()[2:32])
    ]
    # Images of two runs that are alike are one image.
    path.write_text("\n".join(["case,image,question,label", *dict.fromkeys(rows)]) + "\n")
    return path


@pytest.fixture(scope="module")
def site(runs: dict[str, Path], labels: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of all of them; read only."""
    out = tmp_path_factory.mktemp("site") / "site"
    assert write_report(**everything(runs, labels, out)) == out / "index.html"
    return out


def everything(runs: Mapping[str, Path], labels: Path, out: Path) -> dict[str, Any]:
    return {
        "runs": list(runs.values()),
        "out": out,
        "score": ScoreSettings(labels=labels),
        "title": HOSTILE,
        "exports": ("inspect", "hub"),
        "dataset": "a/b@v1.0.0",
    }


def report_of(runs: Sequence[Path], out: Path, **score: Any) -> Path:
    return write_report(runs, out, ScoreSettings(**score))


def contents_of(*runs: Path, **score: Any) -> list[RunContents]:
    return read_contents(runs, ScoreSettings(**score))


def boards_of(*runs: Path) -> list[Leaderboard]:
    return leaderboards(contents_of(*runs), False)


@pytest.fixture(scope="module")
def results(runs: dict[str, Path], labels: Path) -> dict[tuple[str, str], Result]:
    """Run and judge -> what `score` says of it."""
    names = {str(root): name for name, root in runs.items()}
    judged = score_runs(list(runs.values()), ScoreSettings(labels=labels))
    return {(names[j.result.folder], j.result.judge): j.result for j in judged}


VOID = {"meta", "img", "input", "br", "link", "hr", "wbr"}


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
        return [
            (attributes, "".join(text)) for name, attributes, text in self.elements if name == tag
        ]

    def within(self, number: int, tag: str) -> Iterator[tuple[dict[str, str], str]]:
        """Elements of a tag below the one with this number; they follow it without a gap."""
        for place in range(number + 1, len(self.elements)):
            above = self.parents[place]
            while above is not None and above > number:
                above = self.parents[above]
            if above != number:
                return
            name, attributes, text = self.elements[place]
            if name == tag:
                yield attributes, "".join(text)


def pages(site: Path) -> dict[str, Page]:
    return {path.name: Page(path) for path in sorted(site.glob("*.html"))}


def scores_of(
    results: Mapping[tuple[str, str], Result],
) -> dict[tuple[str, str, str, str], dict[str, Any]]:
    """Run, judge, score and group -> the score in JSON."""
    return {
        (*key, score["name"], score["group"]): score
        for key, result in results.items()
        for score in result.to_json()["scores"]
    }


def test_pages_are_whole_linked_and_accessible(site: Path, runs: dict[str, Path]) -> None:
    found = pages(site)
    expected = {"index.html", *(f"gallery-{name}.html" for name in runs)}
    for suite in ("t2i_homogenization", "i2i_correctness"):
        expected |= {f"{suite}.html", f"{suite}-judges.html", f"compare-{suite}.html"}
    assert set(found) == expected
    for name, page in found.items():
        (html, _), *_ = page.all("html")
        assert html["lang"] == "en"
        assert len(page.all("h1")) == len(page.all("main")) == 1
        levels = [int(tag[1]) for tag, _, _ in page.elements if re.fullmatch(r"h[1-6]", tag)]
        assert all(b - a <= 1 for a, b in pairwise(levels)), name
        for attributes, _ in page.all("svg"):
            assert attributes["role"] == "img" and attributes["aria-label"]
        strips = [a for a, _ in page.all("span") if a.get("class") == "strip"]
        assert strips or name.startswith(("gallery-", "compare-"))
        assert all(a["role"] == "img" and a["aria-label"] for a in strips)
        for attributes, _ in page.all("th"):
            assert attributes["scope"] in ("row", "col")
        ids = [attributes["id"] for _, attributes, _ in page.elements if "id" in attributes]
        assert len(ids) == len(set(ids))
        for attributes, _ in page.all("a"):
            target = attributes["href"].split("#")[0]
            assert not target or (site / target).is_file(), (name, target)
        assert sum("aria-current" in attributes for attributes, _ in page.all("a")) == 1, name
        # A lazy image below the window is printed as a blank; the gallery's script makes its own.
        assert not re.search(r"""loading["' =:]+lazy""", (site / name).read_text("utf-8")), name


def test_every_score_on_the_pages_is_the_one_that_score_gives(
    site: Path, runs: dict[str, Path], results: dict[tuple[str, str], Result]
) -> None:
    scores, seen = scores_of(results), set()
    for name in ("index.html", "t2i_homogenization.html", "i2i_correctness.html"):
        page = Page(site / name)
        for place, (_, attributes, _) in enumerate(page.elements):
            if "data-field" not in attributes:
                continue
            above = page.parents[place] or 0
            while above and "data-score" not in page.elements[above][1]:
                above = page.parents[above] or 0
            about = page.elements[above][1]
            key = tuple(about[f"data-{name}"] for name in ("run", "judge", "score", "group"))
            seen.add((name, key))
            check_cell(attributes["data-field"], list(page.within(place, "data")), scores[key])
    for suite in ("t2i_homogenization", "i2i_correctness"):
        on_page = {key for name, key in seen if name == f"{suite}.html"}
        names = {run for run, root in runs.items() if Run.open(root).header.suite == suite}
        assert on_page == {key for key in scores if key[0] in names}
    headlines = {key for name, key in seen if name == "index.html"}
    assert {key[2] for key in headlines} == {"order_bias", "accuracy_reverse_unconditional"}
    assert len(headlines) == 3 * 2 + 2


def test_the_first_table_has_a_line_for_each_generator(site: Path, tmp_path: Path) -> None:
    page = Page(site / "index.html")
    shown: dict[str, list[str]] = {}
    for number, (tag, about, _) in enumerate(page.elements):
        if tag == "tr" and "data-generator" in about:
            cells = [a["data-run"] for a, _ in page.within(number, "div") if "data-run" in a]
            shown[about["data-generator"]] = cells
    # All have one generator: as many lines as the suite with most runs has.
    assert len(shown) == 3 and list(shown)[-1] == "biased"
    assert sorted(name for part in shown.values() for name in part) == sorted(
        ["steady", "falling", *2 * ["fair", "leaning", "biased"]]
    )
    # As a study has them: folders of one name are one line, whoever drew.
    other = {"kind": "folder", "name": "other"}
    suites = {"t2i_homogenization": {}, "i2i_correctness": {"generator": other}}
    roots = [
        make_run(tmp_path / suite / name, suite, 2, [(PIXELS, biased(0.5, 1))], **header)
        for suite, header in suites.items()
        for name in ("a", "b")
    ]
    contents = contents_of(*roots)
    lines = overview(contents, leaderboards(contents, False))
    assert sorted(line.name for line in lines) == ["a", "b"]
    for line in lines:
        assert {one.standing.name[-1] for cell in line.cells for one in cell} == {line.name}
    apart = [root.rename(tmp_path / f"other-{root.parent.name}") for root in roots[::2]]
    folders = [folder / "a" for folder in apart]
    for root, folder in zip(apart, folders, strict=True):
        kept = root.rename(tmp_path / "kept")
        root.mkdir()
        kept.rename(folder)
    contents = contents_of(*folders)
    assert len(overview(contents, leaderboards(contents, False))) == 2  # nobody said they are one


@pytest.mark.slow
def test_ties_are_sorted_by_score_and_no_tie_of_all_is_colored(
    runs: dict[str, Path], tmp_path: Path
) -> None:
    """Names say the opposite of the scores."""
    few = [
        make_run(tmp_path / name, "t2i_homogenization", 4, [(PIXELS, biased(share, 1))])
        for name, share in (("a", 0.97), ("b", 0.5))
    ]
    for roots, order, first in (
        (few, ["b", "a"], []),
        ([runs[name] for name in ("biased", "leaning", "fair")], None, ["fair", "leaning"]),
    ):
        (board,) = leaderboards(contents_of(*roots, judges=("pixels",)), False)
        site = report_of(roots, tmp_path / f"site{len(first)}", judges=("pixels",)).parent
        cells = [a for a, _ in Page(site / "index.html").all("div") if "data-run" in a]
        colored = {a["data-run"] for a in cells if "first" in a["class"].split()}
        assert colored == set(first) and board.all_tied == (not first)
        if order is not None:
            assert {s.rank for s in board.standings} == {"1-2"}
            assert [s.name for s in board.standings] == order
            shown = overview(contents_of(*roots), [board])
            assert [line.name for line in shown] == order


def test_whole_images_stand_beside_thumbnails(site: Path, runs: dict[str, Path]) -> None:
    names = {path.name for path in (site / "thumbnails").iterdir()}
    assert {path.name for path in (site / "images").iterdir()} == names
    page = Page(site / "gallery-fair.html")
    data = json.loads(next(text for a, text in page.all("script") if "type" in a))
    assert data["whole"] == "images"
    cases = Run.open(runs["fair"]).cases()
    assert [image["item"] for image in data["images"]] == [
        f"{case.row}, seed {case.seed}" for case in cases
    ]
    first = data["images"][4]["answers"][0][0]
    assert data["keys"][first["key"]] == {"1": "first_left", "2": "first_right", "3": "invalid"}


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
        whole = field in ("n", "excluded", "effective")
        decimals = {"1": 3, LOG_ODDS: 2}.get(score["unit"], 1)
        assert digits == (0 if whole else 3 if field in ("p_value", "q_value") else decimals)


def test_every_number_of_the_judges_cards_is_the_one_that_score_gives(
    site: Path, results: dict[tuple[str, str], Result]
) -> None:
    cards = {key: result.to_json()["card"] for key, result in results.items()}
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
        assert len(scripts) == (2 if name.startswith(("gallery", "compare")) else 1), name
        assert not any("alert" in text for attributes, text in scripts if "type" not in attributes)
        sources = [attributes["src"] for attributes, _ in page.all("img")]
        assert not sources or name == "index.html"
        assert all(re.fullmatch(r"thumbnails/\w+\.webp", source) for source in sources)
        assert not page.all("b" if name.endswith("judges.html") else "i2")
        for _, attributes, _ in page.elements:
            assert not any(attribute.startswith("on") for attribute in attributes)
        assert page.all("title")[0][1].endswith(printable(HOSTILE))
    page = Page(site / "gallery-fair.html")
    (data,) = [text for attributes, text in page.all("script") if "type" in attributes]
    image = json.loads(data)["images"][4]
    assert image["prompt"] == f"{HOSTILE} 2"
    assert image["answers"][0][0]["raw"] == f"I say {HOSTILE}"


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
                assert f" 'sha256-{digest}'" in policy.partition("script-src")[2]
    assert "secret" not in "".join(path.read_text() for path in site.glob("*.*"))


def test_the_gallery_has_every_image_and_its_filters(site: Path, runs: dict[str, Path]) -> None:
    page = Page(site / "gallery-biased.html")
    (data,) = [json.loads(t) for a, t in page.all("script") if "type" in a]
    run = Run.open(runs["biased"])
    assert [p["id"] for p in data["images"]] == [case.id for case in run.cases()]
    assert data["judges"] == [judge.name for judge in run.judges()] == NAMES
    missing, broken, *others = data["images"]
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
    said = [biased(0.97, 2), biased(0.97, 1)]
    expected = []
    for number in range(2, 120):
        pairs = [(say(number, "", "original"), say(number, "", "mirror")) for say in said]
        first = {plain.label for plain, _ in pairs}
        holds = {
            "disagreement": len(first) > 1,
            "flipped": any(plain.label != mirrored.label for plain, mirrored in pairs),
            "invalid": "invalid" in first,
        }
        expected.append([flag for flag, found in holds.items() if found])
    assert [p["flags"] for p in others] == expected
    assert {f["flag"]: f["count"] for f in data["filters"]} == {
        flag: sum(flag in p["flags"] for p in data["images"]) for flag in FILTERS
    }
    assert all(f["count"] for f in data["filters"])
    shown = {a["value"] for a, _ in page.all("input") if a.get("name") == "flag"}
    assert shown == {"", *FILTERS}
    for part, say in zip(others[0]["answers"], said, strict=True):
        verdict = say(2, "", "original")
        assert part[0]["label"] == verdict.label
        assert part[0]["probability"] == verdict.share(verdict.label)


def test_generators_are_compared_image_by_image(site: Path, runs: dict[str, Path]) -> None:
    page = Page(site / "compare-t2i_homogenization.html")
    (data,) = [json.loads(t) for a, t in page.all("script") if "type" in a]
    names = [run["name"] for run in data["runs"]]
    assert sorted(names) == sorted(
        name for name, root in runs.items() if Run.open(root).header.suite == "t2i_homogenization"
    )
    alone = {}
    for name in names:
        (own,) = [
            json.loads(t)
            for a, t in Page(site / f"gallery-{name}.html").all("script")
            if "type" in a
        ]
        alone[name] = {image["id"]: image for image in own["images"]}
    labels: dict[tuple[str, int], set[str]] = {}
    for image in data["images"]:
        same = alone[names[image["run"]]][image["id"]]
        assert image["thumbnail"] == same["thumbnail"]
        assert image["flags"] in (same["flags"], ["apart", *same["flags"]])
        for judge, (answers, full) in enumerate(
            zip(image["answers"], same["answers"], strict=True)
        ):
            plain = [answer for answer in full if answer["probe"] == "original"]
            assert [a["label"] for a in answers] == [a["label"] for a in plain]
            assert not any({"raw", "key"} & answer.keys() for answer in answers)
            failures = ("unparsed", "refused", "error", "missing")
            seen = {a["label"] for a in answers if a["label"] not in failures}
            labels.setdefault((image["id"], judge), set()).update(seen)
    apart = {case for (case, _), seen in labels.items() if len(seen) > 1}
    assert {i["id"] for i in data["images"] if "apart" in i["flags"]} == apart
    assert 0 < len(apart) < len({image["id"] for image in data["images"]})
    assert {a["value"] for a, _ in page.all("input") if a.get("name") == "flag"} > {"apart"}
    shown = [attributes["src"] for attributes, _ in Page(site / "index.html").all("img")]
    assert shown and set(shown) <= {image["thumbnail"] for image in data["images"]} | {
        image["thumbnail"]
        for t in [Page(site / "compare-i2i_correctness.html").all("script")]
        for image in next(json.loads(text) for a, text in t if "type" in a)["images"]
    }


@pytest.mark.slow
def test_judges_are_compared_with_each_other(site: Path, runs: dict[str, Path]) -> None:
    page = Page(site / "t2i_homogenization-judges.html")
    (number,) = [
        n
        for n, (tag, attributes, _) in enumerate(page.elements)
        if attributes.get("data-name") == "t2i_homogenization-agreement"
    ]
    question, same, kappa, _, n = [text for _, text in page.within(number, "td")]
    assert question == "order"
    pairs = []
    for run in contents_of(*runs.values(), across_judges=True):
        if run.suite.name == "t2i_homogenization":
            first, second = ({o.case.id: o for o in judged.outcomes} for judged in run.judged)
            both = [(first[case].verdict("order"), second[case].verdict("order")) for case in first]
            pairs += [(a.label, b.label) for a, b in both if not a.failed and not b.failed]
    agree = np.mean([a == b for a, b in pairs])
    by_chance = sum(
        np.mean([a == label for a, _ in pairs]) * np.mean([b == label for _, b in pairs])
        for label in {label for pair in pairs for label in pair}
    )
    assert int(n) == len(pairs) > 100
    assert float(same) == pytest.approx(100 * agree, abs=0.05)
    assert float(kappa) == pytest.approx((agree - by_chance) / (1 - by_chance), abs=0.0006)


@pytest.mark.parametrize("how", ["written", "moved there, with an old time"])
def test_an_exchanged_image_is_not_shown(
    how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judges = [(PIXELS, biased(1, 1))]
    run = Run.open(make_run(tmp_path / "run", "t2i_homogenization", 4, judges))
    contents = contents_of(run.root)
    _, _, exchanged, *kept = run.images().values()  # the second is no image
    other = Image.new("RGB", (64, 48), "red")
    if how == "written":
        other.save(run.image_path(exchanged))
    else:
        other.save(tmp_path / "old.png")
        os.utime(tmp_path / "old.png", (0, 0))
        (tmp_path / "old.png").replace(run.image_path(exchanged))
    looks: list[Run] = []
    monkeypatch.setattr(Replacement, "__init__", spied(Replacement.__init__, looks))
    shown = make_thumbnails(contents, tmp_path / "site", lambda *_: None)
    assert shown.keys() == {image.sha256 for image in kept}
    assert len(looks) == 1, "the log's time is read once, not for each image"


def spied(original: Callable[..., None], calls: list[Run]) -> Callable[..., None]:
    def init(self: Replacement, run: Run) -> None:
        calls.append(run)
        original(self, run)

    return init


def test_an_edit_stands_beside_its_source(site: Path) -> None:
    page = Page(site / "gallery-steady.html")
    (data,) = [json.loads(t) for a, t in page.all("script") if "type" in a]
    *without, shown = [data["images"][number] for number in (0, 1, 5)]
    assert [(p["edit"], p["source"]) for p in without] == [(False, "")] * 2
    assert shown["edit"] and shown["source"] != shown["thumbnail"]
    with Image.open(site / shown["source"]) as small:
        assert small.convert("RGB").getpixel((30, 20))[2] > 200
    drawn = json.loads(next(t for a, t in Page(site / "gallery-biased.html").all("script") if a))
    assert not any(p["edit"] for p in drawn["images"])


def answer(label: str, probe: str = "original", question: str = "order") -> Answered:
    case = cases_of("t2i_homogenization", 1)[0]
    found = answered("t2i_homogenization", case, CaseResult(case.id, "made"), probe, Verdict(label))
    return replace(found, question=question)


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
        ([[], []], False, ["failure"]),
    ],
)
def test_flags(answers: list[list[Answered]], made: bool, expected: list[str]) -> None:
    assert flags(answers, made) == expected


@pytest.mark.parametrize("name", SUITES)
def test_every_headline_score_has_a_meaning(name: str) -> None:
    suite = open_suite(name)
    assert suite.headline.score in suite.meanings and suite.headline.meaning.endswith(".")


def test_pages_say_what_every_score_means(
    site: Path, results: dict[tuple[str, str], Result]
) -> None:
    for name in ("t2i_homogenization", "i2i_correctness"):
        page, suite = Page(site / f"{name}.html"), open_suite(name)
        terms = [text for _, text in page.all("dt")]
        told = dict(zip(terms, (text for _, text in page.all("dd")), strict=True))
        scored = {s.name for r in results.values() if r.run.suite == name for s in r.scores}
        shown = {score: text for score, text in suite.meanings.items() if score in scored}
        assert told == {score.replace("_", " "): text for score, text in shown.items()}
        assert suite.headline.score in shown


def _warned(interval: Callable[..., list[Estimate]], *data: Any, **options: Any) -> list[Estimate]:
    return [replace(e, warning="of these items alone") for e in interval(*data, **options)]


def test_pages_show_notes_and_warnings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    warned = partial(_warned, scoring.cluster_interval)
    monkeypatch.setattr(scoring, "cluster_interval", warned)
    code = {"kind": "python", "name": "mine", "version": "unversioned"}
    run = make_run(
        tmp_path / "code", "t2i_homogenization", 6, [(PIXELS, biased(0.5, 1))], generator=code
    )
    (judged,) = score_runs([run], ScoreSettings())
    warnings = {score.warning for score in judged.result.scores if score.warning}
    assert warnings and judged.result.notes
    report_of([run], tmp_path / "site")
    text = "".join(t for _, t in Page(tmp_path / "site" / "t2i_homogenization.html").all("main"))
    for told in (*warnings, *judged.result.notes):
        assert told in text


def test_only_chosen_judges_are_shown(runs: dict[str, Path], tmp_path: Path) -> None:
    report_of([runs["fair"], runs["biased"]], tmp_path / "site", judges=("pixels",))
    for path in (tmp_path / "site").glob("*.html"):
        assert "bold" not in path.read_text(), path.name
    gallery = (tmp_path / "site" / "gallery-fair.html").read_text()
    assert '"judges":["pixels"]' in gallery and '"flag":"disagreement"' in gallery


@pytest.mark.slow
def test_the_leaderboard_tells_apart_what_the_pairs_tell_apart(runs: dict[str, Path]) -> None:
    boards = boards_of(*runs.values())
    assert [board.suite for board in boards] == ["i2i_correctness", *["t2i_homogenization"] * 2]
    board = next(b for b in boards[1:] if b.judge.startswith("pixels"))
    groups = {standing.name: standing.groups for standing in board.standings}
    assert [s.name for s in board.standings][-1] == "biased"
    assert groups["fair"] == groups["leaning"] == "A" and groups["biased"] == "B"
    ranks = {standing.name: standing.rank for standing in board.standings}
    assert ranks == {"fair": "1-2", "leaning": "1-2", "biased": "3"}
    values = {s.name: s.score.value for s in board.standings}
    assert len(board.comparisons) == 3
    for pair in board.comparisons:
        # All three have values for the same cases here, so the difference is that of the scores.
        assert pair.value == pytest.approx(values[pair.first] - values[pair.second])
        assert pair.interval.low <= pair.value <= pair.interval.high
        assert pair.adjusted >= pair.p_value
        assert (pair.adjusted < 0.05) == ("biased" in (pair.first, pair.second))
    assert [s.name for s in boards[0].standings] == ["steady", "falling"]


def test_runs_under_other_judges_or_rows_are_refused(runs: dict[str, Path], tmp_path: Path) -> None:
    one = make_run(tmp_path / "one", "t2i_homogenization", 6, [(PIXELS, biased(0.5, 1))])
    other = make_run(tmp_path / "other", "t2i_homogenization", 6, [(OTHER, biased(0.5, 1))])
    with raises("different-judges", "one", error=RunError):
        report_of([runs["steady"], other, one], tmp_path / "site")
    index = report_of([one, other], tmp_path / "site", across_judges=True)
    assert "judged by different judges" in index.read_text()
    boards = json.loads((tmp_path / "site" / "report.json").read_text())["leaderboards"]
    assert [len(board["standings"]) for board in boards] == [2]
    judges = [(PIXELS, biased(0.5, 1))]
    foreign = make_run(tmp_path / "foreign", "t2i_homogenization", 6, judges, rows_sha256="e" * 64)
    with raises("different-rows", "foreign", "one", error=RunError):
        report_of([one, foreign], tmp_path / "site")
    with raises("different-rows", "foreign", "other", error=RunError):
        report_of([other, foreign], tmp_path / "site", across_judges=True)
    with raises("duplicate-id", one, error=RunError):
        report_of([one, one], tmp_path / "site")


@pytest.mark.slow
def test_a_run_without_a_usable_answer_is_unranked(runs: dict[str, Path], tmp_path: Path) -> None:
    judges: list[tuple[Mapping[str, str], Say]] = [
        (PIXELS, lambda *_: Verdict("unparsed")),
        (OTHER, lambda *_: Verdict("refused")),
    ]
    silent = make_run(tmp_path / "silent", "t2i_homogenization", 60, judges)
    (board, _) = boards_of(silent, runs["fair"])
    assert [(s.name, s.groups) for s in board.standings] == [("fair", "A"), ("silent", "")]
    assert [s.rank for s in board.standings] == ["1", ""]
    assert board.comparisons == []
    index = report_of([silent, runs["fair"]], tmp_path / "site")
    assert "unranked" in index.read_text() and "undefined" in index.read_text()


signs = st.lists(st.tuples(*[st.sampled_from([1.0, -1.0, math.nan])] * 2), min_size=1, max_size=30)


@settings(max_examples=20)  # each draws the differences anew, some four times
@given(signs)
def test_two_runs_are_compared_on_what_both_have(values: list[tuple[float, float]]) -> None:
    headline = open_suite("i2i_homogenization").headline
    first = {n: Item((a,), str(n // 2)) for n, (a, _) in enumerate(values)}
    second = {n: Item((b,), str(n // 2)) for n, (_, b) in enumerate(values)}
    both = [(a, b) for a, b in values if not math.isnan(a + b)]
    drawn = paired(first, second | {"only here": Item((1.0,), "x")}, headline)
    assert drawn.n == len(both)
    if both:
        a, b = np.array(both).T
        assert drawn.value == pytest.approx(abs(a.mean()) - abs(b.mean()))
        back = paired(second, first, headline)
        assert back.value == pytest.approx(-drawn.value)
        same = paired(first, first, headline)
        assert same.value == 0 and same.p_value == 1
    else:
        assert math.isnan(drawn.value)


def test_ratios_are_compared_as_ratios_of_means() -> None:
    levels = {0: (0.9, 0.6, 0.2), 1: (0.7, 0.5, 0.1), 2: (0.8, 0.2, 0.3)}
    better = {key: Item(values, str(key)) for key, values in levels.items()}
    worse = {key: Item((l1, l2 / 2, l3), str(key)) for key, (l1, l2, l3) in levels.items()}
    drawn = paired(better, worse, open_suite("counterfactual").headline)
    assert drawn.n == 3
    assert drawn.value == pytest.approx((1.3 / 3 - 0.65 / 3) / math.sqrt(2.4 / 3))


def test_risk_and_coverage_are_those_of_the_labeled_answers(
    runs: dict[str, Path], site: Path
) -> None:
    truth = ("first_left", "first_right")
    (contents,) = contents_of(runs["fair"])
    cases = contents.run.cases()[2:32]
    told = {(case.id, "order"): truth[number % 2] for number, case in enumerate(cases)}
    curves = risk_curves([replace(contents, labels=told)])
    assert len(curves) == 2
    curve = next(c for c in curves if "pixels" in c.name)
    said = [(number, biased(0.5, 1)(number, "", "original")) for number in range(2, 32)]
    known = [(n, v) for n, v in said if v.probabilities]
    sure = [v.share(v.label) for _, v in known]
    right = [v.label == truth[n % 2] for n, v in known]
    assert curve.n == len(known) < 30
    expected = risk_coverage(sure, right)
    assert curve.curve.area == pytest.approx(expected.area)
    assert np.allclose(curve.curve.risk, expected.risk)
    page = (site / "t2i_homogenization-judges.html").read_text()
    assert f'<data value="{curve.curve.area!r}">' in page
    assert "Risk and coverage" not in (site / "i2i_correctness-judges.html").read_text()


def files(root: Path) -> dict[str, bytes]:
    return {p.relative_to(root).as_posix(): p.read_bytes() for p in root.rglob("*") if p.is_file()}


@pytest.mark.slow
def test_a_report_is_written_again_to_the_byte_and_cleans_up(
    runs: dict[str, Path], labels: Path, site: Path, tmp_path: Path
) -> None:
    out = tmp_path / "again"
    chosen = everything(runs, labels, out)
    write_report(**chosen)
    assert files(out) == files(site)
    kept = {path: path.stat().st_mtime_ns for path in (out / "thumbnails").iterdir()}
    write_report(**chosen | {"runs": [runs["fair"]], "exports": (), "full_size": False})
    left = files(out)
    assert not any(name.startswith("images/") for name in left)
    assert '"whole":""' in (out / "gallery-fair.html").read_text()
    names = ("index", "t2i_homogenization", "t2i_homogenization-judges", "gallery-fair")
    assert {name for name in left if name.endswith(".html")} == {f"{name}.html" for name in names}
    assert not any(name.startswith("export/") for name in left)
    for path in (out / "thumbnails").iterdir():
        assert path.stat().st_mtime_ns == kept[path]


def test_a_thumbnail_that_a_power_cut_left_empty_is_made_again(
    runs: dict[str, Path], tmp_path: Path
) -> None:
    report_of([runs["fair"]], tmp_path)
    before = files(tmp_path)
    first, second = sorted((tmp_path / "thumbnails").iterdir())[:2]
    first.write_bytes(b"")
    kept = second.stat().st_mtime_ns
    report_of([runs["fair"]], tmp_path)
    assert files(tmp_path) == before
    assert second.stat().st_mtime_ns == kept


def test_a_folder_that_is_no_report_is_left_alone(runs: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("precious")
    with raises("folder-not-empty", "--out", error=RunError):
        report_of([runs["fair"]], tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_runs_of_one_name_are_told_apart(tmp_path: Path) -> None:
    judges = [(PIXELS, biased(1, 1))]
    roots = [
        make_run(tmp_path / parent / "run", "t2i_homogenization", 4, judges)
        for parent in ("a", "A b")
    ]
    assert [(c.name, c.slug) for c in contents_of(*roots)] == [
        ("a/run", "a-run"),
        ("A b/run", "a-b-run"),
    ]


def test_exports_say_what_the_scores_say(
    site: Path, results: dict[tuple[str, str], Result]
) -> None:
    scores = scores_of(results)
    found = sorted((site / "export" / "hub").rglob("*.yaml"))
    assert len(found) == 8
    excluded = 0
    for path in found:
        written = yaml.safe_load(path.read_text())
        (parsed,) = parse_eval_result_entries(written)
        assert eval_result_entries_to_yaml([parsed]) == written
        assert (parsed.dataset_id, parsed.dataset_revision) == ("a/b", "v1.0.0")
        run, (entry,) = path.parts[-3], written
        headline = open_suite(entry["dataset"]["task_id"]).headline
        judge = next(judge for judge in NAMES if path.stem.endswith(slugify(judge)))
        score = scores[run, judge, headline.score, "all"]
        assert entry["value"] == score["value"]
        notes = entry["notes"].split("; ")
        shown = " to ".join(value_text(end, score["unit"]) for end in score["interval"])
        assert f"n = {score['n']}" in notes
        others = f"for other {open_suite(entry['dataset']['task_id']).population}"
        assert {f"95 % interval {shown}, {others}", f"95 % interval -, {others}"} & {*notes}
        left_out = ", ".join(f"{name} {n}" for name, n in sorted(score["excluded"].items()))
        assert f"excluded: {left_out or 'nothing'}" in notes
        excluded += bool(left_out)
    assert excluded
    logs = sorted((site / "export" / "inspect").glob("*.json"))
    assert len(logs) == 8
    for path in logs:
        log = json.loads(path.read_text())
        # Inspect's viewer reads the head of a log in this order.
        assert list(log)[:4] == ["version", "status", "eval", "plan"]
        assert log["version"] == 2 and log["status"] == "success"
        judge = log["results"]["scores"][0]["scorer"]
        run = next(name for name, _ in results if f"_{name}-{slugify(judge)}" in path.name)
        for entry in log["results"]["scores"]:
            score = scores[run, judge, entry["name"].split()[0], entry["params"]["group"]]
            value = entry["metrics"].get("value", {"value": None})["value"]
            assert (value, entry["scored_samples"]) == (score["value"], score["n"])
        assert log["samples"][0]["scores"]["image"]["value"] == "missing"
        assert log["samples"][0]["scores"]["image"]["metadata"]["failure"]
        asked, made = log["samples"][5]["messages"]
        assert asked["content"][0]["text"].startswith(HOSTILE)
        for part in (*asked["content"][1:], *made["content"]):
            name = part["image"].removeprefix("attachment://")
            data = log["samples"][5]["attachments"][name].partition("base64,")[2]
            with Image.open(io.BytesIO(base64.b64decode(data))) as image:
                assert image.size == (64, 48)
        assert (len(asked["content"]), len(made["content"])) == (1 + ("i2i" in path.name), 1)


def test_an_export_that_lacks_something_says_so(runs: dict[str, Path], tmp_path: Path) -> None:
    forms = ("NAMESPACE/NAME@vX.Y.Z", "NAMESPACE/NAME@COMMIT", "40")
    wrong: list[tuple[dict[str, Any], str, tuple[str, ...]]] = [
        ({"exports": ("pdf",)}, "unknown-name", ("--export", "'pdf'", ", ".join(FORMS))),
        ({"exports": ("hub",)}, "missing-option", ("--export hub", f"--dataset {forms[0]}")),
        ({"dataset": "dist/a/b"}, "bad-option", ("--dataset", "'dist/a/b'", *forms)),
        ({"dataset": "a/b"}, "bad-option", ("--dataset", "'a/b'", *forms)),
        ({"dataset": "a/b@main"}, "bad-option", ("--dataset", "'a/b@main'", *forms)),
        ({"dataset": "a/b@5503434"}, "bad-option", ("--dataset", "'a/b@5503434'", *forms)),
    ]
    for changes, code, facts in wrong:
        with raises(code, *facts, error=UsageError):
            write_report([runs["fair"]], tmp_path / "site", **changes)
    assert not (tmp_path / "site").exists()


def test_ticks_are_round_and_inside() -> None:
    assert ValueAxis(-100, 100).ticks() == [-100, -50, 0, 50, 100]
    assert ValueAxis(0, 1.37).ticks() == [0, 0.25, 0.5, 0.75, 1, 1.25]
    assert ValueAxis(0, 100).percent(250) == ValueAxis(0, 100).percent(100) == 97
    assert ValueAxis(0, 100).percent(50) == 50


@pytest.mark.slow
def test_the_command(
    text_release: Path, tmp_path: Path, cli: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    spec = ("--generator", "render:?order_bias=1", "--judge", "pixels", "--limit", 4)
    place = ("--data", text_release, "--out", tmp_path / "run")
    done = cli("eval", "--suite", "t2i_homogenization", *spec, *place)
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
    assert_refused(done, "not-a-run", tmp_path, exit_code=1)
