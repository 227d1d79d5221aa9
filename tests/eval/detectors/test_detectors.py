"""Detectors: real classes with tiny random weights, recorded files, rendered truth, the cache."""

import json
import math
import sys
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from PIL import Image
from refusals import raises

from counterprior.errors import UsageError
from counterprior.eval.core import ImageRequest
from counterprior.eval.detectors import (
    DETECTORS,
    Detection,
    DetectorError,
    Request,
    in_batches,
    open_detector,
)
from counterprior.eval.detectors.cache import Cached
from counterprior.eval.detectors.checkpoint_models import DepthAnything, caption
from counterprior.eval.detectors.depth import open_depth
from counterprior.eval.detectors.loading import install_torchvision
from counterprior.eval.generators.render import RenderGenerator
from counterprior.eval.geometry.boxes import Box, Size, iou
from counterprior.eval.geometry.checker.decide import check
from counterprior.eval.geometry.checker.recorded import CheckerSample, read_samples
from counterprior.eval.geometry.checker.rules import CheckerRules, Perturbation
from counterprior.eval.geometry.pse import pse
from counterprior.eval.judges.checker.run import (
    ImageToCheck,
    check_images,
    measure,
    perturbed,
    recorded_row,
)
from counterprior.parsing import RowError
from counterprior.scenes.drawing import draw_scene
from counterprior.scenes.scene import WIDTH, Figure, Scene, mirror_image
from counterprior.specs import Spec

Checkpoint = Callable[[str], Path]


@pytest.fixture
def image() -> Image.Image:
    pixels = np.random.default_rng(0).integers(0, 255, (48, 80, 3), dtype=np.uint8)
    return Image.fromarray(pixels)


def spec_of(kind: str, checkpoint: Checkpoint) -> str:
    options = "?threshold=0"
    if kind == "sam":
        options = f"?boxes=detr:{checkpoint('detr')}%3Fthreshold%3D0"
    return f"{'owl' if kind == 'owlv2' else kind}:{checkpoint(kind)}{options}"


KINDS = ("grounding-dino", "owl", "owlv2", "detr", "mask2former", "sam", "clipseg")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", KINDS)
def test_transformers_detectors_load_detect_and_repeat(
    kind: str, checkpoint: Checkpoint, image: Image.Image
) -> None:
    text = spec_of(kind, checkpoint)
    detector = open_detector(text)
    requests = [Request(image, ("cat", "dog")), Request(image.rotate(180), ("dog",))]
    both = detector.detect(requests)
    assert both[0] and [d.label for d in both[1]] == ["dog"] * len(both[1])
    for found in both[0]:
        assert found.label in ("cat", "dog") and 0 <= found.score <= 1
        assert 0 <= found.box.x1 < found.box.x2 <= 80 and 0 <= found.box.y1 < found.box.y2 <= 48
        masked = kind in ("mask2former", "sam", "clipseg")
        assert (found.mask is not None) == masked
        if found.mask is not None:
            assert found.mask.shape == (48, 80) and found.mask.dtype == np.bool_
    assert [d.score for d in both[0]] == sorted((d.score for d in both[0]), reverse=True)
    again = open_detector(text).detect(requests[:1])[0]
    assert [d.to_row() for d in again] == [d.to_row() for d in both[0]]
    identity = detector.identity()
    assert identity["model"] == checkpoint(kind).name  # not where it lies
    assert identity["revision"].startswith("sha256:") and identity["processor"].endswith("Pil")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["grounding-dino", "owl", "detr"])
def test_a_batch_is_the_single_pictures(
    kind: str, checkpoint: Checkpoint, image: Image.Image
) -> None:
    text = spec_of(kind, checkpoint)
    requests = [Request(image.rotate(90 * i), ("cat", "dog")) for i in (0, 2, 0)]
    detector: Any = open_detector(f"{text}&batch=3")
    together = detector.detect(requests)
    alone = [found for request in requests for found in detector.detect([request])]
    for batch, single in zip(together, alone, strict=True):
        scores = [[d.score for d in found] for found in (batch, single)]
        assert scores[0] == pytest.approx(scores[1], abs=1e-4)


