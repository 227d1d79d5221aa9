"""Clips: opening those that somebody else made, without trusting them, and writing our own.

MP4 and WebM are decoded by PyAV (the extra `video`); animated GIF and WebP by Pillow. A clip is
the file that holds it: whoever asks about a frame gets the pixels that are stored.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from .errors import UsageError
from .extras import install_command
from .images import BROKEN, LEAST_SIDE, MOST_PIXELS, ImageError, open_image, opened

MOST_FRAMES = 3000
"""Frames above which a clip is refused: two minutes of 25 a second."""
MOST_BYTES = 512_000_000
"""Size of a clip's file, bytes, above which it is not decoded."""
STILLS = ("GIF", "WEBP")
"""Formats of images that may be animated."""
DEMUXERS = {".mp4": "mov", ".webm": "matroska"}
"""Ending -> the one container that is tried: others open playlists, and with them addresses."""
QUALITY = "12"
"""x264's constant rate factor, 0 (lossless) to 51: a difference that nobody sees."""
USUAL_RATE = 8.0
"""Frames a second of a film that doesn't say."""


class ClipError(ImageError):
    """A file that can't be judged as a clip; the message says why."""


@dataclass(frozen=True)
class Clip:
    """A clip of one or more frames, every one of which could be decoded or was just encoded."""

    data: bytes
    """The file."""
    ending: str
    """Suffix of its file name: `.mp4`, `.webm`, `.gif` or `.webp`."""
    frames: int
    """How many there are."""
    fps: float
    """Frames per second."""
    info: dict[str, str] = field(default_factory=dict, compare=False)
    """Metadata besides the pixels, as an image's `info`: a backend's report, the cost."""


def ending_of(data: bytes) -> str:
    """The ending of a clip by its content; empty for a still image, and for what is neither.

    >>> ending_of(b"\\0\\0\\0 ftypisom"), ending_of(b"BM")
    ('.mp4', '')
    """
    if data[4:8] == b"ftyp":
        return ".mp4"
    if data.startswith(b"\x1aE\xdf\xa3"):
        return ".webm"
    if not (data.startswith(b"GIF8") or data[8:12] == b"WEBP"):
        return ""
    try:
        with opened(BytesIO(data), STILLS) as image:
            animated = getattr(image, "is_animated", False)
            return f".{str(image.format).lower()}" if animated else ""
    except ImageError:  # whoever opens it as an image says what is wrong
        return ""


def read_clip(data: bytes) -> Clip:
    """The clip, after each of its frames was decoded once.

    Raises ClipError for a file that is no clip, holds no frame, breaks off, or is too large;
    UsageError if PyAV is needed and not installed.
    """
    count = 0
    for _ in clip_frames(data):
        count += 1
    return Clip(data, ending_of(data), count, _rate(data))


def open_made(path: Path) -> Image.Image | Clip:
    """The image or clip in a file that a program wrote. Raises ImageError, also for no file."""
    data = path.read_bytes() if path.is_file() else b""
    return read_clip(data) if ending_of(data) else open_image(path)


def clip_frames(data: bytes) -> Iterator[Image.Image]:
    """The frames in the order of time, RGB, upright; raises as `read_clip`."""
    ending = ending_of(data)
    if not ending:
        raise ClipError(
            "is not a clip: neither MP4, WebM nor an animated GIF or WebP", code="unreadable-image"
        )
    if len(data) > MOST_BYTES:
        raise ClipError(
            f"has {len(data):,} bytes, more than {MOST_BYTES:,}", code="image-too-large"
        )
    decoded = _film_frames(data, ending) if ending in DEMUXERS else _still_frames(data)
    number = 0
    for number, frame in enumerate(islice(decoded, MOST_FRAMES + 1), 1):
        if number > MOST_FRAMES:
            raise ClipError(f"has more than {MOST_FRAMES:,} frames", code="image-too-large")
        if min(frame.size) < LEAST_SIDE:
            size = f"{frame.width} x {frame.height}"
            raise ClipError(f"is {size}, a side below {LEAST_SIDE} pixels", code="image-too-small")
        yield frame
    if not number:
        raise ClipError("has no frames", code="empty-clip")


def chosen_frames(data: bytes, numbers: Iterable[int]) -> dict[int, Image.Image]:
    """Some frames by number, from 0; raises as `read_clip` for what comes before the last of them,
    and ClipError for a number that the clip doesn't have."""
    wanted = set(numbers)
    until = max(wanted, default=-1) + 1
    frames = {n: f for n, f in enumerate(islice(clip_frames(data), until)) if n in wanted}
    if missing := sorted(wanted - frames.keys()):
        raise ClipError(f"has no frame {missing[0]}", code="no-frame")
    return frames


