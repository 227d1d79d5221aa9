"""Images of strangers: nothing but five formats is decoded, whatever a file is called."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from PIL import Image
from refusals import raises

from counterprior.images import FORMATS, ImageError, open_image, scans

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
    for pad in range(3):
        # A comment of 64 KiB after another moves the markers over the edges of what is read.
        comment = b"\xff\xfe" + (65_000).to_bytes(2, "big") + bytes(64_998)
        more = b"\xff\xfe" + (2 + pad).to_bytes(2, "big") + bytes(pad)
        data = scan_bomb[:2] + comment * 15 + more + scan_bomb[2:]
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
    for side in (20_000, 9_000):
        size = side.to_bytes(4, "little") * 2
        info = (40).to_bytes(4, "little") + size + b"\1\0\x18\0" + bytes(24)
        with raises("image-too-large", "64,000,000", error=ImageError):
            open_image(io.BytesIO(header + info))
