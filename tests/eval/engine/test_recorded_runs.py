"""Runs that were recorded, made again: every verdict and score is the same, save what is listed.

`golden/recorded_runs.json` holds the scores of pixels, faulty and scripted judges on six suites, as
the first edition's code gave them, but that `pixels` has since come to see more figures; of the
suites in `FROZEN` on rows that are kept beside them, as their banks are still written. What differs
on purpose is in `CHANGED`, each with its reason; a difference that is not there is a fault.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from releases import small_release

from counterprior.builders.seeds import draw_seeds
from counterprior.eval.api import prompts
from counterprior.eval.core import ALL, Judge, Question, Score, Verdict
from counterprior.eval.engine.costs import Cost
from counterprior.eval.engine.evaluation import RunSettings
from counterprior.eval.engine.steps import JudgeSettings, evaluate_run
from counterprior.eval.judges import as_judge
from counterprior.eval.judges.faulty import FaultyJudge
from counterprior.eval.judges.pixels import PixelJudge
from counterprior.eval.results.scoring import ScoreSettings, score_run
from counterprior.eval.suites.correctness import CELLS
from counterprior.schema import ROWS, SeededRow
from counterprior.specs import Spec

FOLDER = Path(__file__).parents[2] / "golden"
GOLDEN: dict[str, Any] = json.loads((FOLDER / "recorded_runs.json").read_text("utf-8"))
FROZEN = (
    "t2i_correctness",
    "counterfactual",
    "t2i_homogenization",
    "i2i_homogenization",
    "i2i_correctness",
)
"""Suites whose rows are in `recorded_rows.jsonl`."""

RUNS: dict[str, tuple[str, int, tuple[str, ...], tuple[str, ...], int]] = {
    "t2i_homogenization": (
        "render:?order_bias=1.2&preference_sd=0.7&missing=0.08&vertical=0.05",
        14,
        ("pixels", "faulty:pixels?name=0.1&side=0.15&unparsed=0.05&refuse=0.03", "scripted"),
        ("mirror", "swap"),
        1,
    ),
    "i2i_homogenization": (
        "render:?order_bias=1",
        10,
        ("pixels", "faulty:pixels?side=0.2&swap=0.1"),
        ("mirror",),
        1,
    ),
    "i2i_correctness": (
        "render:?binding_bias=0.4",
        10,
        ("pixels", "faulty:pixels?name=0.2&unparsed=0.1"),
        ("swap",),
        1,
    ),
    "t2i_correctness": ("folder", 40, ("scripted",), ("mirror", "swap"), 1),
    "counterfactual": ("folder", 30, ("scripted",), (), 1),
    "spatial_uc": (
        "render:?grounding=0.7&missing=0.1",
        10,
        ("pixels", "scripted"),
        ("mirror",),
        2,
    ),
}
"""Suite -> generator, limit, judges, controls, seeds."""

SCRIPT = [
    ("dog", "It is hard to say."),
    ("1: yes water", "2"),
    ("1: yes", "1"),
    ("2: yes light", "1"),
    ("2: yes", "2"),
    ("cat", "<think>3?</think>2"),
    ("1: A is to the left", "1"),
    ("3: neither", "2"),
    ("", "1"),
]
"""What the scripted judge answers, by texts of the question; two texts stand around a space."""

CHANGED = {
    "order_bias": "new: the size of the order effect, which suites rank by",
    **dict.fromkeys(
        [
            "accuracy_aligned_unconditional",
            "accuracy_reverse_unconditional",
            "compliance_unconditional",
            "compliance_L2_unconditional",
        ],
        "new: an image that doesn't show what is asked for isn't right",
    ),
    "valid": "a failure is no part of a rate, and the interval is over clusters",
    "valid_aligned": "the same",
    "valid_reverse": "the same",
    "delta": "now Ali - Rev; the paired difference of old is delta_paired",
    "signed_index_probes_averaged": "new: over the full 2 x 2",
    **dict.fromkeys(["signed_index_disattenuated", "order_log_odds"], "new"),
    **dict.fromkeys(
        ["seed_agreement", "order_effect_spread", "entity_effect_spread", "signed_index_spread"],
        "new, for several seeds",
    ),
    "signed_index_mirror_averaged": "excluded has another name; bounds are shown; the judge finds "
    "figures with effects in mirrored images, too",
    "signed_index_swap_averaged": "the same",
    **dict.fromkeys(
        ["accuracy_aligned_known", "accuracy_reverse_known", "delta_known"],
        "new, for several seeds",
    ),
    **dict.fromkeys(CELLS, "new: the cells of delta_paired"),
    "gate_passed": "groups without an L1 score are excluded",
    **dict.fromkeys(
        ["score_L1", "score_L2", "score_L3", "prr", "rrr"],
        "a group without an answer at one level leaves at all",
    ),
    **dict.fromkeys(
        [
            "decided",
            "best_of_k",
            "all_of_k",
            "pairs_both_pass",
            "pairs_both_fail",
            "pairs_one_sided",
            "pairs_undecidable",
        ],
        "new in spatial_uc",
    ),
}
FIELDS = ("value", "interval", "n", "excluded", "null", "p_value")


class _Remembering:
    """Looks at each question once for all judges that stand on it."""

    def __init__(self, inner: Judge) -> None:
        self.inner = inner
        self.seen: dict[str, Verdict] = {}

    def identity(self) -> dict[str, str]:
        return self.inner.identity()

    def judge(self, questions: Iterable[Question]) -> Iterator[tuple[Question, Verdict]]:
        for question in questions:
            if question.id not in self.seen:
                ((_, self.seen[question.id]),) = self.inner.judge([question])
            yield question, self.seen[question.id]


def _judges(names: Iterable[str], script: Path) -> list[Judge | str]:
    pixels = _Remembering(PixelJudge())
    found: list[Judge | str] = []
    for name in names:
        if name == "pixels":
            found.append(pixels)
        elif name == "scripted":
            found.append(f"scripted:{script}")
        else:
            faulty = as_judge(name)
            assert isinstance(faulty, FaultyJudge)
            found.append(FaultyJudge(pixels, faulty.faults))
    return found


def _folder(root: Path, suite: str, data: str, limit: int) -> str:
    """Images of one color, some missing and some broken, as they were recorded."""
    root.mkdir()
    for number, case in enumerate(prompts(suite, data=data, limit=limit)):
        if number % 11 == 5:
            continue
        path = root / case.file
        if number % 17 == 3:
            path.write_bytes(b"no picture")
            continue
        rng = random.Random(path.stem)
        color = (rng.randrange(256), rng.randrange(256), rng.randrange(256))
        Image.new("RGB", (64, 48), color).save(path)
    return f"folder:{root}?name=recorded"


def _close(one: Any, other: Any) -> bool:
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(_close, one, other))
    if isinstance(one, float) and isinstance(other, (int, float)):
        return math.isclose(one, other, abs_tol=1e-7)
    return bool(one == other)


def _frozen(suite: str, out: Path) -> Path:
    lines = (FOLDER / "recorded_rows.jsonl").read_text("utf-8").splitlines()
    records = [record for record in map(json.loads, lines) if record["suite"] == suite]
    rows: list[Any] = [ROWS[suite].model_validate(record) for record in records]
    if isinstance(rows[0], SeededRow):
        rows = draw_seeds(rows, "render:", lambda _: None)
    return small_release(out, [suite], lambda _: rows, seed_images="none")


SLOW = {
    # Its scores are those of `t2i_correctness`, and it edits as `i2i_homogenization` does.
    "i2i_correctness": pytest.mark.lane,
    "t2i_homogenization": pytest.mark.slow,
    "i2i_homogenization": pytest.mark.slow,
    "t2i_correctness": pytest.mark.slow,
    "spatial_uc": pytest.mark.slow,
}


@pytest.mark.parametrize(
    "suite",
    [pytest.param(s, marks=SLOW.get(s, ())) for s in RUNS],
)
def test_scores_of_recorded_runs_are_unchanged(
    suite: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    frozen = suite in FROZEN
    data = _frozen(suite, tmp_path / "data") if frozen else request.getfixturevalue("full_release")
    generator, limit, judges, controls, seeds = RUNS[suite]
    script = tmp_path / "answers.json"
    rules = [
        {"role": "judge", "contains": _texts(texts), "answer": answer} for texts, answer in SCRIPT
    ]
    script.write_text(json.dumps(rules))
    if generator == "folder":
        generator = _folder(tmp_path / "images", suite, str(data), limit)
    run = RunSettings(suite, str(data), tmp_path / "run", seeds=seeds, limit=limit)
    settings = JudgeSettings(controls=controls)
    evaluate_run(run, generator, _judges(judges, script), settings, Cost())
    found = score_run(run.out, ScoreSettings())
    assert {Spec.parse(name).kind for name in judges} == {j.log.identity["kind"] for j in found}
    for judged in found:
        recorded = GOLDEN[suite][judged.log.identity["kind"]]
        scores = {s.name: s for s in judged.result.scores if s.group == ALL}
        assert judged.result.cases == recorded["cases"]
        _compare(suite, scores, recorded["scores"])
        _check_changes(scores, recorded["scores"])


def _texts(texts: str) -> list[str]:
    return {"1: yes water": ["1: yes", "water"], "2: yes light": ["2: yes", "light"]}.get(
        texts, [texts] if texts else []
    )


def _compare(suite: str, scores: dict[str, Score], recorded: dict[str, Any]) -> None:
    assert set(scores) - set(recorded) <= {*CHANGED, "delta_paired"}
    assert set(recorded) <= set(scores)
    for name in set(recorded) - set(CHANGED):
        now = scores[name].to_json()
        for field in FIELDS:
            if field == "interval" and now["value"] is not None:
                # By effective clusters now, and by both members of a pair, not by resampling.
                assert now["interval"][0] <= now["value"] <= now["interval"][1], (suite, name)
                continue
            if name == "hom" and field in ("null", "p_value"):
                continue  # by flipping the signs of pairs; images counted as independent
            if field == "null" and name in ("accuracy_aligned", "accuracy_reverse"):
                assert now["null"] == 50  # had none
                continue
            assert _close(now[field], recorded[name][field]), (suite, name, field)


def _check_changes(scores: dict[str, Score], recorded: dict[str, Any]) -> None:
    """What changed on purpose still stands on the same verdicts."""
    if "delta" in recorded:
        paired = scores["delta_paired"].to_json()
        for field in ("value", "n", "excluded", "p_value"):
            assert _close(paired[field], recorded["delta"][field]), field
        ali, rev = scores["accuracy_aligned"].value, scores["accuracy_reverse"].value
        assert scores["delta"].value == pytest.approx(ali - rev)
    for name in ("signed_index_mirror_averaged", "signed_index_swap_averaged"):
        if name in recorded:
            assert scores[name].value == pytest.approx(recorded[name]["value"])
            assert scores[name].n == recorded[name]["n"]
    for name in ("score_L1", "score_L2", "score_L3"):
        if name in recorded:
            assert scores[name].n <= recorded[name]["n"]
            assert "group_incomplete" in scores[name].excluded
    for name in ("valid", "valid_aligned", "valid_reverse"):
        if name in recorded:
            failed = sum(scores[name].excluded.values())
            valid = round(scores[name].value * scores[name].n / 100)
            assert scores[name].n + failed == recorded[name]["n"]
            assert valid == round(recorded[name]["value"] * recorded[name]["n"] / 100)
