"""Features of images by which sets of images are compared: FID, KID, CMMD, precision, recall, RKE.

``inception:FILE`` gives the features of the published FID; ``clip:MODEL`` those of CMMD;
``dinov2:MODEL`` those that separate images best by people's eyes. A distance is named with its
extractor: a Frechet distance of CLIP's features is not an FID.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Protocol, runtime_checkable

from ..checkpoints.registry import Registry

if TYPE_CHECKING:
    from PIL.Image import Image

    from ..stats.bootstrap import Array


@runtime_checkable
class FeatureExtractor(Protocol):
    """Turns images into features."""

    distances: ClassVar[tuple[str, ...]]
    """Distances of its features, of `fid`, `fd`, `kid`, `cmmd`, `precision`, `recall` and `rke`;
    an extractor with `rke` has a `bandwidth`, the standard deviation of its kernel."""

    def features(self, images: Sequence[Image]) -> Array:
        """Features of RGB images, shape (n, d). Raises LoadError if the model can't be loaded."""
        ...

    def identity(self) -> dict[str, str]:
        """Kind, model, revision and settings; part of every record."""
        ...


EXTRACTORS: Registry[FeatureExtractor] = Registry(
    "feature extractor",
    {
        "clip": f"{__package__}.clip_features:ClipFeatures",
        "dinov2": f"{__package__}.dinov2:DinoFeatures",
        "inception": f"{__package__}.inception:InceptionFeatures",
    },
)
