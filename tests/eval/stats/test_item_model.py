"""Item response models: parameters of simulated generators and items come back."""

import math

import numpy as np
import pytest

from counterprior.eval.stats.items import (
    choose_items,
    expected_discordance,
    fit_items,
    item_fit,
    judge_shifts,
    linked_score,
)

Simulated = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def simulated(
    generators: int, items: int, seed: int, difficulty: float = 1.5, slope: float = 0.3
) -> Simulated:
    """Answers of shape (generators, items), and abilities, difficulties and discriminations."""
    rng = np.random.default_rng(seed)
    abilities = rng.normal(size=generators)
    abilities -= abilities.mean()
    difficulties = 0.5 + difficulty * rng.normal(size=items)
    slopes = 1 + slope * rng.normal(size=items)
    chance = 1 / (1 + np.exp(difficulties - slopes * abilities[:, None]))
    answers = (rng.random((generators, items)) < chance).astype(float)
    return answers, abilities, difficulties, slopes


@pytest.mark.parametrize("generators", [5, 12, 30])
def test_parameters_are_recovered_and_their_errors_are_right(generators: int) -> None:
    answers, abilities, difficulties, slopes = simulated(generators, 400, seed=3)
    model = fit_items(answers)
    assert np.corrcoef(model.abilities, abilities)[0, 1] > 0.95
    assert model.abilities.mean() == pytest.approx(0, abs=1e-6)
    assert (
        np.corrcoef(model.difficulties, difficulties)[0, 1]
        > {5: 0.7, 12: 0.85, 30: 0.93}[generators]
    )
    off = np.abs(model.difficulties - difficulties) / model.intercept_errors
    assert 0.9 < np.mean(off < 1.96) < 0.98
    low, high = model.slope_intervals.T
    assert np.mean((low <= slopes) & (slopes <= high)) > 0.9
    assert np.mean(model.slopes) == pytest.approx(1, abs=0.15)


def test_a_missing_answer_is_not_a_wrong_one() -> None:
    answers, _, difficulties, _ = simulated(20, 200, seed=1)
    lost = np.random.default_rng(0).random(answers.shape) < 0.3
    lost[:, 100:] = False
    model = fit_items(np.where(lost, np.nan, answers))
    off = (model.difficulties - difficulties)[:100]
    assert abs(off.mean()) < 0.15
    as_wrong = fit_items(np.where(lost, 0.0, answers))
    assert (as_wrong.difficulties - difficulties)[:100].mean() > 0.4


def test_answers_that_all_agree_have_a_finite_difficulty() -> None:
    answers, *_ = simulated(6, 60, seed=2)
    answers[:, 0], answers[:, 1] = 1, 0
    model = fit_items(answers)
    assert np.isfinite(model.difficulties).all() and (model.intercept_errors > 0.4).all()
    assert model.difficulties[0] < -1 < 1 < model.difficulties[1]
    with pytest.raises(ValueError, match="two generators"):
        fit_items(answers[:1])
    with pytest.raises(ValueError, match=r"\[0, 1\]"):
        fit_items(answers * 2)


@pytest.mark.slow
def test_items_that_better_generators_get_wrong_are_named_and_no_others() -> None:
    answers, abilities, _, _ = simulated(30, 200, seed=5)
    rng = np.random.default_rng(9)
    answers[:, 7] = rng.random(30) < 1 / (1 + np.exp(3 * abilities))
    answers[:, 8] = rng.random(30) < 0.5  # a coin
    model = fit_items(answers)
    assert np.flatnonzero(model.slope_intervals[:, 1] < 0).tolist() == [7]
    clean = fit_items(simulated(30, 200, seed=6)[0])
    assert not (clean.slope_intervals[:, 1] < 0).any()


def test_infit_is_one_under_the_model_and_above_it_for_noise() -> None:
    rng = np.random.default_rng(4)
    abilities = np.linspace(-3, 3, 30)[:, None]
    answers = (rng.random((30, 150)) < 1 / (1 + np.exp(-abilities))).astype(float)
    answers[:, 0] = abilities[:, 0] < 0
    fit = item_fit(answers, fit_items(answers, discriminations=False))
    assert np.mean(fit.infit[1:]) == pytest.approx(1, abs=0.1)
    assert fit.infit[0] > 2 and fit.outfit[0] > 2 and fit.p_values[0] < 1e-4
    assert np.mean(fit.p_values[1:] < 0.05) < 0.08


def test_shifts_between_judges_are_of_the_images_on_which_they_differ() -> None:
    first = np.tile([1.0, 1.0, 0.0, 1.0, np.nan, 1.0, 1.0, 0.0], (3, 1)).T  # (8, 3)
    second = first.copy()
    second[[0, 1, 5], 0] = 0  # three harder
    second[0, 1], second[2, 1] = 0, 1  # one each
    shifts = judge_shifts(first, second)
    assert [shift.n for shift in shifts] == [3, 2, 0] and math.isnan(shifts[2].value)
    # Of the others one of two is harder: no severity.
    assert shifts[0].value == pytest.approx(math.log(3.5 / 0.5))
    assert shifts[0].interval.low == pytest.approx(math.log(0.2924 / 0.7076), abs=1e-3)
    assert shifts[0].interval.high == math.inf
    assert shifts[0].p_value == pytest.approx(2 * 0.5**3)
    assert shifts[1].value == pytest.approx(-math.log(3.5 / 0.5))


@pytest.mark.slow
def test_a_short_form_of_100_is_as_good_as_300_random_items() -> None:
    """Of 1,000 whose difficulties differ much, for generators that the model has not seen."""
    answers, *_ = simulated(52, 1000, seed=11, difficulty=2.5)
    known, unseen = answers[:12], answers[12:]
    model = fit_items(known)
    chosen = choose_items(model, 100, np.arange(1000))
    errors = []
    for row in unseen:
        asked = np.full(1000, np.nan)
        asked[chosen] = row[chosen]
        score, error = linked_score(asked, model)
        errors.append((score - row.mean(), error))
    off, claimed = np.array(errors).T
    random_300 = math.sqrt(float(unseen.var(axis=1, ddof=1).mean()) / 300 * 0.7)
    assert math.sqrt(float(np.mean(off**2))) <= random_300
    assert np.mean(np.abs(off) < 1.96 * claimed) > 0.85
    assert math.isnan(linked_score(np.full(1000, np.nan), model)[0])
    score, error = linked_score(unseen[0], model)
    assert score == pytest.approx(unseen[0].mean()) and error == pytest.approx(0, abs=1e-9)


def test_a_short_form_spreads_over_clusters() -> None:
    answers, *_ = simulated(10, 60, seed=1)
    clusters = np.repeat(np.arange(20), 3)
    model = fit_items(answers)
    assert len(set(clusters[choose_items(model, 20, clusters)])) == 20
    assert np.bincount(clusters[choose_items(model, 30, clusters)]).max() == 2
    with pytest.raises(ValueError, match="61 of 60"):
        choose_items(model, 61, clusters)


def test_generators_differ_most_on_items_of_middle_difficulty() -> None:
    answers, _, difficulties, _ = simulated(20, 200, seed=8, difficulty=2.5)
    differ = expected_discordance(fit_items(answers))
    assert ((differ > 0) & (differ <= 0.5)).all()
    middle = np.abs(difficulties) < 0.5
    assert differ[middle].mean() > 2 * differ[np.abs(difficulties) > 4].mean()
