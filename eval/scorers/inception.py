"""`inception`: the features of the published FID, ``inception:inception-2015-12-05.pt``.

The file is the network of 2015 as a TorchScript program, as NVIDIA published it with StyleGAN2-ADA:
it resizes images as TensorFlow did and needs no definition from torchvision. It is not downloaded.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ...errors import UsageError
from ...specs import Options, Spec
from ..checkpoints.placement import DeviceOptions, LoadError, find_device

if TYPE_CHECKING:
    from PIL.Image import Image

    from ..stats.bootstrap import Array


class InceptionFeatures:
    """Calls the program with (1, 3, height, width) bytes as floats and ``return_features=True``."""

    argument: ClassVar[str] = "FILE"
    options: ClassVar[type[Options]] = DeviceOptions
    distances: ClassVar[tuple[str, ...]] = ("fid", "kid", "precision", "recall")
    batch = 1

    @classmethod
    def from_spec(cls, spec: Spec, options: DeviceOptions) -> InceptionFeatures:
        return cls(Path(spec.argument), options.device)

    def __init__(self, path: Path, device: str | None = None) -> None:
        """Raises UsageError for a file or device that is not there."""
        self.path = path
        if not path.is_file():
            remedy = "name the TorchScript file inception-2015-12-05.pt"
            raise UsageError(f"inception: {path} is not there", remedy, code="no-such-file")
        self.device = find_device(device)
        with self.path.open("rb") as file:
            self._digest = hashlib.file_digest(file, "sha256").hexdigest()

    def identity(self) -> dict[str, str]:
        import torch

        device = self.device.partition(":")[0]
        return {
            "kind": "inception",
            "model": self.path.name,
            "revision": f"sha256:{self._digest[:16]}",
            "device": device,
            "torch": torch.__version__,
        }

    @cached_property
    def network(self) -> Any:
        import torch

        try:
            with warnings.catch_warnings():
                # Deprecated in torch 2.13, but this is the form in which the network is published.
                warnings.simplefilter("ignore", DeprecationWarning)
                load: Any = torch.jit.load
                return load(str(self.path), map_location=self.device).eval()
        except RuntimeError as error:
            raise LoadError(
                f"{self.path} is not a TorchScript program: {error}", code="load-failed"
            ) from None

    def features(self, images: Sequence[Image]) -> Array:
        import torch

        batches = []
        with torch.inference_mode():
            for image in images:
                pixels = torch.from_numpy(np.array(image.convert("RGB"))).permute(2, 0, 1)[None]
                features = self.network(pixels.to(self.device, torch.float32), return_features=True)
                batches.append(features.reshape(-1).double().cpu().numpy())
        return np.stack(batches)
