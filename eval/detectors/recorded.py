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
    """Which of two detectors of a row, in our own format."""


class RecordedDetector(SingleImageDetector):
    """Detections in a file, in which the name of every image must be."""

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
            self._samples = _own(path, options.role)
        else:
            self._samples = _json(path, options.names)
        self._digest = sha256(path.read_bytes()).hexdigest()

    @classmethod
    def from_spec(cls, spec: Spec, options: RecordedOptions) -> RecordedDetector:
        return cls(Path(spec.argument), options)

    def identity(self) -> dict[str, str]:
        return {"kind": "recorded", "file": self._path.name, "sha256": self._digest}

    def _found(self, request: Request) -> list[Detection]:
        if request.name not in self._samples:
            raise DetectorError(
                f"{self._path} has nothing on the image {request.name!r}", code="not-recorded"
            )
        wanted = {query.lower(): query for query in request.queries}
        return ranked(
            [
                replace(one, label=wanted[one.label.lower()])
                for one in self._samples[request.name]
                if one.label.lower() in wanted
            ]
        )


_Samples = dict[str, list[Detection]]
"""Name of a sample or image -> what was found."""


def _own(path: Path, role: str) -> _Samples:
    found: _Samples = {}
    for number, row in read_rows(path):
        one = parse(_Row, row, path, number)
        if one.sample_id in found:
            raise RowError(
                f"{path}:{number}: sample_id: {one.sample_id!r} occurs twice", code="duplicate-id"
            )
        detected = one.detections
        if one.detectors is not None:
            from_role = getattr(one.detectors, role)
            detected = from_role.detections if from_role else ()
        if detected is None:
            raise RowError(f"{path}:{number}: detections: missing", code="missing-field")
        found[one.sample_id] = [
            Detection(d.label, d.score, d.box_xyxy, _mask(d.mask, f"{path}:{number}"))
            for d in detected
        ]
    return found


def _json(path: Path, names: Path | None) -> _Samples:
    """COCO's results or VISOR's, told apart by their outermost type."""
    data = read_json(path)
    if isinstance(data, dict):
        return _visor(data, path)
    if not isinstance(data, list):
        raise RowError(f"{path}: neither COCO's list nor VISOR's object", code="bad-format")
    if not names:
        problem = f"{path}: COCO results need ?names=instances.json for their categories"
        raise RowError(problem, code="missing-option")
    return _coco(data, path, names)


def _coco(rows: list[Any], path: Path, names: Path) -> _Samples:
    try:
        known = read_json(names)
        categories = {one["id"]: one["name"] for one in known["categories"]}
        files = {one["id"]: one["file_name"] for one in known.get("images", [])}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RowError(f"{names}: no categories of COCO ({error})", code="bad-format") from None
    found: _Samples = {file: [] for file in files.values()}
    for number, row in enumerate(rows, 1):
        one = parse(_CocoRow, row, path, number)
        if one.category_id not in categories:
            raise RowError(
                f"{path}:{number}: category_id: {names} has no {one.category_id}",
                code="unknown-reference",
            )
        if files and one.image_id not in files:
            raise RowError(
                f"{path}:{number}: image_id: {names} has no {one.image_id}",
                code="unknown-reference",
            )
        left, top, width, height = one.bbox
        box = Box(left, top, left + width, top + height)
        name = files.get(one.image_id, str(one.image_id))
        mask = _mask(one.segmentation, f"{path}:{number}")
        detection = Detection(categories[one.category_id], one.score, box, mask)
        found.setdefault(name, []).append(detection)
    return found


def _mask(rle: Any, place: str) -> Mask | None:
    """The mask of a row, where it has run lengths. Raises RowError for wrong ones."""
    if not isinstance(rle, dict):
        return None
    try:
        return decode(rle)
    except RleError as error:
        raise RowError(f"{place}: mask: {error}", code="bad-value") from None


def _visor(results: dict[str, Any], path: Path) -> _Samples:
    """Points become boxes without extent; a score that is not there is 1."""
    found = {}
    for number, (name, entry) in enumerate(results.items(), 1):
        one = parse(_VisorEntry, entry, path, number)
        if len(one.centroid) != len(one.classes):
            raise RowError(
                f"{path}: {name}: {len(one.centroid)} centroids for {len(one.classes)} classes",
                code="wrong-count",
            )
        scores = one.score or (1.0,) * len(one.classes)
        found[name] = [
            Detection(label, score, Box(x, y, x, y))
            for label, score, (x, y) in zip(one.classes, scores, one.centroid, strict=True)
        ]
    return found
