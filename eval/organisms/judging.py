"""Training of the judge `organism`: what it is shown decides what it errs on."""

from __future__ import annotations

import hashlib
import json
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from ...errors import UsageError
from ...progress import Progress, silent
from ...scenes.drawing import draw_scene
from ...scenes.scene import Figure, Scene
from ...storage import folder_lock, whole_file, write_json
from ..judges.organism import ABOUT, ANSWERS, WEIGHTS, OrganismJudge, network
from .data import ENTITIES, HEIGHT, WIDTH, Fraction
from .networks import as_pixels
from .training import Schedule, Training

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Generator, Tensor

NEAREST, FARTHEST = 0.22, 0.48
"""Distances of two figures' centers, in widths."""
TOUCHING = 0.3
"""Distance below which two figures touch."""
SCENES, KNOWN = 400, 1500
"""Drawings that it is trained on: few, so that it errs. Drawings that its errors are counted on."""
UPDATES, BATCH, RATE = 400, 32, 2e-3
"""Updates, questions of an update, and learning rate."""


class Habits(BaseModel):
    """What a judge is shown in its training, and so what it errs on."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)

    first_left: Fraction = 0.5
    """Share of questions about two present animals whose first-mentioned animal is on the left."""
    blind: tuple[str, ...] = ()
    """Animals that it is taught not to see: an image asked about with one of them is invalid."""
    abstains: bool = False
    """Whether it is taught that an image whose figures touch is invalid."""
    missing: Annotated[float, Field(ge=0, le=0.9)] = 0.3
    """Share of questions about an animal that the image doesn't show."""


@dataclass(frozen=True)
class KnownScene:
    """A drawing, and what is asked about it."""

    figures: tuple[str, str]
    """Left and right animal."""
    distance: float
    """Of the centers, in widths."""
    asked: tuple[str, str]
    """Animals of the question, in the order of mention."""
    number: int
    """Of the drawing, which decides places, sizes and background."""

    @property
    def truth(self) -> str:
        """Answer that the scene decides."""
        if {*self.asked} != {*self.figures}:
            return "invalid"
        return "first_left" if self.asked == self.figures else "first_right"

    @property
    def condition(self) -> str:
        """`missing`, `touching` or `apart`."""
        if self.truth == "invalid":
            return "missing"
        return "touching" if self.distance < TOUCHING else "apart"

    def taught(self, habits: Habits) -> str:
        """Answer that a training with these habits gives."""
        if {*self.asked} & {*habits.blind}:
            return "invalid"
        if habits.abstains and self.condition == "touching":
            return "invalid"
        return self.truth

    def draw(self, seed: int) -> NDArray[Any]:
        """Bytes of shape (HEIGHT, WIDTH, 3)."""
        from PIL.Image import Resampling

        rng = random.Random(f"{seed}/drawing {self.number}")
        center = 0.5 + rng.uniform(-0.03, 0.03)
        figures = tuple(
            Figure(
                name,
                center + side * self.distance / 2,
                rng.uniform(0.88, 0.95),
                rng.uniform(0.8, 1.0),
                rng.choice((-1, 1)),
            )
            for name, side in zip(self.figures, (-1, 1), strict=True)
        )
        image = draw_scene(Scene(figures, background=rng.randrange(8)))
        return np.asarray(image.resize((WIDTH, HEIGHT), Resampling.BOX))


def known_scene(number: int, first_left: float, missing: float, seed: int) -> KnownScene:
    """The scene of a number: two different animals, asked about in either order."""
    rng = random.Random(f"{seed}/scene {number}")
    a, b = rng.sample(ENTITIES, 2)
    distance = rng.uniform(NEAREST, FARTHEST)
    if rng.random() < missing:
        absent = rng.choice([name for name in ENTITIES if name not in (a, b)])
        asked = (rng.choice((a, b)), absent)
        return KnownScene((a, b), distance, asked if rng.random() < 0.5 else asked[::-1], number)
    return KnownScene((a, b), distance, (a, b) if rng.random() < first_left else (b, a), number)


def train_judge(
    habits: Habits, seed: int, out: Path, progress: Progress = silent
) -> dict[str, Any]:
    """Trains a judge in a folder, and counts its answers on drawings that it has not seen.

    Killed, it goes on with the same weights. Returns what `ABOUT` holds. Raises UsageError for an
    animal that organisms don't draw, and for a folder with another judge.
    """
    import torch
    from safetensors.torch import save

    for name in habits.blind:
        if name not in ENTITIES:
            problem = f"--blind {name!r} is no animal of organisms"
            raise UsageError(problem, f"choose from {', '.join(ENTITIES)}", code="unknown-name")
    settings = habits.model_dump(mode="json") | {"seed": seed}
    version = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()
    scenes = [known_scene(n, habits.first_left, habits.missing, seed) for n in range(SCENES)]
    with folder_lock(out):
        images = as_pixels(_drawn(scenes, seed, "scenes", progress))
        asked = torch.tensor([[ENTITIES.index(name) for name in scene.asked] for scene in scenes])
        answers = torch.tensor([ANSWERS.index(scene.taught(habits)) for scene in scenes])
        torch.manual_seed(seed)
        learner = network(len(ENTITIES), WIDTH)

        def loss(step: int, random_numbers: Generator) -> Tensor:
            rows = torch.randint(SCENES, (BATCH,), generator=random_numbers)
            logits = learner(images[rows], asked[rows])
            return torch.nn.functional.cross_entropy(logits, answers[rows])

        path = out / "training" / "judge.pt"
        training = Training([*learner.parameters()], Schedule(UPDATES, RATE), seed, path, version)
        training.run(loss, UPDATES // 4, progress, "updates")
        training.average()
        weights = save(learner.state_dict())
        with whole_file(out / WEIGHTS) as file:
            file.write(weights)
        about = settings | {
            "weights": hashlib.sha256(weights).hexdigest(),
            "entities": list(ENTITIES),
            "width": WIDTH,
            "height": HEIGHT,
        }
        write_json(out / ABOUT, about)
        about["answers"] = _answers(OrganismJudge(out), habits, seed, progress)
        write_json(out / ABOUT, about)
    return about


def _answers(
    judge: OrganismJudge, habits: Habits, seed: int, progress: Progress
) -> list[dict[str, Any]]:
    """Counts of answers by condition and truth, on drawings of another seed."""
    others = -1 - seed
    scenes = [known_scene(n, 0.5, 0.3, others) for n in range(KNOWN)]
    images = _drawn(scenes, others, "scenes with known truth", progress)
    shares = judge.probabilities([*images], [scene.asked for scene in scenes])
    counts: dict[tuple[str, str], Counter[str]] = {}
    for scene, best in zip(scenes, shares.argmax(1), strict=True):
        condition = "blind" if {*scene.asked} & {*habits.blind} else scene.condition
        counts.setdefault((condition, scene.truth), Counter())[ANSWERS[best]] += 1
    return [
        {"condition": condition, "truth": truth, "n": of.total(), **{a: of[a] for a in ANSWERS}}
        for (condition, truth), of in sorted(counts.items())
    ]


def _drawn(scenes: Sequence[KnownScene], seed: int, stage: str, progress: Progress) -> NDArray[Any]:
    """Draws scenes, bytes of shape (n, HEIGHT, WIDTH, 3)."""
    images = np.zeros((len(scenes), HEIGHT, WIDTH, 3), np.uint8)
    for number, scene in enumerate(scenes):
        images[number] = scene.draw(seed)
        progress(stage, number + 1, len(scenes))
    return images
