"""The routes of ACON: from an image or its caption, step by step, to what is judged.

With f from one modality to the other and g an edit (ACON, section 4):

cyclic              f' (f (x))          the start, there and back
conjugated          f' (g (f (x)))      the edit, made on the other side
edit_first          f (g (x))           both orders of the edit, on the side of what f makes:
edit_last           g (f (x))           they should agree, which is forward equivariance
given               x                   no model at all: what the judge itself gets wrong
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from ...errors import UsageError

Modality = Literal["image", "text"]
StepKind = Literal["tell", "draw", "revise", "retouch"]
"""A captioner tells an image, a generator draws a text; a text editor revises a text by an edit,
an image editor retouches an image by one."""

MADE: Mapping[StepKind, Modality] = {
    "tell": "text",
    "draw": "image",
    "revise": "text",
    "retouch": "image",
}
"""What a step makes."""
EDITS: tuple[StepKind, ...] = ("revise", "retouch")
"""Steps that need an edit."""
TRIP = "round-trip"
"""Kind of what makes a run of round trips."""
JOINT = "~"
"""Between the parts of a run's name: where it starts, and its models in their order."""


@dataclass(frozen=True)
class Route:
    """A way from a start to what is judged."""

    start: Modality
    """The image of a row, or its caption."""
    criterion: str
    """What it is for, as in the table above."""
    steps: tuple[StepKind, ...]

    @property
    def end(self) -> Modality:
        """What is judged."""
        return MADE[self.steps[-1]] if self.steps else self.start

    @property
    def has_edit(self) -> bool:
        """Whether there is a case for each edit of a row."""
        return any(step in EDITS for step in self.steps)

    @property
    def name(self) -> str:
        """The variant of its cases, before the number of the edit."""
        return f"{self.start}_{self.criterion}"


ROUTES = {
    route.name: route
    for route in (
        Route("image", "given", ()),
        Route("text", "given", ()),
        Route("image", "cyclic", ("tell", "draw")),
        Route("text", "cyclic", ("draw", "tell")),
        Route("image", "conjugated", ("tell", "revise", "draw")),
        Route("text", "conjugated", ("draw", "retouch", "tell")),
        Route("image", "edit_first", ("retouch", "tell")),
        Route("image", "edit_last", ("tell", "revise")),
        Route("text", "edit_first", ("revise", "draw")),
        Route("text", "edit_last", ("draw", "retouch")),
    )
}
"""By name."""


def route_of(variant: str) -> tuple[Route, int]:
    """The route of a variant, and the number of its edit from 1; 0 where it has none.

    >>> route_of("image_edit_first_2")[1]
    2
    """
    name, _, number = variant.rpartition("_")
    if name in ROUTES and number.isdecimal():
        return ROUTES[name], int(number)
    return ROUTES[variant], 0


def variants_of(route: Route, edits: int) -> list[str]:
    """The variants of a route, where a row has so many edits."""
    return [f"{route.name}_{n + 1}" for n in range(edits)] if route.has_edit else [route.name]


def routes_of(start: Modality, models: Sequence[StepKind]) -> list[Route]:
    """The routes from a start on which a captioner (`tell`), a generator (`draw`), both or neither
    are at work."""
    return [
        route
        for route in ROUTES.values()
        if route.start == start
        and {step for step in route.steps if step not in EDITS} == set(models)
    ]


def end_of(start: Modality, models: Sequence[StepKind]) -> Modality:
    """What is judged of a run; one modality on all of its routes."""
    return routes_of(start, models)[0].end


def trip_name(start: Modality, models: Sequence[str]) -> str:
    """The name of a run.

    >>> trip_name("image", ["llava", "flux"])
    'image~llava~flux'
    """
    return JOINT.join((start, *models))


def trips_of(
    captioners: Sequence[str], generators: Sequence[str]
) -> list[tuple[Modality, tuple[StepKind, ...], tuple[str, ...]]]:
    """Start, kinds of the models and their names, of every run of a grid.

    Nothing but the start for what the judge itself gets wrong; each model alone for forward
    equivariance; each captioner with each generator, and back, for the other two criteria.
    """
    found: list[tuple[Modality, tuple[StepKind, ...], tuple[str, ...]]] = [
        ("image", (), ()),
        ("text", (), ()),
    ]
    found += [("image", ("tell",), (one,)) for one in captioners]
    found += [("text", ("draw",), (one,)) for one in generators]
    for told in captioners:
        found += [("image", ("tell", "draw"), (told, drawn)) for drawn in generators]
    for drawn in generators:
        found += [("text", ("draw", "tell"), (drawn, told)) for told in captioners]
    return found


def check_start(text: str) -> Modality:
    """Raises UsageError for what is no start."""
    if text == "image":
        return "image"
    if text == "text":
        return "text"
    raise UsageError(f"a round trip starts from image or text, not {text!r}", code="unknown-name")
