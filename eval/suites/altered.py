"""`altered_worlds`: which of two worlds does an image show? `counterfactual`, second edition.

Every image is asked whether the scene is there and, for each world, a point and a logic question.
An honest judge says yes to two of these four, so who always says yes gains nothing. The point
questions decide which world is shown: each names what alone makes the difference. A second
consequence (logic) can fail although the premise was followed; so the logic questions tell how
whole a world is, and all four how far the judge leans to yes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import get_args

import numpy as np
from PIL.Image import Image

from ...schema import AlteredWorld
from ..core import ALL, ORIGINAL, Case, Outcome, Question, Score, count_excluded
from ..prompts import read_prompt
from ..prompts.asking import ask_yes_no
from .base import YES_NO, Headline, Item, Measure, Suite, by_variant
from .scores import in_groups, mean_score, mean_worth

PRESENCE = "presence"
POINTS = ("point_factual", "point_counterfactual")
LOGICS = ("logic_factual", "logic_counterfactual")
KEYED = (*POINTS, *LOGICS)
WORLDS = {
    ("yes", "no"): "real",
    ("no", "yes"): "altered",
    ("yes", "yes"): "both",
    ("no", "no"): "neither",
}
"""Answers to the factual and the counterfactual question -> what the image shows."""
ABSENT = "absent"  # an image without the scene shows no world
LEVELS: tuple[str, ...] = get_args(AlteredWorld.model_fields["level"].annotation)
SHOWN = {
    "knows_real": ("L1", ("real",), "plain scenes (L1) that show the real outcome"),
    "lock_in": ("L2 L3", ("real",), "altered scenes (L2, L3) that show the real world"),
    "compliance": ("L2 L3", ("altered",), "altered scenes (L2, L3) that show the altered world"),
    "compliance_L2": ("L2", ("altered",), "scenes with the outcome told (L2) that show it"),
    "confusion": ("L2 L3", ("both", "neither"), "altered scenes that show both worlds or neither"),
    "over_application": ("L0", ("altered",), "scenes under an irrelevant law that show the other"),
}
"""Score -> levels that count, worlds whose share it is, what it is the share of."""


def world_shown(outcome: Outcome, asked: tuple[str, str] = POINTS) -> str:
    """What an image shows by two questions: a value of `WORLDS`, `ABSENT`, or the failure of a
    question, presence first."""
    presence = outcome.label(PRESENCE)
    if presence != "yes":
        return ABSENT if presence == "no" else presence
    factual, counterfactual = map(outcome.label, asked)
    return WORLDS.get((factual, counterfactual)) or failure(outcome, asked)


def failure(outcome: Outcome, asked: Iterable[str]) -> str:
    """The first label that is no answer; empty where there is none."""
    return next((x for x in map(outcome.label, asked) if x not in YES_NO.values), "")


def shows(worlds: Sequence[str], outcome: Outcome) -> float:
    """1 where an image shows one of some worlds, 0 where another; NaN where that can't be told."""
    world = world_shown(outcome)
    return float(world in worlds) if world in WORLDS.values() else math.nan


