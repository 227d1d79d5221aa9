"""Clips of strangers: every frame or a named failure; and our own, which come back as they were."""

import os
import subprocess
import sys
from io import BytesIO
from pathlib import Path

import av
import numpy as np
import pytest
from PIL import Image
from refusals import raises

from counterprior.clip_files import (
    Clip,
    ClipError,
    chosen_frames,
    clip_frames,
    encode_mp4,
    encode_webp,
    ending_of,
    read_clip,
)

LEVELS = (0, 0, 80, 80, 160, 160, 160)
"""Alike ones beside each other, which GIF and WebP merge."""
FRAMES = [Image.fromarray(np.full((33, 47, 3), level, np.uint8)) for level in LEVELS]


def gif() -> Clip:
    buffer = BytesIO()
    first, *rest = FRAMES
    first.save(buffer, "GIF", save_all=True, append_images=rest, duration=250)
    return Clip(buffer.getvalue(), ".gif", len(FRAMES), 4)


MAKERS = {"mp4": lambda: encode_mp4(FRAMES, 4), "webp": lambda: encode_webp(FRAMES, 4), "gif": gif}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_a_clip_comes_back_frame_by_frame(make) -> None:
    clip = make()
    found = read_clip(clip.data)
    assert (found.ending, found.frames, found.fps) == (clip.ending, len(FRAMES), 4)
    shown = [np.asarray(frame).mean() for frame in clip_frames(clip.data)]
    assert shown == pytest.approx(LEVELS, abs=2)
    chosen = chosen_frames(clip.data, (5, 3)).items()
    assert {n: round(np.asarray(frame).mean(), -1) for n, frame in chosen} == {3: 80, 5: 160}
    assert make().data == clip.data
    with raises("no-frame", "frame 7", error=ClipError):
        chosen_frames(clip.data, (0, 7))


def test_rejects_still_images_as_clips() -> None:
    with raises("still-clip", error=ClipError):
        encode_webp(FRAMES[4:], 4)
    for kind in ("PNG", "WEBP", "GIF"):
        buffer = BytesIO()
        FRAMES[0].save(buffer, kind)
        assert ending_of(buffer.getvalue()) == ""
        with raises("unreadable-image", error=ClipError):
            read_clip(buffer.getvalue())


def test_a_broken_file_is_a_named_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    data = encode_mp4(FRAMES, 4).data
    place = data.index(b"mdat")
    early = b"".join([data[: place + 4], b"\0" * 8, data[place + 12 :]])  # the first frame's bytes
    tiny = encode_mp4([frame.resize((10, 10)) for frame in FRAMES], 4).data
    for bad, reason in (
        (data[:24], ("unreadable-image", "clip")),
        (data[: place + 40], ("unreadable-image", "clip")),
        (early, ("unreadable-image", "clip")),
        (tiny, ("image-too-small", "10 x 10", "16")),
        (b"\0\0\0 ftypisom" + bytes(50), ("unreadable-image", "clip")),
        (b"", ("unreadable-image", "clip")),
    ):
        with raises(*reason, error=ClipError):
            read_clip(bad)
    monkeypatch.setattr("counterprior.clip_files.MOST_FRAMES", 6)
    with raises("image-too-large", "than 6", error=ClipError):
        read_clip(data)


def film(path: Path, frames: int, codec: str = "libx264") -> bytes:
    """A film whose index comes first, so that its end can be missing; it may hold no frame."""
    options = {"movflags": "+faststart"} if path.suffix == ".mp4" else {}
    with av.open(str(path), "w", options=options) as container:
        stream = container.add_stream(codec, rate=4, options={"threads": "1"})
        stream.width, stream.height, stream.pix_fmt = 64, 64, "yuv420p"
        container.start_encoding()
        for number in range(frames):
            noise = Image.effect_noise((64, 64), 20 + number).convert("RGB")
            container.mux(stream.encode(av.VideoFrame.from_image(noise)))
        container.mux(stream.encode())
    return path.read_bytes()


def test_a_film_without_frames_or_without_its_end_is_named(tmp_path: Path) -> None:
    data = film(tmp_path / "whole.mp4", 8)
    assert read_clip(data).frames == 8
    with av.open(str(tmp_path / "whole.mp4")) as container:
        places = [packet.pos for packet in container.demux(video=0) if packet.size]
    with raises("unreadable-image", "of 8", error=ClipError):
        read_clip(data[: places[-2]])
    with raises("empty-clip", error=ClipError):
        read_clip(film(tmp_path / "empty.mp4", 0))
    webm = film(tmp_path / "some.webm", 3, "libvpx-vp9")
    assert (read_clip(webm).frames, read_clip(webm).fps) == (3, 4)
    with raises("unreadable-image", error=ClipError):
        read_clip(film(tmp_path / "empty.webm", 0, "libvpx-vp9"))


ENCODES = """
import hashlib, numpy as np
from PIL import Image
from counterprior.clip_files import encode_mp4
rng = np.random.default_rng(1)
base = rng.normal(0, 1, (11, 11, 3))
frames = []
for number in range(9):
    drifted = base + 0.3 * number * rng.normal(0, 1, base.shape)
    large = np.kron(drifted, np.ones((8, 8, 1)))[number : number + 64, number : number + 64]
    frames.append(Image.fromarray(np.clip(128 + 50 * large, 0, 255).astype(np.uint8)))
print(hashlib.sha256(encode_mp4(frames, 12).data).hexdigest())
"""


@pytest.mark.lane
def test_the_bytes_do_not_depend_on_what_was_in_memory() -> None:
    printed = set()
    for filled in ("0", "1", "90"):  # glibc fills what it hands out with this byte
        memory = {**os.environ, "MALLOC_PERTURB_": filled}
        command = [sys.executable, "-c", ENCODES]
        done = subprocess.run(command, env=memory, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        printed.add(done.stdout)
    assert len(printed) == 1
