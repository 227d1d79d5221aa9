"""Detections kept by image, query and detector: no image is looked at twice."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

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
        paths = [self._path(request) for request in requests]
        found = {path: kept for path in set(paths) if (kept := _read(path)) is not None}
        missing = {path: r for path, r in zip(paths, requests, strict=True) if path not in found}
        made = self._detector.detect(list(missing.values())) if missing else []
        for path, detections in zip(missing, made, strict=True):
            _write(path, detections)
            found[path] = detections
        return [found[path] for path in paths]

    def _path(self, request: Request) -> Path:
        image = hashlib.sha256(repr(request.image.size).encode())
        image.update(request.image.convert("RGB").tobytes())
        parts = [image.hexdigest(), request.name, list(request.queries), self._identity]
        key = hashlib.sha256(json.dumps(parts).encode()).hexdigest()
        return self._folder / key[:2] / f"{key}.npz"


def _read(path: Path) -> list[Detection] | None:
    try:
        # In memory: of a damaged file NumPy would leave the handle open.
        with np.load(BytesIO(path.read_bytes()), allow_pickle=False) as data:
            rows: list[dict[str, Any]] = json.loads(str(data["rows"]))
            found = []
            for number, row in enumerate(rows):
                mask, shape = None, row["shape"]
                if shape is not None:
                    bits = np.unpackbits(data[f"mask{number}"], count=math.prod(shape))
                    mask = bits.reshape(shape).astype(bool)
                found.append(Detection(row["label"], row["score"], Box(*row["box_xyxy"]), mask))
            return found
    except (OSError, ValueError, KeyError, EOFError, BadZipFile):
        return None


def _write(path: Path, detections: Sequence[Detection]) -> None:
    masks = {f"mask{n}": one.mask for n, one in enumerate(detections) if one.mask is not None}
    packed = {name: np.packbits(mask, axis=None) for name, mask in masks.items()}
    rows = [
        one.to_row() | {"shape": None if one.mask is None else list(one.mask.shape)}
        for one in detections
    ]
    buffer = BytesIO()
    np.savez_compressed(buffer, rows=np.array(json.dumps(rows)), **packed)  # type: ignore[arg-type]
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, buffer.getvalue())
