"""Human audit: what is drawn, what labels say, and what a calibration on them is worth."""

import json
import random
import re
import subprocess
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from refusals import assert_refused, raises

from counterprior.eval.core import Question
from counterprior.eval.geometry.boxes import Size
from counterprior.eval.geometry.checker.recorded import CheckerSample, read_samples
from counterprior.eval.geometry.checker.rules import CheckerRules
from counterprior.eval.judges.checker.analyze import analyze, human_verdicts
from counterprior.eval.judges.human import HumanJudge
from counterprior.eval.people.checker_audit import analyze_files, draw, read_candidates, sample
from counterprior.eval.people.checker_settings import (
    GRID,
    Decision,
    GridSetting,
    calibrate,
    objective,
)
from counterprior.eval.people.clicks import merge
from counterprior.eval.results.agree import human_scores
from counterprior.human_labels import Label, read_labels
from counterprior.parsing import RowError

Run = Callable[..., subprocess.CompletedProcess[str]]
VERDICTS = ("PASS", "FAIL", "UNDECIDABLE")


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def verdicts(n: int, seed: int = 0) -> list[dict[str, Any]]:
    rng = random.Random(seed)
    return [
        {
            "sample_id": f"{seed}-{i:03}",
            "prompt_id": f"p{i // 4}",
            "relation": rng.choice(["left_of", "above"]),
            "object_a": "cat",
            "object_b": "dog",
            "verdict_raw": rng.choices(VERDICTS, (1, 2, 7))[0],
            "conf": rng.random(),
        }
        for i in range(n)
    ]


def test_a_draw_fills_strata_alike_bins_in_turn_and_repeats(tmp_path: Path) -> None:
    one = write(tmp_path / "a.jsonl", verdicts(300))
    two = write(tmp_path / "b.jsonl", verdicts(200, seed=1))
    candidates = read_candidates([f"gligen={one}", f"plain={two}"])
    drawn = draw(candidates, 60)
    assert drawn == draw(candidates[::-1], 60) and drawn != draw(candidates, 60, seed=1)
    strata = Counter(candidate.stratum for candidate, _ in drawn)
    assert len(strata) == 12 and set(strata.values()) == {5}
    sizes = Counter(candidate.stratum for candidate in candidates)
    for stratum, count in strata.items():
        mine = [candidate for candidate, _ in drawn if candidate.stratum == stratum]
        bins = {c.bin for c in candidates if c.stratum == stratum}
        assert len({c.bin for c in mine}) == min(len(bins), count)
    assert sum(weight for _, weight in drawn) == pytest.approx(500)
    assert drawn[0][1] == sizes[drawn[0][0].stratum] / 5
    assert len({c.sample_id for c, _ in draw(candidates, 500)}) == 500
    assert len(draw(candidates, 7)) == 7
    with raises("too-few-items", "501", "500"):
        draw(candidates, 501)


def test_a_small_stratum_gives_its_share_to_the_others(tmp_path: Path) -> None:
    rows = verdicts(100)
    for i, row in enumerate(rows):
        row |= {"relation": "above", "verdict_raw": "PASS" if i < 3 else "FAIL"}
    candidates = read_candidates([str(write(tmp_path / "a.jsonl", rows))])
    strata = Counter(candidate.stratum[2] for candidate, _ in draw(candidates, 20))
    assert strata == {"PASS": 3, "FAIL": 17}


def test_a_draw_with_a_manifest_names_images_and_prompts(tmp_path: Path) -> None:
    file = write(tmp_path / "a.jsonl", verdicts(3))
    known = [
        {"sample_id": f"0-00{i}", "image_path": f"images/{i}.png", "prompt": f"p {i}"}
        for i in range(3)
    ]
    manifest = write(tmp_path / "m.jsonl", known)
    rows = sample([f"x={file}"], 3, manifests=[manifest])
    assert {row["image"] for row in rows} == {str(tmp_path / f"images/{i}.png") for i in range(3)}
    manifest = write(tmp_path / "m.jsonl", known[:2])
    with raises("unknown-reference", "lists 1", "0-002", error=RowError):
        sample([f"x={file}"], 3, manifests=[manifest])
    with raises("duplicate-id", "0-000", error=RowError):
        read_candidates([f"x={file}", f"y={file}"])


