"""`diffusers`: any pipeline of diffusers, of images or videos, from a text or as an edit.

``diffusers:PATH_OR_REPO[?revision=r&pipeline=CLASS&lora=PATH_OR_REPO&device=cuda&dtype=bfloat16
&steps=28&guidance=3.5&scheduler=UniPCMultistep]`` and every other plain argument of the pipeline's
call by its own name, e.g. ``width=1024``. A pipeline of videos makes clips in MP4, of ``fps``
frames a second, or images with ``num_frames=1``. One request is one call with its own generator on
the CPU, so that an image depends neither on what else was drawn nor on where noise is made;
``batch=n`` draws several in one call where that gives the same images.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from PIL import Image
from pydantic import Field

from ...clip_files import Clip, encode_mp4
from ...errors import DataError, UsageError
from ...parsing import read_json
from ...specs import Options, Spec, Unit
from ..checkpoints.pipelines import (
    LORA_FILE,
    Loading,
    LoraFile,
    PipelineClass,
    Scalar,
    find_files,
)
from ..checkpoints.placement import ModelOptions, Placement
from ..checkpoints.schedulers import SchedulerChoice
from ..core import Case, GeneratorError, ImageRequest
from . import REPORT

SHORT = {"steps": "num_inference_steps", "guidance": "guidance_scale"}
"""Options with a shorter name than the argument."""
BOUND = 2 / 255
"""Largest allowed difference of a pixel (from 0 to 1) between an image drawn in a batch and drawn
alone."""
PROBES = ("A dog.", "A photo of a cat that sits on the left of a red bicycle in a quiet park.")
"""Prompts of different lengths, to measure batches with."""
MORE_PROMPTS = ("prompt_2", "prompt_3", "prompt_4")
"""Arguments that are given once for every image of a batch, besides `negative_prompt...`."""

FPS = 16
"""Frames a second of a clip whose pipeline doesn't say, as Wan's are."""

Values = np.ndarray[Any, np.dtype[np.float32]]


@dataclass(frozen=True)
class MeasuredBatch:
    """Measured effect of drawing several images in one call."""

    size: int
    """Images that are drawn in one call."""
    note: str = ""
    """Why that is fewer than the option asks for."""


class DiffusersOptions(ModelOptions, extra="allow"):
    """Options of `diffusers`."""

    undeclared: ClassVar[str] = "steps, guidance and every plain argument of the pipeline's call"

    pipeline: str = ""
    """Another class of diffusers for the same weights, for example to edit images."""
    offload: Literal["false", "true", "sequential"] = "false"
    """Whether parts of the model are kept on the CPU until needed: whole parts, or layer by
    layer."""
    compile: bool = False
    """Whether the denoiser is compiled."""
    batch: Annotated[int, Field(ge=1, le=999), Unit("images")] = 1
    """Images drawn in one call, if this gives the same images."""
    batch_bound: Annotated[float, Field(ge=0, lt=1000)] = BOUND
    """Largest allowed difference of a pixel (from 0 to 1) between an image drawn in a batch and
    drawn alone."""
    fps: Annotated[float, Field(ge=0.1, lt=1000), Unit("frames a second")] | None = None
    """Speed of a clip; by default the pipeline's own, or 16."""
    scheduler: str = ""
    """Scheduler of diffusers that replaces the model's, such as `UniPCMultistep`."""
    shift: Annotated[float, Field(gt=0, lt=1000)] | None = None
    """Shift of the flow-matching steps toward noise; turns off a shift by image size."""
    lora: str | None = None
    """Folder, file or repository of low-rank weights."""
    lora_file: str = LORA_FILE
    """Name of the file of the low-rank weights."""
    lora_revision: str | None = None
    """Branch, tag or commit of the repository of the low-rank weights."""
    lora_scale: Annotated[float, Field(ge=-100, lt=1000)] = 1
    """Factor of the low-rank weights."""


