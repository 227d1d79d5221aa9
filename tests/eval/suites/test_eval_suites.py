"""Suites, questions and scores: what must hold whatever a generator or judge does."""

import json
import math
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from counterprior.builders.frames import FRAMES
from counterprior.builders.phrases import side_word
from counterprior.eval.core import Case, ImageRequest, Outcome, Question, Score, Task, Verdict
from counterprior.eval.engine.data import read_rows
from counterprior.eval.engine.evaluation import source_image
from counterprior.eval.generators import draw, open_generator
from counterprior.eval.judges.faulty import Faults, FaultyJudge
from counterprior.eval.judges.pixels import PixelJudge
from counterprior.eval.questions.frames import VIEWS
from counterprior.eval.results.judge_card import JudgeCard, judge_card
from counterprior.eval.selftest.run import selftest
from counterprior.eval.selftest.trials import trials_of
from counterprior.eval.store.verdicts import Answered, OpenQuestion
from counterprior.eval.suites import SUITES, open_suite
from counterprior.eval.suites.correctness import CELLS, TWINS
from counterprior.schema import ROWS, Row

LABELS = {
    "t2i_homogenization": ("order", ("plain", "swapped"), ("first_left", "first_right")),
    "i2i_homogenization": ("actor", ("edit",), ("left_acts", "right_acts")),
    "t2i_correctness": ("arrangement", ("aligned", "reverse"), ("correct", "wrong")),
    "i2i_correctness": ("binding", ("aligned", "reverse"), ("correct", "wrong")),
}
FLAT = Image.new("RGB", (8, 8))
LEFT_OUT = ("invalid", "unparsed", "refused", "error", "missing")


def outcomes_of(suite: str, labels: Sequence[str]) -> list[Outcome]:
    """Outcomes of rows of three pairs with these labels, variants in turn."""
    question, variants, _ = LABELS[suite]
    found = []
    for number, label in enumerate(labels):
        row, variant = divmod(number, len(variants))
        pair = (f"a{row % 3}", f"b{row % 3}")
        clusters = ("/".join(pair), *pair) if "homogenization" in suite else ("/".join(pair),)
        case = Case(f"row{row}", variants[variant], 0, 0, "", clusters, {"kind": str(row % 2)})
        found.append(outcome(case, {} if label == "missing" else {question: label}))
    return found


def outcome(case: Case, labels: Mapping[str, str]) -> Outcome:
    return Outcome(case, {(name, "original"): Verdict(label) for name, label in labels.items()})


def by_name(scores: Sequence[Score]) -> dict[tuple[str, str], Score]:
    return {(score.name, score.group): score for score in scores}


def same(a: float, b: float) -> bool:
    return (math.isnan(a) and math.isnan(b)) or a == pytest.approx(b)


suites = st.sampled_from(sorted(LABELS))


@st.composite
def judged(draw: st.DrawFn, suite: str | None = None) -> tuple[str, list[Outcome]]:
    name = suite or draw(suites)
    allowed = (*LABELS[name][2], *LEFT_OUT)
    return name, outcomes_of(name, draw(st.lists(st.sampled_from(allowed), max_size=24)))


few = settings(max_examples=12)


@pytest.mark.slow
@few
@given(judged(), st.randoms())
def test_the_order_of_work_changes_nothing(case: tuple, rng: random.Random) -> None:
    name, outcomes = case
    shuffled = rng.sample(outcomes, len(outcomes))
    one, other = (
        by_name(open_suite(name).score(outcomes)),
        by_name(open_suite(name).score(shuffled)),
    )
    assert one.keys() == other.keys()
    for key, score in one.items():
        assert same(score.value, other[key].value) and score.n == other[key].n
        assert score.excluded == other[key].excluded


@few
@given(judged())
def test_what_does_not_count_moves_no_value_and_always_shows(case: tuple) -> None:
    name, outcomes = case
    question, _, values = LABELS[name]
    scores = by_name(open_suite(name).score(outcomes))
    valid = [outcome for outcome in outcomes if outcome.label(question) in values]
    without = by_name(open_suite(name).score(valid))
    dropped = len(outcomes) - len(valid)
    for (metric, group), score in scores.items():
        if group != "all" or metric.startswith(("valid", "delta")):
            continue
        if metric.endswith("_unconditional"):
            continue
        assert same(score.value, without[metric, group].value)
        assert score.n == without[metric, group].n
    if "hom" in {metric for metric, _ in scores}:
        assert sum(scores["hom", "all"].excluded.values()) == dropped
        failed = sum(outcome.verdict(question).failed for outcome in outcomes)
        assert scores["valid", "all"].n == len(outcomes) - failed
        counted = Counter(o.label(question) for o in outcomes if o not in valid)
        assert scores["hom", "all"].excluded == dict(sorted(counted.items()))


