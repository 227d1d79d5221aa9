"""`diffusers`: any pipeline of diffusers, from a text or as an edit.

``diffusers:PATH_OR_REPO[?revision=r&device=cuda&dtype=bfloat16&offload=true&steps=28&guidance=3.5]``
and every other plain argument of the pipeline's call by its own name, e.g. ``width=1024``. One
request is one call with its own generator on the CPU, so that an image depends neither on what
else was drawn nor on where noise is made.
"""

from __future__ import annotations

import inspect
from contextlib import suppress
from functools import cached_property
from types import UnionType
from typing import Any, Union, get_args, get_origin

import numpy as np
from PIL import Image

from ...errors import UsageError
from ...specs import Spec
from ..checkpoints.extras import SpecAdapter
from ..checkpoints.placement import Checkpoint, LoadError, Placement
from ..checkpoints.processors import pipeline_processor
from ..core import GeneratorError, ImageRequest

MARKER = "model_index.json"
OWN = ("revision", "device", "dtype", "offload")
"""Options that are not arguments of the call."""
SHORT = {"steps": "num_inference_steps", "guidance": "guidance_scale"}
"""Options with a shorter name than the argument."""
OURS = ("prompt", "image", "generator", "output_type", "return_dict", "num_images_per_prompt")
"""Arguments that a request decides."""

Scalar = bool | int | float | str


class DiffusersGenerator(SpecAdapter):
    """A pipeline, loaded when the first image is asked for."""

    def __init__(self, spec: Spec) -> None:
        """Raises UsageError for a wrong option or a model that isn't there."""
        self._checkpoint = Checkpoint.find(spec.argument, spec.options.get("revision"), MARKER)
        self._kind = kind = pipeline_class(self._checkpoint)
        known = call_options(kind)
        self._call: dict[str, Scalar] = {}
        for option, text in spec.options.items():
            name = SHORT.get(option, option)
            if option in OWN:
                continue
            if name not in known:
                names = ", ".join([*OWN, *SHORT, *sorted(known)])
                raise UsageError(f"{kind.__name__} has no option {option!r}: choose from {names}")
            self._call[name] = _parse(option, text, known[name])
        # Parts that are not in use wait in main memory: slower, and fits a smaller device.
        self._offload = _parse("offload", spec.options.get("offload", "false"), {bool})
        self._placement = Placement.from_options(spec.options)

    def identity(self) -> dict[str, str]:
        import diffusers

        return {
            "kind": "diffusers",
            "model": self._checkpoint.name,
            "revision": self._checkpoint.version,
            "pipeline": self._kind.__name__,
            "diffusers": diffusers.__version__,
            **self._placement.identity(),
            **{name: str(value) for name, value in self._call.items()},
        }

    def generate(self, request: ImageRequest) -> Image.Image:
        """Raises GeneratorError, refused where the pipeline's safety checker hid the image;
        LoadError where there can be no image at all.
        """
        import torch

        call: dict[str, Any] = {"prompt": request.prompt, **self._call}
        if request.source is not None:
            if "image" not in inspect.signature(self._kind.__call__).parameters:
                raise GeneratorError(f"{self._kind.__name__} draws from a text and can't edit")
            call["image"] = request.source.convert("RGB")
        # One prompt a call: images of a batch differ from single ones, in some pipelines grossly.
        generator = torch.Generator("cpu").manual_seed(request.seed)
        pipeline = self.pipeline
        try:
            made = pipeline(**call, generator=generator, output_type="np")
        except Exception as error:  # a pipeline's own code may raise anything
            raise GeneratorError(f"{type(error).__name__}: {error}") from error
        if any(getattr(made, "nsfw_content_detected", None) or ()):
            raise GeneratorError("the pipeline's safety checker hid the image", "refused")
        return _image(made.images[0])

    @cached_property
    def pipeline(self) -> Any:
        """Raises LoadError."""
        checkpoint, device = self._checkpoint, self._placement.device
        try:
            processor = pipeline_processor(checkpoint.source, checkpoint.commit)
            dtype = self._placement.torch_dtype
            pipeline: Any = checkpoint.load(self._kind, dtype=dtype, **processor)
            pipeline.set_progress_bar_config(disable=True)
            if self._offload:
                pipeline.enable_model_cpu_offload(device=device)
                return pipeline
            return pipeline.to(device)
        except Exception as error:  # whatever its files or the device make of it
            raise LoadError(f"{checkpoint.name} can't be loaded: {error}") from error


def pipeline_class(checkpoint: Checkpoint) -> Any:
    """The class that a checkpoint names. Raises UsageError for one that diffusers doesn't have."""
    import diffusers

    index: Any = diffusers.DiffusionPipeline.load_config(
        checkpoint.source, revision=checkpoint.commit
    )
    name = index.get("_class_name")
    kind = getattr(diffusers, name, None) if isinstance(name, str) else None
    if not (inspect.isclass(kind) and issubclass(kind, diffusers.DiffusionPipeline)):
        raise UsageError(
            f"{checkpoint.name}: diffusers {diffusers.__version__} has no pipeline {name!r}; code "
            "that comes with a model is not run"
        )
    return kind


def call_options(kind: Any) -> dict[str, set[type]]:
    """Arguments of a pipeline's call that a spec can give, each with the types it takes."""
    found = {}
    for name, parameter in inspect.signature(kind.__call__).parameters.items():
        annotation = parameter.annotation
        either = get_origin(annotation) in (Union, UnionType)
        types = {*get_args(Scalar)} & {*(get_args(annotation) if either else (annotation,))}
        if types and name not in OURS:
            found[name] = types
    return found


def _parse(option: str, text: str, types: set[type]) -> Scalar:
    """The value of an option, as the first of bool, int, float and str that it can be."""
    if bool in types and text in ("true", "false"):
        return text == "true"
    for number in (int, float):
        if number in types:
            with suppress(ValueError):
                return number(text)
    if str in types:
        return text
    names = " or ".join(sorted("true or false" if t is bool else t.__name__ for t in types))
    raise UsageError(f"diffusers: {option} must be {names}, not {text!r}")


def _image(values: np.ndarray[Any, np.dtype[np.float32]]) -> Image.Image:
    """(height, width, 3) in [0, 1] as an image. Raises GeneratorError for numbers that are none."""
    if not np.isfinite(values).all():
        raise GeneratorError("the image holds numbers that are none: try other steps or dtype")
    return Image.fromarray((values * 255).round().astype(np.uint8)).convert("RGB")
