"""Bytes of an image or a clip for the labeling page.

A clip is played as MP4 or WebM. An animated GIF or WebP is encoded anew, once, and kept beside the
labels. Where the form is blind, all images are PNG and all clips MP4 encoded here: neither their
files nor their playback reveal the generator.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from ...clip_files import DEMUXERS, clip_frames, encode_mp4, ending_of, read_clip
from ...images import open_image, opened, plain_png
from ...storage import write_whole

CLIPS = "clips"
"""Folder of clips that were encoded anew, by the SHA-256 of the file they are of."""


def media_for_page(file: Path, blind: bool, folder: Path) -> tuple[bytes, str]:
    """Bytes and media type of an image or a clip.

    folder: where encoded clips are kept. Raises ImageError for a file that can't be shown,
    UsageError for a clip without PyAV.
    """
    data = file.read_bytes() if file.is_file() else b""
    if ending := ending_of(data):
        if ending in DEMUXERS and not blind:
            return data, f"video/{ending.removeprefix('.')}"
        return _encoded(data, folder / CLIPS), "video/mp4"
    if blind:
        return plain_png(open_image(file)), "image/png"
    with opened(file) as image:  # whatever it is called, one of the five raster formats
        kind = {"MPO": "jpeg"}.get(image.format or "", (image.format or "").lower())
    return data, f"image/{kind}"


def _encoded(data: bytes, folder: Path) -> bytes:
    """The clip as MP4 of the same frames and rate."""
    path = folder / f"{hashlib.sha256(data).hexdigest()}.mp4"
    if not path.exists():
        fps = read_clip(data).fps
        write_whole(path, encode_mp4([*clip_frames(data)], fps).data)
    return path.read_bytes()
