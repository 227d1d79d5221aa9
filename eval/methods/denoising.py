"""Reaching into the steps of any pipeline of diffusers, through its denoiser's forward pre-hook.

The pipeline's own loop runs; the hook sees and replaces the denoiser's arguments. So there is no
code for single pipelines, whose callbacks can't replace pooled embeddings (FLUX), masks
(Qwen-Image) or anything at all (PixArt).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from ...errors import UsageError

PREVIEW = "preview:?at="
"""Before the step, in the name of the method that draws what it predicts."""
DENOISERS = ("transformer", "transformer_2", "unet")
"""Parts of a pipeline that denoise; Wan 2.2 has two, for early and late steps."""
NOT_TEXT = frozenset(
    "hidden_states sample timestep img_shapes img_ids guidance return_dict attention_kwargs "
    "joint_attention_kwargs cross_attention_kwargs".split()
)
"""Arguments of a denoiser that don't come from the prompt."""

Arguments = dict[str, Any]
Hook = Callable[[Any, tuple[Any, ...], Arguments], Any]


class _Captured(BaseException):
    """Ends a call of a pipeline at its first step; no `except Exception` on the way stops it."""


def denoisers(pipeline: Any) -> list[Any]:
    """Returns the modules of a pipeline that denoise, in the order of `DENOISERS`."""
    modules = [getattr(pipeline, name, None) for name in DENOISERS]
    return [module for module in modules if module is not None]


@contextmanager
def hooked(pipeline: Any, hook: Hook) -> Iterator[None]:
    """Within it, `hook(module, args, kwargs)` runs before every call of a denoiser.

    It returns the new ``(args, kwargs)``, or None to leave them.
    """
    with ExitStack() as stack:
        for module in denoisers(pipeline):
            handle = module.register_forward_pre_hook(hook, with_kwargs=True)
            stack.callback(handle.remove)
        yield


def first_arguments(pipeline: Any, call: Callable[[], object]) -> Arguments:
    """Keyword arguments of the first denoiser call that `call` leads to; it ends there.

    Costs one text encoding. Raises what `call` raises before its first step.
    """
    got: Arguments = {}

    def capture(module: Any, args: tuple[Any, ...], kwargs: Arguments) -> None:
        # Some are given sample and timestep by position.
        got.update(zip(inspect.signature(module.forward).parameters, args, strict=False))
        got.update(kwargs)
        raise _Captured

    with hooked(pipeline, capture):
        try:
            call()
        except _Captured:
            pass
        finally:
            pipeline.maybe_free_model_hooks()  # with offload the aborted call left parts there
    return got


def conditioning(arguments: Mapping[str, Any]) -> Arguments:
    """Returns those of a denoiser's arguments that come from the prompt."""
    return {name: value for name, value in arguments.items() if name not in NOT_TEXT}


class SwitchHook:
    """Sets a second prompt's conditioning from step `at[0]` on, the pipeline's from `at[1]` on,
    and so forth.

    A step begins where the timestep changes, which holds for first-order schedulers. Of a step's
    calls only the first is changed: with true classifier-free guidance the second is for the
    negative prompt, which is the same for both.
    """

    def __init__(self, at: Sequence[int], second: Mapping[str, Any]) -> None:
        """at: rising steps. second: the `conditioning` of the second prompt's first call."""
        self._at = at
        self._second = second
        self._new: Arguments = {}
        self._last: float | None = None
        self._step, self._call = -1, 0
        self.switched: list[int] = []
        """Steps whose conditioning was replaced."""

    def __call__(
        self, module: Any, args: tuple[Any, ...], kwargs: Arguments
    ) -> tuple[tuple[Any, ...], Arguments]:
        time = _first_number(kwargs["timestep"] if "timestep" in kwargs else args[1])
        if time != self._last:
            self._step, self._call, self._last = self._step + 1, 0, time
        else:
            self._call += 1
        if self._step == 0 and self._call == 0:
            # What is the same for both prompts stays the pipeline's own.
            self._new = {k: v for k, v in self._second.items() if not same(v, kwargs.get(k))}
        if self._call or not sum(step <= self._step for step in self._at) % 2:
            return args, kwargs
        if self._new:
            self.switched.append(self._step)
        return args, {**kwargs, **self._new}


