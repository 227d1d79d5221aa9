"""Our metrics on the numbers that the papers printed (facts only, in `golden/published.jsonl`)."""

import json
from pathlib import Path

import pytest

from counterprior.eval.stats.agreement import cohen_kappa, reliability

PUBLISHED = [
    json.loads(line)
    for line in (Path(__file__).parent / "golden" / "published.jsonl").read_text().splitlines()
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
