"""Turns untrusted bytes into a stored RGB image: sniffs, measures, decodes and re-encodes them."""

from __future__ import annotations

import hashlib
import warnings
from dataclasses import dataclass
from io import BytesIO

from PIL import Image, ImageCms, ImageOps, UnidentifiedImageError

from ...images import MOST_PIXELS, MOST_SCANS, on_white, scans

MAGIC = {
    "JPEG": (b"\xff\xd8\xff",),
    "PNG": (b"\x89PNG\r\n\x1a\n",),
    "GIF": (b"GIF87a", b"GIF89a"),
    "WEBP": (b"RIFF",),
    "BMP": (b"BM",),
}
"""Pillow's format -> first bytes. Nothing else is opened, whatever its Content-Type."""


@dataclass(frozen=True)
class PixelLimits:
    """Limits on the images that are stored, and their format."""

    max_pixels: int = MOST_PIXELS
    """Most pixels by the header, checked before decoding."""
    min_side: int = 100
    """Least shorter side, pixels (the paper: 100 x 100)."""
    max_aspect: float = 3.0
    """Largest ratio of longer to shorter side (the paper gives no number)."""
    max_side: int = 768
    """Largest side after scaling down, pixels; nothing is scaled up."""
    quality: int = 90
    """JPEG quality of the stored image."""


@dataclass(frozen=True)
class Stored:
    """An image as it is stored."""

    data: bytes
    """JPEG, RGB, upright."""
    width: int
    height: int
    original_width: int
    """Width before scaling, upright."""
    original_height: int
    """Height before scaling, upright."""
    sha256: str
    """SHA-256 of the bytes that the server sent."""
    dhash: str
    """256-bit difference hash, 64 hex digits; a mirror image has another."""


class BadImage(Exception):
    """Bytes that can't become an image; carries the `reason`, with details in the message."""

    def __init__(self, reason: str, message: str = "") -> None:
        super().__init__(message or reason)
        self.reason = reason


def sniff(data: bytes) -> str:
    """Pillow's name for the format of the first bytes. Raises BadImage `not_image`."""
    for name, starts in MAGIC.items():
        if data.startswith(starts) and (name != "WEBP" or data[8:12] == b"WEBP"):
            return name
    raise BadImage("not_image", f"starts with {data[:8]!r}")


def store(data: bytes, limits: PixelLimits = PixelLimits()) -> Stored:
    """Decodes untrusted bytes and prepares the image for storing.

    Raises BadImage with reason not_image, decode, too_many_pixels, too_many_scans,
    animated, too_small or aspect.
    """
    name = sniff(data)
    try:
        with warnings.catch_warnings():
            # Pillow warns about large images by its own limit; ours is checked below.
            warnings.simplefilter("ignore")
            with Image.open(BytesIO(data), formats=(name,)) as image:
                return _store(image, data, limits)
    except BadImage:
        raise
    except Image.DecompressionBombError as error:
        raise BadImage("too_many_pixels", str(error)) from None
    except (UnidentifiedImageError, OSError, ValueError, SyntaxError, EOFError) as error:
        raise BadImage("decode", f"{type(error).__name__}: {error}") from None


def _store(image: Image.Image, data: bytes, limits: PixelLimits) -> Stored:
    width, height = image.size
    if width * height > limits.max_pixels:
        raise BadImage("too_many_pixels", f"{width} x {height}")
    if (passes := scans(image)) > MOST_SCANS:
        raise BadImage("too_many_scans", f"{passes} scans")
    if getattr(image, "is_animated", False):
        raise BadImage("animated")
    if min(width, height) < limits.min_side:
        raise BadImage("too_small", f"{width} x {height}")
    if max(width, height) > limits.max_aspect * min(width, height):
        raise BadImage("aspect", f"{width} x {height}")
    image.load()
    # Orientation first: half of the orientations mirror the image and would swap left and right.
    upright = ImageOps.exif_transpose(image)
    rgb = _rgb(upright)
    rgb.thumbnail((limits.max_side, limits.max_side), Image.Resampling.LANCZOS)
    buffer = BytesIO()
    rgb.save(buffer, "JPEG", quality=limits.quality, subsampling=0)
    return Stored(
        data=buffer.getvalue(),
        width=rgb.width,
        height=rgb.height,
        original_width=upright.width,
        original_height=upright.height,
        sha256=hashlib.sha256(data).hexdigest(),
        dhash=dhash(rgb),
    )


def _rgb(image: Image.Image) -> Image.Image:
    """Converts an image to sRGB, by any valid embedded profile; transparent pixels become white."""
    profile = image.info.get("icc_profile")
    if profile and image.mode in ("RGB", "CMYK", "L"):
        try:
            source = ImageCms.ImageCmsProfile(BytesIO(profile))
            converted = ImageCms.profileToProfile(
                image, source, ImageCms.createProfile("sRGB"), outputMode="RGB"
            )
            if converted is not None:
                return converted
        except (ImageCms.PyCMSError, OSError):
            pass  # a broken profile is no reason to lose the image
    return on_white(image)


def dhash(image: Image.Image) -> str:
    """Difference hash: whether each of 16 x 16 cells is brighter than its right neighbor.

    The usual 8 x 8 cells take two plain images of different things for the same.
    """
    levels = image.convert("L").resize((17, 16), Image.Resampling.BOX).tobytes()
    bits = 0
    for row in range(16):
        for at in range(17 * row, 17 * row + 16):
            bits = bits << 1 | (levels[at] > levels[at + 1])
    return f"{bits:064x}"
