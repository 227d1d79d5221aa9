"""The scene renderer: a generator whose every bias and fault is known, because it is set.

It draws flat scenes of the 138 entities from prompt, seed and options alone. It makes the seed
pictures of the I2I suites and is the known truth on which judges and metrics are tried.
"""

from __future__ import annotations

import hashlib
import math
import random
from dataclasses import dataclass, fields, replace

from PIL.Image import Image

from ...scenes.drawing import draw_scene
from ...scenes.language import (
    Layout,
    is_directed,
    is_passive,
    layout,
    mentioned_poses,
    mentions,
    names_nobody,
)
from ...scenes.poses import find_pose
from ...scenes.scene import Figure, Scene
from ...scenes.sprites import atlas_digest, clothes, entity_names
from ...specs import Spec
from ..core import ImageRequest

VERSION = "1"
"""Raised whenever the same request gives other pixels."""

FAULTS = ("missing", "extra", "duplicate", "overlap", "vertical", "wrong")


@dataclass(frozen=True)
class RenderOptions:
    """Biases in logits, faults as shares of pictures in [0, 1]."""

    order_bias: float = 0
    """Logit of the first-mentioned entity standing left, or of the left one acting."""
    preference_sd: float = 0
    """Standard deviation of each entity's own logit of standing left."""
    grounding: float = 1
    """Share of prompts with an explicit layout that are obeyed; the rest follow the biases."""
    binding_bias: float = 0
    """Share of edits in which the first-mentioned action goes to the left figure."""
    missing: float = 0
    """One entity is left out."""
    extra: float = 0
    """A third entity stands between the two."""
    duplicate: float = 0
    """One entity is there twice."""
    overlap: float = 0
    """The two stand in one another's place."""
    vertical: float = 0
    """They are stacked though they should stand side by side."""
    wrong: float = 0
    """One is another entity of its kind."""


class RenderGenerator:
    """Draws what a prompt says, as far as its options let it."""

    def __init__(self, options: RenderOptions | None = None) -> None:
        self.options = options or RenderOptions()

    @classmethod
    def from_spec(cls, spec: Spec) -> RenderGenerator:
        """From ``render:?order_bias=1&missing=0.1``. Raises ValueError for an unknown option."""
        known = [field.name for field in fields(RenderOptions)]
        if spec.argument:
            raise ValueError(f"render: takes options only, not {spec.argument!r}")
        values = {}
        for name, text in spec.options.items():
            if name not in known:
                raise ValueError(f"render: has no option {name!r}: choose from {', '.join(known)}")
            try:
                values[name] = float(text)
            except ValueError:
                raise ValueError(f"render: option {name} must be a number, is {text!r}") from None
            shares = name not in ("order_bias", "preference_sd")
            if not math.isfinite(values[name]) or (shares and not 0 <= values[name] <= 1):
                raise ValueError(f"render: option {name}={text} is out of range")
        return cls(RenderOptions(**values))

    def identity(self) -> dict[str, str]:
        """Version, atlas and the options that differ from their defaults."""
        plain = RenderOptions()
        names = [field.name for field in fields(RenderOptions)]
        changed = {n: f"{getattr(self.options, n):g}" for n in names
                   if getattr(self.options, n) != getattr(plain, n)}  # fmt: skip
        return {"kind": "render", "version": VERSION, "atlas": atlas_digest()[:12], **changed}

    def generate(self, request: ImageRequest) -> Image:
        """The picture, with the true scene as JSON in ``info["scene"]``.

        Raises ValueError for a prompt without an entity of the atlas, for an action that it can't
        draw, and for an edit of a picture that it did not make.
        """
        rng = _rng(request)
        if request.source is None:
            scene = self._compose(request.prompt, rng)
        else:
            scene = self._edit(_scene_of(request.source), request.prompt, rng)
        image = draw_scene(scene)
        image.info["scene"] = scene.to_json()
        return image

    def _compose(self, prompt: str, rng: random.Random) -> Scene:
        named = mentions(prompt)
        if not named:
            raise ValueError(f"no entity of the atlas in the prompt {prompt!r}")
        entities = [mention.entity for mention in named]
        asked = layout(prompt, named)
        order = self._order(entities, asked, rng)
        poses = mentioned_poses(prompt, named)
        axis = asked.axis
        faults = [name for name in FAULTS if rng.random() < getattr(self.options, name)]
        if "vertical" in faults and axis == "horizontal":
            axis = "vertical"
        background = rng.randrange(2**31)
        figures = [
            Figure(entities[i], *place, faces=rng.choice((-1, 1)), pose=poses[i])
            for i, place in zip(order, _places(axis, len(order), rng), strict=True)
        ]
        figures.sort(key=lambda figure: figure.base if axis == "depth" else 0)  # far ones first
        for fault in faults:
            figures = _spoil(figures, fault, rng)
        return Scene(tuple(figures), background, tuple(faults))

    def _order(self, entities: list[str], asked: Layout, rng: random.Random) -> list[int]:
        """Numbers of the entities from first to last on the axis."""
        obeys = rng.random() < self.options.grounding
        if asked.order is not None and obeys:
            return list(asked.order)
        # Gumbel noise on every logit: of two, the first-mentioned comes first with probability
        # sigmoid(order_bias + difference of preferences), and so for every two of more.
        scores = [
            -self.options.order_bias * number + self.preference(entity) + _gumbel(rng.random())
            for number, entity in enumerate(entities)
        ]
        return sorted(range(len(entities)), key=lambda i: (-scores[i], i))

    def preference(self, entity: str) -> float:
        """The entity's own logit, the same in every picture."""
        if not self.options.preference_sd:
            return 0.0
        return random.Random(f"preference/{entity}").gauss(0, self.options.preference_sd)

    def _edit(self, scene: Scene, instruction: str, rng: random.Random) -> Scene:
        figures = list(scene.figures)
        left_to_right = sorted(range(len(figures)), key=lambda i: figures[i].x)
        if names_nobody(instruction):
            pose = _pose_of(instruction)
            left_acts = rng.random() < 1 / (1 + math.exp(-self.options.order_bias))
            actor = left_to_right[0 if left_acts else -1]
            figures[actor] = replace(figures[actor], pose=pose)
            return replace(scene, figures=tuple(figures))
        present = {figure.entity: number for number, figure in enumerate(figures)}
        named = [mention for mention in mentions(instruction) if mention.entity in present]
        if not named:
            raise ValueError(f"the picture shows nothing that is named in {instruction!r}")
        numbers = [present[mention.entity] for mention in named]
        misbound = rng.random() < self.options.binding_bias
        if misbound:
            numbers = [n for n in left_to_right if n in numbers]
        poses = mentioned_poses(instruction, named)
        if is_directed(instruction, named):
            actor, patient = numbers[::-1] if is_passive(instruction) else numbers
            faces = 1 if figures[patient].x > figures[actor].x else -1
            figures[actor] = replace(figures[actor], pose=_pose_of(instruction), faces=faces)
        else:
            for number, pose in zip(numbers, poses, strict=True):
                figures[number] = replace(figures[number], pose=pose or _pose_of(instruction))
        return replace(scene, figures=tuple(figures))


