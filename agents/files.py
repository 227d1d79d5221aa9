"""Writing a file whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path


def write_atomically(path: Path, text: str | bytes) -> None:
    """The whole file, or none of it."""
    partial = path.with_name(path.name + ".partial")
    data = text.encode() if isinstance(text, str) else text
    with partial.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)