class DiffusersGenerator:
    """A pipeline, loaded when the first image is asked for."""

    argument: ClassVar[str] = "PATH_OR_REPO"
    options: ClassVar[type[Options]] = DiffusersOptions

    @classmethod
    def from_spec(cls, spec: Spec, options: DiffusersOptions) -> DiffusersGenerator:
        """Raises UsageError for an argument that the pipeline doesn't take, and a missing model."""
        return cls(spec.argument, options, fps=spec.options.get("fps", ""))

    def __init__(self, model: str, options: DiffusersOptions, fps: str = "") -> None:
        """fps: text of the option, for the identity."""
        self._checkpoint = find_files(model, options.revision)
        self._drawing = PipelineClass.find(self._checkpoint, options.pipeline)
        accepted = self._drawing.options
        self._call: dict[str, Scalar] = {}
        arguments = options.rest | ({"fps": fps} if fps and "fps" in accepted else {})
        for option, text in arguments.items():
            name = SHORT.get(option, option)
            if name not in accepted:
                choices = ", ".join([*DiffusersOptions.model_fields, *SHORT, *sorted(accepted)])
                raise UsageError(
                    f"diffusers: {self._drawing.name} has no option {option!r}",
                    f"choose from {choices}",
                    code="unknown-option",
                )
            self._call[name] = _parse(option, text, accepted[name])
        self._given_fps = fps
        usual = self._call.get("frame_rate", self._drawing.default("frame_rate") or FPS)
        # Frames of a clip a second.
        self._fps = float(usual if options.fps is None else options.fps)
        self._batch = options.batch
        self._batches: dict[bool, MeasuredBatch] = {}
        self._bound = options.batch_bound
        self._loading = Loading(
            placement=Placement.find(options.device, options.dtype),
            offload=options.offload,
            compile=options.compile,
            lora=_lora(options),
            scheduler=SchedulerChoice.find(options.scheduler, options.shift),
        )

    def identity(self) -> dict[str, str]:
        import diffusers

        identity = {
            "kind": "diffusers",
            "model": self._checkpoint.name,
            "revision": self._checkpoint.version,
            "pipeline": self._drawing.name,
            "diffusers": diffusers.__version__,
            **self._loading.placement.identity(),
        }
        if self._loading.scheduler is not None:
            identity |= self._loading.scheduler.identity()
        if self._loading.lora is not None:
            identity |= self._loading.lora.identity()
        if self._loading.compile:
            identity["compile"] = "true"
        if self._batch > 1:  # what became of it is in the record of each image
            identity |= {"batch": str(self._batch), "batch_bound": f"{self._bound:.4g}"}
        if self._given_fps:
            identity["fps"] = self._given_fps
        return {**identity, **{name: str(value) for name, value in self._call.items()}}

    def check(self, cases: Sequence[Case]) -> None:
        """Raises UsageError for edits where the pipeline only draws."""
        if not self._drawing.edits and any(case.source for case in cases):
            editor = self._drawing.editor()
            hint = f": add pipeline={editor}" if editor else ""
            raise UsageError(
                f"{self._drawing.name} draws from a text and can't edit{hint}", code="cannot-edit"
            )

    def generate(self, request: ImageRequest) -> Image.Image | Clip:
        """Draws one image or clip.

        Raises GeneratorError, refused if the pipeline's safety checker hid the image; LoadError if
        the pipeline can't be loaded, UsageError for a clip without PyAV.
        """
        (result,) = self._draw([request])
        if isinstance(result, GeneratorError):
            raise result
        return result

    @property
    def batch_size(self) -> int:
        """Most images that are drawn in one call."""
        return self._batch

    def generate_batch(
        self, requests: Sequence[ImageRequest]
    ) -> list[Image.Image | Clip | Path | GeneratorError]:
        """Returns the images of some requests, in their order, each from its own seed.

        Draws them in one call only if images of a batch were measured to equal single ones; a call
        that fails as a whole is repeated one by one. Raises LoadError.
        """
        sizes = {None if r.source is None else r.source.size for r in requests}
        if len(sizes) == 1 and 1 < len(requests) <= self._measured(*sizes).size:
            with suppress(GeneratorError):
                return [*self._draw(requests)]
        return [self._draw_one(request) for request in requests]

    def _draw_one(self, request: ImageRequest) -> Image.Image | Clip | GeneratorError:
        try:
            return self.generate(request)
        except GeneratorError as error:
            return error

    def _draw(self, requests: Sequence[ImageRequest]) -> list[Image.Image | Clip | GeneratorError]:
        """Draws all requests in one call. Raises GeneratorError if it fails as a whole."""
        values, hidden = self._values(requests)
        results: list[Image.Image | Clip | GeneratorError] = []
        for value, is_hidden in zip(values, hidden, strict=True):
            try:
                if is_hidden:
                    message = "the pipeline's safety checker hid the image"
                    raise GeneratorError(message, "refused", code="declined")
                image = self._made(value)
                if self._batch > 1:
                    measured = self._batches.get(requests[0].source is not None)
                    note = measured.note if measured else ""
                    about = {"batch": len(requests), **({"note": note} if note else {})}
                    image.info[REPORT] = json.dumps(about, sort_keys=True)
                results.append(image)
            except GeneratorError as error:
                results.append(error)
        return results

    def _made(self, values: Values) -> Image.Image | Clip:
        """Returns an image of (height, width, 3), or a clip of (frames, height, width, 3), in [0,
        1].

        Raises GeneratorError for NaN.
        """
        if values.ndim == 3:
            return _image(values)
        return encode_mp4([_image(frame) for frame in values], self._fps)

    def _values(self, requests: Sequence[ImageRequest]) -> tuple[Values, Sequence[bool]]:
        """Returns images, shape (n, height, width, 3), in [0, 1], or clips (n, frames, height,
        width, 3); and which of them are hidden."""
        import torch

        pipeline = self.pipeline
        call = self._arguments(requests)
        # On the CPU, so that an image does not depend on the device.
        generators = [torch.Generator("cpu").manual_seed(r.seed) for r in requests]
        call["generator"] = generators if len(requests) > 1 else generators[0]
        try:
            if self._drawing.blocks is not None:
                values, hidden = pipeline(**call, output_type="np", output="images"), None
            else:
                output = pipeline(**call, output_type="np")
                values, hidden = _images(output), getattr(output, "nsfw_content_detected", None)
        except Exception as error:  # a pipeline's own code may raise anything
            raise GeneratorError(
                f"{type(error).__name__}: {error}", code="generator-failed"
            ) from error
        if len(values) != len(requests):
            raise GeneratorError(
                f"the pipeline made {len(values)} images of {len(requests)}", code="wrong-count"
            )
        return values, hidden or [False] * len(requests)

    @contextmanager
    def passing(self, **arguments: Any) -> Iterator[None]:
        """Within it, calls of the pipeline have these arguments, too, which no spec can hold."""
        own = self._call
        self._call = {**own, **arguments}
        try:
            yield
        finally:
            self._call = own

    def _arguments(self, requests: Sequence[ImageRequest]) -> dict[str, Any]:
        """Returns the arguments of the call but its generators; lists for several requests."""
        count = len(requests)
        call: dict[str, Any] = dict(self._call)
        call["prompt"] = [r.prompt for r in requests] if count > 1 else requests[0].prompt
        for name, value in self._call.items():
            if count > 1 and (name in MORE_PROMPTS or name.startswith("negative_prompt")):
                call[name] = [value] * count
        if any(request.references for request in requests):
            raise GeneratorError(
                f"{self._drawing.name} takes one source, and this has several",
                code="several-sources",
            )
        if any(request.source is not None for request in requests):
            if not self._drawing.edits:
                raise GeneratorError(
                    f"{self._drawing.name} draws from a text and can't edit", code="cannot-edit"
                )
            images = [r.source.convert("RGB") for r in requests if r.source is not None]
            call["image"] = images if count > 1 else images[0]
        return call

    def part_settings(self, part: str) -> dict[str, Any]:
        """Settings that a part of the pipeline was saved with, such as `unet`; loads no weights.

        Empty where the part has none.
        """
        try:
            settings = read_json(self._checkpoint.file(f"{part}/config.json"))
        except (OSError, ValueError, DataError):
            return {}
        return settings if isinstance(settings, dict) else {}

    @cached_property
    def pipeline(self) -> Any:
        """Raises LoadError."""
        return self._loading.load(self._checkpoint, self._drawing)

    def _measured(self, source: tuple[int, int] | None) -> MeasuredBatch:
        """Measures whether images of a batch equal single ones, from one batch and two of its
        images.

        source: width and height of the images to edit, None without; each kind is measured once.
        """
        if (source is not None) not in self._batches:
            self._batches[source is not None] = self._measure(source)
        return self._batches[source is not None]

    def _measure(self, source: tuple[int, int] | None) -> MeasuredBatch:
        size = self.batch_size
        note = f"batch={size} is off: "
        requests = [ImageRequest(PROBES[n % 2], n, _noise(n, source)) for n in range(size)]
        try:
            together, _ = self._values(requests)
            apart = [self._values([requests[n]])[0][0] for n in (0, size - 1)]
        except GeneratorError as error:
            note += f"it can't be drawn: {error}"
        else:
            pairs = zip((together[0], together[-1]), apart, strict=True)
            difference = max(float(np.abs(a - b).max()) for a, b in pairs)
            if difference <= self._bound:
                return MeasuredBatch(size)
            note += f"it changes images by {difference:.2g} of 1, more than {self._bound:.2g}"
        logging.getLogger(__name__).warning("%s: %s", self._checkpoint.name, note)
        return MeasuredBatch(1, note)


