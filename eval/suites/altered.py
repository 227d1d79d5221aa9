"""`altered_worlds`: which of two worlds does an image show? `counterfactual`, second edition.

Questions about every image: is the scene there, and for each world a point and a logic question.
Two of these four are right, so a judge that always says yes gains nothing. The point questions
decide: each names the detail that distinguishes the worlds. The logic questions ask for a further
consequence, which can fail even if the premise was followed (coherence), for another instance of
the same (uniformity), or in other words for the same, where only the judge can differ
(self-consistency). All four measure the judge's bias towards yes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import get_args

from PIL.Image import Image

from ...scenes.scene import Scene
from ...schema import AlteredWorld, AlteredWorldGold
from ..core import ALL, ORIGINAL, Case, Outcome, Question, Score
from ..questions import read_prompt
from ..questions.asking import ask_yes_no
from ..questions.truth import WorldAspect
from .base import Headline, Item, Measure, Suite, by_variant
from .scoring import in_groups, mean_value, mean_worth
from .worths import YES_NO

PRESENCE = "presence"
POINTS = ("point_factual", "point_counterfactual")
LOGICS = ("logic_factual", "logic_counterfactual")
KEYED = (*POINTS, *LOGICS)
ASPECTS = {
    PRESENCE: WorldAspect("presence"),
    **{
        f"{aspect}_{key}": WorldAspect(aspect, world)
        for aspect in ("point", "logic")
        for key, world in (("factual", "real"), ("counterfactual", "altered"))
    },
}
"""Question -> what it asks."""
WORLDS = {
    ("yes", "no"): "real",
    ("no", "yes"): "altered",
    ("yes", "yes"): "both",
    ("no", "no"): "neither",
}
"""Answers to the factual and the counterfactual question -> what the image shows."""
ABSENT = "absent"  # an image without the scene shows no world
LEVELS: tuple[str, ...] = get_args(AlteredWorld.model_fields["level"].annotation)
REAL_LAW = "LR"
"""Variant of L1 that states the law of our world in the form of a premise."""
SHOWN = {
    "knows_real": ("L1", ("real",), "plain scenes (L1) that show the real outcome"),
    "lock_in": ("L2 L3", ("real",), "altered scenes (L2, L3) that show the real world"),
    "compliance": ("L2 L3", ("altered",), "altered scenes (L2, L3) that show the altered world"),
    "compliance_L2": ("L2", ("altered",), "scenes with the outcome told (L2) that show it"),
    "confusion": ("L2 L3", ("both", "neither"), "altered scenes that show both worlds or neither"),
    "over_application": (
        "L0",
        ("altered",),
        "scenes under another law (L0) that show the altered world",
    ),
}
"""Score -> its levels, the worlds whose share it is, the images that it is a share of."""
SHOWN_UNDER_REAL_LAW = {
    "real_law_real": (
        REAL_LAW,
        ("real",),
        "scenes with the law of our world stated (LR) that show the real outcome",
    ),
    "real_law_altered": (
        REAL_LAW,
        ("altered",),
        "scenes with the law of our world stated (LR) that show the altered world",
    ),
}
"""The same of the second control, which only a run that names its variant has."""


BY_LOGIC = {
    "coherence": "consequence",
    "uniformity": "instance",
    "self_consistency": "restatement",
}
"""Score -> the kind of logic questions that it is of."""


def world_shown(outcome: Outcome, questions: tuple[str, str] = POINTS) -> str:
    """The world that an image shows by two questions: a value of `WORLDS`, `ABSENT`, or the failure
    of a question, presence first."""
    presence = outcome.label(PRESENCE)
    if presence != "yes":
        return ABSENT if presence == "no" else presence
    factual, counterfactual = map(outcome.label, questions)
    return WORLDS.get((factual, counterfactual)) or failure(outcome, questions)


def failure(outcome: Outcome, questions: Iterable[str]) -> str:
    """The first label that is not an answer; empty if all are."""
    return next((x for x in map(outcome.label, questions) if x not in YES_NO.values), "")


UNCONDITIONAL = ("compliance", "compliance_L2")
"""Scores that also stand as a share of all judged images."""


def shows(worlds: Sequence[str], outcome: Outcome) -> float:
    """1 where an image shows one of `worlds`, 0 where it shows another; NaN if undecided."""
    world = world_shown(outcome)
    return float(world in worlds) if world in WORLDS.values() else math.nan


def shows_scene_and(worlds: Sequence[str], outcome: Outcome) -> float:
    """As `shows`, and 0 for an image without the scene."""
    return 0.0 if world_shown(outcome) == ABSENT else shows(worlds, outcome)


class AlteredWorldsSuite(Suite[AlteredWorld]):
    """Four levels of every group, each image asked for both worlds."""

    name = "altered_worlds"
    population = "laws"
    gold = "altered_worlds_gold"
    variants = (*LEVELS, REAL_LAW)
    optional = (REAL_LAW,)
    has_right_images = True
    worths = dict.fromkeys((PRESENCE, *KEYED), YES_NO)
    meanings = {
        PRESENCE: "Share of plain scenes (L1) whose things are there, 0 to 1.",
        **{
            name: f"Share of {meaning}, among images with the scene, 0 to 1. A coin gets "
            f"{len(worlds) / 4}."
            for name, (_, worlds, meaning) in (SHOWN | SHOWN_UNDER_REAL_LAW).items()
        },
        **{
            f"{name}_unconditional": f"Share of {SHOWN[name][2]}, among all that were judged, 0 to "
            "1. An image without the scene doesn't show it, so that nothing is gained by leaving "
            "the scene out."
            for name in UNCONDITIONAL
        },
        "coherence": "Share of images of one world that show a further consequence of its law too, "
        "0 to 1, in groups whose logic questions ask for one.",
        "uniformity": "Share of images of one world that show the same on a second thing or place, "
        "0 to 1, in groups whose logic questions ask for that.",
        "self_consistency": "Share of images of one world that the judge takes for the same world "
        "when the same is asked in other words, 0 to 1, in groups whose logic questions do so.",
        "yes_bias": "Share of yes among the four keyed answers of an image, less the half that is "
        "right where it shows one world, -0.5 to 0.5: how far the judge leans to yes.",
    }
    headline = Headline(
        score="compliance_L2_unconditional",
        better="higher",
        meaning="Share of images that show the scene, and the altered world, where premise and "
        "outcome are told.",
        items=lambda outcomes: {
            o.case.id: Item((shows_scene_and(("altered",), o),), o.case.cluster)
            for o in outcomes
            if o.case.variant == "L2"
        },
        broken_down=("compliance", "lock_in"),
        checks=("presence", "knows_real", "over_application", "yes_bias"),
    )

    def cases(self, row: AlteredWorld, seeds: int) -> Iterator[Case]:
        groups = {
            "level": row.level,
            "discipline": row.discipline,
            "depth": str(row.depth) if row.depth < 2 else "2+",
            "phrasing": row.phrasing,
            "naive_outcome": "yes" if row.naive_outcome else "no",
            "timed": "yes" if row.timed else "no",
            "logic_kind": row.logic_kind,
        }
        clusters = (row.law, row.group)
        yield from self.seeded(row, seeds, {row.level: row.prompt}, clusters, groups)
        if row.real_law_prompt:
            prompts = {REAL_LAW: row.real_law_prompt}
            yield from self.seeded(row, seeds, prompts, clusters, {**groups, "level": REAL_LAW})

    def together(self, row: AlteredWorld) -> str:
        return row.group

    def questions(
        self, row: AlteredWorld, case: Case, images: Sequence[Image], probe: str
    ) -> list[Question]:
        return ask_worlds(row, case, images, probe, *self.prompts)

    def truth(self, row: AlteredWorld, case: Case, scene: Scene) -> Mapping[str, str]:
        answers = {name: aspect.answer(scene) for name, aspect in ASPECTS.items()}
        return answers if scene.world else {}

    def correctness(self, outcome: Outcome) -> float:
        right = "altered" if outcome.case.variant in ("L2", "L3") else "real"
        return shows_scene_and((right,), outcome)

    def measures(self, outcomes: Sequence[Outcome]) -> Iterator[tuple[frozenset[str], Measure]]:
        for level, of_level in by_variant(outcomes, LEVELS):
            measure = Measure(f"right_{level}", of_level, self.correctness, YES_NO, "1")
            yield frozenset((PRESENCE, *POINTS)), measure

    def score(self, outcomes: Sequence[Outcome]) -> list[Score]:
        return in_groups(outcomes, _scores)


def ask_worlds(
    row: AlteredWorld | AlteredWorldGold,
    case: Case,
    images: Sequence[Image],
    probe: str,
    prompt: str,
) -> list[Question]:
    """Is the scene there, and which world is it? Gold images get the questions of the suite.

    prompt: name of the file that they are made from.
    """
    texts = {PRESENCE: row.presence} | {name: getattr(row, name).text for name in KEYED}
    named_texts, template = texts.items() if probe == ORIGINAL else (), read_prompt(prompt)
    return [
        ask_yes_no(case, name, template, text, images[-1], facts=ASPECTS[name]._asdict())
        for name, text in named_texts
    ]


def coherent(outcome: Outcome) -> float:
    """1 where point and logic questions show the same world, else 0; NaN without all answers."""
    worlds = {world_shown(outcome, questions) for questions in (POINTS, LOGICS)}
    return float(len(worlds) == 1) if worlds <= {*WORLDS.values()} else math.nan


def lean(outcome: Outcome) -> float:
    """Share of yes among the keyed answers less a half; NaN unless all, which are balanced."""
    return sum(YES_NO.of(outcome.verdict(name)) for name in KEYED) / len(KEYED) - 0.5


def _scores(outcomes: Sequence[Outcome], group: str) -> Iterator[Score]:
    """Every score of a group; none for a level that it lacks."""
    plain = [o for o in outcomes if o.case.variant == "L1"]
    if plain or group == ALL:
        yield mean_worth(PRESENCE, plain, PRESENCE, YES_NO, unit="1", group=group)
    for name, (levels, worlds, _) in (SHOWN | SHOWN_UNDER_REAL_LAW).items():
        chosen = [o for o in outcomes if o.case.variant in levels.split()]
        if chosen or (group == ALL and name in SHOWN):
            value, chance = partial(shows, worlds), len(worlds) / len(WORLDS)
            yield mean_value(name, chosen, value, world_shown, group, null=chance)
            if name in UNCONDITIONAL:
                value = partial(shows_scene_and, worlds)
                yield mean_value(f"{name}_unconditional", chosen, value, world_shown, group)
    one_world = [o for o in outcomes if world_shown(o) in ("real", "altered")]
    for name, kind in BY_LOGIC.items():
        chosen = [o for o in one_world if o.case.groups.get("logic_kind") == kind]
        if chosen or group == ALL:
            why = partial(failure, questions=LOGICS)
            yield mean_value(name, chosen, coherent, why, group, null=0.25)
    yield mean_value(
        "yes_bias", outcomes, lean, partial(failure, questions=KEYED), group, ends=(-0.5, 0.5)
    )
