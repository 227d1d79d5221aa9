"""Images of strangers: nothing but five formats is decoded, whatever a file is called."""

from __future__ import annotations

import io
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from refusals import raises

from counterprior.images import (
    BAND,
    FORMATS,
    MOST_SIDE,
    ImageError,
    encode_png,
    open_image,
    pixels_digest,
    plain_png,
    scans,
)

EPS = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 32 32\n%%EndComments\nshowpage\n%%EOF\n"


@pytest.mark.parametrize("kind", ["TIFF", "PPM", "TGA", "ICO", "PCX", "SGI", "JPEG2000", "EPS"])
def test_other_formats_are_refused(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = []
    monkeypatch.setattr("subprocess.check_call", lambda *given, **_: started.append(given))
    path = tmp_path / "image.png"
    if kind == "EPS":
        path.write_bytes(EPS)
    else:
        Image.new("RGB", (32, 32), "red").save(path, kind)
    with raises("unreadable-image", "image.png", error=ImageError):
        open_image(path)
    assert not started


@pytest.mark.parametrize("kind", FORMATS)
def test_the_five_formats_are_read(kind: str) -> None:
    buffer = io.BytesIO()
    Image.new("RGB", (32, 32), "red").save(buffer, kind)
    assert open_image(buffer).size == (32, 32)


def test_an_image_of_many_scans_is_never_decoded(
    scan_bomb: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("PIL.JpegImagePlugin.JpegImageFile.load", lambda self: pytest.fail("load"))
    path = tmp_path / "image.png"
    path.write_bytes(scan_bomb)
    for given in (path, io.BytesIO(scan_bomb)):
        with raises("image-too-large", "2010", "100", error=ImageError):
            open_image(given)


def test_scans_are_counted_across_blocks(scan_bomb: bytes) -> None:
    first = scan_bomb.find(b"\xff\xda")
    for pad in range(3):
        # Comments move the first marker behind, over and before the edge of what is read.
        left = (1 << 20) - first - pad
        comment = b"\xff\xfe" + (65_000).to_bytes(2, "big") + bytes(64_998)
        comments, rest = divmod(left, len(comment))
        more = b"\xff\xfe" + (rest - 2).to_bytes(2, "big") + bytes(rest - 4)
        data = scan_bomb[:2] + comment * comments + more + scan_bomb[2:]
        with Image.open(io.BytesIO(data)) as image:
            assert scans(image) == 2010


@pytest.mark.parametrize("kind", ["GIF", "PNG", "WEBP"])
def test_animations_are_refused(kind: str) -> None:
    buffer = io.BytesIO()
    frames = [Image.new("RGB", (32, 32), color) for color in ("red", "blue", "lime")]
    frames[0].save(buffer, kind, save_all=True, append_images=frames[1:])
    with raises("animated-image", error=ImageError):
        open_image(buffer)


def test_a_header_of_many_pixels_is_never_decoded(tmp_path: Path) -> None:
    header = b"BM" + (54).to_bytes(4, "little") + bytes(4) + (54).to_bytes(4, "little")
    for side in (16_000, 9_000):
        size = side.to_bytes(4, "little") * 2
        info = (40).to_bytes(4, "little") + size + b"\1\0\x18\0" + bytes(24)
        with raises("image-too-large", "40,000,000", error=ImageError):
            open_image(io.BytesIO(header + info))


def png(width: int, height: int, depth: int, color: int, rows: bytes, extra: bytes = b"") -> bytes:
    """A PNG of these rows, each with its filter byte; extra: chunks before them."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        check = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + check

    head = struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, 0)
    body = chunk(b"IHDR", head) + (extra and chunk(b"tRNS", extra))
    return b"\x89PNG\r\n\x1a\n" + body + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def rows_of(deep: np.ndarray) -> bytes:
    return b"".join(b"\0" + row.astype(">u2").tobytes() for row in deep)


RAMP = np.linspace(0, 65_535, 64 * 32).reshape(32, 64).astype(np.uint16)


@pytest.mark.parametrize("bands", ["grey", "grey, one is clear", "grey and alpha", "color"])
def test_sixteen_bits_are_seen_as_they_are(bands: str) -> None:
    """All forms of one ramp from black to white are the same picture."""
    if bands == "grey":
        data = png(64, 32, 16, 0, rows_of(RAMP))
    elif bands == "grey, one is clear":
        data = png(64, 32, 16, 0, rows_of(RAMP), struct.pack(">H", 65_535))
    elif bands == "grey and alpha":
        opaque = np.full_like(RAMP, 65_535)
        data = png(64, 32, 16, 4, rows_of(np.stack([RAMP, opaque], -1).reshape(32, -1)))
    else:
        data = png(64, 32, 16, 2, rows_of(np.repeat(RAMP, 3, axis=1)))
    seen = np.asarray(open_image(io.BytesIO(data)))
    assert (seen == (RAMP >> 8)[:, :, None]).all()
    with Image.open(io.BytesIO(data)) as image:  # as every other way into the package has it
        image.load()
        ways = [open_image(io.BytesIO(write(image))) for write in (encode_png, plain_png)]
        assert pixels_digest(image) == pixels_digest(open_image(io.BytesIO(data)))
    assert all((np.asarray(way)[:-1] == seen[:-1]).all() for way in ways)


def test_a_clear_grey_is_white() -> None:
    deep = np.full((32, 32), 300, np.uint16)
    deep[:, :16] = 301
    data = png(32, 32, 16, 0, rows_of(deep), struct.pack(">H", 300))
    seen = np.asarray(open_image(io.BytesIO(data)))[:, :, 0]
    assert (seen[:, :16] == 1).all() and (seen[:, 16:] == 255).all()


@pytest.mark.parametrize("mode", ["RGBA", "LA", "P"])
def test_bands_leave_no_seam(mode: str) -> None:
    noise = np.random.default_rng(7).integers(0, 256, (2 * BAND + 20, 16, 4), np.uint8)
    image = Image.fromarray(noise).convert(mode)
    if mode == "P":
        image.info["transparency"] = 3
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    layered = Image.open(buffer).convert("RGBA")
    ground = Image.new("RGBA", layered.size, "white")
    at_once = Image.alpha_composite(ground, layered).convert("RGB")
    assert open_image(buffer).tobytes() == at_once.tobytes()


SHAPES = [(16, 100_000), (100_000, 16), (MOST_SIDE + 1, 16), (8_000, 8_000), (6_325, 6_325)]


@pytest.mark.parametrize("shape", SHAPES)
def test_a_large_image_is_refused_by_its_header(
    shape: tuple[int, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("PIL.PngImagePlugin.PngImageFile.load", lambda self: pytest.fail("load"))
    path = tmp_path / "image.png"
    path.write_bytes(png(*shape, 8, 6, b""))
    limit = "16,383" if max(shape) > MOST_SIDE else "40,000,000"
    with raises("image-too-large", f"is {shape[0]} x {shape[1]}", limit, error=ImageError):
        open_image(path)


def test_the_largest_images_are_thumbnails(tmp_path: Path) -> None:
    from counterprior.eval.report.gallery import as_webp, thumbnail

    for shape in ((16, MOST_SIDE), (MOST_SIDE, 16)):
        image = Image.new("1", shape)
        buffer = io.BytesIO()
        image.save(buffer, "PNG")
        opened = open_image(buffer)
        assert Image.open(io.BytesIO(as_webp(opened, 80))).size == shape
        assert max(Image.open(io.BytesIO(thumbnail(opened))).size) == 256