@pytest.mark.filterwarnings("ignore")
def test_grounding_dino_scores_a_query_by_its_own_tokens(
    checkpoint: Checkpoint, image: Image.Image, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    detector: Any = open_detector(f"grounding-dino:{checkpoint('grounding-dino')}?threshold=0.5")
    # [CLS] fire hydrant . cat . [SEP]: box 0 lights up "hydrant", box 1 "cat", box 2 the full stop.
    logits = torch.full((1, 3, 8), -9.0)
    logits[0, 0, 2] = logits[0, 1, 4] = logits[0, 2, 3] = 2.0
    centers = [[0.5, 0.5, 0.5, 0.5], [0.1, 0.5, 0.4, 0.2], [0.9, 0.9, 0.1, 0.1]]
    outputs = SimpleNamespace(logits=logits, pred_boxes=torch.tensor([centers]))
    monkeypatch.setattr(detector, "_model", lambda **inputs: outputs)
    (found,) = detector.detect([Request(image, ("Fire hydrant", "cat"))])
    assert [(d.label, d.box) for d in found] == [
        ("Fire hydrant", pytest.approx((20, 12, 60, 36))),
        ("cat", pytest.approx((0, 19.2, 24, 28.8), abs=1e-4)),
    ]
    assert found[0].score == pytest.approx(1 / (1 + math.exp(-2)))
    assert caption(["cat"]) == ("cat.", [(0, 3)])


@pytest.mark.filterwarnings("ignore")
def test_depth_has_the_size_of_the_picture_and_is_estimated_once(
    checkpoint: Checkpoint,
    image: Image.Image,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    estimator = open_depth(f"depth-anything:{checkpoint('depth-anything')}", tmp_path)
    nearness = estimator.nearness(image, [])
    assert nearness.shape == (48, 80) and np.isfinite(nearness).all() and nearness.std() > 0
    assert estimator.identity()["kind"] == "depth-anything"
    monkeypatch.setattr(DepthAnything, "nearness", lambda *_: pytest.fail("estimated again"))
    assert (estimator.nearness(image.copy(), []) == nearness).all()
    with raises("unknown-name", "depth estimator 'owl'", "depth-anything", error=UsageError):
        open_depth("owl:x")


def test_on_level_ground_the_lower_foot_is_nearer(image: Image.Image) -> None:
    far = Detection("cat", 0.9, Box(0, 0, 40, 24))
    near = Detection("dog", 0.9, Box(20, 8, 60, 40))
    depth = open_depth("ground").nearness(image, [near, far])
    assert depth[4, 4] == pytest.approx(0.5) and depth[47, 79] == 0
    assert depth[20, 30] == pytest.approx(40 / 48)  # the nearer one covers the other


@pytest.mark.filterwarnings("ignore")
def test_the_detector_of_pse_in_one_word(checkpoint: Checkpoint, image: Image.Image) -> None:
    boxes = f"grounding-dino:{checkpoint('grounding-dino')}"
    detector = open_detector(f"grounded-sam:{boxes}?threshold=0&sam={checkpoint('sam')}&batch=2")
    requests = [Request(image, ("cat", "dog")), Request(image.rotate(180), ("dog", "cat"))]
    found = detector.detect(requests)
    long = f"{boxes}%3Fthreshold%3D0%26batch%3D2"
    same = open_detector(f"sam:{checkpoint('sam')}?boxes={long}").detect(requests)
    assert [[d.to_row() for d in one] for one in found] == [[d.to_row() for d in o] for o in same]
    assert all(d.mask is not None and d.mask.shape == (48, 80) for one in found for d in one)
    identity = detector.identity()
    assert identity["boxes_kind"] == "grounding-dino" and identity["boxes_threshold"] == "0"
    with raises("unknown-option", "grounded-sam", "'box'"):
        open_detector("grounded-sam:?box=1")


class Stretching:
    """Prepares images for SAM 2 and 3 as their processors do, which need torchvision."""

    def __init__(self, side: int) -> None:
        self.side = side

    def __call__(self, images: Image.Image, input_boxes: Any, return_tensors: str) -> Any:
        import torch
        from transformers import BatchEncoding

        pixels = torch.from_numpy(
            np.asarray(images.resize((self.side, self.side)), dtype=np.float32) / 255
        )
        scale = torch.tensor([self.side / images.width, self.side / images.height] * 2)
        encoded = {
            "pixel_values": pixels.permute(2, 0, 1)[None],
            "input_boxes": torch.tensor(input_boxes, dtype=torch.float32) * scale,
            "original_sizes": torch.tensor([[images.height, images.width]]),
        }
        return BatchEncoding(encoded)

    def post_process_masks(self, masks: Any, original_sizes: Any) -> list[Any]:
        from torch.nn.functional import interpolate

        sized = zip(masks, original_sizes.tolist(), strict=True)
        return [interpolate(mask, size, mode="bilinear") > 0 for mask, size in sized]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("kind", "side"), [("sam2", 64), pytest.param("sam3", 56, marks=pytest.mark.lane)]
)
def test_later_sams_give_masks_where_torchvision_is(
    checkpoint: Checkpoint,
    image: Image.Image,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    side: int,
) -> None:
    import transformers

    long = f"detr:{checkpoint('detr')}%3Fthreshold%3D0"
    spec = f"sam:{checkpoint(kind)}?boxes={long}"
    if find_spec("torchvision") is None:
        with raises("wrong-model", kind, "torchvision: pip install", error=DetectorError):
            open_detector(spec)
        load = transformers.AutoProcessor.from_pretrained
        monkeypatch.setattr(
            transformers.AutoProcessor,
            "from_pretrained",
            lambda source, **how: (
                Stretching(side) if Path(source) == checkpoint(kind) else load(source, **how)
            ),
        )
    request = Request(image, ("cat", "dog"))
    (found,) = open_detector(spec).detect([request])
    (boxes,) = open_detector(Spec.parse(spec).options["boxes"]).detect([request])
    assert found and [(d.label, d.box, d.score) for d in found] == [
        (d.label, d.box, d.score) for d in boxes
    ]
    for one in found:
        assert one.mask is not None and one.mask.shape == (48, 80)
        assert one.mask.dtype == np.bool_ and one.mask.any()


@pytest.mark.filterwarnings("ignore")
def test_closed_set_refuses_unknown_class(checkpoint: Checkpoint, image: Image.Image) -> None:
    for kind in ("detr", "mask2former"):
        with raises("unknown-class", "'owl'", "3", error=DetectorError):
            open_detector(spec_of(kind, checkpoint)).detect([Request(image, ("owl",))])


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("magic:x", ("unknown-name", "'magic'", "clipseg")),
        (
            "owl:google/owlvit-base-patch32",
            ("missing-option", "owl:google/owlvit-base-patch32", "revision="),
        ),
        (
            "owl:google/owlvit-base-patch32?revision=main",
            ("missing-option", "revision=", "40 hexadecimal"),
        ),
        ("owl:", ("missing-option", "owl:PATH_OR_REPO")),
        ("detr:.?treshold=1", ("unknown-option", "'treshold'", "mean threshold?")),
        ("detr:.?threshold=2", ("bad-option", "threshold", "0 to 1", "'2'")),
        ("detr:.?threshold=high", ("bad-option", "threshold", "0 to 1", "'high'")),
        ("sam:.", ("missing-option", "option boxes", "boxes=")),
        ("pixels:x", ("bad-spec", "pixels", "'x'")),
        ("recorded:gone.jsonl", ("no-such-file", "gone.jsonl")),
    ],
)
def test_refuses_specs_of_unknown_detectors(text: str, reason: tuple[str, ...]) -> None:
    with raises(*reason, error=UsageError):
        open_detector(text)


