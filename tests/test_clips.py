"""Clips of strangers: every frame or a named failure; and our own, which come back as they were."""

from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from counterprior.clips import (
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
    assert (found.ending, found.frames, found.rate) == (clip.ending, len(FRAMES), 4)
    shown = [np.asarray(frame).mean() for frame in clip_frames(clip.data)]
    assert shown == pytest.approx(LEVELS, abs=2)
    chosen = chosen_frames(clip.data, (5, 3)).items()
    assert {n: round(np.asarray(frame).mean(), -1) for n, frame in chosen} == {3: 80, 5: 160}
    assert make().data == clip.data
    with pytest.raises(ClipError, match="has no frame 7"):
        chosen_frames(clip.data, (0, 7))


def test_a_still_image_is_no_clip() -> None:
    with pytest.raises(ClipError, match="all alike"):
        encode_webp(FRAMES[4:], 4)
    for kind in ("PNG", "WEBP", "GIF"):
        buffer = BytesIO()
        FRAMES[0].save(buffer, kind)
        assert ending_of(buffer.getvalue()) == ""
        with pytest.raises(ClipError, match="is no clip"):
            read_clip(buffer.getvalue())


def test_a_broken_file_is_a_named_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    data = encode_mp4(FRAMES, 4).data
    place = data.index(b"mdat")
    early = b"".join([data[: place + 4], b"\0" * 8, data[place + 12 :]])  # the first frame's bytes
    tiny = encode_mp4([frame.resize((10, 10)) for frame in FRAMES], 4).data
    for bad, reason in (
        (data[:24], "no readable clip|holds no video"),
        (data[: place + 40], "no readable clip|holds no video"),
        (early, "no readable clip|breaks off"),
        (tiny, "a side below 16"),
        (b"\0\0\0 ftypisom" + bytes(50), "no readable clip|holds no video"),
        (b"", "is no clip"),
    ):
        with pytest.raises(ClipError, match=reason):
            read_clip(bad)
    monkeypatch.setattr("counterprior.clips.MOST_FRAMES", 6)
    with pytest.raises(ClipError, match="more than 6 frames"):
        read_clip(data)