# SpatialBench-UC, calibrated and uncalibrated, 200 labels: rows checker, columns human.
PUBLISHED = [
    ([[51, 1, 7], [2, 17, 13], [30, 4, 75]], 0.5259, 3 / 71, 0.2527, 0.455),
    ([[55, 2, 21], [2, 17, 22], [26, 3, 52]], 0.3903, 4 / 76, 0.3950, 0.595),
]


@pytest.mark.parametrize(("matrix", "kappa", "risk", "counted", "coverage"), PUBLISHED)
def test_published_confusions(
    matrix: list[list[int]], kappa: float, risk: float, counted: float, coverage: float
) -> None:
    rows, labels = [], []
    for says, line in zip(VERDICTS, matrix, strict=True):
        for human, count in zip(VERDICTS, line, strict=True):
            for _ in range(count):
                name = f"s{len(rows)}"
                rows.append({"sample_id": name, "verdict_raw": says, "conf": 0.5})
                labels.append(Label(name, human))
    found = analyze([*rows, {"sample_id": "u", "verdict_raw": "PASS", "conf": 1}], labels)
    assert found["labeled"] == 200
    assert found["confusion"]["counts"] == matrix
    assert found["kappa"]["value"] == pytest.approx(kappa, abs=5e-5)
    excluded = found["risk"]["human_undecidable_excluded"]
    assert excluded["risk"] == pytest.approx(risk) and excluded["coverage"] == coverage
    assert found["risk"]["human_undecidable_counted"]["risk"] == pytest.approx(counted, abs=5e-5)
    assert found["decided_by_both"]["n"] == sum(matrix[0][:2]) + sum(matrix[1][:2])


def test_risk_and_coverage_by_hand() -> None:
    said = [
        ("a", "PASS", 0.9, "PASS"),
        ("b", "FAIL", 0.8, "UNDECIDABLE"),
        ("c", "PASS", 0.7, "FAIL"),
        ("d", "UNDECIDABLE", 1.0, "PASS"),
    ]
    rows = [{"sample_id": n, "verdict_raw": v, "conf": c} for n, v, c, _ in said]
    labels = [Label(name, human) for name, _, _, human in said]
    curves = analyze(rows, labels)["risk_coverage"]
    points = [tuple(p.values()) for p in curves["human_undecidable_excluded"]["points"]]
    assert points == [(0.9, 0.25, 0.0), (0.8, 0.5, 0.0), (0.7, 0.75, 0.5)]
    points = [tuple(p.values()) for p in curves["human_undecidable_counted"]["points"]]
    assert points == [(0.9, 0.25, 0.0), (0.8, 0.5, 0.5), (0.7, 0.75, pytest.approx(2 / 3))]
    empty = analyze([], [])
    assert empty["kappa"]["value"] is None and empty["risk_coverage"][
        "human_undecidable_excluded"
    ] == {"area": None, "points": []}
    assert "NaN" not in json.dumps(empty)


def test_weights_turn_the_audit_into_the_run() -> None:
    # 10 of 10 passes and 10 of 90 abstentions were drawn; people find 2 wrong passes.
    rows = [{"sample_id": f"p{i}", "verdict_raw": "PASS", "conf": 0.9} for i in range(10)]
    rows += [{"sample_id": f"u{i}", "verdict_raw": "UNDECIDABLE", "conf": 0.0} for i in range(10)]
    labels = [Label(f"p{i}", "PASS" if i > 1 else "FAIL") for i in range(10)]
    labels += [Label(f"u{i}", "PASS" if i < 5 else "UNDECIDABLE") for i in range(10)]
    weights = {f"p{i}": 1.0 for i in range(10)} | {f"u{i}": 9.0 for i in range(10)}
    found = analyze(rows, labels, weights)
    assert found["risk"]["human_undecidable_excluded"]["coverage"] == 0.5
    assert found["run"]["coverage"]["value"] == pytest.approx(0.1)
    assert found["run"]["human_pass"]["value"] == pytest.approx((8 + 45) / 100)
    assert found["run"]["risk"]["value"] == pytest.approx(0.2)
    low, high = found["run"]["human_pass"]["interval"]
    assert 0.2 < low < 0.53 < high < 0.85
    nothing = analyze(rows[10:], labels[10:], weights)["run"]
    assert nothing["risk"] == {"value": None, "interval": None}


