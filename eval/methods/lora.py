"""`lora`: a generator with tuned weights, as `counterprior tune` or another trainer wrote them.

``lora:FOLDER[?scale=1]``. The folder holds safetensors that diffusers can load.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, ClassVar, Protocol, runtime_checkable

from PIL.Image import Image
from pydantic import Field

from ...clip_files import Clip
from ...errors import UsageError
from ...specs import Options, Spec
from ..checkpoints.placement import LoadError
from ..core import Generator, ImageRequest
from . import Method, find_pipeline, has_pipeline, refuse

ABLE = "diffusers: or render:"


@runtime_checkable
class Tunable(Protocol):
    """A generator that reads its own kind of tuned weights."""

    def tuned(self, folder: Path, scale: float) -> Generator:
        """The same with the weights of a folder; raises UsageError for a folder without them."""
        ...


class LoraOptions(Options):
    """Options of `lora`."""

    scale: Annotated[float, Field(gt=0)] = 1
    """Factor of the low-rank weights."""


class Lora(Method):
    """A generator with tuned weights; they are loaded with the first image."""

    argument: ClassVar[str] = "FOLDER"
    options: ClassVar[type[Options]] = LoraOptions

    def __init__(self, inner: Generator, folder: Path, scale: float = 1.0) -> None:
        """Raises UsageError for a generator without weights to tune, and a folder without
        weights."""
        super().__init__(inner)
        self._folder = folder
        self._scale = scale
        self._digest = _digest(folder)
        self._adapter = f"counterprior_{self._digest}"
        if isinstance(inner, Method):
            raise UsageError(
                "lora: name it first, and only once: other methods work on tuned weights",
                code="conflicting-options",
            )
        self._untuned = inner
        if isinstance(inner, Tunable):
            self.inner = inner.tuned(folder, scale)
        elif not has_pipeline(inner):
            raise refuse("lora", inner, ABLE)

    @classmethod
    def from_spec(cls, spec: Spec, options: LoraOptions, inner: Generator) -> Lora:
        """Raises UsageError for a folder without weights."""
        return cls(inner, Path(spec.argument), options.scale)

    @property
    def name(self) -> str:
        scale = f"?scale={self._scale:g}" if self._scale != 1 else ""
        return f"lora:{self._folder.resolve().name}@{self._digest}{scale}"

    def identity(self) -> dict[str, str]:
        """Identity of the untuned generator, with the digest of the weights."""
        return {**self._untuned.identity(), "method": self.name}

    def generate(self, request: ImageRequest) -> Image | Clip | Path:
        """Raises LoadError for weights that don't fit the model."""
        if not has_pipeline(self.inner):
            return self.inner.generate(request)
        with self._active():
            return self.inner.generate(request)

    @contextmanager
    def _active(self) -> Iterator[None]:
        """Within it, the pipeline has these weights alone; another method may share it."""
        pipeline = find_pipeline(self.inner)
        loaded = {name for adapters in pipeline.get_list_adapters().values() for name in adapters}
        if self._adapter not in loaded:
            try:
                pipeline.load_lora_weights(str(self._folder), adapter_name=self._adapter)
            except Exception as error:  # whatever the files make of it
                raise LoadError(
                    f"{self._folder} can't be loaded: {error}", code="load-failed"
                ) from error
        pipeline.enable_lora()
        pipeline.set_adapters([self._adapter], [self._scale])
        try:
            yield
        finally:
            pipeline.disable_lora()


def _digest(folder: Path) -> str:
    """12 digits of the SHA-256 of a folder's weights. Raises UsageError where there are none."""
    total = hashlib.sha256()
    files = sorted([*folder.glob("*.safetensors"), *folder.glob("render.json")])
    if not files:
        raise UsageError(f"lora: {folder} holds no weights (*.safetensors)", code="no-such-file")
    for path in files:
        with path.open("rb") as file:
            content = hashlib.file_digest(file, "sha256").hexdigest()
        total.update(f"{path.name} {content}\n".encode())
    return total.hexdigest()[:12]
