"""`spatial_visor`, `spatial_uc`: explicit spatial words, asked of a judge (VISOR, SpatialBench-UC).

The same configs measured from detections are in `rules`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from PIL.Image import Image

from ...schema import SpatialUC, SpatialVISOR
from ..core import Case, Outcome, Question, Score, count_excluded, is_mirrored
from ..prompts import read_prompt
from .asking import Alternative, Subject, ask_which
from .base import INVALID, Headline, Measure, Suite, Worth, case_items, values_of
from .scores import in_groups, mean_score

QUESTION = "order"
HOLDS = Worth({"holds": 1.0, "opposite": 0.0}, others=(INVALID,))
UNCONDITIONAL = Worth({**HOLDS.values, INVALID: 0.0})
SIDEWAYS = ("left_of", "right_of")


class SpatialSuite(Suite[SpatialUC | SpatialVISOR]):
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

    def cases(self, row: SpatialUC | SpatialVISOR, seeds: int) -> Iterator[Case]:
        published = row.visor_id if isinstance(row, SpatialVISOR) else row.prompt_id
        for number, seed in enumerate(row.seeds[:seeds]):
            yield Case(
                row=row.id,
                variant=str(published),
                seed=seed,
                number=number,
                prompt=row.prompt,
                clusters=("/".join(sorted((row.object_a, row.object_b))),),
                groups={"relation": row.relation},
            )

    def questions(
        self, row: SpatialUC | SpatialVISOR, case: Case, images: Sequence[Image], probe: str
    ) -> list[Question]:
        level = row.relation in SIDEWAYS
        if is_mirrored(probe) and not level:
            return []
        # The one that should be left, or on top, comes first.
        names = (row.object_a, row.object_b)
        if row.relation in ("right_of", "below"):
            names = names[::-1]
        asked = Alternative(
            task="order",
            prompt=read_prompt(self.prompts[0 if level else 1]),
            subjects=(Subject(names[0], names[0]), Subject(names[1], names[1])),
            labels=("holds", "opposite"),
            statement="{a} is to the left of {b}" if level else "{a} is above {b}",
            axis="horizontal" if level else "vertical",
        )
        return [ask_which(asked, case, probe, images)]

    def score(self, outcomes: Sequence[Outcome]) -> list[Score]:
        return in_groups(outcomes, _scores)

    def correctness(self, outcome: Outcome) -> float:
        return UNCONDITIONAL.of(outcome.verdict(QUESTION))

    def measures(self, outcomes: Sequence[Outcome]) -> Iterator[tuple[frozenset[str], Measure]]:
        yield self.measure("accuracy", outcomes, QUESTION)

    def manifest(self, row: SpatialUC | SpatialVISOR, case: Case) -> Mapping[str, Any]:
        return {
            "prompt_id": case.variant,
            "relation": row.relation,
            "object_a": row.object_a,
            "object_b": row.object_b,
        }


class SpatialUCSuite(SpatialSuite):
    """SpatialBench-UC: a prompt and its counterfactual are sampled together."""

    name = "spatial_uc"

    def together(self, row: SpatialUC | SpatialVISOR) -> str:
        return row.pair_id if isinstance(row, SpatialUC) else row.id


class SpatialVISORSuite(SpatialSuite):
    """VISOR's two-object prompts."""

    name = "spatial_visor"


def _scores(outcomes: list[Outcome], group: str) -> list[Score]:
    labels = [outcome.label(QUESTION) for outcome in outcomes]
    return [
        mean_score(
            name,
            values_of(outcomes, QUESTION, worth),
            outcomes,
            group=group,
            excluded=count_excluded(labels, worth.values),
        )
        for name, worth in (("accuracy", HOLDS), ("accuracy_unconditional", UNCONDITIONAL))
    ]
