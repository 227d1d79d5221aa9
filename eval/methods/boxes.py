"""`boxes`: a layout that the model is given as boxes (SpatialBench-UC's two grounded generators).

``boxes:gligen`` passes a phrase and a box for each thing to weights of GLIGEN. ``boxes:boxdiff``
needs no other weights: before each of the first steps the latents move so that the attention of
each thing's words lies in its box (BoxDiff, arXiv:2307.10816). The boxes follow from the relation
that the row states, as in the configs of SpatialBench-UC; or from a side that is chosen here, for
prompts that state none: then a model's bias has no layout left to decide.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Protocol, runtime_checkable

from PIL.Image import Image
from pydantic import Field

from ...clip_files import Clip
from ...errors import UsageError
from ...specs import Options, Share, Spec, Unit
from ..checkpoints.placement import LoadError
from ..core import Generator, GeneratorError, ImageRequest
from ..generators import REPORT, draw
from ..geometry.boxes import Box
from . import Method, find_pipeline, has_pipeline, innermost, refuse
from .attention import token_places
from .denoising import hooked
from .grounding import GATED, GroundingHook, PlacedThing, phrase
from .guiding import GuidedRun, smooth_maps
from .words import find_word

if TYPE_CHECKING:
    from torch import Tensor

ABLE = "diffusers: or render:"
GLIGEN = "StableDiffusionGLIGENPipeline"
"""Class of diffusers that takes boxes."""
PLAIN = "StableDiffusionPipeline"
"""Class of diffusers that takes none, but whose UNet may."""
BESIDE = Box(0.05, 0.25, 0.35, 0.75), Box(0.65, 0.25, 0.95, 0.75)
"""Left and right box, shares of the image's sides."""
STACKED = Box(0.25, 0.05, 0.75, 0.35), Box(0.25, 0.65, 0.75, 0.95)
"""Upper and lower box."""
PLACEMENTS: Mapping[str, tuple[Box, Box]] = {
    "left_of": BESIDE,
    "right_of": (BESIDE[1], BESIDE[0]),
    "above": STACKED,
    "below": (STACKED[1], STACKED[0]),
}
"""Relation of a to b -> boxes of a and b, as SpatialBench-UC publishes them."""
SHARPNESS = 100
"""Factor of attention before BoxDiff's softmax over the words of the prompt."""
_UNREAD = {
    "gligen": ("steps", "scale", "size", "smooth", "share", "corner"),
    "boxdiff": ("beta",),
}
"""Kind -> options that it does not have."""


class BoxesOptions(Options):
    """Options of `boxes`."""

    first: Literal["stated", "left", "right", "random"] = "stated"
    """Side of the box of the thing that the prompt mentions first: by the row's relation, `left`,
    `right`, or at random."""
    beta: Share = 0.3
    """Of gligen: share of the steps, from the first step, in which the model gets the boxes."""
    steps: Annotated[int, Field(ge=0)] = 25
    """Of boxdiff: number of guided steps, from the first; with 0, the image is bit for bit the
    image without the method."""
    scale: Annotated[float, Field(gt=0)] = 20
    """Of boxdiff: factor of the gradient; it falls to sqrt(1/2) of itself over all steps."""
    size: Annotated[int, Field(ge=0), Unit("positions")] = 16
    """Of boxdiff: longer side of the attention maps that are used; 0 for the largest maps."""
    smooth: Annotated[float, Field(ge=0), Unit("positions")] = 0.5
    """Of boxdiff: standard deviation of a Gaussian that smooths the attention maps."""
    share: Annotated[float, Field(gt=0, le=1)] = 0.2
    """Of boxdiff: share of the positions in and outside a box that count: those with the most
    attention."""
    corner: Annotated[int, Field(ge=0), Unit("positions")] = 1
    """Of boxdiff: distance from a box's edges within which attention must fall off."""


@runtime_checkable
class Arrangeable(Protocol):
    """A generator that can itself put things where boxes say."""

    def arranged(self, leads: bool | None) -> Generator:
        """The same, with what a prompt mentions first in the first place, or in the last one; None
        for the stated layout."""
        ...


