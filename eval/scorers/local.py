"""What scorers that run here share: a checkpoint, where it computes, and how much at a time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Self

from ...errors import UsageError
from ...specs import Spec
from ..checkpoints.placement import Checkpoint, LoadError, Placement

if TYPE_CHECKING:
    import torch
    from PIL.Image import Image

SETTINGS = ("revision", "device", "dtype", "batch")
"""Options of every local scorer."""


class LocalScorer(ABC):
    """A model of transformers on this machine: ``KIND:FOLDER_OR_REPO?batch=16&device=cuda``.

    It computes in float32 unless `dtype` says otherwise, as the published scores were computed.
    """

    KIND: ClassVar[str]
    MODEL: ClassVar[str]
    """Repository where the spec names none."""
    MARKER: ClassVar[str] = "config.json"
    """File at the top of the checkpoint."""
    OPTIONS: ClassVar[tuple[str, ...]] = ()
    """Options of its own."""

    def __init__(
        self, checkpoint: Checkpoint, placement: Placement, batch: int, options: Mapping[str, str]
    ) -> None:
        """batch: pairs in one forward pass; the last digits of a score depend on it."""
        self.checkpoint = checkpoint
        self.placement = placement
        self.batch = batch
        self.options = dict(options)

    @classmethod
    def from_spec(cls, spec: Spec) -> Self:
        """Raises UsageError for a wrong option or a model that isn't there."""
        options = dict(spec.options)
        known = (*SETTINGS, *cls.OPTIONS)
        if unknown := sorted(set(options) - set(known)):
            raise UsageError(
                f"{spec.kind}: no option {unknown[0]!r}: choose from {known}", code="unknown-option"
            )
        model = spec.argument or cls.MODEL
        checkpoint = Checkpoint.find(model, options.pop("revision", None), cls.MARKER)
        placement = Placement.from_options({"dtype": "float32", **options})
        batch = options.pop("batch", "1")
        if not (batch.isascii() and batch.isdigit() and int(batch) > 0):
            raise UsageError(
                f"{spec.kind}: batch is a whole number from 1, not {batch!r}", code="not-a-number"
            )
        own = {name: options[name] for name in cls.OPTIONS if name in options}
        return cls(checkpoint, placement, int(batch), own)

    def identity(self) -> dict[str, str]:
        import transformers

        return {
            "kind": self.KIND,
            "model": self.checkpoint.name,
            "revision": self.checkpoint.version,
            "batch": str(self.batch),
            "transformers": transformers.__version__,
            **self.placement.identity(),
        }

    def score(self, pairs: Sequence[tuple[str, Image]]) -> list[float]:
        """Raises LoadError where the model's files can't be loaded."""
        import torch

        with torch.inference_mode():
            scores = self._scores(
                [prompt for prompt, _ in pairs], [image.convert("RGB") for _, image in pairs]
            )
        found: list[float] = scores.float().cpu().tolist()
        return found

    @abstractmethod
    def _scores(self, prompts: Sequence[str], images: Sequence[Image]) -> torch.Tensor:
        """Shape (n,)."""

    def placed(self, model: Any) -> Any:
        """The model where it computes, in its numbers, for inference."""
        return model.to(self.placement.device, self.placement.torch_dtype).eval()

    @contextmanager
    def loading(self) -> Iterator[None]:
        """Turns whatever loading files raises into a LoadError that names the model."""
        try:
            yield
        except LoadError:
            raise
        except Exception as error:  # whatever its files or the device make of it
            raise LoadError(
                f"{self.checkpoint.name} can't be loaded: {error}", code="load-failed"
            ) from error
