"""Every name that a config asks for is one that detectors of COCO's classes accept."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow.parquet as pq
import pytest
from nanodet import NanoDet
from open_images_ssd import MEANS, OpenImagesSsd
from PIL import Image
from refusals import raises

from counterprior.eval.detectors import DetectorError, Request, open_detector
from counterprior.eval.detectors.checkpoint_models import Detr
from counterprior.eval.detectors.faster_rcnn import FasterRcnn
from counterprior.eval.detectors.loading import ALIASES, COCO, class_numbers
from counterprior.release import parquet_path

CONFIGS = ("spatial_uc", "spatial_visor", "spatial_multi")
"""Configs whose things are COCO's."""
VOC = [ALIASES.get(name, name) for name in COCO]
"""The spelling of checkpoints that were trained with VOC's names."""


@pytest.fixture(scope="module")
def names(full_release: Path) -> set[str]:
    found: set[str] = set()
    for config in CONFIGS:
        columns = ["objects"] if config == "spatial_multi" else ["object_a", "object_b"]
        table = pq.read_table(full_release / parquet_path(config), columns=columns)
        for column in table.columns:
            flat = column.combine_chunks()
            found |= set((flat.flatten() if config == "spatial_multi" else flat).to_pylist())
    return found


def without_weights(kind: type, **parts: Any) -> Any:
    """A detector that was never loaded, whose model finds nothing."""
    detector = object.__new__(kind)
    vars(detector).update(_threshold=0.5, **parts)
    return detector


def nothing(*_: Any, **__: Any) -> Any:
    """What a model without detections puts out."""
    import torch

    return torch.zeros(0, 4), torch.zeros(0, 80)


@pytest.mark.filterwarnings("ignore")
def test_every_name_of_every_config_is_accepted(
    names: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    torch = pytest.importorskip("torch")
    assert len(names) == 80 and {"hot dog", "fire hydrant", "sports ball", "wine glass"} <= names
    assert all(name == " ".join(name.split()) for name in names)
    image = Image.new("RGB", (64, 48))
    empty = {
        name: torch.zeros(0, *more)
        for name, more in (("labels", ()), ("scores", ()), ("boxes", (4,)))
    }
    detectors = {
        "nanodet": without_weights(NanoDet, _run=nothing),
        "faster-rcnn": without_weights(
            FasterRcnn, _names=dict(enumerate(COCO, 1)), _device="cpu", _model=lambda _: [empty]
        ),
    }
    for spelling in (COCO, VOC):
        model = SimpleNamespace(config=SimpleNamespace(id2label=dict(enumerate(spelling))))
        monkeypatch.setattr(Detr, "_forward", lambda *_, **__: (None, None))
        monkeypatch.setattr(Detr, "_read", lambda *_, **__: [empty])
        detectors[f"detr {spelling[4]}"] = without_weights(Detr, _model=model, _batch=1)
    for kind, detector in detectors.items():
        for name in sorted(names):
            (found,) = detector.detect([Request(image, (name,))])
            assert found == [], kind
        with raises("unknown-class", "hotdog", error=DetectorError):
            detector.detect([Request(image, ("hotdog",))])


def test_a_name_is_answered_by_its_own_class_and_never_by_a_wider_one() -> None:
    known = "Bicycle Laptop Cattle Mug Vehicle Car Table Person".split()
    ssd = without_weights(OpenImagesSsd, _names=dict(enumerate(known, 1)))
    with raises("unknown-class", "motorcycle", error=DetectorError):
        ssd.detect([Request(Image.new("RGB", (64, 48)), ("motorcycle",))])
    assert all("vehicle" not in meant for meant in MEANS.values())
    assert class_numbers(dict(enumerate(VOC)), ["motorcycle", "tv"]) == {3: "motorcycle", 62: "tv"}


def test_recorded_masks_are_read_with_their_detections(tmp_path: Path) -> None:
    rle = {"size": [3, 2], "counts": [4, 2]}
    row = {
        "sample_id": "s",
        "detections": [{"label": "cat", "score": 0.5, "box_xyxy": [1, 1, 2, 3], "mask": rle}],
    }
    own = tmp_path / "own.jsonl"
    own.write_text(json.dumps(row) + "\n")
    coco = tmp_path / "coco.json"
    entry = {"image_id": 1, "category_id": 3, "bbox": [1, 1, 1, 2], "score": 0.5}
    coco.write_text(json.dumps([entry | {"segmentation": rle}]))
    names = tmp_path / "names.json"
    names.write_text(
        json.dumps(
            {
                "categories": [{"id": 3, "name": "cat"}],
                "images": [{"id": 1, "file_name": "s"}],
            }
        )
    )
    image = Image.new("RGB", (2, 3))
    for text in (f"recorded:{own}", f"recorded:{coco}?names={names}"):
        ((found,),) = open_detector(text).detect([Request(image, ("cat",), "s")])
        assert found.mask is not None
        assert found.mask.tolist() == [[False, False], [False, True], [False, True]]


def test_the_classes_of_coco() -> None:
    assert len(set(COCO)) == 80 and (COCO[0], COCO[61], COCO[79]) == (
        "person",
        "toilet",
        "toothbrush",
    )
    assert class_numbers(dict(enumerate(COCO)), ["TV", "couch"]) == {62: "TV", 57: "couch"}
    assert class_numbers({57: "sofa"}, ["couch"]) == {57: "couch"}
    assert {"fire hydrant", "sports ball", "wine glass", "hot dog"} <= set(COCO)
    assert not any("\n" in name or "  " in name for name in COCO)
