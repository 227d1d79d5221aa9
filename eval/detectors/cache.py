"""Detections kept by image, queries and detector: nothing is looked at twice."""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from PIL.Image import Image

from ...storage import write_whole
from . import Detection, Detector, Request
from .rle import RleError, from_row, to_row

_RECENT = 32
"""Images whose detections stay in memory: the questions about one come one after the other."""


class Cached:
    """A detector whose results lie in a folder, one file an image and set of queries.

    The key hashes the image's file or its pixels, so that an image that was made anew is detected
    anew, and the detector's whole identity. The queries are asked in alphabetical order, so that
    everybody who asks about the same things shares the answer. Files appear whole: a killed process
    loses only what it was looking at, several may share the folder, and a file that can't be read
    is made again.
    """

    def __init__(self, detector: Detector, folder: Path | None) -> None:
        """folder: None to keep only the last results, in memory."""
        self._detector, self._folder = detector, folder
        identity = detector.identity()
        self._identity = json.dumps(identity, sort_keys=True)
        # Only recorded detections depend on the image's name; all others on its pixels.
        self._by_name = "recorded" in identity.values()
        self._recent: OrderedDict[str, list[Detection]] = OrderedDict()

    @property
    def batch_size(self) -> int:
        """Images that the detector takes at once."""
        return getattr(self._detector, "batch_size", 1)

    def identity(self) -> dict[str, str]:
        return self._detector.identity()

    def detect(self, requests: Sequence[Request]) -> list[list[Detection]]:
        distinct = [replace(r, queries=tuple(sorted(set(r.queries)))) for r in requests]
        keys = [self._key(request) for request in distinct]
        detections_of = {
            key: cached for key in set(keys) if (cached := self._known(key)) is not None
        }
        missing = {
            key: r for key, r in zip(keys, distinct, strict=True) if key not in detections_of
        }
        results = self._detector.detect(list(missing.values())) if missing else []
        for key, detections in zip(missing, results, strict=True):
            if self._folder is not None:
                rows = [to_row(detection) for detection in detections]
                write_whole(_path(self._folder, key), json.dumps(rows))
            detections_of[key] = detections
        for key in keys:
            self._recent[key] = detections_of[key]
            self._recent.move_to_end(key)
        while len(self._recent) > _RECENT:
            self._recent.popitem(last=False)
        return [detections_of[key] for key in keys]

    def _key(self, request: Request) -> str:
        name = request.name if self._by_name else ""
        image = request.digest or pixels_digest(request.image)
        content = [image, name, list(request.queries), self._identity]
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()

    def _known(self, key: str) -> list[Detection] | None:
        if key in self._recent:
            return self._recent[key]
        return None if self._folder is None else _read(_path(self._folder, key))


def pixels_digest(image: Image) -> str:
    """SHA-256 of an image's size and RGB pixels."""
    digest = hashlib.sha256(repr(image.size).encode())
    digest.update((image if image.mode == "RGB" else image.convert("RGB")).tobytes())
    return digest.hexdigest()


def _path(folder: Path, key: str) -> Path:
    return folder / key[:2] / f"{key}.json"


def _read(path: Path) -> list[Detection] | None:
    try:
        return [from_row(row) for row in json.loads(path.read_bytes())]
    except (OSError, ValueError, KeyError, TypeError, RleError):
        return None
