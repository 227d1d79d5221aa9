"""Shared code of local models: checkpoint, device and batches of scorers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

from pydantic import PositiveInt

from ...specs import Options, Spec, Unit
from ..checkpoints.placement import Checkpoint, DeviceOptions, Dtype, LoadError, Placement
from ..judges import CallPlan

if TYPE_CHECKING:
    import torch
    from PIL.Image import Image


class LocalModelOptions(DeviceOptions):
    """Options of every local model."""

    revision: str | None = None
    """Branch, tag or commit on the Hub. The run records the commit."""
    dtype: Dtype = "float32"
    """Number format of the computation; the published scores were computed in float32."""


class LocalScorerOptions(LocalModelOptions):
    """Options of every local scorer."""

    batch: Annotated[PositiveInt, Unit("pairs")] = 1
    """Pairs of prompt and image in one forward pass; the last digits of a score depend on it."""


class LocalModel:
    """A model of transformers on this machine: ``KIND:FOLDER_OR_REPO?device=cuda``.

    It computes in float32 unless `dtype` says otherwise, as the published scores were computed.
    """

    KIND: ClassVar[str]
    MODEL: ClassVar[str]
    """Repository where the spec names none."""
    MARKER: ClassVar[str] = "config.json"
    """File at the top of the checkpoint."""
    argument: ClassVar[str] = "[PATH_OR_REPO]"

    def __init__(self, model: str, options: LocalModelOptions) -> None:
        """model: folder or repository; empty for the published one. Raises UsageError for a model
        that isn't there."""
        self.checkpoint = Checkpoint.find(model or self.MODEL, options.revision, self.MARKER)
        self.placement = Placement.find(options.device, options.dtype)

    def identity(self) -> dict[str, str]:
        import transformers

        return {
            "kind": self.KIND,
            "model": self.checkpoint.name,
            "revision": self.checkpoint.version,
            "transformers": transformers.__version__,
            **self.placement.identity(),
        }

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


class LocalScorer(LocalModel, ABC):
    """A model that scores images, in batches: ``KIND:FOLDER_OR_REPO?batch=16``."""

    options: ClassVar[type[Options]] = LocalScorerOptions

    def __init__(self, model: str, options: LocalScorerOptions) -> None:
        """model: folder or repository; empty for the published one. Raises UsageError for a model
        that isn't there."""
        super().__init__(model, options)
        self.batch = options.batch

    @classmethod
    def from_spec(
        cls, spec: Spec, options: LocalScorerOptions, plan: CallPlan | None = None
    ) -> Self:
        """Raises UsageError for a model that isn't there."""
        return cls(spec.argument, options)

    def identity(self) -> dict[str, str]:
        return {**super().identity(), "batch": str(self.batch)}

    def score(self, pairs: Sequence[tuple[str, Image]]) -> list[float]:
        """Raises LoadError where the model's files can't be loaded."""
        import torch

        with torch.inference_mode():
            scores = self._scores(
                [prompt for prompt, _ in pairs], [image.convert("RGB") for _, image in pairs]
            )
        values: list[float] = scores.float().cpu().tolist()
        return values

    @abstractmethod
    def _scores(self, prompts: Sequence[str], images: Sequence[Image]) -> torch.Tensor:
        """Shape (n,)."""
