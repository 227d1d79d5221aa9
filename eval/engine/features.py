"""Features of a run's images, recorded as they come: `RUN/features/EXTRACTOR/features.jsonl`."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import DataError, UsageError
from ...images import ImageError, open_image
from ...parsing import MALFORMED
from ...progress import Progress, silent
from ..core import describe, identity_digest
from ..scorers.features import FeatureExtractor
from ..stats.bootstrap import Array
from ..store.answers import AnswerLog, answerer_folder, keep_identity
from .run import Run, recorded_bytes

FOLDER = "features"


@dataclass(frozen=True, eq=False)
class ImageFeatures:
    """The features of an image."""

    image: str
    """SHA-256 of the image's file."""
    values: Array
    """(d,) float64, of float32 on disk."""

    def to_record(self) -> dict[str, Any]:
        text = base64.b64encode(self.values.astype("<f4").tobytes()).decode()
        return {"image": self.image, "features": text}

    @classmethod
    def from_record(cls, record: dict[str, Any], place: str) -> ImageFeatures:
        """The inverse of `to_record`. Raises DataError for anything else."""
        try:
            values = np.frombuffer(base64.b64decode(record["features"]), dtype="<f4")
        except MALFORMED as error:
            raise DataError(f"{place}: no features ({error})", code="damaged-log") from None
        return cls(record["image"], values.astype(float))


def image_features(
    root: Path, extractor: FeatureExtractor, progress: Progress = silent
) -> dict[str, Array]:
    """Case -> features (d,) of its present image, float32 as recorded; computed where not known.

    An image that can't be read any more has none. Raises LoadError where the model can't be loaded,
    UsageError for clips: their frames are alike, and distances of sets take them for independent.
    """
    run = Run.open(root)
    run.check_complete()
    if clips := sum(image.frames > 0 for image in run.images().values()):
        raise UsageError(
            f"{root} has {clips:,} clips, and --features compares sets of images: --scorer scores "
            f"the frames of clips",
            code="unsupported",
        )
    identity = extractor.identity()
    folder = answerer_folder(root / FOLDER, identity)
    present = run.present()
    name = f"features by {describe(identity)}"
    with run.lock():
        keep_identity(folder / "extractor.json", identity)
        by = identity_digest(identity)
        with AnswerLog(
            folder, "features", ImageFeatures, key="image", by=by, in_memory=True
        ) as log:
            for number, (case, image) in enumerate(present.items()):
                progress(name, number, len(present))
                if image in log:
                    continue
                try:
                    data = recorded_bytes(root, run.images()[case])
                    opened = open_image(BytesIO(data))
                except ImageError:
                    continue
                values = extractor.features([opened])[0].astype("<f4").astype(float)
                log.append(ImageFeatures(image, values))
        progress(name, len(present), len(present))
    return {case: log[image].values for case, image in present.items() if image in log}