class Boxes(Method):
    """A generator that is given a layout."""

    argument: ClassVar[str] = "gligen|boxdiff"
    options: ClassVar[type[Options]] = BoxesOptions

    reaches_steps = True

    def __init__(
        self, inner: Generator, kind: Literal["gligen", "boxdiff"], settings: BoxesOptions
    ) -> None:
        """Raises UsageError for a generator that can take no boxes."""
        super().__init__(inner)
        self.kind = kind
        self.settings = settings
        if isinstance(innermost(inner), Arrangeable):
            return
        if not has_pipeline(inner):
            raise refuse("boxes", inner, ABLE)
        pipeline = inner.identity().get("pipeline", "")
        if kind == "gligen" and pipeline != GLIGEN and not _has_gates(inner):
            raise UsageError(
                f"boxes:gligen: {pipeline} takes no boxes",
                "choose weights of GLIGEN: diffusers:masterful/gligen-1-4-generation-text-box, or "
                "an organism of --architecture gligen",
                code="wrong-model",
            )
        if kind == "boxdiff" and not _reads_clip(pipeline):
            raise UsageError(
                f"boxes:boxdiff: does not know the attention of {pipeline}",
                "choose Stable Diffusion 1, 2 or XL",
                code="wrong-model",
            )

    @classmethod
    def from_spec(cls, spec: Spec, options: BoxesOptions, inner: Generator) -> Boxes:
        """Raises UsageError for another argument, and for an option of the other one."""
        if spec.argument not in ("gligen", "boxdiff"):
            problem = f"boxes: has no {spec.argument!r}"
            raise UsageError(problem, "choose from gligen, boxdiff", code="unknown-name")
        stray = [name for name in _UNREAD[spec.argument] if name in options.model_fields_set]
        if stray:
            raise UsageError(
                f"boxes:{spec.argument} has no option {stray[0]!r}",
                "leave it out",
                code="unknown-option",
            )
        return cls(inner, spec.argument, options)  # type: ignore[arg-type]

    @property
    def name(self) -> str:
        unread = _UNREAD[self.kind]
        texts = {n: text for n, text in self.settings.texts().items() if n not in unread}
        return f"boxes:{self.kind}?" + "&".join(f"{n}={text}" for n, text in texts.items())

    @property
    def _is_off(self) -> bool:
        return not (self.settings.beta if self.kind == "gligen" else self.settings.steps)

    def check_request(self, request: ImageRequest) -> None:
        super().check_request(request)
        _names(request.fields, self.settings.first)

    def generate(self, request: ImageRequest) -> Image | Clip | Path:
        """The image; its report has the boxes, and of boxdiff the loss before each update.

        Raises GeneratorError where a thing is not in the prompt, or no layer has maps of the size.
        """
        try:
            things = place_things(request, self.settings.first)
            base = innermost(self.inner)
            simulated = isinstance(base, Arrangeable)
            # A pipeline of GLIGEN draws nothing without boxes, be it that no step sees them.
            if self._is_off and (simulated or self.kind == "boxdiff"):
                return self.inner.generate(request)
            if isinstance(base, Arrangeable):
                chosen = self.settings.first
                leads = None if chosen == "stated" else side_of_first(request, chosen) == "left"
                return base.arranged(leads).generate(request)
            image, report = self._drawn(request, things)
        except ValueError as error:
            if isinstance(error, UsageError):
                raise
            raise GeneratorError(str(error), code="generator-failed") from error
        before = json.loads(image.info.get(REPORT, "{}"))
        boxes = [{"name": thing.name, "box": list(thing.box)} for thing in things]
        image.info[REPORT] = json.dumps(
            {**before, "boxes": {"things": boxes, **report}}, sort_keys=True
        )
        return image

    def _drawn(
        self, request: ImageRequest, things: list[PlacedThing]
    ) -> tuple[Image, dict[str, Any]]:
        pipeline = find_pipeline(self.inner)
        if self.kind == "boxdiff":
            run = _BoxedRun(pipeline, self.settings, request.prompt, things)
            return run.draw(lambda: draw(self.inner, request)), run.report()
        if getattr(pipeline.unet, "position_net", None) is None:
            raise LoadError(
                "boxes:gligen: the weights have no grounding: choose those of GLIGEN",
                code="wrong-model",
            )
        phrases = [phrase(thing.name) for thing in things]
        if self.inner.identity()["pipeline"] != GLIGEN:
            with hooked(pipeline, GroundingHook(pipeline, things, self.settings.beta)):
                return draw(self.inner, request), {"phrases": phrases}
        generator: Any = innermost(self.inner)
        with generator.passing(
            gligen_phrases=phrases,
            gligen_boxes=[list(thing.box) for thing in things],
            gligen_scheduled_sampling_beta=self.settings.beta,
        ):
            return draw(self.inner, request), {"phrases": phrases}


def _has_gates(generator: Generator) -> bool:
    """Whether the UNet of a `StableDiffusionPipeline` has GLIGEN's layers; loads nothing."""
    base: Any = innermost(generator)
    is_plain = base.identity().get("pipeline") == PLAIN
    return is_plain and bool(base.part_settings("unet").get("attention_type") == GATED)


def _reads_clip(pipeline: str) -> bool:
    return pipeline.startswith("StableDiffusion") and not pipeline.startswith("StableDiffusion3")


def _names(fields: Mapping[str, str], first: str) -> tuple[str, str, str]:
    """Names of two things and the relation of the first to the second, empty if none is stated.

    Raises UsageError for rows without two things, and for `first=stated` where none is stated.
    """
    if "object_a" in fields and fields.get("relation") in PLACEMENTS:
        return fields["object_a"], fields["object_b"], fields["relation"]
    if "first_kind" in fields and "second_kind" in fields:  # entities
        if first != "stated":
            return fields["first"], fields["second"], ""
        raise UsageError(
            "boxes: the rows state no layout", "choose one with first=random", code="unsupported"
        )
    raise UsageError(
        f"boxes: the rows state none of {', '.join(PLACEMENTS)} of two things: choose a suite of "
        "spatial prompts, or t2i_homogenization with first=random",
        code="unsupported",
    )


