"""`psg`: gradient guidance of attention toward the stated relations (PSE paper, section 4.2).

``psg:sd14`` and other presets. Before each of the first steps the latents are moved so that the
words' attention maps satisfy the prompt's relations: z <- z - a * grad L, with L the sum of
`geometry.guidance.guidance_loss` over the relations. Nothing is trained.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Literal,
    Protocol,
    runtime_checkable,
)

from PIL.Image import Image
from pydantic import Field, PositiveInt

from ...clip_files import Clip
from ...errors import UsageError
from ...specs import DefaultText, Options, Spec, Unit
from ..core import Generator, GeneratorError, ImageRequest
from ..generators import REPORT, draw
from ..geometry.boxes import BETWEEN, DIAGONALS, DISTANCES, RELATIONS, SIDEWAYS
from ..geometry.guidance import guidance_loss, pos_tensor
from . import Method, find_pipeline, has_pipeline, innermost, refuse
from .attention import token_places
from .guiding import GuidedRun, smooth_maps
from .words import PromptWord, place_claims

if TYPE_CHECKING:
    from torch import Tensor

ABLE = "diffusers: or render:"
FULL = 500.0
"""Steps x scale of the paper's SD 1.4, which the renderer takes for full guidance."""

SPATIAL = re.compile(
    r"\s*,?(?:\s+and)?\s+(?:(?:is|are|placed|located|sitting|standing)\s+)?(?:to the |on the )?"
    r"(?:left of|right of|above|below|on top of|top of|bottom of|under(?:neath)?|over|beneath|"
    r"left side of|right side of|(?:top|upper|bottom|lower)[ -](?:left|right) of|near|next to|"
    r"on side of|far from)\s+",
    re.IGNORECASE,
)
"""Spatial words that the variant `and` replaces, with the white space around them."""

GUIDED = (*RELATIONS, *DIAGONALS, *DISTANCES)
"""Relations that attention can be guided toward."""
_Stated = tuple[str, str, str]
"""A word of the prompt, its relation, and the word that it relates to."""


OF_PRESET = DefaultText("that of the preset")


class GuidanceOptions(Options):
    """Options of `psg`: how attention is guided. The preset sets what a spec doesn't."""

    steps: Annotated[int, Field(ge=0), OF_PRESET] = 0
    """Number of guided steps, from the first; with 0, the image is bit for bit the image without
    the method."""
    scale: Annotated[float, Field(gt=0), OF_PRESET] = 1
    """Factor of the gradient at the first step."""
    size: Annotated[int, Field(ge=0), Unit("positions"), OF_PRESET] = 0
    """Longer side of the attention maps that are used; 0 for the largest maps."""
    decay: Literal["sqrt", "none"] = "sqrt"
    """Whether the factor of the gradient falls to sqrt(1/2) of itself over the steps, or stays."""
    # The fall is that of attend-and-excite.
    smooth: Annotated[float, Field(ge=0), Unit("positions"), OF_PRESET] = 0
    """Standard deviation of a Gaussian that smooths the attention maps."""
    loss: Literal["paper", "authors"] = "paper"
    """-PoS^2 of the stated order (`paper`), or PoS^2 of the wrong order (`authors`, as in their
    program)."""
    words: Literal["plain", "and"] = "plain"
    """`and` replaces the spatial words of the prompt by "and" (the paper's variant "(2)")."""
    updates: PositiveInt = 1
    """Updates of the latents at each guided step."""
    gap: Annotated[float, Field(ge=0), Unit("positions")] = 5
    """Distance from which things count as far apart, for the relations near and far."""
    maps: bool = False
    """Whether the record keeps the attention maps of each update, projected onto the axis of the
    relation. Changes no image."""

    def factor(self, step: int) -> float:
        """Factor of the gradient at a step, from 0."""
        fall = 0.5 * step / max(1, self.steps) if self.decay == "sqrt" else 0.0
        return float(self.scale * (1 - fall) ** 0.5)


