"""What the steps of round trips made, by what went in: a step is taken once, whoever needs it.

The caption of an image by one captioner is needed by every generator that draws it; it is asked for
once. Records are `steps.jsonl`, or `steps.I-of-N.jsonl` of a shard, beside the images.
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
from ...storage import without_surrogates, write_whole
from ..core import Caption
from ..generators import ENCODED, USD
from ..store.answers import AnswerLog
from ..store.shards import RunShard

FOLDER = "steps"


@dataclass(frozen=True)
class TakenStep:
    """What became of one step."""

    key: str
    """Of model, input, edit and seed."""
    step: str
    """Its kind."""
    status: Literal["made", "refused"] = "made"
    """A step that was refused is not taken again; one that failed has no record."""
    text: str = ""
    """What was written."""
    sha256: Digest = ""
    """Of the PNG that was drawn."""
    cut: bool = False
    """Whether the text goes on after the most tokens that its model may write."""
    message: str = ""
    """What was said where it was refused."""
    usd: Dollars = ""
    """What an image cost, US dollars; calls of captioners are in their ledgers."""

    @property
    def digest(self) -> str:
        """Of what was made, as an input of the next step."""
        text = self.text.encode("utf-8", "backslashreplace")
        return self.sha256 or hashlib.sha256(text).hexdigest()

    def to_record(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if value}

    @classmethod
    def from_record(cls, record: dict[str, Any], place: str) -> TakenStep:
        """The inverse of `to_record`. Raises DataError for anything else."""
        return parse_as(cls, record, place)


def step_key(step: str, identity: Mapping[str, str], given: str, edit: str, seed: int) -> str:
    """Of a step: another model, input, edit or seed makes another one."""
    words = json.dumps([step, dict(identity), given, edit, seed], sort_keys=True)
    return hashlib.sha256(words.encode()).hexdigest()[:24]


class StepLog:
    """The steps that were taken in a run or a study; safe to use from threads."""

    def __init__(self, folder: Path, shard: RunShard | None = None) -> None:
        """Reads the steps of all shards. Raises DataError for a damaged log."""
        self.folder = folder.absolute() / FOLDER
        self._lock = ThreadLock()
        self._answers = AnswerLog(
            self.folder, "steps", TakenStep, shard=shard, in_memory=True, sessions=False
        )
        len(self._answers)  # read now: threads look up while one adds

    def __iter__(self) -> Iterator[TakenStep]:
        return iter(list(self._answers.values()))

    def find(self, key: str) -> TakenStep | None:
        """The newest result of a step whose image is still there; None where there is none."""
        taken = reversed(self._answers.of(key))
        return next((one for one in taken if not one.sha256 or self._file(one).exists()), None)

    def add(self, taken: TakenStep) -> None:
        """Records what became of a step; an image is in the folder already."""
        with self._lock:
            self._answers.append(taken)

    def image(self, taken: TakenStep) -> Callable[[], Image.Image]:
        """What reads the image that was drawn."""
        return partial(_read_image, self._file(taken))

    def _file(self, taken: TakenStep) -> Path:
        return _image_file(self.folder, taken.sha256)


def taken_step(folder: Path, key: str, step: str, made: Caption | Image.Image) -> TakenStep:
    """What a step made, to be recorded; an image is written into the folder of steps.

    First the image, then the record: a record is never of an image that is not there.
    """
    if isinstance(made, Caption):
        return TakenStep(key, step, text=without_surrogates(made.text), cut=made.cut)
    data = made.info.get(ENCODED) or encode_png(made)
    digest = hashlib.sha256(data).hexdigest()
    write_whole(_image_file(folder, digest), data)
    return TakenStep(key, step, sha256=digest, usd=made.info.get(USD, ""))


def _image_file(folder: Path, digest: str) -> Path:
    return folder / "images" / f"{digest}.png"


def _read_image(path: Path) -> Image.Image:
    """An image that was drawn, RGB, with its bytes in ``info[ENCODED]``. Raises DataError where the
    file is not the recorded one any more."""
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
    found = image.convert("RGB")
    found.info[ENCODED] = data
    return found
