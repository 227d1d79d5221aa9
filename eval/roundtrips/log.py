"""Results of the steps of round trips by their inputs: a step is taken once for all who need it.

Every generator needs a captioner's caption of an image; the captioner is asked for it once. Records
are `steps.jsonl`, or `steps.I-of-N.jsonl` of a shard, beside the images.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from io import BytesIO
from pathlib import Path
from threading import Lock as ThreadLock
from typing import Any, Literal

from PIL import Image

from ...errors import DataError
from ...images import ImageError, encode_png, opened
from ...parsing import Digest, Dollars, parse_as
from ...printable import without_surrogates
from ...storage import write_whole
from ..core import Caption
from ..generators import ENCODED, USD
from ..store.answers import AnswerLog
from ..store.shards import RunShard
from .routes import RECORDED, StepKind

FOLDER = "steps"


@dataclass(frozen=True)
class StepRecord:
    """Result of one step."""

    key: str
    """Digest of model, input, edit and seed, see `step_key`."""
    step: str
    """Kind, by its name of `RECORDED`."""
    status: Literal["made", "refused"] = "made"
    """A refused step is not taken again; a failed one has no record."""
    text: str = ""
    """Text, if the step makes one."""
    sha256: Digest = ""
    """SHA-256 of the PNG, if the step makes an image."""
    cut: bool = False
    """Whether the text was cut at its model's limit of tokens."""
    message: str = ""
    """Reason of a refusal."""
    usd: Dollars = ""
    """Price of an image, US dollars; calls of captioners are in their ledgers."""

    @property
    def digest(self) -> str:
        """SHA-256 of the text or image, as an input of the next step."""
        text = self.text.encode("utf-8", "backslashreplace")
        return self.sha256 or hashlib.sha256(text).hexdigest()

    def to_record(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if value}

    @classmethod
    def from_record(cls, record: dict[str, Any], place: str) -> StepRecord:
        """The inverse of `to_record`. Raises DataError for anything else."""
        return parse_as(cls, record, place)


def step_key(
    step: StepKind, identity: Mapping[str, str], input_digest: str, edit: str, seed: int
) -> str:
    """Key of a step: differs with model, input, edit and seed. 24 hexadecimal digits."""
    words = json.dumps([RECORDED[step], dict(identity), input_digest, edit, seed], sort_keys=True)
    return hashlib.sha256(words.encode()).hexdigest()[:24]


class StepLog:
    """Results of the steps of a run or a study; safe to use from threads."""

    def __init__(self, folder: Path, shard: RunShard | None = None) -> None:
        """Reads the steps of all shards. Raises DataError for a damaged log."""
        self.folder = folder.absolute() / FOLDER
        self._lock = ThreadLock()
        self._answers = AnswerLog(
            self.folder, "steps", StepRecord, shard=shard, in_memory=True, sessions=False
        )
        len(self._answers)  # read now: threads look up while one adds

    def __iter__(self) -> Iterator[StepRecord]:
        return iter(list(self._answers.values()))

    def find(self, key: str) -> StepRecord | None:
        """Returns the newest result of a step; None without one, or if its image file is gone."""
        records = reversed(self._answers.of(key))
        return next((r for r in records if not r.sha256 or self._file(r).exists()), None)

    def add(self, record: StepRecord) -> None:
        """Records the result of a step; an image is in the folder already."""
        with self._lock:
            self._answers.append(record)

    def image(self, record: StepRecord) -> Callable[[], Image.Image]:
        """Returns a picklable function that reads the image of a step."""
        return partial(_read_image, self._file(record))

    def _file(self, record: StepRecord) -> Path:
        return _image_file(self.folder, record.sha256)


def store_result(
    folder: Path, key: str, step: StepKind, result: Caption | Image.Image
) -> StepRecord:
    """Returns the record of a step's result; writes an image into the folder of steps.

    The image is written before anyone can record it: no record is of a missing image.
    """
    if isinstance(result, Caption):
        text = without_surrogates(result.text)
        return StepRecord(key, RECORDED[step], text=text, cut=result.cut)
    data = result.info.get(ENCODED) or encode_png(result)
    digest = hashlib.sha256(data).hexdigest()
    write_whole(_image_file(folder, digest), data)
    return StepRecord(key, RECORDED[step], sha256=digest, usd=result.info.get(USD, ""))


def _image_file(folder: Path, digest: str) -> Path:
    return folder / "images" / f"{digest}.png"


def _read_image(path: Path) -> Image.Image:
    """Reads the image of a step, RGB, with its bytes in ``info[ENCODED]``.

    Raises DataError for a file that is not the recorded one any more.
    """
    try:
        data = path.read_bytes()
        if hashlib.sha256(data).hexdigest() != path.stem:
            raise ImageError("is not the recorded one any more", code="changed-file")
        with opened(BytesIO(data)) as image:
            image.load()
    except (OSError, ImageError) as error:
        raise DataError(
            f"{path}: {error}; remove it, and it is made again", code="unreadable-image"
        ) from None
    rgb = image.convert("RGB")
    rgb.info[ENCODED] = data
    return rgb
