"""Guidance of attention: before each of the first steps, latents move against the gradient of a
loss of the words' attention maps. `psg` and `boxes` differ in the loss."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from PIL.Image import Image

from .attention import Shape, watch_attention
from .denoising import Arguments, denoisers, first_arguments

if TYPE_CHECKING:
    from torch import Tensor


class Descent(Protocol):
    """Settings of the updates."""

    @property
    def steps(self) -> int:
        """First steps that are guided."""

    @property
    def updates(self) -> int:
        """Updates at each of them."""

    @property
    def size(self) -> int:
        """Longer side of the attention maps that are used; 0 for the largest maps."""

    def factor(self, step: int) -> float:
        """Factor of the gradient at a step, from 0."""


class GuidedRun(ABC):
    """One image of a pipeline, guided."""

    method: ClassVar[str]
    """Name of the method in messages."""

    def __init__(self, pipeline: Any, settings: Descent) -> None:
        self._pipeline = pipeline
        self._model = denoisers(pipeline)[0]
        self._settings = settings
        self._arguments: Arguments = {}
        self._input = ""
        self._time_scale = 1.0
        self._shape = Shape(0, 0, 1.0)
        self._layers = 0
        self.losses: list[float] = []
        """Loss before each update."""
        self.steps: list[int] = []
        """Step of each update, from 0."""
        self._seconds = 0.0
        self._bytes = 0

    @abstractmethod
    def total(self, maps: Tensor) -> Tensor:
        """The loss, from maps of shape (batch, height, width, tokens)."""

    @property
    @abstractmethod
    def last_place(self) -> int:
        """Place of the last token whose map is read."""

    def begin(self, timesteps: int) -> None:  # noqa: B027
        """Called before the first update, with the number of all steps."""

    @property
    def costs(self) -> dict[str, float]:
        """Seconds of all updates, and MiB that their gradients needed."""
        return {
            "extra_seconds": round(self._seconds, 3),
            "extra_mib": round(self._bytes / 2**20, 2),
        }

    def draw(self, call: Callable[[], Image]) -> Image:
        """Returns the image of `call`, with its latents moved."""
        self._model.requires_grad_(False)
        with _prepared(self._pipeline) as prepared:
            arguments = first_arguments(self._pipeline, call)
        (latents,) = prepared
        self._learn(arguments, latents)
        times = self._pipeline.scheduler.timesteps
        start = self._update(latents, times[0], 0)
        step = 0

        def after_step(latents: Tensor) -> Tensor:
            nonlocal step
            step += 1
            if step >= min(self._settings.steps, len(times)):
                return latents
            return self._update(latents, times[step], step)

        with _prepared(self._pipeline, start), _stepping(self._pipeline.scheduler, after_step):
            return call()

    def _learn(self, arguments: Arguments, latents: Tensor) -> None:
        """Learns the denoiser's arguments besides latents and time, for the prompt alone."""
        self._input = "sample" if "sample" in arguments else "hidden_states"
        sample = arguments[self._input]
        single, doubled = len(latents), len(sample)
        first = float(_flat(arguments["timestep"])[0])
        self._time_scale = first / float(self._pipeline.scheduler.timesteps[0])
        left_out = ("sample", "hidden_states", "timestep", "return_dict")
        self._arguments = {
            name: _conditional(value, single, doubled)
            for name, value in arguments.items()
            if name not in left_out
        }
        self._shape = Shape.of(self._model, latents, self._arguments)
        self.begin(len(self._pipeline.scheduler.timesteps))

    def _update(self, latents: Tensor, moment: Tensor, step: int) -> Tensor:
        """Moves the latents along the gradient; in float32, as float16 loses small gradients."""
        import torch

        started = time.perf_counter()
        saved: dict[int, int] = {}

        def keep(tensor: Tensor) -> Tensor:
            saved[tensor.data_ptr()] = tensor.numel() * tensor.element_size()
            return tensor

        moved = latents.detach().float()
        for _ in range(self._settings.updates):
            with torch.enable_grad(), torch.autograd.graph.saved_tensors_hooks(keep, keep):
                start = moved.requires_grad_(True)
                loss = self._loss(start, moment)
                (gradient,) = torch.autograd.grad(loss, start)
            moved = (start - self._settings.factor(step) * gradient).detach()
            self.losses.append(float(loss.detach()))
            self.steps.append(step)
        self._bytes = max(self._bytes, sum(saved.values()))
        self._seconds += time.perf_counter() - started
        return moved.to(latents.dtype)

    def _loss(self, latents: Tensor, moment: Tensor) -> Tensor:
        import torch

        model, scheduler = self._model, self._pipeline.scheduler
        scaled = latents
        if hasattr(scheduler, "scale_model_input"):
            scaled = scheduler.scale_model_input(latents, moment)
        moment = (moment * self._time_scale).expand(len(latents))
        if self._time_scale != 1.0:
            moment = moment.to(model.dtype)
        inputs = {self._input: scaled.to(model.dtype), "timestep": moment, "return_dict": False}
        call = {**self._arguments, **inputs}
        layer_maps = watch_attention(
            model, lambda: model(**call), self._shape, self._settings.size, self._layers
        )
        if not layer_maps:
            raise ValueError(
                f"{self.method}: no attention to the text has maps of size {self._settings.size}: "
                f"try size=0, and leave the attention backend as it is"
            )
        if self._settings.size:  # with 0 smaller maps may come first
            self._layers = len(layer_maps)
        maps = torch.stack(layer_maps).mean(0)
        last = self.last_place
        if last >= maps.shape[-1]:
            raise ValueError(
                f"{self.method}: the model reads {maps.shape[-1]} tokens of the prompt, and the "
                f"last word of its relations is token {last + 1}: it can't be guided there"
            )
        return self.total(maps)


