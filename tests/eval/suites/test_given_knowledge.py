"""What mention order does to what a generator knows, whatever share that is."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from counterprior.eval.core import Case, ImageRequest, Outcome, Question, Score, Verdict
from counterprior.eval.suites import open_suite
from counterprior.eval.suites.correctness import knowledge

LOGITS = {"known": 4.0, "guessed": 0.0, "wrong": -4.0}
"""Log odds of the right layout, without order, of a row of each kind."""
BIAS = 3.0
"""Log odds of drawing the first-mentioned on the left, added where that is right."""
ORDER = {"aligned": BIAS, "reverse": -BIAS, "unordered": 0.0}
NAMES = ("accuracy_aligned_known", "accuracy_reverse_known", "delta_known")


def share(logit: float) -> float:
    return 1 / (1 + math.exp(-logit))


TRUTH = [100 * share(LOGITS["known"] + ORDER[order]) for order in ("aligned", "reverse")]


def is_right(kind: str, case: Case) -> bool:
    """Whether a generator that knows a row in this way draws a case right."""
    draw = random.Random(f"draw {case.id}").random()
    return draw < share(LOGITS[kind] + ORDER[case.variant])


def scored(kinds: Sequence[str], seeds: int = 4) -> dict[str, Score]:
    """Scores of a generator that knows a row of each kind, a tenth of its images invalid."""
    outcomes = []
    for row, kind in enumerate(kinds):
        for variant in ORDER:
            for seed in range(seeds):
                case = Case(f"row{row}", variant, seed, seed, "", (f"family{row}",))
                label = "correct" if is_right(kind, case) else "wrong"
                label = "invalid" if random.Random(f"valid {case.id}").random() < 0.1 else label
                outcomes.append(Outcome(case, {("arrangement", "original"): Verdict(label)}))
    suite = open_suite("t2i_correctness")
    return {score.name: score for score in suite.score(outcomes) if score.group == "all"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("known", "guessed", "wrong"), [(900, 100, 0), (300, 700, 0), (500, 300, 200)]
)
def test_scores_given_knowledge_are_those_of_known_rows(
    known: int, guessed: int, wrong: int
) -> None:
    scores = scored(["known"] * known + ["guessed"] * guessed + ["wrong"] * wrong)
    aligned, reverse, delta = (scores[name] for name in NAMES)
    for score, truth in zip((aligned, reverse), TRUTH, strict=True):
        assert score.value == pytest.approx(truth, abs=8) and truth in score.interval
    assert TRUTH[0] - TRUTH[1] in delta.interval
    assert delta.value == pytest.approx(aligned.value - reverse.value)
    # Over all rows, the bias depends on what is known.
    if known < 900:
        assert scores["accuracy_reverse"].interval.high < TRUTH[1] - 10


def test_weights_of_guessed_and_of_wrong_rows_cancel() -> None:
    def mean_weight(u: float, m: int) -> float:
        """Mean over all outcomes of m images without order, each right with probability u."""
        total = 0.0
        for code in range(2**m):
            right = [float(code >> place & 1) for place in range(m)]
            odds = math.prod(u if value else 1 - u for value in right)
            total += odds * knowledge(dict(enumerate(right, 1)), 0)
        return total

    for m in (2, 3, 4):
        for u in (0.0, 0.5, 0.8, 1.0):
            assert mean_weight(u, m) == pytest.approx(u * (2 * u - 1))
    # The same seed counts only if there are no two others.
    assert knowledge({0: 0, 1: 1, 2: 1}, 0) == 1 and knowledge({0: 0, 1: 1}, 0) == -0.5
    assert math.isnan(knowledge({1: 1, 2: math.nan}, 0)) and math.isnan(knowledge({}, 0))


def test_knowledge_needs_two_seeds_and_something_that_is_known() -> None:
    assert "delta_known" not in scored(["known"] * 5, seeds=1)
    nothing = scored(["wrong"] * 50)["accuracy_reverse_known"]
    assert math.isnan(nothing.value) and math.isnan(nothing.interval.low) and nothing.n > 100


class PartlyInformed:
    """Draws right images green and wrong ones red; knows two of five rows."""

    def identity(self) -> dict[str, str]:
        return {"kind": "python", "name": "partly_informed", "version": "1"}

    def generate(self, request: ImageRequest) -> Image.Image:
        assert request.case is not None
        kind = "known" if random.Random(request.case.row).random() < 0.4 else "guessed"
        shade = random.Random(request.case.id).randrange(200)
        right = is_right(kind, request.case)
        return Image.new("RGB", (16, 16), (shade, 255, 0) if right else (255, shade, 0))


def green() -> Callable[[Question], str]:
    def judge(question: Question) -> str:
        _, green_part, _ = question.images[-1].getpixel((0, 0))
        return "correct" if green_part == 255 else "wrong"

    return judge


@pytest.mark.slow
def test_eval_prints_scores_given_knowledge_beside_those_of_all_rows(
    text_release: Path, tmp_path: Path, cli: Callable[..., Any]
) -> None:
    (tmp_path / "informed.py").write_text(Path(__file__).read_text())
    made = cli(
        *("eval", "--suite", "t2i_correctness", "--data", text_release, "--limit", 40),
        *("--generator", "python:informed:PartlyInformed", "--judge", "python:informed:green"),
        *("--seeds", 3, "--unchecked", "--explain", "--out", tmp_path / "run"),
        cwd=tmp_path,
    )
    assert made.returncode == 0, made.stderr
    assert all(name in made.stdout for name in NAMES)
    (result,) = json.loads((tmp_path / "run" / "scores.json").read_text())
    scores = {s["name"]: s for s in result["scores"] if s["group"] == "all"}
    for name, truth in zip(NAMES, TRUTH, strict=False):
        low, high = scores[name]["interval"]
        assert low <= truth <= high, name
    assert scores["accuracy_reverse"]["value"] < 50 < scores["accuracy_reverse_known"]["value"]
    # Rows whose scene can't be asked for without naming both are counted.
    asked = scores["accuracy_reverse_known"]["excluded"]["not_asked_without_order"]
    assert 0 < asked < 240 and scores["delta_known"]["n"] + asked == 240
