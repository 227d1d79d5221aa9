"""`ratings`: what human annotators said of an image, e.g. from 1 to 7 (OTS-Bench, Table 19).

``ratings:FOLDER?field=overall`` reads a folder of `audit serve --kind quality`; ``ratings:FILE`` a
file of labels whose rows have `image`, `question` and a number as `label`. An image's rating is the
mean over its annotators. An image that nobody rated has no score.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, ClassVar

from ...errors import DataError, UsageError
from ...human_labels import click_time, read_labels
from ...parsing import MALFORMED, RowError
from ...specs import Options, Spec
from ...storage import read_records
from ..judges import CallPlan
from . import RecordedScorer, ScorerError

if TYPE_CHECKING:
    from PIL.Image import Image


class RatingsOptions(Options):
    """Options of `ratings`."""

    field: str = "overall"
    """The rating to read: `overall`, `alignment` or `fidelity`, or a `question` of a file."""


class HumanRatings(RecordedScorer):
    """Mean ratings by the SHA-256 of their images."""

    argument: ClassVar[str] = "FOLDER"
    options: ClassVar[type[Options]] = RatingsOptions

    def __init__(self, path: Path, field: str) -> None:
        """Raises UsageError where nothing is there, DataError for labels that are no ratings, and
        where nobody rated the field."""
        if not path.exists():
            raise UsageError(
                f"ratings: there is no folder or file {path}: label with `counterprior audit serve "
                f"RUN... --kind quality --out {path}`",
                code="no-such-file",
            )
        self.field = field
        by_image = _of_page(path, field) if path.is_dir() else _of_file(path, field)
        self.ratings = {image: fmean(numbers) for image, numbers in by_image.items()}
        if not self.ratings:
            raise DataError(f"{path}: nobody rated {field!r}", code="nothing-to-do")

    @classmethod
    def from_spec(
        cls, spec: Spec, options: RatingsOptions, plan: CallPlan | None = None
    ) -> HumanRatings:
        if not spec.argument:
            raise UsageError("ratings: needs a folder: ratings:FOLDER", code="missing-option")
        return cls(Path(spec.argument), options.field)

    def identity(self) -> dict[str, str]:
        digest = hashlib.sha256(json.dumps(sorted(self.ratings.items())).encode()).hexdigest()
        return {"kind": "ratings", "field": self.field, "ratings": digest[:12]}

    def score_digests(self, digests: Sequence[str]) -> list[float]:
        return [self.ratings.get(digest, math.nan) for digest in digests]

    def score(self, pairs: Sequence[tuple[str, Image]]) -> list[float]:
        raise ScorerError("ratings are known by an image's file alone", code="unsupported")


def _of_page(folder: Path, field: str) -> dict[str, list[float]]:
    """SHA-256 -> ratings, of a folder that the page filled: each annotator's latest clicks."""
    sample = folder / "sample.json"
    try:
        content = json.loads(sample.read_text("utf-8"))
        kind, images = content["kind"], {item["id"]: item["images"][0] for item in content["items"]}
    except (OSError, *MALFORMED) as error:
        raise DataError(f"{sample}: is not a sample of runs ({error})", code="bad-format") from None
    if kind != "quality":
        raise UsageError(f"{sample}: a sample for {kind} has no ratings", code="wrong-type")
    ratings: dict[str, list[float]] = {}
    for file in sorted(folder.glob("*.jsonl")):
        clicks = sorted(
            read_records(file), key=lambda record: click_time(str(record.get("clicked", "")))
        )
        newest = {click.get("item"): click[field] for click in clicks if field in click}
        for item, number in newest.items():
            if item in images:
                ratings.setdefault(images[item], []).append(float(number))
    return ratings


def _of_file(path: Path, field: str) -> dict[str, list[float]]:
    """SHA-256 -> ratings, of a file of labels."""
    ratings: dict[str, list[float]] = {}
    for label in read_labels(path):
        if label.question not in ("", field):
            continue
        try:
            number = float(label.label)
        except ValueError:
            number = math.nan
        if not math.isfinite(number) or not label.image:
            missing = (
                "image: missing" if not label.image else f"label: {label.label!r} is no number"
            )
            raise RowError(f"{label.place}: {missing}", code="bad-value")
        ratings.setdefault(label.image, []).append(number)
    return ratings
