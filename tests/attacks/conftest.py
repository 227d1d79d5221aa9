"""What attacks are made of."""

from __future__ import annotations

import io

import pytest
from PIL import Image


@pytest.fixture(scope="session")
def scan_bomb() -> bytes:
    """A progressive JPEG of 2,010 scans, most of them some ten bytes."""
    buffer = io.BytesIO()
    Image.effect_noise((256, 256), 40).convert("RGB").save(buffer, "JPEG", progressive=True)
    data = buffer.getvalue()
    last = data[data.rfind(b"\xff\xda") : -2]
    return data[:-2] + last * 2000 + b"\xff\xd9"