@few
@given(judged())
def test_nothing_valid_is_undefined_and_never_zero(case: tuple) -> None:
    name, outcomes = case
    question = LABELS[name][0]
    nothing = [outcome(o.case, {question: "invalid"}) for o in outcomes]
    for score in open_suite(name).score(nothing):
        if score.name.endswith("_unconditional"):
            assert score.value == 0 or not score.n  # judged, and not right
        elif not score.name.startswith("valid"):
            assert math.isnan(score.value) and score.n == 0


def test_images_that_cannot_be_told_raise_no_unconditional_accuracy() -> None:
    """Both are right in half of the reverse images; all wrong ones of the second are invalid."""
    labels = ["correct", "correct", "correct", "wrong"] * 5
    abstaining = ["correct", "correct", "correct", "invalid"] * 5
    honest, hidden = (
        by_name(open_suite("t2i_correctness").score(outcomes_of("t2i_correctness", labels)))
        for labels in (labels, abstaining)
    )
    paper, joint = ("accuracy_reverse", "all"), ("accuracy_reverse_unconditional", "all")
    assert honest[paper].value == honest[joint].value == hidden[joint].value == 50
    assert hidden[paper].value == 100 and hidden[paper].bounds.low < 50
    assert hidden[joint].n == 10 and not hidden[joint].excluded


def test_images_invalid_in_one_order_are_no_order_bias() -> None:
    """The first entity stands left in both orders; swapped prompts mostly fail."""
    labels = []
    for row in range(40):
        labels += ["first_left", "first_right" if row % 4 == 0 else "invalid"]
    scores = by_name(
        open_suite("t2i_homogenization").score(outcomes_of("t2i_homogenization", labels))
    )
    assert scores["hom", "all"].value == pytest.approx(60)  # what the entities do
    assert scores["order_bias", "all"].value == 0
    assert scores["order_effect", "all"].bounds.high > 70


def test_images_of_one_order_alone_say_nothing_of_order_bias() -> None:
    outcomes = outcomes_of("t2i_homogenization", ["first_left", "invalid"] * 40)
    scores = by_name(open_suite("t2i_homogenization").score(outcomes))
    bias = scores["order_bias", "all"]
    assert math.isnan(bias.value) and math.isnan(bias.null) and math.isnan(bias.p_value)
    assert scores["hom", "all"].p_value < 1


@few
@given(judged("t2i_homogenization"))
def test_exchanging_left_and_right_flips_the_sign_and_keeps_hom(case: tuple) -> None:
    _, outcomes = case
    flip = {"first_left": "first_right", "first_right": "first_left"}
    flipped = [
        outcome(o.case, {name: flip.get(v.label, v.label) for (name, _), v in o.verdicts.items()})
        for o in outcomes
    ]
    suite = open_suite("t2i_homogenization")
    one, other = by_name(suite.score(outcomes)), by_name(suite.score(flipped))
    assert same(one["hom", "all"].value, other["hom", "all"].value)
    assert same(one["signed_index", "all"].value, -other["signed_index", "all"].value)


def _fixed_by(layout: Callable[[int, str], bool], seeds: int = 4) -> dict[tuple[str, str], Score]:
    """Scores of 60 pairs in both orders; layout: whether the first-mentioned is on the left."""
    outcomes = []
    for row in range(60):
        for variant in ("plain", "swapped"):
            clusters = (f"a{row}/b{row}", f"a{row}", f"b{row}")
            label = "first_left" if layout(row, variant) else "first_right"
            cases = (Case(f"r{row}", variant, n, n, "", clusters) for n in range(seeds))
            outcomes += [outcome(case, {"order": label}) for case in cases]
    return by_name(open_suite("t2i_homogenization").score(outcomes))


def test_a_layout_that_each_pair_fixes_is_seen_though_hom_is_small() -> None:
    by_pair = _fixed_by(lambda row, variant: row % 2 == 0)
    assert by_pair["hom", "all"].value == 0
    agreement = by_pair["seed_agreement", "all"]
    assert (agreement.value, agreement.null, agreement.n) == (100, 50, 120)
    assert by_pair["order_effect_spread", "all"].value == pytest.approx(100)
    assert by_pair["entity_effect_spread", "all"].value == 0
    # Where a thing always stands on the left, that is what varies.
    by_entity = _fixed_by(lambda row, variant: (row % 2 == 0) == (variant == "plain"))
    assert by_entity["order_effect_spread", "all"].value == 0
    assert by_entity["entity_effect_spread", "all"].value == pytest.approx(100)
    assert math.isnan(by_entity["order_log_odds", "all"].value)
    assert by_entity["order_log_odds", "all"].excluded == {"same_side_in_both_orders": 60}
    rng = random.Random(0)
    by_chance = _fixed_by(lambda row, variant: rng.random() < 0.5, seeds=1)
    assert by_chance["order_log_odds", "all"].n > 20
    assert ("seed_agreement", "all") not in by_chance  # one seed can't show it


