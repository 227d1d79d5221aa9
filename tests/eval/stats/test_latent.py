"""Truth and errors of raters from their answers alone, on known truth."""

import numpy as np
import pytest

from counterprior.eval.stats.latent import (
    MISSING,
    latent_classes,
    rater_prior,
    residual_agreement,
)

RIGHT, WRONG, INVALID = range(3)
SHARES = np.array([0.27, 0.63, 0.1])
TRUTH = 0.3


def confusion(accuracy: float, abstains: tuple[float, float]) -> np.ndarray:
    """Rates of answers by true class; abstains: share of right and of wrong images."""
    rates = np.array([[accuracy, 1 - accuracy, 0], [1 - accuracy, accuracy, 0], [0.1, 0.1, 0.8]])
    for truth, share in enumerate(abstains):
        rates[truth] *= 1 - share
        rates[truth, INVALID] = share
    return rates


JUDGES = [confusion(0.9, (0.02, 0.15)), confusion(0.8, (0.05, 0.1)), confusion(0.7, (0, 0.1))]
PEOPLE = np.array([[0.95, 0.04, 0.01], [0.04, 0.95, 0.01], [0.03, 0.02, 0.95]])


def answers(truth: np.ndarray, rates: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return (rng.random(len(truth))[:, None] > rates[truth].cumsum(axis=1)).sum(axis=1)


def raters(
    rng: np.random.Generator, labels: int, n: int = 300
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """True classes, the answers of three judges and people, and the priors."""
    truth = rng.permutation(np.repeat(range(3), np.round(n * SHARES).astype(int)))
    people = np.full(n, MISSING)
    people[:labels] = answers(truth, PEOPLE, rng)[:labels]
    table = np.column_stack([*(answers(truth, rates, rng) for rates in JUDGES), people])
    priors = np.stack([*[rater_prior(3, 0.85, 4)] * 3, rater_prior(3, 0.95, 20)])
    return truth, table, priors


@pytest.mark.slow
def test_the_truth_lies_in_the_interval_and_no_single_judge_is_as_near() -> None:
    rng, holds, errors, alone = np.random.default_rng(5), 0, [], []
    for seed in range(6):
        _, table, priors = raters(rng, 100)
        latent = latent_classes(table, np.zeros(300, int), np.arange(300), priors, seed=seed)
        estimate = latent.mean(0, [1, 0, np.nan], 300, 300)
        holds += estimate.interval.low <= TRUTH <= estimate.interval.high
        errors.append(estimate.value - TRUTH)
        best = table[:, 0]
        alone.append((best == RIGHT).sum() / (best != INVALID).sum() - TRUTH)
        assert latent.recognized(3, RIGHT).value > latent.recognized(2, RIGHT).value
    assert holds >= 5
    assert np.sqrt(np.mean(np.square(errors))) < 0.7 * np.sqrt(np.mean(np.square(alone)))


def test_items_that_come_in_clusters_widen_the_interval() -> None:
    _, table, priors = raters(np.random.default_rng(2), 100, 80)
    groups = np.zeros(320, int)
    copied = np.repeat(table, 4, axis=0)
    apart = latent_classes(copied, groups, np.arange(320), priors).mean(0, [1, 0, np.nan], 320, 320)
    together = latent_classes(copied, groups, np.arange(320) // 4, priors)
    wide = together.mean(0, [1, 0, np.nan], 320, 80).interval
    assert wide.high - wide.low > 1.5 * (apart.interval.high - apart.interval.low)


@pytest.mark.slow
def test_the_same_answers_give_the_same_numbers() -> None:
    _, table, priors = raters(np.random.default_rng(2), 50)
    first, second = (
        latent_classes(table, np.zeros(300, int), np.arange(300), priors) for _ in range(2)
    )
    assert (first.prevalence_draws == second.prevalence_draws).all()


@pytest.mark.parametrize("copies", [0.0, 0.5])
def test_raters_that_err_together_are_seen(copies: float) -> None:
    rng = np.random.default_rng(3)
    _, table, priors = raters(rng, 300)
    copied = rng.random(300) < copies
    table[copied, 1] = table[copied, 2]
    latent = latent_classes(table, np.zeros(300, int), np.arange(300), priors)
    residual = residual_agreement(latent, table, np.arange(300), 1, 2)
    assert (residual.value > 0.05 and residual.p_value < 0.01) == (copies > 0)
