"""`spatial_visor`, `spatial_uc`: explicit spatial words, asked of a judge (VISOR, SpatialBench-UC).

The same configs measured from detections are in `metrics` and `checker`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from PIL.Image import Image

from ...schema import Row, SpatialUC, SpatialVISOR
from ..core import Case, Outcome, count_excluded
from ..judges import Question
from ..prompts import read_prompt
from .asking import INVALID, Subject, ask_which
from .scores import Score, in_groups, mean_score

QUESTION = "order"
VALUES = {"holds": 1.0, "opposite": 0.0}


class SpatialSuite:
    """Does the stated relation hold, or its opposite?"""

    prompts = ("order", "stack")

    def cases(self, row: Row, seeds: int) -> Iterator[Case]:
        assert isinstance(row, (SpatialVISOR, SpatialUC))
        pair = "/".join(sorted((row.object_a, row.object_b)))
        published = row.visor_id if isinstance(row, SpatialVISOR) else row.prompt_id
        for number, seed in enumerate(row.seeds[:seeds]):
            yield Case(
                row.id, str(published), seed, number, row.prompt, (pair,),
                {"relation": row.relation},
            )  # fmt: skip

    def questions(
        self, row: Row, case: Case, images: Sequence[Image], probe: str
    ) -> list[Question]:
        assert isinstance(row, (SpatialVISOR, SpatialUC))
        level = row.relation in ("left_of", "right_of")
        if probe == "mirror" and not level:
            return []
        # The one that should be left, or on top, comes first.
        names = (row.object_a, row.object_b)
        if row.relation in ("right_of", "below"):
            names = names[::-1]
        subjects = (Subject(names[0], names[0]), Subject(names[1], names[1]))
        question = ask_which(
            case, probe, "order", read_prompt(self.prompts[0 if level else 1]), subjects,
            ("holds", "opposite"), "{a} is to the left of {b}" if level else "{a} is above {b}",
            images, axis="horizontal" if level else "vertical",
        )  # fmt: skip
        return [question]

    def score(self, outcomes: Sequence[Outcome]) -> list[Score]:
        return in_groups(outcomes, _scores)


def _scores(outcomes: list[Outcome], group: str) -> list[Score]:
    """Share of right ones among those in either relation, and among all that were judged.

    The second counts a picture in which the relation can't be seen as failed, as VISOR does.
    """
    labels = [outcome.label(QUESTION) for outcome in outcomes]
    scores = []
    for name, values in (
        ("accuracy", VALUES),
        ("accuracy_unconditional", {**VALUES, INVALID: 0.0}),
    ):
        right = np.array([values.get(label, np.nan) for label in labels])
        excluded = count_excluded(labels, values)
        scores.append(mean_score(name, right, outcomes, excluded, "%", group))
    return scores
