"""Frames of a run's clips, extracted once and kept: `frames/SHA-256 OF THE CLIP/NUMBER.png`.

What a judge was shown stays beside its verdicts, and the next judge is shown the same bytes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from PIL import Image

from ...clips import ClipError, chosen_frames
from ...errors import UsageError
from ...images import ImageError, encode_png, open_image
from ...storage import write_whole
from ..video.frames import FrameChoice
from .run import MadeImage, image_path

FRAMES = "frames"
"""Folder of a run."""


class ShownFrame(NamedTuple):
    """One frame, or an image that is no clip, as a judge is shown it."""

    number: int | None
    """Of the frame, from 0; None for an image."""
    image: Image.Image
    """RGB."""
    digest: str
    """SHA-256 of the file that holds these pixels."""


def numbers_of(choice: FrameChoice, image: MadeImage) -> Sequence[int | None]:
    """The frames of a clip that are judged; of an image `(None,)`.

    Raises UsageError, which names the case, for a frame that the clip doesn't have.
    """
    if not image.frames:
        return (None,)
    try:
        return choice.of(image.frames, image.rate)
    except UsageError as error:
        raise UsageError(f"{image.case}: {error}") from None


def shown_frames(root: Path, image: MadeImage, choice: FrameChoice) -> list[ShownFrame]:
    """What a judge is shown of a run's image or clip, in the order of time.

    Raises ImageError where it can't be read, or the clip is not the recorded one any more.
    """
    file = image_path(root, image)
    if not image.frames:
        return [ShownFrame(None, open_image(file).convert("RGB"), image.sha256)]
    numbers = [number for number in numbers_of(choice, image) if number is not None]
    folder = root / FRAMES / image.sha256
    missing = [number for number in numbers if not (folder / f"{number}.png").exists()]
    if missing:
        try:
            data = file.read_bytes()
        except OSError as error:
            raise ClipError(f"can't be read: {error.strerror}") from None
        if hashlib.sha256(data).hexdigest() != image.sha256:
            raise ClipError("is not the recorded one any more")
        for number, frame in chosen_frames(data, missing).items():
            write_whole(folder / f"{number}.png", encode_png(frame))
    return [_kept(folder / f"{number}.png", number) for number in numbers]


def _kept(path: Path, number: int) -> ShownFrame:
    try:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        return ShownFrame(number, open_image(path), digest)
    except ImageError as error:
        raise ImageError(f"has a frame {path} that {error}: delete it and judge again") from None
