"""What both homogenization suites share: how strong is the prior, and whose is it?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ..core import CONTROLS, MIRROR_SWAP, ORIGINAL, PROBES, Outcome, Score, count_excluded
from ..stats.clusters import cluster_interval
from ..stats.intervals import NOTHING, folded
from .base import Headline, Measure, R, Suite, Worth, case_items, values_of
from .order import expected_homogenization
from .scores import limits, mean_score, member_labels, valid_score

SIGNED = (-1.0, 1.0)
PROBED = "signed_index_{}_averaged"
AVERAGED = {
    "mirror": (ORIGINAL, "mirror"),
    "swap": (ORIGINAL, "swap"),
    "probes": (ORIGINAL, *CONTROLS, MIRROR_SWAP),
}
"""What is averaged over -> its probes: a control against the original, and the full 2 x 2."""

MEANINGS = {
    "hom": "How far the prior decides, 0 to 100: 100 |N_L - N_R| / (N_L + N_R) (OTS-Bench, Eq. 2). "
    "An absolute value, so chance alone gives more than 0: see `null`.",
    "signed_index": "Hom with its sign: +100 where every image follows the prior, -100 where every "
    "image does the opposite.",
    "valid": "Share of judged images that show the two subjects as asked.",
    "signed_index_mirror_averaged": "Signed index averaged over each image and its mirror image: "
    "the judge's preference for a side cancels.",
    "signed_index_swap_averaged": "Signed index averaged over both orders of naming the subjects: "
    "the judge's preference for a name cancels.",
    "signed_index_probes_averaged": "Signed index averaged over the full 2 x 2 of mirrored image "
    "and exchanged names.",
}


def homogenization_headline(question: str, worth: Worth, meaning: str) -> Headline:
    """Ranks by Hom, compares on the signs behind it."""
    return Headline(
        score="hom",
        better="lower",
        meaning=f"{meaning}; 0 without a prior. The tick is what chance alone gives.",
        items=case_items(question, worth),
        ends=SIGNED,
        statistic=np.abs,
        broken_down=("signed_index",),
    )


class Homogenization(Suite[R]):
    """One question whose labels are worth +1 with the prior and -1 against it."""

    def measures(self, outcomes: Sequence[Outcome]) -> Iterator[tuple[frozenset[str], Measure]]:
        for question in self.worths:
            yield self.measure("signed_index", outcomes, question)

    def bias_scores(self, outcomes: Sequence[Outcome], group: str) -> list[Score]:
        """Hom, the signed index behind it, and how many images were valid."""
        ((question, worth),) = self.worths.items()
        labels = [outcome.label(question) for outcome in outcomes]
        signs = values_of(outcomes, question, worth)
        excluded = count_excluded(labels, worth.values)
        members = member_labels(outcomes)
        wide = (
            NOTHING
            if members is None
            else cluster_interval(signs, members, SIGNED, resamples=2_000)[0].interval.scaled(100)
        )
        index = mean_score(
            "signed_index", signs, outcomes, ends=SIGNED, group=group, excluded=excluded
        )
        hom = Score(
            name="hom",
            value=abs(index.value),
            interval=folded(index.interval),
            n=index.n,
            unit="%",
            excluded=excluded,
            group=group,
            wide=folded(wide),
            null=expected_homogenization(index.n),
            bounds=folded(limits(signs, SIGNED).scaled(100)),
            warning=index.warning,
        )
        return [
            hom,
            Score(**{**vars(index), "wide": wide}),
            valid_score("valid", signs, labels, outcomes, group),
            *self._probed(outcomes, group),
        ]

    def _probed(self, outcomes: Sequence[Outcome], group: str) -> Iterator[Score]:
        """The signed index averaged over probes: a judge's own bias cancels."""
        ((question, worth),) = self.worths.items()
        asked = {p for p in PROBES if any((question, p) in o.verdicts for o in outcomes)}
        for name, probes in AVERAGED.items():
            if not asked.issuperset(probes):
                continue
            columns = np.stack([values_of(outcomes, question, worth, p) for p in probes], axis=1)
            whole = ~np.isnan(columns).any(axis=1)
            signs = np.where(whole, columns.mean(axis=1), np.nan)
            left_out = {"not_judged_in_all_probes": int((~whole).sum())}
            yield mean_score(
                PROBED.format(name), signs, outcomes, ends=SIGNED, group=group, excluded=left_out
            )