def test_entities_that_prefer_a_side_are_no_order_effect() -> None:
    """Humans always left, whatever is mentioned first: Hom in one order only would be 100."""
    labels = [label for _ in range(20) for label in ("first_left", "first_right")]
    scores = by_name(
        open_suite("t2i_homogenization").score(outcomes_of("t2i_homogenization", labels))
    )
    assert scores["order_effect", "all"].value == 0
    assert scores["entity_effect", "all"].value == 100


def test_bounds_show_where_anything_is_excluded() -> None:
    labels = ["first_left"] * 6 + ["missing"] * 4
    scores = by_name(
        open_suite("t2i_homogenization").score(outcomes_of("t2i_homogenization", labels))
    )
    assert scores["signed_index", "all"].value == 100
    low, high = scores["signed_index", "all"].bounds
    assert low < 20 and high == 100  # 6 of 10 in the worst case, with its sampling error
    few_out = ["first_left"] * 19 + ["missing"]
    scores = by_name(
        open_suite("t2i_homogenization").score(outcomes_of("t2i_homogenization", few_out))
    )
    assert scores["signed_index", "all"].bounds.low < 90
    scores = by_name(
        open_suite("t2i_homogenization").score(outcomes_of("t2i_homogenization", few_out[:-1]))
    )
    assert math.isnan(scores["signed_index", "all"].bounds.low)  # nothing is excluded


# Counterfactual worlds.


def world(group: str, level: str, answers: dict[str, str]) -> Outcome:
    weights = {"visual_integrity": 2.0, "assessment": 14.0, "logic_consistency": 8.0}
    case = Case(f"{group}-{level}", level, 0, 0, "", ("law", group), {"discipline": "X"}, weights)
    return outcome(case, answers)


YES = dict.fromkeys(("visual_integrity", "assessment", "logic_consistency"), "yes")
NO = dict.fromkeys(YES, "no")


def test_worlds_are_weighted_gated_and_never_half_counted() -> None:
    half = YES | {"assessment": "no"}  # 10 of 24: below the gate
    outcomes = [
        world("g1", "L1", YES),
        world("g1", "L2", YES),
        world("g1", "L3", half),
        world("g2", "L1", half),
        world("g2", "L2", YES),
        world("g2", "L3", YES),
        world("g3", "L1", YES),
        world("g3", "L2", NO),
        world("g3", "L3", YES | {"assessment": "refused"}),
        world("g4", "L1", YES | {"assessment": "error"}),  # nobody knows: neither passed nor failed
        world("g4", "L2", YES),
        world("g4", "L3", YES),
    ]
    scores = by_name(open_suite("counterfactual").score(outcomes))
    # g3 and g4 leave at all levels: hard groups that lack only L3 would lower L1 alone.
    assert scores["score_L1", "all"].value == pytest.approx((1 + 10 / 24) / 2)
    assert scores["score_L2", "all"].value == pytest.approx((1 + 0) / 2)
    assert scores["score_L3", "all"].value == pytest.approx((10 / 24 + 0) / 2)
    assert scores["score_L3", "all"].n == 2
    assert scores["score_L3", "all"].excluded == {"group_incomplete": 2}
    assert scores["gate_passed", "all"].value == pytest.approx(2 / 3)
    assert scores["gate_passed", "all"].n == 3
    # g3 is in: what it lacks does not decide whether it passes.
    assert scores["gate_passed", "all"].excluded == {"group_incomplete": 1}
    l1, l2, l3 = (scores[f"score_{level}", "all"].value for level in ("L1", "L2", "L3"))
    assert scores["prr", "all"].value == pytest.approx(l2 / math.sqrt(l1))
    assert scores["rrr", "all"].value == pytest.approx(l3 / math.sqrt(l2))


def test_an_image_scores_by_the_probability_of_yes_where_the_judge_has_one() -> None:
    case = world("g", "L2", YES).case
    sure = {name: Verdict("yes", probabilities={"yes": 0.9, "no": 0.1}) for name in YES}
    mixed = sure | {"assessment": Verdict("no"), "logic_consistency": Verdict("yes")}
    score = open_suite("counterfactual").correctness
    assert score(Outcome(case, {(n, "original"): v for n, v in sure.items()})) == pytest.approx(0.9)
    by_both = score(Outcome(case, {(n, "original"): v for n, v in mixed.items()}))
    assert by_both == pytest.approx((2 * 0.9 + 14 * 0 + 8 * 1) / 24)


