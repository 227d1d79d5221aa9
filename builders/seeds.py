"""Seed images of the I2I suites: drawn by the renderer in parallel, or by any generator and judged.

The images depend on the rows alone, not on processes or order.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import UsageError
from ..eval.core import Generator, ImageRequest
from ..eval.generators import draw, open_generator
from ..images import encode_drawing, encode_png
from ..progress import Progress
from ..scenes.looks import look
from ..schema import EncodedImage, Entity, SeededRow
from ..specs import Spec
from .build_result import SeedCheck
from .drawings import drawings

if TYPE_CHECKING:
    from ..eval.studies.seeding import SeedSettings

RENDERER = "render"
"""`seed_source` of the images that the renderer draws."""


class SeedRequest(NamedTuple):
    """One seed image to draw."""

    generator: str
    """Spec of the generator."""
    prompt: str
    seed: int

    @property
    def key(self) -> str:
        """Spec, prompt and seed as JSON; empty unless the renderer draws."""
        if Spec.parse(self.generator).kind != RENDERER:
            return ""
        return f"seed {json.dumps(self)}"

    def draw(self) -> bytes:
        """The PNG; raises what the generator raises."""
        fields = {"seed_prompt": self.prompt}
        request = ImageRequest(self.prompt, self.seed, fields=fields)
        image = draw(_opened(self.generator), request)
        return encode_drawing(image, flat=True) if self.key else encode_png(image)


@cache
def _opened(spec: str) -> Generator:
    """The generator of a spec; opening one takes a twentieth of the time of drawing."""
    return open_generator(spec)


def begin_seeds(rows: Sequence[SeededRow], generator: str) -> list[SeedRequest]:
    """Starts drawing the seed images of rows; returns what is drawn."""
    requests = [SeedRequest(generator, row.seed_prompt, row.seeds[0]) for row in rows]
    drawings().begin([request for request in requests if request.key])
    return requests


def kept_seeds(records: Sequence[Mapping[str, Any]]) -> list[bytes | None]:
    """What earlier runs drew as the seed image of released rows, see `DrawingRun.kept`; None for a
    row whose image the renderer did not draw."""
    requests: list[SeedRequest | None] = []
    for record in records:
        prompt, seeds = record.get("seed_prompt"), record.get("seeds") or [0]
        seed = seeds[0] if isinstance(seeds, list) else None
        is_drawn = record.get("seed_source") == RENDERER
        if is_drawn and isinstance(prompt, str) and isinstance(seed, int):
            requests.append(SeedRequest(f"{RENDERER}:", prompt, seed))
        else:
            requests.append(None)
    kept = iter(drawings().kept([request for request in requests if request is not None]))
    return [None if request is None else next(kept) for request in requests]


def draw_seeds(
    rows: Sequence[SeededRow], generator: str, progress: Callable[[int], None]
) -> list[SeededRow]:
    """The rows with their seed image, each drawn from `seed_prompt` with the row's first seed.

    `generator` is a spec such as ``render:``; `progress` is told how many were drawn since the last
    call. Where the renderer draws, `left` and `right` are described as it draws them. Raises what
    the generator raises, and UsageError for an entity that the renderer lacks.
    """
    source = Spec.parse(generator).kind
    requests = begin_seeds(rows, generator)
    drawn: list[SeededRow] = []
    for row, request in zip(rows, requests, strict=True):
        drawn.append(_with_image(row, source, drawings()(request)))
        progress(1)
    return drawn


def checked_seeds(
    rows: Sequence[SeededRow], settings: SeedSettings, progress: Progress
) -> tuple[list[SeededRow], SeedCheck]:
    """The rows with an image that a judge affirmed, and what came of drawing and judging.

    Rows with the same `seed_prompt` share an image. A row of which no try was affirmed stays
    without: `seed_source` is `none`. The judge is told the look that the kept row has. Raises what
    `find_seeds` raises.
    """
    from ..eval.studies.seeding import SeedScene, find_seeds  # `validate` needs none of it

    source = Spec.parse(settings.generator).kind
    described_rows = [described(row, source) for row in rows]
    scenes = {
        row.seed_prompt: SeedScene(row.seed_prompt, row.left, row.right, row.pair_type)
        for row in described_rows
    }
    outcome = find_seeds(list(scenes.values()), settings, progress)
    with_images = [
        _with_image(row, source, outcome.images[row.seed_prompt])
        if row.seed_prompt in outcome.images
        else row
        for row in rows
    ]
    return with_images, SeedCheck(
        judge=dict(outcome.judge),
        scenes=len(scenes),
        kept=len(outcome.images),
        drawn=outcome.drawn,
        refused=dict(outcome.refused),
    )


def _with_image(row: SeededRow, source: str, encoded: bytes) -> SeededRow:
    return described(row, source).model_copy(
        update={
            "seed_image": EncodedImage(bytes=encoded, path=f"{row.id}.png"),
            "image_sha256": hashlib.sha256(encoded).hexdigest(),
        }
    )


def described(row: SeededRow, source: str) -> SeededRow:
    """The row with its things described as seed images from `source` show them."""
    return row.model_copy(
        update={
            "seed_source": source,
            "left": as_drawn(row.left, source),
            "right": as_drawn(row.right, source),
        }
    )


def as_drawn(entity: Entity, source: str) -> Entity:
    """The entity with the look that it has in seed images from `source`, a row's `seed_source`.

    The renderer's own drawings are not dressed as the bank says; other generators follow the bank.
    Raises UsageError for an entity that the renderer lacks.
    """
    if source != RENDERER:
        return entity
    try:
        return entity.model_copy(update={"look": look(entity.name)})
    except KeyError:
        raise UsageError(
            f"the renderer has no drawing of {entity.name!r}: name another --seed-images "
            f"generator, or add one to scenes/atlas: recipes.json, looks.json, tools/make_atlas.py",
            code="unsupported",
        ) from None
