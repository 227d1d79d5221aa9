"""Models of transformers: detectors of boxes and masks, and a depth estimator.

All are written ``KIND:MODEL?revision=COMMIT&threshold=0.3&batch=1&device=cpu``.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from PIL.Image import Image

from ...specs import Spec
from ..checkpoints.extras import SpecAdapter
from ..checkpoints.placement import Checkpoint, find_device, first_line
from ..geometry.boxes import Size
from . import (
    Detection,
    DetectorError,
    Request,
    from_tensors,
    in_batches,
    inside,
    mask_box,
    open_detector,
    ranked,
)
from .loading import SpecDetector, class_numbers, install_torchvision, number, refuse_options

REVISIONS = {
    "IDEA-Research/grounding-dino-base": "12bdfa3120f3e7ec7b434d90674b3396eccf88eb",
    "IDEA-Research/grounding-dino-tiny": "a2bb814dd30d776dcf7e30523b00659f4f141c71",
    "facebook/sam-vit-huge": "87aecf0df4ce6b30cd7de76e87673c49644bdf67",
}
"""Commits that published evaluations used; every other Hub model needs one in its spec."""
TEMPLATE = "a photo of a {}"
"""VISOR's question to OWL."""
_COMMIT = re.compile(r"[0-9a-f]{40}")


class CheckpointModel(SpecAdapter):
    """A model of transformers: pinned, read once, put on the device that is there."""

    KIND: ClassVar[str]
    THRESHOLD: ClassVar[float] = 0.0
    """Least score where the spec gives none."""
    MODEL: ClassVar[str]
    """Class of transformers that reads the weights."""
    PROCESSOR: ClassVar[str] = "AutoProcessor"
    """Class of transformers that prepares images and words."""
    OWN: ClassVar[tuple[str, ...]] = ()
    """Options that the adapter reads itself."""

    def __init__(self, spec: Spec) -> None:
        """Raises DetectorError for an unknown option, a number out of range, a Hub model without
        its commit and files that can't be read; UsageError for a model that is not there.
        """
        import torch
        import transformers

        refuse_options(spec, ("revision", "threshold", "batch", "device", *self.OWN))
        if not spec.argument:
            raise DetectorError(
                f"{spec.kind}: write {spec.kind}:MODEL, a folder or a Hub name",
                code="missing-option",
            )
        self._threshold = number(spec, "threshold", self.THRESHOLD, 0.0, 1.0)
        # In half precision a batch is not bit-identical with single images.
        self._batch = int(number(spec, "batch", 1, 1, 1024))
        self._checkpoint = Checkpoint.find(spec.argument, _pinned(spec), "config.json")
        try:
            self._processor = self._checkpoint.load(getattr(transformers, self.PROCESSOR))
            model = self._checkpoint.load(getattr(transformers, self.MODEL))
        except (OSError, ValueError, ImportError) as error:
            problem = f"can't be read as {self.MODEL}: {first_line(error)}"
            if find_spec("torchvision") is None and "image processor" in str(error):
                # Some models' images are prepared by torchvision alone.
                problem += f"; if it needs torchvision: {install_torchvision(torch.__version__)}"
            raise DetectorError(
                f"{self._checkpoint.source} {problem}", code="wrong-model"
            ) from None
        self._device = find_device(spec.options.get("device"))
        self._model = model.to(self._device).eval()

    @property
    def batch_size(self) -> int:
        """Images that it looks at together."""
        return self._batch

    def identity(self) -> dict[str, str]:
        """With the image processor, as results differ a little between them."""
        import transformers

        images = getattr(self._processor, "image_processor", self._processor)
        return {
            "kind": self.KIND,
            "model": self._checkpoint.name,
            "revision": self._checkpoint.version,
            "threshold": f"{self._threshold:g}",
            "batch": str(self._batch),
            "processor": type(images).__name__,
            "transformers": transformers.__version__,
        }

    def _forward(self, images: Any, **more: Any) -> tuple[Any, Any]:
        """The model's outputs, and its inputs as the processor prepared them."""
        import torch

        inputs = self._processor(images=images, return_tensors="pt", **more).to(self._device)
        with torch.inference_mode():
            return self._model(**inputs), inputs