class AlteredWorldsSuite(Suite[AlteredWorld]):
    """Four levels of every group, each image asked for both worlds."""

    name = "altered_worlds"
    variants = LEVELS
    has_right_images = True
    worths = dict.fromkeys((PRESENCE, *KEYED), YES_NO)
    meanings = {
        PRESENCE: "Share of plain scenes (L1) whose things are there, 0 to 1.",
        **{
            name: f"Share of {meaning}, among images with the scene, 0 to 1. A coin gets "
            f"{len(worlds) / 4}."
            for name, (_, worlds, meaning) in SHOWN.items()
        },
        "coherence": "Share of images of one world, real or altered, that show the same by the "
        "logic questions, 0 to 1. A coin gets 0.25.",
        "yes_bias": "Share of yes among the four keyed answers of an image, less the half that is "
        "right where it shows one world, -0.5 to 0.5: how far the judge leans to yes.",
    }
    headline = Headline(
        score="compliance_L2",
        better="higher",
        meaning="Share of images that show the altered world where premise and outcome are told.",
        items=lambda outcomes: {
            o.case.id: Item((shows(("altered",), o),), o.case.clusters[0])
            for o in outcomes
            if o.case.variant == "L2"
        },
        broken_down=("compliance", "lock_in"),
    )

    def cases(self, row: AlteredWorld, seeds: int) -> Iterator[Case]:
        groups = {
            "level": row.level,
            "discipline": row.discipline,
            "depth": str(row.depth) if row.depth < 2 else "2+",
            "phrasing": row.phrasing,
            "naive_outcome": "yes" if row.naive_outcome else "no",
            "timed": "yes" if row.timed else "no",
        }
        return self.seeded(row, seeds, {row.level: row.prompt}, (row.law, row.group), groups)

    def together(self, row: AlteredWorld) -> str:
        return row.group

    def questions(
        self, row: AlteredWorld, case: Case, images: Sequence[Image], probe: str
    ) -> list[Question]:
        texts = {PRESENCE: row.presence} | {name: getattr(row, name).text for name in KEYED}
        prompt, image = read_prompt(*self.prompts), images[-1]
        asked = texts.items() if probe == ORIGINAL else ()
        return [ask_yes_no(case, name, prompt, text, image) for name, text in asked]

    def correctness(self, outcome: Outcome) -> float:
        if world_shown(outcome) == ABSENT:
            return 0.0
        return shows(("altered" if outcome.case.variant in ("L2", "L3") else "real",), outcome)

    def measures(self, outcomes: Sequence[Outcome]) -> Iterator[tuple[frozenset[str], Measure]]:
        for level, part in by_variant(outcomes, LEVELS):
            asked = frozenset((PRESENCE, *POINTS))
            yield asked, Measure(f"right_{level}", part, self.correctness, YES_NO, "1")

    def score(self, outcomes: Sequence[Outcome]) -> list[Score]:
        return in_groups(outcomes, _scores)


def coherent(outcome: Outcome) -> float:
    """1 where the logic questions show the world that the point questions show, 0 where they show
    another; NaN where these show no single world, or one has no answer."""
    if failure(outcome, LOGICS) or world_shown(outcome) not in ("real", "altered"):
        return math.nan
    return float(world_shown(outcome) == world_shown(outcome, LOGICS))


def lean(outcome: Outcome) -> float:
    """Share of yes among the keyed answers less the half that is right; NaN unless all are there,
    since only all of them are balanced."""
    return sum(YES_NO.of(outcome.verdict(name)) for name in KEYED) / len(KEYED) - 0.5


def _scores(part: Sequence[Outcome], group: str) -> Iterator[Score]:
    """Every score of a group; none of a level that it lacks."""
    plain = [o for o in part if o.case.variant == "L1"]
    if plain or group == ALL:
        yield mean_worth(PRESENCE, plain, PRESENCE, YES_NO, unit="1", group=group)
    for name, (levels, worlds, _) in SHOWN.items():
        chosen = [o for o in part if o.case.variant in levels.split()]
        if chosen or group == ALL:
            score = _mean(name, chosen, partial(shows, worlds), world_shown, group)
            yield replace(score, null=len(worlds) / len(WORLDS))
    score = _mean(
        "coherence", part, coherent, lambda o: failure(o, LOGICS) or world_shown(o), group
    )
    yield replace(score, null=1 / len(WORLDS))
    yield _mean("yes_bias", part, lean, partial(failure, asked=KEYED), group, ends=(-0.5, 0.5))


def _mean(
    name: str,
    part: Sequence[Outcome],
    value: Callable[[Outcome], float],
    reason: Callable[[Outcome], str],
    group: str,
    *,
    ends: tuple[float, float] = (0, 1),
) -> Score:
    """The mean of a value; images without one are counted by the reason."""
    values = np.array([value(o) for o in part], dtype=float)
    excluded = count_excluded((reason(o) for o in part if math.isnan(value(o))), ())
    return mean_score(name, values, part, ends=ends, unit="1", group=group, excluded=excluded)