@pytest.mark.filterwarnings("ignore")
def test_names_folder_without_checkpoint(tmp_path: Path) -> None:
    with raises("no-such-file", "config.json", error=UsageError):
        open_detector(f"detr:{tmp_path}")
    (tmp_path / "config.json").write_text("{}")
    with raises("wrong-model", "AutoModelForObjectDetection", error=DetectorError):
        open_detector(f"detr:{tmp_path}")


class StandIn:
    """What the adapter uses of torchvision: a model of the same calls, whose weights are a score.

    Like theirs it takes a list of RGB images in [0, 1] and, in evaluation mode only, answers with
    labels, scores and boxes in pixels.
    """

    CATEGORIES = ("__background__", "person", "N/A", "cat", "potted plant", "N/A")

    def __init__(self, torch: Any) -> None:
        class Model(torch.nn.Module):  # type: ignore[misc]
            def __init__(self) -> None:
                super().__init__()
                self.score = torch.nn.Parameter(torch.zeros(()))

            def forward(self, images: list[Any]) -> list[dict[str, Any]]:
                assert not self.training and len(images) == 1
                assert images[0].shape == (3, 48, 80)
                assert images[0][:, 0, 0].tolist() == pytest.approx([1, 0.4, 0])
                rows = [(3, [-4, 5, 30, 60]), (4, [1, 2, 3, 4]), (3, [8, 8, 9, 9]), (1, [0] * 4)]
                scores = [float(self.score), 0.7, 0.49, 0.9]
                return [
                    {
                        "labels": torch.tensor([label for label, _ in rows]),
                        "scores": torch.tensor(scores, dtype=torch.float64),
                        "boxes": torch.tensor([box for _, box in rows], dtype=torch.float64),
                    }
                ]

        self.model = Model

    def build(self, *, weights: None, weights_backbone: None) -> Any:
        assert weights is weights_backbone is None  # anything else downloads
        return self.model()

    def modules(self) -> dict[str, Any]:
        published = SimpleNamespace(meta={"categories": self.CATEGORIES}, url="https://w.pth")
        detection = SimpleNamespace(
            fasterrcnn_resnet50_fpn_v2=self.build,
            FasterRCNN_ResNet50_FPN_V2_Weights=SimpleNamespace(COCO_V1=published),
        )
        models = SimpleNamespace(detection=detection)
        return {
            "torchvision": SimpleNamespace(__version__="0.0", models=models),
            "torchvision.models": models,
        }


