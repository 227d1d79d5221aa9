"""`counterprior detect`: from a manifest of images to the detections that `check` reads.

A row of the manifest has the image's path (`image_path` or `file`), `relation`, `object_a` and
`object_b`, as SpatialBench-UC writes it; `sample_id` and `prompt_id` may be missing.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field

from ....errors import UsageError
from ....images import ImageError, open_image
from ....progress import Progress
from ....storage import RecordLog, read_records, write_json
from ....tables import RowError, parse, read_rows
from ...detectors import Detector, DetectorError, open_detector
from ...detectors.cache import Cached
from ...rules.boxes import Relation
from ...rules.checker.rules import CheckerRules
from .live import ImageToCheck, check_images, recorded_row

_WORDS: dict[object, Relation] = {
    "to the left of": "left_of",
    "to the right of": "right_of",
}
"""As VISOR writes relations."""


class _DetectRow(BaseModel):
    model_config = ConfigDict(frozen=True, coerce_numbers_to_str=True)

    image: str = Field(validation_alias=AliasChoices("image_path", "file"), min_length=1)
    relation: Annotated[Relation, BeforeValidator(lambda value: _WORDS.get(value, value))]
    object_a: str = Field(min_length=1)
    object_b: str = Field(min_length=1)
    sample_id: str = ""
    prompt_id: str = Field("", validation_alias=AliasChoices("prompt_id", "unique_id"))


@dataclass(frozen=True)
class DetectSettings:
    """What `counterprior detect` is asked for."""

    manifest: Path
    """JSONL; paths are relative to it."""
    rules: Path | None
    """`checker.yaml`: its perturbations are tried; None for the published rules."""
    detector: str
    """Spec of the detector that decides."""
    out: Path
    """JSONL of detections; grows image by image."""
    secondary: str = ""
    """Spec of the detector that is asked whether it agrees; empty for none."""
    cache: Path | None = None
    """Folder of detections that are kept."""


@dataclass(frozen=True)
class _Wanted:
    row: _DetectRow
    sample_id: str
    path: Path


def detect_manifest(settings: DetectSettings, progress: Progress) -> dict[str, Any]:
    """Detects, perturbs and records what is not recorded yet; returns counts.

    An image that can't be opened, or whose objects the detector doesn't know, is listed under
    `unreadable` beside the file, never recorded as one without objects. Raises RowError for a bad
    manifest, UsageError for a bad spec or a file that was begun with other detectors or rules.
    """
    rules = CheckerRules.load(settings.rules)
    wanted = read_manifest(settings.manifest)
    primary = _open(settings.detector, settings.cache)
    secondary = _open(settings.secondary, settings.cache) if settings.secondary else None
    _claim(settings.out, rules, [primary, *([secondary] if secondary else [])])
    done = {record["sample_id"] for record in read_records(settings.out)}
    unreadable: dict[str, str] = {}
    verdicts: Counter[str] = Counter()
    with RecordLog(settings.out) as log:
        for number, one in enumerate(wanted):
            progress("images", number, len(wanted))
            if one.sample_id in done:
                continue
            try:
                (found,) = check_images([_opened(one)], rules, primary, secondary)
            except (DetectorError, ImageError) as error:
                unreadable[one.sample_id] = f"{one.path} {error}"
                continue
            log.append(recorded_row(found))
            verdicts[found.verdict] += 1
    progress("images", len(wanted), len(wanted))
    write_json(_beside(settings.out, "unreadable"), unreadable)
    return {
        "images": len(wanted),
        "recorded_before": len(wanted) - verdicts.total() - len(unreadable),
        "recorded_now": verdicts.total(),
        "unreadable": len(unreadable),
        "verdicts": dict(sorted(verdicts.items())),
    }


def read_manifest(path: Path) -> list[_Wanted]:
    """The images of a manifest. Raises RowError for a bad row or a sample that occurs twice."""
    found: dict[str, _Wanted] = {}
    for number, row in read_rows(path):
        one = parse(_DetectRow, row, path, number)
        name = one.sample_id or Path(one.image).stem
        if name in found:
            raise RowError(f"{path}:{number}: sample_id: {name!r} occurs twice")
        found[name] = _Wanted(one, name, path.parent / one.image)
    if not found:
        raise RowError(f"{path}: no image")
    return list(found.values())


def _opened(one: _Wanted) -> ImageToCheck:
    return ImageToCheck(
        sample_id=one.sample_id,
        prompt_id=one.row.prompt_id or one.sample_id,
        relation=one.row.relation,
        object_a=one.row.object_a,
        object_b=one.row.object_b,
        image=open_image(one.path),
    )


def _open(spec: str, cache: Path | None) -> Detector:
    detector = open_detector(spec)
    return Cached(detector, cache) if cache else detector


def _claim(out: Path, rules: CheckerRules, detectors: Sequence[Detector]) -> None:
    """Notes beside the file what makes it; refuses to go on with something else."""
    header = {
        "detectors": [one.identity() for one in detectors],
        "rules": rules.model_dump(mode="json", exclude={"detector", "output"}),
    }
    path = _beside(out, "detectors")
    if path.exists() and json.loads(path.read_text("utf-8")) != header:
        raise UsageError(f"{out} was begun with other detectors or rules: choose another --out")
    write_json(path, header)


def _beside(out: Path, what: str) -> Path:
    return out.with_name(f"{out.stem}.{what}.json")
