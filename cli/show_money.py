"""Prints attempts without an outcome, and what they came to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .console import print_json

if TYPE_CHECKING:
    from ..eval.engine.settling import Settlement


def print_settlement(found: Settlement, as_json: bool) -> None:
    """Prints one attempt a line, and what is to do about them; or as JSON."""
    if as_json:
        attempts = [{**vars(attempt), "worst": str(attempt.worst)} for attempt in found.attempts]
        settled = None if found.settled is None else str(found.settled)
        print_json({"attempts": attempts, "spent": str(found.spent), "settled": settled})
        return
    for attempt in found.attempts:
        print(f"{attempt.worst:>10.4f} USD at most  {attempt.source}  {attempt.call}")
    count = len(found.attempts)
    print(
        f"{count:,} attempts without an outcome, {found.worst:.4f} USD of {found.spent:.4f} spent"
    )
    if not count:
        return
    if found.settled is None:
        print("they count at their worst case; see the provider's bill, then --billed or --worst")
    else:
        print(f"settled: they count as {found.settled:.4f} USD from now on")