def _pinned(spec: Spec) -> str | None:
    """The commit of a Hub model; None for a folder."""
    if Path(spec.argument).is_dir():
        return None
    revision = spec.options.get("revision") or REVISIONS.get(spec.argument, "")
    if not _COMMIT.fullmatch(revision):
        raise DetectorError(
            f"{spec.kind}:{spec.argument} is no folder, and a Hub model needs its commit: add "
            f"?revision= and 40 hexadecimal digits",
            code="no-revision",
        )
    return revision


class BatchDetector(CheckpointModel, ABC):
    """A detector that looks at `batch` images at once."""

    def detect(self, requests: Sequence[Request]) -> list[list[Detection]]:
        batches = in_batches(requests, self._batch)
        return [found for batch in batches for found in self._run(batch)]

    @abstractmethod
    def _run(self, batch: Sequence[Request]) -> list[list[Detection]]:
        """Detections in images that are asked for one number of things, best first."""

    def _classes(self, batch: Sequence[Request]) -> list[dict[int, str]]:
        """Class number -> query, of each request to a closed set of classes."""
        names = self._model.config.id2label
        return [class_numbers(names, request.queries) for request in batch]

    def _read(self, what: str, outputs: Any, batch: Sequence[Request], **more: Any) -> Any:
        """What the processor's ``post_process_WHAT`` makes of the outputs, in pixels."""
        read = getattr(self._processor, f"post_process_{what}")
        sizes = [(request.image.height, request.image.width) for request in batch]
        return read(outputs, threshold=self._threshold, target_sizes=sizes, **more)


class Owl(BatchDetector):
    """OWL-ViT and OWLv2, as the checkpoint says: boxes for free text, as VISOR asks for them."""

    KIND = "owl"
    THRESHOLD = 0.1
    """VISOR's."""
    MODEL = "AutoModelForZeroShotObjectDetection"

    def _run(self, batch: Sequence[Request]) -> list[list[Detection]]:
        texts = [[TEMPLATE.format(query) for query in request.queries] for request in batch]
        outputs, _ = self._forward([request.image for request in batch], text=texts)
        results = self._read("grounded_object_detection", outputs, batch)
        return [
            from_tensors(result, dict(enumerate(request.queries)), Size(*request.image.size))
            for result, request in zip(results, batch, strict=True)
        ]


class Detr(BatchDetector):
    """Boxes of a closed set of classes; RT-DETR, which needs no timm, is preferred."""

    KIND = "detr"
    THRESHOLD = 0.3
    MODEL = "AutoModelForObjectDetection"
    PROCESSOR = "AutoImageProcessor"

    def _run(self, batch: Sequence[Request]) -> list[list[Detection]]:
        classes = self._classes(batch)
        outputs, _ = self._forward([request.image for request in batch])
        results = self._read("object_detection", outputs, batch)
        return [
            from_tensors(result, wanted, Size(*request.image.size))
            for result, request, wanted in zip(results, batch, classes, strict=True)
        ]