def _first_number(value: Any) -> float:
    import torch

    return float(torch.as_tensor(value).flatten()[0])


def same(a: Any, b: Any) -> bool:
    """Whether two arguments are equal, tensors bit for bit."""
    import torch

    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        return a.shape == b.shape and a.dtype == b.dtype and bool((a == b).all())
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[name], b[name]) for name in a)
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, torch.Tensor) or type(a) is not type(b):
        return a is b
    return bool(a == b)


@contextmanager
def predicting(pipeline: Any, at: int) -> Iterator[None]:
    """Within it, a call of the pipeline ends in the clean image that step `at` predicts, from 0.

    The pipeline decodes it as it decodes its last latents. Pipelines that can be interrupted skip
    the steps that remain; others take them without effect. Raises UsageError, at that step, for a
    scheduler that predicts no clean image.
    """
    scheduler = pipeline.scheduler
    step, done = scheduler.step, 0

    def replacement(
        model_output: Any, timestep: Any, sample: Any, *args: Any, **kwargs: Any
    ) -> Any:
        nonlocal done
        done += 1
        if done <= at:
            return step(model_output, timestep, sample, *args, **kwargs)
        clean = sample
        if done == at + 1:
            options = {k: v for k, v in kwargs.items() if k != "return_dict"}
            clean = _predicted(scheduler, step, (model_output, timestep, sample, *args), options)
            pipeline._interrupt = True
        clean = clean.to(sample.dtype)
        return (clean,) if kwargs.get("return_dict") is False else _Step(clean)

    scheduler.step = replacement
    try:
        yield
    finally:
        del scheduler.step  # the class's own is back
        if hasattr(pipeline, "_interrupt"):
            pipeline._interrupt = False


@dataclass(frozen=True)
class _Step:
    """A step of a scheduler, as pipelines read it."""

    prev_sample: Any


def _predicted(scheduler: Any, step: Callable[..., Any], call: Any, options: Arguments) -> Any:
    """The clean latents that a call of a scheduler's step predicts.

    call: model output, timestep and sample; options: the others. Raises UsageError without any.
    """
    output, timestep, sample = call[:3]
    name = type(scheduler).__name__
    if getattr(scheduler, "order", 1) > 1:
        raise _no_prediction(name)
    is_flow = not hasattr(scheduler, "alphas_cumprod")
    converts = hasattr(scheduler, "convert_model_output")
    if (is_flow or converts) and scheduler.step_index is None:
        scheduler._init_step_index(timestep)
    if is_flow:  # straight lines: sample = (1 - sigma) clean + sigma noise, output = noise - clean
        return sample.float() - float(scheduler.sigmas[scheduler.step_index]) * output.float()
    if converts:
        config = scheduler.config
        if not (config.get("predict_x0") or "++" in config.get("algorithm_type", "")):
            raise _no_prediction(name)
        return scheduler.convert_model_output(output, sample=sample)
    clean = getattr(step(*call, **{**options, "return_dict": True}), "pred_original_sample", None)
    if clean is None:
        raise _no_prediction(name)
    return clean


def _no_prediction(scheduler: str) -> UsageError:
    return UsageError(
        f"preview: {scheduler} predicts no clean image", "add scheduler=DDIM", code="unsupported"
    )


def preview_step(generator: Mapping[str, str]) -> int:
    """Step of the preview that a generator's identity names; -1 without one.

    >>> preview_step({"kind": "render", "method": "lora:a + preview:?at=3"})
    3
    """
    _, named, step = generator.get("method", "").rpartition(PREVIEW)
    return int(step.partition(" ")[0]) if named else -1