def test_faster_rcnn_by_a_stand_in_for_torchvision(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch = pytest.importorskip("torch")
    stand_in = StandIn(torch)
    for name, module in stand_in.modules().items():
        monkeypatch.setitem(sys.modules, name, module)
    weights = tmp_path / "w.pth"
    with raises("no-such-file", "w.pth is", "https://w.pth", error=DetectorError):
        open_detector(f"faster-rcnn:{weights}")
    for wrong in ({"other": torch.zeros(())}, {"score": torch.zeros(3)}, [1]):
        torch.save(wrong, weights)
        with raises("wrong-model", "w.pth does", "https://w.pth", error=DetectorError):
            open_detector(f"faster-rcnn:{weights}")
    torch.save({"score": torch.tensor(0.8)}, weights)
    detector = open_detector(f"faster-rcnn:{weights}")
    picture = Image.new("RGB", (80, 48), (255, 102, 0))
    (found,) = detector.detect([Request(picture, ("Cat", "potted plant"))])
    assert [(d.label, d.score, d.box) for d in found] == [
        ("Cat", pytest.approx(0.8), (0, 5, 30, 48)),
        ("potted plant", 0.7, (1, 2, 3, 4)),
    ]
    assert detector.identity()["torchvision"] == "0.0"
    with raises("unknown-class", "'cup'", "5", error=DetectorError):
        detector.detect([Request(picture, ("cup",))])


def test_faster_rcnn_without_torchvision_says_what_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.setitem(sys.modules, "torchvision", None)
    minor = int(torch.__version__.split(".")[1]) + 15
    with raises("missing-library", f"pip install 'torchvision==0.{minor}.*'", error=DetectorError):
        open_detector(f"faster-rcnn:{tmp_path / 'w.pth'}")
    assert install_torchvision("2.13.0+cu130").endswith("/whl/cu130")
    assert install_torchvision("2.13.0") == "pip install 'torchvision==0.28.*'"


def test_batches_keep_order_and_number_of_queries(image: Image.Image) -> None:
    requests = [Request(image, ("a",) * n) for n in (1, 1, 1, 2, 2, 1)]
    assert [len(batch) for batch in in_batches(requests, 2)] == [2, 1, 2, 1]
    assert [r for batch in in_batches(requests, 4) for r in batch] == requests
    assert list(in_batches([], 2)) == []


# Rendered scenes: the truth is known.


def rendered(left: str, right: str, seed: int = 0) -> Image.Image:
    scene = Scene((Figure(left, 0.27, 0.9, 0.95), Figure(right, 0.74, 0.9, 1.0)), seed)
    image = draw_scene(scene)
    image.info["scene"] = scene.to_json()
    return image


def mask_of(found: Sequence[Detection], label: str) -> Any:
    """All instances of a label together, as PSE segments."""
    return np.logical_or.reduce([d.mask for d in found if d.label == label])


def test_the_scene_is_exact_and_pixels_come_close() -> None:
    overlaps = []
    for seed, (left, right) in enumerate((("cat", "dog"), ("dog", "horse"), ("cow", "cat"))):
        image = rendered(left, right, seed)
        request = Request(image, (left, right))
        (truth,) = open_detector("scene").detect([request])
        plain = Image.fromarray(np.asarray(image))
        (found,) = open_detector("pixels").detect([Request(plain, (left, right))])
        assert {d.label for d in found} >= {left, right}
        for exact in truth:
            near = next(d for d in found if d.label == exact.label)
            overlaps.append(iou(near.box, exact.box))
        a, b = (mask_of(truth, label) for label in (left, right))
        assert float(pse(a, b, "left_of")) == 1
        measured = [mask_of(found, label) for label in (left, right)]
        assert float(pse(*measured, "left_of")) == pytest.approx(1, abs=0.02)
    assert min(overlaps) > 0.6


def test_mask_excludes_hidden_pixels() -> None:
    scene = Scene((Figure("horse", 0.5, 0.9, 1.0), Figure("cat", 0.5, 0.9, 0.9)), 0)
    alone = Scene(scene.figures[:1], 0)
    masks = []
    for one in (scene, alone):
        image = draw_scene(one)
        image.info["scene"] = one.to_json()
        (found,) = open_detector("scene").detect([Request(image, ("horse",))])
        masks.append(found[0].mask)
    assert not (masks[0] & ~masks[1]).any() and masks[0].sum() < 0.9 * masks[1].sum()
    changed = np.abs(
        np.asarray(draw_scene(alone), int) - np.asarray(draw_scene(Scene((), 0)), int)
    ).sum(axis=2)
    assert (changed[masks[1]] > 0).mean() > 0.97  # the mask is where drawing it changed something


def test_mirror_image_has_the_mirrored_scene() -> None:
    request = Request(rendered("cat", "dog"), ("cat", "dog"))
    mirrored = mirror_image(request.image)
    (truth,), (seen,) = (
        open_detector("scene").detect([Request(image, request.queries)])
        for image in (request.image, mirrored)
    )
    for exact, mirror in zip(truth, seen, strict=True):
        assert exact.label == mirror.label
        x1, x2 = (WIDTH - exact.box.x2, WIDTH - exact.box.x1)
        assert (mirror.box.x1, mirror.box.x2) == pytest.approx((x1, x2), abs=2)
    strange = Image.new("RGB", (64, 64))
    strange.info["scene"] = "a cat on the left"
    assert "scene" not in mirror_image(strange).info


def test_rendered_truth_needs_the_picture_as_written() -> None:
    with raises("no-scene", "render:", error=DetectorError):
        open_detector("scene").detect([Request(Image.new("RGB", (512, 384)), ("cat",))])
    with raises("unknown-class", "'spaceship'", error=DetectorError):
        open_detector("scene").detect([Request(rendered("cat", "dog"), ("spaceship",))])


# Recorded detections.


def write(path: Path, data: Any) -> Path:
    lines = isinstance(data, list) and path.suffix == ".jsonl"
    path.write_text("".join(json.dumps(d) + "\n" for d in data) if lines else json.dumps(data))
    return path


def test_recorded_files_of_every_kind(tmp_path: Path, image: Image.Image) -> None:
    cat = {"label": "Cat", "score": 0.5, "box_xyxy": [1, 2, 30, 40]}
    dog = {"label": "dog", "score": 0.9, "box_xyxy": [1, 2, 3, 4]}
    own = write(tmp_path / "o.jsonl", [{"sample_id": "s", "detections": [cat, dog]}])
    published = write(
        tmp_path / "p.jsonl",
        [
            {
                "sample_id": "s",
                "detectors": {"primary": {"detections": [dog]}, "secondary": {"detections": [cat]}},
            }
        ],
    )
    coco = write(
        tmp_path / "c.json",
        [{"image_id": 7, "category_id": 3, "bbox": [1, 2, 29, 38], "score": 0.5}],
    )
    names = write(
        tmp_path / "n.json",
        {
            "categories": [{"id": 3, "name": "cat"}],
            "images": [{"id": 7, "file_name": "s"}, {"id": 8, "file_name": "empty"}],
        },
    )
    visor = write(
        tmp_path / "v.json",
        {"s": {"classes": ["dog", "cat"], "centroid": [[9, 9], [15.5, 21]], "recall": 2, "sra": 1}},
    )
    request = Request(image, ("cat",), "s")
    for text, box in (
        (f"recorded:{own}", (1, 2, 30, 40)),
        (f"recorded:{published}?role=secondary", (1, 2, 30, 40)),
        (f"recorded:{coco}?names={names}", (1, 2, 30, 40)),
        (f"recorded:{visor}", (15.5, 21, 15.5, 21)),
    ):
        detector = open_detector(text)
        ((found,),) = detector.detect([request])
        assert (found.label, tuple(found.box)) == ("cat", box)
        assert len(detector.identity()["sha256"]) == 64
        with raises("not-recorded", "'other'", error=DetectorError):
            detector.detect([Request(image, ("cat",), "other")])
    assert open_detector(f"recorded:{published}").detect([request]) == [[]]
    empty = open_detector(f"recorded:{coco}?names={names}")
    assert empty.detect([Request(image, ("cat",), "empty")]) == [[]]


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("d.jsonl", [{"sample_id": "s"}], ("missing-field", "d.jsonl:1: detections")),
        (
            "d.jsonl",
            [{"sample_id": "s", "detections": []}] * 2,
            ("duplicate-id", "d.jsonl:2: sample_id: 's'"),
        ),
        ("d.json", [{"image_id": 1}], ("missing-option", "names=instances.json")),
        (
            "d.json",
            {"s": {"classes": ["cat"], "centroid": []}},
            ("wrong-count", "0 centroids", "1 classes"),
        ),
        ("d.json", "text", ("bad-format", "COCO", "VISOR")),
    ],
)
def test_refuses_files_of_other_formats(
    tmp_path: Path, name: str, data: Any, reason: tuple[str, ...]
) -> None:
    with raises(*reason, error=RowError):
        open_detector(f"recorded:{write(tmp_path / name, data)}")