class GroundingDino(BatchDetector):
    """Boxes for free text; every query is scored by the surest of its own tokens.

    The model's own labels run neighboring phrases together ("fire cat"), which loses detections
    (see its issues 63, 85, 421).
    """

    KIND = "grounding-dino"
    THRESHOLD = 0.35
    """As SpatialBench-UC and PSE use it."""
    MODEL = "AutoModelForZeroShotObjectDetection"

    def _run(self, batch: Sequence[Request]) -> list[list[Detection]]:
        texts = [caption(request.queries)[0] for request in batch]
        images = [request.image for request in batch]
        outputs, _ = self._forward(images, text=texts, padding=True)
        scores = outputs.logits.float().sigmoid().cpu()
        boxes = outputs.pred_boxes.float().cpu()
        return [self._scored(r, scores[row], boxes[row]) for row, r in enumerate(batch)]

    def _scored(self, request: Request, scores: Any, boxes: Any) -> list[Detection]:
        """scores: (boxes, tokens); boxes: center and size, as shares of the image."""
        text, spans = caption(request.queries)
        offsets = self._processor.tokenizer(text, return_offsets_mapping=True)["offset_mapping"]
        size = Size(*request.image.size)
        found = []
        for query, (start, end) in zip(request.queries, spans, strict=True):
            tokens = [i for i, (a, b) in enumerate(offsets) if a < end and b > start and b > a]
            if not tokens:
                raise DetectorError(
                    f"grounding-dino: the tokenizer drops the query {query!r}", code="unsupported"
                )
            best = scores[:, tokens].max(dim=-1).values.tolist()
            for score, (cx, cy, width, height) in zip(best, boxes.tolist(), strict=True):
                ends = (cx - width / 2, cy - height / 2, cx + width / 2, cy + height / 2)
                box = inside(np.multiply(ends, (*size, *size)), size)
                if score >= self._threshold and box is not None:
                    found.append(Detection(query, score, box))
        return ranked(found)


def caption(queries: Sequence[str]) -> tuple[str, list[tuple[int, int]]]:
    """The text that Grounding DINO reads, and where in it each query stands.

    >>> caption(["cat", "Fire hydrant"])
    ('cat. fire hydrant.', [(0, 3), (5, 17)])
    """
    text, spans = "", []
    for query in queries:
        start = len(text) + bool(text)
        text += f"{' ' if text else ''}{query.lower()}."
        spans.append((start, len(text) - 1))
    return text, spans


class Mask2Former(BatchDetector):
    """Masks of a closed set of classes, by a checkpoint for instance segmentation."""

    KIND = "mask2former"
    THRESHOLD = 0.3
    """GenEval's."""
    MODEL = "AutoModelForUniversalSegmentation"
    PROCESSOR = "AutoImageProcessor"

    def _run(self, batch: Sequence[Request]) -> list[list[Detection]]:
        classes = self._classes(batch)
        outputs, _ = self._forward([request.image for request in batch])
        results = self._read("instance_segmentation", outputs, batch, return_binary_maps=True)
        return [_instances(result, wanted) for wanted, result in zip(classes, results, strict=True)]


def _instances(result: Mapping[str, Any], wanted: Mapping[int, str]) -> list[Detection]:
    found = []
    for one in result["segments_info"]:
        if one["label_id"] not in wanted:
            continue
        mask = np.asarray(result["segmentation"][one["id"]].cpu()) > 0
        if (box := mask_box(mask)) is not None:
            found.append(Detection(wanted[one["label_id"]], one["score"], box, mask))
    return ranked(found)


class ClipSeg(CheckpointModel, SpecDetector):
    """One mask a query, from text: all its instances together."""

    KIND = "clipseg"
    THRESHOLD = 0.5
    MODEL = "CLIPSegForImageSegmentation"
    PROCESSOR = "CLIPSegProcessor"

    def _found(self, request: Request) -> list[Detection]:
        import torch

        count = len(request.queries)
        texts = list(request.queries)
        outputs, _ = self._forward([request.image] * count, text=texts, padding=True)
        logits = outputs.logits.float()
        maps = torch.nn.functional.interpolate(
            logits.reshape(count, 1, *logits.shape[-2:]),
            size=(request.image.height, request.image.width),
            mode="bilinear",
            align_corners=False,
        )
        shares = maps[:, 0].sigmoid().cpu().numpy()
        found = []
        for query, share in zip(request.queries, shares, strict=True):
            mask = np.asarray(share >= self._threshold)
            if (box := mask_box(mask)) is not None:
                found.append(Detection(query, float(share.max()), box, mask))
        return ranked(found)


