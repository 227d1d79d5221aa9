"""Judges by rule: from the command line, against the pure functions, and by hand."""

import json
import os
import pickle
import subprocess
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from refusals import assert_refused, raises

from counterprior.eval.core import Case, Question
from counterprior.eval.detectors import Detection, Detector, DetectorError, Request
from counterprior.eval.detectors.pixels import PixelDetector
from counterprior.eval.detectors.rle import RleError, decode, encode
from counterprior.eval.engine.asking import Asking, AskJudge
from counterprior.eval.engine.evaluation import Evaluation, RunSettings, outcomes
from counterprior.eval.engine.run import Run
from counterprior.eval.engine.steps import generate, judge_run
from counterprior.eval.geometry.boxes import Box
from counterprior.eval.geometry.metrics import METRICS
from counterprior.eval.geometry.pse import pse
from counterprior.eval.judges import CallPlan, open_judge
from counterprior.eval.judges.by_rule import MetricJudge, RuleJudge
from counterprior.eval.judges.checker.judge import CheckerJudge
from counterprior.eval.questions.asking import Stated, ask_stated
from counterprior.eval.results.scoring import ScoreSettings, score_run
from counterprior.scenes.scene import Scene

Cli = Callable[..., subprocess.CompletedProcess[str]]
RULES = (*(name for name, m in METRICS.items() if "above" in m.relations), "checker")
"""The rules of relations in the plane, as the suite states them."""
HALF_HOLDS = {"checker", "compbench", "geneval", "hrs", "pse", "visor"}
"""Rules whose number is above one half exactly if the relation holds."""


# A run of rendered images.


