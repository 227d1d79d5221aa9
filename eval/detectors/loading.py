"""Checkpoints of transformers: pinned, read once, put on the device that is there."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

from ...specs import Spec
from . import Detection, DetectorError, Request, in_batches

REVISIONS = {
    "IDEA-Research/grounding-dino-base": "12bdfa3120f3e7ec7b434d90674b3396eccf88eb",
}
"""Commits that published evaluations used; any other model wants one written."""
_COMMIT = re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True)
class Checkpoint:
    """Which weights, how run."""

    model: str
    """Folder, or name on the Hub."""
    revision: str
    """Commit; `local` for a folder."""
    threshold: float
    """Least score of a detection."""
    batch: int
    """Images at once. In half precision a batch is not bit-identical with single images."""
    device: str
    """As torch names it; empty for a GPU where there is one."""

    @classmethod
    def from_spec(cls, spec: Spec, threshold: float, own: tuple[str, ...] = ()) -> Checkpoint:
        """From ``kind:MODEL?revision=COMMIT&threshold=0.3&batch=1&device=cpu``.

        `own` are options that the adapter reads itself. Raises DetectorError for an unknown option,
        a number out of range, or a model on the Hub without its commit.
        """
        known = {"revision", "threshold", "batch", "device", *own}
        if unknown := sorted(set(spec.options) - known):
            raise DetectorError(
                f"{spec.kind}: no option {unknown[0]!r}: choose from {', '.join(sorted(known))}"
            )
        if not spec.argument:
            raise DetectorError(f"{spec.kind}: write {spec.kind}:MODEL, a folder or a Hub name")
        local = Path(spec.argument).is_dir()
        revision = spec.options.get("revision") or REVISIONS.get(spec.argument, "")
        if not local and not _COMMIT.fullmatch(revision):
            raise DetectorError(
                f"{spec.kind}:{spec.argument} is no folder, and a Hub model needs its commit: add "
                f"?revision= and 40 hexadecimal digits"
            )
        return cls(
            spec.argument,
            "local" if local else revision,
            number(spec, "threshold", threshold, 0.0, 1.0),
            int(number(spec, "batch", 1, 1, 1024)),
            spec.options.get("device", ""),
        )

    def load(self, model_class: str, processor_class: str) -> tuple[Any, Any, str]:
        """Model in evaluation mode, processor and device. DetectorError where it can't be read."""
        import torch
        import transformers

        extra = {} if self.revision == "local" else {"revision": self.revision}
        try:
            processor = getattr(transformers, processor_class).from_pretrained(self.model, **extra)
            model = getattr(transformers, model_class).from_pretrained(self.model, **extra)
        except (OSError, ValueError, ImportError) as error:
            reason = str(error).strip().splitlines()[0]
            raise DetectorError(f"{self.model} can't be read as {model_class}: {reason}") from None
        device = self.device or ("cuda" if torch.cuda.is_available() else "cpu")
        return model.to(device).eval(), processor, device

    def identity(self, kind: str, processor: Any) -> dict[str, str]:
        """For every record: results differ a little between image processors."""
        import transformers

        images = getattr(processor, "image_processor", processor)
        return {
            "kind": kind,
            "model": self.model,
            "revision": self.revision,
            "threshold": f"{self.threshold:g}",
            "batch": str(self.batch),
            "processor": type(images).__name__,
            "transformers": transformers.__version__,
        }


class CheckpointDetector(ABC):
    """A detector of transformers: what it is, and images in batches."""

    KIND: ClassVar[str]
    """Of the spec ``KIND:MODEL?revision=COMMIT&threshold=THRESHOLD&batch=1``."""
    THRESHOLD: ClassVar[float]
    """Least score where the spec says none."""
    MODEL: ClassVar[str]
    """Class of transformers that reads the weights."""
    PROCESSOR: ClassVar[str]
    """Class of transformers that reads how images and words are prepared."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        """Raises DetectorError where the checkpoint can't be read."""
        self._checkpoint = checkpoint
        self._model, self._processor, self._device = checkpoint.load(self.MODEL, self.PROCESSOR)

    @classmethod
    def from_spec(cls, spec: Spec) -> Self:
        return cls(Checkpoint.from_spec(spec, cls.THRESHOLD))

    def identity(self) -> dict[str, str]:
        return self._checkpoint.identity(self.KIND, self._processor)

    def detect(self, requests: Sequence[Request]) -> list[list[Detection]]:
        batches = in_batches(requests, self._checkpoint.batch)
        return [found for batch in batches for found in self._run(batch)]

    @abstractmethod
    def _run(self, batch: Sequence[Request]) -> list[list[Detection]]:
        """Detections of images that are asked for one number of things, best first."""


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