def test_a_described_outcome_is_scored_as_a_named_one_under_the_same_gate() -> None:
    scores = by_name(
        open_suite("counterfactual_denominalized").score(
            [
                world("g1", "plain", YES),
                world("g1", "named", YES),
                world("g1", "described", YES | {"assessment": "no"}),
                world("g2", "plain", NO),
                world("g2", "named", YES),
                world("g2", "described", YES),
            ]
        )
    )
    values = {name: score.value for (name, _), score in scores.items()}
    assert values["score_plain"] == values["score_named"] == pytest.approx(1 / 2)
    assert values["score_described"] == pytest.approx(10 / 24 / 2)
    assert values["denominalization_gain"] == pytest.approx(10 / 24 / 2 - 1 / 2)
    assert values["prr_described"] == pytest.approx(10 / 24 / 2 / math.sqrt(1 / 2))
    assert values["prr_named"] == pytest.approx(math.sqrt(1 / 2))
    assert values["gate_passed"] == pytest.approx(1 / 2)


def test_a_denominalized_row_shows_its_whole_group(full_release: Path) -> None:
    row = read_rows(str(full_release), "counterfactual_denominalized").rows[0]
    suite = open_suite("counterfactual_denominalized")
    cases = {case.variant: case for case in suite.cases(row, 1)}
    assert [case.prompt for case in cases.values()] == [
        row.plain_prompt,
        row.original_prompt,
        row.prompt,
    ]
    asked = {
        variant: [q.prompt for q in suite.questions(row, case, [FLAT], "original")]
        for variant, case in cases.items()
    }
    assert row.plain_assessment.text in asked["plain"][1]
    assert all(row.assessment.text in asked[name][1] for name in ("named", "described"))


# Rates, deltas, probes.


def test_delta_is_of_all_valid_images_and_its_pair_of_those_valid_in_both() -> None:
    labels = ["correct", "wrong"] * 6 + ["correct", "correct"] * 2 + ["correct", "invalid"] * 2
    scores = by_name(open_suite("t2i_correctness").score(outcomes_of("t2i_correctness", labels)))
    assert scores["delta", "all"].value == pytest.approx(100 * (10 / 10 - 2 / 8))
    assert scores["delta_paired", "all"].value == pytest.approx(100 * 6 / 8)
    assert scores["delta_paired", "all"].n == 8
    assert scores["delta_paired", "all"].excluded == {"not_valid_in_both": 2}
    # Six of eight pairs, all of one sign: more than McNemar's 2 / 2**6, which knows no clusters.
    # Three clusters are too few to tell 6 of 8 from 0.
    assert 2 / 2**6 < scores["delta_paired", "all"].p_value < 0.25


def test_intervals_of_constrained_pairs_count_clusters_of_families_not_rows() -> None:
    suite = open_suite("t2i_correctness")
    (row, *_) = next(trials_of(suite.name)).rows
    placed = [("a", "one", "one"), ("b", "one", "one"), ("c", "two", "one"), ("d", "three", "d")]
    rows = [
        row.model_copy(update={"id": name, "family": family, "cluster": cluster})
        for name, family, cluster in placed
    ]
    cases = [case for member in rows for case in suite.cases(member, 2)]
    outcomes = [outcome(case, {"arrangement": "correct"}) for case in cases]
    paired = by_name(suite.score(outcomes))["delta_paired", "all"]
    assert (paired.n, paired.clusters) == (8, 2)


@pytest.mark.parametrize(
    ("strategy", "cell", "kind", "unordered"),
    [
        (lambda turned, order: True, "right_in_both", "twins_right", 100),
        (lambda turned, order: not turned, "", "twins_habit", 200 / 3),
        (lambda turned, order: order != "reverse", "right_only_aligned", "twins_order", 100),
        (lambda turned, order: order == "reverse", "right_only_reverse", "", 0),
        (lambda turned, order: False, "wrong_in_both", "", 0),
    ],
    ids=["grounded", "habit", "order", "against", "prior"],
)
def test_a_strategy_is_known_by_its_cell_and_by_its_twins(
    strategy: Callable[[bool, str], bool], cell: str, kind: str, unordered: float
) -> None:
    suite = open_suite("t2i_correctness")
    (row, *_) = next(trials_of(suite.name)).rows
    linked = [("a", "b"), ("b", "a"), ("c", "d"), ("d", "c"), ("e", ""), ("f", "gone")]
    rows = [
        row.model_copy(update={"id": name, "twin": twin, "unordered_prompt": "A scene."})
        for name, twin in linked
    ]
    cases = [case for one in rows for case in suite.cases(one, 1)]
    assert Counter(case.variant for case in cases) == dict.fromkeys(suite.variants, 6)
    outcomes = [
        outcome(c, {"arrangement": "correct" if strategy(c.row in "ac", c.variant) else "wrong"})
        for c in cases
    ]
    scores = by_name(suite.score(outcomes))
    assert [scores[name, "all"].value for name in CELLS if name == cell] == [100] * bool(cell)
    assert sum(scores[name, "all"].value for name in CELLS) == pytest.approx(100)
    assert {n: scores[n, "all"].value for n in TWINS} == {n: 100 * (n == kind) for n in TWINS}
    assert scores["twins_right", "all"].n == 2
    assert scores["twins_right", "all"].excluded == {"not_valid_in_all_four": 0}
    spoiled = suite.score([outcome(cases[0], {"arrangement": "invalid"}), *outcomes[1:]])
    assert by_name(spoiled)["twins_right", "all"].excluded == {"not_valid_in_all_four": 1}
    assert scores["accuracy_unordered", "all"].value == pytest.approx(unordered)
    assert scores["accuracy_aligned", "twin=no"].n == 1 and ("twins_right", "twin=no") not in scores


