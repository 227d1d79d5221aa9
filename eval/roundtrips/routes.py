"""The routes of ACON: from an image or its caption, step by step, to what is judged.

With f from one modality to the other and g an edit (ACON, section 4):

cyclic              f' (f (x))          the start, there and back
conjugated          f' (g (f (x)))      the edit, made on the other side
edit_first          f (g (x))           both orders of the edit, on the side of what f makes:
edit_last           g (f (x))           they should agree, which is forward equivariance
given               x                   no model at all: what the judge itself gets wrong

Beyond the paper, `cycle2` to `cycle8` go there and back that many times: does the loop converge?
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from ...errors import UsageError

Modality = Literal["image", "text"]
StepKind = Literal["caption", "generate", "edit_text", "edit_image"]
"""A captioner captions an image, a generator makes an image of a text, and editors change a text or
an image by an instruction."""

MADE: Mapping[StepKind, Modality] = {
    "caption": "text",
    "generate": "image",
    "edit_text": "text",
    "edit_image": "image",
}
"""Modality that a step makes."""
RECORDED: Mapping[StepKind, str] = {
    "caption": "tell",
    "generate": "draw",
    "edit_text": "revise",
    "edit_image": "retouch",
}
"""Names of the steps on disk, as the first runs wrote them: in the records and keys of
`steps.jsonl`, and in the identities of runs (`tell_model`). With other names, every step of an
older run would be taken again."""
EDITS: tuple[StepKind, ...] = ("edit_text", "edit_image")
"""Steps that need an edit."""
TRIP = "round-trip"
"""Kind of the case generator of a run of round trips."""
MOST_CYCLES = 8
"""Round trips one after another at most."""
JOINT = "~"
"""Separates the start and the models in a run's name."""


@dataclass(frozen=True)
class Route:
    """Steps from a start to the image or text that is judged."""

    start: Modality
    """The image of a row, or its caption."""
    criterion: str
    """Criterion of ACON that it measures, as in the table above."""
    steps: tuple[StepKind, ...]

    @property
    def end(self) -> Modality:
        """Modality that is judged."""
        return MADE[self.steps[-1]] if self.steps else self.start

    @property
    def has_edit(self) -> bool:
        """Whether there is a case for each edit of a row."""
        return any(step in EDITS for step in self.steps)

    @property
    def cycles(self) -> int:
        """Times that it goes there and back; 1 for the paper's routes."""
        return max(1, self.steps.count("caption"))

    @property
    def name(self) -> str:
        """The variant of its cases, before the number of the edit."""
        return f"{self.start}_{self.criterion}"


_THERE_AND_BACK: Mapping[Modality, tuple[StepKind, ...]] = {
    "image": ("caption", "generate"),
    "text": ("generate", "caption"),
}

ROUTES = {
    route.name: route
    for route in (
        Route("image", "given", ()),
        Route("text", "given", ()),
        Route("image", "cyclic", _THERE_AND_BACK["image"]),
        Route("text", "cyclic", _THERE_AND_BACK["text"]),
        Route("image", "conjugated", ("caption", "edit_text", "generate")),
        Route("text", "conjugated", ("generate", "edit_image", "caption")),
        Route("image", "edit_first", ("edit_image", "caption")),
        Route("image", "edit_last", ("caption", "edit_text")),
        Route("text", "edit_first", ("edit_text", "generate")),
        Route("text", "edit_last", ("generate", "edit_image")),
        *(
            Route(start, f"cycle{count}", steps * count)
            for start, steps in _THERE_AND_BACK.items()
            for count in range(2, MOST_CYCLES + 1)
        ),
    )
}
"""Routes by name."""


def route_of(variant: str) -> tuple[Route, int]:
    """Returns the route of a variant, and the number of its edit from 1; 0 without an edit.

    >>> route_of("image_edit_first_2")[1]
    2
    """
    name, _, number = variant.rpartition("_")
    if name in ROUTES and number.isdecimal():
        return ROUTES[name], int(number)
    return ROUTES[variant], 0


def variants_of(route: Route, edits: int) -> list[str]:
    """Returns the variants of a route for a row with that many edits."""
    return [f"{route.name}_{n + 1}" for n in range(edits)] if route.has_edit else [route.name]


def routes_of(start: Modality, models: Sequence[StepKind]) -> list[Route]:
    """Returns the routes from a start that use exactly these models: a captioner (`caption`), a
    generator (`generate`), both or neither."""
    return [
        route
        for route in ROUTES.values()
        if route.start == start
        and {step for step in route.steps if step not in EDITS} == set(models)
    ]


def end_of(start: Modality, models: Sequence[StepKind]) -> Modality:
    """Modality that is judged in a run; the same on all of its routes."""
    return routes_of(start, models)[0].end


def trip_name(start: Modality, models: Sequence[str]) -> str:
    """Name of a run.

    >>> trip_name("image", ["llava", "flux"])
    'image~llava~flux'
    """
    return JOINT.join((start, *models))


def trips_of(
    captioners: Sequence[str], generators: Sequence[str]
) -> list[tuple[Modality, tuple[StepKind, ...], tuple[str, ...]]]:
    """Returns start, kinds of the models and their names, of every run of a grid.

    Only the start for the judge's own errors; each model alone for forward equivariance; each
    captioner with each generator, and back, for the other two criteria.
    """
    trips: list[tuple[Modality, tuple[StepKind, ...], tuple[str, ...]]] = [
        ("image", (), ()),
        ("text", (), ()),
    ]
    trips += [("image", ("caption",), (captioner,)) for captioner in captioners]
    trips += [("text", ("generate",), (generator,)) for generator in generators]
    pairs = [(captioner, generator) for captioner in captioners for generator in generators]
    trips += [("image", ("caption", "generate"), pair) for pair in pairs]
    pairs = [(generator, captioner) for generator in generators for captioner in captioners]
    trips += [("text", ("generate", "caption"), pair) for pair in pairs]
    return trips


def check_start(text: str) -> Modality:
    """Raises UsageError unless the text is `image` or `text`."""
    if text == "image":
        return "image"
    if text == "text":
        return "text"
    raise UsageError(f"a round trip starts from image or text, not {text!r}", code="unknown-name")
