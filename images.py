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

from PIL import ExifTags, Image, ImageOps
from PIL.PngImagePlugin import PngInfo, putchunk

from .errors import DataError

MOST_PIXELS = 40_000_000
"""Width times height above which a picture is refused before it is decoded: 8K has 33 million, and
each may take 8 bytes while it is decoded, from a file of a thousandth of that."""
MOST_SIDE = 16_383
"""Longer side, pixels, above which a picture is refused before it is decoded: WebP, in which
thumbnails and publications are written, has no more."""
BAND = 256
"""Rows that are put on white at a time, so that the copies of a large picture stay small."""
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
    `LEAST_SIDE` or above `MOST_SIDE`, `MOST_PIXELS` or `MOST_SCANS`. CMYK, grey and palette
    pictures are converted, deep ones as `shallow` does, transparent ones put on white.
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

    Raises ImageError for a file that is missing, not of `formats`, above `MOST_SIDE`,
    `MOST_PIXELS` or `MOST_SCANS`, or that turns out broken within the block.
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
    plain = on_white(_upright(image))
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


def check_size(image: Image.Image) -> None:
    """Raises ImageError above `MOST_SIDE` or `MOST_PIXELS`; decodes nothing."""
    width, height = image.size
    if max(width, height) > MOST_SIDE:
        raise ImageError(
            f"is {width} x {height}, a side above {MOST_SIDE:,} pixels", code="image-too-large"
        )
    if width * height > MOST_PIXELS:
        raise ImageError(
            f"is {width} x {height}, more than {MOST_PIXELS:,} pixels", code="image-too-large"
        )


def _check_cost(image: Image.Image) -> None:
    check_size(image)
    if (passes := scans(image)) > MOST_SCANS:
        raise ImageError(
            f"is a JPEG of {passes} scans, more than {MOST_SCANS}", code="image-too-large"
        )


def encode_png(image: Image.Image) -> bytes:
    """The image as PNG: the same bytes for the same pixels under one Pillow.

    Of its metadata only the renderer's ``scene`` is kept, so that its pictures can be edited again.
    """
    metadata = _scene_text(image)
    how = {"compress_type": Z_RLE} if metadata.chunks else {}
    buffer = BytesIO()
    shallow(image).convert("RGB").save(buffer, "PNG", compress_level=6, pnginfo=metadata, **how)
    return buffer.getvalue()


def encode_drawing(image: Image.Image, *, flat: bool) -> bytes:
    """An RGB image as PNG, with what `encode_png` keeps, in less time: in half of it if `flat`.

    flat: whether colors are, as in most drawings; with shades the file would be twice as large.
    """
    metadata, buffer = _scene_text(image), BytesIO()
    if not flat:
        image.save(buffer, "PNG", compress_level=3, compress_type=Z_RLE, pnginfo=metadata)
        return buffer.getvalue()
    # For each row of colors Pillow tries five filters, which gain little here, but none for numbers
    # of a palette: the bytes of each row are compressed as such, below a header that says colors.
    # Python's own zlib would do, but its bytes differ between systems; Pillow brings its own.
    width, height = image.size
    rows = Image.frombytes("P", (3 * width, height), image.tobytes())
    rows.putpalette(bytes(3 * 256))
    rows.save(buffer, "PNG", compress_level=3)
    numbers = buffer.getvalue()
    png = BytesIO()
    png.write(b"\x89PNG\r\n\x1a\n")
    putchunk(png, b"IHDR", struct.pack(">2I5B", width, height, 8, 2, 0, 0, 0))
    for kind, text, _ in metadata.chunks:
        putchunk(png, kind, text)
    png.write(numbers[numbers.index(b"IDAT") - 4 :])
    return png.getvalue()


def _scene_text(image: Image.Image) -> PngInfo:
    """The metadata of an image that is kept."""
    metadata = PngInfo()
    if isinstance(scene := image.info.get("scene"), str):
        metadata.add_text("scene", scene)
    return metadata


def pixels_digest(image: Image.Image) -> str:
    """SHA-256 of what is seen: width, height and RGB bytes, upright and on white as `open_image`
    has them, whatever the file's format."""
    visible = on_white(_upright(image))
    return hashlib.sha256(b"%d %d " % visible.size + visible.tobytes()).hexdigest()


def plain_png(image: Image.Image) -> bytes:
    """PNG of the pixels alone, for whoever must not see how a picture came about."""
    plain = shallow(image).convert("RGB")
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


def shallow(image: Image.Image) -> Image.Image:
    """An image with 8 bits a channel: of 16 bits of grey the upper 8, as Pillow takes them of 16
    bits a color. Converted by Pillow, all grey above 255 of 65,535 would be white.
    """
    if not image.mode.startswith("I;16"):
        return image
    import numpy as np

    deep = np.asarray(image).astype(np.uint16)
    grey = Image.fromarray((deep >> 8).astype(np.uint8))
    clear = image.info.get("transparency")
    if isinstance(clear, int):
        grey.putalpha(Image.fromarray(np.where(deep == clear, 0, 255).astype(np.uint8)))
    return grey


def _upright(image: Image.Image) -> Image.Image:
    """The image turned as its EXIF says; itself, and no copy of a large one, if it is upright."""
    turned = image.getexif().get(ExifTags.Base.Orientation, 1) != 1
    return ImageOps.exif_transpose(image) if turned else image


def on_white(image: Image.Image) -> Image.Image:
    """An image as RGB: deep grey as `shallow` has it, transparent pixels put on white."""
    image = shallow(image)
    if "A" not in image.getbands() and "transparency" not in image.info:
        return image.convert("RGB")
    plain = Image.new("RGB", image.size)
    for top in range(0, image.height, BAND):
        band = image.crop((0, top, image.width, min(top + BAND, image.height))).convert("RGBA")
        ground = Image.new("RGBA", band.size, "white")
        plain.paste(Image.alpha_composite(ground, band).convert("RGB"), (0, top))
    return plain


def _reason(error: Exception, file: Path | BytesIO) -> str:
    if isinstance(file, BytesIO):
        return str(error).replace(repr(file), "it") or type(error).__name__
    return str(error).replace(str(file), file.name) or type(error).__name__