class SamOnBoxes(CheckpointModel):
    """``sam:MODEL?revision=COMMIT&boxes=SPEC``: masks for the detections of another detector.

    SAM, SAM-HQ, SAM 2, or the tracker of SAM 3; the last two need torchvision. `?`, `&` and `=` of
    SPEC are percent-encoded.
    """

    KIND = "sam"
    MODEL = "AutoModelForMaskGeneration"
    OWN = ("boxes",)

    def __init__(self, spec: Spec) -> None:
        if "boxes" not in spec.options:
            raise DetectorError(
                "sam: say whose boxes, e.g. sam:MODEL?boxes=grounding-dino:MODEL",
                code="missing-option",
            )
        super().__init__(spec)
        self._boxes = open_detector(spec.options["boxes"])

    @property
    def batch_size(self) -> int:
        return getattr(self._boxes, "batch_size", 1)

    def identity(self) -> dict[str, str]:
        boxes = self._boxes.identity().items()
        return super().identity() | {f"boxes_{name}": value for name, value in boxes}

    def detect(self, requests: Sequence[Request]) -> list[list[Detection]]:
        boxes = self._boxes.detect(requests)
        return [self._masked(r, found) for r, found in zip(requests, boxes, strict=True)]

    def _masked(self, request: Request, found: list[Detection]) -> list[Detection]:
        """The detections with the mask of which SAM is surest."""
        if not found:
            return []
        boxes = [[list(one.box) for one in found]]
        outputs, inputs = self._forward(request.image, input_boxes=boxes)
        # SAM pads an image, and says how large it was before; later models stretch it.
        names = ("original_sizes", "reshaped_input_sizes")
        sizes = {name: inputs[name].cpu() for name in names if name in inputs}
        masks = self._processor.post_process_masks(outputs.pred_masks.cpu(), **sizes)[0]
        best = outputs.iou_scores[0].argmax(dim=-1).tolist()
        return [
            replace(one, mask=np.asarray(masks[row, choice], dtype=bool))
            for row, (one, choice) in enumerate(zip(found, best, strict=True))
        ]


class GroundedSam(SamOnBoxes):
    """``grounded-sam:[BOXES]?sam=MODEL``: PSE's detector in one word.

    Grounding DINO (Swin-T) at 0.35 and masks by SAM (ViT-H), both pinned. BOXES is the spec of
    another detector of boxes, e.g. ``owl:MODEL``; `revision`, `threshold` and `batch` are its
    options, `sam` and `sam_revision` name the model of the masks.
    """

    KIND = "grounded-sam"
    BOXES = "grounding-dino:IDEA-Research/grounding-dino-tiny"
    SAM = "facebook/sam-vit-huge"

    def __init__(self, spec: Spec) -> None:
        refuse_options(spec, ("revision", "threshold", "batch", "device", "sam", "sam_revision"))
        boxes = Spec.parse(spec.argument or self.BOXES)
        passed = ("revision", "threshold", "batch", "device")
        own = {n: v for n, v in spec.options.items() if n in passed}
        masks = {"boxes": str(Spec(boxes.kind, boxes.argument, own))}
        if "sam_revision" in spec.options:
            masks["revision"] = spec.options["sam_revision"]
        if "device" in spec.options:
            masks["device"] = spec.options["device"]
        super().__init__(Spec(self.KIND, spec.options.get("sam", self.SAM), masks))


class DepthAnything(CheckpointModel):
    """``depth-anything:MODEL?revision=COMMIT``, a relative model: larger is nearer."""

    KIND = "depth-anything"
    MODEL = "AutoModelForDepthEstimation"
    PROCESSOR = "AutoImageProcessor"

    def nearness(self, image: Image, found: Sequence[Detection] = ()) -> NDArray[np.float32]:
        """Shape (H, W) of the image; no unit, comparable within an image."""
        outputs, _ = self._forward(image)
        (sized,) = self._processor.post_process_depth_estimation(
            outputs, target_sizes=[(image.height, image.width)]
        )
        return np.asarray(sized["predicted_depth"].cpu(), dtype=np.float32)
