"""How long work tells of itself."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str, int, int], None]
"""Told the name of a stage, how much of it is done, and how much there is."""


def silent(stage: str, done: int, total: int) -> None:
    """Tells nobody."""
