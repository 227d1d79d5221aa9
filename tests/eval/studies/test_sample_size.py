"""`study power`: how many items tell two generators apart."""

import json
import random
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from judged import judged_run
from refusals import raises

from counterprior.eval.core import Case, Outcome, Verdict
from counterprior.eval.stats.comparison import mcnemar, paired_items
from counterprior.eval.studies.sample_size import PlanSettings, plan

Cli = Callable[..., subprocess.CompletedProcess[str]]
QUIET = PlanSettings()


def outcomes(rights: list[bool], a_cluster: int = 1) -> list[Outcome]:
    """One an image, `a_cluster` of them in each pair."""
    return [
        Outcome(
            Case(f"row{n}", "reverse", 0, 0, "", (f"pair{n // a_cluster}",)),
            {("arrangement", "original"): Verdict("correct" if right else "wrong")},
        )
        for n, right in enumerate(rights)
    ]


def pilot(n: int, seed: int = 0) -> tuple[list[bool], list[bool]]:
    """Two generators, right on 60 and 70 %, apart on 30 % of the items."""
    rng = random.Random(seed)
    both = [(True, True), (True, False), (False, True), (False, False)]
    kinds = rng.choices(both, [0.5, 0.1, 0.2, 0.2], k=n)
    return [a for a, _ in kinds], [b for _, b in kinds]


def test_assumed_rates_give_the_textbooks_number() -> None:
    found = plan((), (0.7, 0.75), 0.2, QUIET)
    assert (found["items"], found["difference"]) == (621, pytest.approx(0.05))
    apart = plan((), (0.7, 0.75), None, QUIET)
    assert apart["discordance"] == pytest.approx(0.4)
    assert apart["items"] == paired_items(0.05, 0.4) > 621
    assert plan((), (0.7, 0.75), 0.2, PlanSettings(difference=0.1))["items"] == 150


def test_the_planned_number_has_the_power() -> None:
    """McNemar's exact test on as many simulated items as planned finds it 80 % of the time."""
    items = plan((), (0.6, 0.7), 0.3, QUIET)["items"]
    rng = np.random.default_rng(0)
    drawn = rng.multinomial(items, [0.1, 0.2, 0.7], size=1_000)
    found = np.mean([mcnemar(int(a), int(b)) < 0.05 for a, b, _ in drawn])
    assert 0.74 < found < 0.84  # the exact test is a little conservative


def test_a_pilot_of_both_gives_nearly_the_same(tmp_path: Path) -> None:
    first, second = pilot(300)
    rights = {"a": first, "b": second}
    runs = [judged_run(tmp_path / name, outcomes(found)) for name, found in rights.items()]
    (found,) = plan(runs, (), None, PlanSettings(difference=0.2)).values()
    # The plan from rates lets the true difference narrow the spread; a pilot has its own.
    assert found["items"] == pytest.approx(paired_items(0.1, 0.3) / 4, rel=0.2)
    assert found["items_now"] == found["clusters_now"] == 300 and found["warnings"] == []
    low, high = found["shown_95"]
    assert low < -0.1 < high


def test_items_that_share_a_pair_count_for_less(tmp_path: Path) -> None:
    first, second = pilot(150)
    twice = [[right for right in rights for _ in range(2)] for rights in (first, second)]
    runs = [judged_run(tmp_path / str(n), outcomes(rights, 2)) for n, rights in enumerate(twice)]
    (found,) = plan(runs, (), None, PlanSettings(difference=0.1)).values()
    assert found["clusters_now"] == 150
    assert found["items"] == pytest.approx(2 * found["clusters"], abs=2)
    assert found["clusters"] == pytest.approx(paired_items(0.1, 0.3), rel=0.25)


def test_what_may_be_chance_is_named(tmp_path: Path) -> None:
    first, second = pilot(30)
    rights = {"a": first, "b": second}
    runs = [judged_run(tmp_path / name, outcomes(found)) for name, found in rights.items()]
    (found,) = plan(runs, (), None, QUIET).values()
    assert "may be chance" in found["warnings"][0]
    again = judged_run(tmp_path / "c", outcomes(first))
    (alike,) = plan([runs[0], again], (), None, QUIET).values()
    assert alike["items"] is None and alike["shown"] == 0


@pytest.mark.parametrize(
    ("rates", "discordance", "settings", "reason"),
    [
        ((0.7,), None, {}, ("missing-option",)),
        ((0.7, 0.7), None, {}, ("out-of-range", "0.7")),
        ((0.7, 1.2), None, {}, ("out-of-range", "0.7")),
        ((0.7, 0.9), 0.1, {}, ("out-of-range", "0.2", "0.1")),
        ((0.7, 0.9), None, {"power": 1.0}, ("out-of-range", "power 1")),
        ((0.7, 0.9), None, {"difference": 0.0}, ("out-of-range",)),
    ],
)
def test_what_can_not_be_planned_says_why(
    rates: tuple[float, ...], discordance: float | None, settings: dict, reason: tuple[str, ...]
) -> None:
    with raises(*reason):
        plan((), rates, discordance, PlanSettings(**settings))


def test_the_command(cli: Cli) -> None:
    done = cli(
        "study", "power", "--rate", "0.7", "--rate", "0.75", "--discordance", "0.2", "--json"
    )
    assert json.loads(done.stdout)["items"] == 621
