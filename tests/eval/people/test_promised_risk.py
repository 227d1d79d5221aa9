"""`audit calibrate --risk`: settings whose risk is promised."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import numpy as np
import pytest
from refusals import raises

from counterprior.errors import UsageError
from counterprior.eval.geometry.boxes import Size
from counterprior.eval.geometry.checker.recorded import CheckerSample
from counterprior.eval.geometry.checker.rules import CheckerRules
from counterprior.eval.people.checker_settings import Promise, promised
from counterprior.eval.stats.risk_control import exceeds_p_value, in_sequence

Cli = Callable[..., CompletedProcess[str]]
SIZE = Size(512, 512)


def images(n: int, seed: int, seeds: int = 1) -> tuple[list[tuple[CheckerSample, Size]], list[str]]:
    """Images whose truth is the sign of an offset, with people's answers, wrong on one in 30."""
    rng = random.Random(seed)
    samples, answers = [], []
    for number in range(n):
        offset = rng.uniform(-0.3, 0.3)
        x = 256 + offset * 512
        boxes = [x - 50, 200, x + 50, 300], [206, 200, 306, 300]
        row = {
            "sample_id": f"s{number}",
            "prompt_id": f"p{number // seeds}",
            "relation": "left_of",
            "object_a": "cat",
            "object_b": "dog",
            "verdict_raw": "PASS",
            "conf_components": {"stability": 0.9},
            "detectors": {
                "primary": {
                    "detections": [
                        {"label": label, "score": rng.uniform(0.5, 1), "box_xyxy": box}
                        for label, box in zip(("cat", "dog"), boxes, strict=True)
                    ]
                }
            },
        }
        samples.append((CheckerSample.model_validate(row), SIZE))
        answers.append("PASS" if (offset < 0) != (rng.random() < 1 / 30) else "FAIL")
    return samples, answers


def test_the_promise_is_broken_in_at_most_delta_of_simulated_audits() -> None:
    """A checker with confidence c is wrong in 0.6 (1 - c)^2; its risk is 0.1 from about 0.3 on."""
    rng, taus = np.random.default_rng(1), np.arange(0.75, -0.01, -0.05)
    true = {tau: 0.2 * (1 - tau) ** 2 for tau in taus}  # the mean of the errors above tau
    broken = chosen = 0
    for _ in range(400):
        confidence = rng.random(200)
        wrong = rng.random(200) < 0.6 * (1 - confidence) ** 2
        kept = [confidence >= tau for tau in taus]
        p_values = [exceeds_p_value(int(wrong[k].sum()), int(k.sum()), 0.1) for k in kept]
        safe = in_sequence(p_values, 0.1)
        chosen += bool(safe)
        broken += bool(safe) and true[taus[safe[-1]]] > 0.1
    assert chosen > 250 and broken <= 0.1 * 400


@pytest.mark.slow
def test_more_labels_keep_a_stricter_promise() -> None:
    samples, answers = images(400, seed=3)
    chosen = []
    for labeled in (60, 300):
        human = {f"s{n}": answers[n] for n in range(labeled)}
        result = promised(samples, human, CheckerRules(), Promise(0.08, 0.1))
        assert result["prompts"] == labeled and result["order"].endswith("unlabeled prompts")
        chosen.append(result["chosen"])
    assert chosen[0] is None and chosen[1]["p_value"] <= 0.1 and chosen[1]["coverage"] > 0.6


def test_one_image_of_each_prompt_counts() -> None:
    samples, answers = images(200, seed=4, seeds=4)
    human = dict(zip((s.sample_id for s, _ in samples), answers, strict=True))
    result = promised(samples, human, CheckerRules(), Promise(0.3, 0.1))
    assert result["prompts"] == 50 and "Holm" in result["order"] and result["settings"] == 36
    assert promised(samples, human, CheckerRules(), Promise(0.3, 0.1)) == result


def test_too_few_labels_promise_nothing_and_say_how_many_are_needed() -> None:
    samples, answers = images(120, seed=5)
    human = {f"s{n}": answers[n] for n in range(15)}
    result = promised(samples, human, CheckerRules(), Promise(0.05, 0.05))
    assert result["chosen"] is None and result["settings"] == 0
    assert result["label_prompts"] > 90
    with raises("out-of-range", "--risk 1.5", error=UsageError):
        promised(samples, human, CheckerRules(), Promise(1.5, 0.1))


@pytest.mark.slow
def test_published_labels_by_command(shared_data: Path, cli: Cli) -> None:
    run = shared_data / "spatialbench_uc" / "sd15_promptonly"
    evaluation = run / "eval_precal_20260116_113552"
    options = ("--labels", run / "human_labels.csv", "--rules", evaluation / "checker_config.yaml")
    command = ("audit", "calibrate", evaluation / "per_sample.jsonl", *options)
    results = {}
    for risk in ("0.1", "0.3"):
        done = cli(*command, "--risk", risk, "--json")
        assert done.returncode == 0, done.stderr
        results[risk] = json.loads(done.stdout)["promised"]
    # 58 prompts are labeled, of which the checker decides few.
    assert results["0.1"]["chosen"] is None and results["0.1"]["label_prompts"] > 58
    chosen = results["0.3"]["chosen"]
    assert chosen["p_value"] == pytest.approx(
        exceeds_p_value(chosen["wrong"], chosen["decided"], 0.3)
    )
    refused = cli(*command, "--risk", "2")
    assert refused.returncode == 2 and "out-of-range" in refused.stderr
