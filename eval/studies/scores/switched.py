"""`switched:`: does the layout follow the prompt that was switched to? (OTS-Bench, Table 7)

A is the prompt of the variant `plain`, B that of `swapped`. Both are cases, so one run with
``switch:a2b`` holds A2B (its plain cases) and B2A (its swapped ones), and one with ``switch:n2a``
N2A and N2B; a second run with the protocols reversed would draw the same images again.
"""

from __future__ import annotations

import re

from ...core import Score
from ...stats.intervals import folded
from ...suites import open_suite
from ..switching import biased, followed, mean_sign, prior_of
from .scope import CellScope

NAMES = ("success:plain", "success:swapped", "hom:plain", "hom:swapped")
_TO_OTHER = re.compile(r"switch:[an]2b\b")


def find(name: str, scope: CellScope) -> Score | None:
    """``success:VARIANT`` or ``hom:VARIANT``, of the cases of one variant; percent.

    Success is over the cases that are biased without the switch, see `studies.switching`: the share
    of valid images whose layout is that of the last prompt. Hom is over all. Without the switch,
    success is how many follow the only prompt: all, because they were chosen for it. None where no
    case is biased. Raises UsageError for a suite without a prior.
    """
    what, _, variant = name.partition(":")
    (cell,) = scope.own
    if scope.base is None:
        return None
    suite = open_suite(cell.suite)
    question, label = prior_of(suite)
    said = [o for o in cell.outcomes if o.case.variant == variant]
    if what == "success":
        chosen = {case.id for case in biased(scope.base.outcomes, question, label)}
        said = [o for o in said if o.case.id in chosen]
    if not said:
        return None
    found = mean_sign(said, question, suite.worths[question].values)
    if what == "success":
        # Labels speak of each case's own prompt; after `a2b` and `n2b` the last one is the other.
        method = cell.judged.result.run.generator.get("method", "")
        value, interval = followed(found, -1 if _TO_OTHER.search(method) else 1)
    else:
        value, interval = 100 * abs(found.mean), folded(found.interval.scaled(100))
    return Score(f"switched:{name}", value, interval, n=found.n, unit="%", excluded=found.excluded)
