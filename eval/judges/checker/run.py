"""The checker on images: detect, perturb, ask the second detector, decide.

`counterprior spatial detect` records that for a manifest, and `spatial check` decides again from
the record.

A row of the manifest has the image's path (`image_path` or `file`), `relation`, `object_a` and
`object_b`, as SpatialBench-UC writes it; `sample_id` and `prompt_id` may be missing.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any

from PIL import ImageEnhance, ImageFilter
from PIL.Image import Image, Resampling
from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field

from ....errors import RunFailed, UsageError
from ....human_labels import read_labels
from ....images import ImageError, open_image
from ....parsing import RowError, parse, read_rows, write_rows
from ....progress import Progress, silent
from ....storage import RecordLog, read_records, write_json, write_whole
from ...checkpoints.machine import provenance
from ...checkpoints.placement import first_line
from ...detectors import Detection, Detector, DetectorError, Request, open_detector
from ...detectors.cache import Cached
from ...detectors.rle import encode
from ...geometry.boxes import Relation, Size, iou, offset
from ...geometry.checker.decide import (
    CheckedImage,
    CheckVerdict,
    StabilityMeasure,
    best,
    check,
    holds,
)
from ...geometry.checker.recorded import CheckerSample, Detected, Detectors, Found, read_samples
from ...geometry.checker.rules import CheckerRules, Perturbation
from ...geometry.checker.summary import markdown, summarize
from .analyze import analyze
from .overlays import draw_overlays

_WORDS: dict[object, Relation] = {"to the left of": "left_of", "to the right of": "right_of"}
"""As VISOR writes relations."""


class _DetectRow(BaseModel):
    model_config = ConfigDict(frozen=True, coerce_numbers_to_str=True)

    image: str = Field(validation_alias=AliasChoices("image_path", "file"), min_length=1)
    """Path; relative to the manifest as it is read."""
    relation: Annotated[Relation, BeforeValidator(lambda value: _WORDS.get(value, value))]
    object_a: str = Field(min_length=1)
    object_b: str = Field(min_length=1)
    sample_id: str = ""
    prompt_id: str = Field("", validation_alias=AliasChoices("prompt_id", "unique_id"))


@dataclass(frozen=True)
class ImageToCheck:
    """An image and what its prompt says."""

    sample_id: str
    prompt_id: str
    relation: Relation
    object_a: str
    object_b: str
    image: Image
    """RGB."""
    digest: str = ""
    """SHA-256 of its file; empty if unknown."""


def check_images(
    images: Iterable[ImageToCheck],
    rules: CheckerRules,
    primary: Detector,
    secondary: Detector | None = None,
) -> Iterator[CheckedImage]:
    """One verdict per image; its sample holds what was detected and measured.

    The second detector is asked only where the first found both objects, as published. Where it
    fails, its error is recorded and agreement is 0.5. Raises DetectorError if the first fails, and
    RunFailed if either can't be loaded.
    """
    for item in images:
        request = Request(item.image, (item.object_a, item.object_b), item.sample_id, item.digest)
        size = Size(*item.image.size)
        fields = {n: value for n, value in vars(item).items() if n not in ("image", "digest")}
        first = Detectors(primary=_detected(primary, request))
        sample = CheckerSample(**fields, **size._asdict(), detectors=first)
        checked = check(sample, size, rules, measure(item.image, sample, primary, rules))
        if secondary is not None and checked.delta is not None and checked.parts.detection > 0:
            detectors = first.model_copy(update={"secondary": _second_look(secondary, request)})
            full_sample = sample.model_copy(update={"detectors": detectors})
            stability = checked.parts.stability
            checked = check(full_sample, size, rules, lambda *_, measured=stability: measured)
        yield checked


def _detected(detector: Detector, request: Request) -> Detected:
    (detections,) = detector.detect([request])
    return Detected(type=detector.identity()["kind"], detections=_as_found(detections))


def _second_look(detector: Detector, request: Request) -> Detected:
    """Detects, or records why the detector failed: its classes, its memory, its own code."""
    try:
        return _detected(detector, request)
    except RunFailed:  # no image can be looked at
        raise
    except Exception as error:
        reason = first_line(error)
        if not isinstance(error, UsageError):
            reason = f"{type(error).__name__}: {reason}"
        return Detected(type=detector.identity()["kind"], detections=(), error=reason)


def _as_found(detections: list[Detection]) -> tuple[Found, ...]:
    return tuple(
        Found(
            label=d.label,
            score=d.score,
            box_xyxy=d.box,
            mask=None if d.mask is None else encode(d.mask),
        )
        for d in detections
    )


def recorded_row(checked: CheckedImage) -> dict[str, Any]:
    """A verdict with everything that `counterprior spatial check` needs to give it again."""
    sample = checked.sample
    return checked.to_row() | {
        "detectors": sample.detectors.model_dump(mode="json", exclude_none=True),
        "width": sample.width,
        "height": sample.height,
    }


def perturbed(image: Image, how: Perturbation) -> Image:
    """The image changed, of the same size and scene. A parameter that is not set is the published
    one."""
    changed = _perturbed(image, how)
    changed.info = dict(image.info)
    return changed


def _perturbed(image: Image, how: Perturbation) -> Image:
    if how.type == "brightness":
        return ImageEnhance.Brightness(image).enhance(how.factor or 1.0)
    if how.type == "gaussian_blur":
        return image.filter(ImageFilter.GaussianBlur(radius=how.sigma or 1.0))
    scale = how.scale or 0.9
    small = (max(1, int(image.width * scale)), max(1, int(image.height * scale)))
    return image.resize(small, Resampling.LANCZOS).resize(image.size, Resampling.LANCZOS)


def measure(
    image: Image, sample: CheckerSample, detector: Detector, rules: CheckerRules
) -> StabilityMeasure:
    """A function that measures the stability of a verdict on this image.

    Half of it is the share of perturbations under which the verdict stays (one that loses an object
    does not keep it), half the mean overlap of the boxes with those of the unchanged image, over
    the perturbations that find both. 0 where none does, 1 where nothing is tried.
    """
    size = Size(*image.size)
    labels = (sample.object_a, sample.object_b)

    def stability(verdict: CheckVerdict, a: Found, b: Found) -> float:
        tried = rules.stability.perturbations
        if not tried:
            return 1.0
        unchanged = 0
        overlaps: list[float] = []
        looks = detector.detect(
            [Request(perturbed(image, how), labels, sample.sample_id) for how in tried]
        )
        for look in map(_as_found, looks):
            again_a, again_b = (best(look, label, rules.thresholds, size) for label in labels)
            if again_a is None or again_b is None:
                continue
            delta = offset(again_a.box_xyxy, again_b.box_xyxy, sample.relation, size)
            unchanged += holds(delta, sample.relation, rules.geometry.margin) == verdict
            overlaps += [iou(a.box_xyxy, again_a.box_xyxy), iou(b.box_xyxy, again_b.box_xyxy)]
        if not overlaps:
            return 0.0
        return 0.5 * unchanged / len(tried) + 0.5 * sum(overlaps) / len(overlaps)

    return stability


def detect_manifest(
    manifest: Path,
    rules: Path | None,
    detector: str,
    out: Path,
    secondary: str = "",
    cache: Path | None = None,
    progress: Progress = silent,
) -> dict[str, Any]:
    """Detects, perturbs and records what is not recorded yet; returns counts.

    rules: `checker.yaml`, whose perturbations are tried; None for the published ones. detector,
        secondary: specs of the one that decides, and of one that is asked whether it agrees.
        out: JSONL of detections; grows image by image. cache: folder of detections that are kept.

    An image that can't be opened, or whose objects the detector doesn't know, is listed under
    `unreadable` beside the file, never recorded as one without objects. Raises RowError for a bad
    manifest, UsageError for a bad spec or a file that was begun with other detectors or rules.
    """
    settings = CheckerRules.load(rules)
    wanted = read_manifest(manifest)
    detectors = [open_detector(spec) for spec in (detector, secondary) if spec]
    if cache:
        detectors = [Cached(opened, cache) for opened in detectors]
    header = {"detectors": [opened.identity() for opened in detectors], "rules": _plain(settings)}
    path = _beside(out, "detectors")
    if path.exists() and json.loads(path.read_text("utf-8")) != header:
        raise UsageError(
            f"{out} was begun with other detectors or rules: choose another --out",
            code="another-run",
        )
    write_json(path, header)
    done = {record["sample_id"] for record in read_records(out)}
    unreadable: dict[str, str] = {}
    verdicts: Counter[str] = Counter()
    failed = 0
    with RecordLog(out) as log:
        for number, row in enumerate(wanted):
            progress("images", number, len(wanted))
            if row.sample_id in done:
                continue
            try:
                image = ImageToCheck(**vars(row) | {"image": open_image(Path(row.image))})
                (checked,) = check_images([image], settings, *detectors)
            except (DetectorError, ImageError) as error:
                unreadable[row.sample_id] = f"{row.image} {error}"
                continue
            log.append(recorded_row(checked))
            verdicts[checked.verdict] += 1
            failed += bool(checked.secondary_error)
    progress("images", len(wanted), len(wanted))
    write_json(_beside(out, "unreadable"), unreadable)
    return {
        "images": len(wanted),
        "recorded_before": len(wanted) - verdicts.total() - len(unreadable),
        "recorded_now": verdicts.total(),
        "unreadable": len(unreadable),
        **({"secondary_failed": failed} if failed else {}),
        "verdicts": dict(sorted(verdicts.items())),
    }


def read_manifest(path: Path) -> list[_DetectRow]:
    """The rows of a manifest, each with an id and its image's whole path.

    Raises RowError for a bad row or a sample that occurs twice.
    """
    rows: dict[str, _DetectRow] = {}
    for number, row in read_rows(path):
        item = parse(_DetectRow, row, path, number)
        name = item.sample_id or Path(item.image).stem
        if name in rows:
            raise RowError(
                f"{path}:{number}: sample_id: {name!r} occurs twice", code="duplicate-id"
            )
        ids = {"sample_id": name, "prompt_id": item.prompt_id or name}
        rows[name] = item.model_copy(update={**ids, "image": str(path.parent / item.image)})
    if not rows:
        raise RowError(f"{path}: no image", code="nothing-to-do")
    return list(rows.values())


def _beside(out: Path, suffix: str) -> Path:
    return out.with_name(f"{out.stem}.{suffix}.json")


PUBLISHED_SIZE = Size(512, 512)
"""Size of the images of all published runs, whose rows do not say it."""


def check_file(path: Path, rules: CheckerRules, size: Size = PUBLISHED_SIZE) -> list[CheckedImage]:
    """Every sample of a file under the rules. Raises RowError for a row that cannot be used."""
    return [check(sample, image_size, rules) for sample, image_size in read_samples(path, size)]


def run_check(
    detections: Path,
    rules: Path | None,
    out: Path,
    labels: Path | None = None,
    size: Size = PUBLISHED_SIZE,
    manifests: Sequence[Path] = (),
    overlays: int = 12,
    progress: Progress = silent,
) -> dict[str, Any]:
    """Writes verdicts and metrics and returns the metrics; nothing is written on an error.

    `STEM.provenance.json` says by which command, versions and files they came about.

    detections: JSONL in the format of the published `per_sample.jsonl`. rules: `checker.yaml`;
        None for the published rules. out: where the verdicts go; `STEM.metrics.json` and its
        tables, `STEM.metrics.md`, are written beside it. labels: human labels of some of the
        samples. size: of images whose row gives none. manifests: files that name the images, as
        for `spatial detect`; `overlays` of them are drawn with their boxes in `STEM.overlays`.
    """
    beside = _beside(out, "metrics")
    about = _beside(out, "provenance")
    written = {path.resolve() for path in (out, beside, beside.with_suffix(".md"), about)}
    for path in (detections, rules, labels, *manifests):
        if path is not None and path.resolve() in written:
            raise UsageError(
                f"{path} would be replaced by what is written: choose another --out",
                code="would-overwrite",
            )
    settings = CheckerRules.load(rules)
    named = {"detections": detections, "rules": rules, "labels": labels}
    inputs = {name: path for name, path in named.items() if path is not None}
    inputs |= {f"manifest {number}": path for number, path in enumerate(manifests, 1)}
    images = {row.sample_id: Path(row.image) for path in manifests for row in read_manifest(path)}
    checked = check_file(detections, settings, size)
    metrics = summarize(checked) | {
        "detections_sha256": sha256(detections.read_bytes()).hexdigest(),
        "rules": _plain(settings),
    }
    if labels:
        metrics["human"] = analyze([item.to_row() for item in checked], read_labels(labels))
    write_rows(out, (item.to_row() for item in checked))
    write_json(beside, metrics)
    write_json(about, provenance(inputs))
    write_whole(beside.with_suffix(".md"), markdown({detections.stem: metrics}))
    draw_overlays(checked, images, overlays, out.with_name(f"{out.stem}.overlays"), progress)
    return metrics


def _plain(rules: CheckerRules) -> dict[str, Any]:
    return rules.model_dump(mode="json", exclude={"detector", "output"})
