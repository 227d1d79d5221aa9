"""What `render:` draws of rows that the bank has drawings of: altered worlds, constrained pairs.

The drawings are those of gold images, in the room `builders`, which is loaded when a row needs one.
A prompt is recognized by being its row's: nothing here reads it.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any, Protocol

from PIL import Image

from ...scenes.scene import Figure, Scene
from ...scenes.vector import VectorImage, draw_vector

DRAWN = "counterprior.builders.drawn"
"""The module of the drawings."""
SIDES = (0.25, 0.75)
"""Where a recorded pair stands, in widths; the drawing itself places it more freely."""
PAIR_FAULTS = {"missing": "missing", "duplicate": "doubled", "vertical": "above"}
"""Fault -> layout of a pair with it."""
STYLES = 1_000
"""Seeds of drawings, each with a size and place of its own."""


class DrawingBiases(Protocol):
    """Options of the renderer that drawings heed."""

    order_bias: float
    grounding: float
    guidance: float
    missing: float
    duplicate: float
    vertical: float
    lock_in: float
    literal: float
    partial: float
    over_application: float


@dataclass(frozen=True)
class Drawing:
    """A row's drawing."""

    name: str
    """The group, or the two things of the pair."""
    level: str
    """Level of a world's prompt, e.g. `L2`; empty for a pair."""
    first: str = ""
    """Which of a pair the prompt mentions first, `left` or `right`; empty if it names neither."""
    pair: tuple[str, str, str, str] = ("", "", "", "")
    """Domain, left, right and context of a pair."""

    @classmethod
    def of(cls, prompt: str, fields: Mapping[str, str]) -> Drawing | None:
        """The drawing of a row's prompt; None for a row of another kind, a pair without a drawing,
        and any prompt that is not the row's.

        Raises ValueError for a group of altered worlds without a drawing: figures of the atlas
        would show neither world.
        """
        if "group" in fields and {"law", "altered_law"} & fields.keys():
            levels = {
                fields["prompt"]: fields.get("level", "L2"),
                fields.get("original_prompt", ""): "L2",
                fields.get("plain_prompt", ""): "L1",
                fields.get("real_law_prompt", ""): "LR",
            }
            if prompt in levels:
                if not _drawn().draws_world(fields["group"]):
                    raise ValueError(f"the bank has no drawing of {fields['group']}")
                return cls(fields["group"], levels[prompt])
        elif "aligned_prompt" in fields and "domain" in fields:
            firsts = {
                fields["unordered_prompt"]: "",
                fields["aligned_prompt"]: "left",
                fields["reverse_prompt"]: "right",
            }
            left, right = fields["left"], fields["right"]
            pair = fields["domain"], left, right, fields["context"]
            if prompt in firsts and _drawn().draws_pair(*pair):
                return cls(f"{left} / {right}", "", firsts[prompt], pair)
        return None

    def scene(self, biases: DrawingBiases, rng: random.Random) -> Scene:
        """What is drawn under the biases; its background is the seed of the drawing."""
        if self.level:
            return Scene((), rng.randrange(STYLES), (), self.name, self._world(biases, rng))
        background = rng.randrange(STYLES)
        for fault in PAIR_FAULTS:
            if rng.random() < getattr(biases, fault):
                return Scene((), background, (fault,), self.name)
        _, left, right, _ = self.pair
        order = (left, right) if self._is_right(biases, rng) else (right, left)
        figures = (Figure(thing, x, 0.9, 1.0) for thing, x in zip(order, SIDES, strict=True))
        return Scene(tuple(figures), background, (), self.name)

    def image(self, scene: Scene) -> Image.Image:
        """The image of a scene of this drawing."""
        panels = [draw_vector(panel) for panel in self._panels(scene)]
        image = Image.new("RGB", (sum(panel.width for panel in panels), panels[0].height))
        for number, panel in enumerate(panels):
            image.paste(panel, (number * panel.width, 0))
        return image

    def _panels(self, scene: Scene) -> list[VectorImage]:
        """The images of a scene, side by side from the left."""
        drawn = _drawn()
        if self.level:
            worlds: list[VectorImage] = drawn.world_images(self.name, scene.world, scene.background)
            return worlds
        layout = "right" if scene.left_to_right()[:1] == self.pair[1:2] else "swapped"
        for fault in scene.faults:
            layout = PAIR_FAULTS[fault]
        return [drawn.pair_image(*self.pair, layout, scene.background)]

    def _world(self, biases: DrawingBiases, rng: random.Random) -> str:
        # All are drawn each time, so that one bias changes nothing about the others.
        absent, locked, literal, partial, over = (rng.random() for _ in range(5))
        if absent < biases.missing:
            return "absent"
        if self.level in ("L0", "LR"):
            return "altered" if over < biases.over_application else "real"
        if self.level == "L1" or locked < biases.lock_in:
            return "real"
        if self.level == "L3" and literal < biases.literal:
            return "real"
        return "both" if partial < biases.partial else "altered"

    def _is_right(self, biases: DrawingBiases, rng: random.Random) -> bool:
        """Whether the pair stands as its fact has it."""
        obeys = rng.random() < biases.grounding + (1 - biases.grounding) * biases.guidance
        first_left = 1 / (1 + math.exp(-biases.order_bias)) if self.first else 0.5
        as_mentioned = rng.random() < first_left
        return obeys or as_mentioned == (self.first != "right")


@cache
def _drawn() -> Any:
    return import_module(DRAWN)
