"""Images of strangers: nothing but five formats is decoded, whatever a file is called."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from PIL import Image

from counterprior.images import FORMATS, ImageError, open_image

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
    with pytest.raises(ImageError, match="no readable image"):
        open_image(path)
    assert not started


@pytest.mark.parametrize("kind", FORMATS)
def test_the_five_formats_are_read(kind: str) -> None:
    buffer = io.BytesIO()
    Image.new("RGB", (32, 32), "red").save(buffer, kind)
    assert open_image(buffer).size == (32, 32)