def test_labels_of_several_people_are_merged(tmp_path: Path) -> None:
    files = [
        write(tmp_path / f"{who}.jsonl", [{"sample_id": s, "label": v} for s, v in said.items()])
        for who, said in {
            "ann": {"a": "PASS", "b": "FAIL", "c": "PASS"},
            "bo": {"a": "PASS", "b": "PASS"},
            "cy": {"a": "FAIL", "b": "FAIL", "c": "PASS"},
        }.items()
    ]
    found = merge(files, "verdict", tmp_path / "m.jsonl")
    decided = {label.case: label.label for label in read_labels(tmp_path / "m.jsonl")}
    assert decided == {"a": "PASS", "b": "FAIL", "c": "PASS"}
    merge(files[::2], "verdict", tmp_path / "m.jsonl")
    decided = {label.case: label.label for label in read_labels(tmp_path / "m.jsonl")}
    assert decided == {"a": "UNDECIDABLE", "b": "FAIL", "c": "PASS"}
    assert found["labels"] == {"ann": 3, "bo": 2, "cy": 3} and len(found["pairs"]) == 3
    assert found["pairs"][1] | {"interval": 0} == {
        "first": "ann",
        "second": "cy",
        "n": 3,
        "kappa": pytest.approx(0.4),
        "interval": 0,
        "agreement": pytest.approx(2 / 3),
        "warning": "fewer than 20 items for each label: 95 % intervals of kappa held the truth in "
        "90 %",
    }
    with raises("duplicate-id", "ann", error=RowError):
        merge([files[0], files[0]], "verdict", tmp_path / "m.jsonl")


def test_people_vote_on_an_image_and_not_on_a_case(tmp_path: Path) -> None:
    """Two runs of one suite have the same cases, each with an image of its own."""
    a, b = "a" * 64, "b" * 64
    said = {"ann": {a: "yes", b: "no"}, "bo": {a: "yes", b: "no"}, "cy": {a: "yes", b: "yes"}}
    files = [
        write(
            tmp_path / f"{who}.jsonl",
            [{"case": "c", "question": "q", "image": i, "label": v} for i, v in given.items()],
        )
        for who, given in said.items()
    ]
    found = merge(files, "judge", tmp_path / "m.jsonl")
    merged = {(label.image, label.label) for label in read_labels(tmp_path / "m.jsonl")}
    assert merged == {(a, "yes"), (b, "no")} and found["labels"] == dict.fromkeys(said, 2)
    assert merge(files[::2], "judge", tmp_path / "m.jsonl")["split"] == [f"c/q/{b}"]
    judge = HumanJudge(tmp_path / "m.jsonl")  # written last: of `a` alone
    asked = Question("c", "q", "original", "choice", (), ("yes", "no"), "", {}, (), digest=a)
    assert judge.verdict(asked).label == "yes"
    assert judge.verdict(replace(asked, digest=b)).label == "missing"
    with raises("conflicting-labels", "c", error=RowError):
        human_verdicts([Label("c", "PASS", image=i) for i in (a, b)], {"c"})
    with raises("conflicting-labels", "c", error=RowError):
        human_scores([Label("c", "PASS", image=i) for i in (a, b)])
    bare = write(tmp_path / "di.jsonl", [{"case": "c", "question": "q", "label": "yes"}])
    with raises("conflicting-labels", ":1: image", "di.jsonl:1", "image: 'c'", error=RowError):
        merge([*files, bare], "judge", tmp_path / "m.jsonl")


def test_the_objective_as_published() -> None:
    kept = [Decision("PASS", True, human) for human in ("PASS", "FAIL", "UNDECIDABLE", "PASS")]
    dropped = [Decision("PASS", False, "FAIL"), Decision("UNDECIDABLE", True, "PASS")]
    found = objective(kept + dropped)
    assert (found.false_pass, found.risk) == (0.25, pytest.approx(1 / 3))
    assert found.coverage == pytest.approx(4 / 6)
    assert found.j == pytest.approx(10 / 4 + 2 / 3 + 0.5 / 3)
    nothing = objective(dropped)
    assert (nothing.false_pass, nothing.risk, nothing.coverage, nothing.j) == (1, 0, 0, 10.5)
    # The published optimum: 72 of 200 kept, one of 66 decided ones wrong, no false pass.
    said = ["PASS"] * 50 + ["FAIL"] * 22
    human = ["PASS"] * 51 + ["FAIL"] * 15 + ["UNDECIDABLE"] * 6
    optimum = [Decision(v, True, h) for v, h in zip(said, human, strict=True)]
    optimum += [Decision("PASS", False, "FAIL")] * 128
    assert objective(optimum).j == pytest.approx(0.3503, abs=5e-5)
    with raises("nothing-to-do"):
        objective([])


