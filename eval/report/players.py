"""Clips in the gallery: each copied into the site unchanged, beside its first frame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path

from PIL import Image

from ...clip_files import ClipError, clip_frames, ending_of
from ...images import open_image
from ...storage import write_whole
from ..results.contents import RunContents

CLIPS = "clips"
"""Folder of the site."""


def copy_clips(runs: Sequence[RunContents], site: Path) -> Mapping[str, str]:
    """SHA-256 of every clip that is still the recorded one -> its copy in the site, by its hash;
    existing copies are reused."""
    copies = {}
    for run in runs:
        recorded = run.run.replacement()
        for image in run.run.images().values():
            if not image.frames or image.status != "made" or not recorded.may_show(image):
                continue
            data = run.run.image_path(image).read_bytes()
            name = f"{CLIPS}/{image.sha256[:24]}{ending_of(data)}"
            if not (site / name).exists():
                write_whole(site / name, data)
            copies[image.sha256] = name
    return copies


def still_of(path: Path) -> Image.Image:
    """The image in a file, or the first frame of a clip. Raises ImageError."""
    data = path.read_bytes() if path.is_file() else b""
    if not ending_of(data):
        return open_image(BytesIO(data) if data else path)
    for frame in clip_frames(data):
        return frame
    raise ClipError("has no frames", code="empty-clip")