def test_a_judge_is_told_the_frame_and_not_the_answer() -> None:
    assert set(VIEWS) == set(FRAMES)
    assert not [told for told in VIEWS.values() if side_word(told)]
    suite = open_suite("t2i_correctness")
    (row, *_) = next(trials_of(suite.name)).rows
    turned = row.model_copy(update={"frame": "south-up"})
    (question,) = suite.questions(
        turned, next(iter(suite.cases(turned, 1))), [Image.new("RGB", (1, 1))], "original"
    )
    assert VIEWS["south-up"] in question.prompt


def test_a_failure_is_no_part_of_the_valid_rate() -> None:
    labels = ["first_left"] * 6 + ["invalid"] * 2 + ["refused", "error", "missing", "unparsed"]
    suite = open_suite("t2i_homogenization")
    outcomes = outcomes_of("t2i_homogenization", labels)
    outcomes[-4] = Outcome(outcomes[-4].case, {}, "refused")  # the generator's, not the judge's
    valid = by_name(suite.score(outcomes))["valid", "all"]
    assert (valid.value, valid.n) == (75, 8)
    assert valid.excluded == {"refused": 1, "error": 1, "missing": 1, "unparsed": 1}
    nothing = by_name(suite.score([replace(o, verdicts={}) for o in outcomes]))["valid", "all"]
    assert math.isnan(nothing.value) and nothing.n == 0


def test_probes_are_averaged_over_the_full_square() -> None:
    """A judge that leans to a side and to a name, on images of which a half follow the prior."""
    cases = [o.case for o in outcomes_of("t2i_homogenization", ["first_left"] * 40)]
    left, right = Verdict("first_left"), Verdict("first_right")
    probes = ("original", "mirror", "swap", "mirror_swap")
    says = {"original": left, "mirror": right, "swap": left, "mirror_swap": right}
    judged = [Outcome(c, {("order", p): says[p] for p in probes}) for c in cases]
    scores = by_name(open_suite("t2i_homogenization").score(judged))
    assert scores["signed_index", "all"].value == 100
    assert scores["signed_index_mirror_averaged", "all"].value == 0
    assert scores["signed_index_swap_averaged", "all"].value == 100
    assert scores["signed_index_probes_averaged", "all"].value == 0
    judged[0] = replace(judged[0], verdicts={("order", "original"): left})
    averaged = by_name(open_suite("t2i_homogenization").score(judged))
    score = averaged["signed_index_probes_averaged", "all"]
    assert score.n == 39 and score.excluded == {"not_judged_in_all_probes": 1}
    three = [replace(o, verdicts={("order", p): left for p in probes[:3]}) for o in judged]
    names = {score.name for score in open_suite("t2i_homogenization").score(three)}
    assert "signed_index_swap_averaged" in names and "signed_index_probes_averaged" not in names


def _probed(truth: float, flipped: float, leaning: float, count: int) -> list[Outcome]:
    """Outcomes of pairs of which (1 + truth) / 2 follow the prior, by a judge that flips a share of
    its answers at random, and leans to the left in a share."""
    rng = np.random.default_rng(0)
    sides = {"original": 1, "mirror": -1, "swap": 1, "mirror_swap": -1}
    judged = []
    for number in range(count):
        pair = (f"a{number % 50}", f"b{number % 50}")
        case = Case(f"row{number}", "plain", 0, 0, "", ("/".join(pair), *pair))
        sign = 1 if rng.random() < (1 + truth) / 2 else -1
        labels = {}
        for probe, side in sides.items():
            seen = -sign if rng.random() < flipped else sign
            seen = side if rng.random() < leaning else seen
            labels["order", probe] = Verdict("first_left" if seen > 0 else "first_right")
        judged.append(Outcome(case, labels))
    return judged


