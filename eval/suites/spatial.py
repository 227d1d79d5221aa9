"""`spatial_visor`, `spatial_uc`, `spatial_3d`, `spatial_distance`: one stated relation
between two things.

VISOR, SpatialBench-UC, and T2I-CompBench's relations in depth. A language model answers from the
image alone; a judge by rule (`pse:`, `visor:`, `checker:` ...) measures what a detector found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np
from PIL.Image import Image

from ...errors import DataError
from ...scenes.scene import Scene
from ...schema import Provenance, Spatial3D, SpatialDistance, SpatialUC, SpatialVISOR
from ..core import INVALID, Case, Outcome, Question, Score
from ..geometry.checker.decide import CheckVerdict
from ..geometry.checker.summary import PAIRS, all_of, best_of, pair_verdict
from ..questions.asking import Stated, ask_stated
from ..questions.benchmark_files import visor
from ..questions.truth import scene_label
from .base import Headline, Measure, Suite, case_items
from .scoring import (
    complete_groups,
    in_groups,
    mean_number,
    mean_score,
    mean_worth,
    valid_score,
)
from .worths import Worth

QUESTION = "order"
HOLDS = Worth({"holds": 1.0, "opposite": 0.0}, unscored=(INVALID,))
UNCONDITIONAL = Worth({**HOLDS.values, INVALID: 0.0})
MEANINGS = {
    "accuracy": "Share of images with the stated relation, of those that were decided; under the "
    "rule of VISOR its cond.",
    "accuracy_unconditional": "Share of images with the stated relation, of all that could be "
    "judged; an image in which neither can be seen counts as failed, as in VISOR.",
    "decided": "Share of judged images in which the relation or its reverse was seen; under a rule "
    "both things (VISOR's object accuracy), under the checker its coverage.",
    "measure": "Mean of the number that the judge measures, e.g. PSE; 0 where a thing is missing, "
    "as published.",
}
IF_SEEN: Mapping[str, str] = {
    "decided_if_seen": "`decided`, if the detector missed nothing: share of images that "
    "show both things and can be decided.",
    "accuracy_unconditional_if_seen": "`accuracy_unconditional`, if the detector missed "
    "nothing: share of images that show both things in the stated relation.",
    "accuracy_if_seen": "`accuracy`, if the detector missed nothing.",
}
"""Score corrected by detection rates on composed images -> its meaning; see
`results.detectability`."""
CHECKED: Mapping[str, CheckVerdict] = {
    "holds": "PASS",
    "opposite": "FAIL",
    INVALID: "UNDECIDABLE",
}
"""Label -> verdict of SpatialBench-UC."""
FOUR = 4
"""Images of a prompt for which VISOR 1 to 4 are defined."""
P = TypeVar("P", SpatialUC, SpatialVISOR, Spatial3D, SpatialDistance)


class SpatialSuite(Suite[P]):
    """Does the stated relation hold, or its opposite?"""

    has_right_images = True
    can_be_composed: ClassVar[bool] = True
    """Whether images with known things can be composed for its rows."""
    real_gold: ClassVar[str] = "real_gold"
    population = "pairs of objects"
    prompts: ClassVar[tuple[str, ...]] = ("order", "stack")
    worths = {QUESTION: HOLDS}
    headline = Headline(
        score="accuracy_unconditional",
        better="higher",
        meaning="Share of images with the stated relation, of all that could be judged.",
        items=case_items(QUESTION, UNCONDITIONAL),
        broken_down=("accuracy_unconditional",),
        checks=("accuracy", "decided", "visor_4", "pairs_both_pass", *IF_SEEN),
    )
    meanings: ClassVar[Mapping[str, str]] = {**MEANINGS, **IF_SEEN}

    def claim(self, row: P) -> Stated:
        """The relation that the row's prompt states."""
        return Stated(row.object_a, row.relation, row.object_b)

    def spatial_cases(
        self, row: P, seeds: int, published: str, together: str = ""
    ) -> Iterator[Case]:
        """The cases of a row, whose variant is the published id of its prompt.

        together: id that the prompt shares with its counterpart.
        """
        pair = "/".join(sorted((row.object_a, row.object_b)))
        clusters = (pair, together) if together else (pair,)
        return self.seeded(
            row, seeds, {published: row.prompt}, clusters, {"relation": row.relation}
        )

    def questions(self, row: P, case: Case, images: Sequence[Image], probe: str) -> list[Question]:
        return ask_stated(self.claim(row), case, probe, images)

    def score(self, outcomes: Sequence[Outcome]) -> list[Score]:
        return [*in_groups(outcomes, image_scores), *visor_scores(outcomes)]

    def correctness(self, outcome: Outcome) -> float:
        return UNCONDITIONAL.of(outcome.verdict(QUESTION))

    def measures(self, outcomes: Sequence[Outcome]) -> Iterator[tuple[frozenset[str], Measure]]:
        yield self.measure("accuracy", outcomes, QUESTION)

    def truth(self, row: P, case: Case, scene: Scene) -> Mapping[str, str]:
        return {QUESTION: scene_label(scene, self.claim(row))}

    def manifest(self, row: P, case: Case) -> Mapping[str, Any] | None:
        return {
            "prompt_id": case.variant,
            "relation": row.relation,
            "object_a": row.object_a,
            "object_b": row.object_b,
        }