def test_coco_results_with_nan_or_a_strange_category(tmp_path: Path) -> None:
    names = write(tmp_path / "n.json", {"categories": [{"id": 3, "name": "cat"}]})
    row = {"image_id": 7, "category_id": 3, "bbox": [1, 2, 29, 38], "score": math.nan}
    for bad, reason in (
        (row, ("bad-value", "c.json:1: score")),
        (
            row | {"score": 1, "category_id": 4},
            ("unknown-reference", "c.json:1: category_id", "n.json", "4"),
        ),
    ):
        file = write(tmp_path / "c.json", [bad])
        with raises(*reason, error=RowError):
            open_detector(f"recorded:{file}?names={names}")


# Cache.


class Counting:
    """Finds one cat, and counts."""

    def __init__(self, version: str = "1") -> None:
        self.seen, self.version = 0, version

    def identity(self) -> dict[str, str]:
        return {"kind": "counting", "version": self.version}

    def detect(self, requests: Sequence[Request]) -> list[list[Detection]]:
        self.seen += len(requests)
        mask = np.random.default_rng(0).random((48, 80)) < 0.3
        cat, dog = (
            Detection("cat", 1 / 3, Box(0.1, 0, 9, 9), mask),
            Detection("dog", 0.2, Box(0, 0, 1, 1)),
        )
        return [[cat, dog] for _ in requests]