def test_the_agreement_of_probes_undoes_what_errors_take_from_their_average() -> None:
    suite = open_suite("t2i_homogenization")
    scores = by_name(suite.score(_probed(0.76, flipped=0.25, leaning=0.1, count=2000)))
    averaged = scores["signed_index_probes_averaged", "all"]
    undone = scores["signed_index_disattenuated", "all"]
    assert averaged.interval.high < 50
    assert undone.value == pytest.approx(76, abs=6) and 76 in undone.interval
    # The leaning alone makes the products of answers smaller: it is not taken for errors.
    leaning = by_name(suite.score(_probed(0.5, flipped=0, leaning=0.4, count=2000)))
    assert 50 in leaning["signed_index_disattenuated", "all"].interval
    assert leaning["signed_index_probes_averaged", "all"].value < 40
    # Answers without any truth in them give no number.
    guesses = by_name(suite.score(_probed(0, flipped=0.5, leaning=0, count=100)))
    guessed = guesses["signed_index_disattenuated", "all"]
    assert math.isnan(guessed.value) or guessed.interval.high - guessed.interval.low > 100
    # Errors that all four answers share can't be seen: a lower bound.
    shared = [
        replace(o, verdicts=dict.fromkeys(o.verdicts, o.verdict("order")))
        for o in _probed(0.76, flipped=0.25, leaning=0, count=2000)
    ]
    bound = by_name(suite.score(shared))["signed_index_disattenuated", "all"]
    assert bound.value == pytest.approx(38, abs=6)


@pytest.mark.slow
def test_a_judge_that_contradicts_itself_is_named_beside_the_number_without_its_errors(
    text_release: Path, tmp_path: Path, cli: Callable[..., Any]
) -> None:
    judged = cli(
        *("eval", "--suite", "t2i_homogenization", "--data", text_release, "--limit", 12),
        *("--generator", "render:?order_bias=2", "--probes", "mirror,swap", "--seeds", 2),
        *("--judge", "faulty:scene?swap=0.25&name=0.1", "--out", tmp_path),
    )
    assert judged.returncode == 0, judged.stderr
    printed = " ".join(judged.stdout.split())
    assert "note: mirror: the judge gives the same answer" in printed
    scores = by_name(
        [
            Score.from_json(s)
            for s in json.loads((tmp_path / "scores.json").read_text())[0]["scores"]
        ]
    )
    truth = 100 * (2 / (1 + math.exp(-2)) - 1)
    assert scores["signed_index_probes_averaged", "all"].interval.high < truth
    undone = scores["signed_index_disattenuated", "all"]
    assert truth in undone.interval and undone.n == 48
    assert undone.these_items.low > 0, "with its errors taken out, the bias is still seen"


def test_personas_are_two_versioned_prompts(full_release: Path) -> None:
    row = read_rows(str(full_release), "counterfactual").rows[0]
    image = Image.new("RGB", (32, 32))
    asked = {}
    for persona in ("standard", "strict"):
        suite = open_suite("counterfactual", persona)
        (case,) = suite.cases(row, 1)
        questions = suite.questions(row, case, [image], "original")
        assert [q.name for q in questions] == list(YES)
        assert suite.questions(row, case, [image], "mirror") == []
        asked[persona] = questions[0].prompt
        assert set(questions[0].answers.values()) == {"yes", "no"}
    assert asked["standard"] != asked["strict"]


# Questions.

OPTIONAL = {"t2i_correctness_gold", "altered_worlds_gold", "real_gold"}
"""Suites of configs that not every release has; the tests of `judge-check` ask them."""

RELEASED = sorted(n for n in SUITES.keys() & ROWS.keys() - OPTIONAL if not SUITES[n].takes_trips)


@pytest.mark.parametrize(
    "name",
    [  # 25,280 rows take a second to read
        pytest.param(n, marks=[pytest.mark.slow] * (n == "spatial_visor")) for n in RELEASED
    ],
)
def test_every_suite_asks_of_real_rows(full_release: Path, name: str) -> None:
    suite = open_suite(name)
    rows = read_rows(str(full_release), name).rows
    digits: Counter[str] = Counter()
    for row in random.Random(0).sample(rows, min(60, len(rows))):
        cases = list(suite.cases(row, 2))
        assert len({case.id for case in cases}) == len(cases)
        assert {case.seed for case in cases} == set(row.seeds[:2])
        source = source_image(row)
        images = [image for image in (source, Image.new("RGB", (64, 48))) if image is not None]
        for case in cases:
            (question, *_) = suite.questions(row, case, images, "original")
            assert "$" not in question.prompt and "{" not in question.prompt
            for subject in question.subjects:
                assert subject in question.prompt
            lines = question.prompt.splitlines()
            for digit in question.answers:
                assert sum(line.startswith(f"{digit}: ") for line in lines) == 1
            right = question.labels[0]
            digits[next(d for d, label in question.answers.items() if label == right)] += 1
    # No digit is usually the answer that the prior, or the truth, asks for.
    total = sum(digits.values())
    assert max(digits.values()) < total * (0.75 if len(digits) == 2 else 0.55)


