"""Prints what models wrote, and what it cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .console import console, table

if TYPE_CHECKING:
    from ..builders.authoring.folder import AuthoringReport


def print_authored(report: AuthoringReport) -> None:
    """Prints what was written, why the run ended, and what it cost by role and model."""
    numbers = ("calls", "failed", "input tokens", "output tokens", "USD", "unpriced")
    shown = table("role", "model", *numbers, numbers=numbers, title=f"calls for {report.bank}")
    for account in report.accounts:
        counts = account.calls, account.failed, account.input_tokens, account.output_tokens
        cost = f"{account.usd:.4f}", f"{account.unpriced:,}"
        shown.add_row(account.role, account.model, *(f"{count:,}" for count in counts), *cost)
    output = console(width=120)
    output.print(shown)
    counted = ", ".join(f"{count:,} {name}" for name, count in report.counts.items())
    output.print(f"{counted}; stopped by {report.stopped}")
