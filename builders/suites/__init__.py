"""One module a suite: its rows from the banks, and what they must satisfy."""

from __future__ import annotations

from typing import Any

from ..suite import SuiteRecipe
from . import (
    altered_worlds,
    altered_worlds_gold,
    attribute_decoupling,
    consistency,
    counterfactual,
    counterfactual_denominalized,
    i2i_correctness,
    i2i_homogenization,
    order_beyond,
    order_beyond_multilingual,
    real_gold,
    rule_decoupling,
    spatial_3d,
    spatial_clauses,
    spatial_distance,
    spatial_multi,
    spatial_uc,
    spatial_visor,
    t2i_correctness,
    t2i_correctness_gold,
    t2i_homogenization,
    t2i_homogenization_multilingual,
)

SUITES: dict[str, SuiteRecipe[Any]] = {
    module.SUITE.name: module.SUITE
    for module in (
        t2i_homogenization,
        t2i_correctness,
        t2i_correctness_gold,
        i2i_homogenization,
        i2i_correctness,
        counterfactual,
        counterfactual_denominalized,
        altered_worlds,
        altered_worlds_gold,
        rule_decoupling,
        attribute_decoupling,
        spatial_uc,
        spatial_visor,
        real_gold,
        spatial_multi,
        spatial_3d,
        spatial_distance,
        spatial_clauses,
        order_beyond,
        t2i_homogenization_multilingual,
        order_beyond_multilingual,
        consistency,
    )
}
"""Every suite that the builders make, in the order of the card."""
