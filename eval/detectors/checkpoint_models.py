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
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from PIL.Image import Image
from pydantic import Field

from ...specs import Options, Spec, TextForm, Unit
from ..checkpoints.placement import Checkpoint, DeviceOptions, find_device, first_line
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
from .loading import (
    SingleImageDetector,
    ThresholdOptions,
    class_numbers,
    install_torchvision,
)

REVISIONS = {
    "IDEA-Research/grounding-dino-base": "12bdfa3120f3e7ec7b434d90674b3396eccf88eb",
    "IDEA-Research/grounding-dino-tiny": "a2bb814dd30d776dcf7e30523b00659f4f141c71",
    "facebook/sam-vit-huge": "87aecf0df4ce6b30cd7de76e87673c49644bdf67",
}
"""Commits that published evaluations used; every other Hub model needs one in its spec."""
TEMPLATE = "a photo of a {}"
"""VISOR's question to OWL."""
_COMMIT = re.compile(r"[0-9a-f]{40}")


class PinnedOptions(DeviceOptions, ThresholdOptions):
    """Options of a model of transformers, pinned to a commit."""

    revision: str | None = None
    """Commit of the model on the Hub, 40 hexadecimal digits; required unless the package knows
    the commit of the model."""
    batch: Annotated[int, Field(ge=1, le=1024), Unit("images")] = 1
    """Images in one forward pass; in half precision, it changes the last digits."""


class CheckpointModel:
    """A model of transformers: pinned, read once, put on the device that is there."""

    KIND: ClassVar[str]
    THRESHOLD: ClassVar[float] = 0.0
    """Least score where the spec gives none."""
    MODEL: ClassVar[str]
    """Class of transformers that reads the weights."""
    PROCESSOR: ClassVar[str] = "AutoProcessor"
    """Class of transformers that prepares images and words."""
    argument: ClassVar[str] = "PATH_OR_REPO"
    options: ClassVar[type[Options]] = PinnedOptions

    @classmethod
    def from_spec(cls, spec: Spec, options: Any) -> Self:
        return cls(spec.argument, options)

    def __init__(self, model: str, options: PinnedOptions) -> None:
        """Raises DetectorError for a Hub model without its commit and files that can't be read;
        UsageError for a model that is not there.
        """
        import torch
        import transformers

        self._threshold = options.over(self.THRESHOLD)
        # In half precision a batch is not bit-identical with single images.
        self._batch = options.batch
        commit = _pinned(self.KIND, model, options.revision)
        self._checkpoint = Checkpoint.find(model, commit, "config.json")
        try:
            self._processor = self._checkpoint.load(getattr(transformers, self.PROCESSOR))
            loaded = self._checkpoint.load(getattr(transformers, self.MODEL))
        except (OSError, ValueError, ImportError) as error:
            problem = f"can't be read as {self.MODEL}: {first_line(error)}"
            if find_spec("torchvision") is None and "image processor" in str(error):
                # Some models' images are prepared by torchvision alone.
                problem += f"; if it needs torchvision: {install_torchvision(torch.__version__)}"
            source = self._checkpoint.source
            raise DetectorError(f"{source} {problem}", code="wrong-model") from None
        self._device = find_device(options.device)
        self._model = loaded.to(self._device).eval()

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

    def _forward(self, images: Any, **other_inputs: Any) -> tuple[Any, Any]:
        """Returns the model's outputs, and its inputs as the processor prepared them."""
        import torch

        inputs = self._processor(images=images, return_tensors="pt", **other_inputs)
        inputs = inputs.to(self._device)
        with torch.inference_mode():
            return self._model(**inputs), inputs


def _pinned(kind: str, model: str, revision: str | None) -> str | None:
    """Returns the commit of a Hub model; None for a folder."""
    if Path(model).is_dir():
        return None
    revision = revision or REVISIONS.get(model, "")
    if not _COMMIT.fullmatch(revision):
        raise DetectorError(
            f"{kind}:{model} is not a folder, and a Hub model needs its commit",
            "add ?revision= and 40 hexadecimal digits",
            code="missing-option",
        )
    return revision


class BatchDetector(CheckpointModel, ABC):
    """A detector that takes `batch` images at once."""

    def detect(self, requests: Sequence[Request]) -> list[list[Detection]]:
        batches = in_batches(requests, self._batch)
        return [detections for batch in batches for detections in self._run(batch)]

    @abstractmethod
    def _run(self, batch: Sequence[Request]) -> list[list[Detection]]:
        """Returns detections, best first, in images with the same number of queries."""

    def _classes(self, batch: Sequence[Request]) -> list[dict[int, str]]:
        """Class number -> query, for each request to a closed set of classes."""
        class_names = self._model.config.id2label
        return [class_numbers(class_names, request.queries) for request in batch]

    def _read(self, kind: str, outputs: Any, batch: Sequence[Request], **options: Any) -> Any:
        """Returns the result of the processor's ``post_process_KIND``, in pixels."""
        read = getattr(self._processor, f"post_process_{kind}")
        sizes = [(request.image.height, request.image.width) for request in batch]
        return read(outputs, threshold=self._threshold, target_sizes=sizes, **options)


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
        detections = []
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
                    detections.append(Detection(query, score, box))
        return ranked(detections)


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
    detections = []
    for segment in result["segments_info"]:
        if segment["label_id"] not in wanted:
            continue
        mask = np.asarray(result["segmentation"][segment["id"]].cpu()) > 0
        if (box := mask_box(mask)) is not None:
            detections.append(Detection(wanted[segment["label_id"]], segment["score"], box, mask))
    return ranked(detections)