PRESETS = {
    "sd14": GuidanceOptions(steps=25, scale=20, size=16, smooth=0.5),
    "sd14-appendix": GuidanceOptions(steps=20, scale=25, size=16, smooth=0.5),
    "sdxl": GuidanceOptions(steps=10, scale=1000, size=32),
    "pixart": GuidanceOptions(steps=20, scale=10, size=0),
    "mmdit": GuidanceOptions(steps=10, scale=100, size=0),
}
"""The paper's settings; its text and its appendix differ for SD 1.4. `mmdit` (SD3.5, FLUX,
Qwen-Image) is ours: a start, not tuned."""


@runtime_checkable
class Guidable(Protocol):
    """A generator that can itself be guided toward the stated layout."""

    def guided(self, strength: float, unstated: bool = False) -> Generator:
        """The same under guidance; 0 is none, 1 is full. unstated: its prompts hide the layout, so
        that only guidance knows it."""
        ...


class Guidance(Method):
    """A generator whose attention is guided."""

    argument: ClassVar[str] = "PRESET"
    options: ClassVar[type[Options]] = GuidanceOptions

    reaches_steps = True

    def __init__(self, inner: Generator, preset: str, settings: GuidanceOptions) -> None:
        """Raises UsageError for a generator whose attention can't be reached."""
        super().__init__(inner)
        if not (has_pipeline(inner) or isinstance(innermost(inner), Guidable)):
            raise refuse("psg", inner, ABLE)
        self.preset = preset
        self.settings = settings

    @classmethod
    def from_spec(cls, spec: Spec, options: GuidanceOptions, inner: Generator) -> Guidance:
        """Raises UsageError for an unknown preset."""
        if spec.argument not in PRESETS:
            problem = f"psg: has no preset {spec.argument!r}"
            raise UsageError(problem, f"choose from {', '.join(PRESETS)}", code="unknown-name")
        changes = options.model_dump(include=options.model_fields_set)
        return cls(inner, spec.argument, PRESETS[spec.argument].model_copy(update=changes))

    @property
    def name(self) -> str:
        texts = self.settings.texts()
        del texts["maps"]  # changes no pixel
        if self.settings.gap == GuidanceOptions().gap:
            del texts["gap"]  # runs that are older have none
        options = "&".join(f"{name}={text}" for name, text in texts.items())
        return f"psg:{self.preset}?{options}"

    def check_request(self, request: ImageRequest) -> None:
        super().check_request(request)
        relations_of(request.fields)

    def generate(self, request: ImageRequest) -> Image | Clip | Path:
        """The image; its report has the tokens, loss and PoS before each update, and the extra time
        and memory.

        Raises GeneratorError where a word is not in the prompt or shares tokens with the other, and
        where no layer has maps of the size.
        """
        relations = relations_of(request.fields)
        unstated = self.settings.words == "and"
        base = innermost(self.inner)
        if isinstance(base, Guidable):
            strength = min(1.0, self.settings.steps * self.settings.scale / FULL)
            return base.guided(strength, unstated=unstated).generate(request)
        if unstated:
            request = replace(request, prompt=SPATIAL.sub(" and ", request.prompt))
        if not self.settings.steps:
            return self.inner.generate(request)
        pipeline = find_pipeline(self.inner)
        try:
            run = _GuidedRun(pipeline, self.settings, request.prompt, relations)
            image = run.draw(lambda: draw(self.inner, request))
        except ValueError as error:
            raise GeneratorError(str(error), code="generator-failed") from error
        report = json.loads(image.info.get(REPORT, "{}"))
        image.info[REPORT] = json.dumps({**report, "psg": run.report()}, sort_keys=True)
        return image


def relations_of(fields: Mapping[str, str]) -> list[_Stated]:
    """Returns the relations that a row states. Raises UsageError unless all are `GUIDED`.

    What is between two things goes to the right of the first and to the left of the second: either
    order is as stated, and the paper names none.
    """
    if "object_a" in fields and "relation" in fields:
        relations: list[_Stated] = [(fields["object_a"], fields["relation"], fields["object_b"])]
    elif "subjects" in fields and "references" in fields:
        columns = (json.loads(fields[c]) for c in ("subjects", "relations", "references"))
        relations = []
        for a, relation, b in zip(*columns, strict=True):
            if relation == BETWEEN:
                first, second = b.split("|")
                relations += [(a, "right_of", first), (a, "left_of", second)]
            else:
                relations.append((a, relation, b))
    else:
        raise UsageError(
            "psg: the rows have no relations: choose a suite of spatial prompts", code="unsupported"
        )
    if unknown := [relation for _, relation, _ in relations if relation not in GUIDED]:
        raise UsageError(
            f"psg: can't guide {unknown[0]!r}, only {', '.join(GUIDED)}", code="unsupported"
        )
    return relations


