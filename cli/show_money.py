"""Prints attempts without an outcome, and their cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING

from .console import print_json, print_note

if TYPE_CHECKING:
    from ..eval.engine.repair import Repaired
    from ..eval.engine.settling import Settlement


def print_repaired(logs: Sequence[Repaired]) -> None:
    """Says which logs had lines that can't be read, and what to do next."""
    for log in logs:
        print_note(str(log))
    if logs:
        print_note("run the command that made the folder again: it asks for what they answered")
    else:
        print_note("every line of the logs can be read")


def print_settlement(settlement: Settlement, as_json: bool) -> None:
    """Prints one attempt a line, and the next step; or as JSON."""
    if as_json:
        attempts = [
            {**vars(attempt), "worst": str(attempt.worst)} for attempt in settlement.attempts
        ]
        settled = None if settlement.settled is None else str(settlement.settled)
        spent = {"spent": str(settlement.spent), "unpriced": settlement.unpriced}
        accepted = {model: _texts(units) for model, units in settlement.accepted.items()}
        print_json({"attempts": attempts, **spent, "settled": settled, "accepted": accepted})
        return
    for model, units in settlement.accepted.items():
        prices = ", ".join(f"{name} {usd}" for name, usd in _texts(units).items())
        print(f"{model} counts at {prices} USD from now on")
    for attempt in settlement.attempts:
        print(f"{attempt.worst:>10.4f} USD at most  {attempt.source}  {attempt.call}")
    count = len(settlement.attempts)
    print(f"{count:,} attempts without an outcome, {_open_part(settlement)} spent")
    if not count:
        return
    if settlement.settled is None:
        print("they count at their worst case; see the provider's bill, then --billed or --worst")
    else:
        print(f"settled: they count as {settlement.settled:.4f} USD from now on")


def _texts(units: Mapping[str, Decimal]) -> dict[str, str]:
    """Prices without exponents or trailing zeros of their computation."""
    return {name: f"{usd.normalize():f}" for name, usd in units.items()}


def _open_part(settlement: Settlement) -> str:
    """What the open attempts may have cost of all that was spent, as far as prices are known."""
    unknown = f"an unknown sum for {settlement.unpriced:,} calls without a price"
    if not settlement.unpriced:
        return f"{settlement.worst:.4f} USD of {settlement.spent:.4f}"
    if not settlement.spent:
        return unknown
    return f"{settlement.worst:.4f} USD of {settlement.spent:.4f} and {unknown}"