def pictured(name: str, row: Row, bias: str) -> tuple[list[Image.Image], Case]:
    suite = open_suite(name)
    case = next(iter(suite.cases(row, 1)))
    source = source_image(row)
    made = draw(open_generator(f"render:?{bias}"), ImageRequest(case.prompt, case.seed, source))
    return [made] if source is None else [source, made], case


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "bias", "first", "second"),
    [
        ("t2i_homogenization", "order_bias={}", "first_left", "first_right"),
        ("i2i_homogenization", "order_bias={}", "left_acts", "right_acts"),
    ],
)
def test_the_pixel_judge_sees_what_was_drawn_under_every_probe(
    full_release: Path, name: str, bias: str, first: str, second: str
) -> None:
    # Some seed images of the tests' release are white.
    rows = [
        row
        for row in read_rows(str(full_release), name).rows
        if (seed := source_image(row)) is None or "scene" in seed.info
    ]
    judge = PixelJudge()
    seen: Counter[str] = Counter()
    for row in random.Random(2).sample(rows, 4):
        for logit, truth in ((50, first), (-50, second)):
            images, case = pictured(name, row, bias.format(logit))
            for probe in ("original", "swap", "mirror"):
                questions = open_suite(name).questions(row, case, images, probe)
                ((_, verdict),) = judge.judge(questions)
                seen["right" if verdict.label == truth else verdict.label] += 1
                assert verdict.label in (truth, "invalid"), (case.prompt, probe, verdict)
    assert seen["right"] > 0.85 * sum(seen.values())


def asking(subjects: tuple[str, ...], task: Task, size: tuple[int, int]) -> Question:
    return Question(
        case="a",
        name="q",
        probe="original",
        task=task,
        subjects=subjects,
        labels=("x", "y", "invalid"),
        prompt="?",
        answers={},
        images=(Image.new("RGB", size),),
    )


@pytest.mark.parametrize(
    ("question", "reason"),
    [
        (asking((), "yes_no", (512, 384)), "free question"),
        (asking(("a unicorn", "a cat"), "order", (512, 384)), "unicorn"),
        (asking(("a dog", "a cat"), "order", (512, 512)), "512 x 384"),
    ],
)
def test_the_pixel_judge_answers_no_free_question_and_no_stranger(
    question: Question, reason: str
) -> None:
    ((_, verdict),) = PixelJudge().judge([question])
    assert verdict.label == "error" and reason in verdict.raw


class Truthful:
    """A judge that always says the second label."""

    def identity(self) -> dict[str, str]:
        return {"kind": "truthful"}

    def judge(self, questions: Sequence[Question]):
        for question in questions:
            yield question, Verdict(question.labels[1], "seen")


def many_questions(count: int) -> list[Question]:
    orders = [("first_left", "first_right", "invalid"), ("first_right", "first_left", "invalid")]
    return [
        Question(
            case=f"case{n}",
            name="order",
            probe=probe,
            task="order",
            subjects=("a", "b"),
            labels=orders[n % 2],
            prompt="?",
            answers={"1": "first_left", "2": "first_right", "3": "invalid"},
            images=(FLAT,),
            prior="first_left" if probe == "original" else "first_right",
        )
        for n in range(count)
        for probe in ("original", "mirror")
    ]


def test_faults_come_as_often_as_they_are_set() -> None:
    faults = Faults(name=0.1, side=0.2, swap=0.1, unparsed=0.1, refuse=0.05)
    judge = FaultyJudge(Truthful(), faults)
    found = list(judge.judge(many_questions(3_000)))
    raw = Counter(verdict.raw for _, verdict in found)
    for said, share in (("name bias", 0.1), ("side bias", 0.2), ("swapped", 0.1)):
        assert raw[said] / len(found) == pytest.approx(share, abs=0.02)
    labels = Counter(verdict.label for _, verdict in found)
    assert labels["unparsed"] / len(found) == pytest.approx(0.1, abs=0.02)
    assert labels["refused"] / len(found) == pytest.approx(0.05, abs=0.02)
    assert [v for _, v in judge.judge(many_questions(50))] == [
        v for _, v in judge.judge(many_questions(50))
    ]


def card_of(judge: FaultyJudge) -> JudgeCard:
    answered = [Answered.of(OpenQuestion(q, "s"), v) for q, v in judge.judge(many_questions(1_500))]
    return judge_card(judge.identity(), open_suite("t2i_homogenization"), answered)


