"""Pipelines of videos: real classes and the real loading path, tiny random weights."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from counterprior.clip_files import Clip, clip_frames, read_clip
from counterprior.eval.core import ImageRequest
from counterprior.eval.generators import open_generator
from counterprior.eval.generators.diffusion import DiffusersGenerator

SMALL = "device=cpu&height=64&width=64"
SHORT = "num_frames=9&steps=2&max_sequence_length=32"
VIDEOS = {
    # As Wan 2.2 with two denoisers: one for the noisy steps, one for the rest.
    "wan": ("num_frames=5&steps=4&max_sequence_length=32", 5, 16.0),
    "ltx": (f"{SHORT}&frame_rate=12", 9, 12.0),
    "ltx-2": (SHORT, 9, 24.0),
    "hunyuan": ("num_frames=5&steps=2&fps=24", 5, 24.0),
}
FROM_IMAGES = {
    "wan-i2v": f"{SMALL}&{SHORT.replace('steps=2', 'steps=4')}&fps=6",
    "ltx-i2v": f"{SMALL}&{SHORT}&fps=6",
    "ltx-2-i2v": f"{SMALL}&{SHORT}&fps=6",
    "hunyuan-i2v": "device=cpu&num_frames=9&steps=2&fps=6",  # its size is that of the source
}


@pytest.mark.lane
@pytest.mark.parametrize("kind", VIDEOS)
def test_a_video_pipeline_makes_clips(kind: str, checkpoint: Callable[[str], Path]) -> None:
    options, frames, rate = VIDEOS[kind]
    generator = open_generator(f"diffusers:{checkpoint(kind)}?{SMALL}&{options}")
    assert isinstance(generator, DiffusersGenerator)
    denoised = set()
    for name in ("transformer", "transformer_2"):
        if (denoiser := getattr(generator.pipeline, name, None)) is not None:
            denoiser.register_forward_hook(lambda *_, name=name: denoised.add(name))
    made = generator.generate(ImageRequest("A cat and a dog.", 3))
    assert isinstance(made, Clip)
    assert denoised == ({"transformer", "transformer_2"} if kind == "wan" else {"transformer"})
    found = read_clip(made.data)
    assert (found.frames, found.fps, found.ending) == (frames, rate, ".mp4")
    assert {frame.size for frame in clip_frames(made.data)} == {(64, 64)}
    again = generator.generate(ImageRequest("A cat and a dog.", 3))
    others = [
        generator.generate(ImageRequest("A cat and a dog.", 4)),
        generator.generate(ImageRequest("One horse.", 3)),
    ]
    assert isinstance(again, Clip) and made.data == again.data
    assert all(isinstance(other, Clip) and other.data != made.data for other in others)


@pytest.mark.lane
@pytest.mark.parametrize("kind", FROM_IMAGES)
def test_an_image_becomes_a_clip(kind: str, checkpoint: Callable[[str], Path]) -> None:
    generator = open_generator(f"diffusers:{checkpoint(kind)}?{FROM_IMAGES[kind]}")
    shades = [Image.new("RGB", (64, 64), (shade,) * 3) for shade in (20, 230)]
    made = [generator.generate(ImageRequest("It jumps.", 3, source)) for source in shades]
    first, second = (read_clip(one.data) for one in made if isinstance(one, Clip))
    assert (first.frames, first.fps) == (9, 6.0) and generator.identity()["fps"] == "6"
    pixels = [np.stack(list(clip_frames(clip.data))).astype(float) for clip in (first, second)]
    assert pixels[0].shape == (9, 64, 64, 3)
    assert np.abs(pixels[0] - pixels[1]).max() > 1  # it sees its source


@pytest.mark.lane
def test_one_frame_is_an_image(checkpoint: Callable[[str], Path]) -> None:
    options = "num_frames=1&steps=2&max_sequence_length=32"
    generator = open_generator(f"diffusers:{checkpoint('wan')}?{SMALL}&{options}")
    assert isinstance(generator.generate(ImageRequest("A cat.", 3)), Image.Image)