def _rng(request: ImageRequest) -> random.Random:
    text = f"{request.seed}/{'edit' if request.source is not None else 'draw'}/{request.prompt}"
    return random.Random(hashlib.sha256(text.encode()).hexdigest())


def _gumbel(noise: float) -> float:
    return -math.log(-math.log(noise))


def _scene_of(source: Image) -> Scene:
    text = source.info.get("scene")
    if not isinstance(text, str):
        raise ValueError("the renderer edits only its own pictures: this one holds no scene")
    return Scene.from_json(text)


def _pose_of(text: str) -> str:
    pose = find_pose(text)
    if pose is None:
        raise ValueError(f"no pose of the renderer shows {text!r}")
    return pose


def _places(axis: str, count: int, rng: random.Random) -> list[tuple[float, float, float]]:
    """x, base and scale of figures from first to last on the axis, jittered."""
    places = []
    for number in range(count):
        share = (number + 0.5) / count
        x, base, scale = share, 0.93, 1.0 if count == 2 else 2.1 / count
        if axis == "vertical":
            x, base, scale = 0.5, (0.46, 0.95)[number] if count == 2 else 0.95 * share + 0.2, 0.5
        elif axis == "depth":
            # The last is furthest away: higher, smaller, partly covered.
            x, base, scale = 0.5 - 0.12 * number, 0.95 - 0.14 * number, 0.95 - 0.2 * number
        elif count == 2:
            x = (0.27, 0.73)[number]
        jitter = rng.uniform(-0.025, 0.025), rng.uniform(-0.02, 0.02), rng.uniform(0.88, 1.04)
        places.append(
            (round(x + jitter[0], 4), round(base + jitter[1], 4), round(scale * jitter[2], 4))
        )
    return places


def _spoil(figures: list[Figure], fault: str, rng: random.Random) -> list[Figure]:
    """The figures with one fault put in; `vertical` is a matter of places and changes nothing."""
    chosen = rng.randrange(len(figures))
    figure = figures[chosen]
    others = [name for name in entity_names() if name not in {f.entity for f in figures}]
    if fault == "missing":
        return [f for i, f in enumerate(figures) if i != chosen]
    if fault == "extra":
        return [*figures, replace(figure, entity=rng.choice(others), x=0.5, scale=0.6)]
    if fault == "duplicate":
        return [*figures, replace(figure, x=0.5, scale=0.6 * figure.scale)]
    if fault == "overlap":
        return [replace(f, x=0.5 + 0.04 * (i - 0.5)) for i, f in enumerate(figures)]
    if fault == "wrong":
        human = clothes(figure.entity) is not None
        alike = [name for name in others if (clothes(name) is not None) == human]
        return [replace(f, entity=rng.choice(alike)) if i == chosen else f
                for i, f in enumerate(figures)]  # fmt: skip
    return figures
