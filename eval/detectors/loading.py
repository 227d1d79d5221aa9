"""Shared code of detectors: options, weights in one file, closed sets of classes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Self

from ...specs import Options, Share, Spec
from . import Detection, DetectorError, Request

ALIASES = {
    "airplane": "aeroplane",
    "couch": "sofa",
    "dining table": "diningtable",
    "motorcycle": "motorbike",
    "potted plant": "pottedplant",
    "tv": "tvmonitor",
}
"""COCO's names, and what checkpoints that were trained with VOC's spelling (RT-DETR) call them."""
COCO = tuple(Path(__file__).with_name("coco.txt").read_text("utf-8").splitlines())
"""The 80 classes that detectors are trained on, in COCO's order."""


class ThresholdOptions(Options):
    """Options of a detector with a threshold."""

    threshold: Share | None = None
    """Smallest score of a detection; by default the threshold that is usual for the model."""

    def over(self, usual: float) -> float:
        """The threshold, `usual` where a spec gives none."""
        return usual if self.threshold is None else self.threshold


class SingleImageDetector(ABC):
    """A detector that looks at one image at a time."""

    def detect(self, requests: Sequence[Request]) -> list[list[Detection]]:
        return [self.detect_image(request) for request in requests]

    @abstractmethod
    def detect_image(self, request: Request) -> list[Detection]:
        """Detections in one image, best first."""


class FileDetector(SingleImageDetector):
    """A detector whose weights are one file: ``KIND:FILE?threshold=THRESHOLD``."""

    KIND: ClassVar[str]
    THRESHOLD: ClassVar[float]
    """Least score where the spec gives none."""
    argument: ClassVar[str] = "FILE"
    options: ClassVar[type[Options]] = ThresholdOptions

    def __init__(self, path: Path, options: ThresholdOptions) -> None:
        """Raises DetectorError where file or runtime can't be used."""
        self._threshold = options.over(self.THRESHOLD)
        self._digest = self.read_weights(path)

    @classmethod
    def from_spec(cls, spec: Spec, options: ThresholdOptions) -> Self:
        return cls(Path(spec.argument), options)

    @abstractmethod
    def read_weights(self, path: Path) -> str:
        """Reads the weights; their SHA-256. DetectorError where file or runtime can't be used."""

    def identity(self) -> dict[str, str]:
        return {
            "kind": self.KIND,
            "weights_sha256": self._digest,
            "threshold": f"{self._threshold:g}",
        }


def class_numbers(class_names: Mapping[int, str], queries: Sequence[str]) -> dict[int, str]:
    """Returns class number -> query. Raises DetectorError for a query outside the classes.

    >>> class_numbers({1: "cat", 2: "Potted plant"}, ["potted plant"])
    {2: 'potted plant'}
    """
    numbers = {name.lower(): number for number, name in class_names.items()}
    query_of: dict[int, str] = {}
    for query in queries:
        name = query.lower()
        if name not in numbers:
            name = ALIASES.get(name, name)
        if name not in numbers:
            raise DetectorError(
                f"the detector has no class {query!r} among its {len(numbers)}",
                code="unknown-class",
            )
        query_of[numbers[name]] = query
    return query_of


def install_torchvision(torch_version: str) -> str:
    """Command that installs the torchvision of a torch: minor version 15 ahead, the same index.

    >>> install_torchvision("2.13.0+cpu")
    "pip install 'torchvision==0.28.*' --index-url https://download.pytorch.org/whl/cpu"
    >>> install_torchvision("2.13.0")
    "pip install 'torchvision==0.28.*'"
    """
    release, _, build = torch_version.partition("+")
    command = f"pip install 'torchvision==0.{int(release.split('.')[1]) + 15}.*'"
    return f"{command} --index-url https://download.pytorch.org/whl/{build}" if build else command
