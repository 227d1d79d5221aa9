"""Published or own detections of a run: what the checker reads instead of running a detector."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from ....parsing import RowError, parse, read_rows
from ....specs import Share
from ..boxes import Box, Relation, Size

TOLERANCE = 0.02
"""Share of a side by which a regressed box may reach over the image's edge."""

Text = Annotated[str, Field(min_length=1)]
Side = Annotated[int, Field(gt=0)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True)


class Found(_Part):
    """One detection."""

    label: str
    score: Share
    box_xyxy: Box
    """Pixels."""
    mask: dict[str, Any] | None = None
    """COCO's run lengths, where the detector has masks; the checker reads boxes alone."""

    def names(self, label: str) -> bool:
        """Whether it is a detection of `label`; case does not count."""
        return self.label.lower() == label.lower()


class Detected(_Part):
    """The detections of one detector."""

    type: str = ""
    """Name of the detector."""
    detections: tuple[Found, ...]
    """In the detector's order: of equal scores the first counts."""
    error: str | None = None
    """Why it failed on this image; None if it looked."""


class Detectors(_Part):
    """The detections of a sample: `primary` decides, `secondary` is asked whether it agrees."""

    primary: Detected
    secondary: Detected | None = None


class Components(_Part):
    """The parts of a recorded confidence."""

    stability: Share | None = None
    """Share of the verdict that held under perturbations."""
    agreement: Share | None = None
    """Agreement of the second detector."""


class CheckerSample(BaseModel):
    """One image with its prompt's relation and what was detected in it."""

    model_config = ConfigDict(frozen=True, coerce_numbers_to_str=True)

    sample_id: Text
    """Unique in the file."""
    prompt_id: Text
    """Shared by the images (seeds) of one prompt."""
    relation: Relation
    """The prompt's relation of a to b."""
    object_a: Text
    object_b: Text
    detectors: Detectors
    width: Side | None = None
    """Width of the image, pixels; None if the whole run has one size."""
    height: Side | None = None
    verdict_raw: Literal["PASS", "FAIL", "UNDECIDABLE"] | None = None
    """Verdict when the detections were recorded."""
    verdict_reason: str | None = None
    """Why it was not decided then."""
    conf_components: Annotated[Components, BeforeValidator(lambda parts: parts or {})] = (
        Components()
    )
    """Stability and agreement as they were measured then; null where nothing was."""

    @property
    def measured_stability(self) -> float | None:
        """The recorded stability; None where it is only a placeholder.

        It was measured where a verdict was reached, be it withdrawn as unstable afterwards. A file
        without its verdicts doesn't say; there only what early abstentions write is none.
        """
        if self.verdict_raw is None and self.verdict_reason is None:
            tried = not self._abstained_early
        else:
            reason = self.verdict_reason or ""
            tried = self.verdict_raw in ("PASS", "FAIL") or reason.startswith("unstable")
        return self.conf_components.stability if tried else None

    @property
    def measured_agreement(self) -> float | None:
        """The recorded agreement; None where the second detector was not asked."""
        return None if self._abstained_early else self.conf_components.agreement

    @property
    def _abstained_early(self) -> bool:
        """Whether both are the zeros that an abstention before the geometry writes."""
        return not self.conf_components.stability and not self.conf_components.agreement


def read_samples(path: Path, size: Size) -> Iterator[tuple[CheckerSample, Size]]:
    """Every sample with the size of its image (`size` where the row has none).

    Raises RowError, naming file, line and field, for a row that does not fit, a sample id that
    occurs twice, a detection outside the image or of a label that was not asked for.
    """
    line_of: dict[str, int] = {}
    for number, row in read_rows(path):
        sample = parse(CheckerSample, row, path, number)
        if sample.sample_id in line_of:
            raise RowError(
                f"{path}:{number}: sample_id: {sample.sample_id!r} stands in line "
                f"{line_of[sample.sample_id]} already",
                code="duplicate-id",
            )
        line_of[sample.sample_id] = number
        image_size = Size(sample.width or size.width, sample.height or size.height)
        for field, problem in _problems(sample, image_size):
            raise RowError(
                f"{path}:{number}: {field}: {problem} (sample {sample.sample_id})",
                code="bad-value",
            )
        yield sample, image_size


def _problems(sample: CheckerSample, size: Size) -> Iterator[tuple[str, str]]:
    if sample.object_a.lower() == sample.object_b.lower():
        yield "object_b", f"{sample.object_b!r} is object_a too"
    for role, detected in sample.detectors:
        for index, detection in enumerate(detected.detections if detected else ()):
            field = f"detectors.{role}.detections.{index}"
            if problem := _box_problem(detection.box_xyxy, size):
                yield f"{field}.box_xyxy", f"{tuple(detection.box_xyxy)} {problem}"
            # The second detector may run phrases together ("a dog horse"): that is no detection
            # of either and is passed over, as in the published evaluation.
            is_asked = detection.names(sample.object_a) or detection.names(sample.object_b)
            if role == "primary" and not is_asked:
                wanted = f"{sample.object_a!r} nor {sample.object_b!r}"
                yield f"{field}.label", f"{detection.label!r} is neither {wanted}"


def _box_problem(box: Box, size: Size) -> str:
    """Describes the fault of a box in an image of this size; empty if it has none."""
    if not all(map(math.isfinite, box)):
        return "is not finite"
    if box.x1 >= box.x2 or box.y1 >= box.y2:
        return "has no area: write left, top, right, bottom"
    over_x, over_y = TOLERANCE * size.width, TOLERANCE * size.height
    inside_x = -over_x <= box.x1 and box.x2 <= size.width + over_x
    inside_y = -over_y <= box.y1 and box.y2 <= size.height + over_y
    return "" if inside_x and inside_y else f"is outside the {size.width} x {size.height} image"
