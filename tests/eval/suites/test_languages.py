"""Prompts in several languages: set biases come out by reading direction, paired with English."""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from counterprior.builders.build import rebuilt
from counterprior.eval.core import ORIGINAL, ImageRequest, Outcome, Score, Verdict
from counterprior.eval.engine.data import row_fields, sample_rows
from counterprior.eval.generators import open_generator
from counterprior.eval.generators.render import RenderGenerator
from counterprior.eval.results.scoring import with_q_values
from counterprior.eval.results.tables import discoveries
from counterprior.eval.suites import open_suite

PAIRS, TRIPLES = "t2i_homogenization_multilingual", "order_beyond_multilingual"
LTR, RTL = 2.0, -1.0
"""Logits of standing left, by reading direction."""
DRAWER = f"render:?order_bias={LTR}&rtl_bias={RTL - LTR}&missing=0.05"
build = cache(rebuilt)


@cache
def drawn(name: str, rows: int) -> list[Outcome]:
    """Images of some rows of a config, with the truth of each scene instead of a judge."""
    suite, generator = open_suite(name), open_generator(DRAWER)
    assert isinstance(generator, RenderGenerator)
    outcomes = []
    for row in sample_rows(build()(name, 0) or [], rows, suite.together):
        for case in suite.cases(row, 1):
            request = ImageRequest(case.prompt, case.seed, case=case, fields=row_fields(row))
            truth = suite.truth(row, case, generator.scene(request))
            verdicts = {(question, ORIGINAL): Verdict(label) for question, label in truth.items()}
            outcomes.append(Outcome(case, verdicts))
    return outcomes


def by_name(name: str, outcomes: Sequence[Outcome]) -> dict[tuple[str, str], Score]:
    return {(s.name, s.group): s for s in open_suite(name).score(outcomes)}


def index_of_two(bias: float) -> float:
    return 200 / (1 + math.exp(-bias)) - 100


def index_of_three(bias: float) -> float:
    """Neighbors in the prompt differ by one bias, the first and the last by two."""
    return (2 * index_of_two(bias) + index_of_two(2 * bias)) / 3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "rows", "index", "truth"),
    [
        (PAIRS, 405, "signed_index", index_of_two),
        (TRIPLES, 180, "order_index", index_of_three),
    ],
)
def test_the_bias_of_each_direction_comes_back(
    name: str, rows: int, index: str, truth: Callable[[float], float]
) -> None:
    found = by_name(name, drawn(name, rows))
    effect = (truth(RTL) - truth(LTR)) / 2
    for key, true in {
        (index, "direction=ltr"): truth(LTR),
        (index, "direction=rtl"): truth(RTL),
        ("direction_effect", "all"): effect,
        ("language_effect", "language=ar"): effect,
        ("language_effect", "language=he"): effect,
    }.items():
        low, high = found[key].interval
        assert low <= true <= high and high - low < 50, (key, true, found[key])
    for language in ("zh", "ja", "hi", "es", "de", "fr"):
        assert abs(found["language_effect", f"language={language}"].value) < 15
    assert ("language_effect", "language=en") not in found
    # Which languages differ from English, with a share of false ones among them.
    scores = with_q_values(list(found.values()))
    q_values = {s.group: s.q_value for s in scores if s.name == "language_effect"}
    assert {group for group, q in q_values.items() if q <= 0.05} == {"language=ar", "language=he"}
    assert all(s.q_value >= s.p_value for s in scores if s.q_value == s.q_value)
    assert not any(s.q_value == s.q_value for s in scores if s.group == "all")
    (line,) = (text for text in discoveries(scores) if text.startswith("language_effect"))
    assert "of 8 groups" in line and "ar (q < 0.001), he (q < 0.001)" in line


def in_two_languages(rows: int) -> list[Outcome]:
    return [o for o in drawn(PAIRS, rows) if o.case.groups["language"] in ("he", "en")]


def test_effects_are_paired_and_need_both_sides() -> None:
    part = in_two_languages(405)
    found = by_name(PAIRS, part)
    effect, index = found["language_effect", "language=he"], found["signed_index", "language=he"]
    assert effect.n + effect.excluded["not_valid_in_both"] == index.n + index.excluded["invalid"]
    assert index.excluded["invalid"] < effect.excluded["not_valid_in_both"] < effect.n
    signs = {"first_left": 1, "first_right": 0}
    left = {
        (o.case.groups["language"], o.case.clusters[0], o.case.variant): signs.get(o.label("order"))
        for o in part
    }
    changes = [
        there - here
        for (language, *place), there in left.items()
        if language == "he" and there is not None and (here := left["en", *place]) is not None
    ]
    assert effect.value == pytest.approx(100 * sum(changes) / len(changes))


@pytest.mark.slow
def test_nothing_is_left_of_effects_where_a_language_is_a_copy_or_alone() -> None:
    part = in_two_languages(405)
    # Where Hebrew is a copy of English, nothing is left of either effect, whatever the pairs do.
    english = {
        (o.case.clusters[0], o.case.variant): o.verdicts
        for o in part
        if o.case.groups["language"] == "en"
    }
    copied = [replace(o, verdicts=english[o.case.clusters[0], o.case.variant]) for o in part]
    found = by_name(PAIRS, copied)
    assert found["direction_effect", "all"].value == 0
    assert found["language_effect", "language=he"].value == 0
    alone = by_name(PAIRS, [o for o in part if o.case.groups["language"] == "he"])
    assert not {name for name, _ in alone} & {"direction_effect", "language_effect"}
    assert ("hom", "language=he") in alone


@pytest.mark.slow
def test_the_command_draws_every_language_and_asks_in_english(
    full_release: Path, tmp_path: Path, cli: Callable[..., CompletedProcess[str]]
) -> None:
    options = ["--suite", PAIRS, "--data", full_release, "--limit", 9, "--out", tmp_path / "run"]
    done = cli("eval", *options, "--generator", "render:?order_bias=9", "--judge", "pixels")
    assert done.returncode == 0, done.stderr
    assert "direction_effect" in done.stdout
    (judged,) = (tmp_path / "run").glob("verdicts/*/verdicts.jsonl")
    cases, verdicts = (
        [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        for path in (tmp_path / "run" / "cases.jsonl", judged)
    )
    assert len(cases) == 18 and sum(case["prompt"].isascii() for case in cases) < 9
    assert [verdict["label"] for verdict in verdicts] == ["first_left"] * 18
    groups = " ".join(cli("score", tmp_path / "run", "--groups").stdout.split())
    assert "language_effect by language: of 8 groups these differ from chance" in groups
