"""Detections that somebody made before: own or published ones, found by the image's name.

`*.jsonl`   rows with sample_id and detections, or SpatialBench-UC's per_sample.jsonl
`*.json`    COCO results (a list), with `?names=instances.json` for categories and file names;
            or VISOR's results (an object by `ID_NUMBER`), whose objects are points, not boxes
"""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, Field

from ...parsing import RowError, parse, read_json, read_rows
from ...specs import Options, Spec
from ..geometry.boxes import Box
from ..geometry.checker.recorded import Detectors, Found
from . import Detection, DetectorError, Mask, Request, ranked
from .loading import SingleImageDetector
from .rle import RleError, decode


class _Row(BaseModel):
    sample_id: str
    detections: tuple[Found, ...] | None = None
    detectors: Detectors | None = None


class _CocoRow(BaseModel):
    image_id: int | str
    category_id: int
    bbox: tuple[float, float, float, float]
    score: float = Field(ge=0, le=1, allow_inf_nan=False)
    segmentation: Any = None
    """Run lengths; polygons are passed over."""


class _VisorEntry(BaseModel):
    classes: tuple[str, ...]
    centroid: tuple[tuple[float, float], ...] = ()
    score: tuple[float, ...] = ()
    sra: int = 0


class RecordedOptions(Options):
    """Options of `recorded`."""

    names: Path | None = None
    """COCO's `instances.json`, with the categories of COCO results."""
    role: Literal["primary", "secondary"] = "primary"
    """In our own format: which of a row's two detectors to read."""


class RecordedDetector(SingleImageDetector):
    """Detections in a file, which must have the name of every image."""

    argument: ClassVar[str] = "FILE"
    options: ClassVar[type[Options]] = RecordedOptions

    def __init__(self, path: Path, options: RecordedOptions) -> None:
        """Raises DetectorError for a missing file, RowError for a bad row or a sample twice."""
        self._path = path
        if not path.is_file():
            raise DetectorError(
                f"recorded: {path} is not a file of detections", code="no-such-file"
            )
        if path.suffix == ".jsonl":
            self._samples = _own_format(path, options.role)
        else:
            self._samples = _json(path, options.names)
        self._digest = sha256(path.read_bytes()).hexdigest()

    @classmethod
    def from_spec(cls, spec: Spec, options: RecordedOptions) -> RecordedDetector:
        return cls(Path(spec.argument), options)

    def identity(self) -> dict[str, str]:
        return {"kind": "recorded", "file": self._path.name, "sha256": self._digest}

    def detect_image(self, request: Request) -> list[Detection]:
        if request.name not in self._samples:
            raise DetectorError(
                f"{self._path} has nothing on the image {request.name!r}", code="not-recorded"
            )
        wanted = {query.lower(): query for query in request.queries}
        return ranked(
            [
                replace(detection, label=wanted[detection.label.lower()])
                for detection in self._samples[request.name]
                if detection.label.lower() in wanted
            ]
        )


_Samples = dict[str, list[Detection]]
"""Name of a sample or image -> its detections."""


def _own_format(path: Path, role: str) -> _Samples:
    samples: _Samples = {}
    for number, row in read_rows(path):
        sample = parse(_Row, row, path, number)
        if sample.sample_id in samples:
            raise RowError(
                f"{path}:{number}: sample_id: {sample.sample_id!r} occurs twice",
                code="duplicate-id",
            )
        detected = sample.detections
        if sample.detectors is not None:
            from_role = getattr(sample.detectors, role)
            detected = from_role.detections if from_role else ()
        if detected is None:
            raise RowError(f"{path}:{number}: detections: missing", code="missing-field")
        samples[sample.sample_id] = [
            Detection(d.label, d.score, d.box_xyxy, _mask(d.mask, f"{path}:{number}"))
            for d in detected
        ]
    return samples


def _json(path: Path, categories: Path | None) -> _Samples:
    """Reads COCO's results or VISOR's, distinguished by their outermost type."""
    data = read_json(path)
    if isinstance(data, dict):
        return _visor(data, path)
    if not isinstance(data, list):
        raise RowError(f"{path}: neither COCO's list nor VISOR's object", code="bad-format")
    if not categories:
        problem = f"{path}: COCO results need ?names=instances.json for their categories"
        raise RowError(problem, code="missing-option")
    return _coco(data, path, categories)


def _coco(rows: list[Any], path: Path, instances: Path) -> _Samples:
    try:
        content = read_json(instances)
        categories = {category["id"]: category["name"] for category in content["categories"]}
        files = {image["id"]: image["file_name"] for image in content.get("images", [])}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RowError(f"{instances}: no categories of COCO ({error})", code="bad-format") from None
    samples: _Samples = {file: [] for file in files.values()}
    for number, row in enumerate(rows, 1):
        result = parse(_CocoRow, row, path, number)
        if result.category_id not in categories:
            raise RowError(
                f"{path}:{number}: category_id: {instances} has no {result.category_id}",
                code="unknown-reference",
            )
        if files and result.image_id not in files:
            raise RowError(
                f"{path}:{number}: image_id: {instances} has no {result.image_id}",
                code="unknown-reference",
            )
        x, y, width, height = result.bbox
        box = Box(x, y, x + width, y + height)
        name = files.get(result.image_id, str(result.image_id))
        mask = _mask(result.segmentation, f"{path}:{number}")
        detection = Detection(categories[result.category_id], result.score, box, mask)
        samples.setdefault(name, []).append(detection)
    return samples


def _mask(rle: Any, place: str) -> Mask | None:
    """Returns the mask of a row with run lengths, else None. Raises RowError for bad ones."""
    if not isinstance(rle, dict):
        return None
    try:
        return decode(rle)
    except RleError as error:
        raise RowError(f"{place}: mask: {error}", code="bad-value") from None


def _visor(results: dict[str, Any], path: Path) -> _Samples:
    """Reads VISOR's results: points become boxes without extent; a missing score is 1."""
    samples = {}
    for number, (name, entry) in enumerate(results.items(), 1):
        image = parse(_VisorEntry, entry, path, number)
        if len(image.centroid) != len(image.classes):
            raise RowError(
                f"{path}: {name}: {len(image.centroid)} centroids for {len(image.classes)} classes",
                code="wrong-count",
            )
        scores = image.score or (1.0,) * len(image.classes)
        samples[name] = [
            Detection(label, score, Box(x, y, x, y))
            for label, score, (x, y) in zip(image.classes, scores, image.centroid, strict=True)
        ]
    return samples
