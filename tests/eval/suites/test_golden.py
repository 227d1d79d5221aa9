"""Our metrics on the numbers that the papers printed (facts only, in `golden/published.jsonl`)."""

import json
import math
from pathlib import Path
from statistics import mean

import pytest

from counterprior.eval.core import Case, Outcome, Verdict
from counterprior.eval.geometry.checker.summary import rates
from counterprior.eval.geometry.pse import pse
from counterprior.eval.stats.agreement import cohen_kappa, reliability
from counterprior.eval.studies.race import ucb_index
from counterprior.eval.suites import open_suite
from counterprior.eval.suites.spatial import image_scores
from counterprior.eval.suites.worlds import gated, premise_ratio, weighted_score

PUBLISHED = [
    json.loads(line)
    for line in (Path(__file__).parents[2] / "golden" / "published.jsonl").read_text().splitlines()
]


def published(metric: str) -> pytest.MarkDecorator:
    cases = [case for case in PUBLISHED if case["metric"] == metric]
    assert cases
    names = [f"{number}, {case['source']}" for number, case in enumerate(cases)]
    return pytest.mark.parametrize("case", cases, ids=names)


@published("cohen_kappa")
def test_kappas(case: dict) -> None:
    kappa = cohen_kappa(case["input"]["matrix"])
    assert kappa.value == pytest.approx(case["expected"], abs=case["tol"])
    assert kappa.value in kappa.interval


@published("binary_reliability")
def test_reliabilities(case: dict) -> None:
    counts = {name.lower(): value for name, value in case["input"].items()}
    found = reliability(**counts)._asdict()
    for name, percent in case["expected"].items():
        assert 100 * found[name] == pytest.approx(percent, abs=case["tol"])


@published("hom")
def test_homogenization(case: dict) -> None:
    labels = ["first_left"] * case["input"]["n_left"] + ["first_right"] * case["input"]["n_right"]
    outcomes = [
        Outcome(
            Case(f"row{number}", "plain", 0, 0, "", (f"pair{number}",)),
            {("order", "original"): Verdict(label)},
        )
        for number, label in enumerate(labels)
    ]
    found = next(
        s for s in open_suite("t2i_homogenization").score(outcomes) if s.name == "hom"
    ).value
    if case["expected"] is None:
        assert math.isnan(found)
    else:
        assert found == pytest.approx(case["expected"], abs=max(case["tol"], 1e-12))


@published("cf_base_score")
def test_weighted_scores(case: dict) -> None:
    found = weighted_score(case["input"]["w"], case["input"]["s"])
    assert found == pytest.approx(case["expected"], abs=case["tol"])


@published("cf_gate")
def test_the_gate(case: dict) -> None:
    scores = gated([[case["input"]["S_L1"], case["input"]["S_L2"], 0.9]])
    assert scores[0, 1] == case["expected"]


@published("prr")
def test_premise_ratios(case: dict) -> None:
    found = premise_ratio(case["input"]["l1"], case["input"]["l2"])
    assert found == pytest.approx(case["expected"], abs=case["tol"])


@published("rrr")
def test_reasoning_ratios(case: dict) -> None:
    found = premise_ratio(case["input"]["l2"], case["input"]["l3"])
    assert found == pytest.approx(case["expected"], abs=case["tol"])


@published("delta")
def test_deltas(case: dict) -> None:
    """Where every case is valid, paired or not: the difference of the accuracies."""
    right, wrong = Verdict("correct"), Verdict("wrong")
    shares = [round(10 * case["input"][order]) for order in ("ali", "rev")]
    outcomes = [
        Outcome(
            Case(f"row{n}", variant, 0, 0, "", (f"cluster{n % 40}",)),
            {("arrangement", "original"): right if n < share else wrong},
        )
        for n in range(1_000)
        for variant, share in zip(("aligned", "reverse"), shares, strict=True)
    ]
    found = {score.name: score for score in open_suite("t2i_correctness").score(outcomes)}
    for name in ("delta", "delta_paired"):
        assert found[name].value == pytest.approx(case["expected"], abs=case["tol"])
        assert found[name].value in found[name].interval


@published("pse_1d")
def test_pse(case: dict) -> None:
    given = case["input"]
    found = float(pse([given["A"]], [given["B"]], "left_of"))
    assert found == pytest.approx(case["expected"], abs=case["tol"])


@published("visor_uncond_from_visor_n")
def test_visor_is_the_mean_of_its_four(case: dict) -> None:
    assert mean(case["input"]["visor_n"]) == pytest.approx(case["expected"], abs=case["tol"])


@published("visor_uncond_from_oa_cond")
def test_visor_of_pictures_with_the_printed_rates(case: dict) -> None:
    n = 5_000
    both = round(n * case["input"]["oa"] / 100)
    right = round(both * case["input"]["cond"] / 100)
    labels = ["holds"] * right + ["opposite"] * (both - right) + ["invalid"] * (n - both)
    outcomes = [
        Outcome(
            Case(f"row{k}", "plain", 0, 0, "", (f"cluster{k % 40}",)),
            {("order", "original"): Verdict(label)},
        )
        for k, label in enumerate(labels)
    ]
    found = {score.name: score.value for score in image_scores(outcomes, "all")}
    assert found["accuracy_unconditional"] == pytest.approx(case["expected"], abs=case["tol"])
    assert found["decided"] == pytest.approx(case["input"]["oa"], abs=0.02)


@published("abstaining_rates")
def test_abstaining_rates(case: dict) -> None:
    given = case["input"]
    found = rates(given["PASS"], given["FAIL"], given["UNDECIDABLE"])
    names = {
        "pass": "pass_rate_overall",
        "coverage": "coverage",
        "pass_decided": "pass_rate_conditional",
    }
    for name, percent in case["expected"].items():
        assert 100 * found[names[name]] == pytest.approx(percent, abs=case["tol"])


@published("ucb_index")
def test_bandit_index(case: dict) -> None:
    given = case["input"]
    found = ucb_index(given["mean"], given["n"], given["t"], given["alpha"])
    assert found == pytest.approx(case["expected"], abs=case["tol"])