class _GuidedRun(GuidedRun):
    """One image of a pipeline, guided toward relations."""

    method = "psg"

    def __init__(
        self,
        pipeline: Any,
        settings: GuidanceOptions,
        prompt: str,
        relations: list[_Stated],
    ) -> None:
        super().__init__(pipeline, settings)
        self._options = settings
        claims = place_claims(prompt, relations)
        words = dict.fromkeys(word for a, _, b in claims for word in (a, b))
        self._tokens = {word: token_places(pipeline, prompt, word) for word in words}
        _refuse_shared(self._tokens)
        self._claims = claims
        self._scores: list[list[float]] = []
        self._profiles: list[list[list[dict[str, list[float]]]]] = []

    def report(self) -> dict[str, Any]:
        """Tokens that are guided, loss and PoS of each relation before each update, seconds of all
        updates, and MiB that their gradients need."""
        words = [(word, list(tokens.items())) for word, tokens in self._tokens.items()]
        report = {
            "tokens": [
                {
                    "word": word.name,
                    "at": word.start,
                    "tokens": [text for _, text in tokens],
                    "places": [place for place, _ in tokens],
                }
                for word, tokens in words
            ],
            "relations": [[a.name, relation, b.name] for a, relation, b in self._claims],
            "steps": self.steps,
            "losses": [round(loss, 6) for loss in self.losses],
            "pos": self._scores,
            **self.costs,
        }
        return report | ({"maps": self._profiles} if self._options.maps else {})

    @property
    def last_place(self) -> int:
        return max(place for tokens in self._tokens.values() for place in tokens)

    def total(self, maps: Tensor) -> Tensor:
        maps = smooth_maps(maps, self._options.smooth)
        total = maps.new_zeros(())
        scores: list[float] = []
        profiles: list[list[dict[str, list[float]]]] = []
        for first, relation, second in self._claims:
            a, b = (maps[..., list(self._tokens[word])].mean(-1) for word in (first, second))
            convention: Any = self._options.loss
            gap = self._options.gap
            total = total + guidance_loss(a, b, relation, convention, gap).sum()
            score = pos_tensor(a.detach(), b.detach(), relation, gap).mean()
            scores.append(round(float(score), 6))
            if self._options.maps:
                profiles.append([_profile(weights.detach(), relation) for weights in (a, b)])
        self._scores.append(scores)
        self._profiles.append(profiles)
        return total


def _profile(weights: Tensor, relation: str) -> dict[str, list[float]]:
    """A map, shape (batch, height, width), projected onto a relation's axes, `x` and `y`: shares of
    its weight by column and by row, averaged over the batch."""
    axes = {"x": -2, "y": -1}
    if relation in RELATIONS:
        del axes["y" if relation in SIDEWAYS else "x"]
    profile = {}
    for axis, other in axes.items():
        sums = weights.sum(other)
        shares = (sums / sums.sum(-1, keepdim=True).clamp(min=1e-12)).mean(0)
        profile[axis] = [round(share, 5) for share in shares.tolist()]
    return profile


def _refuse_shared(tokens: Mapping[PromptWord, Mapping[int, str]]) -> None:
    """Raises ValueError where two things share a token: guidance would pull it both ways."""
    for a, b in itertools.combinations(tokens, 2):
        shared = tokens[a].keys() & tokens[b].keys()
        if a.name != b.name and shared:
            token = tokens[a][min(shared)]
            raise ValueError(
                f"{a.name!r} and {b.name!r} share the token {token!r}: psg can't guide them apart"
            )