@pytest.fixture(scope="module")
def run(text_release: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Explicit relations of which the renderer obeys some; read only but for verdicts."""
    out = tmp_path_factory.mktemp("rules") / "run"
    settings = RunSettings("spatial_uc", str(text_release), out, limit=24, seeds=2)
    return generate(settings, "render:?grounding=0.2").run


def truths(run: Run) -> dict[str, str]:
    """Case -> what the renderer says that it drew."""
    found = {}
    with Evaluation.open(run.root) as evaluation:
        for case in evaluation.cases:
            made = run.images()[case.id]
            if made.status == "made":
                with Image.open(run.image_path(made)) as image:
                    scene = Scene.of(image)
                row = evaluation.rows[case.row]
                found[case.id] = evaluation.suite.truth(row, case, scene)["order"]
    return found


def both_drawn(run: Run) -> dict[str, str]:
    """The same of the images whose two things the atlas knows."""
    return {case: label for case, label in truths(run).items() if label != "invalid"}


@pytest.fixture(scope="module")
def judged(run: Run) -> dict[str, Any]:
    """Kind -> outcomes of every rule on the same detections, and how often was looked."""
    looked: Counter[str] = Counter()
    detect = PixelDetector.detect
    steady = run.root.parent / "checker.yaml"  # perturbations take the time
    steady.write_text("stability: {enabled: false}\n")

    def counting(self: Any, requests: Sequence[Request]) -> Any:
        done = detect(self, requests)
        looked[kind] += len(requests)
        return done

    found = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PixelDetector, "detect", counting)
        for kind in ("pse", *(kind for kind in RULES if kind != "pse")):
            options = f"?rule.rules={steady}" if kind == "checker" else ""
            ((log, _),) = judge_run(run.root, [f"{kind}:pixels{options}"]).judged
            found[kind] = outcomes(run, log)
    return {"outcomes": found, "looked": looked}


def test_every_rule_recovers_drawn_relations(run: Run, judged: dict[str, Any]) -> None:
    true = both_drawn(run)
    assert Counter(true.values())["holds"] > 5 < Counter(true.values())["opposite"]
    for kind, found in judged["outcomes"].items():
        answers = {o.case.id: o.verdict("order") for o in found if o.image == "made"}
        # What the atlas doesn't know can't be looked for: a failure, not a missing thing.
        strange = {case for case, verdict in answers.items() if verdict.label == "error"}
        assert strange == truths(run).keys() - true.keys()
        said = {case: answers[case] for case in true}
        missing = {case for case, v in said.items() if json.loads(v.raw).get("why") == "missing"}
        if kind == "checker":
            missing = {case for case, v in said.items() if "UNDECIDABLE" in v.raw}
        assert len(missing) <= 0.1 * len(true), kind
        wrong = [c for c in true if c not in missing and said[c].label != true[c]]
        assert not wrong, (kind, wrong)
        for case, verdict in said.items():
            assert verdict.number is not None and 0 <= verdict.number <= 1
            if kind in HALF_HOLDS:
                assert (verdict.number > 0.5) == (verdict.label == "holds"), (kind, case, verdict)


def test_all_rules_share_one_detection_of_an_image(run: Run, judged: dict[str, Any]) -> None:
    assert judged["looked"] == {"pse": len(both_drawn(run))}
    files = sorted((run.root / "detections").rglob("*.json"))
    assert len(files) == len(both_drawn(run))
    rows = json.loads(files[0].read_text())
    assert all(decode(row["mask"]).any() for row in rows)


@pytest.mark.slow
def test_detects_again_after_a_kill(
    run: Run, judged: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[int] = []
    detect = PixelDetector.detect

    def counting(self: Any, requests: Sequence[Request]) -> Any:
        done = detect(self, requests)
        looked.append(len(requests))
        return done

    monkeypatch.setattr(PixelDetector, "detect", counting)
    ((log, _),) = judge_run(run.root, ["visor:pixels"]).judged
    before = [outcome.verdicts for outcome in outcomes(run, log)]
    recorded = (log.root / "verdicts.jsonl").read_bytes()
    (log.root / "verdicts.jsonl").write_bytes(recorded[: len(recorded) // 2])
    # One file torn, one never written; all others count.
    torn, gone, *_ = sorted(
        path for path in (run.root / "detections").rglob("*.json") if json.loads(path.read_text())
    )[:2]
    kept = {path: path.read_bytes() for path in (torn, gone)}
    torn.write_bytes(kept[torn][: len(kept[torn]) // 2])
    gone.unlink()
    judge_run(run.root, ["visor:pixels", "hrs:pixels?rule.convention=authors"])
    assert sum(looked) == 2
    assert {path: path.read_bytes() for path in kept} == kept
    again = Run.open(run.root)
    (log,) = again.chosen_judges(["visor"])
    assert [outcome.verdicts for outcome in outcomes(again, log)] == before


def test_scores_labels_and_corrections_work_as_with_a_model(
    run: Run, judged: dict[str, Any], tmp_path: Path
) -> None:
    true = both_drawn(run)
    labels = tmp_path / "labels.csv"
    lines = [f"{case},order,{label}" for case, label in sorted(true.items())[::2]]
    labels.write_text("case,question,label\n" + "\n".join(lines) + "\n")
    ((pse_run,), (checker_run,)) = (
        score_run(run.root, ScoreSettings(labels=labels, judges=(kind,)))
        for kind in ("pse", "checker")
    )
    whole = pse_run.whole
    share = 100 * Counter(true.values())["holds"] / len(true)
    assert whole["accuracy"].value == pytest.approx(share, abs=8)
    assert share in whole["accuracy_corrected"].interval
    assert pse_run.result.card.agreement["order"].kappa.value > 0.8
    assert whole["measure"].value == pytest.approx(whole["accuracy_unconditional"].value, abs=8)
    assert whole["measure"].n == whole["decided"].n == len(true)
    assert {"best_of_k", "all_of_k", "pairs_both_pass", "pairs_one_sided"} <= whole.keys()
    assert "visor_1" not in whole  # two seeds are no four
    assert whole["all_of_k"].value <= whole["accuracy_unconditional"].value
    assert whole["best_of_k"].value >= whole["accuracy_unconditional"].value
    drawn = whole["pairs_both_pass"].n
    assert 0 < drawn <= len({o.case.clusters[-1] for o in pse_run.outcomes if o.case.id in true})
    sides = [whole[f"pairs_{n}"].value for n in ("both_pass", "both_fail", "one_sided")]
    assert sum(sides) + whole["pairs_undecidable"].value == pytest.approx(100)
    assert checker_run.whole["decided"].value <= whole["decided"].value


# The command on images that somebody else made.

DETECTOR = """
import numpy as np
from counterprior.eval.detectors import Detection, mask_box

class Colors:
    '''Finds the first query where red leads, and the second where blue does.'''
    def identity(self):
        return {"kind": "colors", "version": "1"}
    def detect(self, requests):
        return [self.one(request) for request in requests]
    def one(self, request):
        red, _, blue = np.moveaxis(np.asarray(request.image).astype(int), 2, 0)
        masks = zip(request.queries, (red > blue + 20, blue > red + 20))
        return [Detection(q, 0.5, mask_box(m), m) for q, m in masks if m.any()]

def detector():
    return Colors()
"""


def test_pse_of_published_images_through_the_command_is_the_pure_function(
    shared_data: Path, tmp_path: Path, cli: Cli
) -> None:
    folder = shared_data / "visor"
    rows = [json.loads(line) for line in (folder / "manifest.jsonl").read_text().splitlines()]
    rows = [row for row in rows if row["seed"] == 0][:40]
    (tmp_path / "colors.py").write_text(DETECTOR)
    (tmp_path / "p.txt").write_text("".join(row["prompt"] + "\n" for row in rows))
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    options: dict[str, Any] = {"cwd": tmp_path, "env": environment}
    from counterprior.eval.suites.relations import PromptFile

    drawn = PromptFile(tmp_path / "p.txt").rows()
    files = {row["prompt"]: folder / row["file"] for row in rows}
    named = {row.id: str(files[row.prompt]) for row in drawn}
    seeds = {row.id: row.seeds[0] for row in drawn}
    lines = [f"{name}-plain-{seeds[name]},{file}" for name, file in named.items()]
    (tmp_path / "m.csv").write_text("case,file\n" + "\n".join(lines) + "\n")
    done = cli(
        "eval",
        *("--prompts", "p.txt", "--generator", f"folder:{folder}?manifest=m.csv"),
        *("--judge", "pse:python:colors:detector", "--out", "run", "--json"),
        **options,
    )
    assert done.returncode == 0, done.stderr
    run = Run.open(tmp_path / "run")
    (log,) = run.judges()
    assert len(drawn) == len(rows) == len(outcomes(run, log))
    expected = []
    for row in drawn:
        pixels = np.asarray(Image.open(named[row.id]).convert("RGB")).astype(int)
        red, blue = pixels[..., 0] > pixels[..., 2] + 20, pixels[..., 2] > pixels[..., 0] + 20
        masks = dict(zip(sorted(row.objects), (red, blue), strict=True))
        first, second = (masks[name] for name in (row.subjects[0], row.references[0]))
        expected.append(float(pse(first, second, row.relations[0])))  # type: ignore[arg-type]
    found = {o.case.row: o.verdict("relation_1").number for o in outcomes(run, log)}
    assert [found[row.id] for row in drawn] == expected
    assert len({round(value, 3) for value in expected}) > 10
    scores = json.loads(done.stdout)[0]["scores"]
    whole = {score["name"]: score["value"] for score in scores if score["group"] == "all"}
    assert whole["measure"] == pytest.approx(100 * np.mean(expected))


def test_refuses_an_unknown_detector_and_a_run_without_rows(
    text_release: Path, tmp_path: Path, cli: Cli
) -> None:
    done = cli(
        *("eval", "--suite", "spatial_uc", "--data", text_release, "--generator", "render:"),
        *("--judge", "pse:nothing", "--out", tmp_path / "run", "--limit", "4"),
    )
    assert_refused(done, "unknown-name", "detector", "'nothing'")
    neither = cli("eval", "--generator", "render:", "--judge", "pixels", "--out", tmp_path / "r")
    assert_refused(neither, "missing-option", "--suite", "--prompts")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "pse:pixels?rule.conventions=paper",
            ("unknown-option", "rule.conventions", "mean rule.convention?"),
        ),
        ("pse:pixels?rule.convention=ours", ("bad-option", "rule.convention", "'ours'")),
        ("pse:pixels?threshold=1", ("unknown-option", "pixels: ", "'threshold'")),
        ("visor:", ("missing-option", "visor:DETECTOR")),
        ("visor:pixels?rule.rules=x.yaml", ("unknown-option", "rule.rules")),
        ("checker:pixels?rule.rules=gone.yaml", ("no-such-file", "gone.yaml")),
        ("pse:pixels?rule.depth=sonar", ("unknown-name", "sonar")),
    ],
)
def test_rejects_bad_specs(text: str, reason: tuple[str, ...]) -> None:
    with raises(*reason):
        open_judge(text)


def test_identity_has_rule_convention_and_detector(tmp_path: Path) -> None:
    identity = open_judge("pse:pixels?rule.convention=authors&rule.depth=ground").identity()
    assert identity["kind"] == "pse" and identity["name"] == "pixels"
    assert identity["convention"] == "authors" and identity["depth_kind"] == "ground"
    assert identity["detector_kind"] == "pixels" and identity["detector_version"]
    (tmp_path / "c.yaml").write_text("geometry: {margin: 0.2}\n")
    checkers = [
        open_judge(f"checker:pixels{options}").identity()
        for options in ("", f"?rule.rules={tmp_path / 'c.yaml'}", "?rule.secondary=pixels")
    ]
    assert len({json.dumps(one, sort_keys=True) for one in checkers}) == 3
    assert checkers[2]["secondary_kind"] == "pixels"


# By hand.


class Given:
    """Finds what it was given, whatever the image shows; refuses unicorns."""

    def __init__(self, **found: Sequence[tuple[float, Sequence[float]]]) -> None:
        self.found = found

    def identity(self) -> dict[str, str]:
        return {"kind": "given"}

    def detect(self, requests: Sequence[Request]) -> list[list[Detection]]:
        if any("unicorn" in request.queries for request in requests):
            raise DetectorError("no class 'unicorn'")
        return [
            [
                Detection(name, score, Box(*box))
                for name in request.queries
                for score, box in self.found.get(name, ())
            ]
            for request in requests
        ]


def asked(relation: str, a: str = "cat", b: str = "dog", **facts: str) -> Question:
    """Does the relation hold? The subject that should come first is named first."""
    axis = {"left_of": "horizontal", "right_of": "horizontal", "above": "vertical"}
    first, second = (b, a) if relation in ("right_of", "below", "behind") else (a, b)
    stated = {"a": a, "relation": relation, "b": b}
    deep = "occlusion" if relation == "hidden_by" else "depth"
    across = axis.get(relation, "vertical" if relation == "below" else deep)
    return Question(
        case="case",
        name="order",
        probe="original",
        task="order",
        subjects=(first, second),
        labels=("holds", "opposite", "invalid"),
        prompt="?",
        answers={},
        images=(Image.new("RGB", (100, 100)),),
        facts={"axis": across, **stated, **facts},
    )


def by_metric(name: str, detector: Detector, *settings: Any, **adapters: Any) -> MetricJudge:
    return MetricJudge(METRICS[name], detector, *settings, **adapters)


def said(judge: RuleJudge, question: Question) -> tuple[str, float | None]:
    ((_, verdict),) = judge.judge([question])
    return verdict.label, verdict.number


LEFT, RIGHT, LOW = (0, 0, 40, 40), (60, 0, 100, 40), (10, 50, 50, 90)


@pytest.mark.parametrize(
    ("metric", "apart", "reverse", "diagonal"),
    [
        ("pse", 1.0, 0.0, 0.4375),
        ("visor", 1.0, 0.0, 1.0),
        ("hrs", 1.0, 0.0, 1.0),
        ("geneval", 1.0, 0.0, 0.0),
        ("compbench", 0.925, 0.0, 0.0),
    ],
)
def test_every_rule_by_hand(metric: str, apart: float, reverse: float, diagonal: float) -> None:
    def on(a: Sequence[float], b: Sequence[float]) -> RuleJudge:
        return by_metric(metric, Given(cat=[(0.9, a)], dog=[(0.8, b)]))

    assert said(on(LEFT, RIGHT), asked("left_of")) == ("holds", pytest.approx(apart))
    assert said(on(RIGHT, LEFT), asked("left_of")) == ("opposite", pytest.approx(reverse))
    assert said(on(RIGHT, LEFT), asked("right_of")) == ("holds", pytest.approx(apart))
    # The same where the judge is told the other one first.
    told = asked("left_of")
    exchanged = {"subjects": told.subjects[::-1], "labels": ("opposite", "holds", "invalid")}
    question = Question(**{**vars(told), **exchanged})
    assert said(on(LEFT, RIGHT), question) == ("holds", pytest.approx(apart))
    assert said(on(RIGHT, LEFT), question) == ("opposite", pytest.approx(reverse))
    # The dog is below the cat, and a little to its right.
    label = "holds" if diagonal > 0.5 else "opposite"
    assert said(on(LEFT, LOW), asked("left_of")) == (label, pytest.approx(diagonal))
    alone = by_metric(metric, Given(cat=[(0.9, LEFT)]))
    assert said(alone, asked("left_of")) == ("invalid", 0.0)
    ((_, failed),) = by_metric(metric, Given()).judge([asked("left_of", b="unicorn")])
    assert failed.label == "error" and "no class 'unicorn'" in failed.raw and failed.number is None


def test_conventions_are_options() -> None:
    given_boxes = Given(cat=[(0.9, (0, 0, 40, 40))], dog=[(0.9, (2, 10, 60, 30))])
    paper, authors = (
        by_metric("pse", given_boxes, open_judge(f"pse:pixels{o}").settings)
        for o in ("", "?rule.convention=authors")
    )
    assert said(paper, asked("left_of"))[0] == "opposite"
    assert said(authors, asked("left_of"))[0] == "holds"  # from 0.01 on
    one_edge = Given(cat=[(0.9, (0, 10, 40, 60))], dog=[(0.9, (0, 20, 40, 50))])
    settings = open_judge("hrs:pixels?rule.convention=authors").settings
    assert said(by_metric("hrs", one_edge), asked("above")) == ("opposite", 0.0)
    assert said(by_metric("hrs", one_edge, settings), asked("above")) == ("holds", 1.0)


def test_instances_count_as_each_paper_counts_them() -> None:
    cats = [(0.9, RIGHT), (0.5, LEFT), (0.4, (0, 50, 40, 90))]
    found = Given(cat=cats, dog=[(0.8, (45, 0, 55, 40))])
    assert said(by_metric("visor", found), asked("left_of")) == ("holds", 1.0)  # any instance
    assert said(by_metric("hrs", found), asked("left_of")) == ("opposite", 0.0)  # the surest
    # Their union: two thirds of the cats' pixels are left of the dog, one third right of it.
    assert said(by_metric("pse", found), asked("left_of")) == ("opposite", pytest.approx(1 / 3))
    # Two sure detections in the wrong place make one half, and hold nothing.
    wrong = Given(cat=[(1.0, RIGHT)], dog=[(1.0, LEFT)])
    assert said(by_metric("compbench", wrong), asked("left_of")) == ("opposite", 0.5)


def test_without_a_stated_relation_both_orders_are_measured() -> None:
    neutral = asked("left_of")
    facts = {"axis": "horizontal"}
    for a, b, label in ((LEFT, RIGHT, "holds"), (RIGHT, LEFT, "opposite"), (LEFT, LEFT, "invalid")):
        judge = by_metric("pse", Given(cat=[(0.9, a)], dog=[(0.8, b)]))
        question = Question(**{**vars(neutral), "facts": facts})
        assert said(judge, question)[0] == label
    other = Question(**{**vars(neutral), "task": "yes_no", "facts": {}})
    ((_, verdict),) = judge.judge([other])
    assert verdict.label == "error" and "can't answer questions of the task yes_no" in verdict.raw


def test_depth_needs_an_estimator_and_hiding_needs_touching() -> None:
    near, far, apart = (40, 20, 80, 90), (10, 10, 50, 60), (85, 10, 95, 60)
    found = Given(cat=[(0.9, near)], dog=[(0.8, far)], owl=[(0.8, apart)])
    with_depth: Any = open_judge("pse:pixels?rule.depth=ground")
    judges = {kind: by_metric(kind, found, depth=with_depth.depth) for kind in ("pse", "compbench")}
    assert said(judges["pse"], asked("in_front_of"))[0] == "holds"
    assert said(judges["pse"], asked("behind"))[0] == "opposite"
    assert said(judges["pse"], asked("hidden_by", "dog", "cat"))[0] == "holds"
    assert said(judges["pse"], asked("hidden_by", "owl", "cat")) == ("opposite", 0.0)
    assert said(judges["pse"], asked("behind", "owl", "cat"))[0] == "holds"
    label, number = said(judges["compbench"], asked("in_front_of"))
    assert label == "holds" and number == pytest.approx(0.25 * 1.7 + 0.5 * (400 / 4400) / 0.5)
    for metric, reason in (("pse", "add rule.depth="), ("visor", "no rule for 'behind'")):
        ((_, verdict),) = by_metric(metric, found).judge([asked("behind")])
        assert verdict.label == "error" and reason in verdict.raw


CORNER = (60, 50, 100, 90)


@pytest.mark.parametrize(
    ("relation", "a", "b", "number"),
    [
        ("upper_left", LEFT, CORNER, 1.0),
        ("upper_left", CORNER, LEFT, 0.0),
        ("lower_right", CORNER, LEFT, 1.0),
        ("upper_right", RIGHT, (0, 50, 40, 90), 1.0),
        ("lower_left", RIGHT, (0, 50, 40, 90), 0.0),
        ("far", LEFT, RIGHT, 1.0),
        ("far", LEFT, LEFT, 0.09),
        ("near", LEFT, LEFT, 0.91),
        ("near", LEFT, RIGHT, 0.0),
        ("inside", (45, 45, 55, 55), (0, 0, 100, 100), 0.93),
        ("surrounding", (45, 45, 55, 55), (0, 0, 100, 100), 0.0),
        ("surrounding", (0, 0, 100, 100), (45, 45, 55, 55), 0.93),
        ("inside", LEFT, RIGHT, 0.0),
    ],
)
def test_pse_measures_every_placement(
    relation: str, a: Sequence[float], b: Sequence[float], number: float
) -> None:
    judge = by_metric("pse", Given(cat=[(0.9, a)], dog=[(0.8, b)]))
    image = Image.new("RGB", (100, 100))
    seen = set()
    for row in range(8):
        case = Case(f"r{row}", "plain", 0, 0, "", ("c",))
        for probe in ("original", "swap"):
            (question,) = ask_stated(Stated("cat", relation, "dog"), case, probe, [image])
            seen.add((question.subjects, question.labels[0]))
            label, measured = said(judge, question)
            assert label == ("holds" if number > 0.5 else "opposite")
            assert measured == pytest.approx(number, abs=0.01)
            assert "near each other" in question.prompt or relation not in ("near", "far")
            digit = next(d for d, named in question.answers.items() if named == "holds")
            if relation == "far":
                assert f"{digit}: A and B are far from each other" in question.prompt
        assert ask_stated(Stated("cat", relation, "dog"), case, "mirror", [image]) == []
    # Which is named first changes the labels' order, but not for a distance.
    assert len(seen) == 2


def test_pixels_refuse_placements_that_they_can_not_measure() -> None:
    case, image = Case("r", "plain", 0, 0, "", ("c",)), Image.new("RGB", (9, 9))
    (question,) = ask_stated(Stated("cat", "far", "dog"), case, "original", [image])
    ((_, verdict),) = open_judge("pixels").judge([question])
    assert verdict.label == "error" and "axis 'distance'" in verdict.raw


def test_the_checker_abstains_with_its_reason() -> None:
    found = Given(cat=[(0.9, LEFT), (0.85, RIGHT)], dog=[(0.8, LOW)])
    label, number = said(CheckerJudge(found), asked("left_of"))
    assert (label, number) == ("invalid", 0.0)
    ((_, verdict),) = CheckerJudge(found).judge([asked("left_of")])
    assert "ambiguous" in json.loads(verdict.raw)["why"]
    sure = CheckerJudge(Given(cat=[(0.9, LEFT)], dog=[(0.9, RIGHT)]))
    label, number = said(sure, asked("left_of"))
    assert label == "holds" and number == pytest.approx(0.9**0.4, abs=1e-6)
    assert said(sure, asked("right_of")) == ("opposite", 0.0)


def test_batches_are_the_single_verdicts() -> None:
    class Batching(Given):
        batch_size = 3

        def __init__(self, **found: Any) -> None:
            super().__init__(**found)
            self.sizes: list[int] = []

        def detect(self, requests: Sequence[Request]) -> list[list[Detection]]:
            self.sizes.append(len(requests))
            return super().detect(requests)

    images = [Image.new("RGB", (100, 100), (n, 0, 0)) for n in range(4)]
    questions = [
        Question(**{**vars(asked("left_of", b="unicorn" if n == 3 else "dog")), "images": (i,)})
        for n, i in enumerate(images)
    ]
    detector = Batching(cat=[(0.9, LEFT)], dog=[(0.8, RIGHT)])
    labels = [v.label for _, v in by_metric("pse", detector).judge(iter(questions))]
    assert labels == ["holds"] * 3 + ["error"]
    assert detector.sizes[0] == 3 and sum(detector.sizes) == 4


def test_the_checker_looks_at_perturbed_images_once_too(tmp_path: Path) -> None:
    class Looking(Given):
        def __init__(self) -> None:
            super().__init__(cat=[(0.9, LEFT)], dog=[(0.8, RIGHT)])
            self.looks = 0

        def detect(self, requests: Sequence[Request]) -> list[list[Detection]]:
            self.looks += len(requests)
            return super().detect(requests)

    pixels = np.random.default_rng(0).integers(0, 255, (100, 100, 3), np.uint8)
    question = Question(**{**vars(asked("left_of")), "images": (Image.fromarray(pixels),)})
    first, second = Looking(), Looking()
    found = said(CheckerJudge(first, cache=tmp_path), question)
    assert first.looks == 5  # the image, and four perturbations of it
    assert said(CheckerJudge(second, cache=tmp_path), question) == found and second.looks == 0
    assert said(by_metric("visor", second, cache=tmp_path), question) == ("holds", 1.0)
    assert second.looks == 0


# Masks in records.


@given(st.integers(0, 2**30), st.integers(1, 9), st.integers(1, 9))
def test_masks_survive_their_run_lengths(seed: int, height: int, width: int) -> None:
    mask = np.random.default_rng(seed).random((height, width)) < 0.5
    rle = json.loads(json.dumps(encode(mask)))
    assert rle["size"] == [height, width] and sum(rle["counts"]) == height * width
    assert (decode(rle) == mask).all()
    assert (decode({"size": rle["size"], "counts": compressed(rle["counts"])}) == mask).all()


def compressed(counts: Sequence[int]) -> str:
    """COCO's compressed text, written from its description."""
    text = ""
    for place, count in enumerate(counts):
        value = count - counts[place - 2] if place > 2 else count
        while True:
            bits, value = value & 31, value >> 5
            done = value == (-1 if bits & 16 else 0)
            text += chr(48 + bits + (0 if done else 32))
            if done:
                break
    return text


def test_run_lengths_of_a_published_shape() -> None:
    # 3 x 2: the first column off, the second on from its second pixel.
    assert decode({"size": [3, 2], "counts": [4, 2]}).tolist() == [
        [False, False],
        [False, True],
        [False, True],
    ]
    for bad in ({}, {"size": [3, 2], "counts": [4]}, {"size": [3, 2], "counts": "4\x7f"}, None):
        with pytest.raises(RleError):
            decode(bad)


def test_judges_by_rule_know_where_a_plan_keeps_detections(tmp_path: Path) -> None:
    from counterprior.agents.budget import Budget, PriceTable

    plan = CallPlan(tmp_path / "ledgers", Budget(PriceTable.read(None), None))
    for kind in (*METRICS, "checker"):
        judge: Any = open_judge(f"{kind}:pixels", plan)
        assert judge.cache == tmp_path / "detections"
        alone: Any = open_judge(f"{kind}:pixels")
        assert alone.cache is None
    asking = Asking(tmp_path, "spatial_uc", "standard", ("original",))
    identity = open_judge("visor:pixels").identity()
    task = AskJudge(asking, "visor:pixels", identity, bundle=1, ledgers=plan.ledgers)
    worker: Any = pickle.loads(pickle.dumps(task)).open()
    assert worker._judge.cache == tmp_path / "detections"