def test_a_picture_is_looked_at_once(tmp_path: Path, image: Image.Image) -> None:
    detector = Counting()
    cached = Cached(detector, tmp_path)
    request = Request(image, ("cat",))
    first = cached.detect([request, Request(image.copy(), ("cat",)), request])
    assert detector.seen == 1
    again = Cached(Counting(), tmp_path).detect([request])[0]
    for one, other in zip(again, first[0], strict=True):
        assert one.to_row() == other.to_row()
        assert (one.mask is None and other.mask is None) or (one.mask == other.mask).all()
    for other in (
        Request(image, ("cat", "dog")),
        Request(image.transpose(Image.Transpose.FLIP_LEFT_RIGHT), ("cat",)),
    ):
        cached.detect([other])
    assert detector.seen == 3
    newer = Counting("2")
    Cached(newer, tmp_path).detect([request])
    assert newer.seen == 1
    for file in tmp_path.rglob("*.json"):
        file.write_bytes(file.read_bytes()[:40])
    torn = Cached(detector, tmp_path)
    assert torn.detect([request])[0][0].to_row() == first[0][0].to_row()
    assert detector.seen == 4
    # Asked in another order, or under another name, it is the same look.
    torn.detect([Request(image, ("dog", "cat"), "somebody")])
    assert detector.seen == 5
    torn.detect([Request(image, ("cat", "dog"), "somebody else")])
    assert detector.seen == 5