def encode_mp4(frames: Sequence[Image.Image], fps: float) -> Clip:
    """H.264 in MP4, as every browser plays it; the same bytes for the same pixels under one PyAV.

    fps: frames a second. Sides become even by repeating the last row or column, as the format
    asks. Raises UsageError if PyAV is not installed.
    """
    av = _pyav()
    buffer = BytesIO()
    height, width = np.asarray(frames[0]).shape[:2]
    with av.open(buffer, "w", format="mp4") as container:
        # One thread: the bytes depend on how many there are. No tree of macroblocks: in small
        # frames it reads memory that nobody wrote (x264 165), and the bytes differ now and then.
        options = {"crf": QUALITY, "preset": "medium", "threads": "1", "mbtree": "0"}
        exact = Fraction(fps).limit_denominator(1001)
        stream = container.add_stream("libx264", rate=exact, options=options)
        stream.width, stream.height = width + width % 2, height + height % 2
        stream.pix_fmt = "yuv420p"
        for frame in frames:
            padding = ((0, height % 2), (0, width % 2), (0, 0))
            pixels = np.pad(np.asarray(frame.convert("RGB")), padding, mode="edge")
            container.mux(stream.encode(av.VideoFrame.from_ndarray(pixels, format="rgb24")))
        container.mux(stream.encode())
    return Clip(buffer.getvalue(), ".mp4", len(frames), fps)


def encode_webp(frames: Sequence[Image.Image], fps: float) -> Clip:
    """Lossless animated WebP, for which Pillow is enough; the same bytes for the same pixels.

    fps: frames a second; their times are whole milliseconds. Raises ClipError if all frames are
    alike, which the format makes one.
    """
    buffer = BytesIO()
    first, *following = (frame.convert("RGB") for frame in frames)
    lossless: dict[str, Any] = {"lossless": True, "quality": 0, "method": 0}
    first.save(
        buffer,
        "WEBP",
        save_all=True,
        append_images=following,
        duration=round(1000 / fps),
        **lossless,
    )
    if not ending_of(buffer.getvalue()):
        raise ClipError("would be a still image: its frames are all alike", code="still-clip")
    return Clip(buffer.getvalue(), ".webp", len(frames), fps)


def _still_frames(data: bytes) -> Iterator[Image.Image]:
    """Frames of a GIF or WebP, evenly spaced in time: whoever writes such a file merges those that
    are alike into one that is shown longer."""
    step = _step(data)
    for frame, time in _stored(data):
        yield from [frame] * (time // step)


def _step(data: bytes) -> int:
    """The longest time, milliseconds, of which every frame of a GIF or WebP is shown a multiple."""
    return math.gcd(*(time for _, time in _stored(data)))


def _stored(data: bytes) -> Iterator[tuple[Image.Image, int]]:
    """Each stored frame of a GIF or WebP with how long it is shown, milliseconds."""
    with _broken(), opened(BytesIO(data), STILLS) as image:
        for number in range(image.n_frames):  # type: ignore[attr-defined]
            image.seek(number)
            white = Image.new("RGBA", image.size, "white")
            frame = Image.alpha_composite(white, image.convert("RGBA")).convert("RGB")
            # A WebP knows it once the frame is decoded; players take 0 as a tenth of a second.
            yield frame, int(image.info.get("duration") or 100)


def _film_frames(data: bytes, ending: str) -> Iterator[Image.Image]:
    decoded = 0
    with _broken(), _film(data, ending) as stream:
        for frame in stream.container.decode(stream):
            decoded += 1
            image: Image.Image = frame.to_image()
            turned = getattr(frame, "rotation", 0)
            yield image.rotate(turned, expand=True) if turned else image
        if decoded < stream.frames:  # WebM doesn't say how many there are
            raise ClipError(
                f"breaks off: {decoded} of {stream.frames} frames can be read",
                code="unreadable-image",
            )


@contextmanager
def _film(data: bytes, ending: str) -> Iterator[Any]:
    """The video stream of a file. Raises ClipError if it has none, or one with too large frames,
    and what PyAV raises for its bytes."""
    av = _pyav()
    with av.open(BytesIO(data), format=DEMUXERS[ending]) as container:
        if not container.streams.video:
            raise ClipError("has no video stream", code="empty-clip")
        stream = container.streams.video[0]
        if stream.width * stream.height > MOST_PIXELS:
            size = f"{stream.width} x {stream.height}"
            raise ClipError(f"is {size}, more than {MOST_PIXELS:,} pixels", code="image-too-large")
        yield stream


def _rate(data: bytes) -> float:
    """Frames a second, as the file says; of a GIF or WebP by how long its frames are shown."""
    ending = ending_of(data)
    if ending in DEMUXERS:
        with _film(data, ending) as stream:
            return float(stream.average_rate or USUAL_RATE)
    return 1000 / _step(data)


@contextmanager
def _broken() -> Iterator[None]:
    """Turns a decoder's error about bad bytes into a ClipError."""
    try:
        yield
    except (ImageError, UsageError):
        raise
    except BROKEN as error:  # PyAV's are among them
        reason = str(error).partition(": '")[0].rpartition("] ")[2] or type(error).__name__
        raise ClipError(f"is not a readable clip: {reason}", code="unreadable-image") from None


def _pyav() -> Any:
    try:
        import av
    except ModuleNotFoundError:
        raise UsageError(
            "MP4 and WebM need av, which is not installed",
            install_command("video"),
            code="missing-library",
        ) from None
    return av