class ClipSeg(CheckpointModel, SingleImageDetector):
    """One mask a query, from text: all its instances together."""

    KIND = "clipseg"
    THRESHOLD = 0.5
    MODEL = "CLIPSegForImageSegmentation"
    PROCESSOR = "CLIPSegProcessor"

    def detect_image(self, request: Request) -> list[Detection]:
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
        detections = []
        for query, share in zip(request.queries, shares, strict=True):
            mask = np.asarray(share >= self._threshold)
            if (box := mask_box(mask)) is not None:
                detections.append(Detection(query, float(share.max()), box, mask))
        return ranked(detections)


class SamOptions(PinnedOptions):
    """Options of `sam`."""

    boxes: Annotated[str, TextForm("the spec of a detector of boxes")]
    """Detector whose boxes get masks; its `?`, `&` and `=` are percent-encoded."""


class SamOnBoxes(CheckpointModel):
    """``sam:MODEL?revision=COMMIT&boxes=SPEC``: masks for the detections of another detector.

    SAM, SAM-HQ, SAM 2, or the tracker of SAM 3; the last two need torchvision.
    """

    KIND = "sam"
    MODEL = "AutoModelForMaskGeneration"
    options: ClassVar[type[Options]] = SamOptions

    def __init__(self, model: str, options: SamOptions) -> None:
        """Raises as `CheckpointModel`, and the errors of opening the other detector."""
        super().__init__(model, options)
        self._boxes = open_detector(options.boxes)

    @property
    def batch_size(self) -> int:
        return getattr(self._boxes, "batch_size", 1)

    def identity(self) -> dict[str, str]:
        boxes = self._boxes.identity().items()
        return super().identity() | {f"boxes_{name}": value for name, value in boxes}

    def detect(self, requests: Sequence[Request]) -> list[list[Detection]]:
        boxes = self._boxes.detect(requests)
        return [self._masked(r, detections) for r, detections in zip(requests, boxes, strict=True)]

    def _masked(self, request: Request, detections: list[Detection]) -> list[Detection]:
        """Returns the detections with the mask of SAM's highest predicted IoU."""
        if not detections:
            return []
        boxes = [[list(detection.box) for detection in detections]]
        outputs, inputs = self._forward(request.image, input_boxes=boxes)
        # SAM pads an image, and returns its size before that; later models stretch it.
        size_fields = ("original_sizes", "reshaped_input_sizes")
        sizes = {name: inputs[name].cpu() for name in size_fields if name in inputs}
        masks = self._processor.post_process_masks(outputs.pred_masks.cpu(), **sizes)[0]
        best = outputs.iou_scores[0].argmax(dim=-1).tolist()
        return [
            replace(detection, mask=np.asarray(masks[row, choice], dtype=bool))
            for row, (detection, choice) in enumerate(zip(detections, best, strict=True))
        ]


class GroundedSamOptions(PinnedOptions):
    """Options of `grounded-sam`, for its detector of boxes and its model of masks."""

    sam: str = "facebook/sam-vit-huge"
    """Model of the masks, a folder or a repository."""
    sam_revision: str | None = None
    """Commit of the model of the masks."""


class GroundedSam(SamOnBoxes):
    """``grounded-sam:[BOXES]?sam=MODEL``: PSE's detector in one word.

    Grounding DINO (Swin-T) at 0.35 and masks by SAM (ViT-H), both pinned. BOXES is the spec of
    another detector of boxes, e.g. ``owl:MODEL``.
    """

    KIND = "grounded-sam"
    BOXES = "grounding-dino:IDEA-Research/grounding-dino-tiny"
    argument = "[BOXES]"
    options = GroundedSamOptions

    @classmethod
    def from_spec(cls, spec: Spec, options: Any) -> Self:
        boxes = Spec.parse(spec.argument or cls.BOXES)
        passed = {n: text for n, text in spec.options.items() if n in PinnedOptions.model_fields}
        masks = SamOptions(
            boxes=str(Spec(boxes.kind, boxes.argument, passed)),
            revision=options.sam_revision,
            device=options.device,
        )
        return cls(options.sam, masks)


class DepthAnything(CheckpointModel):
    """``depth-anything:MODEL?revision=COMMIT``, a relative model: larger is nearer."""

    KIND = "depth-anything"
    MODEL = "AutoModelForDepthEstimation"
    PROCESSOR = "AutoImageProcessor"

    def nearness(self, image: Image, detections: Sequence[Detection] = ()) -> NDArray[np.float32]:
        """Returns nearness, shape (H, W) of the image; no unit, comparable within an image."""
        outputs, _ = self._forward(image)
        (sized,) = self._processor.post_process_depth_estimation(
            outputs, target_sizes=[(image.height, image.width)]
        )
        return np.asarray(sized["predicted_depth"].cpu(), dtype=np.float32)
