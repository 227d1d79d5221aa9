"""`render`: a generator that draws flat scenes, whose every bias and fault is set by an option.

Images depend on prompt, seed and options alone, and on the row where its drawing ships with the
bank. It draws the seed images of the I2I suites, and its scenes are the known truth on which judges
and metrics are tested.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import numpy as np
from PIL.Image import Image, fromarray
from pydantic import AfterValidator, Field, PositiveInt

from ...clip_files import Clip, encode_webp
from ...errors import UsageError
from ...scenes.animation import animate
from ...scenes.biases import preference
from ...scenes.drawing import draw_scene
from ...scenes.language import (
    Layout,
    NamedEntity,
    is_directed,
    is_passive,
    layout,
    loses_layout,
    mentioned_poses,
    mentions,
    names_nobody,
)
from ...scenes.poses import find_pose
from ...scenes.scene import Figure, Scene
from ...scenes.sprites import TONES, atlas_digest, clothes, entity_names
from ...specs import Options, Share, TextForm, Unit
from ..core import Case, ImageRequest
from .drawings import Drawing

_log = logging.getLogger(__name__)

VERSION = "4"
"""Raised whenever the same request gives other pixels."""

RATE = 8
"""Frames of a clip a second."""
LONGEST = 1000
"""Frames of a clip, at most."""
TUNED = "render.json"
"""Fake weights: what tuning has done to the renderer."""
GRAIN = 12.0
"""Standard deviation of the noise under full guidance, levels of 255: the pixel judge sees through
it."""
DISTANCES = ("near", "far")
"""Layouts in which only the distance is stated."""
FAULTS = ("missing", "extra", "duplicate", "overlap", "vertical", "wrong")


Logit = Annotated[float, Unit("logits")]


def _one_or_several(frames: int) -> int:
    if frames == 1:
        raise ValueError("a clip has two frames or more")
    return frames


class RenderGenerator(Options):
    """Draws what a prompt says, as far as its options let it: it is its own options.

    Biases in logits; faults as shares of images in [0, 1].
    """

    order_bias: Logit = 0
    """Bias (log-odds) that the first-mentioned entity stands on the left, or that the left entity
    acts."""
    rtl_bias: Logit = 0
    """Added to `order_bias` if the row's language is read from right to left."""
    preference_sd: Logit = 0
    """Standard deviation of the entities' own biases (log-odds) to stand on the left."""
    grounding: Share = 1
    """Share of images that obey a stated layout, or the layout of a drawn constrained pair. The
    rest follow the biases."""
    binding_bias: Share = 0
    """Share of edits in which the first-mentioned action goes to the left figure."""
    missing: Share = 0
    """Share of images that leave out one entity, or all things of a drawn world."""
    extra: Share = 0
    """Share of images in which a third entity stands between the two."""
    duplicate: Share = 0
    """Share of images that show one entity twice."""
    overlap: Share = 0
    """Share of images in which all things stand in the same place."""
    vertical: Share = 0
    """Share of images in which the things stand one above the other instead of side by side."""
    wrong: Share = 0
    """Share of images in which one entity is replaced by another entity (a person by a person)."""
    decides: Annotated[PositiveInt, Unit("denoising steps")] = 1
    """Step at which the layout is decided. A prompt that comes in later changes only the
    content."""
    video: Annotated[
        int,
        Field(ge=0, le=LONGEST),
        AfterValidator(_one_or_several),
        TextForm(f"a whole number of frames from 2 to {LONGEST:,}, or 0"),
    ] = 0
    """Frames of a clip; 0 for an image. A clip of an edit starts with the source image."""
    swaps_at: Share = 1
    """Time at which the figures of a clip exchange sides, as a share of the clip; 1 for never."""
    swaps: Share = 1
    """Share of the clips in which the figures exchange sides (see `swaps_at`)."""
    lock_in: Share = 0
    """Share of drawn scenes under their altered law (L2, L3) that show the world as we know it."""
    literal: Share = 0
    """Further share of drawn scenes without a stated outcome (L3) that show the world as we know
    it."""
    partial: Share = 0
    """Share of the remaining drawn scenes of these kinds that show the two worlds side by side."""
    over_application: Share = 0
    """Share of drawn scenes under an irrelevant law (L0), or under the law of our world (LR), that
    show the altered world."""
    guidance: Share = 0
    """Share of disobeyed stated layouts that guidance corrects; more guidance makes images
    grainier."""

    def identity(self) -> dict[str, str]:
        """Version, atlas and the options that differ from their defaults."""
        changed = self.texts(changed=True)
        return {"kind": "render", "version": VERSION, "atlas": atlas_digest()[:12], **changed}

    def check(self, cases: Sequence[Case]) -> None:
        """Warns of prompts that it can't draw, or not as they state; raises UsageError where it can
        draw none."""
        texts = [case for case in cases if not case.source]
        reasons = [_cannot_draw(case) for case in texts]
        undrawn = [(case, reason) for case, reason in zip(texts, reasons, strict=True) if reason]
        if undrawn:
            case, reason = undrawn[0]
            text = (
                f"render: can't draw {len(undrawn):,} of {len(cases):,} prompts, the first of "
                f"{case.row}: {reason}"
            )
            if len(undrawn) == len(cases):
                raise UsageError(text, "choose another suite or generator", code="unsupported")
            _log.warning("%s", text)
        drawn = [case for case, reason in zip(texts, reasons, strict=True) if not reason]
        lost = [case for case in drawn if _loses_layout(case)]
        if lost:
            _log.warning(
                "render: draws the figures of %s of %s prompts side by side, not as stated, since "
                "the atlas lacks what they relate to; the first of %s: %s",
                f"{len(lost):,}",
                f"{len(cases):,}",
                lost[0].row,
                lost[0].prompt,
            )

    def generate(self, request: ImageRequest) -> Image | Clip:
        """The image, with the true scene as JSON in ``info["scene"]``, or the clip, in lossless
        WebP; raises as `scene`."""
        if self.video:
            frames = [self._draw(scene, request) for scene in self.scenes(request)]
            return encode_webp(frames, RATE)
        scene = self.scene(request)
        image = self._draw(scene, request)
        image.info["scene"] = scene.to_json()
        return image

    def _draw(self, scene: Scene, request: ImageRequest) -> Image:
        drawing = self._drawing(request)
        image = draw_scene(scene) if drawing is None else drawing.image(scene)
        return _grained(image, GRAIN * self.guidance, _rng(request)) if self.guidance else image

    @staticmethod
    def _drawing(request: ImageRequest) -> Drawing | None:
        edits = request.source is not None
        return None if edits else Drawing.of(request.prompt, request.fields)

    def scenes(self, request: ImageRequest) -> list[Scene]:
        """Scene of each frame of a request's clip; raises as `scene`, and for a drawing."""
        if self._drawing(request) is not None:
            raise ValueError(f"no clip of a drawing, as the prompt {request.prompt!r} has")
        count, scene = int(self.video), self.scene(request)
        if request.source is not None:
            return [Scene.of(request.source), *[scene] * (count - 1)][:count]
        draw = random.Random(f"swap/{request.seed}/{request.prompt}").random()
        return animate(scene, count, self.swaps_at if draw < self.swaps else 1.0)

    def generate_switched(
        self, request: ImageRequest, second_prompt: str, at: tuple[int, ...]
    ) -> Image | Clip:
        """Draws with the second prompt from step `at[0]` on, the request's from `at[1]` on, ...

        The prompt of step `decides - 1` gives the layout, the last prompt the content. Prompts that
        name the same entities have the same content; a prompt that names none leaves the order to
        the entities' preferences. Raises as `scene`.
        """
        prompts = tuple(
            _in_english(prompt, request.fields) for prompt in (request.prompt, second_prompt)
        )
        first = prompts[sum(step < self.decides for step in at) % 2]
        last = prompts[len(at) % 2]
        drawn = Drawing.of(first, request.fields) is not None
        blind = not drawn and not mentions(first)
        content = last if blind else first
        unbiased = {"order_bias": 0.0, "rtl_bias": 0.0}
        drawer = self.model_copy(update=unbiased) if blind else self
        return drawer.generate(replace(request, prompt=content))

    def generate_preview(self, request: ImageRequest, at: int) -> Image | Clip:
        """Draws what step `at` predicts, from 0: its image once the layout is settled, and before
        that one without a bias, from another seed. Raises as `scene`."""
        if at >= self.decides - 1:
            return self.generate(request)
        unbiased = self.model_copy(update={"order_bias": 0.0, "rtl_bias": 0.0})
        seed = random.Random(f"preview/{request.seed}/{at}").randrange(2**31)
        return unbiased.generate(replace(request, seed=seed))

    def guided(self, strength: float, unstated: bool = False) -> RenderGenerator:
        """This generator under stronger guidance, added to its own, at most 1.

        unstated: it reads no layout in the prompt (`grounding` 0), which guidance alone brings.
        """
        changes = {"guidance": min(1.0, self.guidance + strength)}
        return self.model_copy(update=changes | ({"grounding": 0.0} if unstated else {}))

    def arranged(self, leads: bool | None) -> RenderGenerator:
        """This generator with a layout that it can't miss.

        leads: whether what a prompt mentions first is in the first place, whatever the prompt
        states; None for the stated layout.
        """
        if leads is None:
            return self.model_copy(update={"grounding": 1.0})
        certain = 99.0 if leads else -99.0
        unbiased = {"preference_sd": 0.0, "rtl_bias": 0.0, "grounding": 0.0, "guidance": 0.0}
        return self.model_copy(update={**unbiased, "order_bias": certain})

    def tuned(self, folder: Path, scale: float) -> RenderGenerator:
        """This generator with fake weights: `render.json` holds ``{"order_bias": factor}``.

        scale: 0 leaves the bias as it is, 1 multiplies it by the factor. Raises UsageError for a
        folder without them.
        """
        try:
            factor = float(json.loads((folder / TUNED).read_text("utf-8"))["order_bias"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            problem = f"{folder} holds no weights of the renderer: {error!r}"
            raise UsageError(problem, code="load-failed") from None
        return self.model_copy(update={"order_bias": self.order_bias * (1 + scale * (factor - 1))})

    def scene(self, request: ImageRequest) -> Scene:
        """Scene of a request's image, without its pixels.

        Raises ValueError for a prompt without an entity of the atlas, an action that can't be
        drawn, and an edit of an image that the renderer did not make.
        """
        rng = _rng(request)
        if (drawing := self._drawing(request)) is not None:
            return drawing.scene(self, rng)
        if request.source is None:
            biased = self.model_copy(update={"order_bias": self.order_bias + self.rtl_bias})
            drawer = biased if request.fields.get("direction") == "rtl" else self
            scene = drawer._compose(_in_english(request.prompt, request.fields), rng)
            return replace(scene, figures=tuple(_toned(scene.figures, request)))
        return self._edit(Scene.of(request.source), request.prompt, rng)

    def _compose(self, prompt: str, rng: random.Random) -> Scene:
        named = _named(prompt)
        entities = [mention.entity for mention in named]
        wanted = layout(prompt, named)
        order = self._order(entities, wanted, rng)
        poses = mentioned_poses(prompt, named)
        axis = wanted.axis
        if axis in DISTANCES and rng.random() >= self._obedience():
            axis = rng.choice(DISTANCES)
        faults = [name for name in FAULTS if rng.random() < getattr(self, name)]
        if "vertical" in faults and axis == "horizontal":
            axis = "vertical"
        background = rng.randrange(2**31)
        figures = [
            Figure(entities[i], *place, faces=rng.choice((-1, 1)), pose=poses[i])
            for i, place in zip(order, _places(axis, len(order), rng, wanted.steps), strict=True)
        ]
        figures.sort(key=lambda figure: figure.base if axis == "depth" else 0)  # far ones first
        for fault in faults:
            figures = _spoil(figures, fault, rng)
        return Scene(tuple(figures), background, tuple(faults))

    def _obedience(self) -> float:
        """Share of explicit layouts that are obeyed for certain."""
        return self.grounding + (1 - self.grounding) * self.guidance

    def _order(self, entities: list[str], wanted: Layout, rng: random.Random) -> list[int]:
        """Indices of the entities from first to last on the axis."""
        obeys = rng.random() < self._obedience()
        if wanted.order is not None and obeys:
            return list(wanted.order)
        bias, sd = self.order_bias, self.preference_sd
        # Gumbel noise on every logit: of any two neighbors in the prompt, the first-mentioned comes
        # first with probability sigmoid(order_bias + difference of preferences).
        scores = [
            -bias * number + preference(entity, sd) - math.log(-math.log(rng.random()))
            for number, entity in enumerate(entities)
        ]
        return sorted(range(len(entities)), key=lambda i: (-scores[i], i))

    def _edit(self, scene: Scene, instruction: str, rng: random.Random) -> Scene:
        figures = list(scene.figures)
        left_to_right = sorted(range(len(figures)), key=lambda i: figures[i].x)
        if names_nobody(instruction):
            left_acts = rng.random() < 1 / (1 + math.exp(-self.order_bias))
            actor = left_to_right[0 if left_acts else -1]
            figures[actor] = replace(figures[actor], pose=_pose_of(instruction))
        else:
            self._bind(figures, left_to_right, instruction, rng)
        return replace(scene, figures=tuple(figures))

    def _bind(
        self, figures: list[Figure], left_to_right: list[int], text: str, rng: random.Random
    ) -> None:
        """Give the figures, in place, the poses that an edit asks of the entities it names."""
        present = {figure.entity: number for number, figure in enumerate(figures)}
        named = [mention for mention in mentions(text) if mention.entity in present]
        if not named:
            raise ValueError(f"the image shows nothing that is named in {text!r}")
        numbers = [present[mention.entity] for mention in named]
        if rng.random() < self.binding_bias:
            numbers = [n for n in left_to_right if n in numbers]
        if is_directed(text, named):
            actor, patient = numbers[::-1] if is_passive(text) else numbers
            faces = 1 if figures[patient].x > figures[actor].x else -1
            figures[actor] = replace(figures[actor], pose=_pose_of(text), faces=faces)
        else:
            for number, pose in zip(numbers, mentioned_poses(text, named), strict=True):
                figures[number] = replace(figures[number], pose=pose or _pose_of(text))


def _cannot_draw(case: Case) -> str:
    """Why the prompt of a case can't be drawn; empty if it can."""
    try:
        if Drawing.of(case.prompt, case.fields) is None:
            _named(_in_english(case.prompt, case.fields))
    except ValueError as error:
        return str(error)
    return ""


def _loses_layout(case: Case) -> bool:
    """Whether the prompt of a case states a layout that is not drawn."""
    if Drawing.of(case.prompt, case.fields) is not None:
        return False
    prompt = _in_english(case.prompt, case.fields)
    return loses_layout(prompt, mentions(prompt))


def _named(prompt: str) -> list[NamedEntity]:
    """The entities of a prompt. Raises ValueError for a prompt without one."""
    if not (named := mentions(prompt)):
        raise ValueError(f"no entity of the atlas in the prompt {prompt!r}")
    return named


def _in_english(prompt: str, fields: Mapping[str, str]) -> str:
    """Translation of a row's prompt into English, if the row has one; else the prompt."""
    for name in ("prompt", "swapped_prompt"):
        if prompt == fields.get(name):
            return fields.get(f"english_{name}", prompt)
    return prompt


def _grained(image: Image, sd: float, rng: random.Random) -> Image:
    """The image with normal noise of this standard deviation, levels of 255, in every channel."""
    noise = np.random.default_rng(rng.getrandbits(64)).normal(0, sd, (*image.size[::-1], 3))
    return fromarray((np.asarray(image) + noise).round().clip(0, 255).astype(np.uint8))


def _rng(request: ImageRequest) -> random.Random:
    text = f"{request.seed}/{'edit' if request.source is not None else 'draw'}/{request.prompt}"
    return random.Random(hashlib.sha256(text.encode()).hexdigest())


def _toned(figures: Sequence[Figure], request: ImageRequest) -> list[Figure]:
    """The figures with a skin tone for each person, whatever the order of mention and the places.

    It depends on the person, on whom the prompt names, and on the seed. In a row's seed image it
    does not: rows of one scene in both placements have other seeds, and must show the same people.
    """
    named = _named(_in_english(request.prompt, request.fields))
    company = "/".join(sorted(mention.entity for mention in named))
    seed = "" if request.prompt == request.fields.get("seed_prompt") else request.seed

    def tone(entity: str) -> str:
        if clothes(entity) is None:
            return ""
        return random.Random(f"tone/{seed}/{company}/{entity}").choice(list(TONES))

    return [replace(figure, tone=tone(figure.entity)) for figure in figures]


def _pose_of(text: str) -> str:
    pose = find_pose(text)
    if pose is None:
        raise ValueError(f"no pose of the renderer shows {text!r}")
    return pose


def _places(
    axis: str, count: int, rng: random.Random, steps: Sequence[tuple[int, int]] = ()
) -> list[tuple[float, float, float]]:
    """x, base and scale of figures from first to last on the axis, jittered."""
    places = []
    columns, rows = (_ranks([step[side] for step in steps]) for side in (0, 1))
    for number in range(count):
        share = (number + 0.5) / count
        x, base, scale = share, 0.93, 1.0 if count == 2 else 2.1 / count
        if axis == "vertical":
            x, base, scale = 0.5, (0.46, 0.95)[number] if count == 2 else 0.95 * share + 0.2, 0.5
        elif axis == "depth":
            # The last is furthest away: higher, smaller, partly covered.
            x, base, scale = 0.59 - 0.19 * number, 0.95 - 0.14 * number, 0.95 - 0.2 * number
        elif axis == "chain":
            x, scale = (columns[number] + 0.5) / count, 0.5
            base = min(0.97, (rows[number] + 0.5) / count + 0.12)
        elif axis in DISTANCES and count == 2:
            x, scale = ((0.38, 0.62) if axis == "near" else (0.12, 0.88))[number], 0.5
        elif count == 2:
            x = (0.27, 0.73)[number]
        jitter = rng.uniform(-0.025, 0.025), rng.uniform(-0.02, 0.02), rng.uniform(0.88, 1.04)
        places.append(
            (round(x + jitter[0], 4), round(base + jitter[1], 4), round(scale * jitter[2], 4))
        )
    return places


def _ranks(steps: Sequence[int]) -> list[int]:
    """The rank of every figure on one side of a grid, each its own, after steps from the first.

    >>> _ranks([1, -1])
    [0, 2, 1]
    """
    places = [sum(steps[:number]) for number in range(len(steps) + 1)]
    order = sorted(range(len(places)), key=lambda number: (places[number], number))
    return [order.index(number) for number in range(len(places))]


def _spoil(figures: list[Figure], fault: str, rng: random.Random) -> list[Figure]:
    """Returns the figures with one fault; `vertical` changed the axis before, and nothing here."""
    if not figures:  # the only one is missing
        return figures
    chosen = rng.randrange(len(figures))
    figure = figures[chosen]
    absent = [name for name in entity_names() if name not in {f.entity for f in figures}]
    if fault == "missing":
        return figures[:chosen] + figures[chosen + 1 :]
    if fault == "extra":
        return [*figures, replace(figure, entity=rng.choice(absent), x=0.5, scale=0.6)]
    if fault == "duplicate":
        return [*figures, replace(figure, x=0.5, scale=0.6 * figure.scale)]
    if fault == "overlap":
        return [replace(f, x=0.5 + 0.04 * (i - 0.5)) for i, f in enumerate(figures)]
    if fault == "wrong":
        human = clothes(figure.entity) is not None
        alike = [name for name in absent if (clothes(name) is not None) == human]
        figures[chosen] = replace(figure, entity=rng.choice(alike))
    return figures