def smooth_maps(maps: Tensor, sd: float) -> Tensor:
    """Maps of shape (batch, height, width, tokens) under a Gaussian of 3 x 3 positions."""
    import torch

    if not sd:
        return maps
    weights = torch.exp(-(torch.arange(-1.0, 2.0, device=maps.device) ** 2) / (2 * sd**2))
    kernel = torch.outer(weights, weights) / weights.sum() ** 2
    planes = maps.permute(0, 3, 1, 2)
    padded = torch.nn.functional.pad(planes, (1, 1, 1, 1), mode="reflect")
    count = planes.shape[1]
    spread = kernel.to(maps).expand(count, 1, 3, 3)
    return torch.nn.functional.conv2d(padded, spread, groups=count).permute(0, 2, 3, 1)


def _flat(value: Any) -> Tensor:
    import torch

    return torch.as_tensor(value).flatten()


def _conditional(value: Any, single: int, doubled: int) -> Any:
    """Returns the positive half of arguments for [negative, positive] in one batch."""
    import torch

    if isinstance(value, dict):
        return {name: _conditional(item, single, doubled) for name, item in value.items()}
    batched = isinstance(value, torch.Tensor) and value.ndim > 0 and len(value) == doubled
    return value[-single:] if batched and doubled > single else value


@contextmanager
def _prepared(pipeline: Any, start: Tensor | None = None) -> Iterator[list[Tensor]]:
    """Collects the latents that the pipeline starts from within it, or replaces them by `start`.

    They are drawn as ever, so that a generator of noise goes on as it would.
    """
    collected: list[Tensor] = []
    real = pipeline.prepare_latents

    def prepare(*args: Any, **kwargs: Any) -> Any:
        result = real(*args, **kwargs)
        latents = result[0] if isinstance(result, tuple) else result
        collected.append(latents)
        if start is None:
            return result
        return (start, *result[1:]) if isinstance(result, tuple) else start

    pipeline.prepare_latents = prepare
    try:
        yield collected
    finally:
        del pipeline.prepare_latents


@contextmanager
def _stepping(scheduler: Any, after_step: Callable[[Tensor], Tensor]) -> Iterator[None]:
    """Passes results of the scheduler's steps through `after_step` within it."""
    real = scheduler.step

    def step(*args: Any, **kwargs: Any) -> Any:
        result = real(*args, **kwargs)
        if isinstance(result, tuple):
            return (after_step(result[0]), *result[1:])
        result.prev_sample = after_step(result.prev_sample)
        return result

    scheduler.step = step
    try:
        yield
    finally:
        del scheduler.step
