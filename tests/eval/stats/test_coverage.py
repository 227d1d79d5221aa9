"""`benchmarks/coverage.py`: every interval that the package prints has a simulation."""

import importlib
import inspect
import math
import pkgutil
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from benchmark_files import BENCHMARKS, opened

import counterprior.eval.stats as stats

BENCHMARK = BENCHMARKS / "coverage.py"
NOT_SIMULATED = {
    "confidence_sequence": "benchmarks/race.py has the races that it decides",
    "cluster_bootstrap": "percentiles of the gate's kappa and of the checker's audit",
    "residual_agreement": "benchmarks/judges_together.py; a check of an assumption, not a score",
    "corrected_rates": "benchmarks/detectability.py",
}
"""Functions with intervals that `coverage.py` does not simulate, and why."""


@pytest.fixture(scope="module")
def coverage() -> ModuleType:
    return opened(BENCHMARK)


def interval_functions() -> set[str]:
    """Public functions of eval/stats that return an interval or an estimate."""
    names = set()
    for module_info in pkgutil.iter_modules(stats.__path__):
        module = importlib.import_module(f"{stats.__name__}.{module_info.name}")
        for name, function in inspect.getmembers(module, inspect.isfunction):
            returned = str(inspect.signature(function).return_annotation)
            own = function.__module__ == module.__name__ and not name.startswith("_")
            if own and any(kind in returned for kind in ("Estimate", "Interval", "Bootstrap")):
                names.add(name)
    return names


def test_every_function_with_an_interval_is_simulated(coverage: ModuleType) -> None:
    simulated = {name for family in coverage.families() for name in family.of.split()}
    others = "".join(p.read_text() for p in BENCHMARK.parent.glob("*.py") if p != BENCHMARK)
    missing = {
        name
        for name in interval_functions() - simulated - set(NOT_SIMULATED)
        if not re.search(rf"\b{name}\b", others)
    }
    assert not missing, f"add a Family for {missing} to benchmarks/coverage.py"


@pytest.mark.slow
def test_each_family_simulates_its_settings(coverage: ModuleType) -> None:
    for family in coverage.families():
        for setting in (family.grid[0], family.grid[-1]):
            assert len(setting) == len(family.names.split()), family.title
        cell = coverage.measured(family, family.grid[-1], 2)
        assert cell.undefined == 1 or 0 <= cell.coverage <= cell.silent <= 1, family.title


@pytest.mark.parametrize(("warning", "fails"), [("", True), ("few", False)])
def test_an_interval_that_is_too_narrow_fails(
    coverage: ModuleType, monkeypatch: pytest.MonkeyPatch, warning: str, fails: bool
) -> None:
    """Half of every interval is cut off; with a warning that is no failure."""
    family = coverage.families()[0]

    def halved(rng: object, *setting: object) -> object:
        estimate, truth = family.simulate(rng, *setting)
        low, high = estimate.interval
        middle = (low + high) / 2
        half = (low, middle) if estimate.value < middle else (middle, high)
        return type(estimate)(
            estimate.value, type(estimate.interval)(*half), warning=warning
        ), truth

    place = (0, family.grid.index((40, 4, "even", 0.75, 0.5)), 50)
    assert coverage.cell_of(place)[1] is False
    broken = coverage.Family("x", halved, family.grid, family.names, "")
    monkeypatch.setattr(coverage, "families", lambda: [broken])
    assert coverage.cell_of(place)[1] is fails


@pytest.mark.slow
def test_the_command_prints_a_line_for_a_family_and_exits_by_its_cells(tmp_path: Path) -> None:
    cells = tmp_path / "cells.csv"
    result = subprocess.run(
        [sys.executable, BENCHMARK, "--runs", "2", "--only", "independent", "--cells", cells],
        capture_output=True,
        text=True,
        check=False,
    )
    line = next(line for line in result.stdout.splitlines() if line.startswith("share of"))
    assert "25 cells" in line and "worst" in line
    assert result.returncode == int("(0 fail)" not in line), result.stderr
    rows = cells.read_text().splitlines()
    assert len(rows) == 26 and not math.isnan(float(rows[1].rsplit('"', 1)[1].split(",")[1]))


@pytest.mark.slow
def test_letters_seldom_tell_equal_generators_apart() -> None:
    """Two of them would differ if each pair were a cluster of its own."""
    letters = opened(BENCHMARKS / "letters.py")
    rng = np.random.default_rng(0)
    pairs = [tuple(rng.choice(list("abcdefghijklmnop"), 2, replace=False)) for _ in range(300)]
    differs = [letters.any_letter_differs((9, n), pairs, 1.5, 0.4) for n in range(6)]
    assert sum(differs) <= 1
    headline = letters.open_suite("t2i_homogenization").headline
    first, second = (
        {
            n: item._replace(cluster=str(n))
            for n, item in letters.generator_items(
                np.random.default_rng(seed), pairs, 1.5, 0.4
            ).items()
        }
        for seed in (1, 2)
    )
    assert letters.paired(first, second, headline).p_value < 0.05
