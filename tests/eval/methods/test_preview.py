"""Previews of a step: on real pipelines the last one is the image, and the formulas are exact."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refusals import raises
from steered import OPTIONS, STEPS, Opened, kinds, request

from counterprior.errors import UsageError
from counterprior.eval.core import ImageRequest
from counterprior.eval.generators import open_generator
from counterprior.eval.methods import apply_methods
from counterprior.eval.methods.denoising import _predicted

SCHEDULERS = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")


NOISY_END = ("sd15",)
"""Tiny checkpoints whose scheduler's last step leaves a little noise: `set_alpha_to_one` is off."""


def numbers(image: bytes) -> Any:
    return np.frombuffer(image, np.float32)


def drawn(generator: Any, asked: ImageRequest) -> bytes:
    data: bytes = generator.generate(asked).tobytes()
    return data


@SCHEDULERS
@pytest.mark.parametrize("kind", kinds(*OPTIONS))
def test_the_preview_of_the_last_step_is_the_image(opened: Opened, kind: str) -> None:
    generator = opened(kind)
    image = drawn(generator, request(kind))
    previews = [
        drawn(apply_methods(generator, [f"preview:?at={at}"]), request(kind))
        for at in (0, STEPS - 2, STEPS - 1, STEPS + 3)
    ]
    if kind in NOISY_END:
        distances = [np.abs(numbers(p) - numbers(image)).mean() for p in previews]
        assert distances[3] == 0 < distances[2] < distances[0] / 3, distances
    else:
        assert previews[2:] == [image, image]
    assert len({*previews[:3]}) == 3
    assert drawn(generator, request(kind)) == image  # the pipeline itself is as it was


def ddim(prediction: str) -> Any:
    from diffusers import DDIMScheduler

    kind: Any = DDIMScheduler
    return kind(
        prediction_type=prediction,
        rescale_betas_zero_snr=prediction != "epsilon",
        clip_sample=False,
    )


def flow(prediction: str) -> Any:
    from diffusers import FlowMatchEulerDiscreteScheduler

    kind: Any = FlowMatchEulerDiscreteScheduler
    return kind(shift=3.0)


def multistep(prediction: str) -> Any:
    from diffusers import DPMSolverMultistepScheduler

    kind: Any = DPMSolverMultistepScheduler
    return kind(prediction_type=prediction)


@SCHEDULERS
@pytest.mark.parametrize(
    ("scheduler", "prediction"),
    [(ddim, "v_prediction"), (ddim, "epsilon"), (flow, "flow"), (multistep, "epsilon")],
)
def test_the_clean_image_is_found_in_what_the_model_says(
    scheduler: Callable[[str], Any], prediction: str
) -> None:
    import torch

    made = scheduler(prediction)
    made.set_timesteps(5)
    random = torch.Generator().manual_seed(0)
    clean, noise = (torch.randn(1, 4, 4, 4, generator=random) for _ in range(2))
    time = made.timesteps[2]
    if prediction == "flow":
        made._init_step_index(time)
        signal, level = 1 - float(made.sigmas[2]), float(made.sigmas[2])
        output = noise - clean
    else:
        power = float(made.alphas_cumprod[int(time)])
        signal, level = power**0.5, (1 - power) ** 0.5
        output = noise if prediction == "epsilon" else signal * noise - level * clean
    found = _predicted(made, made.step, (output, time, signal * clean + level * noise), {})
    assert torch.allclose(found, clean, atol=1e-4)


def test_a_scheduler_that_predicts_no_clean_image_is_refused() -> None:
    class Second:
        order = 2

    with raises("unsupported", "Second", "scheduler=DDIM", error=UsageError):
        _predicted(Second(), lambda: None, (None, None, None), {})


def test_a_rendered_layout_is_settled_from_its_step_on(tmp_path: Path) -> None:
    generator = open_generator("render:?order_bias=9&decides=3")
    asked = [ImageRequest("A photo of a dog and a cat.", seed) for seed in range(8)]
    final = [drawn(generator, one) for one in asked]
    for at, same in ((0, False), (1, False), (2, True), (9, True)):
        preview = apply_methods(generator, [f"preview:?at={at}"])
        assert ([drawn(preview, one) for one in asked] == final) == same, at
    assert preview.identity()["method"] == "preview:?at=9"
    with raises("unsupported", "folder", "render:"):
        apply_methods(f"folder:{tmp_path}", ["preview:?at=1"])
