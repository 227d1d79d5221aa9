"""From untrusted bytes to an RGB picture that is stored: sniffed, measured, decoded, re-encoded."""

from __future__ import annotations

import hashlib
import warnings
from dataclasses import dataclass
from io import BytesIO

from PIL import Image, ImageCms, ImageOps, UnidentifiedImageError

MAGIC = {
    "JPEG": (b"\xff\xd8\xff",),
    "PNG": (b"\x89PNG\r\n\x1a\n",),
    "GIF": (b"GIF87a", b"GIF89a"),
    "WEBP": (b"RIFF",),
    "BMP": (b"BM",),
}
"""Pillow's format -> first bytes. Nothing else is opened, whatever its Content-Type says."""


@dataclass(frozen=True)
class PixelLimits:
    """Which pictures are kept, and how."""

    max_pixels: int = 40_000_000
    """Width times height by the header, checked before anything is decoded."""
    min_side: int = 100
    """Shorter sides are dropped (the paper's 100 x 100)."""
    max_aspect: float = 3.0
    """Longer side over shorter one; beyond it a picture is dropped (the paper names no number)."""
    max_side: int = 768
    """Longer sides are scaled down to this; nothing is scaled up."""
    quality: int = 90
    """Of the JPEG that is stored."""


@dataclass(frozen=True)
class Stored:
    """A picture as it is kept."""

    data: bytes
    """JPEG, RGB, upright."""
    width: int
    height: int
    original_width: int
    """Before scaling, upright."""
    original_height: int
    """Before scaling, upright."""
    sha256: str
    """Of the bytes that the server sent."""
    dhash: str
    """256-bit difference hash, 64 hex digits; a mirrored picture has another."""


class BadPicture(Exception):
    """Bytes that become no picture; `reason` is the status, the message the detail."""

    def __init__(self, reason: str, message: str = "") -> None:
        super().__init__(message or reason)
        self.reason = reason


def sniff(data: bytes) -> str:
    """Pillow's name of the format that the first bytes show. Raises BadPicture `not_image`."""
    for name, starts in MAGIC.items():
        if data.startswith(starts) and (name != "WEBP" or data[8:12] == b"WEBP"):
            return name
    raise BadPicture("not_image", f"starts with {data[:8]!r}")


def store(data: bytes, limits: PixelLimits) -> Stored:
    """The picture in untrusted bytes, made ready to keep. Raises BadPicture with a reason:

    not_image, decode, too_many_pixels, animated, too_small, aspect.
    """
    name = sniff(data)
    try:
        with warnings.catch_warnings():
            # Pillow warns of large pictures by a limit of its own; ours is checked below.
            warnings.simplefilter("ignore")
            with Image.open(BytesIO(data), formats=(name,)) as picture:
                return _store(picture, data, limits)
    except BadPicture:
        raise
    except Image.DecompressionBombError as error:
        raise BadPicture("too_many_pixels", str(error)) from None
    except (UnidentifiedImageError, OSError, ValueError, SyntaxError, EOFError) as error:
        raise BadPicture("decode", f"{type(error).__name__}: {error}") from None


def _store(picture: Image.Image, data: bytes, limits: PixelLimits) -> Stored:
    width, height = picture.size
    if width * height > limits.max_pixels:
        raise BadPicture("too_many_pixels", f"{width} x {height}")
    if getattr(picture, "n_frames", 1) > 1:
        raise BadPicture("animated", f"{getattr(picture, 'n_frames', 0)} frames")
    if min(width, height) < limits.min_side:
        raise BadPicture("too_small", f"{width} x {height}")
    if max(width, height) > limits.max_aspect * min(width, height):
        raise BadPicture("aspect", f"{width} x {height}")
    picture.load()
    # Orientation first: half of the orientations mirror the picture, and left would be right.
    upright = ImageOps.exif_transpose(picture)
    rgb = _rgb(upright)
    original = rgb.size
    rgb.thumbnail((limits.max_side, limits.max_side), Image.Resampling.LANCZOS)
    buffer = BytesIO()
    rgb.save(buffer, "JPEG", quality=limits.quality, subsampling=0)
    return Stored(
        buffer.getvalue(), *rgb.size, *original, hashlib.sha256(data).hexdigest(), dhash(rgb)
    )


def _rgb(picture: Image.Image) -> Image.Image:
    """In sRGB: by the embedded profile where it is sound, on white where it is transparent."""
    profile = picture.info.get("icc_profile")
    if profile and picture.mode in ("RGB", "CMYK", "L"):
        try:
            source = ImageCms.ImageCmsProfile(BytesIO(profile))
            converted = ImageCms.profileToProfile(
                picture, source, ImageCms.createProfile("sRGB"), outputMode="RGB"
            )
            if converted is not None:
                return converted
        except (ImageCms.PyCMSError, OSError):
            pass  # a broken profile is no reason to lose the picture
    if picture.mode in ("RGBA", "LA", "PA") or "transparency" in picture.info:
        rgba = picture.convert("RGBA")
        ground = Image.new("RGBA", rgba.size, "white")
        return Image.alpha_composite(ground, rgba).convert("RGB")
    return picture.convert("RGB")


def dhash(picture: Image.Image) -> str:
    """Difference hash: whether each of 16 x 16 cells is brighter than its right neighbour.

    The usual 8 x 8 takes two plain pictures of different things for one.
    """
    levels = picture.convert("L").resize((17, 16), Image.Resampling.BOX).tobytes()
    bits = 0
    for row in range(16):
        for at in range(17 * row, 17 * row + 16):
            bits = bits << 1 | (levels[at] > levels[at + 1])
    return f"{bits:064x}"
