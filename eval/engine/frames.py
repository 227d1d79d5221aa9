"""Frames of a run's clips, extracted once and kept.

What a judge was shown stays beside its verdicts, and the next judge is shown the same bytes:
`frames/SHA-256 OF THE CLIP/NUMBER-START OF ITS OWN SHA-256.png`. A file that does not fit its name
is nobody's frame, and the frame is extracted again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

from PIL import Image

from ...clip_files import chosen_frames
from ...errors import UsageError
from ...images import encode_png, open_image
from ...storage import write_whole
from ..clips.frames import FrameChoice
from .run import CaseResult, recorded_bytes

FRAMES = "frames"
"""Folder of a run."""


class ShownFrame(NamedTuple):
    """One frame, or an image that is no clip, as a judge is shown it."""

    number: int | None
    """Number of the frame, from 0; None for an image."""
    image: Image.Image
    """RGB."""
    digest: str
    """SHA-256 of the file that holds these pixels."""


def numbers_of(choice: FrameChoice, image: CaseResult) -> Sequence[int | None]:
    """The frames of a clip that are judged; of an image `(None,)`.

    Raises UsageError, which names the case, for a frame that the clip doesn't have.
    """
    if not image.frames:
        return (None,)
    try:
        return choice.of(image.frames, image.fps)
    except UsageError as error:
        raise UsageError(f"{image.case}: {error}", code="no-frame") from None


def shown_frames(root: Path, image: CaseResult, choice: FrameChoice) -> list[ShownFrame]:
    """Returns the frames of a run's image or clip that a judge is shown, in the order of time.

    Raises ImageError where it can't be read, or the clip is not the recorded one any more.
    """
    if not image.frames:
        rgb = open_image(BytesIO(recorded_bytes(root, image))).convert("RGB")
        return [ShownFrame(None, rgb, image.sha256)]
    numbers = [number for number in numbers_of(choice, image) if number is not None]
    folder = root / FRAMES / image.sha256
    by_number = {
        number: frame for number in numbers if (frame := _kept(folder, number)) is not None
    }
    if missing := [number for number in numbers if number not in by_number]:
        frames = chosen_frames(recorded_bytes(root, image), missing)
        by_number |= {number: _keep(folder, number, frame) for number, frame in frames.items()}
    return [by_number[number] for number in numbers]


def _keep(folder: Path, number: int, frame: Image.Image) -> ShownFrame:
    data = encode_png(frame)
    digest = hashlib.sha256(data).hexdigest()
    write_whole(folder / _name(number, digest), data)
    return ShownFrame(number, frame.convert("RGB"), digest)


def _kept(folder: Path, number: int) -> ShownFrame | None:
    """A frame as it was kept; None where there is none with the bytes that its name tells."""
    for path in folder.glob(f"{number}-*.png"):
        data = path.read_bytes()
        digest = hashlib.sha256(data).hexdigest()
        if path.name == _name(number, digest):
            return ShownFrame(number, open_image(BytesIO(data)), digest)
    return None


def _name(number: int, digest: str) -> str:
    return f"{number}-{digest[:16]}.png"
