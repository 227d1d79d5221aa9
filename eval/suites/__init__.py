"""One class and one `SUITES` line per suite: cases, questions, label values, scores, headline."""

from __future__ import annotations

from typing import Any

from ...errors import UsageError
from .altered import AlteredWorldsSuite
from .base import PERSONAS, Suite
from .beyond import OrderBeyondSuite
from .caption_order import CaptionOrderSuite
from .consistency import ConsistencySuite
from .correctness import I2ICorrectnessSuite, T2ICorrectnessSuite
from .decoupling import AttributeDecouplingSuite, RuleDecouplingSuite
from .gold import AlteredWorldsGoldSuite, GoldSuite, T2ICorrectnessGoldSuite
from .homogenization import I2IHomogenizationSuite, T2IHomogenizationSuite
from .languages import OrderBeyondMultilingualSuite, T2IHomogenizationMultilingualSuite
from .real import RealGoldSuite
from .relations import OwnPromptsSuite, SpatialClausesSuite, SpatialMultiSuite
from .spatial import Spatial3DSuite, SpatialDistanceSuite, SpatialUCSuite, SpatialVISORSuite
from .worlds import CounterfactualDenominalizedSuite, CounterfactualSuite

SUITES: dict[str, type[Suite[Any]]] = {
    suite.name: suite
    for suite in (
        T2IHomogenizationSuite,
        T2ICorrectnessSuite,
        T2ICorrectnessGoldSuite,
        I2IHomogenizationSuite,
        I2ICorrectnessSuite,
        CounterfactualSuite,
        CounterfactualDenominalizedSuite,
        AlteredWorldsSuite,
        AlteredWorldsGoldSuite,
        RuleDecouplingSuite,
        AttributeDecouplingSuite,
        SpatialUCSuite,
        SpatialVISORSuite,
        RealGoldSuite,
        SpatialMultiSuite,
        Spatial3DSuite,
        SpatialDistanceSuite,
        SpatialClausesSuite,
        OrderBeyondSuite,
        T2IHomogenizationMultilingualSuite,
        OrderBeyondMultilingualSuite,
        ConsistencySuite,
        CaptionOrderSuite,
        OwnPromptsSuite,
    )
}
"""Config -> suite; the last two are for images and prompts of the user's own, and in no release."""


def open_suite(name: str, persona: str = PERSONAS[0]) -> Suite[Any]:
    """The suite of a config. Raises UsageError for an unknown config or persona."""
    if name not in SUITES:
        raise UsageError(f"no suite {name!r}: choose from {', '.join(SUITES)}", code="unknown-name")
    return SUITES[name](persona)


def open_gold(name: str, persona: str = PERSONAS[0]) -> GoldSuite[Any] | None:
    """The suite of the gold images of a config; None if it has none, or none for the persona.

    Raises UsageError for an unknown config."""
    if name not in SUITES:
        open_suite(name)
    gold = SUITES[name].gold
    suite = open_suite(gold, persona) if gold and persona in SUITES[gold].personas else None
    assert suite is None or isinstance(suite, GoldSuite)
    return suite
