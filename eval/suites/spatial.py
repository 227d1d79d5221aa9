"""`spatial_visor`, `spatial_uc`: explicit spatial words, asked of a judge (VISOR, SpatialBench-UC).

The same configs measured from detections are in `rules`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

from PIL.Image import Image

from ...scenes.scene import Scene
from ...schema import SpatialUC, SpatialVISOR
from ..core import Case, Outcome, Question, Score, is_mirrored
from .asking import Alternative, Subject, ask_which
from .base import INVALID, Headline, Measure, Suite, Worth, case_items
from .scores import in_groups, mean_worth
from .trials import guidance_trials

QUESTION = "order"
HOLDS = Worth({"holds": 1.0, "opposite": 0.0}, others=(INVALID,))
UNCONDITIONAL = Worth({**HOLDS.values, INVALID: 0.0})
SIDEWAYS = ("left_of", "right_of")
P = TypeVar("P", SpatialUC, SpatialVISOR)


class SpatialSuite(Suite[P]):
    """Does the stated relation hold, or its opposite?"""

    has_right_images = True
    prompts = ("order", "stack")
    worths = {QUESTION: HOLDS}
    headline = Headline(
        score="accuracy_unconditional",
        better="higher",
        meaning="Share of images with the stated relation, of all that could be judged.",
        items=case_items(QUESTION, UNCONDITIONAL),
        broken_down=("accuracy_unconditional",),
    )
    meanings = {
        "accuracy": "Share of images with the stated relation, of those with either relation.",
        "accuracy_unconditional": "Share of images with the stated relation, of all that could be "
        "judged; an image in which neither can be seen counts as failed, as in VISOR.",
    }

    def spatial_cases(self, row: P, seeds: int, published: str) -> Iterator[Case]:
        """The cases of a row, whose variant is the published id of its prompt."""
        pair = "/".join(sorted((row.object_a, row.object_b)))
        return self.seeded(row, seeds, {published: row.prompt}, (pair,), {"relation": row.relation})

    def questions(self, row: P, case: Case, images: Sequence[Image], probe: str) -> list[Question]:
        level = row.relation in SIDEWAYS
        if is_mirrored(probe) and not level:
            return []
        # The one that should be left, or on top, comes first.
        names = (row.object_a, row.object_b)
        if row.relation in ("right_of", "below"):
            names = names[::-1]
        asked = Alternative(
            "order",
            Subject(names[0], names[0]),
            Subject(names[1], names[1]),
            ("holds", "opposite"),
            prompt="order" if level else "stack",
            statement="{a} is to the left of {b}" if level else "{a} is above {b}",
            axis="horizontal" if level else "vertical",
        )
        return [ask_which(asked, case, probe, images)]

    def score(self, outcomes: Sequence[Outcome]) -> list[Score]:
        worths = {"accuracy": HOLDS, "accuracy_unconditional": UNCONDITIONAL}
        return in_groups(
            outcomes,
            lambda part, group: [
                mean_worth(name, part, QUESTION, worth, group=group)
                for name, worth in worths.items()
            ],
        )

    def correctness(self, outcome: Outcome) -> float:
        return UNCONDITIONAL.of(outcome.verdict(QUESTION))

    def measures(self, outcomes: Sequence[Outcome]) -> Iterator[tuple[frozenset[str], Measure]]:
        yield self.measure("accuracy", outcomes, QUESTION)

    def truth(self, row: P, case: Case, scene: Scene) -> Mapping[str, str]:
        if scene.faults or row.relation not in SIDEWAYS:
            return {}
        left = scene.left_to_right()
        ahead = left.index(row.object_a) < left.index(row.object_b)
        return {QUESTION: "holds" if ahead == (row.relation == "left_of") else "opposite"}

    def manifest(self, row: P, case: Case) -> Mapping[str, Any]:
        return {
            "prompt_id": case.variant,
            "relation": row.relation,
            "object_a": row.object_a,
            "object_b": row.object_b,
        }


class SpatialUCSuite(SpatialSuite[SpatialUC]):
    """SpatialBench-UC: a prompt and its counterfactual are sampled together."""

    name = "spatial_uc"
    trials = staticmethod(guidance_trials)

    def cases(self, row: SpatialUC, seeds: int) -> Iterator[Case]:
        return self.spatial_cases(row, seeds, row.prompt_id)

    def together(self, row: SpatialUC) -> str:
        return row.pair_id


class SpatialVISORSuite(SpatialSuite[SpatialVISOR]):
    """VISOR's two-object prompts."""

    name = "spatial_visor"

    def cases(self, row: SpatialVISOR, seeds: int) -> Iterator[Case]:
        return self.spatial_cases(row, seeds, str(row.visor_id))
