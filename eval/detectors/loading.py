"""Detectors of transformers: pinned, read once, put on the device that is there."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

from ...specs import Spec
from ..checkpoints.placement import Checkpoint, find_device, first_line
from . import Detection, DetectorError, Request, in_batches

REVISIONS = {
    "IDEA-Research/grounding-dino-base": "12bdfa3120f3e7ec7b434d90674b3396eccf88eb",
}
"""Commits that published evaluations used; every other Hub model needs one in its spec."""
_COMMIT = re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True)
class DetectorSettings:
    """Which weights, and how they are run."""

    checkpoint: Checkpoint
    """Folder, or repository at a commit."""
    threshold: float
    """Least score of a detection."""
    batch: int
    """Images at once. In half precision a batch is not bit-identical with single images."""
    device: str
    """As torch names it; empty for a GPU where there is one."""

    @classmethod
    def from_spec(
        cls, spec: Spec, threshold: float = 0.0, own: tuple[str, ...] = ()
    ) -> DetectorSettings:
        """From ``kind:MODEL?revision=COMMIT&threshold=0.3&batch=1&device=cpu``.

        own: options that the adapter reads itself. Raises DetectorError for an unknown option, a
        number out of range, or a Hub model without its commit, UsageError for a model that is
        not there.
        """
        refuse_options(spec, ("revision", "threshold", "batch", "device", *own))
        if not spec.argument:
            raise DetectorError(f"{spec.kind}: write {spec.kind}:MODEL, a folder or a Hub name")
        least = number(spec, "threshold", threshold, 0.0, 1.0)
        batch = int(number(spec, "batch", 1, 1, 1024))
        checkpoint = Checkpoint.find(spec.argument, _pinned(spec), "config.json")
        return cls(checkpoint, least, batch, spec.options.get("device", ""))

    def load(self, model_class: str, processor_class: str) -> tuple[Any, Any, str]:
        """Model in evaluation mode, processor and device. DetectorError where it can't be read."""
        import transformers

        try:
            processor = self.checkpoint.load(getattr(transformers, processor_class))
            model = self.checkpoint.load(getattr(transformers, model_class))
        except (OSError, ValueError, ImportError) as error:
            problem = f"can't be read as {model_class}: {first_line(error)}"
            raise DetectorError(f"{self.checkpoint.source} {problem}") from None
        device = find_device(self.device)
        return model.to(device).eval(), processor, device

    def identity(self, kind: str, processor: Any) -> dict[str, str]:
        """For every record: results differ a little between image processors."""
        import transformers

        images = getattr(processor, "image_processor", processor)
        return {
            "kind": kind,
            "model": self.checkpoint.name,
            "revision": self.checkpoint.version,
            "threshold": f"{self.threshold:g}",
            "batch": str(self.batch),
            "processor": type(images).__name__,
            "transformers": transformers.__version__,
        }


def _pinned(spec: Spec) -> str | None:
    """The commit of a Hub model; None for a folder."""
    if Path(spec.argument).is_dir():
        return None
    revision = spec.options.get("revision") or REVISIONS.get(spec.argument, "")
    if not _COMMIT.fullmatch(revision):
        raise DetectorError(
            f"{spec.kind}:{spec.argument} is no folder, and a Hub model needs its commit: add "
            f"?revision= and 40 hexadecimal digits"
        )
    return revision


class CheckpointDetector(ABC):
    """A detector of transformers: what it is, and images in batches."""

    KIND: ClassVar[str]
    """Of the spec ``KIND:MODEL?revision=COMMIT&threshold=THRESHOLD&batch=1``."""
    THRESHOLD: ClassVar[float]
    """Least score where the spec gives none."""
    MODEL: ClassVar[str]
    """Class of transformers that reads the weights."""
    PROCESSOR: ClassVar[str]
    """Class of transformers that prepares images and words."""

    def __init__(self, settings: DetectorSettings) -> None:
        """Raises DetectorError where the checkpoint can't be read."""
        self._settings = settings
        self._model, self._processor, self._device = settings.load(self.MODEL, self.PROCESSOR)

    @classmethod
    def from_spec(cls, spec: Spec) -> Self:
        return cls(DetectorSettings.from_spec(spec, cls.THRESHOLD))

    def identity(self) -> dict[str, str]:
        return self._settings.identity(self.KIND, self._processor)

    def detect(self, requests: Sequence[Request]) -> list[list[Detection]]:
        batches = in_batches(requests, self._settings.batch)
        return [found for batch in batches for found in self._run(batch)]

    @abstractmethod
    def _run(self, batch: Sequence[Request]) -> list[list[Detection]]:
        """Detections in images that are asked for one number of things, best first."""


class FileDetector(ABC):
    """A detector whose weights are one file: ``KIND:FILE?threshold=THRESHOLD``."""

    KIND: ClassVar[str]
    """Of the spec."""
    THRESHOLD: ClassVar[float]
    """Least score where the spec gives none."""

    @abstractmethod
    def __init__(self, path: Path, threshold: float) -> None:
        """Raises DetectorError where the file or its runtime can't be used."""

    @classmethod
    def from_spec(cls, spec: Spec) -> Self:
        refuse_options(spec, ("threshold",))
        return cls(Path(spec.argument), number(spec, "threshold", cls.THRESHOLD, 0, 1))

    def detect(self, requests: Sequence[Request]) -> list[list[Detection]]:
        return [self._found(request) for request in requests]

    @abstractmethod
    def _found(self, request: Request) -> list[Detection]:
        """Detections in one image, best first."""


def refuse_options(spec: Spec, known: Sequence[str]) -> None:
    """Raises DetectorError for an option that is not known."""
    if unknown := sorted(set(spec.options) - set(known)):
        raise DetectorError(
            f"{spec.kind}: no option {unknown[0]!r}: choose from {', '.join(sorted(known))}"
        )


def number(spec: Spec, name: str, default: float, low: float, high: float) -> float:
    """An option as a number; DetectorError unless it is in [low, high]."""
    text = spec.options.get(name)
    try:
        value = default if text is None else float(text)
    except ValueError:
        raise DetectorError(f"{spec.kind}: {name} must be a number, is {text!r}") from None
    if not low <= value <= high:
        raise DetectorError(f"{spec.kind}: {name}={text} is not in [{low:g}, {high:g}]")
    return value