def _noise(seed: int, size: tuple[int, int] | None) -> Image.Image | None:
    if size is None:
        return None
    values = np.random.default_rng(seed).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    return Image.fromarray(values)


def _lora(options: DiffusersOptions) -> LoraFile | None:
    if options.lora is None:
        if stray := sorted(n for n in options.model_fields_set if n.startswith("lora_")):
            problem = f"diffusers: {stray[0]} needs a LoRA"
            raise UsageError(problem, "name it with lora=", code="missing-option")
        return None
    return LoraFile.find(
        options.lora,
        file=options.lora_file,
        revision=options.lora_revision,
        scale=options.lora_scale,
    )


def _parse(option: str, text: str, types: set[type]) -> Scalar:
    """Parses an option as the first of bool, int, float and str that it can be."""
    if bool in types and text in ("true", "false"):
        return text == "true"
    for number in (int, float):
        if number in types:
            with suppress(ValueError):
                return number(text)
    if str in types:
        return text
    forms = " or ".join(sorted("true or false" if t is bool else t.__name__ for t in types))
    problem = f"diffusers: {option} must be {forms}, not {text!r}"
    raise UsageError(problem, code="bad-option")


def _images(output: Any) -> Values:
    """Returns the images of a pipeline's output, shape (n, height, width, 3), in [0, 1]; of videos
    of several frames (n, frames, height, width, 3)."""
    if hasattr(output, "images"):
        return output.images  # type: ignore[no-any-return]
    frames = np.asarray(output.frames)
    return frames[:, 0] if frames.shape[1] == 1 else frames


def _image(values: Values) -> Image.Image:
    """Converts (height, width, 3) in [0, 1] to an image. Raises GeneratorError for NaN."""
    if not np.isfinite(values).all():
        raise GeneratorError(
            "the image contains NaN: try other steps, or another dtype", code="bad-answer"
        )
    return Image.fromarray((values * 255).round().astype(np.uint8)).convert("RGB")