def synthetic(n: int, seed: int) -> tuple[list[tuple[CheckerSample, Size]], dict[str, str]]:
    """Images whose truth is the sign of an offset that people see below a distance of 0.06."""
    rng = random.Random(seed)
    samples, human = [], {}
    for i in range(n):
        delta = rng.uniform(-0.3, 0.3)
        x = 256 + delta * 512
        boxes = [x - 50, 200, x + 50, 300], [206, 200, 306, 300]
        found = [
            {"label": label, "score": rng.uniform(0.5, 1), "box_xyxy": box}
            for label, box in zip(("cat", "dog"), boxes, strict=True)
        ]
        row = {
            "sample_id": f"s{i}",
            "prompt_id": f"p{i // 2}",
            "relation": "above",
            "object_a": "cat",
            "object_b": "dog",
            "verdict_raw": "PASS",
            "conf_components": {"stability": 0.9},
            "detectors": {"primary": {"detections": found}},
        }
        row["relation"] = "left_of"
        samples.append((CheckerSample.model_validate(row), Size(512, 512)))
        noise = rng.random() < 0.1
        true = "UNDECIDABLE" if abs(delta) < 0.06 else "PASS" if (delta < 0) != noise else "FAIL"
        human[f"s{i}"] = true
    return samples, human


def test_calibration_tells_what_it_is_worth_elsewhere() -> None:
    samples, human = synthetic(60, seed=4)
    found = calibrate(samples, human, CheckerRules(), repeats=5)
    assert found["labeled"] == 60 and len(found["grid"]) == len(GRID) == 36
    best = min(found["grid"], key=lambda point: point["j"])
    assert {name: best[name] for name in found["chosen"]} == found["chosen"]
    assert found["in_sample"]["j"] == best["j"]
    assert found["optimism"] == found["cross_validated"]["j"] - best["j"]
    assert found["optimism"] > 0
    assert sum(one["share"] for one in found["chosen_in_folds"]) == pytest.approx(1)
    assert found == calibrate(
        samples[::-1], dict(reversed(human.items())), CheckerRules(), repeats=5
    )


def test_held_out_prompts_play_no_part_in_the_choice() -> None:
    # Two settings; the label of prompt p decides for p alone which of them looks better.
    samples, human = synthetic(40, seed=1)
    grid = [GridSetting(0.05, 0.2, 0.3), GridSetting(0.05, 0.2, 1.0)]
    found = calibrate(samples, human, CheckerRules(), grid=grid, folds=20, repeats=1)
    # tau 1 keeps nothing (J 10.5): no fold chooses it, so that in and out of sample are the same.
    assert found["chosen"]["tau"] == 0.3 and found["optimism"] == pytest.approx(0)
    assert any("tau = 0.3 is the smallest of the grid" in text for text in found["warnings"])
    with raises("out-of-range", "30", "20"):
        calibrate(samples, human, CheckerRules(), folds=30)


def test_what_the_detections_cannot_tell_is_a_warning() -> None:
    samples, human = synthetic(20, seed=2)
    found = calibrate(samples, human, CheckerRules(), repeats=1)
    assert any("detection_score decides nothing in [0.2, 0.3, 0.4]" in w for w in found["warnings"])
    near = {"verdict_raw": "UNDECIDABLE", "verdict_reason": "near_boundary (…)"}
    bare = [(sample.model_copy(update=near), size) for sample, size in samples]
    found = calibrate(bare, human, CheckerRules(), repeats=1)
    assert any("had no recorded stability" in text for text in found["warnings"])