def image_scores(outcomes: Sequence[Outcome], group: str) -> list[Score]:
    """Scores over single images."""
    return [
        mean_worth("accuracy", outcomes, QUESTION, HOLDS, group=group),
        mean_worth("accuracy_unconditional", outcomes, QUESTION, UNCONDITIONAL, group=group),
        valid_score("decided", outcomes, QUESTION, HOLDS, group),
        *mean_number("measure", outcomes, [QUESTION], group=group),
    ]


def prompt_score(
    name: str,
    prompts: Sequence[Sequence[Outcome]],
    value: Callable[[Sequence[Outcome]], float],
    left_out: int,
) -> Score:
    """The mean of a value of each prompt's images."""
    return mean_score(
        name,
        np.array([value(images) for images in prompts], dtype=float),
        [images[0] for images in prompts],
        excluded={"prompt_incomplete": left_out} if left_out else {},
    )


def visor_scores(outcomes: Sequence[Outcome]) -> list[Score]:
    """VISOR 1 to 4: shares of prompts with at least that many right images of four, else empty.

    With four images a prompt their mean is `accuracy_unconditional`.
    """
    prompts, left_out = complete_groups(outcomes, QUESTION, _prompt)
    if not prompts or max(map(len, prompts)) != FOUR:
        return []
    right = [images for images in prompts if len(images) == FOUR]
    left_out += len(prompts) - len(right)

    def at_least(least: int, images: Sequence[Outcome]) -> float:
        return float(sum(o.label(QUESTION) == "holds" for o in images) >= least)

    return [
        prompt_score(f"visor_{least}", right, partial(at_least, least), left_out)
        for least in range(1, FOUR + 1)
    ]


def _prompt(outcome: Outcome) -> str:
    return f"{outcome.case.row}/{outcome.case.variant}"


def visor_rows(path: Path) -> list[SpatialVISOR]:
    """Rows of `spatial_visor` for the prompts of VISOR's JSON that state a relation.

    Raises DataError for a file without any.
    """
    rows = [
        SpatialVISOR(
            visor_id=int(prompt.entry),
            relation=claim.relation,  # type: ignore[arg-type]
            object_a=claim.a,
            object_b=claim.b,
            prompt=prompt.text,
            review=[],
            provenance=Provenance(bank=path.name, entry=prompt.entry, author="VISOR", calls=[]),
            license="MIT",
        )
        for prompt in visor(path)
        for claim in prompt.claims
    ]
    if not rows:
        raise DataError(f"{path}: no prompt states a spatial relation", code="nothing-to-do")
    return rows


class SpatialVISORSuite(SpatialSuite[SpatialVISOR]):
    """VISOR's two-object prompts."""

    name = "spatial_visor"
    offline_rows = 24
    meanings = {
        **SpatialSuite.meanings,
        **{
            f"visor_{n}": f"Share of prompts of whose four images at least {n} hold."
            for n in range(1, 5)
        },
    }

    @classmethod
    def read_file(cls, text: str) -> list[SpatialVISOR] | None:
        """The rows of VISOR's own JSON, `FILE` or `FILE?benchmark=visor`."""
        path = Path(text.removesuffix("?benchmark=visor"))
        return visor_rows(path) if path.is_file() else None

    def cases(self, row: SpatialVISOR, seeds: int) -> Iterator[Case]:
        return self.spatial_cases(row, seeds, str(row.visor_id))