def test_a_card_shows_the_faults() -> None:
    good = card_of(FaultyJudge(Truthful(), Faults()))
    assert good.parse_rate == 1 and good.failures == {} and good.asked == 3_000
    named = card_of(FaultyJudge(Truthful(), Faults(name=0.5)))
    assert named.first_named == pytest.approx(0.5, abs=0.05)  # the truth is always the second
    sided = card_of(FaultyJudge(Truthful(), Faults(side=0.6)))
    assert sided.side_bias == pytest.approx(0.6, abs=0.06)
    assert abs(good.side_bias) < 0.06
    assert sided.probes["mirror"].consistency < good.probes["mirror"].consistency == 1
    mumbling = card_of(FaultyJudge(Truthful(), Faults(unparsed=0.2, refuse=0.1)))
    assert mumbling.parse_rate == pytest.approx(0.7 / 0.9, abs=0.03)
    assert set(mumbling.failures) == {"unparsed", "refused"}


TRIALS = {
    "t2i_homogenization": "T2I homogenization",
    "t2i_correctness": "T2I correctness",
    "i2i_homogenization": "I2I homogenization",
    "i2i_correctness": "I2I correctness",
    "spatial_visor": "Spatial",
    "spatial_multi": "Spatial multi",
    "spatial_clauses": "Spatial clauses",
    "spatial_distance": "Spatial distance",
    "spatial_3d": "Spatial 3D",
    "order_beyond": "Order beyond",
    "spatial_uc": "Spatial UC",
    "counterfactual": "Counterfactual",
    "counterfactual_denominalized": "Denominalized",
    "altered_worlds": "Altered worlds",
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "suites",
    [
        pytest.param(["i2i_homogenization"], id="one"),
        pytest.param(list(SUITES), id="all", marks=pytest.mark.lane),  # `.ci/run` runs the command
    ],
)
def test_the_selftest_holds(suites: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    if len(suites) == 1:
        monkeypatch.setattr("counterprior.eval.selftest.rows.PAIRS", 30)
    checks = selftest(suites=suites)
    assert len(checks) == (99 if len(suites) > 1 else 4)
    found = {check.trial.split(",")[0] for check in checks}
    assert found == {name for suite, name in TRIALS.items() if suite in suites}
    assert all(check.holds for check in checks)
    # Uncorrected, a judge that sees the prior is far off: the test would notice a broken chain.
    off = [c for c in checks if c.judge == "sees the prior" and c.score == "signed_index"]
    assert np.mean([c.raw.value - c.truth for c in off]) > 8


def test_an_item_counts_in_the_categories_of_both_its_entities(text_release: Path) -> None:
    suite = open_suite("t2i_homogenization")
    rows = read_rows(str(text_release), "t2i_homogenization").rows[:40]
    cases = [case for row in rows for case in suite.cases(row, 1)]
    found = by_name(suite.score([outcome(c, {"order": "first_left"}) for c in cases]))
    assert found["hom", "all"].n == 80
    for category in {row.first.category for row in rows}:
        having = [r for r in rows if category in (r.first.category, r.second.category)]
        score = found["hom", f"category={category}"]
        assert score.n == 2 * len(having) and score.value == 100
        # Always the same in a handful of pairs is no certainty.
        assert 0 < score.interval.low < 100


def test_decoupling_takes_degrees_of_yes() -> None:
    """A number counts before a probability, and a probability before the label."""
    verdicts = [
        Verdict("yes", number=0.7, probabilities={"yes": 0.1, "no": 0.9}),
        Verdict("no", probabilities={"yes": 0.4, "no": 0.6}),
        Verdict("yes"),
        Verdict("unparsed", number=0.0),
    ]
    outcomes = [
        Outcome(Case(f"r{number}", variant, 0, 0, "", (f"rule{number}",)), {key: verdict})
        for variant in ("factual", "counterfactual")
        for number, verdict in enumerate(verdicts)
        if (key := ("shows", "original")) and (variant == "factual" or number < 2)
    ]
    suite = SUITES["rule_decoupling"]()
    scores = {score.name: score for score in suite.score(outcomes)}
    assert scores["shown_factual"].value == pytest.approx((0.7 + 0.4 + 1) / 3)
    assert scores["shown_factual"].excluded == {"unparsed": 1} and scores["shown_factual"].n == 3
    assert scores["gap"].value == pytest.approx(0.7 - 0.55) and scores["gap"].n == 5
    items = suite.headline.items(outcomes)
    assert [item.values[0] for item in items.values()] == [0.7, 0.4]
    assert [suite.correctness(outcome) for outcome in outcomes[:3]] == [0.7, 0.4, 1.0]
