"""Opening pictures that somebody else made, without trusting them."""

from __future__ import annotations

import hashlib
import struct
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

from PIL import Image, ImageOps
from PIL.PngImagePlugin import PngInfo

from .errors import DataError

MOST_PIXELS = 64_000_000
"""Width times height above which a picture is refused before it is decoded."""
FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP")
"""Formats of images that are read, whatever the file is called: others run programs (EPS starts
Ghostscript) or rarely tested decoders."""
MOST_SCANS = 100
"""Passes of a progressive JPEG above which it is refused before it is decoded: each costs as much
as a whole image and may need but ten bytes. Cameras and editors write ten."""
Z_RLE = 3
"""zlib's strategy of runs: a third faster than the default at the same size where colors are flat,
as in rendered images; worse on photographs."""
LEAST_SIDE = 16
"""Shorter side, pixels, below which a picture shows nothing."""


class ImageError(DataError):
    """A file that can't be judged as a picture; the message says why."""


def open_image(file: Path | BytesIO) -> Image.Image:
    """The picture as RGB, upright as its EXIF orientation says; of its metadata only the renderer's
    ``scene`` is kept, as by `encode_png`.

    Raises ImageError for a file that is missing, not of `FORMATS`, truncated, animated, below
    `LEAST_SIDE` or above `MOST_PIXELS` or `MOST_SCANS`. CMYK, grey and palette
    pictures are converted, transparent ones put on white.
    """
    with opened(file) as image:
        return settle_image(image)


BROKEN = (
    *(OSError, SyntaxError, ValueError, EOFError),
    *(struct.error, LookupError, ArithmeticError),
)
"""Errors that decoders raise for broken bytes."""


@contextmanager
def opened(file: Path | BytesIO, formats: tuple[str, ...] = FORMATS) -> Iterator[Image.Image]:
    """A stranger's image of which only the header was read, and which is affordable to decode.

    Raises ImageError for a file that is missing, not of `formats`, above `MOST_PIXELS` or
    `MOST_SCANS`, or that turns out broken within the block.
    """
    try:
        with warnings.catch_warnings():
            # Pillow warns above half its own limit; ours is checked before any pixel is decoded.
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            with Image.open(file, formats=formats) as image:
                _check_cost(image)
                yield image
    except Image.DecompressionBombError:
        raise ImageError(f"has more than {MOST_PIXELS:,} pixels", code="image-too-large") from None
    except FileNotFoundError:
        raise ImageError("does not exist", code="no-such-file") from None
    except BROKEN as error:
        if isinstance(error, ImageError):
            raise
        raise ImageError(
            f"is not a readable image: {_reason(error, file)}", code="unreadable-image"
        ) from None


def settle_image(image: Image.Image) -> Image.Image:
    """An image that was opened and not decoded yet, as `open_image` gives it.

    Raises ImageError for its shape and format, and what Pillow raises for its bytes.
    """
    if image.format not in FORMATS:  # whoever opened it may take others
        raise ImageError(f"is {image.format}, none of {', '.join(FORMATS)}", code="unknown-format")
    _check_cost(image)
    _check(image)
    image.load()
    plain = _on_white(ImageOps.exif_transpose(image))
    scene = image.info.get("scene")
    plain.info = {"scene": scene} if isinstance(scene, str) else {}
    return plain


def scans(image: Image.Image) -> int:
    """Passes that decoding an opened JPEG takes, counted without decoding; 0 for other formats.

    A thumbnail in the metadata counts too: more are counted than there are, never fewer.
    """
    file: BinaryIO | None = getattr(image, "fp", None)
    if image.format not in ("JPEG", "MPO") or file is None:
        return 0
    place, count, before = file.tell(), 0, b""
    file.seek(0)
    while block := file.read(1 << 20):
        count += (before + block).count(b"\xff\xda")
        before = block[-1:]
    file.seek(place)
    return count


def _check_cost(image: Image.Image) -> None:
    width, height = image.size
    if width * height > MOST_PIXELS:
        raise ImageError(
            f"is {width} x {height}, more than {MOST_PIXELS:,} pixels", code="image-too-large"
        )
    if (passes := scans(image)) > MOST_SCANS:
        raise ImageError(
            f"is a JPEG of {passes} scans, more than {MOST_SCANS}", code="image-too-large"
        )


def encode_png(image: Image.Image, level: int = 6) -> bytes:
    """The image as PNG: the same bytes for the same pixels and level (1-9) under one Pillow.

    Of its metadata only the renderer's ``scene`` is kept, so that its pictures can be edited again.
    """
    metadata, how = PngInfo(), {}
    if isinstance(scene := image.info.get("scene"), str):
        metadata.add_text("scene", scene)
        how = {"compress_type": Z_RLE}
    buffer = BytesIO()
    image.convert("RGB").save(buffer, "PNG", compress_level=level, pnginfo=metadata, **how)
    return buffer.getvalue()


def pixels_digest(image: Image.Image) -> str:
    """SHA-256 of what is seen: width, height and RGB bytes, upright and on white as `open_image`
    has them, whatever the file's format."""
    visible = _on_white(ImageOps.exif_transpose(image))
    return hashlib.sha256(b"%d %d " % visible.size + visible.tobytes()).hexdigest()


def plain_png(image: Image.Image) -> bytes:
    """PNG of the pixels alone, for whoever must not see how a picture came about."""
    plain = image.convert("RGB")
    plain.info = {}
    buffer = BytesIO()
    plain.save(buffer, "PNG", compress_level=1)
    return buffer.getvalue()


def _check(image: Image.Image) -> None:
    width, height = image.size
    if min(width, height) < LEAST_SIDE:
        raise ImageError(
            f"is {width} x {height}, a side below {LEAST_SIDE} pixels", code="image-too-small"
        )
    # Counting a GIF's frames would read all of them.
    if getattr(image, "is_animated", False):
        raise ImageError("is animated", code="animated-image")


def _on_white(image: Image.Image) -> Image.Image:
    if "A" in image.getbands() or "transparency" in image.info:
        layered = image.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", layered.size, "white"), layered).convert(
            "RGB"
        )
    return image.convert("RGB")


def _reason(error: Exception, file: Path | BytesIO) -> str:
    if isinstance(file, BytesIO):
        return str(error).replace(repr(file), "it") or type(error).__name__
    return str(error).replace(str(file), file.name) or type(error).__name__
