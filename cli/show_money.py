"""Prints attempts without an outcome, and their cost."""

from __future__ import annotations

from collections.abc import Sequence
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
        print_json({"attempts": attempts, "spent": str(settlement.spent), "settled": settled})
        return
    for attempt in settlement.attempts:
        print(f"{attempt.worst:>10.4f} USD at most  {attempt.source}  {attempt.call}")
    count = len(settlement.attempts)
    print(
        f"{count:,} attempts without an outcome, {settlement.worst:.4f} USD of "
        f"{settlement.spent:.4f} spent"
    )
    if not count:
        return
    if settlement.settled is None:
        print("they count at their worst case; see the provider's bill, then --billed or --worst")
    else:
        print(f"settled: they count as {settlement.settled:.4f} USD from now on")