class SpatialUCSuite(SpatialSuite[SpatialUC]):
    """SpatialBench-UC: a prompt and its counterfactual are sampled together."""

    name = "spatial_uc"
    offline_rows = 12
    meanings = {
        **SpatialVISORSuite.meanings,
        "best_of_k": "Share of prompts of whose images at least one holds.",
        "all_of_k": "Share of prompts of which all images hold.",
        **{
            f"pairs_{name}": f"Share of prompts with their counterfactuals that are {kind}, by the "
            "best of their images."
            for name, kind in zip(
                PAIRS,
                ("both right", "both wrong", "right on one side only", "not decided"),
                strict=True,
            )
        },
    }

    def cases(self, row: SpatialUC, seeds: int) -> Iterator[Case]:
        return self.spatial_cases(row, seeds, row.prompt_id, row.pair_id)

    def together(self, row: SpatialUC) -> str:
        return row.pair_id

    def score(self, outcomes: Sequence[Outcome]) -> list[Score]:
        return [*super().score(outcomes), *pair_scores(outcomes)]


def pair_scores(outcomes: Sequence[Outcome]) -> list[Score]:
    """Best of K, all of K, and counterfactual pairs, as SpatialBench-UC defines them."""
    prompts, left_out = complete_groups(outcomes, QUESTION, _prompt)
    if not prompts:
        return []
    k = max(map(len, prompts))
    best = {id(images): best_of(checked(images)) for images in prompts}
    scenes: dict[str, list[Sequence[Outcome]]] = {}
    for images in prompts:
        scenes.setdefault(images[0].case.clusters[-1], []).append(images)
    pairs = [pair for pair in scenes.values() if len(pair) == 2]
    sides = [pair_verdict(*(best[id(images)] for images in pair)) for pair in pairs]
    # Also those of which both prompts have a failure.
    unpaired = len({outcome.case.clusters[-1] for outcome in outcomes}) - len(pairs)
    firsts = [pair[0][0] for pair in pairs]
    return [
        prompt_score("best_of_k", prompts, lambda o: float(best[id(o)] == "PASS"), left_out),
        prompt_score(
            "all_of_k", prompts, lambda o: float(all_of(checked(o), k) == "PASS"), left_out
        ),
        *(
            mean_score(
                f"pairs_{name}",
                np.array([float(side == name) for side in sides]),
                firsts,
                excluded={"pair_incomplete": unpaired} if unpaired else {},
            )
            for name in (PAIRS if pairs else ())
        ),
    ]


def checked(images: Sequence[Outcome]) -> list[CheckVerdict]:
    """The checker's words for the labels of some images."""
    return [CHECKED[outcome.label(QUESTION)] for outcome in images]


class Spatial3DSuite(SpatialSuite[Spatial3D]):
    """In front of, behind, partly hidden by: PSE-3D, T2I-CompBench's depth, or a language model."""

    name = "spatial_3d"
    can_be_composed = False
    real_gold = ""
    meanings = MEANINGS
    prompts = ("depth", "occlusion")

    def cases(self, row: Spatial3D, seeds: int) -> Iterator[Case]:
        return self.spatial_cases(row, seeds, "plain", row.pair_id)

    def together(self, row: Spatial3D) -> str:
        return row.pair_id

    def manifest(self, row: Spatial3D, case: Case) -> None:
        return None  # `spatial detect` and the checker know the plane only

    def score(self, outcomes: Sequence[Outcome]) -> list[Score]:
        return in_groups(outcomes, image_scores)


class SpatialDistanceSuite(SpatialSuite[SpatialDistance]):
    """Near each other or far apart: PSE's PoS of distance, or a language model."""

    name = "spatial_distance"
    offline_rows = 12
    scores_by_group = True  # distances of centers are by what is stated
    can_be_composed = False
    real_gold = ""
    meanings = MEANINGS
    prompts = ("placement",)

    def cases(self, row: SpatialDistance, seeds: int) -> Iterator[Case]:
        return self.spatial_cases(row, seeds, "plain", row.pair_id)

    def together(self, row: SpatialDistance) -> str:
        return row.pair_id

    def manifest(self, row: SpatialDistance, case: Case) -> None:
        return None  # `spatial detect` and the checker know the sides only

    def score(self, outcomes: Sequence[Outcome]) -> list[Score]:
        return in_groups(outcomes, image_scores)
