"""Detections kept by image, query and detector: no image is looked at twice."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from PIL.Image import Image

from ...storage import write_whole
from ..rules.boxes import Box
from . import Detection, Detector, Request


class Cached:
    """A detector whose results lie in a folder, one file an image and set of queries.

    The key hashes the image's pixels, so that an image that was made anew is detected anew, and
    the detector's whole identity. A file that can't be read is made again.
    """

    def __init__(self, detector: Detector, folder: Path) -> None:
        self._detector, self._folder = detector, folder
        self._identity = json.dumps(detector.identity(), sort_keys=True)

    def identity(self) -> dict[str, str]:
        return self._detector.identity()

    def detect(self, requests: Sequence[Request]) -> list[list[Detection]]:
        keys = [self.key(request) for request in requests]
        found: dict[str, list[Detection]] = {}
        for key in dict.fromkeys(keys):
            if (kept := self._read(key)) is not None:
                found[key] = kept
        missing = {key: r for key, r in zip(keys, requests, strict=True) if key not in found}
        made = self._detector.detect(list(missing.values())) if missing else []
        for key, detections in zip(missing, made, strict=True):
            self._write(key, detections)
            found[key] = detections
        return [found[key] for key in keys]

    def key(self, request: Request) -> str:
        """Of one request: pixels, name, queries and detector."""
        parts = [image_digest(request.image), request.name, list(request.queries), self._identity]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    def _path(self, key: str) -> Path:
        return self._folder / key[:2] / f"{key}.npz"

    def _read(self, key: str) -> list[Detection] | None:
        try:
            # In memory: of a damaged file NumPy would leave the handle open.
            kept = BytesIO(self._path(key).read_bytes())
            with np.load(kept, allow_pickle=False) as data:
                rows: list[dict[str, Any]] = json.loads(str(data["rows"]))
                return [_detection(row, data, number) for number, row in enumerate(rows)]
        except (OSError, ValueError, KeyError, EOFError, BadZipFile):
            return None

    def _write(self, key: str, detections: Sequence[Detection]) -> None:
        masks = {
            f"mask{number}": np.packbits(one.mask, axis=None)
            for number, one in enumerate(detections)
            if one.mask is not None
        }
        rows = [
            one.to_row() | {"shape": None if one.mask is None else list(one.mask.shape)}
            for one in detections
        ]
        buffer = BytesIO()
        np.savez_compressed(buffer, rows=np.array(json.dumps(rows)), **masks)  # type: ignore[arg-type]
        path = self._path(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, buffer.getvalue())


def _detection(row: dict[str, Any], data: Any, number: int) -> Detection:
    mask = None
    if row["shape"] is not None:
        height, width = row["shape"]
        bits = np.unpackbits(data[f"mask{number}"], count=height * width)
        mask = bits.reshape(height, width).astype(bool)
    return Detection(row["label"], row["score"], Box(*row["box_xyxy"]), mask)


def image_digest(image: Image) -> str:
    """SHA-256 of size and RGB pixels, whatever the file's format was."""
    digest = hashlib.sha256(repr(image.size).encode())
    digest.update(image.convert("RGB").tobytes())
    return digest.hexdigest()
