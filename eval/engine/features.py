"""Features of a run's images, recorded as they come: `RUN/features/EXTRACTOR/features.jsonl`."""

from __future__ import annotations

import base64
from io import BytesIO
from pathlib import Path

import numpy as np

from ...errors import DataError, UsageError
from ...images import ImageError, open_image
from ...progress import Progress, silent
from ...storage import RecordLog, read_records, write_json
from ..core import BY, check_by, describe, identity_digest
from ..scorers.features import FeatureExtractor
from ..stats.bootstrap import Array
from .run import Run, recorded_bytes

FOLDER = "features"
FEATURES = "features.jsonl"


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
            f"the frames of clips"
        )
    identity = extractor.identity()
    folder = root / FOLDER / f"{identity['kind']}-{identity_digest(identity)}"
    present = run.present()
    name = f"features by {describe(identity)}"
    with run.lock():
        if not (folder / "extractor.json").exists():
            write_json(folder / "extractor.json", identity)
        by = identity_digest(identity)
        known = _known(folder / FEATURES, by)
        with RecordLog(folder / FEATURES) as log:
            for number, (case, image) in enumerate(present.items()):
                progress(name, number, len(present))
                if image in known:
                    continue
                try:
                    data = recorded_bytes(root, run.images()[case])
                    opened = open_image(BytesIO(data))
                except ImageError:
                    continue
                values = extractor.features([opened])[0].astype("<f4")
                text = base64.b64encode(values.tobytes()).decode()
                log.append({"image": image, "features": text, BY: by})
                known[image] = values.astype(float)
        progress(name, len(present), len(present))
    return {case: known[image] for case, image in present.items() if image in known}


def _known(path: Path, by: str) -> dict[str, Array]:
    """SHA-256 of an image -> its features."""
    found = {}
    for number, record in enumerate(read_records(path), 1):
        check_by(record, by, f"{path}:{number}")
        try:
            values = np.frombuffer(base64.b64decode(record["features"]), dtype="<f4")
            found[record["image"]] = values.astype(float)
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(f"{path}:{number}: no features ({error})") from None
    return found