def side_of_first(request: ImageRequest, first: str) -> str:
    """`left` or `right`: the side of the thing that the prompt mentions first."""
    if first != "random":
        return first
    return random.Random(f"boxes {request.seed} {request.prompt}").choice(("left", "right"))


def place_things(request: ImageRequest, first: str) -> list[PlacedThing]:
    """Both things of a row, with their boxes.

    Raises UsageError as `_names`, ValueError for a thing that the prompt does not name.
    """
    a, b, relation = _names(request.fields, first)
    if first == "stated":
        return [PlacedThing(n, box) for n, box in zip((a, b), PLACEMENTS[relation], strict=True)]
    a, b = sorted((a, b), key=lambda n: find_word(request.prompt, n, (a, b))[0].start)
    sides = BESIDE if side_of_first(request, first) == "left" else BESIDE[::-1]
    return [PlacedThing(n, box) for n, box in zip((a, b), sides, strict=True)]


@dataclass(frozen=True)
class _Descent:
    """How far the latents move, as BoxDiff's program says it."""

    steps: int
    scale: float
    size: int
    of: int = 1
    """Steps of the whole image."""
    updates: int = 1

    def factor(self, step: int) -> float:
        """Factor of the gradient at a step, from 0."""
        return float(self.scale * (1 - 0.5 * step / max(1, self.of - 1)) ** 0.5)


class _BoxedRun(GuidedRun):
    """One image whose words are drawn into their boxes."""

    method = "boxes:boxdiff"

    def __init__(
        self, pipeline: Any, settings: BoxesOptions, prompt: str, things: list[PlacedThing]
    ) -> None:
        """Raises ValueError for a thing that is not in the prompt."""
        super().__init__(pipeline, _Descent(settings.steps, settings.scale, settings.size))
        self._options = settings
        self._boxes: dict[int, Box] = {}
        names = [thing.name for thing in things]
        for thing in things:
            word = find_word(prompt, thing.name, names)[0]
            for place in token_places(pipeline, prompt, word):
                if place in self._boxes:
                    raise ValueError(f"{names[0]!r} and {names[1]!r} share a token")
                self._boxes[place] = thing.box
        self._length = len(pipeline.tokenizer(prompt).input_ids)

    def report(self) -> dict[str, Any]:
        """Loss before each update, seconds of all updates, and MiB that their gradients need."""
        losses = [round(loss, 6) for loss in self.losses]
        return {"steps": self.steps, "losses": losses, **self.costs}

    def begin(self, timesteps: int) -> None:
        settings = self._options
        self._settings = _Descent(settings.steps, settings.scale, settings.size, timesteps)

    @property
    def last_place(self) -> int:
        return max(self._boxes)

    def total(self, maps: Tensor) -> Tensor:
        shares = (maps[..., 1 : self._length - 1] * SHARPNESS).softmax(-1)  # without both ends
        smoothed = smooth_maps(shares, self._options.smooth)
        losses = [
            box_loss(smoothed[..., place - 1], box, self._options)
            for place, box in self._boxes.items()
        ]
        return sum(losses[1:], losses[0]).sum()


def box_loss(weights: Tensor, box: Box, options: BoxesOptions) -> Tensor:
    """BoxDiff's three constraints on the map of one word, shape (batch, height, width) to (batch,).

    1 less the mean of the largest weights in the box; the mean of the largest outside; and near the
    box's edges, how far the largest weight of each column and row is from 1 within and 0 without.
    """
    import torch

    height, width = weights.shape[-2:]
    x1, x2 = (min(max(round(x * width), 0), width) for x in (box.x1, box.x2))
    y1, y2 = (min(max(round(y * height), 0), height) for y in (box.y1, box.y2))
    inside = torch.zeros_like(weights[0])
    inside[y1:y2, x1:x2] = 1
    most, most_outside = (_largest(weights, m, options.share) for m in (inside, 1 - inside))
    loss = 1 - most + most_outside
    for axis, ends in ((-2, (x1, x2)), (-1, (y1, y2))):
        wanted = inside.amax(axis)
        near = torch.zeros_like(wanted)
        for end in ends:
            near[max(end - options.corner, 0) : end + options.corner + 1] = 1
        loss = loss + ((weights.amax(axis) - wanted).abs() * near).mean(-1)
    return loss


def _largest(weights: Tensor, mask: Tensor, share: float) -> Tensor:
    """Mean of the largest weights under a mask, as many as a share of its positions."""
    count = max(1, int(float(mask.sum()) * share))
    return (weights * mask).flatten(1).topk(count).values.mean(-1)