def test_the_published_run_from_the_command_line(
    shared_data: Path, tmp_path: Path, cli: Run
) -> None:
    run = shared_data / "spatialbench_uc" / "sd15_promptonly"
    evaluation = run / "eval_precal_20260116_113552"
    rules, labels = evaluation / "checker_config.yaml", run / "human_labels.csv"
    recorded, out = evaluation / "per_sample.jsonl", tmp_path / "grid.json"
    options = ("--labels", labels, "--rules", rules, "--out", out, "--json")
    done = cli("audit", "calibrate", recorded, *options)
    assert done.returncode == 0, done.stderr
    found = json.loads(out.read_text())
    assert found["labeled"] == 66 == len(read_labels(labels))
    assert found["optimism"] > 0.3  # J on prompts it was not chosen on is several times as large
    assert [w.split(" = ")[0] for w in found["warnings"]][:2] == ["detection_score", "tau"]
    known = {sample.sample_id for sample, _ in read_samples(recorded, Size(512, 512))}
    assert {label.case for label in read_labels(labels)} <= known
    sample = tmp_path / "sample.jsonl"
    drawn = cli("audit", "sample", f"plain={recorded}", "--n", 40, "--out", sample)
    assert drawn.stdout.startswith("40 images"), drawn.stderr
    analyzed = cli("audit", "analyze", f"plain={recorded}", "--labels", labels, "--json")
    assert json.loads(analyzed.stdout)["labeled"] == 66
    shown = cli("audit", "analyze", f"plain={recorded}", "--labels", labels).stdout
    for text in ("checker (rows) and people, 66 images", "kappa 0.", "UNDECIDABLE"):
        assert text in shown
    outside = cli("audit", "analyze", f"plain={recorded}", "--labels", labels, "--sample", sample)
    assert_refused(outside, "unknown-reference", labels, " case:")


def test_labels_of_other_runs_are_left_out_by_name(tmp_path: Path, cli: Run) -> None:
    rows = [
        {
            **{key: row[key] for key in ("sample_id", "prompt_id", "object_a", "object_b")},
            "relation": "left_of",
            "detectors": {"primary": {"detections": []}},
        }
        for row in verdicts(12)
    ]
    detections = write(tmp_path / "d.jsonl", rows)
    said = [{"sample_id": row["sample_id"], "label": "UNDECIDABLE"} for row in rows]
    labels = write(tmp_path / "l.jsonl", [*said, {"sample_id": "gligen_7", "label": "PASS"}])
    (tmp_path / "checker.yaml").write_text("geometry: {margin: 0.1}\n")
    options = ("--labels", labels, "--folds", 2, "--rules", tmp_path / "checker.yaml")
    done = cli("audit", "calibrate", detections, *options, "--json")
    found = json.loads(done.stdout)
    assert found["labeled"] == 12 and found["left_out"] == ["gligen_7"]
    shown = cli("audit", "calibrate", detections, *options).stdout
    assert re.search(r"left_out +gligen_7", shown)
    write(labels, [{"sample_id": "gligen_7", "label": "PASS"}])
    none = cli("audit", "calibrate", detections, *options)
    assert_refused(none, "nothing-to-do", "labeled image")


def test_a_published_sample_without_weights_is_read(tmp_path: Path) -> None:
    rows = verdicts(20)
    file = write(tmp_path / "v.jsonl", rows)
    labels = write(
        tmp_path / "l.jsonl", [{"sample_id": r["sample_id"], "label": "PASS"} for r in rows[:5]]
    )
    (tmp_path / "s.csv").write_text(
        "sample_id,method\n" + "".join(f"{r['sample_id']},x\n" for r in rows[:5])
    )
    found = analyze_files([f"x={file}"], labels, None, tmp_path / "s.csv")
    assert found["labeled"] == 5 and "run" not in found
    drawn = [{"sample_id": r["sample_id"], "weight": 2.0} for r in rows[:5]]
    sample = write(tmp_path / "s.jsonl", drawn)
    assert "run" in analyze_files([f"x={file}"], labels, None, sample)
    write(sample, [*drawn[:3], *({"sample_id": r["sample_id"]} for r in rows[3:5])])
    with raises("missing-field", "weight: 2", error=RowError):
        analyze_files([f"x={file}"], labels, None, sample)
    write(sample, drawn[:4])
    with raises("unknown-reference", "0-004", "e.g", error=RowError):
        analyze_files([f"x={file}"], labels, None, sample)


def test_the_kappa_of_annotators_is_printed(tmp_path: Path, cli: Run) -> None:
    file = write(tmp_path / "v.jsonl", rows := verdicts(20))
    said = [
        {"sample_id": r["sample_id"], "label": VERDICTS[(i + (who == "bo")) % 2], "annotator": who}
        for who in ("ann", "bo")
        for i, r in enumerate(rows)
    ]
    labels = write(tmp_path / "l.jsonl", said)
    shown = cli("audit", "analyze", f"x={file}", "--labels", labels).stdout
    assert "kappa of ann and bo: -1.000" in shown and "20 images" in shown
    assert shown.count("  fewer than 20 items for each label") == 2