# The checker on images.


class Scripted:
    """Boxes of a and b by turn: the image, then each perturbation."""

    def __init__(self, *looks: tuple[Any, Any]) -> None:
        self.looks = list(looks)

    def identity(self) -> dict[str, str]:
        return {"kind": "scripted"}

    def detect(self, requests: Sequence[Request]) -> list[list[Detection]]:
        found = []
        for request in requests:
            boxes = self.looks.pop(0)
            named = zip(request.queries, boxes, strict=True)
            found.append([Detection(query, 0.9, Box(*box)) for query, box in named if box])
        return found


LEFT, RIGHT = (0, 0, 100, 100), (400, 0, 500, 100)


def scripted(*looks: tuple[Any, Any]) -> Any:
    sample = {
        "sample_id": "s",
        "prompt_id": "p",
        "relation": "left_of",
        "object_a": "cat",
        "object_b": "dog",
        "image": Image.new("RGB", (512, 512)),
    }
    (found,) = check_images([ImageToCheck(**sample)], CheckerRules(), Scripted(*looks))
    return found


def test_stability_is_half_verdicts_and_half_boxes() -> None:
    same = (LEFT, RIGHT)
    assert scripted(same, same, same, same, same).parts.stability == 1
    half = ((0, 0, 100, 50), RIGHT)
    assert scripted(same, same, same, same, half).parts.stability == pytest.approx(
        0.5 + 0.5 * (7.5 / 8)
    )
    lost = (LEFT, None)
    found = scripted(same, same, lost, lost, lost)
    assert found.parts.stability == pytest.approx(0.5 / 4 + 0.5) and found.verdict == "PASS"
    swapped = (RIGHT, LEFT)
    found = scripted(same, swapped, swapped, swapped, same)
    assert found.reason == "unstable: stability=0.25 < 0.5"
    found = scripted(same, lost, lost, lost, lost)
    assert (found.verdict, found.parts.stability) == ("UNDECIDABLE", 0)


def test_perturbations_change_pixels_as_their_type_says(image: Image.Image) -> None:
    plain = np.asarray(image, float)
    for how in CheckerRules().stability.perturbations:
        changed = perturbed(image, how)
        assert changed.size == image.size and (np.asarray(changed) != np.asarray(image)).any()
    brighter = np.asarray(perturbed(image, Perturbation(type="brightness", factor=1.1)), float)
    expected = np.minimum(255, plain * 1.1)
    assert abs(brighter - expected).max() <= 1
    smooth = np.asarray(perturbed(image, Perturbation(type="gaussian_blur", sigma=1)), float)
    assert smooth.std() < 0.6 * plain.std()


@pytest.mark.slow
def test_rendered_pictures_from_detector_to_verdict_and_back(tmp_path: Path) -> None:
    pictures = [
        ImageToCheck(f"s{i}", f"p{i // 2}", relation, "cat", "dog", rendered(*pair, i))
        for i, (relation, pair) in enumerate(
            [
                ("left_of", ("cat", "dog")),
                ("left_of", ("dog", "cat")),
                ("right_of", ("dog", "cat")),
                ("above", ("cat", "dog")),
            ]
        )
    ]
    detector = open_detector("pixels")
    twice = [{"type": "brightness", "factor": 0.9}, {"type": "resize", "scale": 0.9}]
    rules = CheckerRules.model_validate({"stability": {"perturbations": twice}})
    found = list(check_images(pictures, rules, detector, detector))
    assert [one.verdict for one in found][:3] == ["PASS", "FAIL", "PASS"]
    assert found[3].verdict == "UNDECIDABLE" and found[3].reason.startswith("near_boundary")
    assert all(one.parts.stability > 0.8 and not one.assumed for one in found)
    assert found[0].parts.agreement == 1
    file = write(tmp_path / "d.jsonl", [recorded_row(one) for one in found])
    replayed = [check(*pair, rules) for pair in read_samples(file, Size(1, 1))]
    assert [one.to_row() for one in replayed] == [one.to_row() for one in found]


def test_stability_is_measured_on_unchanged_boxes() -> None:
    image = rendered("cat", "dog")
    sample = CheckerSample.model_validate(
        {
            "sample_id": "s",
            "prompt_id": "p",
            "relation": "left_of",
            "object_a": "cat",
            "object_b": "dog",
            "detectors": {"primary": {"detections": []}},
        }
    )
    nothing = CheckerRules.model_validate({"stability": {"perturbations": []}})
    assert measure(image, sample, Scripted(), nothing)("PASS", None, None) == 1  # type: ignore[arg-type]


def test_every_kind_is_tried() -> None:
    others = {"pixels", "scene", "recorded", "faster-rcnn"}
    others |= {"grounded-sam", "spoiled"}
    tried = {*KINDS, *others} - {"owlv2"}
    assert set(DETECTORS) == tried
    for kind in DETECTORS:
        assert callable(DETECTORS.load(kind).detect)


@pytest.mark.parametrize(
    ("spec", "example"),
    [
        ("nanodet:nanodet.json?threshold=0.4", "python:nanodet:open_nanodet?weights="),
        ("open-images-ssd:FILE", "python:open_images_ssd:open_ssd?weights="),
    ],
)
def test_detectors_that_became_examples_name_them(spec: str, example: str) -> None:
    with raises("removed-name", example, "examples/detectors", "docs/extend.md"):
        open_detector(spec)


def test_the_renderer_writes_its_scene() -> None:
    image = RenderGenerator().generate(ImageRequest("a cat to the left of a dog", 3))
    (found,) = open_detector("scene").detect([Request(image, ("cat", "dog"))])
    assert {one.label for one in found} == {"cat", "dog"}
